//! Asking for leases in their rows.

use crate::format::Format;
use crate::row::{Change, LeaseRow};
use crate::time::Span;
use crate::worker::assignment::claims::{Claims, count};
use crate::worker::context::{Context, Request};
use crate::worker::testing::{config, hold, owned, row, running, shows, table};

fn context() -> Context {
    running(config(Format::VmwareGoKcl))
}

#[test]
fn a_claim_names_the_row_as_it_is_known_and_the_one_that_wants_it() {
    let (mut cx, mut claims) = (context(), Claims::default());
    let mut leases = table(&cx);
    let ix = shows(&cx, &mut leases, owned("a", "other", 7));
    claims.claim(&mut cx, &leases, ix);
    let did = cx.did();
    let [Request::WriteRow { change, expires, .. }] = did.requests() else {
        panic!("expected a claim, found {did:?}")
    };
    let expected = Change::Claim {
        key: "a".into(),
        counter: 7,
        from: "other".into(),
        checkpoint: row("a").checkpoint,
        by: "me".into(),
    };
    assert_eq!(change, &expected);
    assert_eq!(*expires, cx.now() + cx.config().table_timeout);
}

#[test]
fn a_claim_that_did_not_last_is_repeated_ever_more_seldom() {
    let (mut cx, mut claims) = (context(), Claims::default());
    let mut leases = table(&cx);
    let ix = shows(&cx, &mut leases, owned("a", "other", 7));
    let interval = cx.config().scan_interval;
    for scans in [1, 2, 4, 8, 16, 32, 32] {
        assert!(claims.may_claim(&cx, leases.get(ix).unwrap()));
        claims.claim(&mut cx, &leases, ix);
        cx.later(Span(interval.times(scans).0 - 1));
        assert!(!claims.may_claim(&cx, leases.get(ix).unwrap()), "after {scans} scans");
        cx.later(Span(1));
        cx.did();
    }
}

#[test]
fn a_claim_is_forgotten_when_the_lease_has_another_owner() {
    let (mut cx, mut claims) = (context(), Claims::default());
    let mut leases = table(&cx);
    let ix = shows(&cx, &mut leases, owned("a", "other", 7));
    claims.claim(&mut cx, &leases, ix);
    claims.forget_settled(&leases);
    assert!(!claims.may_claim(&cx, leases.get(ix).unwrap()));
    shows(&cx, &mut leases, owned("a", "third", 8));
    assert!(claims.may_claim(&cx, leases.get(ix).unwrap()));
    claims.forget_settled(&leases);
    shows(&cx, &mut leases, owned("a", "other", 9));
    assert!(claims.may_claim(&cx, leases.get(ix).unwrap()));
}

#[test]
fn leases_that_are_promised_or_asked_for_are_counted_once() {
    let mut cx = context();
    let mut leases = table(&cx);
    let promised = LeaseRow { handing_over: Some("other".into()), ..owned("promised", "me", 1) };
    shows(&cx, &mut leases, promised);
    shows(&cx, &mut leases, owned("asked", "other", 1));
    hold(&mut cx, &mut leases, row("held"));
    cx.did();
    let asked = ["promised", "asked", "held"].map(Into::into);
    assert_eq!(count(&cx, &leases, &asked), 2);
    assert_eq!(count(&cx, &leases, &[]), 1);
}
