//! What a fleet does, in scenes.

use crate::rig::{Rig, Trick};
use leasehold_engine::input::*;
use leasehold_engine::notice::{Fatal, LossReason, Notice, TakeReason};
use leasehold_engine::output::*;
use leasehold_engine::position::Checkpoint;
use leasehold_engine::row::{Change, HandsOver, LeaseRow};
use leasehold_engine::shard::HashRange;
use leasehold_engine::time::Wall;

fn is_renewal(effect: &Effect) -> bool {
    matches!(effect, Effect::Table(TableOp::Write(Change::Renew { .. })))
}

#[test]
fn a_lone_worker_creates_takes_and_reads_all_to_the_tip() {
    let mut rig = Rig::new(4, 1);
    for shard in 0..4 {
        rig.put(shard, 100);
    }
    rig.secs(30);
    rig.assert_all_processed();
    assert_eq!(rig.duplicates(), 0);
    for shard in 0..4 {
        assert_eq!(rig.owner(shard), Some(0));
        assert!(matches!(rig.row(shard).checkpoint, Checkpoint::At(_)), "{:?}", rig.row(shard));
    }
}

#[test]
fn the_table_is_created_if_it_is_missing() {
    let mut rig = Rig::new(1, 0);
    rig.table.rows = None;
    rig.join();
    rig.secs(10);
    assert_eq!(rig.owner(0), Some(0));
}

#[test]
fn three_workers_end_with_even_shares() {
    let mut rig = Rig::new(9, 3);
    rig.secs(300);
    let mut counts = [0; 3];
    for shard in 0..9 {
        counts[rig.owner(shard).unwrap()] += 1;
    }
    assert_eq!(counts, [3, 3, 3]);
}

#[test]
fn every_take_was_chosen_and_the_choice_says_what_was_weighed() {
    let mut rig = Rig::new(4, 1);
    rig.secs(30);
    rig.join();
    rig.secs(120);
    let choices = |worker: usize| -> Vec<_> {
        let notices = rig.workers[worker].notices.iter();
        notices
            .filter_map(|(_, notice)| match notice {
                Notice::Chose(choice) => Some(choice.clone()),
                _ => None,
            })
            .collect()
    };
    // Half of the never owned leases; the rest is left to further starting workers.
    let first = &choices(0)[0];
    assert_eq!((first.taken, first.candidates, first.left.len()), (2, 4, 2));
    assert_eq!((first.victim.as_ref(), first.ours, first.target), (None, 0, 4));
    // The joining worker finds no free lease, and steals from the only other worker.
    let stolen = &choices(1)[0];
    let other = rig.workers[0].engine().worker().unwrap().clone();
    assert_eq!(stolen.victim.as_ref(), Some(&other));
    assert_eq!(stolen.counts[0], (other, 4));
    assert_eq!((stolen.counts[1].1, stolen.target, stolen.workers), (0, 2, 2));
    assert_eq!(stolen.taken + stolen.left.len() as u32, stolen.candidates);
    let chosen: u32 = choices(1).iter().map(|choice| choice.taken).sum();
    let took = |(_, notice): &&(_, Notice)| matches!(notice, Notice::Took { .. });
    assert_eq!(rig.workers[1].notices.iter().filter(took).count() as u32, chosen);
}

#[test]
fn a_joining_worker_gets_its_share_and_nothing_runs_twice() {
    let mut rig = Rig::new(4, 1);
    rig.secs(30);
    rig.join();
    for _ in 0..20 {
        for shard in 0..4 {
            rig.put(shard, 10);
        }
        rig.secs(10);
    }
    rig.assert_all_processed();
    assert_eq!((0..4).filter(|shard| rig.owner(*shard) == Some(1)).count(), 2);
}

#[test]
fn a_dead_workers_leases_are_taken_after_expiry_and_not_before() {
    let mut rig = Rig::new(4, 2);
    rig.secs(120);
    rig.workers[0].alive = false;
    let died = rig.now;
    for shard in 0..4 {
        rig.put(shard, 10);
    }
    rig.secs(60);
    rig.assert_all_processed();
    for shard in 0..4 {
        assert_eq!(rig.owner(shard), Some(1));
    }
    let took = rig.workers[1]
        .notices
        .iter()
        .filter(|(at, notice)| *at > died && matches!(notice, Notice::Took { .. }))
        .map(|(at, _)| *at)
        .min()
        .unwrap();
    assert!(took.since(died) >= rig.config.hold(), "taken {} after the death", took.since(died));
}

