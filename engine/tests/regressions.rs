//! Scenes of bugs that simulation found, where the world of the bug is too large to be kept.

use crate::rig::{Rig, Trick, refused};
use leasehold_engine::config::InitialPosition;
use leasehold_engine::input::{Body, Cause, Outcome, Reply, ShardPage, Why};
use leasehold_engine::notice::{Notice, TakeReason};
use leasehold_engine::output::*;
use leasehold_engine::position::{Checkpoint, Position};
use leasehold_engine::row::{Change, LeaseRow};
use leasehold_engine::shard::{HashKey, HashRange, Shard};
use leasehold_engine::testkit;
use leasehold_engine::time::{Mono, Span};

/// Found by simulation: with short renewals every row had moved on by the time of the steal, and nothing was ever stolen.
#[test]
fn a_steal_follows_the_owner_s_renewals() {
    let mut rig = Rig::new(2, 1);
    rig.secs(60);
    let steals =
        |effect: &Effect| matches!(effect, Effect::Table(TableOp::Write(Change::Take { from: Some(_), .. })));
    let worker = rig.join_trapped(Some(Box::new(move |effect| steals(effect).then_some(Trick::Hang))));
    // Its owner renews the lease every 3.3 s, and so before each of the first attempts arrives.
    let mut attempts = 0;
    for _ in 0..100 {
        rig.secs(4);
        if rig.workers[worker].hung.is_empty() {
            continue;
        }
        attempts += 1;
        if attempts == 4 {
            rig.workers[worker].trap = None;
        }
        rig.release(worker);
    }
    let notices = &rig.workers[worker].notices;
    let missed = notices.iter().filter(|(_, notice)| matches!(notice, Notice::MissedTake { .. }));
    assert_eq!((attempts, missed.count()), (4, 0), "{notices:?}");
    let stolen = |notice: &Notice| matches!(notice, Notice::Took { why: TakeReason::Stolen { .. }, .. });
    assert!(notices.iter().any(|(_, notice)| stolen(notice)));
}

/// Found by simulation: while a scan went on, the leases on its first pages grew old, and live owners were robbed.
#[test]
fn a_slow_scan_makes_nobody_look_dead() {
    let mut rig = Rig::new(4, 1);
    rig.configure(|config| config.with_scan_page_limit(1).with_audit_confidence(1));
    rig.secs(60);
    let scans = |effect: &Effect| matches!(effect, Effect::Table(TableOp::Scan { after: Some(_), .. }));
    let worker = rig.join_trapped(Some(Box::new(move |effect| scans(effect).then_some(Trick::Hang))));
    for _ in 0..60 {
        // Longer than a lease lasts.
        rig.secs(12);
        rig.release(worker);
    }
    let reasons: Vec<_> = rig.workers[worker]
        .notices
        .iter()
        .filter_map(|(_, notice)| match notice {
            Notice::Took { why, .. } => Some(why),
            Notice::MissedTake { .. } => panic!("{notice:?}"),
            _ => None,
        })
        .collect();
    let stolen = |why: &&TakeReason| matches!(why, TakeReason::Stolen { .. });
    assert_eq!((reasons.len(), reasons.iter().all(stolen)), (2, true), "{reasons:?}");
}

