//! Listing the shards, page by page.

use super::{lists, page};
use crate::ids::OpId;
use crate::input::Why;
use crate::notice::ListReason;
use crate::output::{Effect, ShardFilter, StreamOp};
use crate::time::Span;
use crate::worker::context::{Context, Request};
use crate::worker::lease_table::LeaseTable;
use crate::worker::shard_sync::ShardSync;
use crate::worker::stream_set::StreamIx;
use crate::worker::testing::{context, refused, seconds, shard, table, throttled};

/// All shards are being listed, by this command.
fn listing() -> (Context, LeaseTable, ShardSync, OpId) {
    let (mut cx, mut sync) = (context(), ShardSync::new(StreamIx::ONLY));
    let leases = table(&cx);
    sync.list(&mut cx, ListReason::Hole);
    let op = cx.did().op();
    (cx, leases, sync, op)
}

#[test]
fn pages_follow_each_other_and_make_one_list() {
    let (mut cx, mut sync) = (context(), ShardSync::new(StreamIx::ONLY));
    let leases = table(&cx);
    let began = cx.now();
    sync.list(&mut cx, ListReason::Hole);
    let did = cx.did();
    assert_eq!((did.told(), did.effects()), (vec!["listing"], vec![lists(ShardFilter::All)]));

    cx.later(seconds(1));
    let first = did.op();
    assert!(sync.on_page(&mut cx, &leases, first, page(&[shard("a", &[])], true)).is_none());
    let (second, next) = cx.did().command();
    let after = Some(first);
    let filter = ShardFilter::All;
    assert_eq!(next, Effect::Stream(StreamOp::ListShards { filter, after }));

    cx.later(seconds(1));
    let listed = sync.on_page(&mut cx, &leases, second, page(&[shard("b", &[])], false));
    let listed = listed.expect("the last page");
    assert_eq!(listed.shards(), [shard("a", &[]), shard("b", &[])]);
    assert_eq!(listed.asked_at(), began);
    assert_eq!(cx.did().requests(), [Request::StreamListed(StreamIx::ONLY, seconds(2))]);
}

#[test]
fn shards_are_listed_once_at_a_time() {
    let (mut cx, mut sync) = (context(), ShardSync::new(StreamIx::ONLY));
    sync.list(&mut cx, ListReason::Hole);
    cx.did();
    sync.list(&mut cx, ListReason::RangesUnknown);
    assert!(sync.is_listing() && cx.did().is_nothing());
}

#[test]
fn an_unanswered_page_is_asked_again_and_a_refused_one_with_all() {
    for (outcome, again_after_first) in [(throttled(), true), (refused(Why::Expired), false)] {
        let (mut cx, leases, mut sync, first) = listing();
        sync.on_page(&mut cx, &leases, first, page(&[shard("a", &[])], true));
        let second = cx.did().op();
        sync.on_page(&mut cx, &leases, second, outcome);
        assert_eq!(cx.did().told(), ["trouble"]);
        let pause = sync.wake_at().since(cx.now());
        assert!(pause > Span::ZERO && pause <= cx.config().retry_min, "{pause}");

        cx.later(pause);
        sync.step(&mut cx);
        let (third, asked) = cx.did().command();
        let after = again_after_first.then_some(first);
        let filter = ShardFilter::All;
        assert_eq!(asked, Effect::Stream(StreamOp::ListShards { filter, after }));
        let listed = sync.on_page(&mut cx, &leases, third, page(&[shard("b", &[])], false));
        let count = if again_after_first { 2 } else { 1 };
        assert_eq!(listed.expect("the last page").shards().len(), count);
    }
}

#[test]
fn pages_that_are_too_old_to_stand_together_are_listed_anew() {
    let (mut cx, leases, mut sync, op) = listing();
    sync.on_page(&mut cx, &leases, op, page(&[shard("a", &[])], true));
    let op = cx.did().op();
    cx.later(cx.config().scan_interval);
    sync.on_page(&mut cx, &leases, op, throttled());
    cx.later(seconds(1));
    cx.did();
    sync.step(&mut cx);
    assert_eq!(cx.did().effects(), [lists(ShardFilter::All)]);
}

#[test]
fn a_stream_that_is_not_found_ends_the_listing_and_is_doubted() {
    let (mut cx, leases, mut sync, op) = listing();
    sync.on_page(&mut cx, &leases, op, refused(Why::NotFound));
    assert_eq!(cx.did().requests(), [Request::DoubtStream(StreamIx::ONLY)]);
    assert!(!sync.is_listing());
}
