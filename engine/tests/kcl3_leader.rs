//! Scenes of a worker that leads a fleet of KCL 3.x, and of the lock by which it leads.

use crate::kcl3::{
    JAVA, assert_held_after, java_acts, java_lives, lock, of_3x, put, report_of, reports, text,
};
use crate::rig::*;
use leasehold_engine::input::Call;
use leasehold_engine::notice::Notice;
use leasehold_engine::table::AttributeValue;
use leasehold_engine::time::Span;

/// A fleet of `java` and one worker of ours as the leader.
fn leading(shards: u32) -> Rig {
    let mut rig = of_3x(shards);
    rig.join();
    java_lives(&mut rig, 46);
    assert_eq!(
        lock_of(&rig).map(|(owner, _)| owner),
        Some(rig[0].me().to_string()),
        "nobody else wants to lead"
    );
    rig
}

/// The owner of the lock, and the lock's version.
fn lock_of(rig: &Rig) -> Option<(String, AttributeValue)> {
    let item = rig.table.fleet.get("Leader")?;
    Some((item["ownerName"].as_s()?.to_owned(), item["recordVersionNumber"].clone()))
}

#[test]
fn a_worker_that_stops_takes_its_report_and_its_lock_with_it() {
    let mut rig = leading(2);
    assert!(report_of(&rig, 0).is_some());
    rig.call(0, Call::Shutdown);
    rig.secs(3);
    assert!(rig[0].is_stopped());
    let keys: Vec<_> = rig.table.fleet.keys().map(ToString::to_string).collect();
    assert_eq!(keys, ["Migration3.0", JAVA]);
}

#[test]
fn a_leader_assigns_what_is_free_evenly() {
    let mut rig = leading(8);
    assert_held_after(&mut rig, 2, 4);
    assert_eq!(rig.named(JAVA, 8), 4);
}

/// The throughput of the former owner is no measure of our reading.
#[test]
fn a_leader_weighs_its_leases_without_others_reads_of_them() {
    let mut rig = leading(3);
    java_lives(&mut rig, 3);
    let me = rig[0].me();
    let mine = (0..3).find(|n| rig.owner(*n) == Some(0)).expect("it took its share");
    rig.rows_mut().values_mut().for_each(|row| row.throughput = Some(1_000_000));
    // The lease is taken once more, from a worker that read a lot of it.
    rig.give(mine, JAVA);
    let row = rig.row_mut(mine);
    (row.counter, row.throughput) = (row.counter + 8, Some(90_000_000));
    rig.secs(5);
    rig.give(mine, me);
    assert_held_after(&mut rig, 2, 1);
    for _ in 0..45 {
        another_reports(&mut rig, "java2");
        java_lives(&mut rig, 1);
    }
    assert_eq!(rig.named("java2", 3), 1, "one of the two leases of the other worker");
}

#[test]
fn a_leader_gives_a_worker_of_kcl_time_to_find_its_assignment() {
    let mut rig = leading(8);
    java_lives(&mut rig, 2);
    assert_eq!(rig.named(JAVA, 8), 4);
    // The worker reports, and has not renewed any lease yet.
    let only_reports = |rig: &mut Rig, secs: u32| {
        for _ in 0..secs {
            reports(rig, JAVA);
            rig.secs(1);
        }
    };
    only_reports(&mut rig, 24);
    assert_eq!(rig.named(JAVA, 8), 4, "two lease durations and a half are not over");
    only_reports(&mut rig, 4);
    assert_eq!(
        (rig.named(JAVA, 8), rig[0].held()),
        (0, 8),
        "a worker that lets its leases expire gets no others"
    );
}

#[test]
fn a_leader_moves_leases_by_hand_over() {
    let mut rig = leading(8);
    rig.name(0..8, JAVA);
    let moves = |rig: &Rig| {
        let mut rows = (0..8).map(|n| rig.row(n));
        rows.any(|row| row.handing_over == Some(JAVA.into()) && row.owner == Some(rig[0].me()))
    };
    let mut secs = 0;
    while !moves(&rig) {
        assert!(secs < 90, "no lease is on its way after {secs} s");
        java_lives(&mut rig, 1);
        secs += 1;
    }
    java_lives(&mut rig, 30);
    assert!(moves(&rig), "the Java worker has not let go of any");
    assert_eq!(rig[0].held(), 0, "the Java worker has not let go of any");
}

