//! The number of leases of each worker, and the leases open to a take.

use crate::config::Config;
use crate::format::Format;
use crate::notice::TakeReason;
use crate::time::{Mono, Span, Wall};
use crate::worker::context::Context;
use crate::worker::lease_table::LeaseTable;
use crate::worker::stream_set::StreamIx;
use crate::worker::testing::{config, ended, hold, owned, row, running, seconds, shows, stage, table};

#[test]
fn live_owners_are_counted_and_free_or_expired_leases_available() {
    let (mut cx, mut leases) = stage();
    shows(&cx, &mut leases, owned("dead", "dead", 1));
    cx.later(cx.config().lease_duration);
    shows(&cx, &mut leases, owned("dead", "dead", 1));
    shows(&cx, &mut leases, owned("live", "live", 1));
    shows(&cx, &mut leases, row("free"));
    shows(&cx, &mut leases, ended("done", &[]));
    hold(&mut cx, &mut leases, row("mine"));

    let balance = leases.shares(&cx).balance();
    let keys: Vec<_> = balance.available().iter().map(|ix| leases.get(*ix).unwrap().key().as_str()).collect();
    assert_eq!(keys, ["dead", "free"]);
    assert_eq!((balance.of(cx.me()), balance.of(&"live".into()), balance.of(&"dead".into())), (1, 1, 0));
    assert_eq!((balance.unfinished(), balance.workers(), balance.target()), (4, 2, 2));
}

#[test]
fn a_lease_is_not_expired_a_moment_before_a_lease_duration() {
    let (mut cx, mut leases) = stage();
    shows(&cx, &mut leases, owned("a", "other", 1));
    cx.later(cx.config().lease_duration);
    assert!(leases.shares(&cx).balance().available().is_empty(), "no answer showed that it stood still");
    let mut leases = table(&cx);
    shows(&cx, &mut leases, owned("a", "other", 1));
    let almost = Span(cx.config().lease_duration.0 - 1);
    cx.later(almost);
    shows(&cx, &mut leases, owned("a", "other", 1));
    assert!(leases.shares(&cx).balance().available().is_empty());
}

#[test]
fn a_share_is_rounded_up_and_limited_by_the_configuration() {
    let (cx, mut leases) = stage();
    for (key, owner) in [("a", "w2"), ("b", "w2"), ("c", "w2"), ("d", "w2"), ("e", "w3")] {
        shows(&cx, &mut leases, owned(key, owner, 1));
    }
    assert_eq!(leases.shares(&cx).balance().target(), 2);
    assert!(leases.shares(&cx).has_room(2) && !leases.shares(&cx).has_room(3));
    let cx = running(Config { max_leases: 1, ..config(Format::Kcl) });
    assert_eq!(leases.shares(&cx).balance().target(), 1);
}

#[test]
fn the_reason_to_take_names_the_former_owner() {
    let (mut cx, mut leases) = stage();
    let free = shows(&cx, &mut leases, row("free"));
    let ours = shows(&cx, &mut leases, owned("ours", "me", 1));
    let dead = shows(&cx, &mut leases, owned("dead", "other", 1));
    cx.later(seconds(20));
    shows(&cx, &mut leases, owned("dead", "other", 1));
    assert_eq!(leases.shares(&cx).reason_to_take(free), TakeReason::Unowned);
    assert_eq!(leases.shares(&cx).reason_to_take(ours), TakeReason::Ours);
    let expired = TakeReason::Expired { owner: "other".into(), idle: seconds(20) };
    assert_eq!(leases.shares(&cx).reason_to_take(dead), expired);
}

/// A worker with a unique name in its second process, whose first scan has shown these rows.
fn comes_back(unique: bool, owners: [&str; 2]) -> (Context, LeaseTable) {
    let config = config(Format::Kcl).with_unique_names(unique);
    let mut cx = Context::new(config, "me:2".into(), 2, 7, Mono(1_000_000_000), Wall(0));
    cx.set_booted();
    cx.set_recognised(StreamIx::ONLY);
    let mut leases = table(&cx);
    for (key, owner) in ["a", "b"].into_iter().zip(owners) {
        shows(&cx, &mut leases, owned(key, owner, 1));
    }
    leases.scans.first_ended_at(cx.now());
    (cx, leases)
}

#[test]
fn with_unique_names_a_former_processs_leases_are_free_at_once() {
    for (unique, owners, free) in [
        (true, ["me:1", "me:ff"], 2),
        (true, ["me:1", "you:1"], 1),
        (true, ["me:x", "me"], 0),
        (false, ["me:1", "me:1"], 0),
    ] {
        let (cx, leases) = comes_back(unique, owners);
        let balance = leases.shares(&cx).balance();
        assert_eq!(balance.available().len(), free, "{owners:?}");
        for ix in balance.available() {
            let why = leases.shares(&cx).reason_to_take(*ix);
            assert!(matches!(why, TakeReason::FormerLife { .. }), "{why:?}");
        }
    }
}

#[test]
fn who_renews_a_lease_lives_whatever_its_name() {
    let (mut cx, mut leases) = comes_back(true, ["me:1", "me:3"]);
    cx.later(seconds(1));
    shows(&cx, &mut leases, owned("a", "me:1", 2));
    // A lease taken from us by a later process belongs to that process.
    shows(&cx, &mut leases, owned("c", "me:3", 1));
    assert_eq!(leases.shares(&cx).balance().available().len(), 1);
    cx.later(cx.config().lease_duration);
    shows(&cx, &mut leases, owned("a", "me:1", 2));
    let a = leases.find("a").unwrap();
    assert!(matches!(leases.shares(&cx).reason_to_take(a), TakeReason::Expired { .. }));
}
