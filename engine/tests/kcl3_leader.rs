//! Scenes of a worker that leads a fleet of KCL 3.x, and of the lock by which it leads.

use crate::kcl3::{
    JAVA, change, fleet, held, java_acts, java_lives, lock, me, put, report_of, reports, text, version,
};
use crate::rig::{Rig, Trick};
use leasehold_engine::fleet::FleetWrite;
use leasehold_engine::input::Call;
use leasehold_engine::notice::Notice;
use leasehold_engine::output::{Effect, TableOp};
use leasehold_engine::table::AttributeValue;
use leasehold_engine::time::Span;

/// A fleet of `java` and one worker of ours as the leader.
fn leading(shards: u32) -> Rig {
    let mut rig = fleet(shards, 0);
    version(&mut rig, "CLIENT_VERSION_3X");
    reports(&mut rig);
    rig.join();
    java_lives(&mut rig, 46);
    let owner = rig.table.fleet.get("Leader").map(|item| item["ownerName"].clone());
    assert_eq!(owner, Some(text(me(&rig, 0).as_str())), "nobody else wants to lead");
    rig
}

#[test]
fn a_worker_that_stops_takes_its_report_and_its_lock_with_it() {
    let mut rig = leading(2);
    assert!(report_of(&rig, 0).is_some());
    rig.call(0, Call::Shutdown);
    rig.secs(3);
    assert!(rig.workers[0].engine().is_stopped());
    let keys: Vec<_> = rig.table.fleet.keys().map(ToString::to_string).collect();
    assert_eq!(keys, ["Migration3.0", JAVA]);
}

#[test]
fn a_leader_assigns_what_is_free_evenly() {
    let mut rig = leading(8);
    java_lives(&mut rig, 2);
    assert_eq!(held(&rig, 0), 4);
    let java = (0..8).filter(|n| rig.row(*n).owner == Some(JAVA.into()));
    assert_eq!(java.count(), 4);
}

/// The throughput of the former owner is no measure of our reading.
#[test]
fn a_leader_weighs_its_leases_without_others_reads_of_them() {
    let mut rig = leading(3);
    java_lives(&mut rig, 3);
    let me = me(&rig, 0);
    let mine = (0..3).find(|n| rig.row(*n).owner == Some(me.clone())).expect("it took its share");
    for n in 0..3 {
        change(&mut rig, n, |row| row.throughput = Some(1_000_000));
    }
    // The lease is taken once more, from a worker that read a lot of it.
    change(&mut rig, mine, |row| {
        row.owner = Some(JAVA.into());
        row.counter += 9;
        row.throughput = Some(90_000_000);
    });
    rig.secs(5);
    change(&mut rig, mine, |row| {
        row.owner = Some(me);
        row.counter += 1;
    });
    java_lives(&mut rig, 2);
    assert_eq!(held(&rig, 0), 1);
    let another = "java2";
    for _ in 0..45 {
        let now = rig.now.0 / 1_000_000;
        let kind = ("entityType", text("WORKER_METRIC_STATS"));
        put(&mut rig, another, &[kind, ("lut", AttributeValue::n(now))]);
        java_lives(&mut rig, 1);
    }
    let given = (0..3).filter(|n| rig.row(*n).owner == Some(another.into()));
    assert_eq!(given.count(), 1, "one of the two leases of the other worker");
}

#[test]
fn a_leader_gives_a_worker_of_kcl_time_to_find_its_assignment() {
    let mut rig = leading(8);
    java_lives(&mut rig, 2);
    let javas = |rig: &Rig| (0..8).filter(|n| rig.row(*n).owner == Some(JAVA.into())).count();
    assert_eq!(javas(&rig), 4);
    // The worker reports, and has not renewed any lease yet.
    for _ in 0..24 {
        reports(&mut rig);
        rig.secs(1);
    }
    assert_eq!(javas(&rig), 4, "two lease durations and a half are not over");
    for _ in 0..4 {
        reports(&mut rig);
        rig.secs(1);
    }
    assert_eq!((javas(&rig), held(&rig, 0)), (0, 8), "a worker that lets its leases expire gets no others");
}

