//! Shards that the application has paused.

use super::{Owner, closes_for, records};
use crate::input::{Call, Why};
use crate::notice::{Notice, Stall};
use crate::output::{ConsumerOp, EndReason, StreamOp};
use crate::row::Change;
use crate::time::Span;
use crate::worker::testing::{at, done, hold_in, owned, refused, refused_by, row, seconds, unknown};

impl Owner {
    fn waits_for(&self) -> Option<Stall> {
        self.room.waits_for(&self.cx, &self.leases, self.ix)
    }

    fn is_paused(&self) -> bool {
        self.said().paused
    }
}

/// The batch of records 1 to 5 waits, and is not handed over.
fn paused_with_a_batch() -> Owner {
    let mut owner = Owner::reading(row("a"));
    owner.pause(true);
    owner.answer_stream(records(1, 5));
    assert_eq!(owner.told(), ["paused"]);
    owner
}

#[test]
fn a_paused_shard_is_given_nothing_and_its_lease_is_renewed() {
    let mut owner = paused_with_a_batch();
    assert!(owner.keeps(seconds(300)) > 50);
    assert_eq!(owner.app(), None);
    assert!(owner.believes() && owner.is_paused());
    owner.pause(false);
    assert_eq!(owner.told(), ["pause-ended"]);
    assert!(matches!(owner.app(), Some(ConsumerOp::Deliver { .. })));
    assert!(!owner.is_paused());
}

#[test]
fn a_handler_that_runs_finishes_and_what_it_did_is_written() {
    let mut owner = Owner::processing();
    owner.later(seconds(1));
    owner.answer_stream(records(6, 9));
    owner.pause(true);
    assert!(!owner.is_aborted());
    assert_eq!(owner.waits_for(), Some(Stall::Handler { attempt: 1 }));
    owner.answer_app(done());
    assert_eq!((owner.app(), owner.waits_for()), (None, Some(Stall::Paused)));
    owner.keeps(owner.cx.config().checkpoint_interval);
    assert_eq!(owner.said().processed, Some(at(5)));
    let checkpoint = owner.said().checkpoint.position();
    assert_eq!((checkpoint, owner.app()), (Some(at(5)), None));
}

#[test]
fn a_failed_batch_is_not_tried_again_during_a_pause() {
    let mut owner = Owner::processing();
    owner.pause(true);
    owner.answer_app(refused(Why::HandlerFailed));
    owner.keeps(seconds(100));
    assert_eq!(owner.app(), None);
    owner.pause(false);
    assert!(matches!(owner.app(), Some(ConsumerOp::Deliver { attempt: 2, .. })));
}

#[test]
fn a_shard_is_read_during_a_pause_until_the_buffer_is_full() {
    let mut owner = paused_with_a_batch();
    let batches = u64::from(owner.cx.config().reader.buffer_batches);
    for n in 1..batches {
        owner.later(seconds(1));
        owner.answer_stream(records(10 * n, 10 * n + 5));
    }
    owner.keeps(seconds(100));
    assert!(!matches!(owner.stream(), Some(StreamOp::GetRecords { .. })));
}

#[test]
fn a_pause_is_no_stall_and_the_time_counts_anew_after_it() {
    let mut owner = paused_with_a_batch();
    let after = owner.cx.config().stall_after;
    owner.keeps(after.times(5));
    assert_eq!(owner.told(), [""; 0]);
    owner.pause(false);
    owner.keeps(Span(after.0 - 1));
    assert_eq!(owner.told(), ["pause-ended"]);
    owner.keeps(Span(1));
    let [Notice::Stalled { idle, why, .. }] = owner.notices.as_slice() else {
        panic!("expected that the handler does not return, found {:?}", owner.notices)
    };
    assert_eq!((*idle, why), (after, &Stall::Handler { attempt: 1 }));
}

#[test]
fn a_handler_that_hangs_is_told_during_a_pause_too() {
    let mut owner = Owner::processing();
    owner.pause(true);
    owner.keeps(owner.cx.config().stall_after);
    assert_eq!(owner.told(), ["paused", "stalled"]);
}

#[test]
fn a_pause_wanted_twice_is_told_once() {
    let mut owner = Owner::reading(row("a"));
    owner.pause(false);
    owner.pause(true);
    owner.pause(true);
    owner.pause(false);
    owner.pause(false);
    assert_eq!(owner.told(), ["paused", "pause-ended"]);
}

#[test]
fn a_shard_paused_before_its_opening_opens_and_is_given_nothing() {
    let mut owner = Owner::of(row("a"));
    owner.pause(true);
    owner.answer_app(done());
    owner.iterates();
    owner.answer_stream(records(1, 5));
    assert_eq!((owner.app(), owner.waits_for()), (None, Some(Stall::Paused)));
}

#[test]
fn a_pause_ends_with_the_ownership() {
    let mut owner = paused_with_a_batch();
    owner.later(owner.cx.config().renew_interval);
    owner.answer_table(refused_by(owned("a", "other", 9)));
    owner.forget();
    owner.pause(false);
    assert_eq!(owner.told(), [""; 0], "it is over");
    assert_eq!(closes_for(owner.app()), Some(EndReason::LeaseLost));
    owner.answer_app(done());
    assert!(!owner.holds());
    owner.pause(true);
    hold_in(&mut owner.room, &mut owner.cx, &mut owner.leases, row("a"));
    assert!(!owner.is_paused());
}

#[test]
fn a_pause_lasts_while_the_lease_is_doubted() {
    let mut owner = paused_with_a_batch();
    owner.later(owner.cx.config().renew_interval);
    owner.answer_table(unknown());
    owner.later(owner.cx.hold());
    assert_eq!(owner.waits_for(), Some(Stall::Fenced));
    owner.answer_table(done());
    assert_eq!((owner.app(), owner.waits_for()), (None, Some(Stall::Paused)));
}

#[test]
fn a_paused_shard_is_closed_and_released_by_a_stop() {
    let mut owner = paused_with_a_batch();
    owner.stop();
    assert_eq!(closes_for(owner.app()), Some(EndReason::Shutdown));
    owner.answer_app(done());
    assert!(matches!(owner.write(), Some(Change::Release { .. })));
}

#[test]
fn a_pause_and_its_end_are_spelled_so_in_traces() {
    let lease = || "a".into();
    for (call, text) in [
        (Call::Pause { lease: lease() }, r#"{"pause":{"lease":"a"}}"#),
        (Call::Resume { lease: lease() }, r#"{"resume":{"lease":"a"}}"#),
    ] {
        assert_eq!(serde_json::to_string(&call).unwrap(), text);
        assert_eq!(serde_json::from_str::<Call>(text).unwrap(), call);
    }
}
