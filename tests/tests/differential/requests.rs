//! Requests as a whole: their members, right and wrong.

use super::{RANGED, TABLE, case, compare, sample, tables};
use serde_json::{Value, json};

/// Other members of requests, right and wrong.
#[tokio::test(flavor = "multi_thread")]
async fn requests() {
    let mut cases = tables();
    let at = |at: i32, kind: &str| json!({ "app": { "S": "x" }, "at": { "N": at.to_string() }, "kind": { "S": kind } });
    for (number, kind) in [(10, "a"), (9, "b"), (-3, "a"), (100, "a")] {
        let body = json!({ "TableName": RANGED, "Item": at(number, kind) });
        cases.push(case(format!("event {number}"), "PutItem", body));
    }
    cases.push(case("the item", "PutItem", json!({ "TableName": TABLE, "Item": sample() })));
    let key = json!({ "leaseKey": { "S": "x" } });
    let five = json!({ ":five": { "N": "5" } });
    let app = json!({ ":x": { "S": "x" }, ":n": { "N": "9" } });
    let only_app = json!({ ":x": { "S": "x" } });
    let more: Vec<(&str, &'static str, Value)> = vec![
        ("no such table", "GetItem", json!({ "TableName": "nowhere", "Key": key })),
        ("no table name", "GetItem", json!({ "Key": key })),
        ("no key", "GetItem", json!({ "TableName": TABLE })),
        ("an empty key", "GetItem", json!({ "TableName": TABLE, "Key": {} })),
        ("a key of another name", "GetItem", json!({ "TableName": TABLE, "Key": { "other": { "S": "x" } } })),
        (
            "a key with too much",
            "GetItem",
            json!({ "TableName": TABLE, "Key": { "leaseKey": { "S": "x" }, "more": { "S": "x" } } }),
        ),
        (
            "a key of another type",
            "GetItem",
            json!({ "TableName": TABLE, "Key": { "leaseKey": { "N": "1" } } }),
        ),
        (
            "an empty text as key",
            "PutItem",
            json!({ "TableName": TABLE, "Item": { "leaseKey": { "S": "" } } }),
        ),
        (
            "an item without its key",
            "PutItem",
            json!({ "TableName": TABLE, "Item": { "number": { "N": "1" } } }),
        ),
        (
            "an empty set",
            "PutItem",
            json!({ "TableName": TABLE, "Item": { "leaseKey": { "S": "y" }, "set": { "SS": [] } } }),
        ),
        (
            "a set with an element twice",
            "PutItem",
            json!({ "TableName": TABLE, "Item": { "leaseKey": { "S": "y" }, "set": { "SS": ["a", "a"] } } }),
        ),
        (
            "a number that is none",
            "PutItem",
            json!({ "TableName": TABLE, "Item": { "leaseKey": { "S": "y" }, "n": { "N": "five" } } }),
        ),
        (
            "a number of 39 digits",
            "PutItem",
            json!({ "TableName": TABLE, "Item": { "leaseKey": { "S": "y" }, "n": { "N": "123456789012345678901234567890123456789" } } }),
        ),
        (
            "a number too large",
            "PutItem",
            json!({ "TableName": TABLE, "Item": { "leaseKey": { "S": "y" }, "n": { "N": "1e127" } } }),
        ),
        (
            "numbers are put into one form",
            "PutItem",
            json!({ "TableName": TABLE, "Item": { "leaseKey": { "S": "n" }, "a": { "N": "005.0" }, "b": { "N": "1e3" }, "c": { "N": "-0" }, "d": { "N": "+7" }, "e": { "N": "0.10" } } }),
        ),
        ("and read so", "GetItem", json!({ "TableName": TABLE, "Key": { "leaseKey": { "S": "n" } } })),
        (
            "gone again",
            "DeleteItem",
            json!({ "TableName": TABLE, "Key": { "leaseKey": { "S": "n" } }, "ReturnValues": "ALL_OLD" }),
        ),
        (
            "a value of two types",
            "PutItem",
            json!({ "TableName": TABLE, "Item": { "leaseKey": { "S": "y" }, "n": { "N": "1", "S": "1" } } }),
        ),
        (
            "a value of no type",
            "PutItem",
            json!({ "TableName": TABLE, "Item": { "leaseKey": { "S": "y" }, "n": {} } }),
        ),
        (
            "ReturnValues ALL_NEW of a put",
            "PutItem",
            json!({ "TableName": TABLE, "Item": sample(), "ReturnValues": "ALL_NEW" }),
        ),
        (
            "ReturnValues of no kind",
            "PutItem",
            json!({ "TableName": TABLE, "Item": sample(), "ReturnValues": "SOME" }),
        ),
        (
            "ReturnValues ALL_OLD",
            "PutItem",
            json!({ "TableName": TABLE, "Item": sample(), "ReturnValues": "ALL_OLD" }),
        ),
        (
            "an unused value",
            "DeleteItem",
            json!({ "TableName": TABLE, "Key": key, "ExpressionAttributeValues": five }),
        ),
        (
            "an unused name",
            "GetItem",
            json!({ "TableName": TABLE, "Key": key, "ProjectionExpression": "#a", "ExpressionAttributeNames": { "#a": "text", "#b": "row" } }),
        ),
        (
            "no values at all",
            "UpdateItem",
            json!({ "TableName": TABLE, "Key": key, "UpdateExpression": "REMOVE nowhere", "ExpressionAttributeValues": {} }),
        ),
        (
            "an update of nothing",
            "UpdateItem",
            json!({ "TableName": TABLE, "Key": { "leaseKey": { "S": "touched" } }, "ReturnValues": "ALL_NEW" }),
        ),
        (
            "gone as well",
            "DeleteItem",
            json!({ "TableName": TABLE, "Key": { "leaseKey": { "S": "touched" } } }),
        ),
        (
            "a projection",
            "GetItem",
            json!({ "TableName": TABLE, "Key": key, "ProjectionExpression": "#m.inside, #r[1], texts", "ExpressionAttributeNames": { "#m": "map", "#r": "row" } }),
        ),
        (
            "overlapping projections",
            "GetItem",
            json!({ "TableName": TABLE, "Key": key, "ProjectionExpression": "#m.inside, #m", "ExpressionAttributeNames": { "#m": "map" } }),
        ),
        (
            "mixed forms",
            "UpdateItem",
            json!({ "TableName": TABLE, "Key": key, "UpdateExpression": "REMOVE nowhere", "Expected": { "text": { "Exists": false } } }),
        ),
        (
            "Expected without value",
            "PutItem",
            json!({ "TableName": TABLE, "Item": sample(), "Expected": { "number": {} } }),
        ),
        (
            "Expected that fails",
            "PutItem",
            json!({ "TableName": TABLE, "Item": sample(), "Expected": { "number": { "Value": { "N": "6" } } } }),
        ),
        (
            "Expected that holds",
            "PutItem",
            json!({ "TableName": TABLE, "Item": sample(), "Expected": { "number": { "Value": { "N": "5" } }, "nowhere": { "Exists": false } } }),
        ),
        (
            "ConditionalOperator without two",
            "PutItem",
            json!({ "TableName": TABLE, "Item": sample(), "ConditionalOperator": "OR" }),
        ),
        (
            "AttributeUpdates",
            "UpdateItem",
            json!({ "TableName": TABLE, "Key": key, "AttributeUpdates": { "number": { "Action": "ADD", "Value": { "N": "2" } }, "fresh": { "Value": { "S": "put" } }, "text": { "Action": "DELETE" } }, "ReturnValues": "UPDATED_NEW" }),
        ),
        ("after AttributeUpdates", "GetItem", json!({ "TableName": TABLE, "Key": key })),
        (
            "a query in order",
            "Query",
            json!({ "TableName": RANGED, "KeyConditionExpression": "app = :x", "ExpressionAttributeValues": only_app }),
        ),
        (
            "a query backwards",
            "Query",
            json!({ "TableName": RANGED, "KeyConditionExpression": "app = :x", "ExpressionAttributeValues": only_app, "ScanIndexForward": false, "Limit": 2 }),
        ),
        (
            "a query from a number",
            "Query",
            json!({ "TableName": RANGED, "KeyConditionExpression": "app = :x AND #at >= :n", "ExpressionAttributeNames": { "#at": "at" }, "ExpressionAttributeValues": app }),
        ),
        (
            "a query of a key part by <>",
            "Query",
            json!({ "TableName": RANGED, "KeyConditionExpression": "app = :x AND #at <> :n", "ExpressionAttributeNames": { "#at": "at" }, "ExpressionAttributeValues": app }),
        ),
        (
            "a query without partition key",
            "Query",
            json!({ "TableName": RANGED, "KeyConditionExpression": "#at >= :n", "ExpressionAttributeNames": { "#at": "at" }, "ExpressionAttributeValues": { ":n": { "N": "9" } } }),
        ),
        (
            "a query with a filter on a key",
            "Query",
            json!({ "TableName": RANGED, "KeyConditionExpression": "app = :x", "FilterExpression": "#at = :n", "ExpressionAttributeNames": { "#at": "at" }, "ExpressionAttributeValues": app }),
        ),
        (
            "a query of an index",
            "Query",
            json!({ "TableName": RANGED, "IndexName": "kinds", "KeyConditionExpression": "kind = :k", "ExpressionAttributeValues": { ":k": { "S": "a" } } }),
        ),
        (
            "a consistent query of an index",
            "Query",
            json!({ "TableName": RANGED, "IndexName": "kinds", "ConsistentRead": true, "KeyConditionExpression": "kind = :k", "ExpressionAttributeValues": { ":k": { "S": "a" } } }),
        ),
        (
            "a query of no index",
            "Query",
            json!({ "TableName": RANGED, "IndexName": "none", "KeyConditionExpression": "kind = :k", "ExpressionAttributeValues": { ":k": { "S": "a" } } }),
        ),
        ("a scan with Limit 0", "Scan", json!({ "TableName": RANGED, "Limit": 0 })),
        ("a scan in pages", "Scan", json!({ "TableName": RANGED, "Limit": 2 })),
        ("a scan that counts", "Scan", json!({ "TableName": RANGED, "Select": "COUNT" })),
        ("a segment without its total", "Scan", json!({ "TableName": RANGED, "Segment": 0 })),
        ("a segment too far", "Scan", json!({ "TableName": RANGED, "Segment": 2, "TotalSegments": 2 })),
        (
            "a batch of reads",
            "BatchGetItem",
            json!({ "RequestItems": { TABLE: { "Keys": [key, { "leaseKey": { "S": "none" } }] } } }),
        ),
        (
            "a key twice in a batch of reads",
            "BatchGetItem",
            json!({ "RequestItems": { TABLE: { "Keys": [key, key] } } }),
        ),
        ("an empty batch", "BatchWriteItem", json!({ "RequestItems": {} })),
        (
            "a key twice in a batch",
            "BatchWriteItem",
            json!({ "RequestItems": { TABLE: [{ "DeleteRequest": { "Key": key } }, { "PutRequest": { "Item": sample() } }] } }),
        ),
        (
            "a batch of writes",
            "BatchWriteItem",
            json!({ "RequestItems": { TABLE: [{ "PutRequest": { "Item": sample() } }, { "DeleteRequest": { "Key": { "leaseKey": { "S": "none" } } } }] } }),
        ),
        (
            "a transaction that is cancelled",
            "TransactWriteItems",
            json!({ "TransactItems": [
            { "Put": { "TableName": TABLE, "Item": { "leaseKey": { "S": "t1" } } } },
            { "Put": { "TableName": TABLE, "Item": sample(), "ConditionExpression": "attribute_not_exists(leaseKey)", "ReturnValuesOnConditionCheckFailure": "ALL_OLD" } },
        ] }),
        ),
        ("it wrote nothing", "GetItem", json!({ "TableName": TABLE, "Key": { "leaseKey": { "S": "t1" } } })),
        (
            "an item twice in a transaction",
            "TransactWriteItems",
            json!({ "TransactItems": [
            { "Delete": { "TableName": TABLE, "Key": key } },
            { "Put": { "TableName": TABLE, "Item": sample() } },
        ] }),
        ),
        ("an empty transaction", "TransactWriteItems", json!({ "TransactItems": [] })),
        (
            "a transaction",
            "TransactWriteItems",
            json!({ "TransactItems": [
            { "ConditionCheck": { "TableName": TABLE, "Key": key, "ConditionExpression": "attribute_exists(leaseKey)" } },
            { "Update": { "TableName": RANGED, "Key": { "app": { "S": "x" }, "at": { "N": "9" } }, "UpdateExpression": "SET kind = :k", "ExpressionAttributeValues": { ":k": { "S": "c" } } } },
            { "Delete": { "TableName": RANGED, "Key": { "app": { "S": "x" }, "at": { "N": "10" } } } },
        ] }),
        ),
        (
            "what it did",
            "Query",
            json!({ "TableName": RANGED, "KeyConditionExpression": "app = :x", "ExpressionAttributeValues": only_app }),
        ),
        (
            "reads in a transaction",
            "TransactGetItems",
            json!({ "TransactItems": [{ "Get": { "TableName": TABLE, "Key": key } }, { "Get": { "TableName": TABLE, "Key": { "leaseKey": { "S": "none" } } } }] }),
        ),
        (
            "a table that is there",
            "CreateTable",
            json!({ "TableName": TABLE, "BillingMode": "PAY_PER_REQUEST", "AttributeDefinitions": [{ "AttributeName": "a", "AttributeType": "S" }], "KeySchema": [{ "AttributeName": "a", "KeyType": "HASH" }] }),
        ),
        (
            "a table with an attribute too many",
            "CreateTable",
            json!({ "TableName": "odd", "BillingMode": "PAY_PER_REQUEST", "AttributeDefinitions": [{ "AttributeName": "a", "AttributeType": "S" }, { "AttributeName": "b", "AttributeType": "S" }], "KeySchema": [{ "AttributeName": "a", "KeyType": "HASH" }] }),
        ),
        ("no table to delete", "DeleteTable", json!({ "TableName": "nowhere" })),
        ("no such operation", "FrobnicateTable", json!({ "TableName": TABLE })),
    ];
    cases.extend(more.into_iter().map(|(name, operation, body)| case(name, operation, body)));
    compare(cases).await;
}