#[test]
fn a_leader_moves_leases_by_hand_over() {
    let mut rig = leading(8);
    for n in 0..8 {
        change(&mut rig, n, |row| row.owner = Some(JAVA.into()));
    }
    let moves = |rig: &Rig| {
        let mut rows = (0..8).map(|n| rig.row(n));
        rows.any(|row| row.handing_over == Some(JAVA.into()) && row.owner == Some(me(rig, 0)))
    };
    let mut secs = 0;
    while !moves(&rig) {
        assert!(secs < 90, "no lease is on its way after {secs} s");
        java_lives(&mut rig, 1);
        secs += 1;
    }
    java_lives(&mut rig, 30);
    assert!(moves(&rig), "the Java worker has not let go of any");
    assert_eq!(held(&rig, 0), 0, "the Java worker has not let go of any");
}

#[test]
fn a_lock_whose_version_stands_still_for_two_minutes_is_taken() {
    let mut rig = fleet(2, 0);
    version(&mut rig, "CLIENT_VERSION_3X");
    lock(&mut rig, "dead", "v1");
    reports(&mut rig);
    rig.join();
    let owner = |rig: &Rig| rig.table.fleet["Leader"]["ownerName"].clone();
    java_lives(&mut rig, 119);
    assert_eq!(owner(&rig), text("dead"));
    java_lives(&mut rig, 6);
    assert_eq!(owner(&rig), text(me(&rig, 0).as_str()));
    let first = rig.table.fleet["Leader"]["recordVersionNumber"].clone();
    java_lives(&mut rig, 31);
    assert_ne!(rig.table.fleet["Leader"]["recordVersionNumber"], first, "it is renewed");
    assert_eq!(rig.table.fleet["Leader"]["leaseDuration"], text("20000"));
}

/// The seconds until this dead worker owns no lease any more. The Java worker lives, and does not lead.
fn bereft(rig: &mut Rig, worker: usize) -> u64 {
    let me = me(rig, worker);
    let owns = |rig: &Rig| (0..8).any(|n| rig.row(n).actual_owner() == Some(&me));
    assert!(owns(rig), "it has leases");
    rig.workers[worker].alive = false;
    for secs in 0..200 {
        if !owns(rig) {
            return secs;
        }
        java_lives(rig, 1);
    }
    panic!("its leases stand still")
}

/// A fleet of `java` and three workers of ours, one of them the leader. Returns the leader's number.
fn led_by_one_of_three() -> (Rig, usize) {
    let mut rig = leading(8);
    rig.join();
    rig.join();
    java_lives(&mut rig, 200);
    assert!((0..3).all(|worker| held(&rig, worker) > 0), "each has its share");
    (rig, 0)
}

#[test]
fn our_dead_leaders_leases_are_assigned_within_half_a_minute() {
    let (mut rig, leader) = led_by_one_of_three();
    let secs = bereft(&mut rig, leader);
    assert!(secs <= 22, "its leases stood for {secs} s");
    let owner = rig.table.fleet["Leader"]["ownerName"].clone();
    assert!([1, 2].map(|worker| text(me(&rig, worker).as_str())).contains(&owner));
}

#[test]
fn a_leader_assigns_our_dead_workers_leases_after_a_lease() {
    let (mut rig, _) = led_by_one_of_three();
    let secs = bereft(&mut rig, 2);
    assert!(secs <= 13, "its leases stood for {secs} s");
}

#[test]
fn two_of_ours_never_lead_at_once() {
    let mut rig = fleet(2, 0);
    version(&mut rig, "CLIENT_VERSION_3X");
    reports(&mut rig);
    rig.join();
    rig.join();
    java_lives(&mut rig, 100);
    let leads = |worker: usize| {
        let notices = rig.workers[worker].notices.iter();
        notices.rev().find_map(|(_, notice)| match notice {
            Notice::Fleet { leads, .. } => Some(*leads),
            _ => None,
        })
    };
    assert_eq!([leads(0), leads(1)].iter().filter(|leads| **leads == Some(true)).count(), 1);
}

fn lock_of(rig: &Rig) -> Option<(AttributeValue, AttributeValue)> {
    let item = rig.table.fleet.get("Leader")?;
    Some((item["ownerName"].clone(), item["recordVersionNumber"].clone()))
}

