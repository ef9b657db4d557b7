//! Scenes of a fleet that migrates from the rules of KCL 2 to those of KCL 3, led by a worker of ours. The other
//! worker, `zoe`, is a worker of KCL 3 started in a fleet of KCL 2. The scene writes its rows; its name is the second
//! of two in the order of leaders.

use crate::kcl3::{fleet, put, renews, reports, text};
use crate::kcl34::{self, COORDINATOR, WORKERS};
use crate::rig::*;
use leasehold_engine::ids::LeaseKey;
use leasehold_engine::notice::{MigrationNews, Notice};
use leasehold_engine::table::AttributeValue;
use leasehold_engine::time::Span;

const ZOE: &str = "zoe";
/// The time KCL waits for, and the look after this time.
const MIGRATED: u64 = 600 + 60 + 21;

/// The state as KCL writes it, by the worker `by`.
fn begin(rig: &mut Rig, by: &str) {
    let now = AttributeValue::n(rig.now.0 / 1_000);
    let attributes = [
        ("entityType", text("CLIENT_VERSION_MIGRATION")),
        ("cv", text("CLIENT_VERSION_UPGRADE_FROM_2X")),
        ("mb", text(by)),
        ("mts", now),
    ];
    put(rig, "Migration3.0", &attributes);
}

/// Lets time pass while zoe reports, and renews its leases.
fn zoe_lives(rig: &mut Rig, secs: u64) {
    for _ in 0..secs {
        reports(rig, ZOE);
        renews(rig, ZOE);
        rig.secs(1);
    }
}

fn version(rig: &Rig) -> &str {
    rig.table.fleet["Migration3.0"]["cv"].as_s().unwrap()
}

fn has_migrated(rig: &Rig) -> bool {
    version(rig) == "CLIENT_VERSION_3X_WITH_ROLLBACK"
}

fn news(rig: &Rig, worker: usize) -> Vec<&MigrationNews> {
    rig[worker].news(|notice| match notice {
        Notice::Migration(news) => Some(news),
        _ => None,
    })
}

/// How often the end was written, and the index looked for.
fn sent(rig: &Rig, worker: usize) -> (usize, usize) {
    (rig[worker].sent(MIGRATE), rig[worker].sent(OWNER_INDEX))
}

/// The migration has begun, in a table with an index of owners.
fn begun(shards: u32) -> Rig {
    let mut rig = fleet(shards, 0);
    begin(&mut rig, ZOE);
    rig.table.owner_index = true;
    rig
}

/// Zoe began the migration and has one of two leases; ours has the other, and leads.
fn migrating() -> Rig {
    let mut rig = begun(2);
    rig.name([0], ZOE);
    rig.join();
    zoe_lives(&mut rig, 3);
    assert_eq!(rig[0].held(), 1);
    rig
}

#[test]
fn a_leader_ends_the_migration_after_ten_minutes_of_reports() {
    let mut rig = migrating();
    let begun = rig.table.fleet["Migration3.0"].clone();
    zoe_lives(&mut rig, 590);
    assert!(!has_migrated(&rig), "ten minutes are not over");
    zoe_lives(&mut rig, MIGRATED - 590);
    assert!(has_migrated(&rig));
    let row = &rig.table.fleet["Migration3.0"];
    assert_eq!(row["mb"], text(rig[0].me().as_str()));
    let AttributeValue::L(history) = &row["h"] else { panic!("{row:?}") };
    let AttributeValue::M(before) = &history[0] else { panic!("{row:?}") };
    assert!(["cv", "mb", "mts"].into_iter().all(|name| before[name] == begun[name]));
    let stays = Span::from_secs(600);
    assert_eq!(
        news(&rig, 0),
        [&MigrationNews::Ready { owners: 2, stays }, &MigrationNews::Ended { owners: 2 }]
    );
    let (ends, looks) = sent(&rig, 0);
    assert!(ends == 1 && looks <= 12, "{ends} {looks}: a look a minute");
}

