//! Scenes of a worker that is a member of a fleet of KCL 3.x. The rows of the other worker, `java`, are written by the
//! scene. Scenes of a leader are in `kcl3_leader.rs`.

use crate::rig::*;
use leasehold_engine::ids::{LeaseKey, WorkerId};
use leasehold_engine::input::Call;
use leasehold_engine::notice::{FleetRules, Notice, TakeReason};
use leasehold_engine::output::EndReason;
use leasehold_engine::table::{AttributeValue, Item};

pub const JAVA: &str = "java";

/// A table with a never owned lease for each shard, and workers of ours.
pub fn fleet(shards: u32, workers: u32) -> Rig {
    let mut rig = Rig::of(shards, 0, |_| asking());
    (0..shards).map(|n| rig.new_row(n)).collect::<Vec<_>>().into_iter().for_each(|row| rig.insert(row));
    rig.join_all(workers);
    rig
}

/// A fleet of KCL 3.x in which the Java worker has just reported, and no worker leads.
pub fn of_3x(shards: u32) -> Rig {
    let mut rig = fleet(shards, 0);
    version(&mut rig, "CLIENT_VERSION_3X");
    reports(&mut rig, JAVA);
    rig
}

pub fn text(value: &str) -> AttributeValue {
    AttributeValue::s(value)
}

