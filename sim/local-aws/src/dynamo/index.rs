//! Secondary indexes: sparse, sorted, with their projection.

use super::capacity::{Bucket, write_cost};
use super::error::{ApiError, DynamoResult};
use super::key::{KeySchema, Position};
use super::store::{Row, Store};
use super::table::{Status, Table, Throughput};
use super::value::item_size;
use leasehold_engine::table::Item;
use std::borrow::Cow;
use std::collections::BTreeSet;

/// The attributes of an item in an index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum IndexProjection {
    /// All attributes.
    All,
    /// The keys of the table and the index.
    KeysOnly,
    /// The keys, and these.
    Include(Vec<String>),
}

/// The description of a new index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IndexSpec {
    /// Its name.
    pub name: String,
    /// Its key.
    pub schema: KeySchema,
    /// Its attributes.
    pub projection: IndexProjection,
    /// Its own capacity, where the table is provisioned and the index is global.
    pub throughput: Option<Throughput>,
    /// Whether the index shares the table's partitions (a local index, open to consistent reads).
    pub local: bool,
}

/// Where an entry stands in an index.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct IndexPosition {
    /// By the index's key.
    pub at: Position,
    /// By the table's key, for index keys are not unique.
    pub base: Position,
}

impl IndexPosition {
    /// The place before all entries from this index position on.
    pub fn floor(at: Position) -> Self {
        Self { at, base: Position::floor(0) }
    }
}

/// An index of a table.
#[derive(Clone, Debug)]
pub struct Index {
    /// Its definition.
    pub spec: IndexSpec,
    /// Its state; a local index is always active.
    pub status: Status,
    /// When the state ends.
    pub until_ms: Option<i64>,
    pub(super) entries: BTreeSet<IndexPosition>,
    pub(super) reads: Bucket,
    pub(super) writes: Bucket,
}

impl Index {
    /// An index over the present items of a table.
    pub fn build(spec: IndexSpec, status: Status, until_ms: Option<i64>, store: &Store) -> Self {
        let entries = entries(&spec.schema, store, None);
        Self { spec, status, until_ms, entries, reads: Bucket::default(), writes: Bucket::default() }
    }

    /// The number of entries.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there are no entries.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The bytes of all entries.
    pub fn bytes(&self, table: &Table) -> usize {
        let rows = self.entries.iter().filter_map(|entry| table.store.get(&entry.base, None));
        rows.map(|row| self.projected_size(row, &table.schema)).sum()
    }

    /// The entries, now or at an earlier moment.
    pub fn entries(&self, store: &Store, as_of: Option<i64>) -> Cow<'_, BTreeSet<IndexPosition>> {
        match as_of {
            None => Cow::Borrowed(&self.entries),
            Some(_) => Cow::Owned(entries(&self.spec.schema, store, as_of)),
        }
    }

    /// Follows a write to the table, and returns the index's cost of the write.
    pub fn follow(
        &mut self, base: &Position, old: Option<&Row>, new: Option<&Row>, table: &KeySchema,
    ) -> u64 {
        let place = |row: Option<&Row>| row.and_then(|row| self.spec.schema.sparse_position(&row.item));
        let (before, after) = (place(old), place(new));
        let size = |row: Option<&Row>| row.map_or(0, |row| self.projected_size(row, table));
        let cost = match (&before, &after) {
            (None, None) => 0,
            (None, Some(_)) => write_cost(size(new)),
            (Some(_), None) => write_cost(size(old)),
            (Some(before), Some(after)) if before == after => {
                let both = old.zip(new);
                let same = both.is_some_and(|(old, new)| self.same_projection(&old.item, &new.item, table));
                if same { 0 } else { write_cost(size(old).max(size(new))) }
            }
            (Some(_), Some(_)) => write_cost(size(old)) + write_cost(size(new)),
        };
        if before != after {
            if let Some(at) = before {
                self.entries.remove(&IndexPosition { at, base: base.clone() });
            }
            if let Some(at) = after {
                self.entries.insert(IndexPosition { at, base: base.clone() });
            }
        }
        cost
    }

    /// Whether an attribute is in the index.
    pub fn holds(&self, name: &str, table: &KeySchema) -> bool {
        match &self.spec.projection {
            IndexProjection::All => true,
            IndexProjection::Include(names) if names.iter().any(|other| other == name) => true,
            _ => self.spec.schema.contains(name) || table.contains(name),
        }
    }

    /// The indexed part of an item.
    pub fn project(&self, item: &Item, table: &KeySchema) -> Item {
        let held = item.iter().filter(|(name, _)| self.holds(name, table));
        held.map(|(name, value)| (name.clone(), value.clone())).collect()
    }

    fn projected_size(&self, row: &Row, table: &KeySchema) -> usize {
        match self.spec.projection {
            IndexProjection::All => row.size,
            _ => item_size(&self.project(&row.item, table)),
        }
    }

    fn same_projection(&self, old: &Item, new: &Item, table: &KeySchema) -> bool {
        match self.spec.projection {
            IndexProjection::All => old == new,
            _ => self.project(old, table) == self.project(new, table),
        }
    }

    /// Refuses an item whose index key attributes are of the wrong type or empty.
    pub fn check(&self, item: &Item) -> DynamoResult<()> {
        for attribute in self.spec.schema.attributes() {
            let Some(value) = item.get(&attribute.name) else {
                continue;
            };
            let (actual, expected) = (value.type_name(), attribute.key_type.name());
            if actual != expected {
                return Err(ApiError::invalid_parameter(format_args!(
                    "Type mismatch for Index Key {} Expected: {expected} Actual: {actual} IndexName: {}",
                    attribute.name, self.spec.name
                )));
            }
            let empty = value.as_s().is_some_and(str::is_empty)
                || matches!(value, leasehold_engine::table::AttributeValue::B(bytes) if bytes.is_empty());
            if empty {
                return Err(ApiError::validation(format!(
                    "One or more parameter values are not valid. A value specified for a secondary index key is \
                     not supported. The AttributeValue for a key attribute cannot contain an empty {} value. \
                     IndexName: {}, IndexKey: {}",
                    if expected == "B" { "binary" } else { "string" },
                    self.spec.name,
                    attribute.name
                )));
            }
        }
        Ok(())
    }
}

fn entries(schema: &KeySchema, store: &Store, as_of: Option<i64>) -> BTreeSet<IndexPosition> {
    let entry = |(base, row): (&Position, &Row)| {
        Some(IndexPosition { at: schema.sparse_position(&row.item)?, base: base.clone() })
    };
    store.all(as_of).filter_map(entry).collect()
}
