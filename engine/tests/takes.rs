//! Scenes of a take: repeated attempts, and the meaning of answers.

use crate::rig::{Rig, Trap, Trick, refused};
use leasehold_engine::ids::LeaseKey;
use leasehold_engine::input::{Call, Cause, Outcome, Why};
use leasehold_engine::notice::{Notice, TakeReason};
use leasehold_engine::output::*;
use leasehold_engine::row::{Change, LeaseRow};
use leasehold_engine::time::{Mono, Span};
use std::collections::BTreeSet;

fn is_take(effect: &Effect) -> bool {
    matches!(effect, Effect::Table(TableOp::Write(Change::Take { .. })))
}

/// One free lease, and a worker whose takes meet the trick.
fn fleet(mut trick: impl FnMut() -> Trick + 'static) -> Rig {
    let mut rig = Rig::new(1, 1);
    rig.secs(20);
    rig.workers[0].alive = false;
    let free = rig.row(0).key.clone();
    let row = rig.table.rows.as_mut().unwrap().get_mut(&free).unwrap();
    row.owner = None;
    let trap: Trap = Box::new(move |effect| is_take(effect).then(&mut trick));
    rig.join_trapped(Some(trap));
    rig
}

fn takes(rig: &Rig) -> Vec<Mono> {
    let sent = rig.workers[1].sent.iter();
    sent.filter(|(_, effect)| is_take(effect)).map(|(at, _)| *at).collect()
}

fn told(rig: &Rig, what: impl Fn(&Notice) -> bool) -> usize {
    let notices = rig.workers[1].notices.iter();
    notices.filter(|(_, notice)| what(notice)).count()
}

#[test]
fn an_unsent_take_is_repeated_after_growing_pauses_until_a_scan() {
    let mut rig = fleet(|| Trick::Instead(Outcome::NotSent(Cause::Throttled)));
    rig.secs(10);
    let at = takes(&rig);
    assert_eq!(at.len(), 5, "{at:?}");
    let pauses: Vec<Span> = at.windows(2).map(|two| two[1].since(two[0])).collect();
    assert!(pauses[0] >= rig.config.retry_min().per(2), "{pauses:?}");
    assert!(pauses[3] > pauses[0].times(2), "{pauses:?}");
    assert!(pauses[3] <= rig.config.retry_max());
    rig.secs(25);
    assert_eq!(takes(&rig).len(), 10, "once more after the next scan");

    // Whichever take is applied after all, the change of the row is the same, and the former owner must notice the
    // change.
    let changes = rig.workers[1].sent.iter().filter_map(|(_, effect)| match effect {
        Effect::Table(TableOp::Write(Change::Take { counter, next, .. })) => Some((*counter, *next)),
        _ => None,
    });
    let changes: BTreeSet<(u64, u64)> = changes.take(5).collect();
    assert_eq!(changes.len(), 1, "{changes:?}");
    assert!(changes.iter().all(|(counter, next)| next > counter), "{changes:?}");
}

#[test]
fn a_takes_unknown_outcome_is_read_from_the_row() {
    let unknown = || Outcome::Unknown(Cause::Timeout);
    let adopted = |notice: &Notice| matches!(notice, Notice::Adopted { .. });
    let mut rig = fleet(move || Trick::AppliedBut(unknown()));
    rig.secs(10);
    assert_eq!((takes(&rig).len(), told(&rig, adopted)), (1, 1));
    assert_eq!(rig.owner(0), Some(1));

    let mut rig = fleet(move || Trick::Instead(unknown()));
    rig.secs(10);
    assert_eq!((takes(&rig).len(), told(&rig, adopted)), (5, 0));
    assert_eq!(rig.owner(0), None);
}

/// A refusal without the row may be of a second execution of what was applied.
#[test]
fn a_refusal_that_does_not_show_the_row_proves_nothing() {
    let mut rig = fleet(|| Trick::AppliedBut(refused(Why::ConditionFailed, None)));
    rig.secs(10);
    assert_eq!((takes(&rig).len(), rig.owner(0)), (1, Some(1)));
}

