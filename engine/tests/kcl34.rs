//! Scenes of a worker in a fleet of KCL 3.0 to 3.4, whose workers know each other from two tables beside the lease table, and on the way of
//! such a fleet into the lease table. The rows of the other workers are written by the scene.

use crate::kcl3::{self, JAVA, renews, text};
use crate::rig::*;
use leasehold_engine::fleet::{FleetTable, FleetTablesNews};
use leasehold_engine::ids::{LeaseKey, WorkerId};
use leasehold_engine::input::{Call, Why};
use leasehold_engine::notice::Notice;
use leasehold_engine::output::{Effect, TableOp};
use leasehold_engine::row::HandsOver;
use leasehold_engine::table::{AttributeValue, Item};
use std::collections::BTreeMap;

/// A place for rows: the lease table, or a table beside it.
pub type Place = Option<FleetTable>;
const HERE: Place = None;
pub const WORKERS: Place = Some(FleetTable::Workers);
pub const COORDINATOR: Place = Some(FleetTable::Coordinator);

pub fn rows(rig: &mut Rig, place: Place) -> &mut BTreeMap<LeaseKey, Item> {
    match place {
        None => &mut rig.table.fleet,
        Some(table) => rig.table.fleet_tables.get_mut(&table).expect("the table"),
    }
}

