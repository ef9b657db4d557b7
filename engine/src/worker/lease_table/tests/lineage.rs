//! What a list of the shards says that rows do not.

use crate::format::Format;
use crate::notice::ListReason;
use crate::position::Checkpoint;
use crate::row::LeaseRow;
use crate::shard::HashRange;
use crate::worker::context::Request;
use crate::worker::stream_set::StreamIx;
use crate::worker::testing::{closed, config, ended, running, shard, shows, table};

fn bare(key: &str) -> LeaseRow {
    LeaseRow::new(key.into(), Checkpoint::TrimHorizon)
}

#[test]
fn a_lease_without_lineage_is_taken_when_a_list_has_shown_its_shard() {
    let cx = running(config(Format::VmwareGoKcl));
    let mut leases = table(&cx);
    shows(&cx, &mut leases, bare("child"));
    assert!(leases.balance(&cx).available().is_empty());

    let shards = [closed(shard("parent", &[])), shard("child", &["parent"])];
    leases.learn_lineage(&cx, &shards, cx.now());
    let row = leases.row("child").unwrap();
    assert_eq!(
        (row.range, &row.parents[..]),
        (Some(HashRange::ALL), &["parent".into()][..])
    );
    assert_eq!(leases.balance(&cx).available().len(), 1);
}

#[test]
fn a_row_that_is_read_after_the_list_is_completed_too() {
    let cx = running(config(Format::VmwareGoKcl));
    let mut leases = table(&cx);
    let shards = [closed(shard("parent", &[])), shard("child", &["parent"])];
    leases.learn_lineage(&cx, &shards, cx.now());
    shows(&cx, &mut leases, bare("parent"));
    assert_eq!(leases.row("parent").unwrap().children, ["child".into()]);
    shows(&cx, &mut leases, bare("other"));
    assert_eq!(leases.row("other").unwrap().range, None);
}

#[test]
fn a_shard_is_forgotten_when_lists_have_lacked_it_for_a_scan_interval() {
    let mut cx = running(config(Format::VmwareGoKcl));
    let mut leases = table(&cx);
    shows(&cx, &mut leases, ended("old", &[]));
    let (key, began) = ("old".into(), cx.now());
    assert_eq!(leases.still_listed(&key, began), None, "nothing was listed");
    leases.learn_lineage(&cx, &[shard("new", &[])], cx.now());
    assert_eq!(leases.still_listed(&key, began), Some(true), "a list may lag");
    cx.later(cx.config().scan_interval);
    leases.learn_lineage(&cx, &[shard("new", &[])], cx.now());
    assert_eq!(leases.still_listed(&key, began), Some(false));
}

#[test]
fn a_parent_without_a_row_is_unread_as_long_as_the_stream_may_have_it() {
    let mut cx = running(config(Format::VmwareGoKcl));
    let mut leases = table(&cx);
    let child = [shard("child", &["parent"])];
    leases.learn_lineage(&cx, &child, cx.now());
    assert!(leases.is_unread(&mut cx, &"parent".into()));
    assert!(cx.did().is_nothing(), "it was listed just now");
    cx.later(cx.config().scan_interval);
    assert!(leases.is_unread(&mut cx, &"parent".into()));
    assert_eq!(
        cx.did().requests(),
        [Request::ListShards(
            StreamIx::ONLY,
            ListReason::ParentWithoutLease
        )]
    );
    leases.learn_lineage(&cx, &child, cx.now());
    assert!(!leases.is_unread(&mut cx, &"parent".into()));
}
