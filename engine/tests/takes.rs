//! Scenes of a take: repeated attempts, and the meaning of answers.

use crate::rig::*;
use leasehold_engine::ids::LeaseKey;
use leasehold_engine::input::{Call, Cause, Outcome, Why};
use leasehold_engine::notice::{Notice, TakeReason};
use leasehold_engine::output::*;
use leasehold_engine::row::{Change, LeaseRow};
use leasehold_engine::time::{Mono, Span};
use std::collections::{BTreeMap, BTreeSet};

/// One free lease, and a worker whose takes meet the trick.
fn fleet(trick: Trick) -> Rig {
    let mut rig = Rig::new(1, 1).after(20);
    rig[0].die();
    rig.row_mut(0).owner = None;
    rig.join_trapped(meets(TAKE, trick));
    rig
}

#[test]
fn an_unsent_take_is_repeated_after_growing_pauses_until_a_scan() {
    let mut rig = fleet(Trick::THROTTLED).after(10);
    let at = rig[1].sent_at(TAKE);
    assert_eq!(at.len(), 5, "{at:?}");
    let pauses: Vec<Span> = at.windows(2).map(|two| two[1].since(two[0])).collect();
    assert!(pauses[0] >= rig.config.retry_min().per(2), "{pauses:?}");
    assert!(pauses[3] > pauses[0].times(2), "{pauses:?}");
    assert!(pauses[3] <= rig.config.retry_max());
    rig.secs(25);
    assert_eq!(rig[1].sent(TAKE), 10, "once more after the next scan");

    // Whichever take is applied after all, the change of the row is the same, and the former owner must notice the
    // change.
    let changes = rig[1].changes().filter_map(|(_, change)| match change {
        Change::Take { counter, next, .. } => Some((*counter, *next)),
        _ => None,
    });
    let changes: BTreeSet<(u64, u64)> = changes.take(5).collect();
    assert_eq!(changes.len(), 1, "{changes:?}");
    assert!(changes.iter().all(|(counter, next)| next > counter), "{changes:?}");
}

/// A refusal without the row may be of a second execution of what was applied.
#[test]
fn a_takes_outcome_that_proves_nothing_is_read_from_the_row() {
    let bare_refusal = Trick::AppliedBut(refused(Why::ConditionFailed, None));
    for (case, trick, takes, owner, reads) in [
        ("applied, and the answer is lost", Trick::ANSWER_LOST, 1..=1, Some(1), true),
        ("applied, and refused without the row", bare_refusal, 1..=1, Some(1), true),
        ("lost", Trick::UNKNOWN, 5..=5, None, true),
        // The table is looked at instead.
        ("the table is gone", Trick::refused(Why::NotFound), 1..=5, None, false),
    ] {
        let mut rig = fleet(trick);
        let described = rig[1].sent(DESCRIBE_TABLE);
        rig.secs(10);
        assert!(takes.contains(&rig[1].sent(TAKE)), "{case}: {}", rig[1].sent(TAKE));
        assert_eq!((rig.owner(0), rig[1].told(ADOPTED)), (owner, usize::from(owner.is_some())), "{case}");
        assert_eq!(rig[1].sent(READ) > 0, reads, "{case}");
        assert_eq!(rig[1].sent(DESCRIBE_TABLE) > described, !reads, "{case}");
    }
}

#[test]
fn a_read_that_fails_is_no_answer_about_the_take() {
    let mut rig = fleet(Trick::ANSWER_LOST);
    rig[1].die();
    let mut fails = first(2, READ, Trick::Instead(Outcome::Unknown(Cause::Network)));
    rig.join_trapped(move |effect| match TAKE.is(effect) {
        true => Some(Trick::ANSWER_LOST),
        false => fails(effect),
    });
    rig.secs(30);
    assert_eq!(rig.owner(0), Some(2), "{:?}", rig[2].notices);
}

#[test]
fn a_shutdown_does_not_wait_for_takes_that_were_given_up() {
    let mut rig = fleet(Trick::THROTTLED).after(10);
    rig.call(1, Call::Shutdown);
    assert!(rig[1].is_stopped());
}

/// What somebody else took meanwhile is not followed: the next scan tells who has too much.
#[test]
fn a_steal_does_not_follow_a_lease_to_a_third_worker() {
    let mut rig = Rig::new(4, 1).after(60);
    let worker = rig.join_trapped(hangs(TAKE));
    rig.until_hung(worker, Span::from_secs(1), TAKE);
    (0..4).for_each(|n| rig.give(n, "third"));
    rig.release(worker);
    assert!(rig.rows().values().all(|row| row.owner == Some("third".into())));
    assert_eq!(rig[worker].told(MISSED_TAKE), 1);
    assert_eq!(rig[worker].hung(TAKE), 0, "no second attempt");
}

