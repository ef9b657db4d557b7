use super::*;
use crate::config::Config;
use crate::format::Format;
use crate::output::Effect;
use crate::time::Span;
use crate::worker::testing::{
    Did, config, context, done, hold, owned, row, running, seconds, stage_of, table, throttled,
};

fn create(key: &str) -> Change {
    Change::Create(Box::new(row(key)))
}

fn request(cx: &Context, key: &str) -> Box<LeaseRequest> {
    let expires = cx.now() + seconds(3);
    let row = owned(key, "other", 1);
    Box::new(LeaseRequest::new(&row, "other".into(), "me".into(), expires))
}

fn requested(key: &str) -> Change {
    Change::Claim {
        key: key.into(),
        counter: 1,
        from: "other".into(),
        checkpoint: row("a").checkpoint,
        by: "me".into(),
    }
}

fn written(did: &Did) -> Vec<Change> {
    let change = |effect| match effect {
        Effect::Table(TableOp::Write(change)) => Some(change),
        _ => None,
    };
    did.effects().into_iter().filter_map(change).collect()
}

#[test]
fn a_created_row_is_known_and_told_and_a_scan_follows() {
    let (mut cx, mut leases, mut room) = stage_of(RowWrites::default());
    room.add(&cx, create("a"), "a test".into(), None, Mono::NEVER);
    room.add(&cx, create("a"), "a test".into(), None, Mono::NEVER);
    room.step(&mut cx, &leases);
    let (op, effect) = cx.did().command();
    assert_eq!(effect, Effect::Table(TableOp::Write(create("a"))));
    room.on_outcome(&mut cx, &mut leases, RowWriteId(0), op, done());
    let did = cx.did();
    assert_eq!(did.told(), ["created"]);
    assert_eq!(did.requests(), [Request::Rescan(cx.now())]);
    assert_eq!(leases.row("a"), Some(&row("a")));
}

#[test]
fn writes_in_flight_are_bounded_and_a_failed_one_is_tried_again() {
    let config = Config { max_creates: 1, ..config(Format::Kcl) };
    let (mut cx, mut room) = (running(config), RowWrites::default());
    let mut leases = table(&cx);
    for key in ["a", "b"] {
        room.add(&cx, create(key), String::new(), None, Mono::NEVER);
    }
    room.step(&mut cx, &leases);
    let did = cx.did();
    assert_eq!(written(&did), [create("a")]);
    assert_eq!(room.wake_at(&cx), Mono::NEVER);
    room.on_outcome(&mut cx, &mut leases, RowWriteId(0), did.op(), throttled());
    assert_eq!(cx.did().told(), ["trouble"]);
    room.step(&mut cx, &leases);
    let did = cx.did();
    assert_eq!(written(&did), [create("b")]);
    room.on_outcome(&mut cx, &mut leases, RowWriteId(1), did.op(), done());
    cx.did();
    let pause = room.wake_at(&cx).since(cx.now());
    assert!(pause > Span::ZERO && pause <= cx.config().retry_min);
    cx.later(pause);
    room.step(&mut cx, &leases);
    assert_eq!(written(&cx.did()), [create("a")]);
}

#[test]
fn a_write_decided_on_long_ago_is_not_sent() {
    let (mut cx, mut room) = (context(), RowWrites::default());
    let leases = table(&cx);
    let expires = cx.now() + seconds(1);
    room.add(&cx, create("a"), String::new(), None, expires);
    cx.later(seconds(1));
    room.step(&mut cx, &leases);
    assert!(cx.did().is_nothing());
    assert_eq!(room.wake_at(&cx), Mono::NEVER, "it is dropped");
}

/// A table that takes few writes at a time: the leader decides anew, and not only after the next round.
#[test]
fn a_scan_follows_an_assignment_that_waited_too_long() {
    let (mut cx, mut room) = (context(), RowWrites::default());
    let leases = table(&cx);
    let expires = cx.now() + seconds(1);
    let offer = Change::Offer { key: "a".into(), from: "other".into(), to: "third".into() };
    room.add(&cx, offer, String::new(), None, expires);
    cx.later(seconds(1));
    room.step(&mut cx, &leases);
    let did = cx.did();
    assert!(written(&did).is_empty());
    assert_eq!(did.requests(), [Request::Rescan(cx.now())]);
}

