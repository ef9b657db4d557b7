//! Removing finished leases.

use crate::config::Config;
use crate::format::Format;
use crate::position::Checkpoint;
use crate::row::{Change, LeaseRow};
use crate::time::Span;
use crate::worker::context::{Context, Request};
use crate::worker::lease_table::{self, BesideLane, LeaseTable};
use crate::worker::shard_sync::ShardSync;
use crate::worker::stream_set::StreamIx;
use crate::worker::testing::{at, config, ended, row, running, shard, shows, stage, table};

fn begun(key: &str) -> LeaseRow {
    LeaseRow { checkpoint: Checkpoint::At(at(7)), ..row(key) }
}

fn removed(cx: &mut Context, leases: &LeaseTable, deputy: u32) -> Vec<String> {
    ShardSync::new(StreamIx::ONLY).clean_up(cx, leases, deputy);
    let key = |request: &Request| match request {
        Request::WriteRow { change: Change::Delete { key, .. }, .. } => key.to_string(),
        other => panic!("expected a removal, found {other:?}"),
    };
    cx.did().requests().iter().map(key).collect()
}

#[test]
fn a_finished_lease_goes_after_the_delay_with_children_begun() {
    let (mut cx, mut leases) = stage();
    shows(&cx, &mut leases, ended("a", &["b", "c"]));
    shows(&cx, &mut leases, begun("b"));
    shows(&cx, &mut leases, row("c"));
    cx.later(cx.config().cleanup_delay);
    assert!(removed(&mut cx, &leases, 0).is_empty(), "a child has not begun");
    shows(&cx, &mut leases, begun("c"));
    assert_eq!(removed(&mut cx, &leases, 0), ["a"]);
    assert!(removed(&mut cx, &leases, 1).is_empty(), "a deputy waits for longer");
    cx.later(cx.config().cleanup_delay);
    assert_eq!(removed(&mut cx, &leases, 1), ["a"]);
}

/// The answer that ended "a" named "b" alone. The row of "c" was made when a list of the shards showed "c".
#[test]
fn a_finished_lease_stays_while_an_unnamed_child_has_not_begun() {
    let (mut cx, mut leases) = stage();
    let child = |row: LeaseRow| LeaseRow { parents: vec!["a".into()], ..row };
    shows(&cx, &mut leases, ended("a", &["b"]));
    shows(&cx, &mut leases, child(begun("b")));
    shows(&cx, &mut leases, child(row("c")));
    cx.later(cx.config().cleanup_delay);
    assert!(removed(&mut cx, &leases, 0).is_empty());
    shows(&cx, &mut leases, child(begun("c")));
    assert_eq!(removed(&mut cx, &leases, 0), ["a"]);
}

#[test]
fn a_finished_lease_stays_beside_its_parent_or_without_children() {
    let (mut cx, mut leases) = stage();
    let parents = vec!["grandparent".into()];
    shows(&cx, &mut leases, LeaseRow { parents, ..ended("a", &["b"]) });
    shows(&cx, &mut leases, ended("grandparent", &[]));
    shows(&cx, &mut leases, begun("b"));
    cx.later(cx.config().cleanup_delay);
    assert!(removed(&mut cx, &leases, 0).is_empty());
    leases.wrote_beside(&cx, "grandparent", BesideLane::Removed);
    assert_eq!(removed(&mut cx, &leases, 0), ["a"]);
}

#[test]
fn a_lease_stays_until_forgotten_where_absent_rows_are_unread() {
    let mut cx = running(config(Format::VmwareGoKcl));
    let mut leases = table(&cx);
    shows(&cx, &mut leases, ended("a", &["b"]));
    shows(&cx, &mut leases, begun("b"));
    cx.later(cx.config().cleanup_delay);
    for _ in 1..cx.config().audit_confidence {
        lease_table::learn_lineage(&mut leases, &cx, &[shard("b", &["a"])], cx.now());
        assert!(removed(&mut cx, &leases, 0).is_empty());
        cx.later(cx.config().stream_lag.per(2));
    }
    lease_table::learn_lineage(&mut leases, &cx, &[shard("b", &["a"])], cx.now());
    assert_eq!(removed(&mut cx, &leases, 0), ["a"]);
}

#[test]
fn without_a_delay_or_where_rows_stay_nothing_is_removed() {
    let keeps = Config { cleanup_delay: Span::ZERO, ..config(Format::Kcl) };
    for config in [keeps, config(Format::Kinsumer)] {
        let mut cx = running(config);
        let mut leases = table(&cx);
        shows(&cx, &mut leases, ended("a", &["b"]));
        shows(&cx, &mut leases, begun("b"));
        cx.later(Span::from_secs(100_000));
        assert!(removed(&mut cx, &leases, 0).is_empty());
    }
}
