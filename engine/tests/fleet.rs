//! What a fleet does, in scenes.

use crate::rig::*;
use leasehold_engine::input::*;
use leasehold_engine::notice::{Fatal, Notice, TakeReason};
use leasehold_engine::output::*;
use leasehold_engine::position::Checkpoint;
use leasehold_engine::row::{HandsOver, LeaseRow};
use leasehold_engine::shard::HashRange;
use leasehold_engine::time::Wall;

/// Whether a row's checkpoint is the last record of its shard.
fn is_at_tip(rig: &Rig, n: u32) -> bool {
    let last = rig.stream.records[&shard_id(n)].last().expect("a record");
    rig.row(n).checkpoint.position().is_some_and(|position| position.sequence == (*last).into())
}

#[test]
fn a_lone_worker_creates_takes_and_reads_all_to_the_tip() {
    let mut rig = Rig::new(4, 1).with_records(0..4, 100);
    rig.assert_all_processed_in(30);
    assert_eq!(rig.duplicates(), 0);
    assert_eq!(rig.owners(4), [Some(0); 4]);
    assert!(rig.rows().values().all(|row| matches!(row.checkpoint, Checkpoint::At(_))), "{:?}", rig.rows());
}

#[test]
fn the_table_is_created_if_it_is_missing() {
    let mut rig = Rig::new(1, 0);
    rig.table.rows = None;
    rig.join_then(10);
    assert_eq!(rig.owner(0), Some(0));
}

#[test]
fn three_workers_end_with_even_shares() {
    let rig = Rig::new(9, 3).after(300);
    assert_eq!([0, 1, 2].map(|worker| rig.owned(worker, 9)), [3, 3, 3]);
}

#[test]
fn every_take_was_chosen_and_the_choice_says_what_was_weighed() {
    let mut rig = Rig::new(4, 1).after(30);
    rig.join_then(120);
    let choices = |worker| {
        rig[worker].news(|notice| match notice {
            Notice::Chose(choice) => Some(choice),
            _ => None,
        })
    };
    // Half of the never owned leases; the rest is left to further starting workers.
    let first = &choices(0)[0];
    assert_eq!((first.taken, first.candidates, first.left.len()), (2, 4, 2));
    assert_eq!((first.victim.as_ref(), first.ours, first.target), (None, 0, 4));
    // The joining worker finds no free lease, and steals from the only other worker.
    let stolen = &choices(1)[0];
    let other = rig[0].me();
    assert_eq!(stolen.victim.as_ref(), Some(&other));
    assert_eq!(stolen.counts[0], (other, 4));
    assert_eq!((stolen.counts[1].1, stolen.target, stolen.workers), (0, 2, 2));
    assert_eq!(stolen.taken + stolen.left.len() as u32, stolen.candidates);
    let chosen: u32 = choices(1).iter().map(|choice| choice.taken).sum();
    assert_eq!(rig[1].told(TOOK) as u32, chosen);
}

#[test]
fn a_joining_worker_gets_its_share_and_nothing_runs_twice() {
    let mut rig = Rig::new(4, 1).after(30);
    rig.join();
    for _ in 0..20 {
        rig.put_all(0..4, 10);
        rig.secs(10);
    }
    rig.assert_all_processed();
    assert_eq!(rig.owned(1, 4), 2);
}

#[test]
fn a_dead_workers_leases_are_taken_after_expiry_and_not_before() {
    let mut rig = Rig::new(4, 2).after(120);
    rig[0].die();
    let died = rig.now;
    rig.put_all(0..4, 10);
    rig.assert_all_processed_in(60);
    assert_eq!(rig.owners(4), [Some(1); 4]);
    let took = rig[1].told_at(TOOK).into_iter().find(|at| *at > died).unwrap();
    assert!(took.since(died) >= rig.config.hold(), "taken {} after the death", took.since(died));
}

#[test]
fn a_shutdown_checkpoints_closes_and_releases_everything() {
    let mut rig = Rig::new(3, 1).with_records(0..3, 10).after(10).with_records(0..3, 7).after(1);
    rig.call(0, Call::Shutdown);
    rig.secs(5);
    assert!(rig[0].is_stopped());
    for shard in 0..3 {
        assert_eq!(rig.row(shard).owner, None);
        assert!(is_at_tip(&rig, shard));
    }
    assert_eq!(rig[0].closed().len(), 3);
}

#[test]
fn a_worker_cut_off_from_its_table_fences_itself_and_resumes() {
    let mut rig = Rig::new(1, 1).after(20);
    let of_table = |effect: &Effect| matches!(effect, Effect::Table(_));
    rig[0].trap(meets(of_table, Trick::Instead(Outcome::NotSent(Cause::Network))));
    rig.put(0, 5);
    rig.secs(15);
    assert_eq!(rig[0].told(FENCED), 1);
    let processed = |rig: &Rig| rig[0].reading.processed[&shard_id(0)].len();
    let before = processed(&rig);
    rig.put(0, 5);
    rig.secs(15);
    assert_eq!(processed(&rig), before, "handed over without a valid lease");
    rig[0].trap = None;
    rig.assert_all_processed_in(30);
    assert_eq!(rig[0].told(RESUMED), 1);
}

#[test]
fn a_graceful_hand_over_begun_by_a_leader_is_carried_out() {
    let mut rig = Rig::new(1, 1).with_records([0], 10).after(20).with_records([0], 10).after(2);
    let me = rig[0].me();
    let row = rig.row_mut(0);
    (row.handing_over, row.owner) = (Some(me), Some("next".into()));
    // The next owner is a worker of KCL: no write says in the row that this owner hands the lease over.
    row.hands_over = HandsOver::No;
    rig.secs(10);
    assert_eq!(rig.row(0).owner, Some("next".into()));
    assert_eq!(rig.row(0).handing_over, None);
    assert!(is_at_tip(&rig, 0));
}

