//! The writes of the KCL format.

use super::{Case, TABLE, case, compare, tables};
use leasehold_engine::format::{Kcl, LeaseFormat};
use leasehold_engine::ids::{LeaseKey, WorkerId};
use leasehold_engine::position::{Checkpoint, Position};
use leasehold_engine::row::{Change, Guard, LeaseRow, Renaming};
use leasehold_engine::shard::{HashKey, HashRange};
use leasehold_engine::stream_identity::StreamIdentity;
use leasehold_engine::table::{Action, AttributeValue, Item, render};
use leasehold_engine::time::Wall;
use serde_json::{Map, Value, json};

/// The format writes texts, numbers and sets of texts.
fn wire(value: &AttributeValue) -> Value {
    match value {
        AttributeValue::S(text) => json!({ "S": **text }),
        AttributeValue::N(number) => json!({ "N": **number }),
        AttributeValue::Ss(texts) => json!({ "SS": texts }),
        other => panic!("expected S, N or SS, found {other:?}"),
    }
}

fn wire_item(item: &Item) -> Value {
    Value::Object(item.iter().map(|(name, value)| (name.to_string(), wire(value))).collect())
}

/// The worker's request for a change.
fn write(name: &str, change: &Change) -> Case {
    let write = Kcl.encode(change);
    let text = render(&write);
    let mut body = Map::new();
    body.insert("TableName".into(), json!(TABLE));
    body.insert("ReturnValuesOnConditionCheckFailure".into(), json!("ALL_OLD"));
    if !text.condition.is_empty() {
        body.insert("ConditionExpression".into(), json!(text.condition));
    }
    if !text.names.is_empty() {
        body.insert("ExpressionAttributeNames".into(), json!(text.names));
    }
    if !text.values.is_empty() {
        let values: Map<String, Value> =
            text.values.iter().map(|(name, value)| (name.clone(), wire(value))).collect();
        body.insert("ExpressionAttributeValues".into(), Value::Object(values));
    }
    let operation = match &write.action {
        Action::Put(item) => {
            body.insert("Item".into(), wire_item(item));
            "PutItem"
        }
        Action::Update(_) => {
            body.insert("Key".into(), wire_item(&write.key));
            body.insert("UpdateExpression".into(), json!(text.update));
            "UpdateItem"
        }
        Action::Delete => {
            body.insert("Key".into(), wire_item(&write.key));
            "DeleteItem"
        }
    };
    case(format!("{name}: {}", change.verb()), operation, Value::Object(body))
}

fn guard(counter: u64, holder: &str, next: Option<&str>) -> Guard {
    Guard { counter, next: counter + 1, holder: holder.into(), next_owner: next.map(WorkerId::from) }
}

/// The lease of `w1` is set to the newest.
fn reset(key: LeaseKey, counter: u64) -> Change {
    Change::Reset {
        key,
        counter,
        next: counter + 1,
        owner: Some("w1".into()),
        handing_over: None,
        checkpoint: Checkpoint::TrimHorizon,
        to: Checkpoint::Latest,
    }
}

fn renaming(key: LeaseKey, counter: u64) -> Change {
    Change::Name(Box::new(Renaming {
        key,
        counter,
        checkpoint: Checkpoint::TrimHorizon,
        named: StreamIdentity::new("orders", Wall(7_000)).expect("a stream"),
        stream: StreamIdentity::new("orders", Wall(8_000)).expect("a stream"),
    }))
}

/// Every kind of change, in a given state of the row or in another.
fn changes(key: &LeaseKey, counter: u64) -> Vec<Change> {
    let key = || key.clone();
    let take = |from: Option<&str>| Change::Take {
        key: key(),
        counter,
        next: counter + 1,
        from: from.map(WorkerId::from),
        checkpoint: Checkpoint::TrimHorizon,
        to: "w2".into(),
        began: None,
        named: None,
        stream: None,
    };
    let position = Position { sequence: 4_962_000_000_000_000_000_u64.into(), sub: 3 };
    vec![
        Change::Create(Box::new(LeaseRow::new(key(), Checkpoint::TrimHorizon))),
        take(None),
        take(Some("w1")),
        Change::Renew { key: key(), guard: guard(counter, "w1", None), began: None },
        Change::Renew { key: key(), guard: guard(counter, "w1", Some("w2")), began: None },
        Change::Checkpoint { key: key(), guard: guard(counter, "w1", None), position },
        Change::End {
            key: key(),
            guard: guard(counter, "w1", None),
            children: vec!["shardId-000000000007".into(), "shardId-000000000008".into()],
            last: Some(Position::of(9.into())),
        },
        Change::Release { key: key(), guard: guard(counter, "w1", None) },
        Change::Release { key: key(), guard: guard(counter, "w1", Some("w2")) },
        Change::HandOver { key: key(), guard: guard(counter, "w1", Some("w2")) },
        Change::SetRange { key: key(), was: None, range: HashRange { start: HashKey(0), end: HashKey::MAX } },
        reset(key(), counter),
        renaming(key(), counter),
        Change::Delete { key: key(), counter },
    ]
}

