//! Calls of the application that take too long.

use super::{Owner, records};
use crate::format::Format;
use crate::input::Why;
use crate::output::{ConsumerOp, Effect, EndReason};
use crate::time::Span;
use crate::worker::testing::{config, done, refused, row, running, seconds, table};

const LIMIT: Span = Span::from_secs(20);

/// The application was told to open the shard, and may take up to `limit`.
fn opening(limit: Span) -> Owner {
    let cx = running(config(Format::Kcl).with_handler_timeout(limit));
    let leases = table(&cx);
    Owner::within(cx, leases, row("a"))
}

/// The handler processes records 1 to 5.
fn processing(limit: Span) -> Owner {
    let mut owner = opening(limit);
    owner.answer_app(done());
    owner.iterates();
    owner.answer_stream(records(1, 5));
    owner.forget();
    owner
}

impl Owner {
    /// The times after which calls were told of their lateness. Forgets these times.
    fn told_late(&mut self) -> Vec<Span> {
        let late = |effect: &Effect| match effect {
            Effect::Consumer(ConsumerOp::TimeOut { after, .. }) => Some(*after),
            _ => None,
        };
        let told = self.unanswered.iter().filter_map(|(_, effect)| late(effect));
        let told = told.collect();
        self.unanswered.retain(|(_, effect)| late(effect).is_none());
        told
    }
}

#[test]
fn a_slow_batch_is_told_once_and_comes_again_after_its_failure() {
    let mut owner = processing(LIMIT);
    owner.pass(19);
    assert_eq!(owner.told_late(), []);
    owner.pass(1);
    assert_eq!(owner.told_late(), [LIMIT]);
    owner.pass(60);
    assert_eq!(owner.told_late(), [], "it may block its thread");
    assert!(owner.believes(), "the lease is kept");
    assert!(matches!(owner.app(), Some(ConsumerOp::Deliver { attempt: 1, .. })));
    owner.forget();
    owner.answer_app(refused(Why::HandlerFailed));
    assert_eq!(owner.told(), ["handler-failed"]);
    owner.pass(2);
    assert!(matches!(owner.app(), Some(ConsumerOp::Deliver { attempt: 2, .. })));
    owner.pass(19);
    assert_eq!(owner.told_late(), [LIMIT], "the second attempt has a limit of its own");
}

#[test]
fn a_shard_that_is_opened_for_too_long_is_opened_again() {
    let mut owner = opening(LIMIT);
    owner.pass(20);
    assert_eq!(owner.told_late(), [LIMIT]);
    owner.answer_app(refused(Why::HandlerFailed));
    owner.pass(2);
    assert!(matches!(owner.app(), Some(ConsumerOp::Open { .. })));
}

#[test]
fn without_a_limit_a_call_takes_as_long_as_it_likes() {
    let mut owner = processing(Span::ZERO);
    owner.pass(500);
    assert_eq!(owner.told_late(), []);
    owner.answer_app(done());
    assert_eq!(owner.said().processed, Some(crate::worker::testing::at(5)));
}

#[test]
fn an_aborted_call_is_not_told_twice_and_a_close_has_no_limit() {
    let mut owner = processing(seconds(30));
    owner.stop();
    owner.pass(25);
    assert!(owner.is_aborted());
    assert_eq!(owner.told_late(), []);

    let mut owner = processing(seconds(1));
    owner.answer_app(done());
    owner.stop();
    owner.pass(1);
    assert_eq!(super::closes_for(owner.app()), Some(EndReason::Shutdown));
    owner.pass(10);
    assert_eq!(owner.told_late(), []);
}
