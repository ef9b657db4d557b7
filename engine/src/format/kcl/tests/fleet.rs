//! The rows by which workers of KCL 3.5 know each other, equal to the byte.

use super::item;
use super::writes::{key, workers};
use crate::fleet::*;
use crate::format::{Kcl, LeaseFormat};
use crate::row::{Change, LeaseRow, RowRead};
use crate::table::Item;
use proptest::prelude::*;
use serde_json::json;

fn says(item: &Item) -> Option<FleetRow> {
    match Kcl.decode(item) {
        RowRead::Foreign { says, .. } => says.map(|says| *says),
        other => panic!("{other:?}"),
    }
}

/// Carries a write out on an item; whether its condition held.
fn write(item: &mut Option<Item>, write: &FleetWrite) -> bool {
    Kcl.encode_fleet(write).unwrap().carry_out(item).is_ok()
}

fn report(at: i64, cpu: Vec<i64>) -> FleetWrite {
    FleetWrite::Report { worker: "w1".into(), at, measure: !cpu.is_empty(), cpu }
}

/// An item that KCL 3.5.1 wrote.
#[test]
fn a_report_of_kcl_is_read() {
    let read = says(&item(json!({
        "leaseKey": {"S": "w1"}, "entityType": {"S": "WORKER_METRIC_STATS"}, "lut": {"N": "1760000000"},
        "sts": {"M": {"C": {"L": [{"N": "41.2"}, {"N": "-1"}]}, "M": {"L": [{"N": "1"}]}}},
        "opr": {"M": {"C": {"L": [{"N": "100"}]}}}, "sup": {"N": "1"}, "slu": {"N": "1760000000"}
    })));
    let cpu = FleetMetric { name: "C".into(), recent: vec![41_200_000, -1_000_000], limit: 100_000_000 };
    // The other metric has no limit.
    let worker =
        FleetWorker { id: "w1".into(), at: 1_760_000_000, ours: false, one_table: true, metrics: vec![cpu] };
    assert_eq!(read, Some(FleetRow::Worker(worker)));
}

#[test]
fn a_report_of_ours_is_what_kcl_writes_and_a_mark() {
    let mut table = None;
    assert!(write(&mut table, &report(1_760_000_000, vec![0, 41_200_000, -1_000_000])));
    assert_eq!(
        table.clone().unwrap(),
        item(json!({
            "leaseKey": {"S": "w1"}, "entityType": {"S": "WORKER_METRIC_STATS"}, "lut": {"N": "1760000000"},
            "sts": {"M": {"C": {"L": [{"N": "0"}, {"N": "41.2"}, {"N": "-1"}]}}},
            "opr": {"M": {"C": {"L": [{"N": "100"}]}}}, "sup": {"N": "1"}, "slu": {"N": "1760000000"},
            "leaseholdOwner": {"S": "w1"}
        }))
    );
    assert!(write(&mut table, &report(1_760_000_030, Vec::new())));
    let Some(FleetRow::Worker(read)) = says(table.as_ref().unwrap()) else { panic!("{table:?}") };
    assert_eq!((read.at, read.ours, read.metrics.len()), (1_760_000_030, true, 0));
    let forget = |at| FleetWrite::Forget { worker: "w1".into(), at };
    assert!(!write(&mut table, &forget(1_760_000_000)), "it has reported since");
    assert!(write(&mut table, &forget(1_760_000_030)) && table.is_none());
    assert!(!write(&mut table, &FleetWrite::Leave { worker: "w1".into() }), "it is gone");
}

