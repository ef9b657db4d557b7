//! In-memory DynamoDB: pure, deterministic, `Clone`, and never waiting.
//!
//! One [`Dynamo`] is the DynamoDB of one account in one region. Every call is given the time; the same calls at the
//! same times give the same answers, in every run and on every machine. Two ways lead in:
//!
//! * **Typed calls**, such as [`Dynamo::update_item`] with an [`UpdateItem`]: conditions and updates are trees
//!   ([`expr::Condition`], [`expr::Update`]) that code builds directly. A conditional update takes a few microseconds;
//!   items are shared, not copied, by reads.
//! * **JSON**, by [`Dynamo::call`]: operation name and body of the DynamoDB JSON 1.0 protocol in, body or [`ApiError`]
//!   out ([`ApiError::to_json`] is the body of the error). A server only has to forward.
//!
//! # What is offered
//!
//! * Items: Get, Put, Update, Delete, Query, Scan, BatchGet, BatchWrite, TransactGet, TransactWrite, with condition,
//!   update, projection, filter and key condition expressions in full, and with the forms from before expressions
//!   (`Expected`, `AttributeUpdates`, `ConditionalOperator`, `AttributesToGet`, `KeyConditions`, `QueryFilter`,
//!   `ScanFilter`) that the Java Kinesis client sends.
//! * DynamoDB's own refusals in its own words: reserved words, names and values undefined or unused, overlapping paths,
//!   redundant parentheses, mixed forms, key and index key types, empty keys and sets, duplicates, 38 digits and the
//!   range of numbers, 400 KB items, 32 levels of nesting.
//! * Tables that are `CREATING`, `UPDATING` and `DELETING` for as long as [`DynamoConfig`] says; on-demand and
//!   provisioned billing, capacity enforced by token buckets if `throttle` is set; deletion protection, point-in-time
//!   recovery, expiry settings, tags; global indexes, made with the table or back-filled later, sparse, projected; local
//!   indexes.
//! * Pages of 1 MB (or fewer items, by `max_page_items`), limits, segments, consumed capacity. A scan goes by a fixed
//!   hash of the partition key: in no key order, and always in the same.
//! * For simulation: eventually consistent reads `as_of` an earlier moment (with `keep_versions`), looking without cost
//!   ([`Dynamo::peek`], [`Table::items`]), an operator's writes ([`Dynamo::operator_put`], [`Dynamo::operator_delete`]),
//!   a number for each life of a table ([`Table::life`]).
//!
//! # What is stricter than, or different from, the service
//!
//! * Arithmetic that would need more than 38 digits is refused, never rounded.
//! * A table that is `DELETING` is not found by item operations at once; the service may serve it a little longer.
//! * Without `as_of`, eventually consistent reads and global indexes show the present.
//! * Item and index counts and sizes are current, not six hours old.
//! * Of several things wrong with a request the first found is told, and a request of the wrong shape is told by its
//!   first wrong member; the service sometimes lists more, and checks in an order of its own.
//! * Members of requests that are not known are ignored, as are encryption settings; streams are refused.
//!
//! # What is left out
//!
//! PartiQL, streams, backups and restores themselves, global tables, import and export, auto scaling, resource policies,
//! item collection metrics, and the deletion of expired items.

mod alter;
mod batch;
mod capacity;
mod catalog;
pub mod decimal;
mod error;
pub mod expr;
mod index;
pub mod json;
mod key;
mod read;
#[cfg(test)]
mod read_tests;
mod requests;
mod settings;
mod store;
mod table;
#[cfg(test)]
mod table_tests;
#[cfg(test)]
mod testing;
mod transact;
mod value;
mod write;
#[cfg(test)]
mod write_tests;

pub use alter::{IndexChange, UpdateTable};
pub use capacity::{Consumed, Halves};
pub use catalog::{CreateTable, TableNames};
pub use error::{ApiError, CancellationReason};
pub use index::{Index, IndexProjection, IndexSpec};
pub use key::{KeyAttribute, KeySchema, KeyType};
pub use requests::*;
pub use settings::table_of_arn;
pub use table::{Backups, Billing, Status, Table, Throughput};

pub use leasehold_engine::table::{AttributeName, AttributeValue, Item};

use std::collections::BTreeMap;
use std::sync::Arc;
use transact::Done;

