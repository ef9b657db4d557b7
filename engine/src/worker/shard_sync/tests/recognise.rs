//! Whether the leases are of this stream.

use super::{listed, page};
use crate::config::{Config, InitialPosition};
use crate::format::Format;
use crate::notice::{Fatal, Notice};
use crate::position::Checkpoint;
use crate::row::LeaseRow;
use crate::shard::Shard;
use crate::stream_identity::StreamIdentity;
use crate::time::Wall;
use crate::worker::context::{Context, Request};
use crate::worker::lease_table::LeaseTable;
use crate::worker::shard_sync::{Listed, ShardSync};
use crate::worker::stream_set::StreamIx;
use crate::worker::testing::{
    Did, at, closed, config, ended, row, seconds, shard, shows, starting, table, tenths,
};

fn beginning() -> (Context, LeaseTable, ShardSync) {
    let cx = starting(config(Format::Kcl));
    let leases = table(&cx);
    (cx, leases, ShardSync::new(StreamIx::ONLY))
}

/// Whether a list of these shards is used.
fn recognises(cx: &mut Context, leases: &mut LeaseTable, sync: &mut ShardSync, shards: &[Shard]) -> bool {
    let listed = listed(cx, sync, shards);
    sync.recognises(cx, leases, &listed)
}

fn is_of_another_stream(did: &Did) -> bool {
    matches!(did.requests(), [Request::LoseStream(_, Fatal::OtherStream { .. })])
}

#[test]
fn leases_of_listed_shards_are_recognised() {
    let (mut cx, mut leases, mut sync) = beginning();
    shows(&cx, &mut leases, row("a"));
    assert!(recognises(&mut cx, &mut leases, &mut sync, &[shard("a", &[])]));
    assert!(cx.has_recognised(StreamIx::ONLY) && cx.did().is_nothing());
}

#[test]
fn another_shards_hash_range_stops_the_worker_at_a_second_look() {
    let (mut cx, mut leases, mut sync) = beginning();
    let range = Some(tenths(0, 5));
    shows(&cx, &mut leases, LeaseRow { range, ..row("a") });
    assert!(!recognises(&mut cx, &mut leases, &mut sync, &[shard("a", &[])]));
    assert!(cx.did().is_nothing(), "one answer may be wrong");
    let pause = sync.wake_at().since(cx.now());
    assert!(pause <= cx.poll_pause(), "{pause}");

    cx.later(pause);
    sync.step(&mut cx);
    let op = cx.did().op();
    let second = sync.on_page(&mut cx, &leases, op, page(&[shard("a", &[])], false));
    let second = second.expect("the only page");
    cx.did();
    assert!(!sync.recognises(&mut cx, &mut leases, &second));
    assert!(is_of_another_stream(&cx.did()) && !cx.has_recognised(StreamIx::ONLY));
}

#[test]
fn a_worker_that_knows_its_stream_ignores_one_strange_list() {
    let (mut cx, mut leases, mut sync) = beginning();
    cx.set_recognised(StreamIx::ONLY);
    shows(&cx, &mut leases, row("a"));
    let half = Shard { range: tenths(0, 5), ..shard("a", &[]) };
    for _ in 0..5 {
        assert!(!recognises(&mut cx, &mut leases, &mut sync, std::slice::from_ref(&half)));
        cx.later(cx.config().scan_interval);
        assert!(recognises(&mut cx, &mut leases, &mut sync, &[shard("a", &[])]));
        cx.later(cx.config().scan_interval);
    }
    assert!(cx.did().is_nothing());
}

#[test]
fn an_early_end_is_doubted_until_a_later_list_agrees() {
    let (mut cx, mut leases, mut sync) = beginning();
    shows(&cx, &mut leases, ended("a", &[]));
    assert!(!recognises(&mut cx, &mut leases, &mut sync, &[shard("a", &[])]));
    assert!(cx.did().is_nothing(), "the list may lag");

    cx.later(cx.config().scan_interval);
    let mut lagged = sync.recognition.clone();
    let fresh = listed(&mut cx, &mut sync, &[closed(shard("a", &[]))]);
    assert!(lagged.judge(&mut cx, &mut leases, &fresh));
    assert!(!recognises(&mut cx, &mut leases, &mut sync, &[shard("a", &[])]));
    assert!(is_of_another_stream(&cx.did()));
}