#[test]
fn a_read_that_fails_is_no_answer_about_the_take() {
    let mut rig = fleet(|| Trick::AppliedBut(Outcome::Unknown(Cause::Timeout)));
    rig.workers[1].alive = false;
    let mut reads = 0;
    rig.join_trapped(Some(Box::new(move |effect| match effect {
        effect if is_take(effect) => Some(Trick::AppliedBut(Outcome::Unknown(Cause::Timeout))),
        Effect::Table(TableOp::Read { .. }) => {
            reads += 1;
            (reads < 3).then_some(Trick::Instead(Outcome::Unknown(Cause::Network)))
        }
        _ => None,
    })));
    rig.secs(30);
    assert_eq!(rig.owner(0), Some(2), "{:?}", rig.workers[2].notices);
}

#[test]
fn a_shutdown_does_not_wait_for_takes_that_were_given_up() {
    let mut rig = fleet(|| Trick::Instead(Outcome::NotSent(Cause::Throttled)));
    rig.secs(10);
    rig.call(1, Call::Shutdown);
    assert!(rig.workers[1].engine().is_stopped());
}

/// What somebody else took meanwhile is not followed: the next scan tells who has too much.
#[test]
fn a_steal_does_not_follow_a_lease_to_a_third_worker() {
    let mut rig = Rig::new(4, 1);
    rig.secs(60);
    let steals = |effect: &Effect| is_take(effect);
    let worker = rig.join_trapped(Some(Box::new(move |effect| steals(effect).then_some(Trick::Hang))));
    while rig.workers[worker].hung.is_empty() {
        rig.secs(1);
    }
    for row in rig.table.rows.as_mut().unwrap().values_mut() {
        (row.owner, row.counter) = (Some("third".into()), row.counter + 1);
    }
    rig.release(worker);
    let stolen: Vec<&LeaseRow> = rig.table.rows.as_ref().unwrap().values().collect();
    assert!(stolen.iter().all(|row| row.owner == Some("third".into())));
    let missed = |(_, notice): &&(Mono, Notice)| matches!(notice, Notice::MissedTake { .. });
    let notices = rig.workers[worker].notices.iter();
    assert_eq!(notices.filter(missed).count(), 1);
    assert!(rig.workers[worker].hung.is_empty(), "no second attempt");
}

/// The time from a worker's first take to its opening of a shard, and the reason of the take.
fn opened(rig: &Rig, worker: usize) -> (Span, TakeReason) {
    let took = rig.workers[worker].notices.iter().find_map(|(at, notice)| {
        let Notice::Took { why, .. } = notice else {
            return None;
        };
        Some((*at, why.clone()))
    });
    let open = |op: &ConsumerOp| matches!(op, ConsumerOp::Open { .. });
    let calls = &rig.workers[worker].calls;
    let open = calls.iter().find(|(_, op)| open(op)).map(|(at, _)| *at);
    let (took, why) = took.unwrap();
    (open.unwrap().since(took), why)
}

/// Only stolen leases settle: the former owner may believe in its ownership for a lease duration.
#[test]
fn a_free_lease_is_opened_at_once_and_a_stolen_one_later() {
    let mut rig = Rig::new(4, 1);
    rig.secs(60);
    let (pause, why) = opened(&rig, 0);
    assert_eq!((pause, why), (Span::ZERO, TakeReason::Unowned));
    let worker = rig.join();
    rig.secs(60);
    let (pause, why) = opened(&rig, worker);
    assert!(matches!(why, TakeReason::Stolen { .. }));
    assert_eq!(pause, rig.config.lease_duration());
}

#[test]
fn renewals_of_leases_taken_together_are_spread_out() {
    let mut rig = Rig::new(40, 1);
    rig.secs(60);
    let mut first = std::collections::BTreeMap::new();
    let mut took = std::collections::BTreeMap::new();
    for (at, effect) in &rig.workers[0].sent {
        match effect {
            Effect::Table(TableOp::Write(Change::Take { key, .. })) => drop(took.insert(key.clone(), *at)),
            Effect::Table(TableOp::Write(Change::Renew { key, .. })) => {
                first.entry(key.clone()).or_insert(*at);
            }
            _ => {}
        }
    }
    assert_eq!(first.len(), 40);
    let after: BTreeSet<Span> = first.iter().map(|(key, at)| at.since(took[key])).collect();
    let interval = rig.config.renew_interval();
    assert!(after.len() > 20, "{after:?}");
    assert!(*after.last().unwrap() <= interval && *after.first().unwrap() >= interval.per(4).times(3));
}

