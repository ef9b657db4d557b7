//! Rows that listings contradict.

use super::{created, listed};
use crate::config::{Config, InitialPosition};
use crate::format::Format;
use crate::notice::ListReason;
use crate::position::Checkpoint;
use crate::row::{Change, LeaseRow};
use crate::shard::Shard;
use crate::stream_identity::StreamIdentity;
use crate::time::{Mono, Wall};
use crate::worker::context::{Context, Request};
use crate::worker::lease_table::{BesideLane, LeaseTable, Scan};
use crate::worker::shard_sync::ShardSync;
use crate::worker::stream_set::StreamIx;
use crate::worker::testing::{config, ended, row, running, seconds, shard, shows, tenths, whole_scan};

/// A running worker that has recognised its table.
fn recognised() -> (Context, LeaseTable, ShardSync) {
    recognised_from(InitialPosition::TrimHorizon)
}

fn recognised_from(initial_position: InitialPosition) -> (Context, LeaseTable, ShardSync) {
    let mut cx = running(Config { initial_position, ..config(Format::Kcl) });
    cx.set_said(StreamIx::ONLY, Some(identity()));
    cx.set_identified(StreamIx::ONLY);
    cx.set_recognised(StreamIx::ONLY);
    let leases = crate::worker::testing::table(&cx);
    (cx, leases, ShardSync::new(StreamIx::ONLY))
}

fn identity() -> StreamIdentity {
    StreamIdentity::new("arn:aws:kinesis:us-east-1:1:stream/orders", Wall(1_000)).unwrap()
}

fn half(id: &str, parents: &[&str], upper: bool) -> Shard {
    let range = if upper { tenths(5, 10) } else { tenths(0, 5) };
    Shard { range, ..shard(id, parents) }
}

fn row_of(shard: &Shard) -> LeaseRow {
    LeaseRow { range: Some(shard.range), stream: Some(identity()), ..row(shard.id.as_str()) }
}

/// A listing comes. Returns the resulting writes.
fn lists(cx: &mut Context, leases: &mut LeaseTable, sync: &mut ShardSync, shards: &[Shard]) -> Vec<Change> {
    let listed = listed(cx, sync, shards);
    sync.compare(cx, leases, &listed);
    sync.create_missing(cx, leases, &listed, 0);
    let did = cx.did();
    let changes = did.requests().iter().filter_map(|request| match request {
        Request::WriteRow { change, .. } => Some(change.clone()),
        _ => None,
    });
    changes.collect()
}

/// The shards are listed at each request of the room, until a row is written. Returns the number of listings.
fn until_written(
    cx: &mut Context, leases: &mut LeaseTable, sync: &mut ShardSync, (rows, shards): (&[LeaseRow], &[Shard]),
) -> (u32, Vec<Change>) {
    let mut scan = Scan::default();
    for listings in 1..20 {
        whole_scan(cx, leases, &mut scan, rows.to_vec());
        let changes = lists(cx, leases, sync, shards);
        if !changes.is_empty() {
            return (listings, changes);
        }
        let at = sync.contradicted.look_at();
        assert_ne!(at, Mono::NEVER, "nothing asks for another listing");
        cx.later(at.since(cx.now()));
        sync.look_for_holes(cx, leases, 0);
        sync.contradicted.looks_again();
        cx.did();
    }
    panic!("no row is written");
}

#[track_caller]
fn only_created(changes: &[Change]) -> &LeaseRow {
    let [Change::Create(row)] = changes else { panic!("expected a row to be created, found {changes:?}") };
    row
}

