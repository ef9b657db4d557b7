//! Scenes of limits: how often, and how many at a time.

use crate::rig::{Rig, Trick, asking};
use leasehold_engine::input::{Cause, Outcome, Refusal, Why};
use leasehold_engine::notice::{Fatal, Notice};
use leasehold_engine::output::*;
use leasehold_engine::position::Checkpoint;
use leasehold_engine::row::{Change, LeaseRow};
use leasehold_engine::shard::HashRange;
use leasehold_engine::time::{Mono, Span, Wall};
use std::collections::BTreeSet;

fn sent(rig: &Rig, worker: usize, what: impl Fn(&Effect) -> bool) -> usize {
    let sent = rig.workers[worker].sent.iter();
    sent.filter(|(_, effect)| what(effect)).count()
}

/// Found by simulation: a worker without any read while its stream was gone went on with a new stream of the same name.
#[test]
fn a_stream_made_anew_is_noticed_though_no_read_tells_of_it() {
    let mut rig = Rig::new(2, 1);
    rig.secs(20);
    let reads = |effect: &Effect| matches!(effect, Effect::Stream(StreamOp::GetRecords { .. }));
    rig.workers[0].trap = Some(Box::new(move |effect| reads(effect).then_some(Trick::Hang)));
    rig.secs(2);
    rig.stream.created = Some(Wall(99));
    rig.secs(120);
    let notices = &rig.workers[0].notices;
    let gone = notices.iter().any(|(_, notice)| matches!(notice, Notice::Fatal(Fatal::StreamGone { .. })));
    assert!(gone, "{notices:?}");
}

#[test]
fn a_failed_look_is_repeated_soon_however_often_one_failed() {
    let mut rig = Rig::new(1, 1);
    let mut looks = 0;
    rig.workers[0].trap = Some(Box::new(move |effect| match effect {
        Effect::Stream(StreamOp::Describe) => {
            looks += 1;
            let fails = looks < 8 || looks == 9;
            fails.then_some(Trick::Instead(Outcome::NotSent(Cause::Throttled)))
        }
        _ => None,
    }));
    rig.secs(240);
    let looks = |(_, effect): &&(Mono, Effect)| matches!(effect, Effect::Stream(StreamOp::Describe));
    let at: Vec<Mono> = (rig.workers[0].sent.iter().filter(looks)).map(|(at, _)| *at).collect();
    // The first was before the worker began to scan. Seven failed, the next did not, one failed.
    assert!(at.len() >= 11, "{at:?}");
    assert!(at[10].since(at[9]) <= rig.config.retry_min().times(2), "{at:?}");
}

#[test]
fn a_fleet_looks_at_its_stream_about_once_a_minute() {
    for workers in [1, 4] {
        let mut rig = Rig::new(4, workers);
        rig.secs(1_800);
        let looks = |effect: &Effect| matches!(effect, Effect::Stream(StreamOp::Describe));
        let looks: usize = (0..workers as usize).map(|w| sent(&rig, w, looks)).sum();
        assert!((20..=31 + workers as usize).contains(&looks), "{looks}");
    }
}

/// Found by simulation: a listing that ends during a scan leads to a choice of its own, and so does the scan.
#[test]
fn a_steal_during_a_scan_counts_when_the_scan_ends() {
    let mut rig = Rig::new(8, 2);
    rig.secs(60);
    let mut scans = 0;
    let worker = rig.join_trapped(Some(Box::new(move |effect| match effect {
        Effect::Stream(StreamOp::ListShards { .. }) => Some(Trick::Hang),
        Effect::Table(TableOp::Scan { .. }) => {
            scans += 1;
            (scans > 1).then_some(Trick::Hang)
        }
        _ => None,
    })));
    // The first scan asks for a listing, which is answered while the second is under way.
    while rig.workers[worker].hung.len() < 2 {
        rig.secs(1);
    }
    rig.release(worker);
    // The owner has renewed it since; following it is no second steal.
    let stolen: BTreeSet<_> = (rig.workers[worker].sent.iter())
        .filter_map(|(_, effect)| match effect {
            Effect::Table(TableOp::Write(Change::Take { key, .. })) => Some(key),
            _ => None,
        })
        .collect();
    assert_eq!(stolen.len(), rig.config.max_steals() as usize);
}

