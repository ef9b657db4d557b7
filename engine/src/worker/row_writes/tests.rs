use super::*;
use crate::config::Config;
use crate::format::Format;
use crate::output::Effect;
use crate::row::LeaseRow;
use crate::time::Span;
use crate::worker::testing::{
    Did, config, context, done, hold, owned, refused, refused_by, row, running, seconds, shown, shows, table,
    throttled,
};

fn create(key: &str) -> Change {
    Change::Create(Box::new(row(key)))
}

fn claim(counter: u64) -> Change {
    claim_of("a", counter)
}

fn claim_of(key: &str, counter: u64) -> Change {
    Change::Claim {
        key: key.into(),
        counter,
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

/// A row of `other`, being handed over to us.
fn promised(counter: u64) -> LeaseRow {
    LeaseRow { handing_over: Some("other".into()), ..owned("a", "me", counter) }
}

#[test]
fn a_created_row_is_known_and_told_and_a_scan_follows() {
    let (mut cx, mut room) = (context(), RowWrites::default());
    let mut leases = table(&cx);
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
fn no_more_are_in_flight_than_configured_and_what_failed_is_tried_again_after_a_pause() {
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
fn what_was_decided_on_long_ago_is_not_written() {
    let (mut cx, mut room) = (context(), RowWrites::default());
    let leases = table(&cx);
    let expires = cx.now() + seconds(1);
    room.add(&cx, create("a"), String::new(), None, expires);
    cx.later(seconds(1));
    room.step(&mut cx, &leases);
    assert!(cx.did().is_nothing());
    assert_eq!(room.wake_at(&cx), Mono::NEVER, "it is dropped");
}

#[test]
fn the_children_of_a_held_lease_wait_for_its_belief_and_are_dropped_with_it() {
    let (mut cx, mut room) = (context(), RowWrites::default());
    let mut leases = table(&cx);
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
fn a_claim_follows_an_owner_that_renews_and_waits_until_it_gives_the_lease_up() {
    let (mut cx, mut room) = (context(), RowWrites::default());
    let mut leases = table(&cx);
    shows(&cx, &mut leases, owned("a", "other", 1));
    let expires = cx.now() + seconds(3);
    room.add(&cx, claim(1), String::new(), None, expires);
    room.step(&mut cx, &leases);
    let op = cx.did().op();
    room.on_outcome(&mut cx, &mut leases, RowWriteId(0), op, refused_by(owned("a", "other", 2)));
    room.step(&mut cx, &leases);
    let did = cx.did();
    assert_eq!(written(&did), [claim(2)]);

    room.on_outcome(&mut cx, &mut leases, RowWriteId(0), did.op(), done());
    assert_eq!(cx.did().told(), ["claimed"]);
    let mut look = |cx: &mut Context, room: &mut RowWrites, row: LeaseRow| {
        cx.later(cx.config().renew_interval.per(2));
        room.step(cx, &leases);
        let (op, read) = cx.did().command();
        assert_eq!(read, Effect::Table(TableOp::Read { key: "a".into() }));
        room.on_outcome(cx, &mut leases, RowWriteId(0), op, shown(Some(row)));
        cx.did().requests().to_vec()
    };
    assert_eq!(look(&mut cx, &mut room, promised(2)), []);
    assert_eq!(room.claims().count(), 1);
    let given = look(&mut cx, &mut room, owned("a", "me", 3));
    assert!(matches!(given[..], [Request::Take(..)]), "{given:?}");
    assert_eq!(room.claims().count(), 0);
}

#[test]
fn a_claim_that_was_refused_without_the_row_looks_at_it_and_finds_its_own() {
    let (mut cx, mut room) = (context(), RowWrites::default());
    let mut leases = table(&cx);
    let expires = cx.now() + seconds(3);
    room.add(&cx, claim(1), String::new(), None, expires);
    room.step(&mut cx, &leases);
    let op = cx.did().op();
    room.on_outcome(&mut cx, &mut leases, RowWriteId(0), op, refused(Why::ConditionFailed));
    room.step(&mut cx, &leases);
    let (op, read) = cx.did().command();
    assert_eq!(read, Effect::Table(TableOp::Read { key: "a".into() }));
    room.on_outcome(&mut cx, &mut leases, RowWriteId(0), op, shown(Some(promised(1))));
    assert_eq!(cx.did().told(), ["claimed"]);
}

/// One at a time may be written: two of three claims wait when leases come to be ours otherwise.
#[test]
fn claims_that_wait_for_their_turn_are_dropped_when_the_share_is_full() {
    let config = Config { max_creates: 1, ..config(Format::Kcl) };
    let (mut cx, mut room) = (running(config), RowWrites::default());
    let mut leases = table(&cx);
    let expires = cx.now() + seconds(3);
    for key in ["a", "b", "c", "d"] {
        shows(&cx, &mut leases, owned(key, "other", 1));
    }
    for key in ["a", "b", "c"] {
        room.add(&cx, claim_of(key, 1), String::new(), None, expires);
    }
    room.step(&mut cx, &leases);
    let did = cx.did();
    assert_eq!(written(&did), [claim(1)]);
    hold(&mut cx, &mut leases, row("e"));
    cx.did();
    room.weigh_claims();
    room.step(&mut cx, &leases);
    assert_eq!(cx.did().told(), ["spared"], "three are a share: `e`, `a`, and another one");
    hold(&mut cx, &mut leases, row("f"));
    cx.did();
    room.weigh_claims();
    room.step(&mut cx, &leases);
    assert_eq!(cx.did().told(), ["spared"]);
    room.on_outcome(&mut cx, &mut leases, RowWriteId(0), did.op(), done());
    cx.did();
    room.step(&mut cx, &leases);
    assert_eq!(written(&cx.did()), []);
    assert_eq!(room.claims().count(), 1);
}

#[test]
fn a_lease_of_a_stream_that_is_not_known_is_not_asked_for() {
    let id = "1:a:2".parse::<crate::stream_id::StreamId>().unwrap();
    let several = Config::default().with_table("leases").with_streams(vec![id]);
    let stream = crate::worker::stream_set::StreamIx::ONLY;
    for (known, again) in [(true, false), (false, false), (false, true)] {
        let (mut cx, mut room) = (running(several.clone()), RowWrites::default());
        let leases = table(&cx);
        let expires = cx.now() + seconds(3);
        room.add(&cx, claim_of("1:a:2:shardId-0", 1), String::new(), None, expires);
        if !known {
            cx.end_stream(stream, crate::output::EndReason::StreamRemoved);
        }
        if again {
            let source = cx.config().streams.as_slice()[0].clone();
            assert_eq!(cx.add_stream(&source), Some(stream));
        }
        room.step(&mut cx, &leases);
        assert_eq!(written(&cx.did()).len(), usize::from(known));
        assert_eq!(room.claims().count(), usize::from(known));
    }
}
