//! Facts about shards from a list of the shards, missing from rows.

use crate::format::Format;
use crate::notice::ListReason;
use crate::position::Checkpoint;
use crate::row::LeaseRow;
use crate::shard::HashRange;
use crate::worker::context::{Context, Request};
use crate::worker::lease_table::{self, LeaseTable};
use crate::worker::stream_set::StreamIx;
use crate::worker::testing::{closed, config, ended, running, shard, shows, table};

fn bare(key: &str) -> LeaseRow {
    LeaseRow::new(key.into(), Checkpoint::TrimHorizon)
}

#[test]
fn a_lease_without_lineage_is_taken_after_a_list_with_its_shard() {
    let cx = running(config(Format::VmwareGoKcl));
    let mut leases = table(&cx);
    shows(&cx, &mut leases, bare("child"));
    assert!(leases.shares(&cx).balance().available().is_empty());

    let shards = [closed(shard("parent", &[])), shard("child", &["parent"])];
    lease_table::learn_lineage(&mut leases, &cx, &shards, cx.now());
    let row = leases.row("child").unwrap();
    assert_eq!((row.range, &row.parents[..]), (Some(HashRange::ALL), &["parent".into()][..]));
    assert_eq!(leases.shares(&cx).balance().available().len(), 1);
}

#[test]
fn a_row_that_is_read_after_the_list_is_completed_too() {
    let cx = running(config(Format::VmwareGoKcl));
    let mut leases = table(&cx);
    let shards = [closed(shard("parent", &[])), shard("child", &["parent"])];
    lease_table::learn_lineage(&mut leases, &cx, &shards, cx.now());
    shows(&cx, &mut leases, bare("parent"));
    assert_eq!(leases.row("parent").unwrap().children, ["child".into()]);
    shows(&cx, &mut leases, bare("other"));
    assert_eq!(leases.row("other").unwrap().range, None);
}

#[test]
fn a_shard_is_forgotten_when_several_lists_in_a_row_lack_it() {
    let mut cx = running(config(Format::VmwareGoKcl));
    let mut leases = table(&cx);
    shows(&cx, &mut leases, ended("old", &[]));
    let (key, began) = ("old".into(), cx.now());
    assert_eq!(leases.lineage().still_listed(&key, began), None, "nothing was listed");
    let lacks = |cx: &Context, leases: &mut LeaseTable| {
        lease_table::learn_lineage(leases, cx, &[shard("new", &[])], cx.now())
    };
    lacks(&cx, &mut leases);
    assert_eq!(leases.lineage().still_listed(&key, began), Some(true), "a list may lag");
    assert!(!leases.lineage().needs_next_list(&cx, &key), "the last list is of now");
    cx.later(cx.config().stream_lag.times(9));
    assert!(leases.lineage().needs_next_list(&cx, &key));
    lacks(&cx, &mut leases);
    assert_eq!(leases.lineage().still_listed(&key, began), Some(true), "two wrong lists may lie far apart");
    while leases.lineage().still_listed(&key, began) == Some(true) {
        assert!(cx.now().since(began) < cx.config().stream_lag.times(11));
        cx.later(cx.config().stream_lag.per(2));
        lacks(&cx, &mut leases);
    }
    assert!(!leases.lineage().needs_next_list(&cx, &key));
    lease_table::learn_lineage(&mut leases, &cx, &[shard("old", &[])], cx.now());
    assert_eq!(leases.lineage().still_listed(&key, began), Some(true), "it is listed again");
}

#[test]
fn a_parent_without_a_row_is_unread_while_a_stream_may_have_it() {
    let mut cx = running(config(Format::VmwareGoKcl));
    let mut leases = table(&cx);
    let child = [shard("child", &["parent"])];
    lease_table::learn_lineage(&mut leases, &cx, &child, cx.now());
    assert!(leases.lineage().is_unread(&mut cx, &"parent".into()));
    assert!(cx.did().is_nothing(), "it was listed just now");
    cx.later(cx.config().scan_interval);
    assert!(leases.lineage().is_unread(&mut cx, &"parent".into()));
    assert_eq!(cx.did().requests(), [Request::ListShards(StreamIx::ONLY, ListReason::ParentWithoutLease)]);
    lease_table::learn_lineage(&mut leases, &cx, &child, cx.now());
    let began = cx.now();
    while leases.lineage().is_unread(&mut cx, &"parent".into()) {
        assert!(cx.now().since(began) < cx.config().stream_lag.times(2));
        cx.later(cx.config().stream_lag.per(2));
        lease_table::learn_lineage(&mut leases, &cx, &child, cx.now());
    }
}
