//! Helpers for the tests of this folder.

use super::expr::KeyCondition;
use super::*;
use leasehold_engine::table::AttributeValue;
use serde_json::{Value, json};

/// A moment at which the tables of the tests are active.
pub(super) const NOW: i64 = 1_000_000;

/// An item from name and value pairs.
pub(super) fn item<const N: usize>(pairs: [(&'static str, AttributeValue); N]) -> Item {
    pairs.into_iter().map(|(name, value)| (name.into(), value)).collect()
}

/// A string value.
pub(super) fn s(text: &str) -> AttributeValue {
    AttributeValue::s(text)
}

/// A number value.
pub(super) fn n(number: i64) -> AttributeValue {
    AttributeValue::n(number)
}

/// A schema of a string partition key `p` and, where asked for, a number sort key `s`.
pub(super) fn schema(sorted: bool) -> KeySchema {
    let part = |name: &'static str, key_type| KeyAttribute { name: name.into(), key_type };
    KeySchema { partition: part("p", KeyType::S), sort: sorted.then(|| part("s", KeyType::N)) }
}

/// A global index of all attributes over `owner`, and `rank` where asked for.
pub(super) fn index(name: &str, ranked: bool, projection: IndexProjection) -> IndexSpec {
    let part = |name: &'static str, key_type| KeyAttribute { name: name.into(), key_type };
    IndexSpec {
        name: name.to_owned(),
        schema: KeySchema {
            partition: part("owner", KeyType::S),
            sort: ranked.then(|| part("rank", KeyType::N)),
        },
        projection,
        throughput: None,
        local: false,
    }
}

/// A request for a table with indexes, their keys defined.
pub(super) fn creation(name: &str, sorted: bool, indexes: Vec<IndexSpec>) -> CreateTable {
    let mut request = CreateTable::new(name, schema(sorted));
    for index in &indexes {
        for part in index.schema.attributes() {
            if request.definitions.iter().all(|known| known.name != part.name) {
                request.definitions.push(part.clone());
            }
        }
    }
    CreateTable { indexes, ..request }
}

/// A DynamoDB with one active table `tab`.
pub(super) fn with_table(config: DynamoConfig, sorted: bool, indexes: Vec<IndexSpec>) -> Dynamo {
    let mut dynamo = Dynamo::new(config);
    dynamo.create_table(0, &creation("tab", sorted, indexes)).unwrap();
    dynamo.advance(NOW);
    assert_eq!(dynamo.table("tab").unwrap().status, Status::Active);
    dynamo
}

/// A DynamoDB with an unsorted table `tab`, no indexes.
pub(super) fn simple() -> Dynamo {
    with_table(DynamoConfig::default(), false, Vec::new())
}

/// A put into `tab`.
pub(super) fn put_of(item: Item) -> PutItem {
    PutItem { table: "tab".into(), item, ..PutItem::default() }
}

/// Puts an item into `tab`.
pub(super) fn put(dynamo: &mut Dynamo, item: Item) {
    dynamo.put_item(NOW, &put_of(item)).unwrap();
}

/// A read of an item of `tab`.
pub(super) fn get_of(key: Item) -> GetItem {
    GetItem { table: "tab".into(), key, ..GetItem::default() }
}

/// A scan of `tab`.
pub(super) fn scan() -> Scan {
    Scan { table: "tab".into(), ..Scan::default() }
}

/// A query of the table `tab`, or of an index of the table.
pub(super) fn query(index: Option<&str>, key: KeyCondition) -> Query {
    Query { table: "tab".into(), index: index.map(str::to_owned), key, ..Query::default() }
}

/// Calls `tab`, filling in the table's name.
pub(super) fn call(dynamo: &mut Dynamo, operation: &str, mut body: Value) -> DynamoResult<Value> {
    if body.get("TableName").is_none()
        && !operation.starts_with("Batch")
        && !operation.starts_with("Transact")
    {
        body["TableName"] = json!("tab");
    }
    dynamo.call(NOW, operation, &body)
}

/// Asserts a `ValidationException` whose message contains the text `part`.
pub(super) fn invalid<T: std::fmt::Debug>(result: DynamoResult<T>, part: &str) -> ApiError {
    refused(result, "ValidationException", part)
}

/// Asserts an error with the code `code`, whose message contains the text `part`.
pub(super) fn refused<T: std::fmt::Debug>(result: DynamoResult<T>, code: &str, part: &str) -> ApiError {
    let error = result.expect_err(part);
    assert_eq!(error.code, code, "{error}");
    assert!(error.message.contains(part), "{part}: {error}");
    error
}
