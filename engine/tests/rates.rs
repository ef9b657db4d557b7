//! Scenes of limits: how often, and how many at a time.

use crate::rig::*;
use leasehold_engine::input::{Outcome, Refusal, Why};
use leasehold_engine::notice::{Fatal, Notice};
use leasehold_engine::output::*;
use leasehold_engine::position::Checkpoint;
use leasehold_engine::row::LeaseRow;
use leasehold_engine::time::{Span, Wall};
use std::collections::BTreeSet;

/// Found by simulation: a worker without any read while its stream was gone went on with a new stream of the same name.
#[test]
fn a_stream_made_anew_is_noticed_though_no_read_tells_of_it() {
    let mut rig = Rig::new(2, 1).after(20);
    rig[0].trap(hangs(RECORDS));
    rig.secs(2);
    rig.stream.created = Some(Wall(99));
    rig.secs(120);
    let gone = |notice: &Notice| matches!(notice, Notice::Fatal(Fatal::StreamGone { .. }));
    assert_eq!(rig[0].told(gone), 1, "{:?}", rig[0].notices);
}

#[test]
fn a_failed_look_is_repeated_soon_however_often_one_failed() {
    let mut rig = Rig::new(1, 1);
    let mut looks = 0;
    rig[0].trap(move |effect| {
        looks += u32::from(DESCRIBE_STREAM.is(effect));
        let fails = looks < 8 || looks == 9;
        (DESCRIBE_STREAM.is(effect) && fails).then_some(Trick::THROTTLED)
    });
    rig.secs(240);
    let at = rig[0].sent_at(DESCRIBE_STREAM);
    // The first was before the worker began to scan. Seven failed, the next did not, one failed.
    assert!(at.len() >= 11, "{at:?}");
    assert!(at[10].since(at[9]) <= rig.config.retry_min().times(2), "{at:?}");
}

#[test]
fn a_fleet_looks_at_its_stream_about_once_a_minute() {
    for workers in [1, 4] {
        let rig = Rig::new(4, workers).after(1_800);
        let looks: usize = (0..workers as usize).map(|worker| rig[worker].sent(DESCRIBE_STREAM)).sum();
        assert!((20..=31 + workers as usize).contains(&looks), "{looks}");
    }
}

/// Found by simulation: a listing that ends during a scan leads to a choice of its own, and so does the scan.
#[test]
fn a_steal_during_a_scan_counts_when_the_scan_ends() {
    let mut rig = Rig::new(8, 2).after(60);
    let mut scans = 0;
    let worker = rig.join_trapped(move |effect| {
        scans += u32::from(SCAN.is(effect));
        (LIST.is(effect) || (SCAN.is(effect) && scans > 1)).then_some(Trick::Hang)
    });
    // The first scan asks for a listing, which is answered while the second is under way.
    while rig[worker].hung.len() < 2 {
        rig.secs(1);
    }
    rig.release(worker);
    // The owner has renewed it since; following it is no second steal.
    let takes = rig[worker].changes().filter(|(_, change)| change.verb() == "take");
    let stolen: BTreeSet<_> = takes.map(|(_, change)| change.key()).collect();
    assert_eq!(stolen.len(), rig.config.max_steals() as usize);
}

/// Found by simulation: many ended shards hurried the scans, and after each scan the stream was listed for the sake of
/// one hole.
#[test]
fn a_hole_is_not_looked_into_after_every_hurried_scan() {
    let mut rig = Rig::new(2, 1).after(60);
    rig[0].die();
    rig.rows_mut().remove(&shard_id(1).to_lease());
    let worker = rig.join_trapped(meets(CREATE.of(1), Trick::THROTTLED));
    rig.secs(100);
    let before = (rig[worker].sent(SCAN), rig[worker].sent(LIST));
    let mut shard = 0;
    for _ in 0..25 {
        shard = rig.split(shard).0;
        rig.secs(4);
    }
    let scanned = rig[worker].sent(SCAN) - before.0;
    let listed = rig[worker].sent(LIST) - before.1;
    assert!(scanned > 20, "{scanned}");
    assert!((4..=11).contains(&listed), "{listed} listings in five scan intervals");
}