#[test]
fn an_unlisted_shards_lease_delays_recognition_by_a_scan() {
    let (mut cx, mut leases, mut sync) = beginning();
    shows(&cx, &mut leases, row("trimmed"));
    assert!(!recognises(&mut cx, &mut leases, &mut sync, &[shard("a", &[])]));
    cx.later(cx.config().scan_interval);
    assert!(recognises(&mut cx, &mut leases, &mut sync, &[shard("a", &[])]));
    assert!(cx.did().is_nothing());
}

#[test]
fn leases_that_begin_elsewhere_than_configured_are_told_once() {
    let mut cx = starting(Config { initial_position: InitialPosition::Latest, ..config(Format::Kcl) });
    let (mut leases, mut sync) = (table(&cx), ShardSync::new(StreamIx::ONLY));
    shows(&cx, &mut leases, row("a"));
    sync.on_first_scan(&cx, &leases);
    for told in [1, 0] {
        assert!(recognises(&mut cx, &mut leases, &mut sync, &[shard("a", &[])]));
        let did = cx.did();
        let continued = |notice: &&Notice| matches!(notice, Notice::Continued { leases: 1, .. });
        assert_eq!(did.notices().iter().filter(continued).count(), told);
    }
}

#[test]
fn a_row_of_another_time_than_the_configured_begins_elsewhere() {
    for (began, elsewhere) in [(None, 0), (Some(Wall(7)), 0), (Some(Wall(8)), 1)] {
        let mut cx = starting(Config {
            initial_position: InitialPosition::AtTimestamp(Wall(7)),
            ..config(Format::Kcl)
        });
        let (mut leases, mut sync) = (table(&cx), ShardSync::new(StreamIx::ONLY));
        let checkpoint = Checkpoint::AtTimestamp;
        shows(&cx, &mut leases, LeaseRow { checkpoint, began, ..row("a") });
        sync.on_first_scan(&cx, &leases);
        assert!(recognises(&mut cx, &mut leases, &mut sync, &[shard("a", &[])]));
        let told = cx.did().told().contains(&"continued");
        assert_eq!(told, elsewhere > 0, "{began:?}");
    }
}

/// Shards whose numbers begin at 100.
fn shards(ids: &[&str]) -> Vec<Shard> {
    let starting = 100.into();
    ids.iter().map(|id| Shard { starting, ..shard(id, &[]) }).collect()
}

fn placed(key: &str, number: u64) -> LeaseRow {
    LeaseRow { checkpoint: Checkpoint::At(at(number)), ..row(key) }
}

/// So much time passes, and the shards are listed once more if a second look is due.
fn second_look(cx: &mut Context, leases: &mut LeaseTable, sync: &mut ShardSync, shards: &[Shard]) -> bool {
    let due = sync.wake_at();
    cx.later(due.since(cx.now()));
    sync.step(cx);
    let op = cx.did().op();
    let listed = sync.on_page(cx, leases, op, page(shards, false));
    cx.did();
    is_used(cx, leases, sync, &listed.expect("the only page"))
}

/// Whether a list is used. Leases are compared with it if so.
fn is_used(cx: &mut Context, leases: &mut LeaseTable, sync: &mut ShardSync, listed: &Listed) -> bool {
    let used = sync.recognises(cx, leases, listed);
    let did = cx.did();
    if used {
        sync.compare(cx, leases, listed);
        cx.did();
    }
    assert!(did.is_nothing());
    used
}

#[test]
fn an_impossible_checkpoint_keeps_one_lease_from_being_taken() {
    let (mut cx, mut leases, mut sync) = beginning();
    let all = shards(&["a", "b", "c"]);
    for row in [placed("a", 150), placed("b", 160), placed("c", 7)] {
        shows(&cx, &mut leases, row);
    }
    assert!(!recognises(&mut cx, &mut leases, &mut sync, &all), "one answer may be wrong");
    let pause = sync.wake_at().since(cx.now());
    assert!(pause <= cx.poll_pause(), "{pause}");
    assert!(second_look(&mut cx, &mut leases, &mut sync, &all));
    assert!(cx.has_recognised(StreamIx::ONLY));
    let spoiled =
        |leases: &LeaseTable, key: &str| leases.get(leases.find(key).unwrap()).unwrap().is_spoiled();
    assert!(spoiled(&leases, "c") && !spoiled(&leases, "a"));

    cx.did();
    sync.tell_spoiled(&mut cx, &leases);
    assert_eq!(cx.did().told(), ["spoiled"]);
    sync.tell_spoiled(&mut cx, &leases);
    assert!(cx.did().is_nothing(), "it is told ever more seldom");
    cx.later(cx.config().scan_interval);
    sync.tell_spoiled(&mut cx, &leases);
    assert_eq!(cx.did().told(), ["spoiled"]);

    // An operator puts it at a place.
    let mended = LeaseRow { counter: 1, ..row("c") };
    shows(&cx, &mut leases, mended);
    sync.tell_spoiled(&mut cx, &leases);
    assert!(cx.did().is_nothing() && sync.wake_at() <= cx.now());
    assert!(spoiled(&leases, "c"), "a listing is to say that");
    assert!(second_look(&mut cx, &mut leases, &mut sync, &all));
    assert!(!spoiled(&leases, "c"));
}

