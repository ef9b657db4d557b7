//! The rows by which workers of KCL 3 know each other, in the lease table (KCL 3.5) or in two tables of their own (KCL 3.0 to 3.4).
//!
//! They are the same in all tables but for the name of the key. KCL 3.0 to 3.4 writes no `entityType`, `sup` and `slu`, and reads
//! over them, as KCL 3.5 writes them to the two tables as well.
//!
//! The leader's lock follows the DynamoDB lock client for Java (`amazon-dynamodb-lock-client`), with its conditions:
//! the texts must be the same to the byte. `lut` and `slu` are in seconds, `leaseDuration` is a text of milliseconds.

use super::{name, state};
use crate::fleet::{
    FleetLeader, FleetMetric, FleetRow, FleetTable, FleetWorker, FleetWrite, LEADER_KEY, LEADER_LEASE,
    TABLE_MIGRATION_KEY, TableMigration, VERSION_KEY,
};
use crate::ids::{LeaseKey, WorkerId};
use crate::table::{Action, AttributeValue, Condition, Item, ItemWrite, Update};

const WORKER: &str = "WORKER_METRIC_STATS";
const LEADER: &str = "LEADER";
const VERSION: &str = "CLIENT_VERSION_MIGRATION";
const TABLES: &str = "TABLE_MIGRATION";

/// When the worker reported, in seconds since 1970.
const REPORTED: &str = "lut";
/// The last values of each metric.
const VALUES: &str = "sts";
/// The CPU's short name among metrics.
const CPU: &str = "C";
/// What each metric may rise to.
const LIMITS: &str = "opr";
/// The newest feature that the worker knows: 1 is the migration to a single table, as KCL 3.5.1 says.
const SUPPORTS: &str = "sup";
const SUPPORTS_SINGLE_TABLE: u32 = 1;
/// The time of the statement in `sup`, in seconds since 1970.
const SUPPORTED_AT: &str = "slu";
/// Ours: a worker of this library. The attribute names the worker again.
const OURS: &str = "leaseholdOwner";

const LOCK_OWNER: &str = "ownerName";
const LOCK_LEASE: &str = "leaseDuration";
const LOCK_VERSION: &str = "recordVersionNumber";
const LOCK_RELEASED: &str = "isReleased";

const TABLES_STATE: &str = "tm";

/// The hash key attribute of a table beside the lease table.
pub(super) fn key_name(table: FleetTable) -> &'static str {
    match table {
        FleetTable::Workers => "wid",
        FleetTable::Coordinator => "key",
    }
}

/// The contents of an item of this kind; absent: this library does not understand the item.
pub(super) fn decode(key: &LeaseKey, kind: &str, item: &Item) -> Option<FleetRow> {
    let text = |name: &str| item.get(name).and_then(AttributeValue::as_s);
    match kind {
        WORKER => {
            let at = item.get(REPORTED)?.as_n()?.parse().ok()?;
            Some(FleetRow::Worker(FleetWorker {
                id: WorkerId::from(key.as_str()),
                at,
                ours: text(OURS) == Some(key.as_str()),
                one_table: item.get(SUPPORTS).and_then(millionths) >= Some(1_000_000),
                metrics: metrics(item),
            }))
        }
        LEADER if key.as_str() == LEADER_KEY => Some(FleetRow::Leader(FleetLeader {
            id: WorkerId::from(text(LOCK_OWNER)?),
            version: text(LOCK_VERSION)?.to_owned(),
            lease_ms: text(LOCK_LEASE)?.parse().ok()?,
            released: item.contains_key(LOCK_RELEASED),
        })),
        VERSION if key.as_str() == VERSION_KEY => Some(FleetRow::Version(state::decode(item)?)),
        TABLES if key.as_str() == TABLE_MIGRATION_KEY => Some(FleetRow::Tables(match text(TABLES_STATE)? {
            "TABLE_MIGRATION_STATUS_INIT" => TableMigration::Init,
            "TABLE_MIGRATION_STATUS_DEPLOYED" => TableMigration::Deployed,
            "TABLE_MIGRATION_STATUS_PENDING" => TableMigration::Pending,
            "TABLE_MIGRATION_STATUS_COMPLETE" => TableMigration::Complete,
            other => TableMigration::Unknown(other.to_owned()),
        })),
        _ => None,
    }
}

/// The metrics with both values and a limit; KCL's leader counts no other metrics.
fn metrics(item: &Item) -> Vec<FleetMetric> {
    let (Some(AttributeValue::M(values)), Some(AttributeValue::M(limits))) =
        (item.get(VALUES), item.get(LIMITS))
    else {
        // The row has no values, or no limits.
        return Vec::new();
    };
    let list = |found: Option<&AttributeValue>| -> Option<Vec<i64>> {
        match found? {
            AttributeValue::L(values) => values.iter().map(millionths).collect(),
            _ => None,
        }
    };
    values
        .iter()
        .filter_map(|(name, recent)| {
            Some(FleetMetric {
                name: name.clone(),
                recent: list(Some(recent))?,
                limit: *list(limits.get(name))?.first()?,
            })
        })
        .collect()
}

