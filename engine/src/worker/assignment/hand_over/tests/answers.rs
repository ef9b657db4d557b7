//! What follows from the answers to a request.

use crate::input::{Outcome, Why};
use crate::output::TableOp;
use crate::row::{Change, LeaseRow};
use crate::worker::assignment::hand_over::{on_answer, spared};
use crate::worker::context::{Context, Request, RowWriteId};
use crate::worker::lease_request::{FollowUp, LeaseRequest};
use crate::worker::lease_table::LeaseTable;
use crate::worker::testing::{
    done, hold, owned, refused, refused_by, row, seconds, shown, shows, stage, throttled,
};
use std::collections::BTreeSet;

/// A worker that requests "a" from `other`.
struct Asker {
    cx: Context,
    leases: LeaseTable,
    request: LeaseRequest,
}

impl Asker {
    fn new() -> Self {
        let (cx, mut leases) = stage();
        let row = owned("a", "other", 1);
        shows(&cx, &mut leases, row.clone());
        let request = request(&cx, &row);
        Self { cx, leases, request }
    }

    /// The next operation is sent, and has this outcome.
    fn send(&mut self, outcome: Outcome) -> (TableOp, FollowUp) {
        let op = self.request.send();
        (op, on_answer(&mut self.cx, &mut self.leases, &mut self.request, outcome))
    }

    /// The request is in the row.
    fn requested() -> Self {
        let mut asker = Self::new();
        let (_, next) = asker.send(done());
        assert!(matches!(next, FollowUp::LookAt(_)), "{next:?}");
        asker.cx.did();
        asker
    }
}

fn request(cx: &Context, row: &LeaseRow) -> LeaseRequest {
    LeaseRequest::new(row, "other".into(), cx.me().clone(), cx.now() + seconds(3))
}

fn written(op: &TableOp) -> Option<u64> {
    match op {
        TableOp::Write(Change::Claim { counter, .. }) => Some(*counter),
        _ => None,
    }
}

/// A row of `other`, being handed over to us.
fn requested_row(counter: u64) -> LeaseRow {
    LeaseRow { handing_over: Some("other".into()), ..owned("a", "me", counter) }
}

#[test]
fn a_request_follows_a_renewing_owner_and_awaits_the_hand_over() {
    let mut asker = Asker::new();
    let (op, next) = asker.send(refused_by(owned("a", "other", 2)));
    assert_eq!((written(&op), next), (Some(1), FollowUp::Now));
    let (op, next) = asker.send(done());
    assert_eq!(written(&op), Some(2));
    let look_at = asker.cx.now() + asker.cx.config().renew_interval.per(2);
    assert!(matches!(next, FollowUp::LookAt(at) if at <= look_at), "{next:?}");
    assert_eq!(asker.cx.did().told(), ["claimed"]);
    assert!(asker.request.is_in_row());

    let (op, next) = asker.send(shown(Some(requested_row(2))));
    assert_eq!(op, TableOp::Read { key: "a".into() });
    assert!(matches!(next, FollowUp::LookAt(_)), "{next:?}");
    assert!(asker.cx.did().is_nothing());
    let (_, next) = asker.send(shown(Some(owned("a", "me", 3))));
    assert_eq!(next, FollowUp::Over);
    let did = asker.cx.did();
    assert!(matches!(did.requests(), [Request::Take(..)]), "it is accepted: {did:?}");
}

#[test]
fn a_request_refused_without_the_row_reads_it_and_finds_itself() {
    let mut asker = Asker::new();
    assert_eq!(asker.send(refused(Why::ConditionFailed)).1, FollowUp::Now);
    let (read, next) = asker.send(shown(Some(requested_row(1))));
    assert_eq!(read, TableOp::Read { key: "a".into() });
    assert!(matches!(next, FollowUp::LookAt(_)), "{next:?}");
    assert_eq!(asker.cx.did().told(), ["claimed"]);
}

#[test]
fn an_unexplained_refusal_brings_a_pause_and_no_endless_chase() {
    let mut asker = Asker::new();
    assert_eq!(asker.send(refused_by(owned("a", "other", 1))).1, FollowUp::AfterFailure);
    let mut follows = 1;
    while asker.send(refused_by(owned("a", "other", 1 + follows))).1 == FollowUp::Now {
        follows += 1;
    }
    assert_eq!(follows, 5);
}

#[test]
fn a_request_ends_with_another_owner_a_lost_row_or_a_failure() {
    for row in [Some(owned("a", "third", 2)), None] {
        assert_eq!(Asker::requested().send(shown(row)).1, FollowUp::Over);
    }
    assert_eq!(Asker::new().send(throttled()).1, FollowUp::Failed(throttled()));
}

/// Three are a share: `e`, `a`, and another one.
#[test]
fn requests_waiting_for_a_turn_are_spared_with_a_full_share() {
    let (mut cx, mut leases) = stage();
    let mut requests = Vec::new();
    for key in ["a", "b", "c", "d"] {
        let row = owned(key, "other", 1);
        shows(&cx, &mut leases, row.clone());
        requests.push(request(&cx, &row));
    }
    requests.pop();
    requests[0].send();
    let spare = |cx: &Context, leases: &LeaseTable| -> BTreeSet<RowWriteId> {
        let numbered = (0..).map(RowWriteId).zip(&requests);
        spared(cx, leases, numbered)
    };
    hold(&mut cx, &mut leases, row("e"));
    cx.did();
    assert_eq!(spare(&cx, &leases), [RowWriteId(2)].into());
    hold(&mut cx, &mut leases, row("f"));
    cx.did();
    assert_eq!(spare(&cx, &leases), [RowWriteId(1), RowWriteId(2)].into());
}
