//! The DynamoDB JSON 1.0 protocol over the typed operations.

mod batches;
mod body;
mod describe;
mod expressions;
mod items;
mod legacy;
mod pages;
mod settings;
mod tables;
mod transactions;
mod value;

pub use value::{attribute, parse_item, show, show_item};

use super::Dynamo;
use super::capacity::{Consumed, Halves};
use super::error::{ApiError, CancellationReason, DynamoResult};
use body::Fields;
use serde_json::{Value, json};

type Operation = fn(&mut Dynamo, i64, Fields<'_>) -> DynamoResult<Value>;

/// Every operation by its name.
const OPERATIONS: [(&str, Operation); 24] = [
    ("GetItem", items::get_item),
    ("PutItem", items::put_item),
    ("UpdateItem", items::update_item),
    ("DeleteItem", items::delete_item),
    ("Query", pages::query),
    ("Scan", pages::scan),
    ("BatchGetItem", batches::batch_get),
    ("BatchWriteItem", batches::batch_write),
    ("TransactGetItems", transactions::transact_get),
    ("TransactWriteItems", transactions::transact_write),
    ("CreateTable", tables::create),
    ("UpdateTable", tables::update),
    ("DescribeTable", tables::describe),
    ("DeleteTable", tables::delete),
    ("ListTables", tables::list),
    ("UpdateContinuousBackups", settings::update_continuous_backups),
    ("DescribeContinuousBackups", settings::describe_continuous_backups),
    ("UpdateTimeToLive", settings::update_time_to_live),
    ("DescribeTimeToLive", settings::describe_time_to_live),
    ("TagResource", settings::tag_resource),
    ("UntagResource", settings::untag_resource),
    ("ListTagsOfResource", settings::list_tags),
    ("DescribeLimits", settings::describe_limits),
    ("DescribeEndpoints", settings::describe_endpoints),
];

impl Dynamo {
    /// Answers one call of the JSON protocol; the operation is the last part of `X-Amz-Target`.
    pub fn call(&mut self, now_ms: i64, operation: &str, body: &Value) -> DynamoResult<Value> {
        match OPERATIONS.iter().find(|(name, _)| *name == operation) {
            Some((_, answer)) => answer(self, now_ms, Fields::of(body)?),
            None => Err(ApiError::new("UnknownOperationException", "")),
        }
    }

    /// The names of all operations of [`Dynamo::call`].
    pub fn operations() -> impl Iterator<Item = &'static str> {
        OPERATIONS.iter().map(|(name, _)| *name)
    }
}

impl ApiError {
    /// The body of the error's HTTP response.
    pub fn to_json(&self) -> Value {
        let mut body = json!({ "__type": format!("{}{}", self.namespace(), self.code) });
        // The front of the service and the service itself write the member differently.
        let front = matches!(self.code, "SerializationException" | "AccessDeniedException");
        let name = if front || self.code == "TransactionCanceledException" { "Message" } else { "message" };
        if self.code != "UnknownOperationException" {
            body[name] = json!(self.message);
        }
        if let Some(item) = &self.item {
            body["Item"] = show_item(item);
        }
        if !self.cancellation_reasons.is_empty() {
            body["CancellationReasons"] = self.cancellation_reasons.iter().map(show_reason).collect();
        }
        body
    }
}

fn show_reason(reason: &CancellationReason) -> Value {
    let mut body = json!({ "Code": reason.code });
    if let Some(message) = &reason.message {
        body["Message"] = json!(message);
    }
    if let Some(item) = &reason.item {
        body["Item"] = show_item(item);
    }
    body
}

/// The parts of a call's cost in the answer.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ReturnCapacity {
    None,
    Total,
    Indexes,
}

impl ReturnCapacity {
    fn read(fields: Fields<'_>) -> DynamoResult<Self> {
        let choices = [("INDEXES", Self::Indexes), ("TOTAL", Self::Total), ("NONE", Self::None)];
        let wanted = fields.choice("ReturnConsumedCapacity", &choices)?;
        // Checked only: this DynamoDB has no item collections.
        fields.choice("ReturnItemCollectionMetrics", &[("SIZE", ()), ("NONE", ())])?;
        Ok(wanted.unwrap_or(Self::None))
    }

    fn show(self, dynamo: &Dynamo, table: &str, consumed: &Consumed) -> Option<Value> {
        if self == Self::None {
            return None;
        }
        let mut body = json!({ "TableName": table, "CapacityUnits": units(consumed.total()) });
        if self == Self::Indexes {
            body["Table"] = json!({ "CapacityUnits": units(consumed.table) });
            for (name, halves) in &consumed.indexes {
                let local =
                    dynamo.table(table).and_then(|table| table.index(name)).is_some_and(|i| i.spec.local);
                let kind = if local { "LocalSecondaryIndexes" } else { "GlobalSecondaryIndexes" };
                body[kind][name] = json!({ "CapacityUnits": units(*halves) });
            }
        }
        Some(body)
    }

    /// Adds the cost to a reply, where it is to be told.
    fn tell(self, reply: &mut Value, dynamo: &Dynamo, table: &str, consumed: &Consumed) {
        if let Some(cost) = self.show(dynamo, table, consumed) {
            reply["ConsumedCapacity"] = cost;
        }
    }

    /// Adds the costs at several tables to a reply, where they are to be told.
    fn tell_all(self, reply: &mut Value, dynamo: &Dynamo, costs: &[(String, Consumed)]) {
        if self != Self::None {
            let shown = costs.iter().filter_map(|(table, cost)| self.show(dynamo, table, cost));
            reply["ConsumedCapacity"] = shown.collect();
        }
    }
}

/// Halves of a unit as JSON: always a number with a fraction, as the service writes it.
fn units(halves: Halves) -> Value {
    json!(halves as f64 / 2.0)
}

/// Milliseconds as the service writes times: seconds with a fraction.
fn seconds(ms: i64) -> Value {
    json!(ms as f64 / 1000.0)
}

#[cfg(test)]
mod fuzz_tests;
#[cfg(test)]
mod tests;