/// A row with these attributes beside the common attributes of all rows.
fn row(key: &str, more: Value) -> Option<Value> {
    let mut row = json!({
        "leaseKey": { "S": key },
        "leaseCounter": { "N": "5" },
        "checkpoint": { "S": "TRIM_HORIZON" },
        "checkpointSubSequenceNumber": { "N": "0" },
        "ownerSwitchesSinceCheckpoint": { "N": "0" },
        "throughputKBps": { "N": "12.5" },
        "somebodyElses": { "M": { "nested": { "L": [{ "BOOL": true }, { "NULL": true }] } } },
    });
    if let (Some(row), Value::Object(more)) = (row.as_object_mut(), more) {
        row.extend(more);
    }
    Some(row)
}

/// Rows with values of types unknown to KCL, or with an empty name.
fn odd_states(key: &str) -> Vec<(&'static str, Option<Value>)> {
    let row = |more: Value| row(key, more);
    vec![
        ("nobody's, by NULL", row(json!({ "leaseOwner": { "NULL": true } }))),
        ("nobody's, by a number", row(json!({ "leaseOwner": { "N": "1" } }))),
        ("of an owner without a name", row(json!({ "leaseOwner": { "S": "" } }))),
        (
            "ours, handed over by NULL",
            row(json!({ "leaseOwner": { "S": "w1" }, "checkpointOwner": { "NULL": true } })),
        ),
        (
            "ours, handed over by a list",
            row(json!({ "leaseOwner": { "S": "w1" }, "checkpointOwner": { "L": [] } })),
        ),
        (
            "with a NULL and a text for hash keys",
            row(json!({ "startingHashKey": { "NULL": true }, "endingHashKey": { "S": "7" } })),
        ),
        ("with hash keys", row(json!({ "startingHashKey": { "S": "0" }, "endingHashKey": { "S": "7" } }))),
    ]
}

/// Rows in the states a lease passes through.
fn states(key: &str) -> Vec<(&'static str, Option<Value>)> {
    let row = |more: Value| row(key, more);
    vec![
        ("no row", None),
        ("nobody's", row(json!({}))),
        ("ours", row(json!({ "leaseOwner": { "S": "w1" } }))),
        ("another's", row(json!({ "leaseOwner": { "S": "w3" } }))),
        ("handed over", row(json!({ "leaseOwner": { "S": "w2" }, "checkpointOwner": { "S": "w1" } }))),
        (
            "with a prepared checkpoint",
            row(json!({
                "leaseOwner": { "S": "w1" },
                "pendingCheckpoint": { "S": "49" },
                "pendingCheckpointSubSequenceNumber": { "N": "0" },
                "pendingCheckpointState": { "B": "AAEC" },
            })),
        ),
        ("ended", row(json!({ "checkpoint": { "S": "SHARD_END" } }))),
        ("without counters", Some(json!({ "leaseKey": { "S": key }, "leaseOwner": { "S": "w1" } }))),
        ("with a text as counter", row(json!({ "leaseCounter": { "S": "5" } }))),
        (
            "with a text to add to",
            row(json!({ "leaseOwner": { "S": "w1" }, "ownerSwitchesSinceCheckpoint": { "S": "x" } })),
        ),
    ]
}

#[tokio::test(flavor = "multi_thread")]
async fn every_write_of_the_kcl_format_in_every_state_of_its_row() {
    let mut cases = tables();
    for (state, row) in states("shard").into_iter().chain(odd_states("shard")) {
        for counter in [5, 6] {
            for (number, change) in changes(&"shard".into(), counter).iter().enumerate() {
                let key = json!({ "leaseKey": { "S": "shard" } });
                let name = format!("{state}, counter {counter}, {number}");
                match &row {
                    Some(row) => cases.push(case(
                        format!("{name}: before"),
                        "PutItem",
                        json!({ "TableName": TABLE, "Item": row }),
                    )),
                    None => cases.push(case(
                        format!("{name}: before"),
                        "DeleteItem",
                        json!({ "TableName": TABLE, "Key": key }),
                    )),
                }
                cases.push(write(&name, change));
                cases.push(case(
                    format!("{name}: after"),
                    "GetItem",
                    json!({ "TableName": TABLE, "Key": key, "ConsistentRead": true }),
                ));
            }
        }
    }
    assert!(cases.len() > 1_200, "{}", cases.len());
    compare(cases).await;
}