/// The time from a worker's first take to its opening of a shard, and the reason of the take.
fn opened(rig: &Rig, worker: usize) -> (Span, TakeReason) {
    let why = rig[worker].news(|notice| match notice {
        Notice::Took { why, .. } => Some(why.clone()),
        _ => None,
    });
    let calls = &rig[worker].calls;
    let open = calls.iter().find(|(_, op)| matches!(op, ConsumerOp::Open { .. })).unwrap().0;
    (open.since(rig[worker].told_at(TOOK)[0]), why[0].clone())
}

/// Only stolen leases settle: the former owner may believe in its ownership for a lease duration.
#[test]
fn a_free_lease_is_opened_at_once_and_a_stolen_one_later() {
    let mut rig = Rig::new(4, 1).after(60);
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
    let rig = Rig::new(40, 1).after(60);
    let (mut first, mut took) = (BTreeMap::new(), BTreeMap::new());
    for (at, change) in rig[0].changes() {
        match change {
            Change::Take { key, .. } => drop(took.insert(key, at)),
            Change::Renew { key, .. } => drop(first.entry(key).or_insert(at)),
            _ => {}
        }
    }
    assert_eq!(first.len(), 40);
    let after: BTreeSet<Span> = first.iter().map(|(key, at)| at.since(took[key])).collect();
    let interval = rig.config.renew_interval();
    assert!(after.len() > 20, "{after:?}");
    assert!(*after.last().unwrap() <= interval && *after.first().unwrap() >= interval.per(4).times(3));
}

/// An owner may renew its lease just before every steal.
#[test]
fn a_steal_follows_an_owner_that_renews_a_few_times_only() {
    let mut rig = Rig::new(4, 1).after(60);
    let (rows, mut counter) = (rig.rows().clone(), 1_000);
    rig.join_trapped(move |effect| {
        let Effect::Table(TableOp::Write(change @ Change::Take { .. })) = effect else {
            return None;
        };
        counter += 1;
        let row = LeaseRow { counter, ..rows[change.key()].clone() };
        Some(Trick::Instead(refused(Why::ConditionFailed, Some(row))))
    });
    while rig[1].sent(TAKE) == 0 {
        rig.secs(1);
    }
    assert_eq!(rig[1].sent(TAKE), 6, "once, and five times more");
    assert_eq!(rig[1].told(MISSED_TAKE), 1);
}

/// Rows that name us come from an earlier, lost answer: no other worker can believe in them.
#[test]
fn a_row_that_names_us_is_opened_at_once() {
    let mut other = Rig::new(2, 2);
    other.secs(120);
    let me = (0..2).find(|&n| other.owner(n) == Some(1)).map(|n| other.row(n).owner.clone());
    let mut rig = Rig::new(1, 1).after(20);
    rig[0].die();
    rig.row_mut(0).owner = me.unwrap();
    rig.join_then(20);
    let (pause, why) = opened(&rig, 1);
    assert_eq!((pause, why), (Span::ZERO, TakeReason::Ours));
}

/// The first write due anyway carries the new progress: the first renewal, or an earlier checkpoint.
#[test]
fn the_first_checkpoint_is_written_by_the_first_renewal() {
    let saved_after = |interval: Span| {
        let mut rig = Rig::of(1, 0, |config| config.with_checkpoint_interval(interval)).with_records([0], 5);
        rig.join_then(60);
        rig[0].sent_at(CHECKPOINT)[0].since(rig[0].sent_at(TAKE)[0])
    };
    let renewal = Rig::new(1, 0).config.renew_interval();
    let late = saved_after(Span::from_secs(50));
    assert!(late <= renewal && late >= renewal.per(2), "{late}");
    assert_eq!(saved_after(Span::from_secs(1)), Span::from_secs(1));
}

/// A busy shard costs no more writes than an idle one.
#[test]
fn checkpoints_take_the_place_of_renewals() {
    let mut rig = Rig::new(1, 1).after(10);
    let mut counts = Vec::new();
    for busy in [false, true] {
        let before = rig[0].sent(is_write);
        for _ in 0..330 {
            rig.put(0, u64::from(busy));
            rig.secs(1);
        }
        counts.push(rig[0].sent(is_write) - before);
    }
    assert!(counts[0].abs_diff(100) <= 2, "one in 3.3 s: {counts:?}");
    assert!(counts[1] <= counts[0] + 1, "{counts:?}");
}