/// The item is that of the lock client, attribute by attribute.
#[test]
fn the_lock_is_taken_renewed_and_given_up_under_conditions() {
    let lead = |version: &str, seen: Option<&str>| FleetWrite::Lead {
        worker: "w1".into(),
        version: version.into(),
        seen: seen.map(Into::into),
    };
    let seen = |seen: &[&str]| seen.iter().map(ToString::to_string).collect::<Vec<_>>();
    let mut table = None;
    assert!(!write(&mut table, &lead("v2", Some("v1"))), "there is none");
    assert!(write(&mut table, &lead("v1", None)));
    assert_eq!(
        table.clone().unwrap(),
        item(json!({
            "leaseKey": {"S": "Leader"}, "entityType": {"S": "LEADER"}, "ownerName": {"S": "w1"},
            "leaseDuration": {"S": "20000"}, "recordVersionNumber": {"S": "v1"}
        }))
    );
    assert!(!write(&mut table, &lead("v2", None)), "there is one");
    assert!(!write(&mut table, &lead("v2", Some("v0"))), "it was renewed");
    let beat = |worker: &str, version: &str, before: &[&str]| FleetWrite::Beat {
        worker: worker.into(),
        version: version.into(),
        seen: seen(before),
    };
    assert!(!write(&mut table, &beat("w2", "v2", &["v1"])), "it is another worker's");
    assert!(write(&mut table, &beat("w1", "v2", &["v0", "v1"])), "either may be in the row");
    let Some(FleetRow::Leader(lock)) = says(table.as_ref().unwrap()) else { panic!("{table:?}") };
    assert_eq!(
        (lock.id.as_str(), lock.version.as_str(), lock.lease_ms, lock.released),
        ("w1", "v2", 20_000, false)
    );
    let down = |before: &[&str]| FleetWrite::StepDown { worker: "w1".into(), seen: seen(before) };
    assert!(!write(&mut table, &down(&["v1"])));
    assert!(write(&mut table, &down(&["v1", "v2"])) && table.is_none());
}

#[test]
fn the_state_of_a_migration_is_read_and_an_unknown_one_is_kept() {
    for (text, version) in [
        ("CLIENT_VERSION_UPGRADE_FROM_2X", FleetVersion::UpgradeFrom2x),
        ("CLIENT_VERSION_2X", FleetVersion::Version2x),
        ("CLIENT_VERSION_3X_WITH_ROLLBACK", FleetVersion::Version3xWithRollback),
        ("CLIENT_VERSION_3X", FleetVersion::Version3x),
        ("CLIENT_VERSION_4X", FleetVersion::Unknown("CLIENT_VERSION_4X".into())),
    ] {
        // Before KCL 3.5 the item had no `entityType`.
        let read =
            says(&item(json!({"leaseKey": {"S": "Migration3.0"}, "cv": {"S": text}, "mb": {"S": "w1"}})));
        assert_eq!(read, Some(FleetRow::Version(version.into())));
    }
}

/// Changes made only by the leader of a fleet.
pub(super) fn of_a_leader() -> impl Strategy<Value = Change> {
    prop_oneof![
        (0u64..4, prop::option::of(workers()), prop::option::of(workers()), workers()).prop_map(
            |(counter, from, handing_over, to)| Change::Assign {
                key: key(),
                counter,
                next: counter + 1,
                from,
                handing_over,
                to
            }
        ),
        (workers(), workers()).prop_map(|(from, to)| Change::Offer { key: key(), from, to }),
        (workers(), 0..1u64 << 40).prop_map(|(owner, throughput)| Change::Weigh {
            key: key(),
            owner,
            throughput
        }),
    ]
}

/// What a change of a leader makes of a row, said once more in terms of rows; `None` if its guard does not hold.
pub(super) fn after(row: &LeaseRow, mut new: LeaseRow, change: &Change) -> Option<LeaseRow> {
    let allowed = match change {
        Change::Assign { counter, from, handing_over, to, .. } => {
            let switched = from.as_ref().is_some_and(|from| from != to) || handing_over.as_ref() == Some(to);
            new.owner = Some(to.clone());
            new.handing_over = None;
            new.switches += u64::from(switched);
            new.counter = row.counter.wrapping_add(1);
            row.counter == *counter && row.owner == *from && row.handing_over == *handing_over
        }
        Change::Weigh { owner, throughput, .. } => {
            new.throughput = Some(*throughput);
            row.owner.as_ref() == Some(owner) && row.handing_over.is_none()
        }
        Change::Offer { from, to, .. } => {
            new.owner = Some(to.clone());
            new.handing_over = Some(from.clone());
            row.handing_over.is_none() && row.owner.as_ref() == Some(from)
        }
        other => panic!("{other:?} is not a leader's"),
    };
    allowed.then_some(new)
}