/// Found by simulation: where a scan takes long, few finished leases were removed after each.
#[test]
fn finished_leases_are_removed_until_the_next_scan_ends() {
    let mut rig = Rig::new(1, 0);
    let last = LeaseRow { checkpoint: Checkpoint::Latest, ..rig.new_row(0) };
    rig.insert(last);
    for n in 1..=30 {
        let ended = LeaseRow::new(shard_id(n).to_lease(), Checkpoint::ShardEnd);
        rig.insert(LeaseRow { children: vec![shard_id(0)], ..ended });
    }
    rig.configure(|config| {
        config.with_cleanup_delay(Span::from_secs(64)).with_max_creates(1).with_scan_page_limit(1)
    });
    rig.join_trapped(hangs(either(SCAN, DELETE)));
    // A page every four seconds, and a removal: the first scan shows the finished shards, the second scan confirms
    // them.
    for _ in 0..3 * 31 {
        rig.secs(4);
        rig.release(0);
    }
    let left = rig.rows().len();
    assert!(left < 8, "{left} rows are left");
}

/// The guide's chapter on operations states these numbers; busy shards cost no more writes than idle shards.
#[test]
fn an_hour_of_a_fleet_costs_what_the_guide_says() {
    const SHARDS: u32 = 8;
    const WORKERS: u32 = 2;
    for busy in [false, true] {
        let mut rig = Rig::of(SHARDS, WORKERS, |_| asking()).after(60);
        (0..WORKERS as usize).for_each(|worker| rig[worker].forget());
        for _ in 0..3_600 {
            if busy {
                rig.put_all(0..SHARDS, 1);
            }
            rig.secs(1);
        }
        for worker in 0..WORKERS as usize {
            let n = (SHARDS / WORKERS) as usize;
            let writes = rig[worker].sent(is_write);
            assert!((1_050 * n..=1_092 * n).contains(&writes), "{writes} writes of {n} leases, busy: {busy}");
            let reads = rig[worker].sent(RECORDS);
            assert!((3_600 * n - n..=14_400 * n).contains(&reads), "{reads} reads, busy: {busy}");
            let scans = rig[worker].sent(SCAN);
            assert!((180..=7_200).contains(&scans), "{scans} scans, busy: {busy}");
            let looks = rig[worker].sent(DESCRIBE_STREAM);
            assert!((20..=40).contains(&looks), "{looks} looks at the stream, busy: {busy}");
        }
    }
}

/// Writes of the first lease are refused for `secs` seconds, though its row meets their conditions. Gives the number of
/// writes and reads of this lease sent by each worker in this time.
fn refuse(rig: &mut Rig, secs: u64, shows: bool) -> Vec<usize> {
    let id = shard_id(0);
    let current = rig.table.read(&id.to_lease()).filter(|_| shows).map(Box::new);
    let detail = "The conditional request failed".to_owned();
    let refusal = Outcome::Refused(Refusal { why: Why::ConditionFailed, current, detail });
    let of_lease = |effect: &Effect| effect.described().1 == Some(shard_id(0).as_str());
    for worker in 0..rig.workers.len() {
        let writes = move |effect: &Effect| is_write(effect) && of_lease(effect);
        rig[worker].trap(meets(writes, Trick::Instead(refusal.clone())));
    }
    let since = rig.now;
    rig.secs(secs);
    let of_table = |effect: &Effect| is_write(effect) || READ.is(effect);
    rig.workers.iter_mut().for_each(|worker| worker.trap = None);
    let counted = |worker| {
        let sent = rig[worker].sent_at(|effect: &Effect| of_table(effect) && of_lease(effect));
        sent.into_iter().filter(|at| *at >= since).count()
    };
    (0..rig.workers.len()).map(counted).collect()
}

#[test]
fn writes_refused_without_a_reason_are_repeated_more_seldom() {
    for shows in [false, true] {
        // The owner.
        let mut rig = Rig::new(2, 1).with_records([0], 5).after(30);
        let sent = refuse(&mut rig, 60, shows);
        assert!((8..60).contains(&sent[0]), "an owner: {sent:?}, the row is shown: {shows}");
        rig.put_all(0..2, 5);
        rig.assert_all_processed_in(60);

        // A worker that finds the lease free.
        let mut rig = Rig::new(2, 1).after(30);
        rig[0].die();
        rig.workers.clear();
        rig.row_mut(0).owner = None;
        rig.join();
        let sent = refuse(&mut rig, 60, shows);
        assert!((8..100).contains(&sent[0]), "a taker: {sent:?}, the row is shown: {shows}");
        assert!(rig.owner(1).is_some(), "the other lease is taken");
        rig.put(0, 5);
        rig.assert_all_processed_in(60);
    }
}

#[test]
fn a_claim_refused_without_a_reason_is_repeated_more_seldom() {
    let mut rig = Rig::of(2, 1, |_| asking()).after(30);
    rig.join();
    let sent = refuse(&mut rig, 60, false);
    assert!(sent[1] < 60, "{sent:?}");
    rig.secs(60);
    assert!(rig.owner(0) != rig.owner(1), "the leases are shared in the end");
}