#[test]
fn the_right_child_gets_its_lease_beside_the_row_of_a_wrong_one() {
    let (mut cx, mut leases, mut sync) = recognised();
    let (a, b) = (half("a", &["p"], false), half("b", &["p"], true));
    let parent = Shard { ending: Some(9.into()), ..shard("p", &[]) };
    let rows = [ended("p", &["a", "x"]), row_of(&a), row_of(&half("x", &["p"], true))];
    let began = cx.now();
    let (listings, changes) = until_written(&mut cx, &mut leases, &mut sync, (&rows, &[parent, a, b]));
    let row = only_created(&changes);
    assert_eq!((row.key.as_str(), row.checkpoint), ("b", Checkpoint::TrimHorizon));
    assert!(listings >= cx.config().audit_confidence.max(2), "{listings}");
    assert!(cx.now().since(began) >= cx.config().stream_lag);
}

#[test]
fn a_listing_that_shows_the_shard_takes_all_doubt_back() {
    let (mut cx, mut leases, mut sync) = recognised();
    let (a, b) = (half("a", &[], false), half("b", &[], true));
    shows(&cx, &mut leases, row_of(&a));
    shows(&cx, &mut leases, row_of(&b));
    let other = Shard { id: "c".into(), ..b.clone() };
    assert!(lists(&mut cx, &mut leases, &mut sync, &[a.clone(), other]).is_empty());
    assert_ne!(sync.contradicted.look_at(), Mono::NEVER);
    cx.later(seconds(60));
    assert!(lists(&mut cx, &mut leases, &mut sync, &[a, b]).is_empty());
    assert!(!sync.contradicted.doubts_cover());
    assert_eq!(sync.contradicted.look_at(), Mono::NEVER);
}

#[test]
fn wrong_hash_keys_are_corrected_by_two_listings_apart_in_time() {
    let (mut cx, mut leases, mut sync) = recognised();
    let (a, b) = (half("a", &[], false), half("b", &[], true));
    let wrong = LeaseRow { range: Some(tenths(0, 7)), ..row_of(&a) };
    let (rows, shards) = ([wrong, row_of(&b)], [a.clone(), b]);
    let began = cx.now();
    let (listings, changes) = until_written(&mut cx, &mut leases, &mut sync, (&rows, &shards));
    let expected = Change::SetRange { key: "a".into(), was: Some(tenths(0, 7)), range: a.range };
    assert_eq!((listings, &changes[..]), (2, &[expected][..]));
    assert!(cx.now().since(began) >= cx.config().stream_lag);
    // The write was refused: the rows stay as they are.
    assert_ne!(sync.contradicted.look_at(), Mono::NEVER);
    let (listings, again) = until_written(&mut cx, &mut leases, &mut sync, (&rows, &shards));
    assert_eq!((listings, again), (2, changes));
    assert_ne!(sync.contradicted.look_at(), Mono::NEVER);
    leases.wrote_beside(&cx, "a", BesideLane::Range(Some(a.range)));
    assert!(lists(&mut cx, &mut leases, &mut sync, &shards).is_empty());
    assert_eq!(sync.contradicted.look_at(), Mono::NEVER);
}

#[test]
fn a_row_that_lacks_its_hash_keys_gets_them_from_two_listings() {
    let (mut cx, mut leases, mut sync) = recognised();
    let a = shard("a", &[]);
    let bare = LeaseRow { range: None, ..row("a") };
    let (listings, changes) =
        until_written(&mut cx, &mut leases, &mut sync, (&[bare], std::slice::from_ref(&a)));
    let (was, range) = (None, a.range);
    let key = "a".into();
    assert_eq!((listings, &changes[..]), (2, &[Change::SetRange { key, was, range }][..]));
}

#[test]
fn a_row_that_does_not_name_the_stream_is_not_corrected() {
    let (mut cx, mut leases, mut sync) = recognised();
    let a = shard("a", &[]);
    shows(&cx, &mut leases, LeaseRow { range: Some(tenths(0, 7)), ..row("a") });
    for _ in 0..5 {
        assert!(lists(&mut cx, &mut leases, &mut sync, std::slice::from_ref(&a)).is_empty());
        cx.later(cx.config().stream_lag);
    }
}

