use super::*;
use crate::ids::{ShardId, WorkerId};
use crate::position::{Checkpoint, Position, SequenceNumber};
use crate::row::{Guard, LeaseRow};
use crate::shard::{HashKey, HashRange};
use crate::table::{WriteError, render};
use proptest::prelude::*;
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// An item written as DynamoDB's JSON.
fn item(json: Value) -> Item {
    let Value::Object(attributes) = json else {
        panic!("an item is an object")
    };
    attributes
        .into_iter()
        .map(|(name, value)| (name.into(), attribute(value)))
        .collect()
}

fn attribute(json: Value) -> AttributeValue {
    let (kind, value) = json.as_object().unwrap().iter().next().unwrap();
    let strings = || {
        value
            .as_array()
            .unwrap()
            .iter()
            .map(|s| s.as_str().unwrap().to_string())
    };
    match kind.as_str() {
        "S" => AttributeValue::s(value.as_str().unwrap()),
        "N" => AttributeValue::N(value.as_str().unwrap().to_string()),
        "B" => AttributeValue::B(value.as_str().unwrap().into()),
        "SS" => AttributeValue::Ss(strings().collect()),
        "L" => AttributeValue::L(value.as_array().unwrap().iter().cloned().map(attribute).collect()),
        "M" => AttributeValue::M(
            value
                .as_object()
                .unwrap()
                .iter()
                .map(|(k, v)| (k.clone(), attribute(v.clone())))
                .collect(),
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
        range: Some(HashRange {
            start: HashKey(0),
            end: HashKey((1 << 127) - 1),
        }),
    }
}

#[test]
fn a_lease_in_steady_state() {
    assert_eq!(lease(steady()), steady_row());
    // Written before there was such an attribute.
    assert_eq!(lease(with(json!({"entityType": null}))), steady_row());
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
    let handing = lease(with(
        json!({"leaseOwner": {"S": "w2"}, "checkpointOwner": {"S": "w1"}}),
    ));
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
fn what_is_missing_or_empty_has_a_meaning() {
    assert_eq!(
        lease(with(json!({"checkpointSubSequenceNumber": null}))),
        steady_row()
    );
    let mut free = steady_row();
    free.owner = None;
    assert_eq!(
        lease(with(
            json!({"leaseOwner": {"S": ""}, "checkpointOwner": {"S": ""}})
        )),
        free
    );
    let mut no_range = steady_row();
    no_range.range = None;
    for range in [
        json!({"startingHashKey": null}),
        json!({"endingHashKey": {"S": ""}}),
        json!({"startingHashKey": {"S": "9"}, "endingHashKey": {"S": "8"}}),
    ] {
        assert_eq!(lease(with(range)), no_range);
    }
    let single = lease(with(
        json!({"startingHashKey": {"S": "7"}, "endingHashKey": {"S": "7"}}),
    ));
    assert_eq!(single.range.unwrap().end, HashKey(7));
    for (text, checkpoint) in [
        ("TRIM_HORIZON", Checkpoint::TrimHorizon),
        ("LATEST", Checkpoint::Latest),
        ("AT_TIMESTAMP", Checkpoint::AtTimestamp),
        ("SHARD_END", Checkpoint::ShardEnd),
    ] {
        assert_eq!(
            lease(with(json!({"checkpoint": {"S": text}}))).checkpoint,
            checkpoint
        );
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
        (
            "WORKER_METRIC_STATS",
            json!({"leaseKey": key, "lut": {"N": "1760000000"}, "sts": {"M": {}}}),
        ),
        (
            "LEADER",
            json!({
                "leaseKey": key, "entityType": {"S": "LEADER"}, "ownerName": {"S": "w1"},
                "leaseDuration": {"S": "120000"}, "recordVersionNumber": {"S": "x"}
            }),
        ),
        (
            "LEADER",
            json!({"leaseKey": key, "ownerName": {"S": "w1"}, "recordVersionNumber": {"S": "x"}}),
        ),
        (
            "CLIENT_VERSION_MIGRATION",
            json!({"leaseKey": key, "cv": {"S": "CLIENT_VERSION_3X"}, "mb": {"S": "w1"}}),
        ),
        (
            "TABLE_MIGRATION",
            json!({"leaseKey": key, "tm": {"S": "TABLE_MIGRATION_STATUS_DEPLOYED"}}),
        ),
        (
            "STREAM",
            json!({"leaseKey": key, "entityType": {"S": "STREAM"}, "streamId": {"S": "x"}}),
        ),
        (
            "WHATEVER",
            with(json!({"leaseKey": key, "entityType": {"S": "WHATEVER"}})),
        ),
    ] {
        let expected = RowRead::Foreign {
            key: "w1".into(),
            kind: kind.into(),
        };
        assert_eq!(Kcl.decode(&item(json)), expected);
    }
}

#[test]
fn what_is_malformed_is_said_in_a_sentence() {
    let number = "expected a whole number from 0 to 2^64 - 1, found";
    let start = "expected a sequence number, TRIM_HORIZON, LATEST, AT_TIMESTAMP or SHARD_END, found";
    for (changes, expected) in [
        (
            json!({"leaseKey": null}),
            "leaseKey: expected a string, found nothing".to_string(),
        ),
        (
            json!({"leaseKey": {"N": "5"}}),
            "leaseKey: expected a string, found the number 5".into(),
        ),
        (
            json!({"entityType": {"L": []}}),
            "entityType: expected a string, found a value of type L".into(),
        ),
        (
            json!({"leaseOwner": {"N": "1"}}),
            "leaseOwner: expected a string, found the number 1".into(),
        ),
        (
            json!({"checkpointOwner": {"SS": ["a"]}}),
            "checkpointOwner: expected a string, found a value of type SS".into(),
        ),
        (
            json!({"leaseCounter": null}),
            "leaseCounter: expected a whole number, found nothing".into(),
        ),
        (
            json!({"leaseCounter": {"N": "-1"}}),
            format!("leaseCounter: {number} the number -1"),
        ),
        (
            json!({"leaseCounter": {"S": "1"}}),
            format!("leaseCounter: {number} the string \"1\""),
        ),
        (
            json!({"ownerSwitchesSinceCheckpoint": null}),
            "ownerSwitchesSinceCheckpoint: expected a whole number, found nothing".into(),
        ),
        (
            json!({"checkpoint": null}),
            format!("checkpoint: {start} nothing"),
        ),
        (
            json!({"checkpoint": {"S": ""}}),
            format!("checkpoint: {start} the string \"\""),
        ),
        (
            json!({"checkpoint": {"S": "12x"}}),
            format!("checkpoint: {start} the string \"12x\""),
        ),
        (
            json!({"checkpointSubSequenceNumber": {"N": "1.5"}}),
            format!("checkpointSubSequenceNumber: {number} the number 1.5"),
        ),
        (
            json!({"parentShardId": {"S": "a"}}),
            "parentShardId: expected a set of strings, found the string \"a\"".into(),
        ),
        (
            json!({"childShardIds": {"L": []}}),
            "childShardIds: expected a set of strings, found a value of type L".into(),
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

fn guard() -> Guard {
    Guard {
        counter: 42,
        holder: "w1".into(),
        next_owner: None,
    }
}

fn handing() -> Guard {
    Guard {
        next_owner: Some("w2".into()),
        ..guard()
    }
}

fn key() -> LeaseKey {
    "shardId-000000000001".into()
}

/// The expressions of a change with the names and values put back in, as one reads them.
fn told(change: &Change) -> String {
    let rendered = render(&Kcl.encode(change));
    let mut text = match rendered.update {
        Some(update) => format!("{update} IF {}", rendered.condition),
        None => format!("IF {}", rendered.condition),
    };
    for (placeholder, name) in rendered.names.iter().rev() {
        text = text.replace(placeholder, name);
    }
    for (placeholder, value) in rendered.values.iter().rev() {
        let value = match value {
            AttributeValue::S(text) => format!("'{text}'"),
            AttributeValue::N(number) => number.clone(),
            other => format!("{other:?}"),
        };
        text = text.replace(placeholder, &value);
    }
    text
}

#[test]
fn every_change_in_words() {
    let held = "IF leaseCounter = 42 AND leaseOwner = 'w1' AND attribute_not_exists(checkpointOwner)";
    let handed = "IF leaseCounter = 42 AND leaseOwner = 'w2' AND checkpointOwner = 'w1'";
    let forget = "pendingCheckpoint, pendingCheckpointSubSequenceNumber, pendingCheckpointState";
    let position = Position {
        sequence: 77.into(),
        sub: 3,
    };
    let take = |from: Option<&str>| Change::Take {
        key: key(),
        counter: 42,
        from: from.map(WorkerId::from),
        to: "w2".into(),
    };
    for (change, expected) in [
        (
            Change::Create(Box::new(steady_row())),
            "IF attribute_not_exists(leaseKey)".to_string(),
        ),
        (
            Change::Renew { key: key(), guard: guard() },
            format!("SET leaseCounter = 43 {held}"),
        ),
        (
            Change::Renew { key: key(), guard: handing() },
            format!("SET leaseCounter = 43 {handed}"),
        ),
        (
            take(Some("w1")),
            "SET leaseCounter = 43, leaseOwner = 'w2' REMOVE checkpointOwner ADD ownerSwitchesSinceCheckpoint 1 \
             IF leaseCounter = 42 AND leaseOwner = 'w1'"
                .into(),
        ),
        (
            take(Some("w2")),
            "SET leaseCounter = 43, leaseOwner = 'w2' REMOVE checkpointOwner \
             IF leaseCounter = 42 AND leaseOwner = 'w2'"
                .into(),
        ),
        (
            take(None),
            "SET leaseCounter = 43, leaseOwner = 'w2' REMOVE checkpointOwner \
             IF leaseCounter = 42 AND attribute_not_exists(leaseOwner)"
                .into(),
        ),
        (
            Change::Checkpoint { key: key(), guard: handing(), position },
            format!(
                "SET leaseCounter = 43, checkpoint = '77', checkpointSubSequenceNumber = 3, \
                 ownerSwitchesSinceCheckpoint = 0 REMOVE {forget} {handed}"
            ),
        ),
        (
            Change::End { key: key(), guard: guard(), children: vec!["c".into()] },
            format!(
                "SET leaseCounter = 43, checkpoint = 'SHARD_END', checkpointSubSequenceNumber = 0, \
                 ownerSwitchesSinceCheckpoint = 0, childShardIds = Ss({{\"c\"}}) \
                 REMOVE {forget}, leaseOwner, checkpointOwner {held}"
            ),
        ),
        (
            Change::Release { key: key(), guard: guard() },
            format!("SET leaseCounter = 43 REMOVE leaseOwner {held}"),
        ),
        (
            Change::Release { key: key(), guard: handing() },
            format!("SET leaseCounter = 43 REMOVE checkpointOwner {handed}"),
        ),
        (
            Change::HandOver { key: key(), guard: handing() },
            format!("SET leaseCounter = 43 REMOVE checkpointOwner {handed}"),
        ),
        (
            Change::SetRange { key: key(), range: HashRange { start: HashKey(1), end: HashKey(2) } },
            "SET startingHashKey = '1', endingHashKey = '2' \
             IF attribute_exists(leaseKey) AND attribute_not_exists(startingHashKey)"
                .into(),
        ),
        (
            Change::Delete { key: key(), counter: 42 },
            "IF leaseCounter = 42 AND checkpoint = 'SHARD_END'".into(),
        ),
    ] {
        assert_eq!(told(&change), expected);
    }
}

fn ids() -> impl Strategy<Value = Vec<ShardId>> {
    prop::collection::btree_set("[a-z]{1,3}", 0..3)
        .prop_map(|ids: BTreeSet<String>| ids.into_iter().map(ShardId::from).collect())
}

fn workers() -> impl Strategy<Value = WorkerId> {
    prop::sample::select(vec!["w1", "w2", "w3"]).prop_map(WorkerId::from)
}

fn places() -> impl Strategy<Value = Position> {
    (any::<[u64; 3]>(), 0u64..5).prop_map(|(words, sub)| Position {
        sequence: SequenceNumber::from_words(words),
        sub,
    })
}

prop_compose! {
    fn rows()(
        owner in prop::option::of(workers()),
        handing_over in prop::option::of(workers()),
        counter in prop_oneof![0u64..4, Just(u64::MAX)],
        switches in 0u64..3,
        checkpoint in prop_oneof![
            places().prop_map(Checkpoint::At),
            Just(Checkpoint::AtTimestamp),
            Just(Checkpoint::TrimHorizon),
            Just(Checkpoint::Latest),
            Just(Checkpoint::ShardEnd),
        ],
        parents in ids(),
        children in ids(),
        range in prop::option::of((any::<u128>(), any::<u128>())),
    ) -> LeaseRow {
        let range = range.map(|(a, b)| HashRange { start: HashKey(a.min(b)), end: HashKey(a.max(b)) });
        LeaseRow { key: key(), owner, handing_over, counter, switches, checkpoint, parents, children, range }
    }
}

fn changes() -> impl Strategy<Value = Change> {
    let guards = || {
        (0u64..4, workers(), prop::option::of(workers())).prop_map(|(counter, holder, next_owner)| Guard {
            counter,
            holder,
            next_owner,
        })
    };
    prop_oneof![
        rows().prop_map(|row| Change::Create(Box::new(row))),
        guards().prop_map(|guard| Change::Renew { key: key(), guard }),
        (0u64..4, prop::option::of(workers()), workers()).prop_map(|(counter, from, to)| Change::Take {
            key: key(),
            counter,
            from,
            to
        }),
        (guards(), places()).prop_map(|(guard, position)| Change::Checkpoint {
            key: key(),
            guard,
            position
        }),
        (guards(), ids()).prop_map(|(guard, children)| Change::End {
            key: key(),
            guard,
            children
        }),
        guards().prop_map(|guard| Change::Release { key: key(), guard }),
        guards().prop_map(|guard| Change::HandOver { key: key(), guard }),
        any::<u128>().prop_map(|start| Change::SetRange {
            key: key(),
            range: HashRange {
                start: HashKey(start),
                end: HashKey::MAX
            }
        }),
        (0u64..4).prop_map(|counter| Change::Delete { key: key(), counter }),
    ]
}

/// What a change makes of a row, said once more in terms of rows; `None` if its guard does not hold.
fn after(row: &LeaseRow, change: &Change) -> Option<Option<LeaseRow>> {
    let mut new = row.clone();
    let held = |guard: &Guard| {
        row.counter == guard.counter
            && match &guard.next_owner {
                None => row.owner.as_ref() == Some(&guard.holder) && row.handing_over.is_none(),
                Some(next) => {
                    row.owner.as_ref() == Some(next) && row.handing_over.as_ref() == Some(&guard.holder)
                }
            }
    };
    let allowed = match change {
        Change::Create(_) => false,
        Change::Renew { guard, .. } => held(guard),
        Change::Take {
            counter, from, to, ..
        } => {
            new.owner = Some(to.clone());
            new.handing_over = None;
            new.switches += u64::from(from.as_ref().is_some_and(|from| from != to));
            row.counter == *counter && row.owner == *from
        }
        Change::Checkpoint { guard, position, .. } => {
            new.checkpoint = Checkpoint::At(*position);
            new.switches = 0;
            held(guard)
        }
        Change::End { guard, children, .. } => {
            new.checkpoint = Checkpoint::ShardEnd;
            new.switches = 0;
            new.owner = None;
            new.handing_over = None;
            if !children.is_empty() {
                new.children = children.clone();
            }
            held(guard)
        }
        Change::Release { guard, .. } | Change::HandOver { guard, .. } => {
            if guard.next_owner.is_none() && matches!(change, Change::Release { .. }) {
                new.owner = None;
            }
            new.handing_over = None;
            held(guard)
        }
        Change::SetRange { range, .. } => {
            new.range = Some(*range);
            return row.range.is_none().then_some(Some(new));
        }
        Change::Delete { counter, .. } => {
            return (row.counter == *counter && row.checkpoint.is_end()).then_some(None);
        }
    };
    new.counter = row.counter.wrapping_add(1);
    allowed.then_some(Some(new))
}

fn values() -> impl Strategy<Value = AttributeValue> {
    let leaf = prop_oneof![
        "\\PC{0,12}".prop_map(AttributeValue::S),
        "[-+0-9.eEx]{0,8}".prop_map(AttributeValue::N),
        any::<Vec<u8>>().prop_map(AttributeValue::B),
        any::<bool>().prop_map(AttributeValue::Bool),
        Just(AttributeValue::Null),
        prop::collection::btree_set("[a-z]{0,2}", 0..3).prop_map(AttributeValue::Ss),
        prop::collection::btree_set("[0-9]{0,2}", 0..3).prop_map(AttributeValue::Ns),
        prop::sample::select(vec!["LEASE", "SHARD_END", "LATEST", "1"]).prop_map(AttributeValue::s),
    ];
    leaf.prop_recursive(2, 8, 3, |inner| {
        prop::collection::vec(inner, 0..3).prop_map(AttributeValue::L)
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn a_created_row_reads_as_itself(row in rows()) {
        let mut table = None;
        Kcl.encode(&Change::Create(Box::new(row.clone()))).carry_out(&mut table).unwrap();
        prop_assert_eq!(Kcl.decode(&table.unwrap()), RowRead::Lease(row));
    }

    #[test]
    fn changes_change_what_they_should_and_nothing_else(row in rows(), change in changes()) {
        let mut table = None;
        Kcl.encode(&Change::Create(Box::new(row.clone()))).carry_out(&mut table).unwrap();
        let foreign = [
            ("throughputKBps", AttributeValue::N("1.0E-6".into())),
            ("somethingNew", AttributeValue::M([("x".to_string(), AttributeValue::Null)].into())),
        ];
        for (name, value) in &foreign {
            table.as_mut().unwrap().insert((*name).into(), value.clone());
        }
        let before = table.clone();
        let write = Kcl.encode(&change);
        prop_assert_eq!(&write.key, &Kcl.key(change.key()));
        match (write.carry_out(&mut table), after(&row, &change)) {
            (Err(WriteError::ConditionFailed), None) => prop_assert_eq!(table, before),
            (Ok(()), Some(None)) => prop_assert_eq!(table, None),
            (Ok(()), Some(Some(expected))) => {
                let item = table.unwrap();
                prop_assert_eq!(Kcl.decode(&item), RowRead::Lease(expected));
                for (name, value) in &foreign {
                    prop_assert_eq!(item.get(*name), Some(value));
                }
            }
            (done, expected) => prop_assert!(false, "{:?} instead of {:?}", done, expected),
        }
    }

    #[test]
    fn nothing_but_a_creation_brings_an_absent_row_about(change in changes()) {
        let mut table = None;
        let done = Kcl.encode(&change).carry_out(&mut table);
        prop_assert_eq!(done.is_ok(), matches!(change, Change::Create(_)));
        prop_assert_eq!(table.is_some(), done.is_ok());
    }

    #[test]
    fn any_item_gets_an_answer(changes in prop::collection::vec((0usize..15, prop::option::of(values())), 0..6)) {
        let names = [
            name::KEY, name::OWNER, name::COUNTER, name::SWITCHES, name::CHECKPOINT, name::SUB, name::PENDING,
            name::PARENTS, name::CHILDREN, name::RANGE_START, name::RANGE_END, name::OLD_OWNER, name::ENTITY, "lut",
            "other",
        ];
        let mut item = item(steady());
        for (n, value) in changes {
            match value {
                Some(value) => item.insert(names[n].into(), value),
                None => item.remove(names[n]),
            };
        }
        let read = Kcl.decode(&item);
        if let Some(AttributeValue::S(key)) = item.get(name::KEY) {
            prop_assert_eq!(read.key().as_str(), key);
        } else {
            let unreadable = matches!(read, RowRead::Unreadable { .. });
            prop_assert!(unreadable);
        }
    }
}