/// A leader stands still for longer than its lock lasts, just after a renewal: no scan has shown the leader the new
/// version.
fn stood_still() -> Rig {
    let mut rig = leading(2);
    let before = lock_of(&rig);
    while lock_of(&rig) == before {
        java_acts(&mut rig);
        rig.run(Span::from_millis(50));
    }
    rig.workers[0].alive = false;
    java_lives(&mut rig, 240);
    rig.workers[0].alive = true;
    rig
}

#[test]
fn a_leader_that_stood_leads_at_once_if_nobody_took_its_lock() {
    let mut rig = stood_still();
    let before = lock_of(&rig);
    java_lives(&mut rig, 2);
    let (owner, version) = lock_of(&rig).expect("a lock");
    assert_eq!(owner, text(me(&rig, 0).as_str()));
    assert_ne!(Some(version), before.map(|(_, version)| version), "it is renewed");
}

#[test]
fn a_leader_that_stood_still_leaves_the_lock_to_who_took_it() {
    let mut rig = stood_still();
    lock(&mut rig, JAVA, "v1");
    java_lives(&mut rig, 60);
    assert_eq!(lock_of(&rig).expect("a lock").0, text(JAVA));
    let (_, last) = rig.workers[0].notices.iter().rev().find(|(_, notice)| notice.name() == "fleet").unwrap();
    assert!(matches!(last, Notice::Fleet { leads: false, .. }), "{last:?}");
}

#[test]
fn a_leader_that_stood_still_gives_its_lock_up_when_it_stops() {
    let mut rig = stood_still();
    java_lives(&mut rig, 5);
    rig.call(0, Call::Shutdown);
    rig.secs(3);
    assert!(rig.workers[0].engine().is_stopped());
    assert_eq!(lock_of(&rig), None);
}

/// A write in flight at a leader's stop changes the row.
#[test]
fn a_leader_that_stops_during_a_renewal_gives_its_lock_up() {
    let mut rig = leading(2);
    rig.workers[0].trap = Some(Box::new(|effect| {
        matches!(effect, Effect::Table(TableOp::Fleet(FleetWrite::Beat { .. }))).then_some(Trick::Hang)
    }));
    java_lives(&mut rig, 35);
    assert_eq!(rig.workers[0].hung.len(), 1, "a renewal is under way");
    rig.call(0, Call::Shutdown);
    rig.secs(1);
    rig.release(0);
    rig.secs(3);
    assert!(rig.workers[0].engine().is_stopped());
    assert_eq!(lock_of(&rig), None);
}

/// A second worker of KCL lives, beside the first.
fn another_reports(rig: &mut Rig, name: &str) {
    let now = rig.now.0 / 1_000_000;
    let kind = ("entityType", text("WORKER_METRIC_STATS"));
    put(rig, name, &[kind, ("lut", AttributeValue::n(now))]);
}

/// The present owner renews the lease, and never hands it over. The seconds until the hand-over is over, at most 100.
fn stands(next: &str, next_lives: bool) -> (u64, Rig) {
    let mut rig = leading(2);
    java_lives(&mut rig, 3);
    for n in 0..2 {
        change(&mut rig, n, |row| {
            row.owner = Some(if n == 0 { next.into() } else { JAVA.into() });
            row.handing_over = (n == 0).then(|| JAVA.into());
        });
    }
    let mut secs = 0;
    while rig.row(0).handing_over.is_some() && secs < 100 {
        if next_lives {
            another_reports(&mut rig, next);
        }
        java_lives(&mut rig, 1);
        secs += 1;
    }
    (secs, rig)
}

#[test]
fn a_leader_ends_a_hand_over_that_its_owner_does_not_end() {
    let (secs, rig) = stands("java2", true);
    assert!((38..=44).contains(&secs), "{secs} s");
    assert_eq!(rig.row(0).owner, Some("java2".into()));
}

#[test]
fn a_leader_gives_back_a_lease_promised_to_a_dead_worker() {
    let (secs, rig) = stands("java2", false);
    assert!((38..=44).contains(&secs), "{secs} s");
    assert_eq!(rig.row(0).owner, Some(JAVA.into()));
}
