//! The same requests to our in-memory DynamoDB and to the independent dynoxide: the same answers, or a difference
//! listed here with its reason.

mod expressions;
mod format;
mod known;
mod requests;

use known::KNOWN;
use leasehold_tests::dynoxide;
use leasehold_tests::http::{Answer, Caller};
use leasehold_tests::local::{Local, instant};
use serde_json::{Value, json};
use std::fmt::Write;

const TABLE: &str = "leases";
const RANGED: &str = "events";

/// A request, with a name for people.
struct Case {
    name: String,
    operation: &'static str,
    body: Value,
}

fn case(name: impl Into<String>, operation: &'static str, body: Value) -> Case {
    Case { name: name.into(), operation, body }
}

/// Runs the cases in their order on both, and reports every difference that is not known.
async fn compare(cases: Vec<Case>) {
    let ours = Caller::new(Local::start(instant()).await.endpoint);
    let theirs = Caller::new(dynoxide::start());
    let (mut report, mut met) = (String::new(), Vec::new());
    for Case { name, operation, body } in &cases {
        let (a, b) = (ours.dynamodb(operation, body).await, theirs.dynamodb(operation, body).await);
        if essence(operation, &a) == essence(operation, &b) {
            continue;
        }
        if let Some((known, _)) = KNOWN.iter().find(|(known, _)| name.contains(known)) {
            met.push(*known);
            continue;
        }
        let _ = writeln!(
            report,
            "{name}\n  request {operation} {body}\n  ours    {}\n  theirs  {}",
            shown(&a),
            shown(&b)
        );
    }
    assert!(report.is_empty(), "expected equal answers, found:\n{report}");
    // A difference must not stay on the list after the answers have become equal.
    for (known, _) in KNOWN {
        let asked = cases.iter().any(|case| case.name.contains(known));
        assert!(!asked || met.contains(known), "{known:?} is listed as different, but is equal");
    }
}

/// What must be equal: success or the error's code, the items, and why a transaction was cancelled. Messages are for
/// people, capacities and sizes are estimates.
fn essence(operation: &str, answer: &Answer) -> Value {
    if let Some(code) = answer.code() {
        let reasons = answer.body.get("CancellationReasons").and_then(Value::as_array);
        let reasons: Option<Vec<Value>> = reasons.map(|reasons| {
            reasons.iter().map(|reason| json!([reason.get("Code"), settled(reason.get("Item"))])).collect()
        });
        // Some servers send an empty item for none.
        let item =
            answer.body.get("Item").filter(|item| item.as_object().is_some_and(|item| !item.is_empty()));
        return json!({ "code": code, "item": settled(item), "reasons": reasons });
    }
    if operation.ends_with("Table") {
        return json!("done");
    }
    let mut body = settled(Some(&answer.body));
    if let Some(body) = body.as_object_mut() {
        for estimate in ["ConsumedCapacity", "ItemCollectionMetrics"] {
            body.remove(estimate);
        }
        // A scan has no order of its own.
        if operation == "Scan"
            && let Some(Value::Array(items)) = body.get_mut("Items")
        {
            items.sort_by_key(Value::to_string);
        }
        // Where a page ends follows from that order.
        if operation == "Scan" && body.contains_key("LastEvaluatedKey") {
            body.remove("Items");
            body.insert("LastEvaluatedKey".into(), json!("there is more"));
        }
    }
    body
}

/// With sets in one order: they have none of their own.
fn settled(value: Option<&Value>) -> Value {
    match value {
        Some(Value::Object(members)) => {
            let settle = |(name, value): (&String, &Value)| {
                let mut value = settled(Some(value));
                if matches!(name.as_str(), "SS" | "NS" | "BS")
                    && let Value::Array(elements) = &mut value
                {
                    elements.sort_by_key(Value::to_string);
                }
                (name.clone(), value)
            };
            Value::Object(members.iter().map(settle).collect())
        }
        Some(Value::Array(elements)) => elements.iter().map(|element| settled(Some(element))).collect(),
        Some(other) => other.clone(),
        None => Value::Null,
    }
}

fn shown(answer: &Answer) -> String {
    let text = answer.body.to_string();
    format!("{} {}", answer.status, text.chars().take(300).collect::<String>())
}

fn tables() -> Vec<Case> {
    vec![
        case(
            "a table with a partition key",
            "CreateTable",
            json!({
                "TableName": TABLE, "BillingMode": "PAY_PER_REQUEST",
                "AttributeDefinitions": [{ "AttributeName": "leaseKey", "AttributeType": "S" }],
                "KeySchema": [{ "AttributeName": "leaseKey", "KeyType": "HASH" }],
            }),
        ),
        case(
            "a table with a sort key and an index",
            "CreateTable",
            json!({
                "TableName": RANGED, "BillingMode": "PAY_PER_REQUEST",
                "AttributeDefinitions": [
                    { "AttributeName": "app", "AttributeType": "S" },
                    { "AttributeName": "at", "AttributeType": "N" },
                    { "AttributeName": "kind", "AttributeType": "S" },
                ],
                "KeySchema": [
                    { "AttributeName": "app", "KeyType": "HASH" },
                    { "AttributeName": "at", "KeyType": "RANGE" },
                ],
                "GlobalSecondaryIndexes": [{
                    "IndexName": "kinds",
                    "KeySchema": [
                        { "AttributeName": "kind", "KeyType": "HASH" },
                        { "AttributeName": "at", "KeyType": "RANGE" },
                    ],
                    "Projection": { "ProjectionType": "ALL" },
                }],
            }),
        ),
    ]
}

/// An item of every type.
fn sample() -> Value {
    json!({
        "leaseKey": { "S": "x" },
        "text": { "S": "hello" },
        "empty": { "S": "" },
        "number": { "N": "5" },
        "big": { "N": "12345678901234567890123456789012345678" },
        "small": { "N": "-0.000000000000000000001" },
        "binary": { "B": "AAEC" },
        "yes": { "BOOL": true },
        "nothing": { "NULL": true },
        "texts": { "SS": ["a", "b"] },
        "numbers": { "NS": ["1", "2.5"] },
        "binaries": { "BS": ["AAEC", "AwQF"] },
        "row": { "L": [{ "N": "1" }, { "S": "two" }, { "L": [{ "S": "deep" }] }] },
        "map": { "M": { "inside": { "M": { "leaf": { "N": "9" } } }, "with.dot": { "S": "dotted" } } },
    })
}