#[test]
fn a_shutdown_checkpoints_closes_and_releases_everything() {
    let mut rig = Rig::new(3, 1);
    for shard in 0..3 {
        rig.put(shard, 10);
    }
    rig.secs(10);
    for shard in 0..3 {
        rig.put(shard, 7);
    }
    rig.secs(1);
    rig.call(0, Call::Shutdown);
    rig.secs(5);
    assert!(rig.workers[0].engine().is_stopped());
    for shard in 0..3 {
        assert_eq!(rig.row(shard).owner, None);
        let last = *rig.stream.records[&Rig::id(shard)].last().unwrap();
        assert_eq!(rig.row(shard).checkpoint.position().unwrap().sequence, last.into());
    }
    let closes = rig.workers[0].calls.iter().filter(|(_, op)| matches!(op, ConsumerOp::Close { .. })).count();
    assert_eq!(closes, 3);
}

#[test]
fn a_renewal_applied_without_an_answer_is_adopted() {
    let mut rig = Rig::new(1, 1);
    rig.secs(20);
    let mut once = true;
    rig.workers[0].trap = Some(Box::new(move |effect| {
        (is_renewal(effect) && std::mem::take(&mut once))
            .then_some(Trick::AppliedBut(Outcome::Unknown(Cause::Timeout)))
    }));
    rig.secs(20);
    assert!(rig.workers[0].notices.iter().any(|(_, notice)| matches!(notice, Notice::Adopted { .. })));
    assert!(
        !rig.workers[0]
            .notices
            .iter()
            .any(|(_, notice)| matches!(notice, Notice::Lost { .. } | Notice::Fenced { .. }))
    );
    assert_eq!(rig.owner(0), Some(0));
}

#[test]
fn a_worker_cut_off_from_its_table_fences_itself_and_resumes() {
    let mut rig = Rig::new(1, 1);
    rig.secs(20);
    rig.workers[0].trap = Some(Box::new(|effect| {
        matches!(effect, Effect::Table(_)).then(|| Trick::Instead(Outcome::NotSent(Cause::Network)))
    }));
    rig.put(0, 5);
    rig.secs(15);
    let fenced = rig.workers[0].notices.iter().any(|(_, notice)| matches!(notice, Notice::Fenced { .. }));
    assert!(fenced);
    let processed = rig.workers[0].reading.processed[&Rig::id(0)].len();
    rig.put(0, 5);
    rig.secs(15);
    assert_eq!(
        rig.workers[0].reading.processed[&Rig::id(0)].len(),
        processed,
        "handed over without a valid lease"
    );
    rig.workers[0].trap = None;
    rig.secs(30);
    rig.assert_all_processed();
    assert!(rig.workers[0].notices.iter().any(|(_, notice)| matches!(notice, Notice::Resumed { .. })));
}

#[test]
fn a_row_removed_under_its_owner_is_put_back_as_it_was() {
    let mut rig = Rig::new(1, 1);
    rig.put(0, 10);
    rig.secs(20);
    let before = rig.row(0).checkpoint;
    rig.table.rows.as_mut().unwrap().clear();
    rig.secs(10);
    assert_eq!(rig.row(0).checkpoint, before);
    assert_eq!(rig.owner(0), Some(0));
}

#[test]
fn losing_to_another_worker_closes_the_shard_once() {
    let mut rig = Rig::new(1, 1);
    rig.secs(20);
    let row = rig.table.rows.as_mut().unwrap().values_mut().next().unwrap();
    row.owner = Some("somebody".into());
    row.counter += 1;
    rig.secs(5);
    let lost = rig.workers[0].notices.iter().filter(|(_, notice)| {
        matches!(notice, Notice::Lost { why: LossReason::Taken { by: Some(by), .. }, .. } if by.as_str() == "somebody")
    });
    assert_eq!(lost.count(), 1);
    let closes = rig.workers[0]
        .calls
        .iter()
        .filter(|(_, op)| matches!(op, ConsumerOp::Close { reason: EndReason::LeaseLost, .. }));
    assert_eq!(closes.count(), 1);
}