/// Found by simulation: many ended shards hurried the scans, and after each scan the stream was listed for the sake of
/// one hole.
#[test]
fn a_hole_is_not_looked_into_after_every_hurried_scan() {
    let mut rig = Rig::new(2, 1);
    rig.secs(60);
    let lost = Rig::id(1).to_lease();
    rig.workers[0].alive = false;
    rig.table.rows.as_mut().unwrap().remove(&lost);
    let worker = rig.join_trapped(Some(Box::new(move |effect| match effect {
        Effect::Table(TableOp::Write(Change::Create(row))) if row.key == lost => {
            Some(Trick::Instead(Outcome::NotSent(Cause::Throttled)))
        }
        _ => None,
    })));
    rig.secs(100);
    let scans = |effect: &Effect| matches!(effect, Effect::Table(TableOp::Scan { .. }));
    let lists = |effect: &Effect| matches!(effect, Effect::Stream(StreamOp::ListShards { .. }));
    let before = (sent(&rig, worker, scans), sent(&rig, worker, lists));
    let mut shard = 0;
    for _ in 0..25 {
        shard = rig.split(shard).0;
        rig.secs(4);
    }
    let scanned = sent(&rig, worker, scans) - before.0;
    let listed = sent(&rig, worker, lists) - before.1;
    assert!(scanned > 20, "{scanned}");
    assert!((4..=11).contains(&listed), "{listed} listings in five scan intervals");
}

/// Found by simulation: where a scan takes long, few finished leases were removed after each.
#[test]
fn finished_leases_are_removed_until_the_next_scan_ends() {
    let mut rig = Rig::new(1, 0);
    let last = Rig::id(0);
    let mut rows = vec![LeaseRow::new(last.to_lease(), Checkpoint::Latest)];
    for n in 1..=30 {
        let mut row = LeaseRow::new(Rig::id(n).to_lease(), Checkpoint::ShardEnd);
        row.children = vec![last.clone()];
        rows.push(row);
    }
    rows[0].range = Some(HashRange::ALL);
    let table = rig.table.rows.as_mut().unwrap();
    table.extend(rows.into_iter().map(|row| (row.key.clone(), row)));
    rig.configure(|config| {
        config.with_cleanup_delay(Span::from_secs(64)).with_max_creates(1).with_scan_page_limit(1)
    });
    rig.join_trapped(Some(Box::new(|effect| {
        let slow =
            matches!(effect, Effect::Table(TableOp::Scan { .. } | TableOp::Write(Change::Delete { .. })));
        slow.then_some(Trick::Hang)
    })));
    // A page every four seconds, and a removal: the first scan shows the finished shards, the second scan confirms
    // them.
    for _ in 0..3 * 31 {
        rig.secs(4);
        rig.release(0);
    }
    let left = rig.table.rows.as_ref().unwrap().len();
    assert!(left < 8, "{left} rows are left");
}

