//! Scenes of the answers to writes of a held lease: what they prove, and what they leave open.

use crate::rig::*;
use leasehold_engine::format::Format;
use leasehold_engine::input::{Call, Why};
use leasehold_engine::notice::{LossReason, Notice};
use leasehold_engine::output::*;
use leasehold_engine::position::Checkpoint;
use leasehold_engine::row::{Change, LeaseRow};
use leasehold_engine::time::Span;

#[derive(Clone, Copy, Debug, PartialEq)]
enum Write {
    Renew,
    Checkpoint,
    End,
    Release,
}

impl Write {
    const ALL: [Self; 4] = [Self::Renew, Self::Checkpoint, Self::End, Self::Release];

    fn act(self) -> Act {
        match self {
            Write::Renew => RENEW,
            Write::Checkpoint => CHECKPOINT,
            Write::End => END,
            Write::Release => RELEASE,
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
            Answer::AppliedButUnknown => Trick::ANSWER_LOST,
            Answer::AppliedButRefusedWithoutTheRow => Trick::AppliedBut(refused(Why::ConditionFailed, None)),
            Answer::Unknown => Trick::UNKNOWN,
            Answer::Throttled => Trick::THROTTLED,
            Answer::NoTable => Trick::refused(Why::NotFound),
        }
    }

    fn applied(self) -> bool {
        matches!(self, Answer::AppliedButUnknown | Answer::AppliedButRefusedWithoutTheRow)
    }
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
    let mut rig = Rig::with_format(kind.codec(), 1, 1).after(60);
    rig[0].trap(first(1, write.act(), answer.trick()));
    rig[0].forget();
    write.bring_about(&mut rig);
    rig.secs(20);

    let lost =
        |notice: &Notice| matches!(notice, Notice::Lost { lease, .. } if *lease == shard_id(0).to_lease());
    assert_eq!(rig[0].told(lost), 0, "{case}");
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
            assert!(rig[0].is_stopped(), "{case}");
        }
    }
    assert_eq!(rig[0].told(ENDED), usize::from(write == Write::End), "{case}");
    assert_eq!(rig[0].told(RELEASED), usize::from(write == Write::Release), "{case}");
    assert_eq!((rig[0].told(FENCED), rig[0].told(RESUMED)), (0, 0), "{case}");

    // What was applied is found out by the row, and not done again.
    let again = rig[0].sent(write.act());
    match (write, answer) {
        (Write::End | Write::Release, Answer::AppliedButRefusedWithoutTheRow) => {
            assert_eq!(again, 1, "{case}")
        }
        (Write::End | Write::Release, _) => assert_eq!(again, 2, "{case}"),
        _ => assert!(again >= 2 || write == Write::Checkpoint, "{case}"),
    }
    let holds_on = matches!(write, Write::Renew | Write::Checkpoint);
    assert_eq!(rig[0].told(ADOPTED), usize::from(answer.applied() && holds_on), "{case}");
    assert_eq!(rig[0].sent(DESCRIBE_TABLE) > 0, answer == Answer::NoTable, "{case}");
    let expected = match write {
        Write::End => Some(EndReason::ShardEnded),
        Write::Release => Some(EndReason::Shutdown),
        _ => None,
    };
    assert_eq!(rig[0].closed().first().copied(), expected, "{case}");
    if answer == Answer::Throttled {
        let verb = format!("{write:?} ").to_lowercase();
        let said =
            |notice: &Notice| matches!(notice, Notice::Trouble { what, .. } if what.starts_with(&verb));
        assert_eq!(rig[0].told(said), 1, "{case}: {:?}", rig[0].notices);
    }
}

/// The first of several attempts may be the applied write, and other workers count from the first attempt. Where numbers
/// are times, other programs may act on the number drawn for the first attempt, whichever attempt is acknowledged.
#[test]
fn a_belief_is_counted_from_an_attempt_that_others_may_know() {
    // The first attempt is applied, or is not. The fifth is refused with the row as made by the first, or applied.
    for (kind, applied, from_first) in [
        (Format::Kcl, true, true),
        (Format::VmwareGoKcl, true, true),
        (Format::Kcl, false, false),
        (Format::VmwareGoKcl, false, true),
    ] {
        let case = format!("{kind:?}, the first is applied: {applied}");
        let mut rig = Rig::with_format(kind.codec(), 1, 1).after(60);
        let mut attempts = 0;
        rig[0].forget();
        rig[0].trap(move |effect| {
            attempts += u32::from(RENEW.is(effect));
            match attempts {
                _ if !RENEW.is(effect) => None,
                1 if applied => Some(Trick::ANSWER_LOST),
                1..=4 => Some(Trick::UNKNOWN),
                5 => None,
                _ => Some(Trick::Hang),
            }
        });
        rig.secs(30);
        let renewed = rig[0].sent_at(RENEW);
        let (first, fifth) = (renewed[0], renewed[4]);
        assert!(fifth.since(first) > Span::from_millis(300), "{case}");
        assert_eq!(rig[0].told(ADOPTED), usize::from(applied), "{case}");
        let from = if from_first { first } else { fifth };
        assert_eq!(rig[0].told_at(FENCED), [from + rig.config.hold()], "{case}");
    }
}

