//! A worker's notices of leases that do not move, and of tables of a different stream: in scenes.

use crate::rig::*;
use leasehold_engine::input::*;
use leasehold_engine::notice::{Fatal, Notice, Stall};
use leasehold_engine::position::{Checkpoint, Position};
use leasehold_engine::row::LeaseRow;
use leasehold_engine::shard::{HashKey, HashRange};
use leasehold_engine::testkit;
use leasehold_engine::time::Span;

/// The first worker's notices of leases that do not move, in whole seconds.
fn stalls(rig: &Rig) -> Vec<(u64, Stall)> {
    rig[0].news(|notice| match notice {
        Notice::Stalled { idle, why, .. } => Some((idle.0 / 1_000_000, why.clone())),
        _ => None,
    })
}

#[test]
fn a_hanging_handler_is_reported_whenever_the_time_has_doubled() {
    let mut rig = Rig::new(1, 1).after(30);
    rig[0].trap(hangs(DELIVER));
    rig.put(0, 10);
    rig.secs(300);
    let handler = Stall::Handler { attempt: 1 };
    assert_eq!(stalls(&rig), [(60, handler.clone()), (120, handler.clone()), (240, handler)]);
    rig.free(0);
    rig.secs(100);
    assert_eq!((stalls(&rig).len(), rig[0].told(MOVING)), (3, 1));
    rig.assert_all_processed();
}

#[test]
fn a_shard_at_its_tip_has_not_stalled() {
    let rig = Rig::new(2, 1).with_records([0], 10).after(1_000);
    assert_eq!(stalls(&rig), []);
}

#[test]
fn nothing_is_reported_where_nobody_wants_to_know() {
    let mut rig = Rig::of(1, 1, |config| config.with_stall_after(Span::ZERO));
    rig[0].trap(hangs(OPEN));
    rig.secs(1_000);
    assert_eq!(stalls(&rig), []);
}

#[test]
fn every_reason_is_named() {
    let failed = Trick::refused(Why::HandlerFailed);
    let nothing = Trick::reply(Reply::Records(testkit::no_records(5_000)));
    let cut_off = Trick::Instead(Outcome::NotSent(Cause::Network));
    let cases: [(&str, Trap); 6] = [
        ("Opening", Box::new(hangs(OPEN))),
        ("OpenFails", Box::new(meets(OPEN, failed.clone()))),
        ("HandlerFails", Box::new(meets(DELIVER, failed))),
        ("ReadsFail", Box::new(meets(RECORDS, Trick::THROTTLED))),
        ("ReadsEmpty", Box::new(meets(RECORDS, nothing))),
        ("Fenced", Box::new(meets(either(RENEW, CHECKPOINT), cut_off))),
    ];
    for (name, trap) in cases {
        let mut rig = Rig::new(1, 0).with_records([0], 10);
        rig.join();
        rig[0].trap = Some(trap);
        rig.secs(50);
        rig.put(0, 10);
        rig.secs(80);
        let found = stalls(&rig);
        let why = found.first().map(|(_, why)| format!("{why:?}")).unwrap_or_default();
        assert!(why.starts_with(name), "{name}: {found:?}");
    }
}

#[test]
fn a_child_says_which_parent_it_waits_for() {
    let mut rig = Rig::new(1, 1).after(30);
    rig[0].trap(hangs(DELIVER.of(0)));
    rig.put(0, 10);
    let (left, _) = rig.split(0);
    rig.insert(rig.new_row(left));
    rig.secs(150);
    let found = stalls(&rig);
    assert!(found.iter().any(|(_, why)| *why == Stall::Parents(vec![shard_id(0)])), "{found:?}");
}

/// A fleet of one worker; the worker finds a table with this row.
fn begins_with(row: LeaseRow) -> Rig {
    let mut rig = Rig::new(2, 0);
    (0..2).for_each(|shard| rig.insert(rig.new_row(shard)));
    rig.insert(row);
    rig.join();
    rig
}

fn refusal(rig: &Rig) -> Option<String> {
    let refusals = rig[0].news(|notice| match notice {
        Notice::Fatal(fatal @ Fatal::OtherStream { .. }) => Some(fatal.to_string()),
        _ => None,
    });
    refusals.into_iter().next()
}

#[test]
fn a_table_of_another_stream_is_refused_and_left_alone() {
    let key = shard_id(1).to_lease();
    let others = [
        LeaseRow {
            range: Some(HashRange { start: HashKey(5), end: HashKey(9) }),
            ..LeaseRow::new(key.clone(), Checkpoint::TrimHorizon)
        },
        LeaseRow::new(key, Checkpoint::At(Position::of(0.into()))),
    ];
    for other in others {
        let rig = begins_with(other.clone()).after(120);
        let refusal = refusal(&rig).unwrap_or_default();
        assert!(refusal.contains("filled from another stream"), "{other:?}: {refusal:?}");
        assert_eq!(rig[0].sent(is_write), 0, "{other:?}");
    }
}

/// A person ends a row of an open shard in a table that no worker has read from.
#[test]
fn an_end_of_an_open_shard_stops_no_worker_of_a_new_table() {
    let ended = LeaseRow::new(shard_id(1).to_lease(), Checkpoint::ShardEnd);
    let rig = begins_with(ended.clone()).with_records([0], 10).after(120);
    assert_eq!(refusal(&rig), None);
    let named = |notice: &Notice| matches!(notice, Notice::Spoiled { lease, .. } if *lease == ended.key);
    assert!(rig[0].told(named) > 0, "the row is named");
    let read = rig[0].reading.processed.get(&shard_id(0)).map(Vec::len);
    assert_eq!(read, Some(10), "the other shard is read");
}

#[test]
fn a_listing_behind_an_end_is_not_taken_for_another_stream() {
    let mut rig = Rig::new(1, 1).after(30);
    rig.split(0);
    rig.secs(100);
    // A second worker's first listing is older than the end it finds in the table.
    let mut stale = rig.stream.shards[&shard_id(0)].clone();
    stale.ending = None;
    rig.join();
    rig[1].trap(first(1, LIST, Trick::listed([stale])));
    rig.secs(200);
    assert_eq!((rig.owner(1).is_some(), rig.owner(2).is_some()), (true, true));
    assert_ne!(rig.owner(1), rig.owner(2), "the second worker took its share");
}
