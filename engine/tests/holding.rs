//! Scenes of a lease that is held: what is written to its row, and when.

use crate::rig::{Rig, Trick};
use leasehold_engine::format::Format;
use leasehold_engine::input::{Call, Cause, Outcome};
use leasehold_engine::notice::Notice;
use leasehold_engine::output::*;
use leasehold_engine::row::Change;
use leasehold_engine::time::{Mono, Span};

fn writes(rig: &Rig, wanted: fn(&Change) -> bool) -> usize {
    let sent = rig.workers[0].sent.iter();
    sent.filter(|(_, effect)| matches!(effect, Effect::Table(TableOp::Write(change)) if wanted(change)))
        .count()
}

fn is_checkpoint(change: &Change) -> bool {
    matches!(change, Change::Checkpoint { .. })
}

/// A lease being released is renewed as before until its handler returns; its progress is written once.
#[test]
fn processed_records_are_written_once_while_a_handler_runs() {
    let mut rig = Rig::new(1, 1);
    rig.put(0, 5);
    rig.secs(60);
    assert!(rig.row(0).checkpoint.position().is_some());
    rig.workers[0].trap = Some(Box::new(|effect| {
        matches!(effect, Effect::Consumer(ConsumerOp::Deliver { .. })).then_some(Trick::Hang)
    }));
    rig.put(0, 5);
    rig.secs(5);
    rig.call(0, Call::Shutdown);
    rig.workers[0].sent.clear();
    rig.secs(20);
    assert_eq!(writes(&rig, is_checkpoint), 0, "nothing new is processed");
    assert!(writes(&rig, |change| matches!(change, Change::Renew { .. })) > 3);
    rig.release(0);
    rig.secs(5);
    assert_eq!(writes(&rig, is_checkpoint), 1);
    assert!(rig.workers[0].engine().is_stopped());
}

/// Throttles the first write of a kind; how long after it the second came.
fn pause_after_one_throttled(
    rig: &mut Rig, wanted: fn(&Change) -> bool, then: impl FnOnce(&mut Rig),
) -> Span {
    let is = move |effect: &Effect| matches!(effect, Effect::Table(TableOp::Write(change)) if wanted(change));
    let mut first = true;
    rig.workers[0].trap = Some(Box::new(move |effect| {
        let meets = is(effect) && std::mem::take(&mut first);
        meets.then_some(Trick::Instead(Outcome::NotSent(Cause::Throttled)))
    }));
    rig.workers[0].sent.clear();
    then(rig);
    rig.secs(20);
    let sent = rig.workers[0].sent.iter().filter(|(_, effect)| is(effect));
    let at: Vec<Mono> = sent.map(|(at, _)| *at).collect();
    assert!(at.len() >= 2, "{at:?}");
    at[1].since(at[0])
}

#[test]
fn the_last_writes_of_a_lease_are_tried_again_soon() {
    let soon = |rig: &Rig, pause: Span| assert!(pause <= rig.config.retry_min().times(2), "{pause:?}");
    let mut rig = Rig::new(1, 1);
    rig.secs(20);
    let ends = |change: &Change| matches!(change, Change::End { .. });
    let pause = pause_after_one_throttled(&mut rig, ends, |rig| {
        rig.split(0);
    });
    soon(&rig, pause);

    let mut rig = Rig::new(1, 1);
    rig.secs(20);
    let releases = |change: &Change| matches!(change, Change::Release { .. });
    let pause = pause_after_one_throttled(&mut rig, releases, |rig| rig.call(0, Call::Shutdown));
    soon(&rig, pause);

    let mut rig = Rig::new(1, 1);
    rig.put(0, 5);
    rig.secs(60);
    rig.put(0, 5);
    rig.secs(2);
    // Without the shutdown, the next attempt would be due later.
    let pause = pause_after_one_throttled(&mut rig, is_checkpoint, |rig| {
        rig.put(0, 5);
        rig.secs(2);
        rig.call(0, Call::Shutdown);
    });
    soon(&rig, pause);
}

/// A worker that finds a released lease starts at once, while the former owner may still believe in the lease.
#[test]
fn a_stolen_lease_is_released_once_no_former_owner_believes() {
    let mut rig = Rig::new(4, 1);
    rig.secs(60);
    let thief = rig.join();
    let find = |rig: &Rig, wanted: fn(&Change) -> bool| {
        let mut sent = rig.workers[thief].sent.iter();
        sent.find_map(|(at, effect)| match effect {
            Effect::Table(TableOp::Write(change)) if wanted(change) => Some(*at),
            _ => None,
        })
    };
    let takes = |change: &Change| matches!(change, Change::Take { .. });
    while find(&rig, takes).is_none() {
        rig.run(Span::from_millis(100));
    }
    rig.call(thief, Call::Shutdown);
    rig.secs(60);
    let took = find(&rig, takes).unwrap();
    let released = find(&rig, |change| matches!(change, Change::Release { .. })).unwrap();
    assert_eq!(released.since(took), rig.config.lease_duration());
}

#[test]
fn nothing_is_repeated_while_an_answer_is_waited_for() {
    let mut rig = Rig::new(1, 1);
    rig.secs(20);
    let renews = |effect: &Effect| matches!(effect, Effect::Table(TableOp::Write(Change::Renew { .. })));
    rig.workers[0].trap = Some(Box::new(move |effect| renews(effect).then_some(Trick::Hang)));
    rig.secs(8);
    let before = rig.workers[0].turns();
    assert!(!rig.workers[0].hung.is_empty());
    rig.run(Span::from_millis(1));
    assert!(rig.workers[0].turns() - before < 10, "{}", rig.workers[0].turns() - before);
}

/// Where the number in a row is a time, a second attempt would write a new number, were the first number not kept.
#[test]
fn a_write_of_unknown_outcome_is_known_again_by_its_number() {
    let mut rig = Rig::with_format(Format::VmwareGoKcl.codec(), 1, 1);
    rig.secs(60);
    let renews = |effect: &Effect| matches!(effect, Effect::Table(TableOp::Write(Change::Renew { .. })));
    let mut first = true;
    rig.workers[0].trap = Some(Box::new(move |effect| {
        let meets = renews(effect) && std::mem::take(&mut first);
        meets.then_some(Trick::AppliedBut(Outcome::Unknown(Cause::Timeout)))
    }));
    rig.workers[0].notices.clear();
    rig.secs(20);
    let told = |wanted: fn(&Notice) -> bool| {
        let notices = rig.workers[0].notices.iter();
        notices.filter(|(_, notice)| wanted(notice)).count()
    };
    assert_eq!(told(|notice| matches!(notice, Notice::Adopted { .. })), 1);
    assert_eq!(told(|notice| matches!(notice, Notice::Lost { .. })), 0);
}
