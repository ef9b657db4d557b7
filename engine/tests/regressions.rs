//! Scenes of bugs that simulation found, where the world of the bug is too large to be kept.

use crate::rig::*;
use leasehold_engine::config::InitialPosition;
use leasehold_engine::input::{Body, Outcome, Reply, ShardPage, Why};
use leasehold_engine::notice::{Notice, TakeReason};
use leasehold_engine::output::*;
use leasehold_engine::position::{Checkpoint, Position};
use leasehold_engine::row::{Change, LeaseRow};
use leasehold_engine::shard::{HashKey, HashRange};
use leasehold_engine::testkit;
use leasehold_engine::time::{Mono, Span};

/// Found by simulation: with short renewals every row had moved on by the time of the steal, and nothing was ever stolen.
#[test]
fn a_steal_follows_the_owner_s_renewals() {
    let mut rig = Rig::new(2, 1).after(60);
    let steals =
        |effect: &Effect| matches!(effect, Effect::Table(TableOp::Write(Change::Take { from: Some(_), .. })));
    let worker = rig.join_trapped(hangs(steals));
    // Its owner renews the lease every 3.3 s, and so before each of the first attempts arrives.
    let mut attempts = 0;
    for _ in 0..100 {
        rig.secs(4);
        if rig[worker].hung.is_empty() {
            continue;
        }
        attempts += 1;
        if attempts == 4 {
            rig[worker].trap = None;
        }
        rig.release(worker);
    }
    let stolen = |notice: &Notice| matches!(notice, Notice::Took { why: TakeReason::Stolen { .. }, .. });
    let told = (attempts, rig[worker].told(MISSED_TAKE), rig[worker].told(stolen) > 0);
    assert_eq!(told, (4, 0, true), "{:?}", rig[worker].notices);
}

/// Found by simulation: while a scan went on, the leases on its first pages grew old, and live owners were robbed.
#[test]
fn a_slow_scan_makes_nobody_look_dead() {
    let mut rig = Rig::new(4, 1);
    rig.configure(|config| config.with_scan_page_limit(1).with_audit_confidence(1));
    rig.secs(60);
    let scans = |effect: &Effect| matches!(effect, Effect::Table(TableOp::Scan { after: Some(_), .. }));
    let worker = rig.join_trapped(hangs(scans));
    for _ in 0..60 {
        // Longer than a lease lasts.
        rig.secs(12);
        rig.release(worker);
    }
    let reasons = rig[worker].news(|notice| match notice {
        Notice::Took { why, .. } => Some(why),
        Notice::MissedTake { .. } => panic!("{notice:?}"),
        _ => None,
    });
    let stolen = |why: &&TakeReason| matches!(why, TakeReason::Stolen { .. });
    assert_eq!((reasons.len(), reasons.iter().all(stolen)), (2, true), "{reasons:?}");
}

/// Found by simulation: a lease that was to be handed over to us ran out, and the hand-over came before our take. It left the
/// row as the take would have, but for the checkpoint; taken for our own write, what was read before was read again.
#[test]
fn a_hand_over_to_us_is_not_taken_for_our_own_take() {
    let mut rig = Rig::new(1, 0).with_records([0], 10);
    let last = *rig.stream.records[&shard_id(0)].last().unwrap();
    rig.insert(bare(0));
    rig.name([0], "theirs");
    let worker = rig.join_trapped(hangs(TAKE));
    let me = rig[worker].me();
    let row = rig.row_mut(0);
    (row.handing_over, row.owner) = (row.owner.take(), Some(me));
    rig.until_hung(worker, Span::from_secs(1), TAKE);
    let row = rig.row_mut(0);
    (row.handing_over, row.counter) = (None, row.counter + 1);
    row.checkpoint = Checkpoint::At(Position::of(last.into()));
    rig.free(worker);
    rig.secs(60);
    let opened = rig[worker].news(|notice| match notice {
        Notice::Opened { from, .. } => Some(*from),
        _ => None,
    });
    assert_eq!(opened, [Checkpoint::At(Position::of(last.into()))]);
}