pub fn put(rig: &mut Rig, place: Place, key: &str, attributes: &[(&'static str, AttributeValue)]) {
    let name = match place {
        None => "leaseKey",
        Some(FleetTable::Workers) => "wid",
        Some(FleetTable::Coordinator) => "key",
    };
    let mut item = Item::from([(name.into(), text(key))]);
    for (name, value) in attributes {
        item.insert((*name).into(), value.clone());
    }
    rows(rig, place).insert(LeaseKey::from(key), item);
}

/// A table with a never owned lease for each shard.
pub fn leases(shards: u32) -> Rig {
    kcl3::fleet(shards, 0)
}

pub fn make_empty_tables(rig: &mut Rig) {
    rig.table.fleet_tables = FleetTable::ALL.map(|table| (table, BTreeMap::new())).into();
}

/// The two tables of a fleet of KCL 3.4 led by `java`, as KCL 3.4 writes these tables: without `entityType`.
pub fn make_tables(rig: &mut Rig) {
    make_empty_tables(rig);
    put(rig, COORDINATOR, "Migration3.0", &[("cv", text("CLIENT_VERSION_3X"))]);
    lock(rig, COORDINATOR, JAVA, "v1");
    reports(rig, JAVA, WORKERS, false);
}

/// A fleet led by `java`, and workers of ours.
pub fn led(shards: u32, workers: u32) -> Rig {
    let mut rig = leases(shards);
    make_tables(&mut rig);
    rig.join_all(workers);
    rig
}

fn lock(rig: &mut Rig, place: Place, owner: &str, version: &str) {
    let attributes = [
        ("ownerName", text(owner)),
        ("leaseDuration", text("120000")),
        ("recordVersionNumber", text(version)),
    ];
    put(rig, place, "Leader", &attributes);
}

/// A worker of KCL reports; `one_table`: the worker is a worker of KCL 3.5.
pub fn reports(rig: &mut Rig, who: &str, place: Place, one_table: bool) {
    let now = rig.now.0 / 1_000_000;
    let empty = || AttributeValue::M(BTreeMap::new());
    let mut attributes = vec![("lut", AttributeValue::n(now)), ("sts", empty()), ("opr", empty())];
    if one_table {
        attributes.push(("entityType", text("WORKER_METRIC_STATS")));
        attributes.extend([("sup", AttributeValue::n(1)), ("slu", AttributeValue::n(now))]);
    }
    put(rig, place, who, &attributes);
}

/// The row of the migration from three tables to one.
fn migrates(rig: &mut Rig, state: &str) {
    let state = format!("TABLE_MIGRATION_STATUS_{state}");
    put(rig, COORDINATOR, "TableMigration3.5", &[("tm", text(&state))]);
}

/// How the Java workers of a scene live.
#[derive(Clone, Copy)]
pub struct Java {
    reports_in: Place,
    one_table: bool,
    /// The place of its lock.
    lock_in: Place,
}

pub const OF_34: Java = Java { reports_in: WORKERS, one_table: false, lock_in: COORDINATOR };
const OF_35: Java = Java { one_table: true, ..OF_34 };

/// Lets time pass. The Java worker lives: the worker reports, and renews its leases and the lock.
pub fn java_lives(rig: &mut Rig, java: Java, secs: u64) {
    for _ in 0..secs {
        reports(rig, JAVA, java.reports_in, java.one_table);
        let now = text(&rig.now.to_string());
        if let Some(lock) = rows(rig, java.lock_in).get_mut("Leader")
            && lock["ownerName"] == text(JAVA)
        {
            lock.insert("recordVersionNumber".into(), now);
        }
        renews(rig, JAVA);
        rig.secs(1);
    }
}

/// `java` lives for so many seconds, and then worker 0 holds so many leases.
#[track_caller]
pub fn assert_held_after(rig: &mut Rig, java: Java, secs: u64, leases: usize) {
    java_lives(rig, java, secs);
    assert_eq!(rig[0].held(), leases);
}

/// Where worker 0 reports: in the lease table, and beside it.
pub fn report_of(rig: &mut Rig) -> [bool; 2] {
    let me = rig[0].me();
    [HERE, WORKERS].map(|place| rows(rig, place).contains_key(me.as_str()))
}

fn owner_of_lock(rig: &mut Rig, place: Place) -> Option<String> {
    let lock = rows(rig, place).get("Leader")?;
    Some(lock["ownerName"].as_s()?.to_owned())
}

pub fn assign(rig: &mut Rig, n: u32, owner: &WorkerId) {
    rig.give(n, owner.clone());
    rig.row_mut(n).hands_over = HandsOver::No;
}

pub fn news(rig: &Rig, worker: usize) -> Vec<FleetTablesNews> {
    rig[worker].news(|notice| match notice {
        Notice::FleetTables(news) => Some(news.clone()),
        _ => None,
    })
}

/// Whether it concerns a table beside the lease table.
pub fn looks(effect: &Effect) -> bool {
    matches!(effect, Effect::Table(TableOp::FleetTable(..)))
}

#[test]
fn a_member_reports_where_others_do_and_takes_its_assignments() {
    let mut rig = led(3, 1);
    java_lives(&mut rig, OF_34, 30);
    assert_eq!(report_of(&mut rig), [false, true]);
    assert_eq!(rig[0].held(), 0, "free leases are the leader's to assign");
    assert!(rig.table.fleet.is_empty(), "{:?}", rig.table.fleet);
    let me = rig[0].me();
    let report = rows(&mut rig, WORKERS)[me.as_str()].clone();
    assert_eq!(report["wid"], text(me.as_str()));
    let at: u64 = report["lut"].as_n().unwrap().parse().unwrap();
    assign(&mut rig, 0, &me);
    assert_held_after(&mut rig, OF_34, 1, 1);
    java_lives(&mut rig, OF_34, 40);
    let again: u64 = rows(&mut rig, WORKERS)[me.as_str()]["lut"].as_n().unwrap().parse().unwrap();
    assert!(again >= at + 30, "{at} {again}");
    assert_eq!(news(&rig, 0), [FleetTablesNews::Found]);
    rig.call(0, Call::Shutdown);
    java_lives(&mut rig, OF_34, 3);
    assert!(rig[0].is_stopped());
    assert_eq!(report_of(&mut rig), [false, false]);
}

/// The lock beside the lease table counts, and our worker takes this lock.
#[test]
fn ours_leads_when_the_lock_stands_still_and_gives_it_up() {
    let mut rig = led(8, 1);
    lock(&mut rig, COORDINATOR, "dead", "v1");
    java_lives(&mut rig, OF_34, 119);
    assert_eq!(owner_of_lock(&mut rig, COORDINATOR), Some("dead".into()));
    java_lives(&mut rig, OF_34, 15);
    let me = rig[0].me().to_string();
    assert_eq!(owner_of_lock(&mut rig, COORDINATOR), Some(me));
    assert_eq!(owner_of_lock(&mut rig, HERE), None);
    let version = rows(&mut rig, COORDINATOR)["Leader"]["recordVersionNumber"].clone();
    assert_held_after(&mut rig, OF_34, 40, 4);
    let javas = rig.named(JAVA, 8);
    assert_eq!(javas, 4, "the leader shares out evenly");
    let beaten = rows(&mut rig, COORDINATOR)["Leader"]["recordVersionNumber"].clone();
    assert_ne!(beaten, version, "it is renewed");
    rig.call(0, Call::Shutdown);
    java_lives(&mut rig, OF_34, 3);
    assert_eq!(owner_of_lock(&mut rig, COORDINATOR), None);
}

/// Step by step as the leader of KCL 3.5 goes. No report is missing at any moment, and none is left in the other table.
#[test]
fn a_member_follows_the_fleet_into_the_lease_table() {
    let mut rig = led(2, 0);
    (0..2).for_each(|n| assign(&mut rig, n, &JAVA.into()));
    rig.join();
    for state in [None, Some("INIT")] {
        if let Some(state) = state {
            migrates(&mut rig, state);
        }
        java_lives(&mut rig, OF_35, 30);
        assert_eq!(report_of(&mut rig), [false, true], "{state:?}");
    }
    migrates(&mut rig, "DEPLOYED");
    java_lives(&mut rig, OF_35, 30);
    assert_eq!(report_of(&mut rig), [true, false]);
    let here = Java { reports_in: HERE, ..OF_35 };
    rows(&mut rig, WORKERS).remove(JAVA);
    java_lives(&mut rig, here, 30);
    // The fleet's states are moved: the row of the version is in the lease table from now on.
    rows(&mut rig, COORDINATOR).remove("Migration3.0");
    let kind = ("entityType", text("CLIENT_VERSION_MIGRATION"));
    put(&mut rig, HERE, "Migration3.0", &[kind, ("cv", text("CLIENT_VERSION_3X"))]);
    migrates(&mut rig, "PENDING");
    java_lives(&mut rig, here, 60);
    assert_eq!(report_of(&mut rig), [true, false]);
    assert_eq!(rig[0].held(), 0, "a leader assigns as before");
    migrates(&mut rig, "COMPLETE");
    rows(&mut rig, COORDINATOR).remove("Leader");
    lock(&mut rig, HERE, JAVA, "v9");
    rows(&mut rig, HERE).get_mut("Leader").unwrap().insert("entityType".into(), text("LEADER"));
    let done = Java { lock_in: HERE, ..here };
    java_lives(&mut rig, done, 60);
    assert_eq!(report_of(&mut rig), [true, false]);
    assert_eq!(owner_of_lock(&mut rig, HERE), Some(JAVA.into()));
    assert_eq!(news(&rig, 0), [FleetTablesNews::Found, FleetTablesNews::OneTable]);
    let before = rig[0].sent(looks);
    java_lives(&mut rig, done, 120);
    assert_eq!(rig[0].sent(looks), before, "the tables beside are read no more");
    // A worker that starts now sees at once that the tables are unused.
    let second = rig.join();
    java_lives(&mut rig, done, 5);
    assert_eq!((rig[second].sent(looks), news(&rig, second)), (2, vec![]));
    let second = rig[second].me();
    assert!(rows(&mut rig, HERE).contains_key(second.as_str()));
}

/// The lock was free, and ours leads KCL 3.4.
fn led_by_ours() -> Rig {
    let mut rig = led(2, 1);
    rows(&mut rig, COORDINATOR).remove("Leader");
    java_lives(&mut rig, OF_34, 70);
    assert_eq!(owner_of_lock(&mut rig, COORDINATOR), Some(rig[0].me().to_string()));
    rig
}

/// Ours leads KCL 3.4. A worker of KCL 3.5 is to lead the way into the lease table, which ours does not.
#[test]
fn ours_leaves_the_lead_to_workers_that_know_the_way() {
    let mut rig = led_by_ours();
    java_lives(&mut rig, OF_35, 25);
    assert_eq!(owner_of_lock(&mut rig, COORDINATOR), None);
    java_lives(&mut rig, OF_35, 300);
    assert_eq!(owner_of_lock(&mut rig, COORDINATOR), None);
}

/// A leader gives no lease to a worker that has stopped, at whatever moment the leader looked last.
#[test]
fn a_leader_gives_nothing_to_a_worker_that_has_left() {
    for after in 0..20 {
        let mut rig = led(8, 0);
        rows(&mut rig, COORDINATOR).remove("Leader");
        rig.join();
        java_lives(&mut rig, OF_34, 60);
        let leader = owner_of_lock(&mut rig, COORDINATOR);
        assert_eq!(leader, Some(rig[0].me().to_string()));
        let other = rig.join();
        java_lives(&mut rig, OF_34, 100 + after);
        let left = rig[other].me();
        assert!(rig.named(left.as_str(), 8) > 0, "it has its share");
        rig.call(other, Call::Shutdown);
        java_lives(&mut rig, OF_34, 2);
        assert!(rig[other].is_stopped(), "after {after} s");
        for _ in 0..30 {
            assert_eq!(rig.named(left.as_str(), 8), 0, "after {after} s");
            java_lives(&mut rig, OF_34, 1);
        }
    }
}

/// A lock held by our worker does not outlive the move.
#[test]
fn a_lock_beside_is_given_up_when_the_fleet_has_moved() {
    let mut rig = led_by_ours();
    migrates(&mut rig, "COMPLETE");
    rows(&mut rig, WORKERS).remove(JAVA);
    let kind = ("entityType", text("CLIENT_VERSION_MIGRATION"));
    put(&mut rig, HERE, "Migration3.0", &[kind, ("cv", text("CLIENT_VERSION_3X"))]);
    let moved = Java { reports_in: HERE, one_table: true, lock_in: HERE };
    java_lives(&mut rig, moved, 15);
    assert_eq!(owner_of_lock(&mut rig, COORDINATOR), None);
    java_lives(&mut rig, moved, 60);
    assert_eq!(owner_of_lock(&mut rig, HERE), Some(rig[0].me().to_string()));
    assert_eq!(report_of(&mut rig), [true, false]);
}

/// A leader of KCL 3.4 reads the tables beside the lease table alone, whatever a row says that it does not know.
#[test]
fn a_worker_of_34_that_comes_back_finds_our_report() {
    let mut rig = led(2, 1);
    migrates(&mut rig, "DEPLOYED");
    java_lives(&mut rig, OF_35, 30);
    assert_eq!(report_of(&mut rig), [true, false]);
    for _ in 0..60 {
        reports(&mut rig, "back", WORKERS, false);
        java_lives(&mut rig, OF_35, 1);
    }
    assert_eq!(report_of(&mut rig), [false, true]);
}

#[test]
fn an_unknown_state_makes_a_harmless_member_that_says_so_once() {
    let mut rig = led(2, 0);
    put(&mut rig, COORDINATOR, "TableMigration3.5", &[("tm", text("TABLES_4"))]);
    rows(&mut rig, COORDINATOR).remove("Leader");
    rig.join();
    assert_held_after(&mut rig, OF_34, 49, 0);
    java_lives(&mut rig, OF_34, 150);
    assert_eq!(owner_of_lock(&mut rig, COORDINATOR), None);
    assert_eq!(report_of(&mut rig), [false, true]);
    let state = "TABLES_4".to_owned();
    assert_eq!(news(&rig, 0), [FleetTablesNews::Unknown { state }]);
}

/// While a report could not be written to the new table, the old one stays.
#[test]
fn a_report_is_left_where_it_is_until_the_next_one_is_written() {
    let mut rig = led(2, 1);
    java_lives(&mut rig, OF_35, 20);
    migrates(&mut rig, "DEPLOYED");
    rig[0].trap(meets(REPORT, Trick::refused(Why::Denied)));
    java_lives(&mut rig, OF_35, 60);
    assert_eq!(report_of(&mut rig), [false, true]);
    rig[0].trap = None;
    java_lives(&mut rig, OF_35, 20);
    assert_eq!(report_of(&mut rig), [true, false]);
}

/// The tables beside cannot be read, for as long as it may be, and the lease table can: that makes the worker no thief.
#[test]
fn a_member_steals_nothing_while_tables_beside_are_unreadable() {
    let mut rig = led(8, 1);
    (0..8).for_each(|n| assign(&mut rig, n, &JAVA.into()));
    java_lives(&mut rig, OF_34, 20);
    rig[0].trap(meets(looks, Trick::THROTTLED));
    assert_held_after(&mut rig, OF_34, 600, 0);
    // Nor when it knew of no live worker of KCL before.
    let mut rig = led(8, 1).after(100);
    assert_eq!(rig[0].held(), 8);
    rig[0].trap(meets(looks, Trick::THROTTLED));
    rig.secs(60);
    (0..8).for_each(|n| assign(&mut rig, n, &JAVA.into()));
    assert_held_after(&mut rig, OF_34, 600, 0);
}