/// Six released leases; a worker takes three at first; the third take is never carried out. Other workers take the
/// remaining leases, and perhaps the third, before the worker looks again.
fn beaten_to(others: &[&str], and_that: bool) -> (Rig, LeaseKey, Mono) {
    let mut rig = Rig::new(6, 1).after(20);
    rig[0].die();
    rig.rows_mut().values_mut().for_each(|row| row.owner = None);
    // One attempt is then left after the next scan.
    rig.configure(|config| config.with_retry_min(Span::from_secs(1)));
    let mut taken = 0;
    rig.join_trapped(move |effect| {
        taken += u32::from(TAKE.is(effect));
        (TAKE.is(effect) && taken > 2).then_some(Trick::THROTTLED)
    });
    let wanted = rig[1].changes().filter(|(_, change)| change.verb() == "take").last();
    let wanted = wanted.expect("a third take").1.key().clone();
    rig.secs(1);
    let rows = rig.rows_mut().values_mut();
    let free = rows.filter(|row| row.owner.is_none() && (row.key == wanted) == and_that);
    for (row, other) in free.zip(others.iter().cycle()) {
        (row.owner, row.counter) = (Some((*other).into()), row.counter + 1);
    }
    let before = rig.now;
    rig.run(rig.config.meeting());
    let scan = *rig[1].sent_at(SCAN).last().unwrap();
    assert!(scan > before, "it has looked again");
    rig.secs(8);
    (rig, wanted, scan)
}

/// How often this lease was tried to be taken before and after a moment.
fn tries(rig: &Rig, wanted: &LeaseKey, at: Mono) -> (usize, usize) {
    let tries = rig[1].changes().filter(|(_, change)| change.verb() == "take" && change.key() == wanted);
    let (before, after): (Vec<Mono>, Vec<Mono>) = tries.map(|(then, _)| then).partition(|then| *then <= at);
    (before.len(), after.len())
}

#[test]
fn a_take_is_not_repeated_once_the_share_is_full() {
    // With one further taker each worker gets 3, with three further takers 2.
    let (rig, wanted, scan) = beaten_to(&["a"], false);
    let (before, after) = tries(&rig, &wanted, scan);
    assert_eq!((before + after, rig[1].told(SPARED)), (5, 0));
    assert!(after > 0);
    let (rig, wanted, scan) = beaten_to(&["a", "b", "c"], false);
    assert_eq!((tries(&rig, &wanted, scan), rig[1].told(SPARED)), ((before, 0), 1));
}

#[test]
fn a_take_is_not_repeated_once_another_has_the_lease() {
    let (rig, wanted, scan) = beaten_to(&["a"], true);
    assert_eq!(tries(&rig, &wanted, scan).1, 0);
    let missed = |notice: &Notice| matches!(notice, Notice::MissedTake { lease, owner } if *lease == wanted && *owner == Some("a".into()));
    assert_eq!(rig[1].told(missed), 1);
}

/// The numbers of workers that the second worker has counted after its scans.
fn counted(rig: &Rig) -> Vec<u32> {
    rig[1].news(|notice| match notice {
        Notice::Scanned { workers, .. } => Some(*workers),
        _ => None,
    })
}

/// A take without an answer, of a lease that a scan shows with a new owner, counts this owner among the workers.
#[test]
fn a_lease_that_another_took_first_is_not_ours() {
    let mut rig = fleet(Trick::Hang).after(22);
    assert_eq!(counted(&rig).last(), Some(&1));
    rig.give(0, "third");
    rig.secs(22);
    assert_eq!(counted(&rig).last(), Some(&2));
}

/// A take of an expired lease has no answer yet, and a scan shows that the owner has renewed the row: the guard of the
/// take cannot hold any more. The owner lives, and its lease does not belong to the taker.
#[test]
fn a_lease_that_its_owner_renewed_first_is_not_ours() {
    let mut rig = Rig::new(1, 1).after(20);
    rig[0].die();
    rig.join_trapped(hangs(TAKE));
    rig.secs(rig.config.lease_duration().0 / 1_000_000 + 22);
    assert!(counted(&rig).contains(&1));
    assert_eq!(rig[1].hung.len(), 1, "one take without an answer");
    rig.row_mut(0).counter += 1;
    let before = counted(&rig).len();
    rig.secs(rig.config.scan_interval().0 / 1_000_000 + 1);
    assert_eq!(counted(&rig)[before..], [2]);
}

/// The answer of a take is lost, and an operator hands the lease on: the row shows that the take was applied. Until the
/// owner has handed the lease over, the lease counts towards the owner's share.
#[test]
fn a_take_handed_on_before_its_answer_counts_in_the_share() {
    let mut rig = Rig::new(8, 1).after(20);
    rig[0].die();
    rig.rows_mut().values_mut().for_each(|row| row.owner = None);
    rig.join_trapped(first(1, TAKE, Trick::Hang));
    assert_eq!(rig[1].sent(TAKE), 4, "half of what may be anybody's");
    let (_, taken) = rig[1].hung[0].effect.described();
    let (taken, me) = (LeaseKey::from(taken.unwrap()), rig[1].me());
    let mut free = 0;
    for row in rig.rows_mut().values_mut() {
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
    assert_eq!(rig[1].sent(TAKE), 4);
}