#[test]
fn a_table_that_is_gone_is_no_answer_about_the_row() {
    let mut rig = fleet(|| Trick::Instead(refused(Why::NotFound, None)));
    let described = |rig: &Rig| {
        let described = |effect: &Effect| matches!(effect, Effect::Table(TableOp::Describe));
        let sent = rig.workers[1].sent.iter();
        sent.filter(|(_, effect)| described(effect)).count()
    };
    let before = described(&rig);
    rig.secs(10);
    let read = |effect: &Effect| matches!(effect, Effect::Table(TableOp::Read { .. }));
    assert!(!rig.workers[1].sent.iter().any(|(_, effect)| read(effect)));
    assert!(described(&rig) > before, "the table is looked at");
    assert!(takes(&rig).len() <= 5);
}

/// An owner may renew its lease just before every steal.
#[test]
fn a_steal_follows_an_owner_that_renews_a_few_times_only() {
    let mut rig = Rig::new(4, 1);
    rig.secs(60);
    let (rows, mut counter) = (rig.table.rows.clone().unwrap(), 1_000);
    let renewed = move |effect: &Effect| {
        let Effect::Table(TableOp::Write(change @ Change::Take { .. })) = effect else {
            return None;
        };
        counter += 1;
        let row = LeaseRow { counter, ..rows[change.key()].clone() };
        Some(Trick::Instead(refused(Why::ConditionFailed, Some(row))))
    };
    rig.join_trapped(Some(Box::new(renewed)));
    while takes(&rig).is_empty() {
        rig.secs(1);
    }
    assert_eq!(takes(&rig).len(), 6, "once, and five times more");
    assert_eq!(told(&rig, |notice| matches!(notice, Notice::MissedTake { .. })), 1);
}

/// Rows that name us come from an earlier, lost answer: no other worker can believe in them.
#[test]
fn a_row_that_names_us_is_opened_at_once() {
    let mut other = Rig::new(2, 2);
    other.secs(120);
    let me = (0..2).find(|&n| other.owner(n) == Some(1)).map(|n| other.row(n).owner.clone());
    let mut rig = Rig::new(1, 1);
    rig.secs(20);
    rig.workers[0].alive = false;
    let key = rig.row(0).key.clone();
    rig.table.rows.as_mut().unwrap().get_mut(&key).unwrap().owner = me.unwrap();
    rig.join();
    rig.secs(20);
    let (pause, why) = opened(&rig, 1);
    assert_eq!((pause, why), (Span::ZERO, TakeReason::Ours));
}

/// The first write due anyway carries the new progress: the first renewal, or an earlier checkpoint.
#[test]
fn the_first_checkpoint_is_written_by_the_first_renewal() {
    let saved_after = |interval: Span| {
        let mut rig = Rig::new(1, 0);
        rig.configure(|config| config.with_checkpoint_interval(interval));
        rig.put(0, 5);
        rig.join();
        rig.secs(60);
        let sent = &rig.workers[0].sent;
        let first = |wanted: fn(&Change) -> bool| {
            let found = sent.iter().find(|(_, effect)| match effect {
                Effect::Table(TableOp::Write(change)) => wanted(change),
                _ => false,
            });
            found.map(|(at, _)| *at).unwrap()
        };
        let took = first(|change| matches!(change, Change::Take { .. }));
        first(|change| matches!(change, Change::Checkpoint { .. })).since(took)
    };
    let renewal = Rig::new(1, 0).config.renew_interval();
    let late = saved_after(Span::from_secs(50));
    assert!(late <= renewal && late >= renewal.per(2), "{late}");
    assert_eq!(saved_after(Span::from_secs(1)), Span::from_secs(1));
}

