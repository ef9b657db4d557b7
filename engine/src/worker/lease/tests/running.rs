//! While a shard is read.

use super::{Owner, records};
use crate::input::Why;
use crate::output::{ConsumerOp, IteratorFrom, StreamOp};
use crate::position::Position;
use crate::worker::context::Request;
use crate::worker::lease::Said;
use crate::worker::stream_set::StreamIx;
use crate::worker::testing::{at, done, refused, row, seconds, throttled};

/// The attempt at the handler's batch, and the position up to which the handler leaves records out.
fn delivery(owner: &Owner) -> Option<(u32, Option<Position>)> {
    match owner.app()? {
        ConsumerOp::Deliver { attempt, after, .. } => Some((attempt, after)),
        _ => None,
    }
}

#[test]
fn a_batch_is_handed_over_once_and_the_next_one_afterwards() {
    let mut owner = Owner::processing();
    assert_eq!(delivery(&owner), Some((1, None)));
    owner.later(seconds(1));
    owner.answer_stream(records(6, 9));
    owner.answer_app(done());
    assert_eq!(owner.said().processed, Some(at(5)));
    assert_eq!(delivery(&owner), Some((1, None)));
    owner.answer_app(done());
    assert_eq!(owner.said().processed, Some(at(9)));
    assert_eq!(delivery(&owner), None);
}

#[test]
fn after_a_pause_the_rest_of_a_failed_batch_comes_again() {
    let mut owner = Owner::processing();
    owner.say(Said::ProcessedThrough(at(3)));
    owner.answer_app(refused(Why::HandlerFailed));
    assert_eq!(owner.told(), ["handler-failed"]);
    assert_eq!(delivery(&owner), None);
    owner.later(owner.cx.config().handler_backoff.times(2));
    assert_eq!(delivery(&owner), Some((2, Some(at(3)))));
}

#[test]
fn a_batch_that_is_not_in_memory_any_more_is_read_again() {
    let mut owner = Owner::processing();
    owner.answer_app(refused(Why::Gone));
    owner.later(seconds(1));
    assert_eq!(owner.reads_again_from(), IteratorFrom::At(at(1)));
}

#[test]
fn a_missing_shard_is_doubted_and_not_read_until_a_listing() {
    let mut owner = Owner::reading(row("a"));
    owner.answer_stream(refused(Why::NotFound));
    assert_eq!(owner.requests(), [Request::DoubtStream(StreamIx::ONLY)]);
    assert!(owner.held().is_missing());
    owner.later(owner.cx.config().renew_interval);
    assert_eq!(owner.stream(), None);
}

#[test]
fn a_read_that_fails_is_told_and_tried_again() {
    let mut owner = Owner::reading(row("a"));
    owner.answer_stream(throttled());
    assert_eq!(owner.told(), ["trouble"]);
    assert_eq!(owner.stream(), None);
    owner.later(seconds(1));
    assert!(matches!(owner.stream(), Some(StreamOp::GetRecords { .. })));
}
