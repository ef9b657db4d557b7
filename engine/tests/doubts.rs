//! Scenes of the answers to writes of a held lease: what they prove, and what they leave open.

use crate::rig::{Rig, Trap, Trick, refused};
use leasehold_engine::format::Format;
use leasehold_engine::input::{Call, Cause, Outcome, Why};
use leasehold_engine::notice::{LossReason, Notice};
use leasehold_engine::output::*;
use leasehold_engine::position::Checkpoint;
use leasehold_engine::row::{Change, LeaseRow};
use leasehold_engine::time::{Mono, Span};

#[derive(Clone, Copy, Debug, PartialEq)]
enum Write {
    Renew,
    Checkpoint,
    End,
    Release,
}

impl Write {
    const ALL: [Self; 4] = [Self::Renew, Self::Checkpoint, Self::End, Self::Release];

    fn is(self, effect: &Effect) -> bool {
        let Effect::Table(TableOp::Write(change)) = effect else {
            return false;
        };
        match self {
            Write::Renew => matches!(change, Change::Renew { .. }),
            Write::Checkpoint => matches!(change, Change::Checkpoint { .. }),
            Write::End => matches!(change, Change::End { .. }),
            Write::Release => matches!(change, Change::Release { .. }),
        }
    }

    /// Makes the first worker write it.
    fn bring_about(self, rig: &mut Rig) {
        match self {
            Write::Renew => {}
            Write::Checkpoint => rig.put(0, 5),
            Write::End => {
                rig.split(0);
            }
            Write::Release => rig.call(0, Call::Shutdown),
        }
    }
}

/// The fate of the first write of a kind, and its answer.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Answer {
    AppliedButUnknown,
    AppliedButRefusedWithoutTheRow,
    Unknown,
    Throttled,
    NoTable,
}

impl Answer {
    const ALL: [Self; 5] = [
        Self::AppliedButUnknown,
        Self::AppliedButRefusedWithoutTheRow,
        Self::Unknown,
        Self::Throttled,
        Self::NoTable,
    ];

    fn trick(self) -> Trick {
        match self {
            Answer::AppliedButUnknown => Trick::AppliedBut(Outcome::Unknown(Cause::Timeout)),
            Answer::AppliedButRefusedWithoutTheRow => Trick::AppliedBut(refused(Why::ConditionFailed, None)),
            Answer::Unknown => Trick::Instead(Outcome::Unknown(Cause::Timeout)),
            Answer::Throttled => Trick::Instead(Outcome::NotSent(Cause::Throttled)),
            Answer::NoTable => Trick::Instead(refused(Why::NotFound, None)),
        }
    }

    fn applied(self) -> bool {
        matches!(self, Answer::AppliedButUnknown | Answer::AppliedButRefusedWithoutTheRow)
    }
}

/// The first effect like this meets that.
fn once(is: impl Fn(&Effect) -> bool + 'static, trick: Trick) -> Option<Trap> {
    let mut trick = Some(trick);
    Some(Box::new(move |effect| if is(effect) { trick.take() } else { None }))
}

fn told(rig: &Rig, wanted: impl Fn(&Notice) -> bool) -> usize {
    let notices = rig.workers[0].notices.iter();
    notices.filter(|(_, notice)| wanted(notice)).count()
}

fn sent(rig: &Rig, wanted: impl Fn(&Effect) -> bool) -> usize {
    let sent = rig.workers[0].sent.iter();
    sent.filter(|(_, effect)| wanted(effect)).count()
}

#[test]
fn every_write_survives_every_answer() {
    for kind in [Format::Kcl, Format::VmwareGoKcl] {
        for write in Write::ALL {
            for answer in Answer::ALL {
                survives(kind, write, answer);
            }
        }
    }
}