#[test]
fn a_lock_whose_version_stands_still_for_two_minutes_is_taken() {
    let mut rig = of_3x(2);
    lock(&mut rig, "dead", "v1");
    rig.join();
    java_lives(&mut rig, 119);
    assert_eq!(lock_of(&rig).unwrap().0, "dead");
    java_lives(&mut rig, 6);
    let (owner, first) = lock_of(&rig).unwrap();
    assert_eq!(owner, rig[0].me().to_string());
    java_lives(&mut rig, 31);
    assert_ne!(lock_of(&rig).unwrap().1, first, "it is renewed");
    assert_eq!(rig.table.fleet["Leader"]["leaseDuration"], text("20000"));
}

/// The seconds until this dead worker owns no lease any more. The Java worker lives, and does not lead.
fn bereft(rig: &mut Rig, worker: usize) -> u64 {
    let me = rig[worker].me();
    let owns = |rig: &Rig| (0..8).any(|n| rig.row(n).actual_owner() == Some(&me));
    assert!(owns(rig), "it has leases");
    rig[worker].die();
    for secs in 0..200 {
        if !owns(rig) {
            return secs;
        }
        java_lives(rig, 1);
    }
    panic!("its leases stand still")
}

/// A fleet of `java` and three workers of ours, one of them the leader.
#[test]
fn our_dead_workers_leases_are_assigned_soon() {
    for (dead, most) in [(0, 22), (2, 13)] {
        let mut rig = leading(8);
        rig.join_all(2);
        java_lives(&mut rig, 200);
        assert!((0..3).all(|worker| rig[worker].held() > 0), "each has its share");
        let secs = bereft(&mut rig, dead);
        assert!(secs <= most, "worker {dead}: its leases stood for {secs} s");
        let (owner, _) = lock_of(&rig).unwrap();
        let live = (0..3).filter(|worker| *worker != dead);
        assert!(
            live.map(|worker| rig[worker].me().to_string()).any(|id| id == owner),
            "worker {dead}: {owner}"
        );
    }
}

#[test]
fn two_of_ours_never_lead_at_once() {
    let mut rig = of_3x(2);
    rig.join_all(2);
    java_lives(&mut rig, 100);
    let leads = |worker| {
        let news = rig[worker].news(|notice| match notice {
            Notice::Fleet { leads, .. } => Some(*leads),
            _ => None,
        });
        news.last() == Some(&true)
    };
    assert!(leads(0) != leads(1));
}

/// A leader stands still for longer than its lock lasts, just after a renewal: no scan has shown the leader the new
/// version. No worker has taken the lock.
#[test]
fn a_leader_that_stood_leads_at_once_if_nobody_took_its_lock() {
    let mut rig = leading(2);
    let before = lock_of(&rig);
    while lock_of(&rig) == before {
        java_acts(&mut rig);
        rig.run(Span::from_millis(50));
    }
    rig[0].die();
    java_lives(&mut rig, 240);
    rig[0].alive = true;
    let before = lock_of(&rig).expect("a lock");
    java_lives(&mut rig, 2);
    let after = lock_of(&rig).expect("a lock");
    assert_eq!(after.0, rig[0].me().to_string());
    assert_ne!(after.1, before.1, "it is renewed");
}

/// A write in flight at a leader's stop changes the row.
#[test]
fn a_leader_that_stops_during_a_renewal_gives_its_lock_up() {
    let mut rig = leading(2);
    rig[0].trap(hangs(BEAT));
    java_lives(&mut rig, 35);
    assert_eq!(rig[0].hung.len(), 1, "a renewal is under way");
    rig.call(0, Call::Shutdown);
    rig.secs(1);
    rig.release(0);
    rig.secs(3);
    assert!(rig[0].is_stopped());
    assert_eq!(lock_of(&rig), None);
}

/// A second worker of KCL lives, beside the first.
fn another_reports(rig: &mut Rig, name: &str) {
    let now = rig.now.0 / 1_000_000;
    let kind = ("entityType", text("WORKER_METRIC_STATS"));
    put(rig, name, &[kind, ("lut", AttributeValue::n(now))]);
}

/// The present owner renews the lease, and never hands it over.
#[test]
fn a_leader_ends_a_hand_over_or_gives_the_lease_back() {
    for (next_lives, owner) in [(true, "java2"), (false, JAVA)] {
        let mut rig = leading(2);
        java_lives(&mut rig, 3);
        rig.name([0], "java2");
        rig.row_mut(0).handing_over = Some(JAVA.into());
        rig.name([1], JAVA);
        rig.row_mut(1).handing_over = None;
        let mut secs = 0;
        while rig.row(0).handing_over.is_some() && secs < 100 {
            if next_lives {
                another_reports(&mut rig, "java2");
            }
            java_lives(&mut rig, 1);
            secs += 1;
        }
        assert!((38..=44).contains(&secs), "the next owner lives: {next_lives}, {secs} s");
        assert_eq!(rig.row(0).owner, Some(owner.into()), "the next owner lives: {next_lives}");
    }
}
