//! In-memory DynamoDB: pure, deterministic, `Clone`, and never waiting.
//!
//! One [`Dynamo`] is the DynamoDB of one account in one region. Every call takes the time as an argument; the same
//! calls at the same times give the same answers, in every run and on every machine. There are two ways to call:
//!
//! * **Typed calls**, such as [`Dynamo::update_item`] with an [`UpdateItem`]: conditions and updates are trees
//!   ([`expr::Condition`], [`expr::Update`]) built by code. A conditional update takes a few microseconds; reads share
//!   items without copies.
//! * **JSON**, by [`Dynamo::call`]: operation name and body of the DynamoDB JSON 1.0 protocol in, body or [`ApiError`]
//!   out ([`ApiError::to_json`] is the body of the error). A server only has to forward.
//!
//! # Features
//!
//! * Items: Get, Put, Update, Delete, Query, Scan, BatchGet, BatchWrite, TransactGet, TransactWrite, with condition,
//!   update, projection, filter and key condition expressions in full, and with the older forms of the Java Kinesis
//!   client (`Expected`, `AttributeUpdates`, `ConditionalOperator`, `AttributesToGet`, `KeyConditions`, `QueryFilter`,
//!   `ScanFilter`).
//! * DynamoDB's own refusals in its own words: reserved words, names and values undefined or unused, overlapping paths,
//!   redundant parentheses, mixed forms, key and index key types, empty keys and sets, duplicates, 38 digits and the
//!   range of numbers, 400 KB items, 32 levels of nesting.
//! * Tables in the states `CREATING`, `UPDATING` and `DELETING` for the times of [`DynamoConfig`]; on-demand and
//!   provisioned billing, capacity enforced by token buckets if `throttle` is set; deletion protection, point-in-time
//!   recovery, expiry settings, tags; global indexes, made with the table or back-filled later, sparse, projected;
//!   local indexes.
//! * Pages of 1 MB (or fewer items, by `max_page_items`), limits, segments, consumed capacity. A scan goes by a fixed
//!   hash of the partition key: in no key order, and in the same order every time.
//! * For simulation: eventually consistent reads `as_of` an earlier moment (with `keep_versions`), looking without cost
//!   ([`Dynamo::peek`], [`Table::items`]), an operator's writes ([`Dynamo::operator_put`],
//!   [`Dynamo::operator_delete`]), a number for each life of a table ([`Table::life`]).
//!
//! # Stricter behaviour, and other differences from the service
//!
//! * Arithmetic with a result of more than 38 digits is refused, never rounded.
//! * Item operations do not find a `DELETING` table at once; the service may serve the table a little longer.
//! * Without `as_of`, eventually consistent reads and global indexes show the present.
//! * Item and index counts and sizes are current, not six hours old.
//! * A refusal names only the first fault of a request, and only the first malformed member; the service sometimes
//!   lists more, and checks in an order of its own.
//! * Unknown members of requests are ignored, like encryption settings; streams are refused.
//!
//! # Omissions
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
pub use error::{ApiError, CancellationReason, DynamoResult};
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
    /// The most tables in creation, update or deletion at one time.
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
    /// Successful transactions with a token.
    done: BTreeMap<String, Done>,
    /// The number of tables ever created.
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

    /// A table in any state, at no cost.
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

    /// An operator puts an item, past conditions and throttles; returns the old item.
    pub fn operator_put(&mut self, now_ms: i64, table: &str, item: &Item) -> DynamoResult<Option<Arc<Item>>> {
        let put = PutItem { table: table.to_owned(), item: item.clone(), ..PutItem::default() };
        self.operate(now_ms, table, &TransactAction::Put(put))
    }

    /// An operator deletes an item, past conditions and throttles; returns the old item.
    pub fn operator_delete(
        &mut self, now_ms: i64, table: &str, key: &Item,
    ) -> DynamoResult<Option<Arc<Item>>> {
        let delete = DeleteItem { table: table.to_owned(), key: key.clone(), ..DeleteItem::default() };
        self.operate(now_ms, table, &TransactAction::Delete(delete))
    }

    fn operate(
        &mut self, now_ms: i64, table: &str, action: &TransactAction,
    ) -> DynamoResult<Option<Arc<Item>>> {
        self.advance(now_ms);
        let table = self.found_mut(table)?;
        let mut prepared = table.prepare(action).map_err(write::Refusal::into_error)?;
        prepared.cost = 0;
        table.commit(&prepared, now_ms);
        Ok(prepared.old.map(|row| row.item))
    }

    /// Brings the states of tables and indexes up to date. Every call does this by itself.
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

    /// A table open to reads and writes now.
    fn usable(&mut self, name: &str, now_ms: i64) -> DynamoResult<&mut Table> {
        self.advance(now_ms);
        self.tables.get_mut(name).filter(|table| table.is_usable()).ok_or_else(ApiError::no_resource)
    }
}
