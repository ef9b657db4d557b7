//! The life of a held lease: belief, loss, hand-over and stop.

use super::{Owner, closes_for};
use crate::ids::FencingToken;
use crate::input::{Cause, Outcome};
use crate::output::{ConsumerOp, EndReason};
use crate::row::{Change, LeaseRow};
use crate::time::Span;
use crate::worker::context::Request;
use crate::worker::lease::Said;
use crate::worker::testing::{at, done, owned, refused_by, row, seconds, throttled, unknown};

#[test]
fn a_lease_that_is_renewed_in_time_is_believed_in() {
    let mut owner = Owner::reading(row("a"));
    for _ in 0..10 {
        owner.later(owner.cx.config().renew_interval);
        assert!(matches!(owner.write(), Some(Change::Renew { .. })));
        owner.answer_table(done());
        assert!(owner.believes());
    }
    assert_eq!(owner.told(), [""; 0]);
    assert_eq!(owner.row().counter, 11);
}

#[test]
fn a_handler_stops_with_the_belief_and_goes_on_when_it_is_back() {
    let mut owner = Owner::processing();
    owner.later(owner.cx.config().renew_interval);
    owner.answer_table(unknown());
    owner.later(owner.cx.hold());
    assert!(owner.is_aborted());
    assert_eq!(owner.told(), ["trouble", "fenced"]);
    owner.answer_app(Outcome::Unknown(Cause::Cancelled));
    assert_eq!(owner.app(), None, "nothing is handed over without the belief");

    owner.answer_table(done());
    assert_eq!(owner.told(), ["resumed"]);
    assert!(matches!(owner.app(), Some(ConsumerOp::Deliver { .. })));
}

#[test]
fn a_lost_lease_is_closed_and_nothing_more_is_written() {
    let mut owner = Owner::processing();
    owner.later(owner.cx.config().renew_interval);
    owner.answer_table(refused_by(owned("a", "other", 9)));
    assert_eq!(owner.told(), ["lost"]);
    assert_eq!(owner.requests(), [Request::DropRowWrites(owner.ix)]);
    assert!(owner.is_aborted());
    owner.answer_app(done());
    assert_eq!(closes_for(owner.app()), Some(EndReason::LeaseLost));
    owner.answer_app(done());
    assert!(!owner.holds() && owner.write().is_none());
    assert_eq!(owner.leases.busy(), 0);
    assert_eq!(owner.row().owner, Some("other".into()));
}

#[test]
fn a_stop_waits_for_the_handler_then_saves_closes_and_releases() {
    let mut owner = Owner::processing();
    owner.stop();
    assert!(!owner.is_aborted() && owner.write().is_none());
    owner.answer_app(done());
    let Some(Change::Checkpoint { position, .. }) = owner.write() else {
        panic!("expected a checkpoint, found {:?}", owner.write())
    };
    assert_eq!((position, owner.app()), (at(5), None));
    owner.answer_table(done());
    assert_eq!(closes_for(owner.app()), Some(EndReason::Shutdown));
    owner.answer_app(done());
    assert!(matches!(owner.write(), Some(Change::Release { .. })));
    owner.answer_table(done());
    assert!(!owner.holds());
    assert_eq!(owner.told(), ["checkpointed", "closed", "released"]);
    assert_eq!(owner.row().owner, None);
}

#[test]
fn a_stop_out_of_time_aborts_the_handler_and_waits_for_no_close() {
    let mut owner = Owner::processing();
    owner.stop();
    let (stop, timeout) = (owner.cx.config().shutdown_timeout, owner.cx.config().table_timeout);
    owner.later(Span(stop.0 - 2 * timeout.0));
    assert!(owner.is_aborted());
    owner.answer_app(unknown());
    assert_eq!(closes_for(owner.app()), Some(EndReason::Shutdown));
    owner.later(timeout);
    assert!(owner.held().processing().is_closed());
}

#[test]
fn a_lease_that_another_worker_requested_is_handed_over() {
    let mut owner = Owner::reading(row("a"));
    owner.later(owner.cx.config().renew_interval);
    let requested = LeaseRow { handing_over: Some("me".into()), ..owned("a", "other", 1) };
    owner.answer_table(refused_by(requested));
    assert_eq!(closes_for(owner.app()), Some(EndReason::HandedOver));
    owner.answer_table(done());
    owner.answer_app(done());
    assert!(matches!(owner.write(), Some(Change::HandOver { .. })), "{:?}", owner.write());
    owner.answer_table(done());
    assert_eq!(owner.row().owner, Some("other".into()));
}

#[test]
fn every_open_has_one_close_whatever_the_table_answers() {
    for outcome in [done(), unknown(), throttled(), refused_by(owned("a", "other", 9))] {
        let mut owner = Owner::processing();
        owner.later(owner.cx.config().renew_interval);
        owner.answer_table(outcome);
        owner.stop();
        owner.answer_app(done());
        let mut closes = 0;
        for _ in 0..40 {
            if owner.app().is_some() {
                closes += u32::from(closes_for(owner.app()).is_some());
                owner.answer_app(done());
            }
            if owner.write().is_some() {
                owner.answer_table(done());
            }
            owner.later(seconds(1));
        }
        assert_eq!((closes, owner.holds()), (1, false));
    }
}

#[test]
fn reports_are_believed_as_far_as_records_were_handed_over() {
    let mut owner = Owner::processing();
    let (ix, token) = (owner.ix, owner.token());
    let report = |owner: &mut Owner, token, through| {
        owner.room.on_said(&mut owner.cx, &mut owner.leases, ix, token, Said::ProcessedThrough(at(through)));
        owner.listen();
        owner.said().processed
    };
    let stale = FencingToken(token.0 + 1);
    assert_eq!(report(&mut owner, stale, 3), None);
    assert_eq!(report(&mut owner, token, 3), Some(at(3)));
    assert_eq!(report(&mut owner, token, 2), Some(at(3)), "it never goes back");
    assert_eq!(report(&mut owner, token, 99), Some(at(5)));
    owner.room.on_checkpoint_wanted(&mut owner.cx, &mut owner.leases, ix, token);
    owner.listen();
    assert!(matches!(owner.write(), Some(Change::Checkpoint { .. })));
}