/// A busy shard costs no more writes than an idle one.
#[test]
fn checkpoints_take_the_place_of_renewals() {
    let mut rig = Rig::new(1, 1);
    rig.secs(10);
    let writes = |rig: &Rig| {
        let sent = rig.workers[0].sent.iter();
        sent.filter(|(_, effect)| matches!(effect, Effect::Table(TableOp::Write(_)))).count()
    };
    let mut counts = Vec::new();
    for busy in [false, true] {
        let before = writes(&rig);
        for _ in 0..330 {
            rig.put(0, u64::from(busy));
            rig.secs(1);
        }
        counts.push(writes(&rig) - before);
    }
    assert!(counts[0].abs_diff(100) <= 2, "one in 3.3 s: {counts:?}");
    assert!(counts[1] <= counts[0] + 1, "{counts:?}");
}

/// Six released leases; a worker takes three at first; the third take is never carried out. Other workers take the
/// remaining leases, and perhaps the third, before the worker looks again.
fn beaten_to(others: &[&str], and_that: bool) -> (Rig, LeaseKey, Mono) {
    let mut rig = Rig::new(6, 1);
    rig.secs(20);
    rig.workers[0].alive = false;
    for row in rig.table.rows.as_mut().unwrap().values_mut() {
        row.owner = None;
    }
    // One attempt is then left after the next scan.
    rig.configure(|config| config.with_retry_min(Span::from_secs(1)));
    let mut keys: BTreeSet<LeaseKey> = BTreeSet::new();
    let trap: Trap = Box::new(move |effect| match effect {
        Effect::Table(TableOp::Write(Change::Take { key, .. })) if keys.len() < 2 => {
            keys.insert(key.clone());
            None
        }
        effect if is_take(effect) => Some(Trick::Instead(Outcome::NotSent(Cause::Throttled))),
        _ => None,
    });
    rig.join_trapped(Some(trap));
    let wanted = match rig.workers[1].sent.iter().rfind(|(_, effect)| is_take(effect)) {
        Some((_, Effect::Table(TableOp::Write(change)))) => change.key().clone(),
        other => panic!("{other:?}"),
    };
    rig.secs(1);
    let rows = rig.table.rows.as_mut().unwrap().values_mut();
    let free = rows.filter(|row| row.owner.is_none() && (row.key == wanted) == and_that);
    for (row, other) in free.zip(others.iter().cycle()) {
        (row.owner, row.counter) = (Some((*other).into()), row.counter + 1);
    }
    let before = rig.now;
    rig.run(rig.config.meeting());
    let scans = |effect: &Effect| matches!(effect, Effect::Table(TableOp::Scan { .. }));
    let scan = rig.workers[1].sent.iter().rfind(|(_, effect)| scans(effect));
    let scan = scan.map(|(at, _)| *at).unwrap();
    assert!(scan > before, "it has looked again");
    rig.secs(8);
    (rig, wanted, scan)
}

/// How often this lease was tried to be taken before and after a moment.
fn tries(rig: &Rig, wanted: &LeaseKey, at: Mono) -> (usize, usize) {
    let tries = rig.workers[1].sent.iter().filter(|(_, effect)| match effect {
        Effect::Table(TableOp::Write(change)) => is_take(effect) && change.key() == wanted,
        _ => false,
    });
    let (before, after): (Vec<Mono>, Vec<Mono>) = tries.map(|(then, _)| *then).partition(|then| *then <= at);
    (before.len(), after.len())
}

#[test]
fn a_take_is_not_repeated_once_the_share_is_full() {
    let spared = |notice: &Notice| matches!(notice, Notice::Spared { .. });
    // With one further taker each worker gets 3, with three further takers 2.
    let (rig, wanted, scan) = beaten_to(&["a"], false);
    let (before, after) = tries(&rig, &wanted, scan);
    assert_eq!((before + after, told(&rig, spared)), (5, 0));
    assert!(after > 0);
    let (rig, wanted, scan) = beaten_to(&["a", "b", "c"], false);
    assert_eq!((tries(&rig, &wanted, scan), told(&rig, spared)), ((before, 0), 1));
}

