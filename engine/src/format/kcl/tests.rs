//! Items as they are found in tables; what is written is in `writes`.

use super::*;
use crate::ids::LeaseKey;
use crate::position::{Checkpoint, Position};
use crate::row::{HandsOver, LeaseRow};
use crate::shard::{HashKey, HashRange};
use crate::table::AttributeValue;
use serde_json::{Value, json};

mod after;
mod fleet;
mod state;
mod streams;
mod types;
mod writes;

/// An item written as DynamoDB's JSON.
fn item(json: Value) -> Item {
    let Value::Object(attributes) = json else { panic!("an item is an object") };
    attributes.into_iter().map(|(name, value)| (name.into(), attribute(value))).collect()
}

fn attribute(json: Value) -> AttributeValue {
    let (kind, value) = json.as_object().unwrap().iter().next().unwrap();
    let strings = || value.as_array().unwrap().iter().map(|s| s.as_str().unwrap().to_string());
    match kind.as_str() {
        "S" => AttributeValue::s(value.as_str().unwrap()),
        "N" => AttributeValue::n(value.as_str().unwrap()),
        "NULL" => AttributeValue::Null,
        "BOOL" => AttributeValue::Bool(value.as_bool().unwrap()),
        "NS" => AttributeValue::Ns(strings().collect()),
        "B" => AttributeValue::B(value.as_str().unwrap().into()),
        "SS" => AttributeValue::Ss(strings().collect()),
        "L" => AttributeValue::L(value.as_array().unwrap().iter().cloned().map(attribute).collect()),
        "M" => AttributeValue::M(
            value.as_object().unwrap().iter().map(|(k, v)| (k.clone(), attribute(v.clone()))).collect(),
        ),
        other => panic!("{other}"),
    }
}

const SEQUENCE: &str = "49590338271490256608559692538361571095921575989136588898";

fn steady() -> Value {
    json!({
        "leaseKey": {"S": "shardId-000000000001"}, "leaseOwner": {"S": "w1"}, "leaseCounter": {"N": "42"},
        "ownerSwitchesSinceCheckpoint": {"N": "0"}, "checkpoint": {"S": SEQUENCE},
        "checkpointSubSequenceNumber": {"N": "0"}, "startingHashKey": {"S": "0"},
        "endingHashKey": {"S": "170141183460469231731687303715884105727"},
        "throughputKBps": {"N": "12.5"}, "entityType": {"S": "LEASE"}
    })
}

fn with(changes: Value) -> Value {
    let mut json = steady();
    for (name, value) in changes.as_object().unwrap() {
        if value.is_null() {
            json.as_object_mut().unwrap().remove(name);
        } else {
            json[name] = value.clone();
        }
    }
    json
}

fn lease(json: Value) -> LeaseRow {
    match Kcl.decode(&item(json)) {
        RowRead::Lease(row) => row,
        other => panic!("{other:?}"),
    }
}

fn steady_row() -> LeaseRow {
    LeaseRow {
        key: "shardId-000000000001".into(),
        owner: Some("w1".into()),
        handing_over: None,
        counter: 42,
        switches: 0,
        checkpoint: Checkpoint::At(Position::of(SEQUENCE.parse().unwrap())),
        parents: vec![],
        children: vec![],
        range: Some(HashRange { start: HashKey(0), end: HashKey((1 << 127) - 1) }),
        hands_over: HandsOver::No,
        throughput: Some(12_500_000),
        began: None,
        stream: None,
    }
}

#[test]
fn a_lease_in_steady_state() {
    assert_eq!(lease(steady()), steady_row());
    // Written before leases had this attribute.
    assert_eq!(lease(with(json!({"entityType": null}))), steady_row());
}

#[test]
fn a_row_says_which_stream_it_is_of() {
    let named = |value| lease(with(json!({"leaseholdStream": value}))).stream;
    let text = "arn:aws:kinesis:eu-central-1:123456789012:stream/orders@1700000000";
    let orders = named(json!({"S": text})).unwrap();
    assert_eq!(orders.as_str(), text);
    // Any other value of the attribute means nothing, and spoils no lease.
    for odd in [json!({"S": "orders"}), json!({"S": ""}), json!({"N": "7"}), json!({"B": "x"})] {
        assert_eq!(named(odd), None);
    }
}