/// Found by simulation: an interrupted scan showed rows in an old state, and a lease was created above leases made
/// meanwhile by other workers.
#[test]
fn rows_seen_long_ago_do_not_show_what_is_missing() {
    let mut rig = Rig::of(1, 0, |config| config.with_scan_page_limit(1).with_audit_confidence(1));
    let HashRange { start, end } = HashRange::ALL;
    let (low, high) = (HashKey(end.0 / 2), HashKey(end.0 / 2 + 1));
    let shard = |n, parent: Option<u32>, closed: bool, range| {
        let last = closed.then_some(u64::from(n + 2));
        testkit::shard(shard_id(n), parent.map(shard_id), range, u64::from(n + 1), last)
    };
    let lower = HashRange { start, end: low };
    let upper = HashRange { start: high, end };
    rig.stream.shards.clear();
    [shard(1, None, false, lower), shard(9, None, false, upper)]
        .into_iter()
        .for_each(|shard| rig.stream.insert(shard));
    rig.stream.records.insert(shard_id(2), Vec::new());
    // The lease of 1 was lost.
    [9, 10].into_iter().for_each(|n| rig.insert(bare(n)));
    rig.row_mut(10).checkpoint = Checkpoint::ShardEnd;
    rig.join();
    let planned = |notice: &Notice| matches!(notice, Notice::Planned { create: 1, .. });
    while rig[0].told(planned) == 0 {
        rig.secs(1);
        assert!(rig.now < Mono(1_000_000_000), "the hole is never seen");
    }
    assert!(!rig.has_row(1), "one list is believed");
    // The first page of the next scan is read, and the second one hangs.
    rig[0]
        .trap(hangs(|effect: &Effect| matches!(effect, Effect::Table(TableOp::Scan { after: Some(_), .. }))));
    rig.secs(100);
    assert!(!rig[0].hung.is_empty());
    // Meanwhile another worker read shard 1 to the end, and the child lives.
    rig.stream.shards.insert(shard_id(1), shard(1, None, true, lower));
    rig.stream.shards.insert(shard_id(2), shard(2, Some(1), false, lower));
    rig.insert(bare(2));
    rig.name([2], "theirs");
    rig.free(0);
    for _ in 0..100 {
        rig.secs(1);
        rig.row_mut(2).counter += 1;
        assert!(!rig.has_row(1), "it was read to its end before");
    }
}

/// Found by simulation: many workers listing many pages slow each other down, and none ever had all pages while they
/// were young enough.
#[test]
fn a_listing_that_is_slowed_down_for_ever_comes_to_its_end() {
    let mut rig = Rig::new(1, 0);
    let pages = 40;
    let step = u128::MAX / pages;
    let shard = move |n: u128| {
        let end = HashKey(if n + 1 == pages { u128::MAX } else { (n + 1) * step - 1 });
        let range = HashRange { start: HashKey(n * step), end };
        testkit::shard(shard_id(n as u32), None::<&str>, range, 1, None)
    };
    rig.stream.shards.clear();
    (0..pages).for_each(|n| rig.stream.insert(shard(n)));
    rig.configure(|config| config.with_retry_min(Span::from_secs(1)).with_retry_max(Span::from_secs(2)));
    // At best every second request brings a page, so all pages take more than a scan interval.
    let (mut asked, mut given) = (0u32, 0u128);
    rig.join_trapped(move |effect| {
        let Effect::Stream(StreamOp::ListShards { after, .. }) = effect else {
            return None;
        };
        asked += 1;
        if asked % 2 == 1 {
            return Some(Trick::THROTTLED);
        }
        given = if after.is_none() { 0 } else { given + 1 };
        let (shards, more) = (vec![shard(given)], given + 1 < pages);
        Some(Trick::reply(Reply::Shards(ShardPage { shards, more })))
    });
    rig.secs(600);
    assert_eq!(rig.rows().len() as u128, pages);
}

/// Found by simulation: a steal was executed twice, and between the two an operator assigned the lease to another
/// worker. The second refusal showed the thief as the owner of a row unlike its own, so its steal did not count as a
/// steal, and the thief processed the lease right after its next take.
#[test]
fn a_steal_refused_by_its_own_trace_settles_like_any_other() {
    let mut rig = Rig::new(4, 1).after(60);
    rig.configure(|config| config.with_scan_interval(Span::from_secs(2)).with_stream_lag(Span::from_secs(2)));
    let mut armed = true;
    rig.join_trapped(move |effect| {
        let Effect::Table(TableOp::Write(Change::Take { key, next, checkpoint, to, .. })) = effect else {
            return None;
        };
        std::mem::take(&mut armed).then(|| {
            let mut row = LeaseRow::new(key.clone(), *checkpoint);
            row.counter = *next;
            row.owner = Some("later".into());
            row.handing_over = Some(to.clone());
            Trick::AppliedBut(refused(Why::ConditionFailed, Some(row)))
        })
    });
    while (0..4).all(|shard| rig.owner(shard) == Some(0)) {
        rig.run(Span::from_millis(10));
    }
    let stolen_at = rig.now;
    let shard = (0..4).find(|shard| rig.owner(*shard) == Some(1)).unwrap();
    let row = rig.row_mut(shard);
    (row.handing_over, row.owner) = (row.owner.take(), Some("later".into()));
    rig.secs(60);
    let opened = rig[1].opened(shard);
    let waited = opened.expect("the lease is processed").since(stolen_at);
    assert!(waited >= rig.config.lease_duration(), "{waited}");
}