fn survives(kind: Format, write: Write, answer: Answer) {
    let case = format!("{kind:?}: {write:?} is {answer:?}");
    let mut rig = Rig::with_format(kind.codec(), 1, 1);
    rig.secs(60);
    let worker = &mut rig.workers[0];
    worker.trap = once(move |effect| write.is(effect), answer.trick());
    worker.notices.clear();
    worker.sent.clear();
    write.bring_about(&mut rig);
    rig.secs(20);

    let lost =
        |notice: &Notice| matches!(notice, Notice::Lost { lease, .. } if *lease == Rig::id(0).to_lease());
    assert_eq!(told(&rig, lost), 0, "{case}");
    let ended = told(&rig, |notice| matches!(notice, Notice::Ended { .. }));
    let released = told(&rig, |notice| matches!(notice, Notice::Released { .. }));
    let row = rig.row(0);
    match write {
        Write::Renew => assert_eq!(rig.owner(0), Some(0), "{case}"),
        Write::Checkpoint => {
            assert!(matches!(row.checkpoint, Checkpoint::At(_)), "{case}");
            assert_eq!(rig.owner(0), Some(0), "{case}");
        }
        Write::End => assert!(row.checkpoint.is_end(), "{case}"),
        Write::Release => {
            assert_eq!(row.owner, None, "{case}");
            assert!(rig.workers[0].engine().is_stopped(), "{case}");
        }
    }
    assert_eq!(ended, usize::from(write == Write::End), "{case}");
    assert_eq!(released, usize::from(write == Write::Release), "{case}");
    assert_eq!(told(&rig, |notice| matches!(notice, Notice::Resumed { .. })), 0, "{case}");

    // What was applied is found out by the row, and not done again.
    let again = sent(&rig, |effect| write.is(effect));
    match (write, answer) {
        (Write::End | Write::Release, Answer::AppliedButRefusedWithoutTheRow) => {
            assert_eq!(again, 1, "{case}")
        }
        (Write::End | Write::Release, _) => assert_eq!(again, 2, "{case}"),
        _ => assert!(again >= 2 || write == Write::Checkpoint, "{case}"),
    }
    let adopted = told(&rig, |notice| matches!(notice, Notice::Adopted { .. }));
    let holds_on = matches!(write, Write::Renew | Write::Checkpoint);
    assert_eq!(adopted, usize::from(answer.applied() && holds_on), "{case}");
    let described = sent(&rig, |effect| matches!(effect, Effect::Table(TableOp::Describe)));
    assert_eq!(described > 0, answer == Answer::NoTable, "{case}");
    let closed = rig.workers[0].calls.iter().find_map(|(_, op)| match op {
        ConsumerOp::Close { reason, .. } => Some(*reason),
        _ => None,
    });
    let expected = match write {
        Write::End => Some(EndReason::ShardEnded),
        Write::Release => Some(EndReason::Shutdown),
        _ => None,
    };
    assert_eq!(closed, expected, "{case}");
    if answer == Answer::Throttled {
        let verb = format!("{write:?} ").to_lowercase();
        let said =
            |notice: &Notice| matches!(notice, Notice::Trouble { what, .. } if what.starts_with(&verb));
        assert_eq!(told(&rig, said), 1, "{case}: {:?}", rig.workers[0].notices);
    }
}

/// The first of several attempts may be the applied write, and other workers count from the first attempt.
#[test]
fn a_belief_is_counted_from_the_first_of_the_attempts() {
    for kind in [Format::Kcl, Format::VmwareGoKcl] {
        let mut rig = Rig::with_format(kind.codec(), 1, 1);
        rig.secs(60);
        let unknown = || Outcome::Unknown(Cause::Timeout);
        let mut attempts = 0;
        rig.workers[0].sent.clear();
        rig.workers[0].trap = Some(Box::new(move |effect| {
            if !Write::Renew.is(effect) {
                return None;
            }
            attempts += 1;
            match attempts {
                1 => Some(Trick::AppliedBut(unknown())),
                2..=4 => Some(Trick::Instead(unknown())),
                // Refused, with the row as made by the first attempt.
                5 => None,
                _ => Some(Trick::Hang),
            }
        }));
        rig.workers[0].notices.clear();
        rig.secs(30);
        let mut renews = rig.workers[0].sent.iter().filter(|(_, effect)| Write::Renew.is(effect));
        let first = renews.next().unwrap().0;
        let fifth = renews.nth(3).unwrap().0;
        assert!(fifth.since(first) > Span::from_millis(300));
        assert_eq!(told(&rig, |notice| matches!(notice, Notice::Adopted { .. })), 1);
        let notices = rig.workers[0].notices.iter();
        let fenced: Vec<Mono> = notices
            .filter(|(_, notice)| matches!(notice, Notice::Fenced { .. }))
            .map(|(at, _)| *at)
            .collect();
        assert_eq!(fenced, [first + rig.config.hold()], "{kind:?}");
    }
}