#[test]
fn a_graceful_hand_over_begun_by_a_leader_is_carried_out() {
    let mut rig = Rig::new(1, 1);
    rig.put(0, 10);
    rig.secs(20);
    rig.put(0, 10);
    rig.secs(2);
    let me = rig.workers[0].engine().worker().cloned();
    let row = rig.table.rows.as_mut().unwrap().values_mut().next().unwrap();
    row.handing_over = me;
    row.owner = Some("next".into());
    // The next owner is a worker of KCL: no write says in the row that this owner hands the lease over.
    row.hands_over = HandsOver::No;
    rig.secs(10);
    assert_eq!(rig.row(0).owner, Some("next".into()));
    assert_eq!(rig.row(0).handing_over, None);
    let last = *rig.stream.records[&Rig::id(0)].last().unwrap();
    assert_eq!(rig.row(0).checkpoint.position().unwrap().sequence, last.into());
}

#[test]
fn a_missing_shard_has_not_ended_while_the_stream_lists_it() {
    let mut rig = Rig::new(1, 1);
    rig.put(0, 10);
    rig.secs(20);
    let mut left = 3;
    rig.workers[0].trap = Some(Box::new(move |effect| {
        let hit = matches!(effect, Effect::Stream(StreamOp::GetRecords { .. })) && left > 0;
        left -= i32::from(hit);
        hit.then(|| Trick::Instead(crate::rig::refused(Why::NotFound, None)))
    }));
    rig.put(0, 10);
    rig.secs(60);
    rig.assert_all_processed();
    assert!(!rig.row(0).checkpoint.is_end());
}

#[test]
fn a_stream_deleted_under_way_ends_the_worker_with_its_progress() {
    let mut rig = Rig::new(2, 1);
    rig.put(0, 10);
    rig.put(1, 10);
    rig.secs(20);
    rig.stream.created = None;
    rig.secs(60);
    let gone = rig.workers[0]
        .notices
        .iter()
        .any(|(_, notice)| matches!(notice, Notice::Fatal(Fatal::StreamGone { .. })));
    assert!(gone && rig.workers[0].engine().is_stopped());
    for shard in 0..2 {
        assert!(matches!(rig.row(shard).checkpoint, Checkpoint::At(_)));
        assert_eq!(rig.row(shard).owner, None);
    }
}

#[test]
fn a_stream_made_anew_is_not_read_with_old_checkpoints() {
    let mut rig = Rig::new(1, 1);
    rig.secs(20);
    rig.stream.created = Some(Wall(99));
    rig.stream.records.clear();
    rig.secs(60);
    assert!(rig.workers[0].engine().is_stopped());
    assert!(!rig.row(0).checkpoint.is_end());
}

#[test]
fn a_table_that_is_deleted_under_way_ends_the_worker() {
    let mut rig = Rig::new(1, 1);
    rig.secs(20);
    rig.table.rows = None;
    rig.secs(60);
    let gone = rig.workers[0]
        .notices
        .iter()
        .any(|(_, notice)| matches!(notice, Notice::Fatal(Fatal::TableGone { .. })));
    assert!(gone && rig.workers[0].engine().is_stopped());
    assert!(rig.table.rows.is_none(), "a deleted table is not made anew behind its owner's back");
}

#[test]
fn a_row_gets_the_hash_range_that_it_lacks() {
    let mut row = LeaseRow::new(Rig::id(0).to_lease(), Checkpoint::TrimHorizon);
    row.owner = Some("w9:9".into());
    let mut rig = Rig::new(1, 0);
    rig.table.rows.as_mut().unwrap().insert(row.key.clone(), row);
    rig.join();
    rig.secs(300);
    assert_eq!(rig.row(0).range, Some(HashRange::ALL));
}

