//! Leases that are let go of because no handler can run.

use super::{Owner, closes_for};
use crate::notice::{LossReason, Notice};
use crate::output::{ConsumerOp, EndReason};
use crate::row::{Change, LeaseRow};
use crate::time::Span;
use crate::worker::lease::Said;
use crate::worker::testing::{at, done, owned, refused_by, row, seconds, throttled};

impl Owner {
    /// No handler has run for as long as one is waited for.
    fn blocked(&mut self) {
        let (now, limit) = (self.cx.now(), self.cx.config().give_up_after);
        let found = self.cx.standstill_mut().blocked(now, limit, limit);
        assert!(found.lets_go());
        self.step();
    }

    fn runs(&mut self) {
        let now = self.cx.now();
        self.cx.standstill_mut().runs(now);
        self.step();
    }
}

/// A minute ago, the handler reported three of five records as processed.
fn processing() -> Owner {
    let mut owner = Owner::processing();
    owner.say(Said::ProcessedThrough(at(3)));
    owner.keeps_for(seconds(60), seconds(3));
    owner.forget();
    owner
}

#[test]
fn progress_is_saved_and_the_lease_given_up_beside_a_handler() {
    let mut owner = Owner::processing();
    owner.later(seconds(40));
    owner.say(Said::ProcessedThrough(at(3)));
    owner.later(owner.cx.config().give_up_after);
    if owner.write().is_some() {
        owner.answer_table(throttled());
    }
    owner.blocked();
    assert!(owner.is_aborted(), "its fence is not valid any more");
    owner.later(seconds(5));
    assert!(matches!(owner.write(), Some(Change::Checkpoint { position, .. }) if position == at(3)));
    owner.answer_table(done());
    assert!(matches!(owner.write(), Some(Change::Release { .. })));
    assert!(!owner.believes(), "another worker may begin");
    owner.forget();
    owner.answer_table(done());
    assert_eq!(owner.told(), ["released"]);
    assert!(owner.row().owner.is_none());
    owner.later(seconds(60));
    assert_eq!(owner.write(), None, "nothing more is written");

    // The handler comes back when the runtime runs again.
    owner.runs();
    owner.answer_app(done());
    assert_eq!(closes_for(owner.app()), Some(EndReason::LeaseLost));
    owner.answer_app(done());
    assert!(!owner.holds());
}

#[test]
fn a_shard_without_a_running_handler_is_given_up_unanswered() {
    let mut owner = Owner::reading(row("a"));
    owner.blocked();
    assert_eq!(closes_for(owner.app()), Some(EndReason::HandlersBlocked));
    assert!(matches!(owner.write(), Some(Change::Release { .. })));
    owner.answer_table(done());
    owner.answer_app(done());
    assert!(!owner.holds());
}

#[test]
fn a_shard_that_waits_is_given_up() {
    let mut owner = Owner::of(LeaseRow { parents: vec!["p".into()], ..row("a") });
    owner.blocked();
    assert!(matches!(owner.write(), Some(Change::Release { .. })));
}

#[test]
fn a_shard_that_another_worker_requested_is_handed_over_to_it() {
    let mut owner = Owner::processing();
    owner.later(owner.cx.config().renew_interval);
    let requested = LeaseRow { handing_over: Some("me".into()), ..owned("a", "other", 1) };
    owner.answer_table(refused_by(requested));
    if let Some(Change::Renew { .. }) = owner.write() {
        owner.answer_table(done());
    }
    assert_eq!(owner.write(), None, "its handler is waited for");
    owner.blocked();
    assert!(matches!(owner.write(), Some(Change::HandOver { .. })), "{:?}", owner.write());
}

#[test]
fn a_failed_release_is_tried_again_until_the_runtime_runs() {
    let mut owner = processing();
    owner.blocked();
    owner.answer_table(throttled());
    owner.later(seconds(1));
    assert!(matches!(owner.write(), Some(Change::Release { .. })), "once more");
    owner.answer_table(throttled());
    owner.runs();
    owner.later(seconds(1));
    // Records processed by the handler before it heeded the abort are saved first.
    owner.answer_app(done());
    owner.later(Span::from_millis(500));
    while let Some(write) = owner.write() {
        let over = matches!(write, Change::Release { .. });
        owner.answer_table(done());
        if over {
            break;
        }
        if owner.app().is_some() {
            owner.answer_app(done());
        }
        owner.later(seconds(1));
    }
    assert!(owner.row().owner.is_none());
    assert_eq!(owner.row().checkpoint.position(), Some(at(5)));
}

#[test]
fn a_lease_that_was_lost_meanwhile_is_not_given_up() {
    let mut owner = processing();
    owner.blocked();
    owner.forget();
    owner.answer_table(refused_by(owned("a", "b", 99)));
    let by = Some("b".into());
    assert!(matches!(
        owner.notices.as_slice(),
        [Notice::Lost { why: LossReason::Taken { by: found, .. }, .. }] if *found == by
    ));
    assert!(matches!(owner.app(), Some(ConsumerOp::Deliver { .. })), "it has not come back");
    owner.later(seconds(60));
    assert_eq!(owner.write(), None);
}
