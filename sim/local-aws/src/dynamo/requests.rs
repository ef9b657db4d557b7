//! The typed requests and replies of item operations.

use super::capacity::Consumed;
use super::expr::{Condition, KeyCondition, Projection, Update};
use leasehold_engine::table::Item;
use std::sync::Arc;

/// Reads one item.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GetItem {
    /// The table.
    pub table: String,
    /// The key, alone.
    pub key: Item,
    /// Whether the read is strongly consistent.
    pub consistent: bool,
    /// The wanted part.
    pub projection: Option<Projection>,
    /// For an eventually consistent read: an earlier moment to show instead of the present.
    pub as_of: Option<i64>,
}

/// The answer of a read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GetReply {
    /// The item, if the key has an item.
    pub item: Option<Arc<Item>>,
    /// What the read cost.
    pub consumed: Consumed,
}

/// The attributes in the answer to a write.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ReturnValues {
    /// None.
    #[default]
    None,
    /// The item before.
    AllOld,
    /// The touched attributes before.
    UpdatedOld,
    /// The item after.
    AllNew,
    /// The touched attributes after.
    UpdatedNew,
}

/// Creates or replaces an item.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PutItem {
    /// The table.
    pub table: String,
    /// The item.
    pub item: Item,
    /// The condition on the present item.
    pub condition: Option<Condition>,
    /// The content of the answer ([`ReturnValues::None`] or [`ReturnValues::AllOld`]).
    pub return_values: ReturnValues,
    /// Whether a failed condition returns the present item.
    pub old_on_failure: bool,
}

/// Changes an item. A missing item is created.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UpdateItem {
    /// The table.
    pub table: String,
    /// The key, alone.
    pub key: Item,
    /// The change.
    pub update: Update,
    /// The condition on the present item.
    pub condition: Option<Condition>,
    /// What to answer with.
    pub return_values: ReturnValues,
    /// Whether a failed condition returns the present item.
    pub old_on_failure: bool,
}

/// Deletes an item, if the item exists.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeleteItem {
    /// The table.
    pub table: String,
    /// The key, alone.
    pub key: Item,
    /// The condition on the present item.
    pub condition: Option<Condition>,
    /// The content of the answer ([`ReturnValues::None`] or [`ReturnValues::AllOld`]).
    pub return_values: ReturnValues,
    /// Whether a failed condition returns the present item.
    pub old_on_failure: bool,
}

/// A condition without a write, in a transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConditionCheck {
    /// The table.
    pub table: String,
    /// The key, alone.
    pub key: Item,
    /// The condition on the present item.
    pub condition: Condition,
    /// Whether a failed condition returns the present item.
    pub old_on_failure: bool,
}

/// The answer of a write.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WriteReply {
    /// What [`ReturnValues`] asked for.
    pub attributes: Option<Arc<Item>>,
    /// What the write cost.
    pub consumed: Consumed,
}

/// The content of a query's or scan's answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Select {
    /// The wanted part, or all that the table or index holds.
    #[default]
    Default,
    /// Whole items, even from an index with fewer attributes.
    AllAttributes,
    /// The number of items alone.
    Count,
}

/// Reads a table or an index from end to end.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Scan {
    /// The table.
    pub table: String,
    /// The index to read; absent: the table.
    pub index: Option<String>,
    /// The filter for the items of the answer.
    pub filter: Option<Condition>,
    /// The wanted part.
    pub projection: Option<Projection>,
    /// What to answer with.
    pub select: Select,
    /// The most items to look at.
    pub limit: Option<usize>,
    /// The last key of the page before.
    pub start: Option<Item>,
    /// The segment, and the number of segments.
    pub segment: Option<(u32, u32)>,
    /// Whether the read is strongly consistent.
    pub consistent: bool,
    /// For an eventually consistent read: an earlier moment to show instead of the present.
    pub as_of: Option<i64>,
}