/// Found by simulation: a lease that was to be handed over to us ran out, and the hand-over came before our take. It left the
/// row as the take would have, but for the checkpoint; taken for our own write, what was read before was read again.
#[test]
fn a_hand_over_to_us_is_not_taken_for_our_own_take() {
    let mut rig = Rig::new(1, 0);
    rig.put(0, 10);
    let last = *rig.stream.records[&Rig::id(0)].last().unwrap();
    let mut row = LeaseRow::new(Rig::id(0).to_lease(), Checkpoint::TrimHorizon);
    row.owner = Some("theirs".into());
    rig.table.rows.as_mut().unwrap().insert(row.key.clone(), row);
    let takes = |effect: &Effect| matches!(effect, Effect::Table(TableOp::Write(Change::Take { .. })));
    let worker = rig.join_trapped(Some(Box::new(move |effect| takes(effect).then_some(Trick::Hang))));
    let me = rig.workers[worker].engine().worker().cloned();
    let row = rig.table.rows.as_mut().unwrap().values_mut().next().unwrap();
    (row.handing_over, row.owner) = (row.owner.take(), me);
    for _ in 0..60 {
        rig.secs(1);
        if !rig.workers[worker].hung.is_empty() {
            break;
        }
    }
    let row = rig.table.rows.as_mut().unwrap().values_mut().next().unwrap();
    row.handing_over = None;
    row.counter += 1;
    row.checkpoint = Checkpoint::At(Position::of(last.into()));
    rig.workers[worker].trap = None;
    rig.release(worker);
    rig.secs(60);
    let notices = rig.workers[worker].notices.iter();
    let opened: Vec<_> = notices
        .filter_map(|(_, notice)| match notice {
            Notice::Opened { from, .. } => Some(*from),
            _ => None,
        })
        .collect();
    assert_eq!(opened, [Checkpoint::At(Position::of(last.into()))]);
}

/// Found by simulation: an interrupted scan showed rows in an old state, and a lease was created above leases made
/// meanwhile by other workers.
#[test]
fn rows_seen_long_ago_do_not_show_what_is_missing() {
    let mut rig = Rig::new(1, 0);
    rig.configure(|config| config.with_scan_page_limit(1).with_audit_confidence(1));
    let HashRange { start, end } = HashRange::ALL;
    let (low, high) = (HashKey(end.0 / 2), HashKey(end.0 / 2 + 1));
    let shard = |n, parent: Option<u32>, closed: bool, range| {
        let last = closed.then_some(u64::from(n + 2));
        testkit::shard(Rig::id(n), parent.map(Rig::id), range, u64::from(n + 1), last)
    };
    let lower = HashRange { start, end: low };
    let upper = HashRange { start: high, end };
    rig.stream.shards = [shard(1, None, false, lower), shard(9, None, false, upper)]
        .map(|shard| (shard.id.clone(), shard))
        .into();
    for n in [1, 2, 9] {
        rig.stream.records.insert(Rig::id(n), Vec::new());
    }
    // The lease of 1 was lost.
    let table = rig.table.rows.as_mut().unwrap();
    for n in [9, 10] {
        let mut row = LeaseRow::new(Rig::id(n).to_lease(), Checkpoint::ShardEnd);
        if n == 9 {
            row.checkpoint = Checkpoint::TrimHorizon;
        }
        table.insert(row.key.clone(), row);
    }
    rig.join();
    let planned = |rig: &Rig| {
        let plans = |(_, notice): &&(Mono, Notice)| matches!(notice, Notice::Planned { create: 1, .. });
        rig.workers[0].notices.iter().filter(plans).count()
    };
    while planned(&rig) == 0 {
        rig.secs(1);
        assert!(rig.now < Mono(1_000_000_000), "the hole is never seen");
    }
    assert!(!rig.has_row(1), "one list is believed");
    // The first page of the next scan is read, and the second one hangs.
    rig.workers[0].trap = Some(Box::new(|effect| {
        let second = matches!(effect, Effect::Table(TableOp::Scan { after: Some(_), .. }));
        second.then_some(Trick::Hang)
    }));
    rig.secs(100);
    assert!(!rig.workers[0].hung.is_empty());
    // Meanwhile another worker read shard 1 to the end, and the child lives.
    rig.stream.shards.insert(Rig::id(1), shard(1, None, true, lower));
    rig.stream.shards.insert(Rig::id(2), shard(2, Some(1), false, lower));
    let mut child = LeaseRow::new(Rig::id(2).to_lease(), Checkpoint::TrimHorizon);
    child.owner = Some("theirs".into());
    rig.table.rows.as_mut().unwrap().insert(child.key.clone(), child);
    rig.workers[0].trap = None;
    rig.release(0);
    for _ in 0..100 {
        rig.secs(1);
        rig.table.rows.as_mut().unwrap().get_mut(Rig::id(2).as_str()).unwrap().counter += 1;
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
        testkit::shard(Rig::id(n as u32), None::<&str>, range, 1, None)
    };
    rig.stream.shards = (0..pages).map(|n| (Rig::id(n as u32), shard(n))).collect();
    for id in rig.stream.shards.keys() {
        rig.stream.records.insert(id.clone(), Vec::new());
    }
    rig.configure(|config| config.with_retry_min(Span::from_secs(1)).with_retry_max(Span::from_secs(2)));
    // At best every second request brings a page, so all pages take more than a scan interval.
    let (mut asked, mut given) = (0u32, 0u128);
    let slow = move |effect: &Effect| {
        let Effect::Stream(StreamOp::ListShards { after, .. }) = effect else {
            return None;
        };
        asked += 1;
        if asked % 2 == 1 {
            return Some(Trick::Instead(Outcome::NotSent(Cause::Throttled)));
        }
        given = if after.is_none() { 0 } else { given + 1 };
        Some(Trick::Instead(Outcome::Applied(Reply::Shards(ShardPage {
            shards: vec![shard(given)],
            more: given + 1 < pages,
        }))))
    };
    rig.join_trapped(Some(Box::new(slow)));
    rig.secs(600);
    assert_eq!(rig.table.rows.as_ref().map(|rows| rows.len() as u128), Some(pages));
}