#[test]
fn a_take_is_not_repeated_once_another_has_the_lease() {
    let (rig, wanted, scan) = beaten_to(&["a"], true);
    assert_eq!(tries(&rig, &wanted, scan).1, 0);
    let missed = |notice: &Notice| matches!(notice, Notice::MissedTake { lease, owner } if *lease == wanted && *owner == Some("a".into()));
    assert_eq!(told(&rig, missed), 1);
}

/// A take without an answer, of a lease that a scan shows with a new owner, counts this owner among the workers.
#[test]
fn a_lease_that_another_took_first_is_not_ours() {
    let mut rig = fleet(|| Trick::Hang);
    let workers = |rig: &Rig| {
        let notices = rig.workers[1].notices.iter().rev();
        let mut scanned = notices.filter_map(|(_, notice)| match notice {
            Notice::Scanned { workers, .. } => Some(*workers),
            _ => None,
        });
        scanned.next().unwrap()
    };
    rig.secs(22);
    assert_eq!(workers(&rig), 1);
    let row = rig.table.rows.as_mut().unwrap().values_mut().next().unwrap();
    (row.owner, row.counter) = (Some("third".into()), row.counter + 1);
    rig.secs(22);
    assert_eq!(workers(&rig), 2);
}

/// A take of an expired lease has no answer yet, and a scan shows that the owner has renewed the row: the guard of the
/// take cannot hold any more. The owner lives, and its lease does not belong to the taker.
#[test]
fn a_lease_that_its_owner_renewed_first_is_not_ours() {
    let mut rig = Rig::new(1, 1);
    rig.secs(20);
    rig.workers[0].alive = false;
    rig.join_trapped(Some(Box::new(|effect| is_take(effect).then_some(Trick::Hang))));
    rig.secs(rig.config.lease_duration().0 / 1_000_000 + 22);
    let expired = |notice: &Notice| matches!(notice, Notice::Scanned { workers: 1, .. });
    assert!(told(&rig, expired) > 0);
    assert_eq!(rig.workers[1].hung.len(), 1, "one take without an answer");
    let row = rig.table.rows.as_mut().unwrap().values_mut().next().unwrap();
    row.counter += 1;
    let before = rig.workers[1].notices.len();
    rig.secs(rig.config.scan_interval().0 / 1_000_000 + 1);
    let notices = rig.workers[1].notices[before..].iter();
    let workers = notices.filter_map(|(_, notice)| match notice {
        Notice::Scanned { workers, .. } => Some(*workers),
        _ => None,
    });
    assert_eq!(workers.collect::<Vec<_>>(), [2]);
}

/// The answer of a take is lost, and an operator hands the lease on: the row shows that the take was applied. Until the
/// owner has handed the lease over, the lease counts towards the owner's share.
#[test]
fn a_take_handed_on_before_its_answer_counts_in_the_share() {
    let mut rig = Rig::new(8, 1);
    rig.secs(20);
    rig.workers[0].alive = false;
    for row in rig.table.rows.as_mut().unwrap().values_mut() {
        row.owner = None;
    }
    let mut first = true;
    let trap: Trap = Box::new(move |effect| {
        let hangs = is_take(effect) && std::mem::take(&mut first);
        hangs.then_some(Trick::Hang)
    });
    rig.join_trapped(Some(trap));
    assert_eq!(takes(&rig).len(), 4, "half of what may be anybody's");
    let taken = match &rig.workers[1].hung[0].effect {
        Effect::Table(TableOp::Write(change)) => change.key().clone(),
        other => panic!("{other:?}"),
    };
    let me = rig.workers[1].engine().worker().unwrap().clone();
    let mut free = 0;
    for row in rig.table.rows.as_mut().unwrap().values_mut() {
        if row.key == taken {
            (row.owner, row.handing_over) = (Some("next".into()), Some(me.clone()));
            row.counter += 1;
        } else if row.owner.is_none() {
            free += 1;
            row.owner = (free > 1).then(|| "next".into());
            row.counter += 1;
        }
    }
    assert_eq!(free, 4);
    rig.secs(8);
    // Four of eight leases are its share, and one lease is free.
    assert_eq!(takes(&rig).len(), 4);
}
