//! Filling an empty table.

use super::{keys, lists, page};
use crate::format::Format;
use crate::output::ShardFilter;
use crate::shard::Shard;
use crate::worker::context::{Context, Request};
use crate::worker::lease_table::LeaseTable;
use crate::worker::shard_sync::ShardSync;
use crate::worker::stream_set::StreamIx;
use crate::worker::testing::{config, row, seconds, shard, shows, starting, table, tenths};

/// A worker that has seen an empty table twice, and lists the shards to fill the table.
fn filling() -> (Context, LeaseTable, ShardSync) {
    let (mut cx, mut sync) = (starting(config(Format::Kcl)), ShardSync::new(StreamIx::ONLY));
    let mut leases = table(&cx);
    sync.on_empty_table(&mut cx, &mut leases);
    cx.did();
    sync.on_empty_table(&mut cx, &mut leases);
    (cx, leases, sync)
}

#[test]
fn an_empty_table_is_looked_at_again_after_a_random_wait() {
    let (mut cx, mut sync) = (starting(config(Format::Kcl)), ShardSync::new(StreamIx::ONLY));
    let mut leases = table(&cx);
    sync.on_empty_table(&mut cx, &mut leases);
    let did = cx.did();
    let [Request::Rescan(at)] = did.requests() else { panic!("expected a scan, found {did:?}") };
    assert!(at.since(cx.now()) <= cx.config().bootstrap_delay);
    assert!(did.effects().is_empty());

    sync.on_empty_table(&mut cx, &mut leases);
    assert_eq!(cx.did().effects(), [lists(ShardFilter::AtTrimHorizon)]);
}

#[test]
fn every_listed_shard_gets_a_lease_in_this_streams_table() {
    let (mut cx, leases, mut sync) = filling();
    let op = cx.did().op();
    assert!(sync.on_page(&mut cx, &leases, op, page(&[shard("a", &[])], false)).is_none());
    assert_eq!(keys(&cx.did()), ["a"]);
    assert!(cx.has_recognised(StreamIx::ONLY) && !sync.is_listing());
}

#[test]
fn a_slow_list_fills_the_table_once_it_was_seen_empty_still() {
    let (mut cx, mut leases, mut sync) = filling();
    let op = cx.did().op();
    cx.later(seconds(2));
    sync.on_page(&mut cx, &leases, op, page(&[shard("a", &[])], false));
    let did = cx.did();
    assert_eq!((keys(&did).len(), did.requests().last()), (0, Some(&Request::Rescan(cx.now()))));
    sync.on_empty_table(&mut cx, &mut leases);
    assert_eq!(keys(&cx.did()), ["a"]);
}

#[test]
fn a_table_filled_by_another_worker_meanwhile_is_left_alone() {
    let (mut cx, mut leases, mut sync) = filling();
    let op = cx.did().op();
    shows(&cx, &mut leases, row("b"));
    sync.on_filled_table();
    sync.on_page(&mut cx, &leases, op, page(&[shard("a", &[])], false));
    assert_eq!(keys(&cx.did()).len(), 0);
    assert!(!sync.is_listing() && !cx.has_recognised(StreamIx::ONLY));
}

/// A listing of a parent's two children, with the parent or without.
fn halves(cx: &Context, with_parent: bool) -> Vec<Shard> {
    debug_assert!(cx.is_running(), "a worker that runs lists");
    let mut parent = shard("p", &[]);
    parent.ending = Some(parent.starting);
    let half = |id: &str, range| Shard { range, ..shard(id, &["p"]) };
    let children = [half("a", tenths(0, 5)), half("b", tenths(5, 10))];
    let parent = with_parent.then_some(parent);
    parent.into_iter().chain(children).collect()
}

#[test]
fn an_unlisted_parent_is_forgotten_by_listings_over_the_lag() {
    let (mut cx, mut leases, mut sync) = filling();
    let began = cx.now();
    let mut listings = 0;
    let did = loop {
        let did = cx.did();
        listings += 1;
        let shards = halves(&cx, false);
        sync.on_page(&mut cx, &leases, did.op(), page(&shards, false));
        let did = cx.did();
        let Some(Request::Rescan(at)) = did.requests().last() else {
            break did;
        };
        assert_eq!(keys(&did).len(), 0);
        // A scan that comes sooner has nothing listed.
        sync.on_empty_table(&mut cx, &mut leases);
        assert!(cx.did().effects().is_empty());
        cx.later(at.since(cx.now()));
        sync.on_empty_table(&mut cx, &mut leases);
    };
    assert_eq!(keys(&did), ["a", "b"]);
    assert_eq!(listings, cx.config().audit_confidence);
    assert!(cx.now().since(began) >= cx.config().stream_lag);
}

#[test]
fn a_parent_that_the_next_listing_shows_is_read_first() {
    let (mut cx, mut leases, mut sync) = filling();
    let op = cx.did().op();
    let shards = halves(&cx, false);
    sync.on_page(&mut cx, &leases, op, page(&shards, false));
    assert_eq!(keys(&cx.did()).len(), 0);
    cx.later(cx.config().stream_lag);
    sync.on_empty_table(&mut cx, &mut leases);
    let op = cx.did().op();
    let shards = halves(&cx, true);
    sync.on_page(&mut cx, &leases, op, page(&shards, false));
    assert_eq!(keys(&cx.did()), ["p"]);
}