/// Where numbers are times, other programs may act on the number drawn for the first attempt, whichever attempt is
/// acknowledged.
#[test]
fn an_acknowledged_attempt_counts_from_the_first_by_row_times() {
    for kind in [Format::Kcl, Format::VmwareGoKcl] {
        let mut rig = Rig::with_format(kind.codec(), 1, 1);
        rig.secs(60);
        let mut attempts = 0;
        rig.workers[0].sent.clear();
        rig.workers[0].trap = Some(Box::new(move |effect| {
            if !Write::Renew.is(effect) {
                return None;
            }
            attempts += 1;
            match attempts {
                1..=4 => Some(Trick::Instead(Outcome::Unknown(Cause::Timeout))),
                5 => None,
                _ => Some(Trick::Hang),
            }
        }));
        rig.workers[0].notices.clear();
        rig.secs(30);
        let mut renews = rig.workers[0].sent.iter().filter(|(_, effect)| Write::Renew.is(effect));
        let first = renews.next().unwrap().0;
        let fifth = renews.nth(3).unwrap().0;
        let notices = rig.workers[0].notices.iter();
        let fenced: Vec<Mono> = notices
            .filter(|(_, notice)| matches!(notice, Notice::Fenced { .. }))
            .map(|(at, _)| *at)
            .collect();
        let from = if kind == Format::Kcl { fifth } else { first };
        assert_eq!(fenced, [from + rig.config.hold()], "{kind:?}");
    }
}

#[test]
fn the_row_of_a_live_lease_is_put_back_as_it_was() {
    let mut rig = Rig::new(1, 1);
    rig.put(0, 5);
    rig.secs(60);
    let before = rig.row(0).clone();
    assert!(matches!(before.checkpoint, Checkpoint::At(_)));
    rig.table.rows.as_mut().unwrap().clear();
    rig.workers[0].notices.clear();
    let restores = |effect: &Effect| matches!(effect, Effect::Table(TableOp::Write(Change::Create(_))));
    rig.workers[0].sent.clear();
    while sent(&rig, restores) == 0 {
        rig.run(Span::from_millis(100));
    }
    let row = rig.row(0);
    assert_eq!((&row.owner, &row.handing_over), (&before.owner, &None));
    assert_eq!((row.checkpoint, &row.range), (before.checkpoint, &before.range));
    assert!(row.counter > before.counter);
    rig.secs(20);
    assert_eq!(told(&rig, |notice| matches!(notice, Notice::Restoring { .. })), 1);
    assert_eq!(told(&rig, |notice| matches!(notice, Notice::Lost { .. })), 0);
    assert_eq!(rig.owner(0), Some(0));
}

/// After the last renewal, other workers may have taken the lease, ended the lease and removed its row.
#[test]
fn the_row_of_a_lease_that_ran_out_is_not_put_back() {
    let mut rig = Rig::new(1, 1);
    rig.put(0, 5);
    rig.secs(60);
    rig.workers[0].trap = Some(Box::new(|effect| Write::Renew.is(effect).then_some(Trick::Hang)));
    rig.secs(20);
    rig.workers[0].trap = None;
    rig.workers[0].notices.clear();
    rig.table.rows.as_mut().unwrap().clear();
    rig.release(0);
    let gone = |notice: &Notice| matches!(notice, Notice::Lost { why: LossReason::RowGone, .. });
    assert_eq!(told(&rig, gone), 1, "{:?}", rig.workers[0].notices);
    assert_eq!(told(&rig, |notice| matches!(notice, Notice::Restoring { .. })), 0);
}

