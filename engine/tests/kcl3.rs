//! Scenes of a worker that is a member of a fleet of KCL 3.x. The rows of the other worker, `java`, are written by the
//! scene. Scenes of a leader are in `kcl3_leader.rs`.

use crate::rig::{Rig, asking};
use leasehold_engine::ids::{LeaseKey, WorkerId};
use leasehold_engine::input::Call;
use leasehold_engine::notice::{FleetRules, Notice, TakeReason};
use leasehold_engine::output::{ConsumerOp, Effect, EndReason, TableOp};
use leasehold_engine::position::Checkpoint;
use leasehold_engine::row::{Change, LeaseRow};
use leasehold_engine::table::{AttributeValue, Item};

pub const JAVA: &str = "java";

/// A table with a never owned lease for each shard, and workers of ours.
pub fn fleet(shards: u32, workers: u32) -> Rig {
    let mut rig = Rig::new(shards, 0);
    rig.configure(|_| asking());
    rig.table.rows = Some(
        rig.stream
            .shards
            .values()
            .map(|shard| {
                let mut row = LeaseRow::new(shard.id.to_lease(), Checkpoint::TrimHorizon);
                row.range = Some(shard.range);
                (row.key.clone(), row)
            })
            .collect(),
    );
    for _ in 0..workers {
        rig.join();
    }
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

/// The Java worker reports, as every 30 s.
pub fn reports(rig: &mut Rig) {
    let now = rig.now.0 / 1_000_000;
    let empty = || AttributeValue::M(std::collections::BTreeMap::new());
    let attributes = [
        ("entityType", text("WORKER_METRIC_STATS")),
        ("lut", AttributeValue::n(now)),
        ("sts", empty()),
        ("opr", empty()),
    ];
    put(rig, JAVA, &attributes);
}

/// The Java worker lives: the worker reports, and renews its leases and the lock.
pub fn java_acts(rig: &mut Rig) {
    reports(rig);
    let now = text(&rig.now.to_string());
    let lock = rig.table.fleet.get_mut("Leader");
    if let Some(lock) = lock.filter(|lock| lock["ownerName"] == text(JAVA)) {
        lock.insert("recordVersionNumber".into(), now);
    }
    for row in rig.table.rows.iter_mut().flat_map(|rows| rows.values_mut()) {
        let java = Some(WorkerId::from(JAVA));
        if row.actual_owner() == java.as_ref() {
            row.counter += 1;
        }
    }
}

/// Lets time pass while the Java worker lives.
pub fn java_lives(rig: &mut Rig, secs: u64) {
    for _ in 0..secs {
        java_acts(rig);
        rig.secs(1);
    }
}

pub fn change(rig: &mut Rig, n: u32, change: impl FnOnce(&mut LeaseRow)) {
    let key = Rig::id(n).to_lease();
    change(rig.table.rows.as_mut().unwrap().get_mut(&key).unwrap());
}

pub fn me(rig: &Rig, worker: usize) -> WorkerId {
    rig.workers[worker].engine().worker().unwrap().clone()
}

pub fn held(rig: &Rig, worker: usize) -> usize {
    rig.workers[worker].engine().held().count()
}

pub fn report_of(rig: &Rig, worker: usize) -> Option<&Item> {
    rig.table.fleet.get(me(rig, worker).as_str())
}

/// A fleet led by `java`.
pub fn led(shards: u32, workers: u32) -> Rig {
    let mut rig = fleet(shards, 0);
    version(&mut rig, "CLIENT_VERSION_3X");
    lock(&mut rig, JAVA, "v1");
    reports(&mut rig);
    for _ in 0..workers {
        rig.join();
    }
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
    assert_eq!(item["leaseholdOwner"], text(me(&rig, 0).as_str()));
    let told = rig.workers[0].notices.iter().any(|(_, notice)| {
        matches!(notice, Notice::Fleet { rules: FleetRules::Led, leader: Some(leader), leads: false, .. }
            if leader.as_str() == JAVA)
    });
    assert!(told, "{:?}", rig.workers[0].notices);
}

#[test]
fn a_member_takes_what_the_leader_assigns_and_nothing_else() {
    let mut rig = led(3, 1);
    rig.put(0, 5);
    java_lives(&mut rig, 20);
    assert_eq!(held(&rig, 0), 0, "free leases are the leader's to assign");
    let me = me(&rig, 0);
    change(&mut rig, 0, |row| {
        row.owner = Some(me);
        row.counter += 1;
    });
    java_lives(&mut rig, 1);
    assert_eq!(held(&rig, 0), 1);
    let took = rig.workers[0].notices.iter().find_map(|(_, notice)| match notice {
        Notice::Took { why, .. } => Some(why.clone()),
        _ => None,
    });
    assert_eq!(took, Some(TakeReason::Ours));
    java_lives(&mut rig, 10);
    assert_eq!(held(&rig, 0), 1);
}

#[test]
fn a_member_steals_nothing_however_uneven_it_is() {
    let mut rig = led(8, 0);
    for n in 0..8 {
        change(&mut rig, n, |row| row.owner = Some(JAVA.into()));
    }
    rig.join();
    java_lives(&mut rig, 300);
    assert_eq!(held(&rig, 0), 0);
    assert!((0..8).all(|n| rig.row(n).actual_owner() == Some(&JAVA.into())));
}

#[test]
fn a_member_hands_over_what_the_leader_moves() {
    let mut rig = led(1, 1);
    let me = me(&rig, 0);
    change(&mut rig, 0, |row| row.owner = Some(me.clone()));
    rig.put(0, 10);
    java_lives(&mut rig, 5);
    assert_eq!(held(&rig, 0), 1);
    change(&mut rig, 0, |row| {
        row.owner = Some(JAVA.into());
        row.handing_over = Some(me.clone());
    });
    java_lives(&mut rig, 4);
    assert_eq!(held(&rig, 0), 0);
    let row = rig.row(0);
    assert_eq!((row.actual_owner(), &row.handing_over), (Some(&JAVA.into()), &None));
    assert!(row.checkpoint.position().is_some(), "what was processed is saved");
    let closes = rig.workers[0].calls.iter().filter_map(|(_, op)| match op {
        ConsumerOp::Close { reason, .. } => Some(*reason),
        _ => None,
    });
    assert_eq!(closes.collect::<Vec<_>>(), [EndReason::HandedOver]);
    rig.assert_all_processed();
}

#[test]
fn an_unassigned_lease_is_taken_after_a_while() {
    // A free lease waits for five lease durations. Without a leader, an expired lease waits for two, after the lease
    // duration by which the worker knows of the expiry.
    for (leader, owner, secs) in
        [(JAVA, None, 50), ("dead", None, 50), (JAVA, Some("dead"), 60), ("dead", Some("dead"), 30)]
    {
        let mut rig = fleet(4, 0);
        version(&mut rig, "CLIENT_VERSION_3X");
        lock(&mut rig, leader, "v1");
        reports(&mut rig);
        for n in 0..4 {
            change(&mut rig, n, |row| row.owner = owner.map(WorkerId::from));
        }
        rig.join();
        java_lives(&mut rig, secs - 1);
        assert_eq!(held(&rig, 0), 0, "{leader} {owner:?}");
        java_lives(&mut rig, 3);
        assert!(held(&rig, 0) > 0, "{leader} {owner:?}");
    }
}

/// A leader that has just begun has not reported yet.
#[test]
fn a_changing_lock_is_of_a_live_leader_without_a_report() {
    let mut rig = fleet(4, 0);
    version(&mut rig, "CLIENT_VERSION_3X");
    lock(&mut rig, "new", "v0");
    reports(&mut rig);
    for n in 0..4 {
        change(&mut rig, n, |row| row.owner = Some("dead".into()));
    }
    rig.join();
    for beat in 1..59 {
        lock(&mut rig, "new", &format!("v{beat}"));
        java_lives(&mut rig, 1);
    }
    assert_eq!(held(&rig, 0), 0, "it is the leader that assigns them");
    lock(&mut rig, "new", "the last one");
    java_lives(&mut rig, 16);
    assert!(held(&rig, 0) > 0, "nobody assigns them");
}

#[test]
fn a_fleet_without_java_works_by_our_own_rules() {
    let mut rig = fleet(8, 0);
    version(&mut rig, "CLIENT_VERSION_3X");
    lock(&mut rig, JAVA, "v1");
    reports(&mut rig);
    // The Java worker died two minutes ago.
    rig.secs(120);
    rig.join();
    rig.secs(2);
    assert_eq!(held(&rig, 0), 8);
    rig.join();
    rig.secs(3);
    assert_eq!((held(&rig, 0), held(&rig, 1)), (4, 4));
    assert!(report_of(&rig, 1).is_some(), "a Java worker that comes back is to know of it");
}

#[test]
fn a_report_is_as_old_as_it_says_when_it_is_seen_first() {
    let mut rig = fleet(8, 0);
    version(&mut rig, "CLIENT_VERSION_3X");
    lock(&mut rig, JAVA, "v1");
    reports(&mut rig);
    // The Java worker died 50 s ago: the worker counts for 10 s more.
    rig.secs(50);
    rig.join();
    rig.secs(8);
    assert_eq!(held(&rig, 0), 0);
    rig.secs(5);
    assert_eq!(held(&rig, 0), 8);
}

#[test]
fn a_fleet_that_migrates_gets_reports_and_is_counted_as_before() {
    for (state, reported) in [("CLIENT_VERSION_UPGRADE_FROM_2X", true), ("CLIENT_VERSION_2X", false)] {
        let mut rig = fleet(4, 0);
        version(&mut rig, state);
        rig.join();
        rig.secs(3);
        assert_eq!(held(&rig, 0), 4, "{state}");
        assert_eq!(report_of(&rig, 0).is_some(), reported, "{state}");
        // Back again: the report goes, or workers of KCL 2.x would not understand the row.
        version(&mut rig, "CLIENT_VERSION_2X");
        rig.secs(3);
        assert!(report_of(&rig, 0).is_none(), "{state}");
        assert_eq!(held(&rig, 0), 4, "{state}");
    }
}

#[test]
fn an_unknown_state_makes_a_harmless_member_that_says_so() {
    let mut rig = fleet(4, 0);
    version(&mut rig, "CLIENT_VERSION_4X");
    reports(&mut rig);
    rig.join();
    java_lives(&mut rig, 30);
    assert_eq!(held(&rig, 0), 0);
    assert!(!rig.table.fleet.contains_key("Leader"));
    let said = rig.workers[0].notices.iter().any(|(_, notice)| {
        matches!(notice, Notice::Fleet { unknown: Some(version), .. } if version == "CLIENT_VERSION_4X")
    });
    assert!(said);
}

#[test]
fn a_member_that_stops_passes_its_leases_on() {
    let mut rig = led(3, 2);
    let ids = [me(&rig, 0), me(&rig, 1)];
    for n in 0..3 {
        change(&mut rig, n, |row| row.owner = Some(ids[0].clone()));
    }
    rig.put(0, 10);
    java_lives(&mut rig, 5);
    assert_eq!(held(&rig, 0), 3);
    rig.call(0, Call::Shutdown);
    java_lives(&mut rig, 2);
    assert!(rig.workers[0].engine().is_stopped());
    let of = |owner: &WorkerId| (0..3).filter(|n| rig.row(*n).actual_owner() == Some(owner)).count();
    assert_eq!(of(&ids[0]), 0);
    assert_eq!(of(&ids[1]) + of(&JAVA.into()), 3, "no lease waits for the leader");
    assert!(of(&ids[1]) > 0 && of(&JAVA.into()) > 0, "each gets some");
}

/// The leader of KCL moves leases by their throughput, and moves none while no row tells any.
#[test]
fn a_member_writes_its_throughput_beside_workers_of_kcl_3_alone() {
    let mut rig = fleet(2, 1);
    let weighs = |rig: &Rig| {
        let sent = rig.workers[0].sent.iter();
        let weighs =
            sent.filter(|(_, effect)| matches!(effect, Effect::Table(TableOp::Write(Change::Weigh { .. }))));
        weighs.count()
    };
    rig.secs(100);
    assert_eq!(weighs(&rig), 0);
    version(&mut rig, "CLIENT_VERSION_3X");
    rig.put(0, 1_000);
    rig.secs(40);
    let told = [0, 1].map(|shard| rig.row(shard).throughput.map(|told| told > 0));
    assert_eq!(told, [Some(true), Some(false)]);
    let before = weighs(&rig);
    rig.secs(300);
    assert!(weighs(&rig) - before <= 2 * 11, "once in 30 s for each lease");
}

/// A worker that stood still sees reports changed in the meantime. Their ages are the ages written in the reports.
#[test]
fn a_member_that_stood_passes_nothing_to_a_dead_worker() {
    let mut rig = led(1, 1);
    let me = me(&rig, 0);
    change(&mut rig, 0, |row| row.owner = Some(me));
    java_lives(&mut rig, 5);
    assert_eq!(held(&rig, 0), 1);
    rig.workers[0].alive = false;
    java_lives(&mut rig, 40);
    rig.secs(200);
    rig.workers[0].alive = true;
    rig.secs(5);
    rig.call(0, Call::Shutdown);
    rig.secs(3);
    assert!(rig.workers[0].engine().is_stopped());
    assert_eq!(rig.row(0).owner, None, "no other worker is alive that could be given it");
}

/// KCL's owner lets go after 30 s, or never.
#[test]
fn a_promised_lease_that_kcl_keeps_is_stolen_in_time() {
    let mut rig = led(1, 1);
    let me = me(&rig, 0);
    change(&mut rig, 0, |row| {
        row.owner = Some(me);
        row.handing_over = Some(JAVA.into());
    });
    java_lives(&mut rig, 40);
    assert_eq!(held(&rig, 0), 0, "it has the time to let go");
    java_lives(&mut rig, 8);
    assert_eq!(held(&rig, 0), 1);
    assert_eq!(rig.row(0).handing_over, None);
}
