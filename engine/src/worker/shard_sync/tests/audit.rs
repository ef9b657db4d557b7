//! Looking for what has no lease.

use crate::format::Format;
use crate::notice::{ListReason, Notice};
use crate::position::Checkpoint;
use crate::row::LeaseRow;
use crate::worker::context::Request;
use crate::worker::lease_table::BesideLane;
use crate::worker::shard_sync::ShardSync;
use crate::worker::stream_set::StreamIx;
use crate::worker::testing::{config, row, running, shows, stage_of, table, tenths};

/// A lease of the lower half: the upper one has none.
fn half() -> LeaseRow {
    LeaseRow { range: Some(tenths(0, 5)), ..row("a") }
}

#[test]
fn a_hole_is_believed_when_three_scans_in_a_row_have_shown_it() {
    let (mut cx, mut leases, mut sync) = stage_of(ShardSync::new(StreamIx::ONLY));
    shows(&cx, &mut leases, half());
    for seen in 1..=2 {
        sync.look_for_holes(&mut cx, &leases, 0);
        let did = cx.did();
        let range = tenths(5, 10);
        assert_eq!(did.notices(), [Notice::Hole { range, seen, needed: 3 }]);
        assert_eq!(did.requests(), []);
    }
    sync.look_for_holes(&mut cx, &leases, 0);
    let why = ListReason::Hole;
    assert_eq!(cx.did().requests(), [Request::ListShards(StreamIx::ONLY, why)]);
}

#[test]
fn a_scan_without_the_hole_begins_anew_and_deputies_wait_longer() {
    for (deputy, scans) in [(0, 3), (1, 6), (3, 12)] {
        let (mut cx, mut leases, mut sync) = stage_of(ShardSync::new(StreamIx::ONLY));
        shows(&cx, &mut leases, half());
        sync.look_for_holes(&mut cx, &leases, deputy);
        let rest = LeaseRow { range: Some(tenths(5, 10)), ..row("b") };
        shows(&cx, &mut leases, rest);
        cx.did();
        sync.look_for_holes(&mut cx, &leases, deputy);
        assert!(cx.did().is_nothing());
        leases.wrote_beside(&cx, "b", BesideLane::Removed);
        let asked = (1..=20).find(|_| {
            sync.look_for_holes(&mut cx, &leases, deputy);
            !cx.did().requests().is_empty()
        });
        assert_eq!(asked, Some(scans));
    }
}

#[test]
fn a_hole_in_the_last_listing_is_not_listed_again_at_once() {
    let (mut cx, mut leases, mut sync) = stage_of(ShardSync::new(StreamIx::ONLY));
    shows(&cx, &mut leases, half());
    sync.audit.listed(cx.now());
    for _ in 0..5 {
        sync.look_for_holes(&mut cx, &leases, 0);
    }
    assert_eq!(cx.did().requests(), []);
    cx.later(cx.config().scan_interval.per(2));
    sync.look_for_holes(&mut cx, &leases, 0);
    assert_eq!(cx.did().requests().len(), 1);
}

#[test]
fn leases_whose_lineage_is_not_known_have_the_shards_listed() {
    let (mut cx, sync) = (running(config(Format::VmwareGoKcl)), ShardSync::new(StreamIx::ONLY));
    let mut leases = table(&cx);
    sync.look_for_lineage(&mut cx, &leases, 0);
    assert!(cx.did().is_nothing());
    shows(&cx, &mut leases, LeaseRow::new("a".into(), Checkpoint::TrimHorizon));
    sync.look_for_lineage(&mut cx, &leases, 0);
    assert_eq!(cx.did().requests().len(), 1);
}