/// The row is removed between an applied end or release and the look at its result.
#[test]
fn a_row_that_is_gone_after_its_last_write_was_applied() {
    for write in [Write::End, Write::Release] {
        let mut rig = Rig::new(1, 1);
        rig.secs(60);
        let mut done = false;
        rig.workers[0].trap = Some(Box::new(move |effect| {
            let reads =
                matches!(effect, Effect::Table(TableOp::Read { key }) if *key == Rig::id(0).to_lease());
            if write.is(effect) && !std::mem::replace(&mut done, true) {
                return Some(Trick::AppliedBut(refused(Why::ConditionFailed, None)));
            }
            (reads && done).then_some(Trick::Hang)
        }));
        rig.workers[0].notices.clear();
        write.bring_about(&mut rig);
        rig.secs(1);
        assert_eq!(rig.workers[0].hung.len(), 1);
        rig.table.rows.as_mut().unwrap().remove(&Rig::id(0).to_lease());
        rig.workers[0].trap = None;
        rig.release(0);
        let last = |notice: &Notice| match notice {
            Notice::Ended { .. } => write == Write::End,
            Notice::Released { .. } => write == Write::Release,
            _ => false,
        };
        assert_eq!(told(&rig, last), 1, "{write:?}: {:?}", rig.workers[0].notices);
        assert_eq!(told(&rig, |notice| matches!(notice, Notice::Restoring { .. })), 0);
    }
}

/// The first worker's lease after an outside change of its row, and the notices of its loss.
fn changed(write: Option<Write>, change: impl FnOnce(&mut LeaseRow)) -> (Rig, Vec<String>) {
    let mut rig = Rig::new(1, 1);
    rig.secs(60);
    rig.workers[0].notices.clear();
    if let Some(write) = write {
        // Not applied, though no worker knows; and before the next attempt the row changes.
        let unknown = Trick::Instead(Outcome::Unknown(Cause::Timeout));
        rig.workers[0].trap = once(move |effect| write.is(effect), unknown);
        write.bring_about(&mut rig);
    }
    let key = Rig::id(0).to_lease();
    change(rig.table.rows.as_mut().unwrap().get_mut(&key).unwrap());
    rig.secs(4);
    let said = rig.workers[0].notices.iter().filter_map(|(_, notice)| match notice {
        Notice::Lost { why, .. } => Some(match why {
            LossReason::Taken { by, .. } => format!("taken by {by:?}"),
            other => format!("{other:?}"),
        }),
        Notice::Ended { .. } => Some("ended".into()),
        Notice::Released { .. } => Some("released".into()),
        _ => None,
    });
    let said = said.collect();
    (rig, said)
}

