//! A table: its definition, its state over time, its items.

use super::capacity::{Bucket, Consumed, Halves};
use super::error::{ApiError, DynamoResult};
use super::expr::{Condition, Path};
use super::index::Index;
use super::key::{KeyAttribute, KeySchema, Position};
use super::store::{Row, Store};
use leasehold_engine::table::Item;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The state of a table or an index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// On its way; not yet usable.
    Creating,
    /// Usable.
    Active,
    /// Usable, with a change under way.
    Updating,
    /// On its way out; no longer usable.
    Deleting,
}

impl Status {
    /// DynamoDB's name of the state.
    pub fn name(self) -> &'static str {
        match self {
            Self::Creating => "CREATING",
            Self::Active => "ACTIVE",
            Self::Updating => "UPDATING",
            Self::Deleting => "DELETING",
        }
    }
}

/// Provisioned capacity, in units a second.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Throughput {
    /// Read units.
    pub read: u64,
    /// Write units.
    pub write: u64,
}

/// How a table is paid for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Billing {
    /// By request, without a bound.
    OnDemand,
    /// By provisioned capacity, enforced if the configuration says so.
    Provisioned(Throughput),
}

impl Billing {
    /// The provisioned capacity, if any.
    pub fn throughput(self) -> Option<Throughput> {
        match self {
            Self::OnDemand => None,
            Self::Provisioned(throughput) => Some(throughput),
        }
    }
}

/// Continuous backups.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Backups {
    /// When point-in-time recovery was switched on, if it is.
    pub since_ms: Option<i64>,
    /// For how many days back a table can be restored.
    pub period_days: u32,
}

/// A table.
#[derive(Clone, Debug)]
pub struct Table {
    /// Its name.
    pub name: String,
    /// A number unique among all tables of this DynamoDB: re-creation is a new life.
    pub life: u64,
    /// Its key.
    pub schema: KeySchema,
    /// The key attributes of the table and its indexes.
    pub definitions: Vec<KeyAttribute>,
    /// Its state.
    pub status: Status,
    /// When the state ends.
    pub until_ms: Option<i64>,
    /// When it was created.
    pub created_ms: i64,
    /// The billing mode.
    pub billing: Billing,
    /// The time of the last switch to on-demand billing.
    pub on_demand_since_ms: Option<i64>,
    /// Whether the table is protected from deletion.
    pub deletion_protection: bool,
    /// The table's class, if the creation named a class.
    pub class: Option<String>,
    /// Its tags.
    pub tags: BTreeMap<String, String>,
    /// Its continuous backups.
    pub backups: Backups,
    /// The attribute for the expiry of items, if enabled.
    pub ttl: Option<String>,
    /// The indexes, in the order of their creation.
    pub indexes: Vec<Index>,
    pub(super) store: Store,
    pub(super) reads: Bucket,
    pub(super) writes: Bucket,
    pub(super) enforce: bool,
    pub(super) burst_seconds: u64,
}

impl Table {
    /// The number of items.
    pub fn len(&self) -> usize {
        self.store.len()
    }

    /// Whether the table has no items.
    pub fn is_empty(&self) -> bool {
        self.store.is_empty()
    }

    /// The bytes of all items.
    pub fn bytes(&self) -> usize {
        self.store.bytes()
    }

    /// Every item, in scan order, at no cost.
    pub fn items(&self) -> impl Iterator<Item = &Arc<Item>> {
        self.store.all(None).map(|(_, row)| &row.item)
    }

    /// The item of a key, at no cost.
    pub fn peek(&self, key: &Item) -> Option<&Arc<Item>> {
        let position = self.schema.position_of_key(key).ok()?;
        self.store.get(&position, None).map(|row| &row.item)
    }

    /// An index by name.
    pub fn index(&self, name: &str) -> Option<&Index> {
        self.indexes.iter().find(|index| index.spec.name == name)
    }

    /// Whether items can be read and written.
    pub fn is_usable(&self) -> bool {
        matches!(self.status, Status::Active | Status::Updating)
    }

