//! Scenes of a fleet that migrates from the rules of KCL 2 to those of KCL 3, led by a worker of ours. The other
//! worker, `zoe`, is a worker of KCL 3 started in a fleet of KCL 2. The scene writes its rows; its name is the second
//! of two in the order of leaders.

use crate::kcl3::{change, fleet, held, me, put, text};
use crate::kcl34::{self, COORDINATOR, WORKERS};
use crate::rig::{Rig, Trick};
use leasehold_engine::fleet::FleetWrite;
use leasehold_engine::ids::{LeaseKey, WorkerId};
use leasehold_engine::input::{Cause, Outcome};
use leasehold_engine::notice::{MigrationNews, Notice};
use leasehold_engine::output::{Effect, TableOp};
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

fn reports(rig: &mut Rig, who: &str) {
    let empty = || AttributeValue::M(std::collections::BTreeMap::new());
    let attributes = [
        ("entityType", text("WORKER_METRIC_STATS")),
        ("lut", AttributeValue::n(rig.now.0 / 1_000_000)),
        ("sts", empty()),
        ("opr", empty()),
    ];
    put(rig, who, &attributes);
}

fn renews(rig: &mut Rig, who: &str) {
    let owner = Some(WorkerId::from(who));
    for row in rig.table.rows.iter_mut().flat_map(|rows| rows.values_mut()) {
        row.counter += u64::from(row.actual_owner() == owner.as_ref());
    }
}

/// Lets time pass while the workers of `report` report, and the workers of `renew` renew their leases.
fn pass(rig: &mut Rig, secs: u64, report: &[&str], renew: &[&str]) {
    for _ in 0..secs {
        report.iter().for_each(|who| reports(rig, who));
        renew.iter().for_each(|who| renews(rig, who));
        rig.secs(1);
    }
}

fn zoe_lives(rig: &mut Rig, secs: u64) {
    pass(rig, secs, &[ZOE], &[ZOE]);
}

fn version(rig: &Rig) -> &str {
    rig.table.fleet["Migration3.0"]["cv"].as_s().unwrap()
}

fn has_migrated(rig: &Rig) -> bool {
    version(rig) == "CLIENT_VERSION_3X_WITH_ROLLBACK"
}

fn news(rig: &Rig, worker: usize) -> Vec<&MigrationNews> {
    let notices = rig.workers[worker].notices.iter();
    let news = notices.filter_map(|(_, notice)| match notice {
        Notice::Migration(news) => Some(news),
        _ => None,
    });
    news.collect()
}

/// How often the end was written, and the index looked for.
fn sent(rig: &Rig, worker: usize) -> (usize, usize) {
    let sent = rig.workers[worker].sent.iter();
    let ends = |effect: &Effect| matches!(effect, Effect::Table(TableOp::Fleet(FleetWrite::Migrate { .. })));
    let looks = |effect: &Effect| matches!(effect, Effect::Table(TableOp::OwnerIndex));
    (
        sent.clone().filter(|(_, effect)| ends(effect)).count(),
        sent.filter(|(_, effect)| looks(effect)).count(),
    )
}