/// Items that KCL 3.4.2 wrote: without `entityType`, under keys of other names.
#[test]
fn rows_of_kcl_34_are_read_from_their_own_tables() {
    let read = |table, value| match Kcl.decode_fleet(table, &item(value)) {
        RowRead::Foreign { key, says, .. } => (key.to_string(), says.map(|says| *says)),
        other => panic!("{other:?}"),
    };
    let (key, report) = read(
        FleetTable::Workers,
        json!({"wid": {"S": "w1"}, "lut": {"N": "1760000000"}, "sts": {"M": {}}, "opr": {"M": {}}}),
    );
    let worker = FleetWorker {
        id: "w1".into(),
        at: 1_760_000_000,
        ours: false,
        one_table: false,
        metrics: Vec::new(),
    };
    assert_eq!((key.as_str(), report), ("w1", Some(FleetRow::Worker(worker))));
    let coordinator = |value| read(FleetTable::Coordinator, value).1;
    let lock = json!({
        "key": {"S": "Leader"}, "ownerName": {"S": "w1"}, "leaseDuration": {"S": "120000"},
        "recordVersionNumber": {"S": "v1"}
    });
    let Some(FleetRow::Leader(lock)) = coordinator(lock) else { panic!("expected the lock") };
    assert_eq!((lock.id.as_str(), lock.lease_ms), ("w1", 120_000));
    let version = json!({
        "key": {"S": "Migration3.0"}, "cv": {"S": "CLIENT_VERSION_3X"}, "mb": {"S": "w1"}, "mts": {"N": "1"}, "h": {"L": []}
    });
    let Some(FleetRow::Version(state)) = coordinator(version) else {
        panic!("expected the version of the fleet");
    };
    assert_eq!(state.version, FleetVersion::Version3x);
    for (state, expected) in [
        ("INIT", TableMigration::Init),
        ("DEPLOYED", TableMigration::Deployed),
        ("PENDING", TableMigration::Pending),
        ("COMPLETE", TableMigration::Complete),
    ] {
        let state = format!("TABLE_MIGRATION_STATUS_{state}");
        let row = json!({"key": {"S": "TableMigration3.5"}, "entityType": {"S": "TABLE_MIGRATION"}, "tm": {"S": state}});
        assert_eq!(coordinator(row), Some(FleetRow::Tables(expected)));
    }
    let later = json!({"key": {"S": "TableMigration3.5"}, "tm": {"S": "LATER"}});
    let later_state = TableMigration::Unknown("LATER".into());
    assert_eq!(coordinator(later), Some(FleetRow::Tables(later_state)));
    assert_eq!(coordinator(json!({"key": {"S": "x"}, "a": {"S": "b"}})), None);
    let unreadable = Kcl.decode_fleet(FleetTable::Workers, &item(json!({"key": {"S": "w1"}})));
    assert!(matches!(unreadable, RowRead::Unreadable { .. }));
}

#[test]
fn a_row_of_another_table_differs_in_its_key_alone() {
    let lead = FleetWrite::Lead { worker: "w1".into(), version: "v1".into(), seen: None };
    for (table, write, key) in [
        (FleetTable::Workers, report(1_760_000_000, vec![1_000_000]), "wid"),
        (FleetTable::Coordinator, lead, "key"),
    ] {
        assert_eq!(Kcl.fleet_table_key(table), Some(key));
        let (mut here, mut beside) = (None, None);
        Kcl.encode_fleet(&write).unwrap().carry_out(&mut here).unwrap();
        let spelled = Kcl.encode_fleet_in(table, &write).unwrap();
        spelled.carry_out(&mut beside).unwrap();
        let mut moved = here.unwrap();
        let value = moved.remove("leaseKey").unwrap();
        moved.insert(key.into(), value);
        assert_eq!(beside.as_ref(), Some(&moved));
        if table == FleetTable::Coordinator {
            assert!(spelled.carry_out(&mut beside).is_err(), "there is a lock");
        }
    }
}
