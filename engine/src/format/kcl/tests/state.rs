//! The row of the version of a fleet, to the byte.

use super::item;
use crate::fleet::{FleetRow, FleetState, FleetStep, FleetVersion, FleetWrite, MIGRATION_HISTORY};
use crate::format::{Kcl, LeaseFormat};
use crate::row::RowRead;
use crate::table::Item;
use serde_json::json;

fn state(item: &Item) -> FleetState {
    match Kcl.decode(item) {
        RowRead::Foreign { says: Some(says), .. } => match *says {
            FleetRow::Version(state) => state,
            other => panic!("{other:?}"),
        },
        other => panic!("{other:?}"),
    }
}

/// Ends the migration; whether the condition held.
fn migrate(item: &mut Option<Item>, seen: &FleetState) -> bool {
    let write =
        FleetWrite::Migrate { worker: "w2".into(), at: 1_760_000_900_000, seen: Box::new(seen.clone()) };
    Kcl.encode_fleet(&write).unwrap().carry_out(item).is_ok()
}

/// As KCL 3.5.1 writes it when a worker is the first to be started in a fleet of KCL 2.
fn begun() -> Item {
    item(json!({
        "leaseKey": {"S": "Migration3.0"}, "entityType": {"S": "CLIENT_VERSION_MIGRATION"},
        "cv": {"S": "CLIENT_VERSION_UPGRADE_FROM_2X"}, "mb": {"S": "w1"}, "mts": {"N": "1760000000000"},
        "h": {"L": [{"M": {"cv": {"S": "CLIENT_VERSION_INIT"}, "mb": {"S": "w1"}, "mts": {"N": "1759999999990"}}}]}
    }))
}

#[test]
fn the_end_of_a_migration_is_what_kcl_writes() {
    let mut table = Some(begun());
    let seen = state(&begun());
    assert_eq!(seen.written, Some(("w1".into(), 1_760_000_000_000)));
    assert!(migrate(&mut table, &seen));
    assert_eq!(
        table.clone().unwrap(),
        item(json!({
            "leaseKey": {"S": "Migration3.0"}, "entityType": {"S": "CLIENT_VERSION_MIGRATION"},
            "cv": {"S": "CLIENT_VERSION_3X_WITH_ROLLBACK"}, "mb": {"S": "w2"}, "mts": {"N": "1760000900000"},
            "h": {"L": [
                {"M": {"cv": {"S": "CLIENT_VERSION_UPGRADE_FROM_2X"}, "mb": {"S": "w1"}, "mts": {"N": "1760000000000"}}},
                {"M": {"cv": {"S": "CLIENT_VERSION_INIT"}, "mb": {"S": "w1"}, "mts": {"N": "1759999999990"}}}
            ]}
        }))
    );
    assert!(!migrate(&mut table, &seen), "it has ended");
}

#[test]
fn a_migration_is_ended_only_if_its_row_is_as_it_was_read() {
    let seen = state(&begun());
    let mut none = None;
    assert!(!migrate(&mut none, &seen) && none.is_none(), "no row is made");
    let changes = [
        ("cv", json!({"S": "CLIENT_VERSION_2X"})),
        ("mb", json!({"S": "KclMigrationTool-rollforward"})),
        ("mts", json!({"N": "1760000000001"})),
    ];
    for (name, value) in changes {
        let changed = item(json!({ name: value })).remove(name).unwrap();
        let mut table = begun();
        table.insert(name.into(), changed);
        let mut table = Some(table);
        assert!(!migrate(&mut table, &seen), "{name}");
    }
}

/// A person may have written the version alone.
#[test]
fn a_row_without_its_writer_has_no_history_to_be_kept() {
    let short =
        item(json!({"leaseKey": {"S": "Migration3.0"}, "cv": {"S": "CLIENT_VERSION_UPGRADE_FROM_2X"}}));
    let seen = state(&short);
    assert_eq!(seen, FleetVersion::UpgradeFrom2x.into());
    let mut table = Some(short);
    assert!(migrate(&mut table, &seen));
    let left = table.unwrap();
    assert_eq!(left.get("h"), None);
    assert_eq!(state(&left).version, FleetVersion::Version3xWithRollback);
}

/// KCL's tool for operators writes more steps than KCL keeps. What KCL could not read is left out.
#[test]
fn the_history_is_kept_as_far_as_kcl_keeps_it() {
    let step = |n: i64| json!({"M": {"cv": {"S": "CLIENT_VERSION_2X"}, "mb": {"S": "tool"}, "mts": {"N": n.to_string()}}});
    let mut steps: Vec<_> = (0..14).map(step).collect();
    steps.insert(1, json!({"M": {"cv": {"S": "CLIENT_VERSION_2X"}}}));
    steps.insert(2, json!({"S": "CLIENT_VERSION_2X"}));
    let mut table = begun();
    table.extend(item(json!({"h": {"L": steps}})));
    let seen = state(&table);
    assert_eq!(seen.before.len(), 14);
    let mut table = Some(table);
    assert!(migrate(&mut table, &seen));
    let before = state(&table.unwrap()).before;
    assert_eq!(before.len(), MIGRATION_HISTORY);
    let first = FleetStep {
        version: "CLIENT_VERSION_UPGRADE_FROM_2X".into(),
        by: "w1".into(),
        at: 1_760_000_000_000,
    };
    assert_eq!(before[0], first);
    assert_eq!(before[9].at, 8);
}