#[test]
fn a_new_child_of_a_merge() {
    let row = lease(json!({
        "leaseKey": {"S": "shardId-000000000004"}, "leaseCounter": {"N": "0"},
        "ownerSwitchesSinceCheckpoint": {"N": "0"}, "checkpoint": {"S": "TRIM_HORIZON"},
        "checkpointSubSequenceNumber": {"N": "0"},
        "parentShardId": {"SS": ["shardId-000000000002", "shardId-000000000003"]},
        "startingHashKey": {"S": "0"}, "endingHashKey": {"S": "340282366920938463463374607431768211455"},
        "entityType": {"S": "LEASE"}
    }));
    let mut expected = LeaseRow::new("shardId-000000000004".into(), Checkpoint::TrimHorizon);
    expected.parents = vec!["shardId-000000000002".into(), "shardId-000000000003".into()];
    expected.range = Some(HashRange::ALL);
    assert_eq!(row, expected);
}

#[test]
fn hand_over_end_and_prepared_checkpoint() {
    let handing = lease(with(json!({"leaseOwner": {"S": "w2"}, "checkpointOwner": {"S": "w1"}})));
    assert_eq!(handing.owner, Some("w2".into()));
    assert_eq!(handing.actual_owner(), Some(&"w1".into()));
    let ended = lease(with(json!({
        "checkpoint": {"S": "SHARD_END"}, "childShardIds": {"SS": ["shardId-000000000004"]}
    })));
    assert!(ended.checkpoint.is_end());
    assert_eq!(ended.children, ["shardId-000000000004".into()]);
    let prepared = json!({
        "pendingCheckpoint": {"S": "5"}, "pendingCheckpointSubSequenceNumber": {"N": "3"},
        "pendingCheckpointState": {"B": "state"}
    });
    assert_eq!(lease(with(prepared)), steady_row());
}

#[test]
fn a_row_says_whether_its_owner_hands_it_over() {
    let hands_over = |changes| lease(with(changes)).hands_over;
    let ours = json!({"leaseholdOwner": {"S": "w1"}});
    assert_eq!(hands_over(ours), HandsOver::Yes);
    // Taken by another program; the program does not know the attribute.
    let theirs = json!({"leaseholdOwner": {"S": "w1"}, "leaseOwner": {"S": "java"}});
    assert_eq!(hands_over(theirs), HandsOver::No);
    let asked = json!({
        "leaseOwner": {"S": "w2"}, "checkpointOwner": {"S": "w1"}, "leaseholdOwner": {"S": "w1"}, "leaseholdNextOwner": {"S": "w2"}
    });
    assert_eq!(hands_over(asked), HandsOver::Yes);
    let given =
        json!({"leaseOwner": {"S": "w2"}, "leaseholdOwner": {"S": "w1"}, "leaseholdNextOwner": {"S": "w2"}});
    assert_eq!(hands_over(given), HandsOver::Later);
    let free = json!({"leaseOwner": null, "leaseholdOwner": {"S": "w1"}});
    assert_eq!(hands_over(free), HandsOver::No);
    // Any other value of the attribute spoils no lease.
    let odd = json!({"leaseholdOwner": {"N": "7"}, "leaseholdNextOwner": {"B": "x"}});
    assert_eq!(lease(with(odd)), steady_row());
}

/// KCL 2.x takes a lease that is being handed over, and leaves the old owner in the row.
#[test]
fn a_hand_over_ends_when_another_program_takes_the_lease() {
    let taken = lease(with(json!({
        "leaseOwner": {"S": "java"}, "checkpointOwner": {"S": "w1"}, "leaseholdOwner": {"S": "w1"},
        "leaseholdNextOwner": {"S": "w2"}
    })));
    assert_eq!((taken.owner, taken.handing_over), (Some("java".into()), None));
    assert_eq!(taken.hands_over, HandsOver::No);
}