/// Found by simulation: a shard long due for creation at LATEST looked like a hole while another worker created leases
/// around it, and was created at once from its oldest record.
#[test]
fn a_shard_that_becomes_a_hole_is_one_for_a_scan_interval() {
    let mut rig = Rig::of(2, 0, |config| config.with_initial_position(InitialPosition::Latest));
    let (open, closed) = rig.split(1);
    let create = |rig: &mut Rig, shard: u32| {
        let row = LeaseRow { checkpoint: Checkpoint::Latest, ..rig.new_row(shard) };
        rig.rows_mut().entry(row.key.clone()).or_insert(row);
    };
    create(&mut rig, 0);
    let worker = rig.join();
    rig.run(Span::from_millis(10));
    assert_eq!(rig[worker].told(PLANNED), 1);
    // Another worker creates leases for the open shards of its listing, and has created the first of two leases below
    // the closed shard.
    let (first, second) = rig.split(closed);
    create(&mut rig, first);
    // Its owner has begun to process the shard, so the lease might have begun anywhere.
    rig.row_mut(first).checkpoint = Checkpoint::At(Position::of(9.into()));
    while rig[worker].told(PLANNED) == 1 {
        rig.secs(1);
    }
    create(&mut rig, open);
    create(&mut rig, second);
    rig.secs(100);
    assert_eq!(rig[worker].sent(CREATE), 0);
}

/// Found by simulation: a chain of forgotten shards was found missing one by one, and a stream of many pages was listed nearly
/// all the time.
#[test]
fn a_stream_that_takes_long_to_list_is_not_listed_all_the_time() {
    let mut rig = Rig::new(1, 1).after(20);
    rig[0].trap(|effect| match effect {
        Effect::Stream(StreamOp::ListShards { .. }) => Some(Trick::Hang),
        Effect::Stream(StreamOp::GetRecords { .. }) => Some(Trick::refused(Why::NotFound)),
        _ => None,
    });
    let mut listings = 0;
    for _ in 0..120 {
        rig.secs(1);
        if !rig[0].hung.is_empty() {
            listings += 1;
            rig.secs(1);
            rig.release(0);
        }
    }
    assert!((15..=30).contains(&listings), "{listings}");
}

/// Found by simulation: the first page of a listing was older than the end of a shard, and its last page came long
/// after the worker knew this end. The worker took the table for a table of another stream.
#[test]
fn a_listing_with_a_late_last_page_tells_of_its_first() {
    let mut rig = Rig::new(1, 1).after(20);
    let open = rig.stream.shards[&shard_id(0)].clone();
    let (child, _) = rig.split(0);
    rig.secs(30);
    assert!(rig.row(0).checkpoint.is_end());
    let mut listings = 0;
    rig[0].trap(move |effect| match effect {
        // So the worker lists the shards.
        effect if RECORDS.of(child).is(effect) => Some(Trick::refused(Why::NotFound)),
        Effect::Stream(StreamOp::ListShards { after: None, .. }) => {
            listings += 1;
            let (shards, more) = (vec![open.clone()], listings > 1);
            Some(Trick::reply(Reply::Shards(ShardPage { shards, more })))
        }
        effect => LIST.is(effect).then_some(Trick::Hang),
    });
    rig.secs(35);
    let last = std::mem::take(&mut rig[0].hung);
    assert_eq!(last.len(), 1);
    let (shards, more) = (Vec::new(), false);
    let outcome = Outcome::Applied(Reply::Shards(ShardPage { shards, more }));
    rig.tell(0, Body::Done { op: last[0].op, outcome });
    assert_eq!(rig[0].told(FATAL), 0, "{:?}", rig[0].notices);
}