#[test]
fn a_worker_that_filled_the_table_lists_the_shards_once_more() {
    let (mut cx, mut leases, mut sync) = recognised();
    let a = shard("a", &[]);
    sync.create_all(&mut cx, &leases, std::slice::from_ref(&a));
    assert_eq!(created(&cx.did()).len(), 1);
    let at = sync.contradicted.look_at();
    assert_eq!(at.since(cx.now()), cx.config().stream_lag);
    cx.later(cx.config().stream_lag);
    assert_eq!(sync.contradicted.looks_again(), Some(ListReason::RowsWritten));
    shows(&cx, &mut leases, row_of(&a));
    assert!(lists(&mut cx, &mut leases, &mut sync, &[a]).is_empty());
    assert_eq!(sync.contradicted.look_at(), Mono::NEVER);
}

/// A closed and split shard with its children.
fn split() -> [Shard; 3] {
    let parent = Shard { ending: Some(9.into()), ..shard("p", &[]) };
    [parent, half("a", &["p"], false), half("b", &["p"], true)]
}

/// The table is filled from a listing of the open shards, and the listing names these parents.
fn filled_from_open(parents: &[&str]) -> (Context, LeaseTable, ShardSync, [LeaseRow; 2]) {
    let (mut cx, leases, mut sync) = recognised();
    let (a, b) = (half("a", parents, false), half("b", parents, true));
    sync.create_all(&mut cx, &leases, &[a.clone(), b.clone()]);
    assert_eq!(created(&cx.did()).len(), 2);
    let rows = [row_of(&a), row_of(&b)];
    (cx, leases, sync, rows)
}

#[test]
fn a_parent_unnamed_by_the_filling_listing_gets_its_lease() {
    let (mut cx, mut leases, mut sync, rows) = filled_from_open(&[]);
    let began = cx.now();
    // A listing of the same moment bears nothing out.
    let bare = split().map(|shard| half(shard.id.as_str(), &[], shard.id.as_str() == "b"));
    cx.later(seconds(1));
    for row in &rows {
        shows(&cx, &mut leases, row.clone());
    }
    assert!(lists(&mut cx, &mut leases, &mut sync, &bare[1..]).is_empty());
    assert_eq!(sync.contradicted.look_at().since(began), cx.config().stream_lag);
    cx.later(cx.config().stream_lag);
    let (listings, changes) = until_written(&mut cx, &mut leases, &mut sync, (&rows, &split()));
    let row = only_created(&changes);
    assert_eq!((row.key.as_str(), row.checkpoint), ("p", Checkpoint::TrimHorizon));
    assert_eq!(listings, 2);
    shows(&cx, &mut leases, row.clone());
    cx.later(cx.config().stream_lag);
    assert!(lists(&mut cx, &mut leases, &mut sync, &split()).is_empty());
    assert_eq!(sync.contradicted.look_at(), Mono::NEVER);
}

#[test]
fn a_parent_of_rows_of_others_or_that_name_it_counts_as_read() {
    let mut named = filled_from_open(&["p"]);
    let (cx, leases, sync) = recognised();
    let rows = named.3.clone();
    let mut others = (cx, leases, sync, rows);
    for (cx, leases, sync, rows) in [&mut named, &mut others] {
        for row in rows {
            shows(cx, leases, row.clone());
        }
        for _ in 0..5 {
            cx.later(cx.config().stream_lag);
            assert!(lists(cx, leases, sync, &split()).is_empty());
        }
    }
}

#[test]
fn a_lease_in_the_place_of_denied_ones_begins_where_they_began() {
    let (mut cx, mut leases, mut sync) = recognised_from(InitialPosition::Latest);
    let denied =
        LeaseRow { checkpoint: Checkpoint::Latest, began: Some(Wall(77)), ..row_of(&shard("x", &[])) };
    let (_, changes) = until_written(&mut cx, &mut leases, &mut sync, (&[denied], &[shard("a", &[])]));
    let row = only_created(&changes);
    assert_eq!((row.checkpoint, row.began), (Checkpoint::Latest, Some(Wall(77))));
}