#[test]
fn a_missing_or_empty_attribute_has_a_meaning() {
    assert_eq!(lease(with(json!({"checkpointSubSequenceNumber": null}))), steady_row());
    // KCL skips such rows; a person's edit leaves them behind.
    let mut unguarded = steady_row();
    unguarded.counter = 0;
    assert_eq!(lease(with(json!({"leaseCounter": null}))), unguarded);
    assert_eq!(lease(with(json!({"ownerSwitchesSinceCheckpoint": null}))), steady_row());
    let mut no_range = steady_row();
    no_range.range = None;
    for range in [
        json!({"startingHashKey": null}),
        json!({"endingHashKey": {"S": ""}}),
        json!({"startingHashKey": {"S": "9"}, "endingHashKey": {"S": "8"}}),
    ] {
        assert_eq!(lease(with(range)), no_range);
    }
    let single = lease(with(json!({"startingHashKey": {"S": "7"}, "endingHashKey": {"S": "7"}})));
    assert_eq!(single.range.unwrap().end, HashKey(7));
    for (text, checkpoint) in [
        ("TRIM_HORIZON", Checkpoint::TrimHorizon),
        ("LATEST", Checkpoint::Latest),
        ("AT_TIMESTAMP", Checkpoint::AtTimestamp),
        ("SHARD_END", Checkpoint::ShardEnd),
    ] {
        assert_eq!(lease(with(json!({"checkpoint": {"S": text}}))).checkpoint, checkpoint);
    }
}

#[test]
fn other_kinds_of_item_are_left_alone() {
    let key = json!({"S": "w1"});
    for (kind, json) in [
        (
            "WORKER_METRIC_STATS",
            json!({
                "leaseKey": key, "entityType": {"S": "WORKER_METRIC_STATS"}, "lut": {"N": "1760000000"},
                "sts": {"M": {"C": {"L": [{"N": "41.2"}]}}}, "sup": {"N": "1"}
            }),
        ),
        ("WORKER_METRIC_STATS", json!({"leaseKey": key, "lut": {"N": "1760000000"}, "sts": {"M": {}}})),
        (
            "LEADER",
            json!({
                "leaseKey": key, "entityType": {"S": "LEADER"}, "ownerName": {"S": "w1"},
                "leaseDuration": {"S": "120000"}, "recordVersionNumber": {"S": "x"}
            }),
        ),
        ("LEADER", json!({"leaseKey": key, "ownerName": {"S": "w1"}, "recordVersionNumber": {"S": "x"}})),
        (
            "CLIENT_VERSION_MIGRATION",
            json!({"leaseKey": key, "cv": {"S": "CLIENT_VERSION_3X"}, "mb": {"S": "w1"}}),
        ),
        ("TABLE_MIGRATION", json!({"leaseKey": key, "tm": {"S": "TABLE_MIGRATION_STATUS_DEPLOYED"}})),
        ("STREAM", json!({"leaseKey": key, "entityType": {"S": "STREAM"}, "streamId": {"S": "x"}})),
        ("WHATEVER", with(json!({"leaseKey": key, "entityType": {"S": "WHATEVER"}}))),
    ] {
        let read = Kcl.decode(&item(json));
        let RowRead::Foreign { key, kind: found, .. } = &read else { panic!("{read:?}") };
        assert_eq!((key.as_str(), found.as_str()), ("w1", kind), "{read:?}");
    }
}

#[test]
fn a_malformed_row_is_told_in_a_sentence() {
    let number = "expected a whole number from 0 to 2^64 - 1, found";
    let start = "expected a sequence number, TRIM_HORIZON, LATEST, AT_TIMESTAMP or SHARD_END, found";
    for (changes, expected) in [
        (json!({"leaseKey": null}), "leaseKey: expected a string, found nothing".to_string()),
        (json!({"leaseKey": {"N": "5"}}), "leaseKey: expected a string, found the number 5".into()),
        (json!({"leaseCounter": {"N": "-1"}}), format!("leaseCounter: {number} the number -1")),
        (json!({"leaseCounter": {"S": "1"}}), format!("leaseCounter: {number} the string \"1\"")),
        (json!({"checkpoint": null}), format!("checkpoint: {start} nothing")),
        (json!({"checkpoint": {"S": ""}}), format!("checkpoint: {start} the string \"\"")),
        (json!({"checkpoint": {"S": "12x"}}), format!("checkpoint: {start} the string \"12x\"")),
        (
            json!({"checkpointSubSequenceNumber": {"N": "1.5"}}),
            format!("checkpointSubSequenceNumber: {number} the number 1.5"),
        ),
        (
            json!({"startingHashKey": {"S": "-1"}}),
            "startingHashKey: expected a decimal below 2^128, found the string \"-1\"".into(),
        ),
    ] {
        match Kcl.decode(&item(with(changes))) {
            RowRead::Unreadable { detail, .. } => assert_eq!(detail, expected),
            other => panic!("{expected}: {other:?}"),
        }
    }
}