/// How a [`Dynamo`] behaves.
#[derive(Clone, Debug)]
pub struct DynamoConfig {
    /// The account in ARNs.
    pub account_id: String,
    /// The region in ARNs.
    pub region: String,
    /// How long a table is `CREATING`, or `UPDATING`.
    pub create_ms: i64,
    /// How long a new index of an existing table is back-filled.
    pub backfill_ms: i64,
    /// How long a table or an index is `DELETING`.
    pub delete_ms: i64,
    /// Whether provisioned capacity is enforced.
    pub throttle: bool,
    /// How many seconds of unused capacity are saved up.
    pub burst_seconds: u64,
    /// The size of a page of a query or scan.
    pub page_bytes: usize,
    /// The most items of a page, where pages are to be shorter than DynamoDB's.
    pub max_page_items: Option<usize>,
    /// How many earlier versions of each item stay readable by `as_of`; 0 keeps no past.
    pub keep_versions: usize,
    /// The most tables.
    pub max_tables: usize,
    /// The most tables that are being created, updated or deleted at one time.
    pub max_changing_tables: usize,
}

impl Default for DynamoConfig {
    fn default() -> Self {
        Self {
            account_id: "000000000000".to_owned(),
            region: "us-east-1".to_owned(),
            create_ms: 500,
            backfill_ms: 500,
            delete_ms: 500,
            throttle: false,
            burst_seconds: 300,
            page_bytes: 1024 * 1024,
            max_page_items: None,
            keep_versions: 0,
            max_tables: 2500,
            max_changing_tables: 500,
        }
    }
}

/// The DynamoDB of one account in one region.
#[derive(Clone, Debug)]
pub struct Dynamo {
    config: DynamoConfig,
    tables: BTreeMap<String, Table>,
    /// Transactions that succeeded under a token.
    done: BTreeMap<String, Done>,
    /// How many tables there have ever been.
    lives: u64,
    /// When the state of a table or an index ends next.
    next_change_ms: Option<i64>,
}

impl Dynamo {
    /// One without tables.
    pub fn new(config: DynamoConfig) -> Self {
        Self { config, tables: BTreeMap::new(), done: BTreeMap::new(), lives: 0, next_change_ms: None }
    }

    /// How it behaves.
    pub fn config(&self) -> &DynamoConfig {
        &self.config
    }

    /// A table, in whatever state it is, at no cost.
    pub fn table(&self, name: &str) -> Option<&Table> {
        self.tables.get(name)
    }

    /// Every table, in the order of their names.
    pub fn tables(&self) -> impl Iterator<Item = &Table> {
        self.tables.values()
    }

    /// The item of a key, at no cost.
    pub fn peek(&self, table: &str, key: &Item) -> Option<&Arc<Item>> {
        self.tables.get(table)?.peek(key)
    }

    /// An operator puts an item, past conditions and throttles; answers with what was there.
    pub fn operator_put(
        &mut self, now_ms: i64, table: &str, item: &Item,
    ) -> Result<Option<Arc<Item>>, ApiError> {
        let put = PutItem { table: table.to_owned(), item: item.clone(), ..PutItem::default() };
        self.operate(now_ms, table, &TransactAction::Put(put))
    }

    /// An operator deletes an item, past conditions and throttles; answers with what was there.
    pub fn operator_delete(
        &mut self, now_ms: i64, table: &str, key: &Item,
    ) -> Result<Option<Arc<Item>>, ApiError> {
        let delete = DeleteItem { table: table.to_owned(), key: key.clone(), ..DeleteItem::default() };
        self.operate(now_ms, table, &TransactAction::Delete(delete))
    }

    fn operate(
        &mut self, now_ms: i64, table: &str, action: &TransactAction,
    ) -> Result<Option<Arc<Item>>, ApiError> {
        self.advance(now_ms);
        let table = self.found_mut(table)?;
        let mut prepared = table.prepare(action).map_err(write::Refusal::into_error)?;
        prepared.cost = 0;
        table.commit(&prepared, now_ms);
        Ok(prepared.old.map(|row| row.item))
    }

    /// Brings the states of tables and indexes up to date. Every call does so by itself.
    pub fn advance(&mut self, now_ms: i64) {
        if self.next_change_ms.is_none_or(|next| next > now_ms) {
            return;
        }
        let backfill_ms = self.config.backfill_ms;
        self.tables.retain(|_, table| table.advance(now_ms, backfill_ms));
        self.reschedule();
        // A back-fill may have begun and ended since.
        if self.next_change_ms.is_some_and(|next| next <= now_ms) {
            self.advance(now_ms);
        }
    }

    fn reschedule(&mut self) {
        self.next_change_ms = self.tables.values().filter_map(Table::next_change).min();
    }

    /// A table whose items can be read and written now.
    fn usable(&mut self, name: &str, now_ms: i64) -> Result<&mut Table, ApiError> {
        self.advance(now_ms);
        self.tables.get_mut(name).filter(|table| table.is_usable()).ok_or_else(ApiError::no_resource)
    }
}