/// A decimal as KCL writes it, in millionths; absent: the text is no number, or its value is out of all proportion.
pub(super) fn millionths(value: &AttributeValue) -> Option<i64> {
    let value: f64 = value.as_n()?.parse().ok()?;
    let scaled = value * 1e6;
    (scaled.abs() < 1e15).then_some(scaled.round() as i64)
}

/// Millionths as a decimal, without trailing zeros: as DynamoDB returns the number.
pub(super) fn decimal(millionths: i64) -> String {
    let sign = if millionths < 0 { "-" } else { "" };
    let (whole, part) = (millionths.unsigned_abs() / 1_000_000, millionths.unsigned_abs() % 1_000_000);
    match part {
        0 => format!("{sign}{whole}"),
        part => {
            let text = format!("{sign}{whole}.{part:06}");
            text.trim_end_matches('0').to_owned()
        }
    }
}

/// The write of a row, in a table whose key has this name.
pub(super) fn spelled(key_name: &'static str, write: &FleetWrite) -> ItemWrite {
    ItemWrite {
        key: Item::from([(key_name.into(), AttributeValue::s(write.key()))]),
        condition: condition(key_name, write),
        action: action(key_name, write),
    }
}

fn condition(key_name: &'static str, write: &FleetWrite) -> Condition {
    let exists = || Condition::Exists(key_name.into());
    match write {
        FleetWrite::Report { .. } => Condition::All(Vec::new()),
        FleetWrite::Leave { .. } => Condition::Exists(REPORTED.into()),
        FleetWrite::Forget { at, .. } => {
            Condition::All(vec![exists(), Condition::Equals(REPORTED.into(), AttributeValue::n(at))])
        }
        FleetWrite::Lead { seen: None, .. } => Condition::NotExists(key_name.into()),
        FleetWrite::Lead { seen: Some(version), .. } => Condition::All(vec![exists(), shows(version)]),
        FleetWrite::Beat { worker, seen, .. } | FleetWrite::StepDown { worker, seen } => {
            Condition::All(vec![
                exists(),
                Condition::Any(seen.iter().map(|version| shows(version)).collect()),
                Condition::Equals(LOCK_OWNER.into(), AttributeValue::s(worker.clone())),
            ])
        }
        FleetWrite::Migrate { seen, .. } => state::shows(seen),
    }
}

fn shows(version: &str) -> Condition {
    Condition::Equals(LOCK_VERSION.into(), AttributeValue::s(version))
}

fn action(key_name: &'static str, write: &FleetWrite) -> Action {
    match write {
        FleetWrite::Report { worker, at, cpu, .. } => {
            let metric = |values: &[i64]| {
                let values: Vec<_> = values.iter().map(|value| AttributeValue::n(decimal(*value))).collect();
                let named = (!values.is_empty()).then(|| (CPU.to_owned(), AttributeValue::L(values)));
                AttributeValue::M(named.into_iter().collect())
            };
            let limit: &[i64] = if cpu.is_empty() { &[] } else { &[100_000_000] };
            Action::Update(
                Update::default()
                    .set(name::ENTITY, AttributeValue::s(WORKER))
                    .set(REPORTED, AttributeValue::n(at))
                    .set(VALUES, metric(cpu))
                    .set(LIMITS, metric(limit))
                    .set(SUPPORTS, AttributeValue::n(SUPPORTS_SINGLE_TABLE))
                    .set(SUPPORTED_AT, AttributeValue::n(at))
                    .set(OURS, AttributeValue::s(worker.clone())),
            )
        }
        FleetWrite::Leave { .. } | FleetWrite::Forget { .. } | FleetWrite::StepDown { .. } => Action::Delete,
        FleetWrite::Lead { worker, version, .. } => Action::Put(Item::from([
            (key_name.into(), AttributeValue::s(LEADER_KEY)),
            (name::ENTITY.into(), AttributeValue::s(LEADER)),
            (LOCK_OWNER.into(), AttributeValue::s(worker.clone())),
            (LOCK_LEASE.into(), AttributeValue::s((LEADER_LEASE.0 / 1_000).to_string())),
            (LOCK_VERSION.into(), AttributeValue::s(version.as_str())),
        ])),
        FleetWrite::Beat { version, .. } => Action::Update(
            Update::default()
                .set(LOCK_LEASE, AttributeValue::s((LEADER_LEASE.0 / 1_000).to_string()))
                .set(LOCK_VERSION, AttributeValue::s(version.as_str())),
        ),
        FleetWrite::Migrate { worker, at, seen } => Action::Update(state::migrated(worker, *at, seen)),
    }
}