/// Reads a partition of a table or an index, or a range of it, in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Query {
    /// The table.
    pub table: String,
    /// The index to read; absent: the table.
    pub index: Option<String>,
    /// The partition, and perhaps a range within the partition.
    pub key: KeyCondition,
    /// The filter for the items of the answer.
    pub filter: Option<Condition>,
    /// The wanted part.
    pub projection: Option<Projection>,
    /// What to answer with.
    pub select: Select,
    /// The most items to look at.
    pub limit: Option<usize>,
    /// The last key of the page before.
    pub start: Option<Item>,
    /// Whether to read from the end.
    pub backward: bool,
    /// Whether the read is strongly consistent.
    pub consistent: bool,
    /// For an eventually consistent read: an earlier moment to show instead of the present.
    pub as_of: Option<i64>,
}

/// A page of a query or scan.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Page {
    /// The items after the filter (no items for [`Select::Count`]).
    pub items: Vec<Arc<Item>>,
    /// How many passed the filter.
    pub count: usize,
    /// How many were looked at.
    pub scanned: usize,
    /// Where the next page starts; absent on the last.
    pub last_key: Option<Item>,
    /// What the page cost.
    pub consumed: Consumed,
}

/// Reads up to 100 items of any tables.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BatchGet {
    /// The reads, table by table.
    pub tables: Vec<BatchGetTable>,
}

/// A batch's reads of one table.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BatchGetTable {
    /// The table.
    pub table: String,
    /// The keys.
    pub keys: Vec<Item>,
    /// Whether the reads are strongly consistent.
    pub consistent: bool,
    /// The wanted part.
    pub projection: Option<Projection>,
}

/// The answer of a batch of reads.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BatchGetReply {
    /// The results, in the order of the request's tables.
    pub tables: Vec<BatchGetRead>,
}

/// A batch's result from one table.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BatchGetRead {
    /// The table.
    pub table: String,
    /// The items found.
    pub items: Vec<Arc<Item>>,
    /// The unread keys: over the size of an answer, or throttled.
    pub unprocessed: Vec<Item>,
    /// What the reads cost.
    pub consumed: Consumed,
}

/// Puts and deletes of up to 25 items, each by itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BatchWrite {
    /// The writes, with their tables.
    pub writes: Vec<(String, BatchWriteAction)>,
}

/// One write of a batch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BatchWriteAction {
    /// Creates or replaces this item.
    Put(Item),
    /// Deletes the item of this key.
    Delete(Item),
}

/// The answer of a batch of writes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BatchWriteReply {
    /// The throttled writes.
    pub unprocessed: Vec<(String, BatchWriteAction)>,
    /// The cost of the writes, by table.
    pub consumed: Vec<(String, Consumed)>,
}

/// One action of a transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TransactAction {
    /// A condition alone.
    Check(ConditionCheck),
    /// A put.
    Put(PutItem),
    /// An update.
    Update(UpdateItem),
    /// A delete.
    Delete(DeleteItem),
}

impl TransactAction {
    /// The table the action is on.
    pub fn table(&self) -> &str {
        match self {
            Self::Check(check) => &check.table,
            Self::Put(put) => &put.table,
            Self::Update(update) => &update.table,
            Self::Delete(delete) => &delete.table,
        }
    }
}

/// Up to 100 writes, all or none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TransactWrite {
    /// The actions, on different items.
    pub actions: Vec<TransactAction>,
    /// Makes a repetition within ten minutes harmless.
    pub token: Option<String>,
}

/// Up to 100 reads of one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TransactGet {
    /// The reads; always strongly consistent.
    pub gets: Vec<GetItem>,
}

/// The answer of a transaction of reads.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TransactGetReply {
    /// The items, in the order of the reads.
    pub items: Vec<Option<Arc<Item>>>,
    /// The cost of the reads, by table.
    pub consumed: Vec<(String, Consumed)>,
}

/// The answer of a transaction of writes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TransactWriteReply {
    /// The cost of the writes, by table.
    pub consumed: Vec<(String, Consumed)>,
    /// Whether the call only repeated the token's earlier success, without a write.
    pub repeated: bool,
}

/// Adds a table's cost to a list.
pub(super) fn account(list: &mut Vec<(String, Consumed)>, table: &str, cost: Consumed) {
    match list.iter_mut().find(|(known, _)| known == table) {
        Some((_, sum)) => sum.add(cost),
        None => list.push((table.to_owned(), cost)),
    }
}