/// Zoe began the migration and has one of two leases; ours has the other, and leads.
fn migrating() -> Rig {
    let mut rig = fleet(2, 0);
    begin(&mut rig, ZOE);
    rig.table.owner_index = true;
    change(&mut rig, 0, |row| row.owner = Some(ZOE.into()));
    rig.join();
    zoe_lives(&mut rig, 3);
    assert_eq!(held(&rig, 0), 1);
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
    assert_eq!(row["mb"], text(me(&rig, 0).as_str()));
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

#[test]
fn a_live_owner_without_a_report_holds_the_migration_up() {
    let mut rig = migrating();
    for silent in [70, 400] {
        // It reports again meanwhile, and all of the time begins anew.
        pass(&mut rig, silent, &[], &[ZOE]);
        zoe_lives(&mut rig, 500);
    }
    assert!(!has_migrated(&rig));
    zoe_lives(&mut rig, MIGRATED - 500);
    assert!(has_migrated(&rig));
    let silent = MigrationNews::OwnerSilent { owner: ZOE.into(), others: 0 };
    assert!(news(&rig, 0).contains(&&silent));
}

/// KCL waits for as long as the table has such leases.
#[test]
fn leases_that_nobody_can_be_processing_hold_nothing_up() {
    let mut rig = fleet(4, 0);
    begin(&mut rig, ZOE);
    rig.table.owner_index = true;
    rig.configure(|config| config.with_max_leases(1));
    change(&mut rig, 0, |row| row.owner = Some(ZOE.into()));
    change(&mut rig, 1, |row| row.owner = Some("a-dead-worker".into()));
    rig.join();
    // The shuffle of three puts the last name first, and that of two the first. Our worker leads when the dead worker
    // no longer counts.
    zoe_lives(&mut rig, 60 + MIGRATED + 60);
    assert_eq!(rig.row(1).owner, Some("a-dead-worker".into()));
    assert_eq!((2..4).filter(|n| rig.row(*n).owner.is_none()).count(), 1);
    assert!(has_migrated(&rig));
}

#[test]
fn the_migration_waits_for_the_index_of_owners() {
    let mut rig = migrating();
    rig.table.owner_index = false;
    zoe_lives(&mut rig, 1_000);
    assert!(!has_migrated(&rig));
    assert_eq!(*news(&rig, 0).last().unwrap(), &MigrationNews::NoIndex);
    rig.table.owner_index = true;
    zoe_lives(&mut rig, 590);
    assert!(!has_migrated(&rig));
    zoe_lives(&mut rig, MIGRATED);
    assert!(has_migrated(&rig));
}

#[test]
fn a_worker_that_does_not_lead_leaves_the_migration_alone() {
    let mut rig = fleet(2, 0);
    begin(&mut rig, "anna");
    rig.table.owner_index = true;
    change(&mut rig, 0, |row| row.owner = Some("anna".into()));
    rig.join();
    pass(&mut rig, 2 * MIGRATED, &["anna"], &["anna"]);
    assert_eq!((held(&rig, 0), sent(&rig, 0)), (1, (0, 0)));
    assert!(!has_migrated(&rig) && news(&rig, 0).is_empty());
}

#[test]
fn of_two_workers_of_ours_one_looks() {
    let mut rig = fleet(4, 0);
    begin(&mut rig, ZOE);
    rig.table.owner_index = true;
    rig.join();
    rig.join();
    rig.secs(MIGRATED + 60);
    assert!(has_migrated(&rig), "all that have leases report");
    assert_eq!((sent(&rig, 0).0, sent(&rig, 1)), (1, (0, 0)));
}

#[test]
fn after_a_rollback_a_new_beginning_waits_for_all_of_the_time() {
    let mut rig = migrating();
    zoe_lives(&mut rig, 580);
    // No scan shows the rollback.
    begin(&mut rig, "KclMigrationTool-rollforward");
    zoe_lives(&mut rig, 590);
    assert!(!has_migrated(&rig));
    zoe_lives(&mut rig, MIGRATED - 580);
    assert!(has_migrated(&rig));
    assert_eq!(sent(&rig, 0).0, 1);
}

/// The operator goes back after the last scan: the write must not hold.
#[test]
fn the_end_is_not_written_over_a_rollback() {
    let mut rig = migrating();
    rig.workers[0].trap = Some(Box::new(|effect| {
        matches!(effect, Effect::Table(TableOp::Fleet(FleetWrite::Migrate { .. }))).then_some(Trick::Hang)
    }));
    while rig.workers[0].hung.is_empty() {
        zoe_lives(&mut rig, 1);
    }
    rig.workers[0].trap = None;
    rig.table.fleet.get_mut("Migration3.0").unwrap().insert("cv".into(), text("CLIENT_VERSION_2X"));
    rig.release(0);
    zoe_lives(&mut rig, 120);
    assert_eq!((version(&rig), sent(&rig, 0).0), ("CLIENT_VERSION_2X", 1));
}

#[test]
fn an_unwritten_end_is_repeated_and_an_unknown_one_recognised() {
    for applied in [false, true] {
        let mut rig = migrating();
        let mut failures = 2;
        rig.workers[0].trap = Some(Box::new(move |effect| {
            let ends = matches!(effect, Effect::Table(TableOp::Fleet(FleetWrite::Migrate { .. })));
            failures -= u32::from(ends && failures > 0);
            (ends && failures > 0).then_some(match applied {
                true => Trick::AppliedBut(Outcome::Unknown(Cause::Timeout)),
                false => Trick::Instead(Outcome::NotSent(Cause::Throttled)),
            })
        }));
        zoe_lives(&mut rig, MIGRATED + 60);
        assert!(has_migrated(&rig), "{applied}");
        assert_eq!(sent(&rig, 0).0, if applied { 1 } else { 2 });
    }
}

#[test]
fn an_index_missing_once_does_not_begin_the_wait_anew() {
    let mut rig = migrating();
    zoe_lives(&mut rig, 300);
    let mut failed = false;
    rig.workers[0].trap = Some(Box::new(move |effect| {
        let looks = matches!(effect, Effect::Table(TableOp::OwnerIndex)) && !failed;
        failed |= looks;
        looks.then_some(Trick::Instead(Outcome::NotSent(Cause::Throttled)))
    }));
    zoe_lives(&mut rig, MIGRATED - 300);
    assert!(has_migrated(&rig));
}

#[test]
fn the_wait_is_an_option() {
    let mut rig = fleet(2, 0);
    begin(&mut rig, ZOE);
    rig.table.owner_index = true;
    rig.configure(|config| {
        let fleet = config.fleet().clone();
        config.with_fleet(fleet.with_migration_wait(Span::from_secs(5)))
    });
    rig.join();
    rig.secs(10);
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
    assert_eq!(rig.table.fleet["Leader"]["ownerName"], text(me(&rig, 0).as_str()));
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
    change(&mut rig, 0, |row| row.owner = Some(ZOE.into()));
    rig.join();
    for _ in 0..MIGRATED {
        kcl34::reports(&mut rig, ZOE, WORKERS, false);
        renews(&mut rig, ZOE);
        rig.secs(1);
    }
    let row = kcl34::rows(&mut rig, COORDINATOR)[&LeaseKey::from("Migration3.0")].clone();
    assert_eq!(row["cv"], text("CLIENT_VERSION_3X_WITH_ROLLBACK"));
    assert_eq!(row["mb"], text(me(&rig, 0).as_str()));
    assert!(!rig.table.fleet.contains_key("Migration3.0"), "there it is not looked for");
}