/// Found by simulation: a steal was executed twice, and between the two an operator assigned the lease to another
/// worker. The second refusal showed the thief as the owner of a row unlike its own, so its steal did not count as a
/// steal, and the thief processed the lease right after its next take.
#[test]
fn a_steal_refused_by_its_own_trace_settles_like_any_other() {
    let mut rig = Rig::new(4, 1);
    rig.secs(60);
    rig.configure(|config| config.with_scan_interval(Span::from_secs(2)).with_stream_lag(Span::from_secs(2)));
    let mut armed = true;
    rig.join_trapped(Some(Box::new(move |effect| {
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
    })));
    while (0..4).all(|shard| rig.owner(shard) == Some(0)) {
        rig.run(Span::from_millis(10));
    }
    let stolen_at = rig.now;
    let shard = (0..4).find(|shard| rig.owner(*shard) == Some(1)).unwrap();
    let row = rig.table.rows.as_mut().unwrap().get_mut(&Rig::id(shard).to_lease());
    let row = row.unwrap();
    (row.handing_over, row.owner) = (row.owner.take(), Some("later".into()));
    rig.secs(60);
    let opened = rig.workers[1].calls.iter().find_map(|(at, call)| match call {
        ConsumerOp::Open { lease, .. } if *lease == Rig::id(shard).to_lease() => Some(*at),
        _ => None,
    });
    let waited = opened.expect("the lease is processed").since(stolen_at);
    assert!(waited >= rig.config.lease_duration(), "{waited}");
}