    /// Sets or removes a row, with its index entries; returns the cost, and charges the buckets.
    pub(super) fn store_row(
        &mut self, position: &Position, row: Option<Row>, table_cost: Halves, now_ms: i64,
    ) -> Consumed {
        let old = self.store.set(position, row.clone(), now_ms);
        let mut consumed = Consumed::table(table_cost);
        self.writes.take(table_cost);
        for index in &mut self.indexes {
            let cost = index.follow(position, old.as_ref(), row.as_ref(), &self.schema);
            if index.spec.local {
                self.writes.take(cost);
            } else {
                index.writes.take(cost);
            }
            if cost > 0 {
                consumed.indexes.push((index.spec.name.clone(), cost));
            }
        }
        consumed
    }

    /// Whether a write may pass: the table and all its indexes have capacity left.
    pub(super) fn may_write(&mut self, now_ms: i64) -> bool {
        let Some(throughput) = self.enforced() else {
            return true;
        };
        let burst = self.burst_seconds;
        let mut open = self.writes.open(now_ms, throughput.write, burst);
        for index in &mut self.indexes {
            let rate = index.spec.throughput.unwrap_or(throughput).write;
            open &= index.spec.local || index.writes.open(now_ms, rate, burst);
        }
        open
    }

    /// Whether a read, of an index if one is named, may pass.
    pub(super) fn may_read(&mut self, index: Option<usize>, now_ms: i64) -> bool {
        let Some(throughput) = self.enforced() else {
            return true;
        };
        let burst = self.burst_seconds;
        match index.and_then(|at| self.indexes.get_mut(at)).filter(|index| !index.spec.local) {
            None => self.reads.open(now_ms, throughput.read, burst),
            Some(index) => {
                let rate = index.spec.throughput.unwrap_or(throughput).read;
                index.reads.open(now_ms, rate, burst)
            }
        }
    }

    fn enforced(&self) -> Option<Throughput> {
        self.billing.throughput().filter(|_| self.enforce)
    }

    /// Refuses paths into key attributes: key attributes are scalars.
    pub(super) fn check_path(&self, path: &Path) -> DynamoResult<()> {
        if path.rest.is_empty() {
            return Ok(());
        }
        let kind = if self.schema.contains(&path.head) {
            "Key"
        } else if self.indexes.iter().any(|index| index.spec.schema.contains(&path.head)) {
            "IndexKey"
        } else {
            return Ok(());
        };
        Err(ApiError::validation(format!(
            "Key attributes must be scalars; list random access '[]' and map lookup '.' are not allowed: {kind}: {}",
            path.head
        )))
    }

    /// Refuses conditions on paths into key attributes.
    pub(super) fn check_condition(&self, condition: Option<&Condition>) -> DynamoResult<()> {
        let mut paths = condition.into_iter().flat_map(Condition::paths);
        paths.try_for_each(|path| self.check_path(path))
    }

    /// Brings the table's states up to date; `false` when the table is gone.
    pub(super) fn advance(&mut self, now_ms: i64, backfill_ms: i64) -> bool {
        if let Some(until) = self.until_ms.filter(|until| *until <= now_ms) {
            self.until_ms = None;
            match self.status {
                Status::Deleting => return false,
                _ => self.status = Status::Active,
            }
            // Back-filling starts when the table's own change is done.
            for index in self.indexes.iter_mut().filter(|index| index.status == Status::Creating) {
                index.until_ms.get_or_insert(until.saturating_add(backfill_ms));
            }
        }
        for index in &mut self.indexes {
            if index.until_ms.is_some_and(|until| until <= now_ms) && index.status != Status::Deleting {
                index.status = Status::Active;
                index.until_ms = None;
            }
        }
        let gone = |index: &Index| {
            index.status == Status::Deleting && index.until_ms.is_some_and(|until| until <= now_ms)
        };
        if self.indexes.iter().any(gone) {
            self.indexes.retain(|index| !gone(index));
            let used = |name: &str| {
                self.schema.contains(name)
                    || self.indexes.iter().any(|index| index.spec.schema.contains(name))
            };
            self.definitions.retain(|definition| used(&definition.name));
        }
        true
    }

    /// When a state of the table or an index ends next.
    pub(super) fn next_change(&self) -> Option<i64> {
        self.indexes.iter().filter_map(|index| index.until_ms).chain(self.until_ms).min()
    }
}
