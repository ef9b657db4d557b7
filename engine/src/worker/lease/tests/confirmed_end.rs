//! Applications that permit the end of a shard before the end is written.

use super::{Owner, closes_for, halves, reads_the_end, records};
use crate::ids::OpId;
use crate::input::{Outcome, Reply, Why};
use crate::notice::Stall;
use crate::output::{ConsumerOp, EndReason, FlushReason};
use crate::position::Checkpoint;
use crate::time::Span;
use crate::worker::lease::Said;
use crate::worker::testing::{at, done, refused, row, seconds};

const PROCESSED: Outcome = Outcome::Applied(Reply::Processed);

/// An application that confirms ends has opened a shard, and the reader has an iterator.
fn opened() -> Owner {
    let mut owner = Owner::of(row("a"));
    owner.answer_app(Outcome::Applied(Reply::ConfirmsEnd));
    owner.iterates();
    owner
}

/// The handler is at records 1 to 5, and the shard has ended after them.
fn at_the_last_batch() -> (Owner, OpId) {
    let mut owner = opened();
    let batch = reads_to_the_end(&mut owner);
    (owner, batch)
}

fn reads_to_the_end(owner: &mut Owner) -> OpId {
    owner.answer_stream(records(1, 5));
    let Some(ConsumerOp::Deliver { batch, .. }) = owner.app() else {
        panic!("expected a hand-over, found {:?}", owner.app())
    };
    owner.later(seconds(1));
    reads_the_end(owner, &halves());
    batch
}

fn flushes(owner: &Owner) -> Option<FlushReason> {
    match owner.app()? {
        ConsumerOp::Flush { why, .. } => Some(why),
        other => panic!("expected a flush, found {other:?}"),
    }
}

/// Whether the end is to be written, or is being prepared.
fn ends(owner: &Owner) -> bool {
    owner.held().processing().children() == ["b".into(), "c".into()]
}

#[test]
fn the_end_waits_for_the_answer_although_all_was_processed() {
    let (mut owner, _) = at_the_last_batch();
    owner.answer_app(PROCESSED);
    assert_eq!(flushes(&owner), Some(FlushReason::ShardEnd));
    owner.later(seconds(1));
    assert!(!ends(&owner), "not before the answer");
    owner.answer_app(done());
    assert!(ends(&owner));
    assert_eq!(owner.app(), None, "it is told once");
}

#[test]
fn the_end_of_a_shard_without_records_is_confirmed_too() {
    let mut owner = opened();
    reads_the_end(&mut owner, &halves());
    assert_eq!(flushes(&owner), Some(FlushReason::ShardEnd));
    owner.answer_app(done());
    assert!(ends(&owner));
}

#[test]
fn after_a_failure_the_end_is_told_again_after_a_pause() {
    let (mut owner, _) = at_the_last_batch();
    owner.answer_app(PROCESSED);
    owner.forget();
    owner.answer_app(refused(Why::HandlerFailed));
    assert_eq!(owner.told(), ["handler-failed"]);
    assert!(owner.app().is_none() && !ends(&owner));
    let why = owner.why_stalled();
    assert_eq!(why, Stall::EndUnconfirmed { failures: 1 });
    let held = owner.held();
    let wakes = held.stage_wake_at(&owner.cx);
    let pause = wakes.since(owner.cx.now());
    assert!(pause >= owner.cx.config().handler_backoff, "nothing is due before: {pause:?}");
    owner.later(pause);
    assert_eq!(flushes(&owner), Some(FlushReason::ShardEnd));
    owner.answer_app(done());
    assert!(ends(&owner));
}

#[test]
fn a_batch_again_after_the_permission_asks_for_another_one() {
    let (mut owner, batch) = at_the_last_batch();
    owner.answer_app(Outcome::Applied(Reply::Kept));
    assert_eq!(flushes(&owner), Some(FlushReason::ShardEnd));
    owner.answer_app(done());
    assert_eq!(owner.app(), None, "it acknowledges later");
    owner.say(Said::GivenBack(batch, "no".into()));
    owner.later(seconds(1));
    owner.iterates();
    owner.later(seconds(5));
    reads_to_the_end(&mut owner);
    owner.answer_app(PROCESSED);
    assert_eq!(flushes(&owner), Some(FlushReason::ShardEnd), "once more");
    assert!(!ends(&owner));
    owner.answer_app(done());
    assert!(ends(&owner));
}

#[test]
fn a_stop_before_permission_leaves_the_end_to_the_next_owner() {
    let (mut owner, _) = at_the_last_batch();
    owner.answer_app(PROCESSED);
    owner.stop();
    assert_eq!(flushes(&owner), Some(FlushReason::ShardEnd), "its answer is waited for");
    owner.answer_app(done());
    owner.answer_table(done());
    assert_eq!(owner.said().checkpoint, Checkpoint::At(at(5)));
    assert_eq!(closes_for(owner.app()), Some(EndReason::Shutdown));
}

#[test]
fn a_paused_shard_is_told_its_end_when_it_goes_on() {
    let (mut owner, _) = at_the_last_batch();
    owner.pause(true);
    owner.answer_app(PROCESSED);
    assert_eq!(owner.app(), None);
    let held = owner.held();
    let wakes = held.stage_wake_at(&owner.cx);
    assert!(wakes > owner.cx.now() + Span(1), "nothing is due: {wakes:?}");
    owner.pause(false);
    assert_eq!(flushes(&owner), Some(FlushReason::ShardEnd));
}