#[test]
fn a_missing_shard_has_not_ended_while_the_stream_lists_it() {
    let mut rig = Rig::new(1, 1).with_records([0], 10).after(20);
    rig[0].trap(first(3, RECORDS, Trick::refused(Why::NotFound)));
    rig.put(0, 10);
    rig.assert_all_processed_in(60);
    assert!(!rig.row(0).checkpoint.is_end());
}

#[test]
fn a_stream_deleted_under_way_ends_the_worker_with_its_progress() {
    let mut rig = Rig::new(2, 1).with_records([0], 10).with_records([1], 10).after(20);
    rig.stream.created = None;
    rig.secs(60);
    let gone = |notice: &Notice| matches!(notice, Notice::Fatal(Fatal::StreamGone { .. }));
    assert!(rig[0].told(gone) == 1 && rig[0].is_stopped());
    for shard in 0..2 {
        assert!(matches!(rig.row(shard).checkpoint, Checkpoint::At(_)));
        assert_eq!(rig.row(shard).owner, None);
    }
}

#[test]
fn a_stream_made_anew_is_not_read_with_old_checkpoints() {
    let mut rig = Rig::new(1, 1).after(20);
    rig.stream.created = Some(Wall(99));
    rig.stream.records.clear();
    rig.secs(60);
    assert!(rig[0].is_stopped());
    assert!(!rig.row(0).checkpoint.is_end());
}

#[test]
fn a_table_that_is_deleted_under_way_ends_the_worker() {
    let mut rig = Rig::new(1, 1).after(20);
    rig.table.rows = None;
    rig.secs(60);
    let gone = |notice: &Notice| matches!(notice, Notice::Fatal(Fatal::TableGone { .. }));
    assert!(rig[0].told(gone) == 1 && rig[0].is_stopped());
    assert!(rig.table.rows.is_none(), "a deleted table is not made anew behind its owner's back");
}

#[test]
fn a_row_gets_the_hash_range_that_it_lacks() {
    let mut row = LeaseRow::new(shard_id(0).to_lease(), Checkpoint::TrimHorizon);
    row.owner = Some("w9:9".into());
    let mut rig = Rig::new(1, 0);
    rig.insert(row);
    rig.join_then(300);
    assert_eq!(rig.row(0).range, Some(HashRange::ALL));
}

#[test]
fn a_stolen_lease_is_kept_while_its_former_owner_may_believe() {
    let mut rig = Rig::new(2, 1).after(30);
    rig.join();
    // The thief has just stolen; the victim does not know yet.
    while (0..2).all(|shard| rig.owner(shard) == Some(0)) {
        rig.run(leasehold_engine::time::Span::from_millis(100));
    }
    let shard = (0..2).find(|shard| rig.owner(*shard) == Some(1)).unwrap();
    rig.call(1, Call::Shutdown);
    rig.secs(1);
    assert_eq!(rig.owner(shard), Some(1), "released while the victim may still believe");
    rig[0].die();
    rig.secs(15);
    assert_eq!(rig.row(shard).owner, None);
    assert!(rig[1].is_stopped());
}

#[test]
fn a_steal_given_up_and_come_true_settles_like_any_other() {
    let mut rig = Rig::new(4, 1).after(60);
    rig.join();
    // The take is applied, and no answer about the row comes until it is given up.
    let (mut taken, mut left) = (None, 13);
    rig[1].trap(move |effect| {
        let (_, key) = effect.described();
        if SCAN.is(effect) && taken.is_some() {
            left = 0;
        } else if TAKE.is(effect) && taken.is_none() {
            taken = key.map(str::to_owned);
        }
        let of_taken = (TAKE.is(effect) || READ.is(effect)) && taken.is_some() && taken.as_deref() == key;
        (of_taken && left > 0).then(|| {
            left -= 1;
            if left == 12 { Trick::ANSWER_LOST } else { Trick::UNKNOWN }
        })
    });
    rig.secs(120);
    let took = rig[1].notices.iter().find_map(|(at, notice)| match notice {
        Notice::Took { lease, why: TakeReason::Ours, .. } => Some((*at, lease.as_str())),
        _ => None,
    });
    let (at, stolen) = took.expect("the row names the thief");
    let mut opens = rig[1].commands(|effect: &Effect| effect.described() == ("open", Some(stolen)));
    let waited = opens.next().expect("the lease is processed").0.since(at);
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
    rig.rows_mut().remove(&shard_id(lost).to_lease());

    // The next scan is under way when the first listing is answered, and has passed some keys already.
    let (mut listed, mut scanning) = (false, false);
    let worker = rig.join_trapped(move |effect| {
        let first = LIST.is(effect) && !std::mem::replace(&mut listed, true);
        let next = listed && SCAN.is(effect) && !std::mem::replace(&mut scanning, true);
        (first || next).then_some(Trick::Hang)
    });
    let interval = rig.config.scan_interval();
    rig.run(interval.times(3));
    let mut scan = std::mem::take(&mut rig[worker].hung);
    let listing = scan.remove(0);
    assert!(LIST.is(&listing.effect) && SCAN.is(&scan[0].effect));
    rig[worker].hung = vec![listing];
    rig.release(worker);
    let answered = rig.now;
    rig.run(interval.times(3));
    rig[worker].hung = scan;
    rig.release(worker);
    rig.secs(300);

    let at = *rig[worker].sent_at(CREATE).first().expect("it is missing");
    let scans = rig[worker].sent_at(SCAN).into_iter().filter(|sent| (answered..=at).contains(sent));
    assert!(scans.count() >= 1, "created at {at:?}, listed until {answered:?}");
}