#[test]
fn a_row_at_an_open_shards_end_is_told_by_a_later_list_alone() {
    let (mut cx, mut leases, mut sync) = beginning();
    let all = shards(&["a", "b"]);
    for row in [placed("a", 150), ended("b", &[])] {
        shows(&cx, &mut leases, row);
    }
    let first = listed(&mut cx, &mut sync, &all);
    assert!(is_used(&mut cx, &mut leases, &mut sync, &first), "the rest is read");
    sync.listing.end();
    sync.tell_spoiled(&mut cx, &leases);
    assert!(cx.did().is_nothing(), "the list may lag");
    assert_eq!(sync.recognition.look_at(), cx.now() + cx.config().stream_lag);
    assert!(second_look(&mut cx, &mut leases, &mut sync, &all));
    sync.tell_spoiled(&mut cx, &leases);
    let did = cx.did();
    assert_eq!(did.told(), ["spoiled"]);
    let sentence = did.notices()[0].to_string();
    for part in ["row of b", "its shard is open", "admin rewind --shard b", "doctor --repair"] {
        assert!(sentence.contains(part), "{part:?} in {sentence:?}");
    }
    // The shard has ended by now.
    let closed_b = [all[0].clone(), closed(all[1].clone())];
    let third = listed(&mut cx, &mut sync, &closed_b);
    assert!(is_used(&mut cx, &mut leases, &mut sync, &third));
    cx.later(cx.config().scan_interval);
    sync.tell_spoiled(&mut cx, &leases);
    assert!(cx.did().is_nothing());
}

#[test]
fn most_rows_are_spoiled_only_after_a_later_description() {
    let (mut cx, mut leases, mut sync) = beginning();
    let identity = StreamIdentity::new("arn:aws:kinesis:us-east-1:1:stream/orders", Wall(1_000));
    cx.set_said(StreamIx::ONLY, identity.clone());
    cx.set_identified(StreamIx::ONLY);
    let all = shards(&["a", "b", "c"]);
    for row in [placed("a", 150), ended("b", &[]), ended("c", &[])] {
        let stream = identity.clone();
        shows(&cx, &mut leases, LeaseRow { stream, ..row });
    }
    cx.did();
    let mut look = |cx: &mut Context| {
        cx.later(cx.config().stream_lag);
        sync.listing.end();
        let listed = listed(cx, &mut sync, &all);
        cx.did();
        let used = sync.recognises(cx, &mut leases, &listed);
        (used, cx.did().requests().to_vec())
    };
    let doubt = vec![Request::DoubtStream(StreamIx::ONLY)];
    for _ in 0..5 {
        assert_eq!(look(&mut cx), (false, doubt.clone()), "the stream may be made anew");
    }
    cx.set_described(StreamIx::ONLY, cx.now());
    assert_eq!(look(&mut cx), (true, vec![]));
}

#[test]
fn rows_that_go_on_changing_are_looked_at_more_seldom() {
    let (mut cx, mut leases, mut sync) = beginning();
    let all = shards(&["a", "b", "c"]);
    for row in [placed("a", 150), placed("b", 160), placed("c", 7)] {
        shows(&cx, &mut leases, row);
    }
    assert!(!recognises(&mut cx, &mut leases, &mut sync, &all));
    assert!(second_look(&mut cx, &mut leases, &mut sync, &all));
    let (mut listings, mut told) = (0, 0);
    for second in 1..=60 {
        let counter = second;
        let row = placed("c", 7 + second % 2);
        shows(&cx, &mut leases, LeaseRow { counter, ..row });
        cx.later(seconds(1));
        sync.tell_spoiled(&mut cx, &leases);
        told += cx.did().told().len();
        if sync.wake_at() <= cx.now() {
            listings += 1;
            sync.listing.end();
            let listed = listed(&mut cx, &mut sync, &all);
            sync.recognition.looks_again();
            sync.recognises(&mut cx, &mut leases, &listed);
            cx.did();
        }
    }
    assert!(listings <= 12, "{listings}");
    assert!(told > 0);
}