/// KCL waits for as long as the table has such leases.
#[test]
fn leases_that_nobody_can_be_processing_hold_nothing_up() {
    let mut rig = begun(4);
    rig.configure(|config| config.with_max_leases(1));
    rig.name([0], ZOE);
    rig.name([1], "a-dead-worker");
    rig.join();
    // The shuffle of three puts the last name first, and that of two the first. Our worker leads when the dead worker
    // no longer counts.
    zoe_lives(&mut rig, 60 + MIGRATED + 60);
    assert_eq!(rig.row(1).owner, Some("a-dead-worker".into()));
    assert_eq!((2..4).filter(|n| rig.row(*n).owner.is_none()).count(), 1);
    assert!(has_migrated(&rig));
}

#[test]
fn of_two_workers_of_ours_one_looks() {
    let mut rig = begun(4);
    rig.join_all(2);
    rig.secs(MIGRATED + 60);
    assert!(has_migrated(&rig), "all that have leases report");
    assert_eq!((sent(&rig, 0).0, sent(&rig, 1)), (1, (0, 0)));
}

/// The operator goes back after the last scan: the write must not hold.
#[test]
fn the_end_is_not_written_over_a_rollback() {
    let mut rig = migrating();
    rig[0].trap(hangs(MIGRATE));
    while rig[0].hung(MIGRATE) == 0 {
        zoe_lives(&mut rig, 1);
    }
    rig.table.fleet.get_mut("Migration3.0").unwrap().insert("cv".into(), text("CLIENT_VERSION_2X"));
    rig.free(0);
    zoe_lives(&mut rig, 120);
    assert_eq!((version(&rig), sent(&rig, 0).0), ("CLIENT_VERSION_2X", 1));
}

#[test]
fn the_wait_is_an_option() {
    let mut rig = begun(2);
    rig.configure(|config| {
        let fleet = config.fleet().clone();
        config.with_fleet(fleet.with_migration_wait(Span::from_secs(5)))
    });
    rig.join_then(10);
    assert!(has_migrated(&rig));
}

/// Workers of KCL notice within a minute and a half that a leader assigns leases. An earlier leader would assign to
/// workers that do not look for leases.
#[test]
fn nobody_of_ours_leads_before_all_can_have_noticed_the_end() {
    let mut rig = migrating();
    while !has_migrated(&rig) {
        zoe_lives(&mut rig, 1);
    }
    zoe_lives(&mut rig, 89);
    assert!(!rig.table.fleet.contains_key("Leader"));
    zoe_lives(&mut rig, 22);
    assert_eq!(rig.table.fleet["Leader"]["ownerName"], text(rig[0].me().as_str()));
}

/// Workers of KCL 3.0 to 3.4 look for the state in a table beside the lease table.
#[test]
fn the_end_of_a_migration_is_written_where_the_state_is() {
    let mut rig = fleet(2, 0);
    kcl34::make_empty_tables(&mut rig);
    let begun =
        [("cv", text("CLIENT_VERSION_UPGRADE_FROM_2X")), ("mb", text(ZOE)), ("mts", AttributeValue::n(1))];
    kcl34::put(&mut rig, COORDINATOR, "Migration3.0", &begun);
    rig.table.owner_index = true;
    rig.name([0], ZOE);
    rig.join();
    for _ in 0..MIGRATED {
        kcl34::reports(&mut rig, ZOE, WORKERS, false);
        renews(&mut rig, ZOE);
        rig.secs(1);
    }
    let row = kcl34::rows(&mut rig, COORDINATOR)[&LeaseKey::from("Migration3.0")].clone();
    assert_eq!(row["cv"], text("CLIENT_VERSION_3X_WITH_ROLLBACK"));
    assert_eq!(row["mb"], text(rig[0].me().as_str()));
    assert!(!rig.table.fleet.contains_key("Migration3.0"), "there it is not looked for");
}