pub fn put(rig: &mut Rig, key: &str, attributes: &[(&'static str, AttributeValue)]) {
    let mut item = Item::from([("leaseKey".into(), text(key))]);
    for (name, value) in attributes {
        item.insert((*name).into(), value.clone());
    }
    rig.table.fleet.insert(LeaseKey::from(key), item);
}

pub fn version(rig: &mut Rig, version: &str) {
    let kind = ("entityType", text("CLIENT_VERSION_MIGRATION"));
    put(rig, "Migration3.0", &[kind, ("cv", text(version))]);
}

pub fn lock(rig: &mut Rig, owner: &str, version: &str) {
    let attributes = [
        ("entityType", text("LEADER")),
        ("ownerName", text(owner)),
        ("leaseDuration", text("120000")),
        ("recordVersionNumber", text(version)),
    ];
    put(rig, "Leader", &attributes);
}

/// A worker of KCL reports, as every 30 s.
pub fn reports(rig: &mut Rig, who: &str) {
    let now = rig.now.0 / 1_000_000;
    let empty = || AttributeValue::M(std::collections::BTreeMap::new());
    let attributes = [
        ("entityType", text("WORKER_METRIC_STATS")),
        ("lut", AttributeValue::n(now)),
        ("sts", empty()),
        ("opr", empty()),
    ];
    put(rig, who, &attributes);
}

/// A worker of another program renews its leases.
pub fn renews(rig: &mut Rig, who: &str) {
    for row in rig.rows_mut().values_mut() {
        row.counter += u64::from(row.actual_owner() == Some(&who.into()));
    }
}

/// The Java worker lives: the worker reports, and renews its leases and the lock.
pub fn java_acts(rig: &mut Rig) {
    reports(rig, JAVA);
    let now = text(&rig.now.to_string());
    let lock = rig.table.fleet.get_mut("Leader");
    if let Some(lock) = lock.filter(|lock| lock["ownerName"] == text(JAVA)) {
        lock.insert("recordVersionNumber".into(), now);
    }
    renews(rig, JAVA);
}

/// Lets time pass while the Java worker lives.
pub fn java_lives(rig: &mut Rig, secs: u64) {
    for _ in 0..secs {
        java_acts(rig);
        rig.secs(1);
    }
}

/// `java` lives for so many seconds, and then worker 0 holds so many leases.
#[track_caller]
pub fn assert_held_after(rig: &mut Rig, secs: u64, leases: usize) {
    java_lives(rig, secs);
    assert_eq!(rig[0].held(), leases);
}

pub fn report_of(rig: &Rig, worker: usize) -> Option<&Item> {
    rig.table.fleet.get(rig[worker].me().as_str())
}

/// A fleet led by `java`.
pub fn led(shards: u32, workers: u32) -> Rig {
    let mut rig = of_3x(shards);
    lock(&mut rig, JAVA, "v1");
    rig.join_all(workers);
    rig
}

#[test]
fn a_member_reports_at_once_and_again_every_half_minute() {
    let mut rig = led(2, 1);
    java_lives(&mut rig, 2);
    let at = |rig: &Rig| report_of(rig, 0).map(|item| item["lut"].as_n().unwrap().parse::<u64>().unwrap());
    let first = at(&rig).expect("a report within two seconds");
    java_lives(&mut rig, 60);
    let last = at(&rig).unwrap();
    assert!((58..=62).contains(&(last - first)), "{first} {last}");
    let item = report_of(&rig, 0).unwrap();
    assert_eq!(item["entityType"], text("WORKER_METRIC_STATS"));
    assert_eq!((&item["sup"], &item["slu"]), (&AttributeValue::n(1), &item["lut"]));
    assert_eq!(item["leaseholdOwner"], text(rig[0].me().as_str()));
    let led = |notice: &Notice| {
        matches!(notice, Notice::Fleet { rules: FleetRules::Led, leader: Some(leader), leads: false, .. }
            if leader.as_str() == JAVA)
    };
    assert!(rig[0].told(led) > 0, "{:?}", rig[0].notices);
}

#[test]
fn a_member_takes_what_the_leader_assigns_and_nothing_else() {
    let mut rig = led(3, 1).with_records([0], 5);
    java_lives(&mut rig, 20);
    assert_eq!(rig[0].held(), 0, "free leases are the leader's to assign");
    rig.give(0, rig[0].me());
    assert_held_after(&mut rig, 1, 1);
    let why = rig[0].news(|notice| match notice {
        Notice::Took { why, .. } => Some(why),
        _ => None,
    });
    assert_eq!(why, [&TakeReason::Ours]);
    assert_held_after(&mut rig, 10, 1);
}

#[test]
fn a_member_steals_nothing_however_uneven_it_is() {
    let mut rig = led(8, 0);
    rig.name(0..8, JAVA);
    rig.join();
    assert_held_after(&mut rig, 300, 0);
    assert!((0..8).all(|n| rig.row(n).actual_owner() == Some(&JAVA.into())));
}

#[test]
fn a_member_hands_over_what_the_leader_moves() {
    let mut rig = led(1, 1);
    let me = rig[0].me();
    rig.name([0], me.clone());
    rig.put(0, 10);
    assert_held_after(&mut rig, 5, 1);
    rig.name([0], JAVA);
    rig.row_mut(0).handing_over = Some(me);
    assert_held_after(&mut rig, 4, 0);
    let row = rig.row(0);
    assert_eq!((row.actual_owner(), &row.handing_over), (Some(&JAVA.into()), &None));
    assert!(row.checkpoint.position().is_some(), "what was processed is saved");
    assert_eq!(rig[0].closed(), [EndReason::HandedOver]);
    rig.assert_all_processed();
}

#[test]
fn an_unassigned_lease_is_taken_after_a_while() {
    // A free lease waits for five lease durations. Without a leader, an expired lease waits for two, after the lease
    // duration by which the worker knows of the expiry.
    for (leader, owner, secs) in
        [(JAVA, None, 50), ("dead", None, 50), (JAVA, Some("dead"), 60), ("dead", Some("dead"), 30)]
    {
        let mut rig = of_3x(4);
        lock(&mut rig, leader, "v1");
        (0..4).for_each(|n| rig.row_mut(n).owner = owner.map(WorkerId::from));
        rig.join();
        java_lives(&mut rig, secs - 1);
        assert_eq!(rig[0].held(), 0, "{leader} {owner:?}");
        java_lives(&mut rig, 3);
        assert!(rig[0].held() > 0, "{leader} {owner:?}");
    }
}

/// A leader that has just begun has not reported yet.
#[test]
fn a_changing_lock_is_of_a_live_leader_without_a_report() {
    let mut rig = of_3x(4);
    lock(&mut rig, "new", "v0");
    rig.name(0..4, "dead");
    rig.join();
    for beat in 1..59 {
        lock(&mut rig, "new", &format!("v{beat}"));
        java_lives(&mut rig, 1);
    }
    assert_eq!(rig[0].held(), 0, "it is the leader that assigns them");
    lock(&mut rig, "new", "the last one");
    java_lives(&mut rig, 16);
    assert!(rig[0].held() > 0, "nobody assigns them");
}

#[test]
fn a_fleet_without_java_works_by_our_own_rules() {
    let mut rig = led(8, 0);
    // The Java worker died two minutes ago.
    rig.secs(120);
    rig.join_then(2);
    assert_eq!(rig[0].held(), 8);
    rig.join_then(3);
    assert_eq!((rig[0].held(), rig[1].held()), (4, 4));
    assert!(report_of(&rig, 1).is_some(), "a Java worker that comes back is to know of it");
}

#[test]
fn a_report_is_as_old_as_it_says_when_it_is_seen_first() {
    let mut rig = led(8, 0);
    // The Java worker died 50 s ago: the worker counts for 10 s more.
    rig.secs(50);
    rig.join_then(8);
    assert_eq!(rig[0].held(), 0);
    rig.secs(5);
    assert_eq!(rig[0].held(), 8);
}

#[test]
fn a_fleet_that_migrates_gets_reports_and_is_counted_as_before() {
    for (state, reported) in [("CLIENT_VERSION_UPGRADE_FROM_2X", true), ("CLIENT_VERSION_2X", false)] {
        let mut rig = fleet(4, 0);
        version(&mut rig, state);
        rig.join_then(3);
        assert_eq!(rig[0].held(), 4, "{state}");
        assert_eq!(report_of(&rig, 0).is_some(), reported, "{state}");
        // Back again: the report goes, or workers of KCL 2.x would not understand the row.
        version(&mut rig, "CLIENT_VERSION_2X");
        rig.secs(3);
        assert!(report_of(&rig, 0).is_none(), "{state}");
        assert_eq!(rig[0].held(), 4, "{state}");
    }
}

#[test]
fn an_unknown_state_makes_a_harmless_member_that_says_so() {
    let mut rig = fleet(4, 0);
    version(&mut rig, "CLIENT_VERSION_4X");
    reports(&mut rig, JAVA);
    rig.join();
    assert_held_after(&mut rig, 30, 0);
    assert!(!rig.table.fleet.contains_key("Leader"));
    let said = rig[0].news(|notice| match notice {
        Notice::Fleet { unknown, .. } => unknown.as_deref(),
        _ => None,
    });
    assert!(said.contains(&"CLIENT_VERSION_4X"));
}

#[test]
fn a_member_that_stops_passes_its_leases_on() {
    let mut rig = led(3, 2);
    let ids = [rig[0].me(), rig[1].me()];
    rig.name(0..3, ids[0].clone());
    rig.put(0, 10);
    assert_held_after(&mut rig, 5, 3);
    rig.call(0, Call::Shutdown);
    java_lives(&mut rig, 2);
    assert!(rig[0].is_stopped());
    let of = |owner: &WorkerId| (0..3).filter(|n| rig.row(*n).actual_owner() == Some(owner)).count();
    assert_eq!(of(&ids[0]), 0);
    assert_eq!(of(&ids[1]) + of(&JAVA.into()), 3, "no lease waits for the leader");
    assert!(of(&ids[1]) > 0 && of(&JAVA.into()) > 0, "each gets some");
}

/// The leader of KCL moves leases by their throughput, and moves none while no row tells any.
#[test]
fn a_member_writes_its_throughput_beside_workers_of_kcl_3_alone() {
    let mut rig = fleet(2, 1).after(100);
    assert_eq!(rig[0].sent(WEIGH), 0);
    version(&mut rig, "CLIENT_VERSION_3X");
    rig.put(0, 1_000);
    rig.secs(40);
    let told = [0, 1].map(|shard| rig.row(shard).throughput.map(|told| told > 0));
    assert_eq!(told, [Some(true), Some(false)]);
    let before = rig[0].sent(WEIGH);
    rig.secs(300);
    assert!(rig[0].sent(WEIGH) - before <= 2 * 11, "once in 30 s for each lease");
}

/// A worker that stood still sees reports changed in the meantime. Their ages are the ages written in the reports.
#[test]
fn a_member_that_stood_passes_nothing_to_a_dead_worker() {
    let mut rig = led(1, 1);
    rig.name([0], rig[0].me());
    assert_held_after(&mut rig, 5, 1);
    rig[0].die();
    java_lives(&mut rig, 40);
    rig.secs(200);
    rig[0].alive = true;
    rig.secs(5);
    rig.call(0, Call::Shutdown);
    rig.secs(3);
    assert!(rig[0].is_stopped());
    assert_eq!(rig.row(0).owner, None, "no other worker is alive that could be given it");
}

/// KCL's owner lets go after 30 s, or never.
#[test]
fn a_promised_lease_that_kcl_keeps_is_stolen_in_time() {
    let mut rig = led(1, 1);
    rig.name([0], rig[0].me());
    rig.row_mut(0).handing_over = Some(JAVA.into());
    java_lives(&mut rig, 40);
    assert_eq!(rig[0].held(), 0, "it has the time to let go");
    assert_held_after(&mut rig, 8, 1);
    assert_eq!(rig.row(0).handing_over, None);
}