#[test]
fn the_row_of_a_live_lease_is_put_back_as_it_was() {
    let mut rig = Rig::new(1, 1).with_records([0], 5).after(60);
    let before = rig.row(0).clone();
    assert!(matches!(before.checkpoint, Checkpoint::At(_)));
    rig.rows_mut().clear();
    rig[0].forget();
    while rig[0].sent(CREATE) == 0 {
        rig.run(Span::from_millis(100));
    }
    let row = rig.row(0);
    assert_eq!((&row.owner, &row.handing_over), (&before.owner, &None));
    assert_eq!((row.checkpoint, &row.range), (before.checkpoint, &before.range));
    assert!(row.counter > before.counter);
    rig.secs(20);
    assert_eq!(rig[0].told(RESTORING), 1);
    assert_eq!(rig[0].told(LOST), 0);
    assert_eq!(rig.owner(0), Some(0));
}

/// After the last renewal, other workers may have taken the lease, ended the lease and removed its row.
#[test]
fn the_row_of_a_lease_that_ran_out_is_not_put_back() {
    let mut rig = Rig::new(1, 1).with_records([0], 5).after(60);
    rig[0].trap(hangs(RENEW));
    rig.secs(20);
    rig[0].trap = None;
    rig[0].notices.clear();
    rig.rows_mut().clear();
    rig.release(0);
    let gone = |notice: &Notice| matches!(notice, Notice::Lost { why: LossReason::RowGone, .. });
    assert_eq!(rig[0].told(gone), 1, "{:?}", rig[0].notices);
    assert_eq!(rig[0].told(RESTORING), 0);
}

/// The row is removed between an applied end or release and the look at its result.
#[test]
fn a_row_that_is_gone_after_its_last_write_was_applied() {
    for write in [Write::End, Write::Release] {
        let mut rig = Rig::new(1, 1).after(60);
        let mut done = false;
        rig[0].trap(move |effect| {
            if write.act().is(effect) && !std::mem::replace(&mut done, true) {
                return Some(Trick::AppliedBut(refused(Why::ConditionFailed, None)));
            }
            (done && READ.of(0).is(effect)).then_some(Trick::Hang)
        });
        rig[0].notices.clear();
        write.bring_about(&mut rig);
        rig.secs(1);
        assert_eq!(rig[0].hung.len(), 1);
        rig.rows_mut().remove(&shard_id(0).to_lease());
        rig.free(0);
        let last = |notice: &Notice| match notice {
            Notice::Ended { .. } => write == Write::End,
            Notice::Released { .. } => write == Write::Release,
            _ => false,
        };
        assert_eq!(rig[0].told(last), 1, "{write:?}: {:?}", rig[0].notices);
        assert_eq!(rig[0].told(RESTORING), 0);
    }
}

/// The first worker's lease after an outside change of its row, and the notices of its loss.
fn changed(write: Option<Write>, change: impl FnOnce(&mut LeaseRow)) -> (Rig, Vec<String>) {
    let mut rig = Rig::new(1, 1).after(60);
    rig[0].notices.clear();
    if let Some(write) = write {
        // Not applied, though no worker knows; and before the next attempt the row changes.
        rig[0].trap(first(1, write.act(), Trick::UNKNOWN));
        write.bring_about(&mut rig);
    }
    change(rig.row_mut(0));
    rig.secs(4);
    let said = rig[0].news(|notice| match notice {
        Notice::Lost { why, .. } => Some(match why {
            LossReason::Taken { by, .. } => format!("taken by {by:?}"),
            other => format!("{other:?}"),
        }),
        Notice::Ended { .. } => Some("ended".into()),
        Notice::Released { .. } => Some("released".into()),
        _ => None,
    });
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
    assert_eq!(said[0], format!("taken by {:?}", Some(rig[0].me())));
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
    let mut rig = Rig::new(1, 1).after(60);
    rig[0].forget();
    rig[0].trap(first(1, RENEW, Trick::ANSWER_LOST));
    while rig[0].sent(RENEW) == 0 {
        rig.run(Span::from_millis(10));
    }
    rig.call(0, Call::Shutdown);
    rig.secs(5);
    assert_eq!((rig[0].sent(RELEASE), rig[0].told(ADOPTED), rig[0].told(RELEASED)), (2, 1, 1));
    assert_eq!(rig.row(0).owner, None);
}

/// A claim in the row refused the guard: the next attempt names the claimant and comes at once.
#[test]
fn a_claimed_lease_is_handed_over_whatever_its_answers() {
    for answer in Answer::ALL {
        let mut rig = Rig::with_format(Format::VmwareGoKcl.codec(), 2, 1).after(60);
        rig[0].trap(first(1, HAND_OVER, answer.trick()));
        rig[0].forget();
        rig.join_then(60);
        assert_ne!(rig.owner(0), rig.owner(1), "{answer:?}");
        assert_eq!((rig[0].told(RELEASED), rig[0].told(LOST)), (1, 0), "{answer:?}");
        let again = usize::from(answer != Answer::AppliedButRefusedWithoutTheRow);
        assert_eq!(rig[0].sent(HAND_OVER), 1 + again, "{answer:?}");
        let guards = rig[0].changes().filter_map(|(at, change)| match change {
            Change::Renew { key, guard, .. } => Some((key, at, &guard.next_owner)),
            _ => None,
        });
        let mut guards: Vec<_> = guards.collect();
        guards.sort();
        let mut noticed = guards.windows(2).filter(|two| two[0].0 == two[1].0 && two[0].2 != two[1].2);
        assert!(noticed.all(|two| two[0].1 == two[1].1), "{answer:?}: {guards:?}");
    }
}