#[test]
fn a_lease_is_lost_to_the_worker_that_wrote_its_row() {
    let third = |row: &mut LeaseRow| (row.owner, row.counter) = (Some("third".into()), row.counter + 1);
    for write in [None, Some(Write::End), Some(Write::Release), Some(Write::Checkpoint)] {
        let (rig, said) = changed(write, third);
        assert_eq!(said, [r#"taken by Some("third")"#], "{write:?}");
        assert_eq!(rig.row(0).owner, Some("third".into()), "{write:?}");
    }
    // A row that names us without a write of ours belongs to another life of ours.
    let (rig, said) = changed(None, |row| row.counter += 1_000);
    let me = rig.workers[0].engine().worker().unwrap();
    assert_eq!(said[0], format!("taken by Some({me:?})"));
    // A person took the lease away, and left the row without an owner.
    let (_, said) = changed(None, |row| row.owner = None);
    assert_eq!(said[0], "taken by None");
}

#[test]
fn a_shard_is_ended_by_us_only_if_we_tried_to() {
    let by_other = |row: &mut LeaseRow| {
        (row.checkpoint, row.owner, row.counter) = (Checkpoint::ShardEnd, None, row.counter + 7);
    };
    let (_, said) = changed(None, by_other);
    assert_eq!(said, ["AlreadyEnded"]);
    // Another worker ended the shard: the shard has ended, and its children have their leases.
    let (_, said) = changed(Some(Write::End), by_other);
    assert_eq!(said, ["ended"]);
    let (_, said) = changed(Some(Write::End), |row| {
        by_other(row);
        row.owner = Some("third".into());
    });
    assert_eq!(said, ["AlreadyEnded"]);
}

/// All attempts between two acknowledged writes have the same guard: a release may be refused as a renewal was applied.
#[test]
fn a_release_that_an_applied_renewal_refused_is_written_again() {
    let mut rig = Rig::new(1, 1);
    rig.secs(60);
    rig.workers[0].notices.clear();
    let unknown = Trick::AppliedBut(Outcome::Unknown(Cause::Timeout));
    rig.workers[0].trap = once(|effect| Write::Renew.is(effect), unknown);
    rig.workers[0].sent.clear();
    while sent(&rig, |effect| Write::Renew.is(effect)) == 0 {
        rig.run(Span::from_millis(10));
    }
    rig.call(0, Call::Shutdown);
    rig.secs(5);
    assert_eq!(sent(&rig, |effect| Write::Release.is(effect)), 2);
    assert_eq!(told(&rig, |notice| matches!(notice, Notice::Adopted { .. })), 1);
    assert_eq!(told(&rig, |notice| matches!(notice, Notice::Released { .. })), 1);
    assert_eq!(rig.row(0).owner, None);
}

/// The guard did not hold, and yet the row is as we know it: it was otherwise for a moment.
#[test]
fn an_unexplained_refusal_is_tried_again_after_growing_pauses() {
    let mut rig = Rig::new(1, 1);
    rig.secs(60);
    let row = rig.row(0).clone();
    let mut left = 4;
    rig.workers[0].sent.clear();
    rig.workers[0].trap = Some(Box::new(move |effect| {
        let meets = Write::Renew.is(effect) && left > 0;
        left -= u32::from(meets);
        meets.then(|| Trick::Instead(refused(Why::ConditionFailed, Some(row.clone()))))
    }));
    rig.secs(5);
    let renews = rig.workers[0].sent.iter().filter(|(_, effect)| Write::Renew.is(effect));
    let at: Vec<Mono> = renews.map(|(at, _)| *at).collect();
    let pauses: Vec<Span> = at.windows(2).take(4).map(|two| two[1].since(two[0])).collect();
    assert!(pauses[0] >= rig.config.retry_min().per(2), "{pauses:?}");
    assert!(pauses[3] > pauses[0].times(2), "{pauses:?}");
    assert_eq!(rig.owner(0), Some(0));
    assert_eq!(told(&rig, |notice| matches!(notice, Notice::Lost { .. })), 0);
}

/// A claim in the row refused the guard: the next attempt names the claimant and comes at once.
#[test]
fn a_claimed_lease_is_handed_over_whatever_its_answers() {
    let hands_over =
        |effect: &Effect| matches!(effect, Effect::Table(TableOp::Write(Change::HandOver { .. })));
    for answer in Answer::ALL {
        let mut rig = Rig::with_format(Format::VmwareGoKcl.codec(), 2, 1);
        rig.secs(60);
        rig.workers[0].trap = once(hands_over, answer.trick());
        rig.workers[0].sent.clear();
        rig.workers[0].notices.clear();
        rig.join();
        rig.secs(60);
        assert_ne!(rig.owner(0), rig.owner(1), "{answer:?}");
        assert_eq!(told(&rig, |notice| matches!(notice, Notice::Released { .. })), 1, "{answer:?}");
        assert_eq!(told(&rig, |notice| matches!(notice, Notice::Lost { .. })), 0, "{answer:?}");
        let again = usize::from(answer != Answer::AppliedButRefusedWithoutTheRow);
        assert_eq!(sent(&rig, hands_over), 1 + again, "{answer:?}");
        let guards = rig.workers[0].sent.iter().filter_map(|(at, effect)| match effect {
            Effect::Table(TableOp::Write(Change::Renew { key, guard, .. })) => {
                Some((key, *at, &guard.next_owner))
            }
            _ => None,
        });
        let mut guards: Vec<_> = guards.collect();
        guards.sort();
        let mut noticed = guards.windows(2).filter(|two| two[0].0 == two[1].0 && two[0].2 != two[1].2);
        assert!(noticed.all(|two| two[0].1 == two[1].1), "{answer:?}: {guards:?}");
    }
}
