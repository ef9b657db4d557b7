//! Whether the leases are of this stream.

use super::{listed, page};
use crate::config::{Config, InitialPosition};
use crate::format::Format;
use crate::notice::{Fatal, Notice};
use crate::position::Checkpoint;
use crate::row::LeaseRow;
use crate::shard::Shard;
use crate::time::Wall;
use crate::worker::context::{Context, Request};
use crate::worker::lease_table::LeaseTable;
use crate::worker::shard_sync::ShardSync;
use crate::worker::stream_set::StreamIx;
use crate::worker::testing::{Did, closed, config, ended, row, shard, shows, starting, table, tenths};

fn beginning() -> (Context, LeaseTable, ShardSync) {
    let cx = starting(config(Format::Kcl));
    let leases = table(&cx);
    (cx, leases, ShardSync::new(StreamIx::ONLY))
}

fn is_of_another_stream(did: &Did) -> bool {
    matches!(
        did.requests(),
        [Request::LoseStream(_, Fatal::OtherStream { .. })]
    )
}

#[test]
fn leases_of_listed_shards_are_recognised() {
    let (mut cx, mut leases, mut sync) = beginning();
    shows(&cx, &mut leases, row("a"));
    let listed = listed(&mut cx, &mut sync, &[shard("a", &[])]);
    assert!(sync.recognises(&mut cx, &leases, &listed));
    assert!(cx.has_recognised(StreamIx::ONLY) && cx.did().is_nothing());
}

#[test]
fn a_lease_with_the_hash_range_of_another_shard_stops_the_worker_at_the_second_look() {
    let (mut cx, mut leases, mut sync) = beginning();
    let range = Some(tenths(0, 5));
    shows(&cx, &mut leases, LeaseRow { range, ..row("a") });
    let first = listed(&mut cx, &mut sync, &[shard("a", &[])]);
    assert!(!sync.recognises(&mut cx, &leases, &first));
    assert!(cx.did().is_nothing(), "one answer may be wrong");
    let pause = sync.wake_at().since(cx.now());
    assert!(pause <= cx.poll_pause(), "{pause}");

    cx.later(pause);
    sync.step(&mut cx);
    let op = cx.did().op();
    let second = sync.on_page(&mut cx, &leases, op, page(&[shard("a", &[])], false));
    let second = second.expect("the only page");
    cx.did();
    assert!(!sync.recognises(&mut cx, &leases, &second));
    assert!(is_of_another_stream(&cx.did()) && !cx.has_recognised(StreamIx::ONLY));
}

#[test]
fn a_worker_that_knows_its_stream_does_nothing_by_a_list_that_contradicts_a_lease_once() {
    let (mut cx, mut leases, mut sync) = beginning();
    cx.set_recognised(StreamIx::ONLY);
    shows(&cx, &mut leases, row("a"));
    let half = Shard {
        range: tenths(0, 5),
        ..shard("a", &[])
    };
    for _ in 0..5 {
        let wrong = listed(&mut cx, &mut sync, std::slice::from_ref(&half));
        assert!(!sync.recognises(&mut cx, &leases, &wrong));
        cx.later(cx.config().scan_interval);
        let right = listed(&mut cx, &mut sync, &[shard("a", &[])]);
        assert!(sync.recognises(&mut cx, &leases, &right));
        cx.later(cx.config().scan_interval);
    }
    assert!(cx.did().is_nothing());
}

#[test]
fn a_lease_that_has_ended_before_its_shard_is_doubted_until_a_later_list_agrees() {
    let (mut cx, mut leases, mut sync) = beginning();
    shows(&cx, &mut leases, ended("a", &[]));
    let first = listed(&mut cx, &mut sync, &[shard("a", &[])]);
    assert!(!sync.recognises(&mut cx, &leases, &first));
    assert!(cx.did().is_nothing(), "the list may lag");

    cx.later(cx.config().scan_interval);
    let mut lagged = sync.recognition.clone();
    let fresh = listed(&mut cx, &mut sync, &[closed(shard("a", &[]))]);
    assert!(lagged.judge(&mut cx, &leases, &fresh));
    let second = listed(&mut cx, &mut sync, &[shard("a", &[])]);
    assert!(!sync.recognises(&mut cx, &leases, &second));
    assert!(is_of_another_stream(&cx.did()));
}

#[test]
fn a_lease_whose_shard_is_not_listed_delays_recognition_by_a_scan_interval() {
    let (mut cx, mut leases, mut sync) = beginning();
    shows(&cx, &mut leases, row("trimmed"));
    let first = listed(&mut cx, &mut sync, &[shard("a", &[])]);
    assert!(!sync.recognises(&mut cx, &leases, &first));
    cx.later(cx.config().scan_interval);
    let second = listed(&mut cx, &mut sync, &[shard("a", &[])]);
    assert!(sync.recognises(&mut cx, &leases, &second));
    assert!(cx.did().is_nothing());
}

#[test]
fn leases_that_begin_elsewhere_than_configured_are_told_once() {
    let mut cx = starting(Config {
        initial_position: InitialPosition::Latest,
        ..config(Format::Kcl)
    });
    let (mut leases, mut sync) = (table(&cx), ShardSync::new(StreamIx::ONLY));
    shows(&cx, &mut leases, row("a"));
    sync.on_first_scan(&cx, &leases);
    for told in [1, 0] {
        let listed = listed(&mut cx, &mut sync, &[shard("a", &[])]);
        assert!(sync.recognises(&mut cx, &leases, &listed));
        let did = cx.did();
        let continued = |notice: &&Notice| matches!(notice, Notice::Continued { leases: 1, .. });
        assert_eq!(did.notices().iter().filter(continued).count(), told);
    }
}

#[test]
fn a_row_that_holds_another_time_than_the_configured_one_begins_elsewhere() {
    for (began, elsewhere) in [(None, 0), (Some(Wall(7)), 0), (Some(Wall(8)), 1)] {
        let mut cx = starting(Config {
            initial_position: InitialPosition::AtTimestamp(Wall(7)),
            ..config(Format::Kcl)
        });
        let (mut leases, mut sync) = (table(&cx), ShardSync::new(StreamIx::ONLY));
        let checkpoint = Checkpoint::AtTimestamp;
        shows(
            &cx,
            &mut leases,
            LeaseRow {
                checkpoint,
                began,
                ..row("a")
            },
        );
        sync.on_first_scan(&cx, &leases);
        let listed = listed(&mut cx, &mut sync, &[shard("a", &[])]);
        assert!(sync.recognises(&mut cx, &leases, &listed));
        let told = cx.did().told().contains(&"continued");
        assert_eq!(told, elsewhere > 0, "{began:?}");
    }
}
