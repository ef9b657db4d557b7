//! Requesting leases in their rows.

use crate::format::Format;
use crate::output::TableOp;
use crate::row::{Change, LeaseRow};
use crate::time::Span;
use crate::worker::assignment::hand_over::requests::{Requests, count};
use crate::worker::context::{Context, Request};
use crate::worker::lease_table::LeaseTable;
use crate::worker::testing::{config, hold, owned, row, running, shows, table};

fn stage() -> (Context, LeaseTable, Requests) {
    let cx = running(config(Format::VmwareGoKcl));
    let leases = table(&cx);
    (cx, leases, Requests::default())
}

#[test]
fn a_request_names_the_known_row_and_the_worker_that_wants_it() {
    let (mut cx, mut leases, mut requests) = stage();
    let ix = shows(&cx, &mut leases, owned("a", "other", 7));
    requests.request(&mut cx, &leases, ix);
    let did = cx.did();
    let [Request::OfOwner(request)] = did.requests() else { panic!("expected a request, found {did:?}") };
    let expected = Change::Claim {
        key: "a".into(),
        counter: 7,
        from: "other".into(),
        checkpoint: row("a").checkpoint,
        by: "me".into(),
    };
    assert_eq!(request.clone().send(), TableOp::Write(expected));
    assert_eq!(request.expires(), cx.now() + cx.config().table_timeout);
}

#[test]
fn a_request_that_did_not_last_is_repeated_ever_more_seldom() {
    let (mut cx, mut leases, mut requests) = stage();
    let ix = shows(&cx, &mut leases, owned("a", "other", 7));
    let interval = cx.config().scan_interval;
    for scans in [1, 2, 4, 8, 16, 32, 32] {
        assert!(requests.may_request(&cx, leases.get(ix).unwrap()));
        requests.request(&mut cx, &leases, ix);
        cx.later(Span(interval.times(scans).0 - 1));
        assert!(!requests.may_request(&cx, leases.get(ix).unwrap()), "after {scans} scans");
        cx.later(Span(1));
        cx.did();
    }
}

#[test]
fn a_request_is_forgotten_when_the_lease_has_another_owner() {
    let (mut cx, mut leases, mut requests) = stage();
    let ix = shows(&cx, &mut leases, owned("a", "other", 7));
    requests.request(&mut cx, &leases, ix);
    requests.forget_settled(&leases);
    assert!(!requests.may_request(&cx, leases.get(ix).unwrap()));
    shows(&cx, &mut leases, owned("a", "third", 8));
    assert!(requests.may_request(&cx, leases.get(ix).unwrap()));
    requests.forget_settled(&leases);
    shows(&cx, &mut leases, owned("a", "other", 9));
    assert!(requests.may_request(&cx, leases.get(ix).unwrap()));
}

#[test]
fn leases_handed_over_to_us_or_requested_are_counted_once() {
    let (mut cx, mut leases, _) = stage();
    let coming = LeaseRow { handing_over: Some("other".into()), ..owned("coming", "me", 1) };
    shows(&cx, &mut leases, coming);
    shows(&cx, &mut leases, owned("requested", "other", 1));
    hold(&mut cx, &mut leases, row("held"));
    cx.did();
    let requested = ["coming", "requested", "held"].map(Into::into);
    assert_eq!(count(&cx, &leases, &requested), 2);
    assert_eq!(count(&cx, &leases, &[]), 1);
}