/// The guide's chapter on operations states these numbers; busy shards cost no more writes than idle shards.
#[test]
fn an_hour_of_a_fleet_costs_what_the_guide_says() {
    const SHARDS: u32 = 8;
    const WORKERS: u32 = 2;
    for busy in [false, true] {
        let mut rig = Rig::new(SHARDS, 0);
        rig.configure(|_| asking());
        for _ in 0..WORKERS {
            rig.join();
        }
        rig.secs(60);
        let before: Vec<usize> = rig.workers.iter().map(|worker| worker.sent.len()).collect();
        for _ in 0..3_600 {
            if busy {
                (0..SHARDS).for_each(|shard| rig.put(shard, 1));
            }
            rig.secs(1);
        }
        for (worker, before) in before.into_iter().enumerate() {
            let count = |what: fn(&Effect) -> bool| {
                let sent = rig.workers[worker].sent[before..].iter();
                sent.filter(|(_, effect)| what(effect)).count() as u32
            };
            let n = SHARDS / WORKERS;
            let writes = count(|effect| matches!(effect, Effect::Table(TableOp::Write(_))));
            assert!((1_050 * n..=1_092 * n).contains(&writes), "{writes} writes of {n} leases, busy: {busy}");
            let reads = count(|effect| matches!(effect, Effect::Stream(StreamOp::GetRecords { .. })));
            assert!((3_600 * n - n..=14_400 * n).contains(&reads), "{reads} reads, busy: {busy}");
            let scans = count(|effect| matches!(effect, Effect::Table(TableOp::Scan { .. })));
            assert!((180..=7_200).contains(&scans), "{scans} scans, busy: {busy}");
            let looks = count(|effect| matches!(effect, Effect::Stream(StreamOp::Describe)));
            assert!((20..=40).contains(&looks), "{looks} looks at the stream, busy: {busy}");
        }
    }
}

/// Writes of the first lease are refused for `secs` seconds, though its row meets their conditions. Gives the number of
/// writes and reads of this lease sent by each worker in this time.
fn refuse(rig: &mut Rig, secs: u64, shows: bool) -> Vec<usize> {
    let key = Rig::id(0).to_lease();
    let row = rig.table.read(&key);
    for worker in &mut rig.workers {
        let (key, row) = (key.clone(), row.clone().filter(|_| shows));
        worker.trap = Some(Box::new(move |effect| match effect {
            Effect::Table(TableOp::Write(change)) if *change.key() == key => {
                let current = row.clone().map(Box::new);
                let detail = "The conditional request failed".to_owned();
                let why = Why::ConditionFailed;
                Some(Trick::Instead(Outcome::Refused(Refusal { why, current, detail })))
            }
            _ => None,
        }));
    }
    let since = rig.now;
    rig.secs(secs);
    let mut counts = Vec::new();
    for worker in &mut rig.workers {
        worker.trap = None;
        let of_lease = |effect: &Effect| match effect {
            Effect::Table(TableOp::Write(change)) => *change.key() == key,
            Effect::Table(TableOp::Read { key: read }) => *read == key,
            _ => false,
        };
        let sent = worker.sent.iter().filter(|(at, effect)| *at >= since && of_lease(effect));
        counts.push(sent.count());
    }
    counts
}

#[test]
fn writes_refused_without_a_reason_are_repeated_more_seldom() {
    for shows in [false, true] {
        // The owner.
        let mut rig = Rig::new(2, 1);
        rig.put(0, 5);
        rig.secs(30);
        let sent = refuse(&mut rig, 60, shows);
        assert!((8..60).contains(&sent[0]), "an owner: {sent:?}, the row is shown: {shows}");
        rig.put(0, 5);
        rig.put(1, 5);
        rig.secs(60);
        rig.assert_all_processed();

        // A worker that finds the lease free.
        let mut rig = Rig::new(2, 1);
        rig.secs(30);
        rig.workers[0].alive = false;
        rig.workers.clear();
        let row = rig.table.rows.as_mut().and_then(|rows| rows.get_mut(&Rig::id(0).to_lease()));
        row.expect("a row").owner = None;
        rig.join();
        let sent = refuse(&mut rig, 60, shows);
        assert!((8..100).contains(&sent[0]), "a taker: {sent:?}, the row is shown: {shows}");
        assert!(rig.owner(1).is_some(), "the other lease is taken");
        rig.put(0, 5);
        rig.secs(60);
        rig.assert_all_processed();
    }
}

#[test]
fn a_claim_refused_without_a_reason_is_repeated_more_seldom() {
    let mut rig = Rig::new(2, 0);
    rig.config = asking();
    rig.join();
    rig.secs(30);
    rig.join();
    let sent = refuse(&mut rig, 60, false);
    assert!(sent[1] < 60, "{sent:?}");
    rig.secs(60);
    assert!(rig.owner(0) != rig.owner(1), "the leases are shared in the end");
}
