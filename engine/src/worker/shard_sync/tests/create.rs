//! Creating the leases that are missing beside others.

use super::{created, keys, listed};
use crate::config::{Config, InitialPosition};
use crate::format::Format;
use crate::notice::ListReason;
use crate::position::Checkpoint;
use crate::row::LeaseRow;
use crate::shard::Shard;
use crate::time::Wall;
use crate::worker::context::{Context, Request};
use crate::worker::lease_table::{LeaseTable, Scan};
use crate::worker::shard_sync::ShardSync;
use crate::worker::stream_set::StreamIx;
use crate::worker::testing::{
    closed, config, context, row, running, seconds, shard, shows, stage_of, table, tenths, whole_scan,
};

/// Two shards, of which only the first has a lease.
fn shards() -> [Shard; 2] {
    let half = |id, start, end| Shard { range: tenths(start, end), ..shard(id, &[]) };
    [half("a", 0, 5), half("b", 5, 10)]
}

fn leased() -> Vec<LeaseRow> {
    let range = Some(tenths(0, 5));
    vec![LeaseRow { range, ..row("a") }]
}

/// A list of these shards creates what is missing, perhaps.
fn missing(cx: &mut Context, leases: &LeaseTable, sync: &mut ShardSync, shards: &[Shard]) {
    let list = listed(cx, sync, shards);
    sync.create_missing(cx, leases, &list, 0);
}

#[test]
fn a_lease_is_created_after_a_scan_interval_if_a_scan_agrees() {
    let (mut cx, mut sync, mut scan) = (context(), ShardSync::new(StreamIx::ONLY), Scan::default());
    let mut leases = table(&cx);
    whole_scan(&mut cx, &mut leases, &mut scan, leased());
    missing(&mut cx, &leases, &mut sync, &shards());
    let did = cx.did();
    assert_eq!((did.told(), keys(&did)), (vec!["planned"], vec![]));

    cx.later(cx.config().scan_interval);
    missing(&mut cx, &leases, &mut sync, &shards());
    assert_eq!(keys(&cx.did()).len(), 0, "no scan has begun since");

    whole_scan(&mut cx, &mut leases, &mut scan, leased());
    missing(&mut cx, &leases, &mut sync, &shards());
    let rows = created(&cx.did());
    assert_eq!(rows.len(), 1);
    assert_eq!((rows[0].key.as_str(), rows[0].checkpoint), ("b", Checkpoint::TrimHorizon));
}

/// Another worker may have created leases since the scan, and other leases are missing beside these.
#[test]
fn rows_older_than_the_listing_ask_for_a_scan_and_a_listing() {
    let (mut cx, mut sync, mut scan) = (context(), ShardSync::new(StreamIx::ONLY), Scan::default());
    let mut leases = table(&cx);
    whole_scan(&mut cx, &mut leases, &mut scan, leased());
    missing(&mut cx, &leases, &mut sync, &shards());
    cx.later(cx.config().stream_lag);
    whole_scan(&mut cx, &mut leases, &mut scan, leased());
    cx.later(seconds(3));
    cx.did();

    missing(&mut cx, &leases, &mut sync, &shards());
    let did = cx.did();
    assert_eq!((keys(&did), did.requests()), (vec![], &[Request::Rescan(cx.now())][..]));

    whole_scan(&mut cx, &mut leases, &mut scan, leased());
    cx.did();
    sync.look_for_orphans(&mut cx, &leases, 0);
    let lists = Request::ListShards(StreamIx::ONLY, ListReason::RowsTooOld);
    assert_eq!(cx.did().requests(), [lists]);
    missing(&mut cx, &leases, &mut sync, &shards());
    assert_eq!(keys(&cx.did()), ["b"]);
    sync.look_for_orphans(&mut cx, &leases, 0);
    assert_eq!(cx.did().requests(), []);
}

#[test]
fn a_list_that_contradicts_itself_is_begun_anew() {
    let (mut cx, mut leases, mut sync) = stage_of(ShardSync::new(StreamIx::ONLY));
    shows(&cx, &mut leases, row("parent"));
    let open_parent = [shard("parent", &[]), shard("child", &["parent"])];
    missing(&mut cx, &leases, &mut sync, &open_parent);
    assert_eq!(cx.did().told(), ["bad-listing"]);
    assert!(sync.is_listing());
    assert!(sync.wake_at() > cx.now());

    let sound = [closed(shard("parent", &[])), shard("child", &["parent"])];
    missing(&mut cx, &leases, &mut sync, &sound);
    assert_eq!(cx.did().told(), ["planned"]);
    assert!(!sync.is_listing());
}

/// The lease was missing from then on: records that arrived during later looks are read, too.
#[test]
fn a_lease_created_at_latest_begins_when_it_was_first_missing() {
    let mut cx = running(Config { initial_position: InitialPosition::Latest, ..config(Format::Kcl) });
    let (mut sync, mut scan) = (ShardSync::new(StreamIx::ONLY), Scan::default());
    let mut leases = table(&cx);
    let first = cx.wall();
    let mut rows = Vec::new();
    for _ in 0..3 {
        whole_scan(&mut cx, &mut leases, &mut scan, leased());
        missing(&mut cx, &leases, &mut sync, &shards());
        rows.extend(created(&cx.did()));
        cx.later(cx.config().scan_interval);
    }
    assert_eq!(rows.len(), 1);
    assert_eq!(rows[0].checkpoint, Checkpoint::Latest);
    assert_eq!(rows[0].began, Some(Wall(first.0 - 1_000)));
}