#[test]
fn a_stolen_lease_is_kept_while_its_former_owner_may_believe() {
    let mut rig = Rig::new(2, 1);
    rig.secs(30);
    rig.join();
    // The thief has just stolen; the victim does not know yet.
    while (0..2).all(|shard| rig.owner(shard) == Some(0)) {
        rig.run(leasehold_engine::time::Span::from_millis(100));
    }
    let shard = (0..2).find(|shard| rig.owner(*shard) == Some(1)).unwrap();
    rig.call(1, Call::Shutdown);
    rig.secs(1);
    assert_eq!(rig.owner(shard), Some(1), "released while the victim may still believe");
    rig.workers[0].alive = false;
    rig.secs(15);
    assert_eq!(rig.row(shard).owner, None);
    assert!(rig.workers[1].engine().is_stopped());
}

#[test]
fn a_steal_given_up_and_come_true_settles_like_any_other() {
    let mut rig = Rig::new(4, 1);
    rig.secs(60);
    rig.join();
    // The take is applied, and no answer about the row comes until it is given up.
    let (mut taken, mut left) = (None, 12);
    rig.workers[1].trap = Some(Box::new(move |effect| {
        let lost = || Outcome::Unknown(Cause::Timeout);
        let key = match effect {
            Effect::Table(TableOp::Write(Change::Take { key, .. }) | TableOp::Read { key }) => key,
            Effect::Table(TableOp::Scan { .. }) => {
                left = if taken.is_some() { 0 } else { left };
                return None;
            }
            _ => return None,
        };
        if taken.is_none() {
            taken = Some(key.clone());
            return Some(Trick::AppliedBut(lost()));
        }
        (left > 0 && taken.as_ref() == Some(key)).then(|| {
            left -= 1;
            Trick::Instead(lost())
        })
    }));
    rig.secs(120);
    let took = rig.workers[1].notices.iter().find_map(|(at, notice)| match notice {
        Notice::Took { lease, why: TakeReason::Ours, .. } => Some((*at, lease.clone())),
        _ => None,
    });
    let (at, stolen) = took.expect("the row names the thief");
    let opened = rig.workers[1].calls.iter().find_map(|(at, call)| match call {
        ConsumerOp::Open { lease, .. } if *lease == stolen => Some(*at),
        _ => None,
    });
    let waited = opened.expect("the lease is processed").since(at);
    assert!(waited >= rig.config.lease_duration(), "{waited}");
}

#[test]
fn a_scan_begun_before_a_listing_does_not_vouch_for_its_gaps() {
    let mut rig = Rig::new(1, 1);
    rig.configure(|config| config.with_audit_confidence(1));
    rig.secs(20);
    let (lost, _) = rig.split(0);
    rig.secs(20);
    rig.call(0, Call::Shutdown);
    rig.secs(5);
    rig.table.rows.as_mut().unwrap().remove(&Rig::id(lost).to_lease());

    // The next scan is under way when the first listing is answered, and has passed some keys already.
    let is_scan = |effect: &Effect| matches!(effect, Effect::Table(TableOp::Scan { .. }));
    let is_listing = |effect: &Effect| matches!(effect, Effect::Stream(StreamOp::ListShards { .. }));
    let (mut listed, mut scanning) = (false, false);
    let trap = move |effect: &Effect| {
        let first = is_listing(effect) && !std::mem::replace(&mut listed, true);
        let next = listed && is_scan(effect) && !std::mem::replace(&mut scanning, true);
        (first || next).then_some(Trick::Hang)
    };
    let worker = rig.join_trapped(Some(Box::new(trap)));
    let interval = rig.config.scan_interval();
    rig.run(interval.times(3));
    let mut scan = std::mem::take(&mut rig.workers[worker].hung);
    let listing = scan.remove(0);
    assert!(is_listing(&listing.effect) && is_scan(&scan[0].effect));
    rig.workers[worker].hung = vec![listing];
    rig.release(worker);
    let answered = rig.now;
    rig.run(interval.times(3));
    rig.workers[worker].hung = scan;
    rig.release(worker);
    rig.secs(300);

    let sent = &rig.workers[worker].sent;
    let created = |effect: &Effect| matches!(effect, Effect::Table(TableOp::Write(Change::Create(_))));
    let (at, _) = sent.iter().find(|(_, effect)| created(effect)).expect("it is missing");
    let scans = sent.iter().filter(|(sent, effect)| is_scan(effect) && (answered..=*at).contains(sent));
    assert!(scans.count() >= 1, "created at {at:?}, listed until {answered:?}");
}