/// Found by simulation: a shard long due for creation at LATEST looked like a hole while another worker created leases
/// around it, and was created at once from its oldest record.
#[test]
fn a_shard_that_becomes_a_hole_is_one_for_a_scan_interval() {
    let mut rig = Rig::new(2, 0);
    rig.configure(|config| config.with_initial_position(InitialPosition::Latest));
    let (open, closed) = rig.split(1);
    let mut row = LeaseRow::new(Rig::id(0).to_lease(), Checkpoint::Latest);
    row.range = Some(rig.stream.shards[&Rig::id(0)].range);
    rig.table.rows.as_mut().unwrap().insert(row.key.clone(), row);
    let worker = rig.join();
    rig.run(Span::from_millis(10));
    let plans = |rig: &Rig| {
        let notices = rig.workers[worker].notices.iter();
        let planned = notices.filter(|(_, notice)| matches!(notice, Notice::Planned { .. }));
        planned.count()
    };
    assert_eq!(plans(&rig), 1);
    // Another worker creates leases for the open shards of its listing, and has created the first of two leases below
    // the closed shard.
    let (first, second) = rig.split(closed);
    let create = |rig: &mut Rig, shard: u32| {
        let mut row = LeaseRow::new(Rig::id(shard).to_lease(), Checkpoint::Latest);
        row.parents = rig.stream.shards[&Rig::id(shard)].parents().cloned().collect();
        row.range = Some(rig.stream.shards[&Rig::id(shard)].range);
        rig.table.rows.as_mut().unwrap().entry(row.key.clone()).or_insert(row);
    };
    create(&mut rig, first);
    // Its owner has begun to process the shard, so the lease might have begun anywhere.
    let row = rig.table.rows.as_mut().unwrap().get_mut(&Rig::id(first).to_lease());
    row.unwrap().checkpoint = Checkpoint::At(Position::of(9.into()));
    while plans(&rig) == 1 {
        rig.secs(1);
    }
    create(&mut rig, open);
    create(&mut rig, second);
    rig.secs(100);
    let sent = rig.workers[worker].sent.iter();
    let creates =
        sent.filter(|(_, effect)| matches!(effect, Effect::Table(TableOp::Write(Change::Create(_)))));
    assert_eq!(creates.count(), 0);
}

/// Found by simulation: a chain of forgotten shards was found missing one by one, and a stream of many pages was listed nearly
/// all the time.
#[test]
fn a_stream_that_takes_long_to_list_is_not_listed_all_the_time() {
    let mut rig = Rig::new(1, 1);
    rig.secs(20);
    rig.workers[0].trap = Some(Box::new(|effect| match effect {
        Effect::Stream(StreamOp::ListShards { .. }) => Some(Trick::Hang),
        Effect::Stream(StreamOp::GetRecords { .. }) => Some(Trick::Instead(refused(Why::NotFound, None))),
        _ => None,
    }));
    let mut listings = 0;
    for _ in 0..120 {
        rig.secs(1);
        if !rig.workers[0].hung.is_empty() {
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
    let mut rig = Rig::new(1, 1);
    rig.secs(20);
    let open = rig.stream.shards[&Rig::id(0)].clone();
    let (child, _) = rig.split(0);
    rig.secs(30);
    assert!(rig.row(0).checkpoint.is_end());
    let old: Vec<Shard> = vec![open];
    let mut listings = 0;
    rig.workers[0].trap = Some(Box::new(move |effect| match effect {
        // So the worker lists the shards.
        Effect::Stream(StreamOp::GetRecords { shard, .. }) if *shard == Rig::id(child) => {
            Some(Trick::Instead(refused(Why::NotFound, None)))
        }
        Effect::Stream(StreamOp::ListShards { after: None, .. }) => {
            listings += 1;
            let (shards, more) = (old.clone(), listings > 1);
            let page = Reply::Shards(ShardPage { shards, more });
            Some(Trick::Instead(Outcome::Applied(page)))
        }
        Effect::Stream(StreamOp::ListShards { .. }) => Some(Trick::Hang),
        _ => None,
    }));
    rig.secs(35);
    let last = std::mem::take(&mut rig.workers[0].hung);
    assert_eq!(last.len(), 1);
    let (shards, more) = (Vec::new(), false);
    let outcome = Outcome::Applied(Reply::Shards(ShardPage { shards, more }));
    rig.tell(0, Body::Done { op: last[0].op, outcome });
    let fatal = |(_, notice): &&(Mono, Notice)| matches!(notice, Notice::Fatal(_));
    let given_up = rig.workers[0].notices.iter().find(fatal);
    assert!(given_up.is_none(), "{given_up:?}");
}