#[test]
fn children_of_a_held_lease_wait_for_its_belief_and_go_with_it() {
    let (mut cx, mut leases, mut room) = stage_of(RowWrites::default());
    let parent = hold(&mut cx, &mut leases, row("parent"));
    cx.did();
    room.add(&cx, create("child"), String::new(), Some(parent), Mono::NEVER);
    cx.later(cx.hold());
    room.step(&mut cx, &leases);
    assert!(cx.did().is_nothing(), "the lease may be another's by now");
    assert_eq!(room.wake_at(&cx), cx.now() + cx.config().renew_interval);
    room.drop_children_of(parent);
    assert_eq!(room.wake_at(&cx), Mono::NEVER);
}

#[test]
fn the_outcome_of_a_request_is_handed_out_and_acted_on() {
    let (mut cx, mut leases, mut room) = stage_of(RowWrites::default());
    room.add_request(&cx, request(&cx, "a"));
    room.step(&mut cx, &leases);
    let did = cx.did();
    assert_eq!(written(&did), [requested("a")]);
    let id = RowWriteId(0);
    let outcome = room.on_outcome(&mut cx, &mut leases, id, did.op(), done());
    assert_eq!(outcome, Some(done()), "another room decides what follows");
    let until = cx.now() + seconds(60);
    room.request_mut(id).unwrap().written(until);
    let at = cx.now() + seconds(1);
    room.follow(&mut cx, id, did.op(), FollowUp::LookAt(at));
    assert_eq!(room.wake_at(&cx), at);
    assert!(room.is_idle(), "nothing is to be written any more");
    cx.later(seconds(1));
    room.step(&mut cx, &leases);
    let (op, read) = cx.did().command();
    assert_eq!(read, Effect::Table(TableOp::Read { key: "a".into() }));
    assert_eq!(room.on_outcome(&mut cx, &mut leases, id, op, throttled()), Some(throttled()));
    room.follow(&mut cx, id, op, FollowUp::Failed(throttled()));
    assert_eq!(cx.did().told(), ["trouble"]);
    cx.later(seconds(5));
    room.step(&mut cx, &leases);
    let op = cx.did().op();
    room.on_outcome(&mut cx, &mut leases, id, op, done());
    room.follow(&mut cx, id, op, FollowUp::Over);
    assert_eq!(room.requests().count(), 0);
}

/// One at a time may be written: two of three requests wait.
#[test]
fn requests_that_wait_for_their_turn_can_be_spared() {
    let config = Config { max_creates: 1, ..config(Format::Kcl) };
    let (mut cx, mut room) = (running(config), RowWrites::default());
    let leases = table(&cx);
    for key in ["a", "b", "c"] {
        room.add_request(&cx, request(&cx, key));
    }
    room.step(&mut cx, &leases);
    assert_eq!(written(&cx.did()), [requested("a")]);
    let requests = room.requests().map(|(id, request)| (id, request.is_sent()));
    let (b, c) = (RowWriteId(1), RowWriteId(2));
    assert_eq!(requests.collect::<Vec<_>>(), [(b, false), (c, false), (RowWriteId(0), true)]);
    room.spare(&mut cx, &[b, c].into());
    assert_eq!(cx.did().told(), ["spared", "spared"]);
    assert_eq!(room.requests().count(), 1);
}

#[test]
fn a_lease_of_a_stream_that_is_not_known_is_not_requested() {
    let id = "1:a:2".parse::<crate::stream_id::StreamId>().unwrap();
    let several = Config::default().with_table("leases").with_streams(vec![id]);
    let stream = crate::worker::stream_set::StreamIx::ONLY;
    for (known, again) in [(true, false), (false, false), (false, true)] {
        let (mut cx, mut room) = (running(several.clone()), RowWrites::default());
        let leases = table(&cx);
        room.add_request(&cx, request(&cx, "1:a:2:shardId-0"));
        if !known {
            cx.end_stream(stream, crate::output::EndReason::StreamRemoved);
        }
        if again {
            let source = cx.config().streams.as_slice()[0].clone();
            assert_eq!(cx.add_stream(&source), Some(stream));
        }
        room.step(&mut cx, &leases);
        assert_eq!(written(&cx.did()).len(), usize::from(known));
        assert_eq!(room.requests().count(), usize::from(known));
    }
}
