//! Attributes of other types than KCL writes. KCL decides the meaning of a value in its table:
//! `DynamoDBLeaseSerializer` and `DynamoUtils` of KCL 3.5.1 ask a value for its string, its set of strings or its
//! number.

use super::*;
use crate::row::{Change, Guard};
use crate::testkit::{item_of, take_of};

/// A value of each type but strings, numbers and sets of strings.
fn odd() -> [Value; 7] {
    [
        json!({"NULL": true}),
        json!({"BOOL": true}),
        json!({"B": "w1"}),
        json!({"NS": ["1"]}),
        json!({"L": []}),
        json!({"L": [{"N": "1"}]}),
        json!({"M": {"S": {"S": "w1"}}}),
    ]
}

fn changed(name: &str, value: Value) -> RowRead {
    let mut json = steady();
    json[name] = value;
    Kcl.decode(&item(json))
}

/// What is no string is absent, in each place of a string: `AttributeValue.s()` is null then.
#[test]
fn a_value_of_another_type_is_no_string() {
    let free = LeaseRow { owner: None, ..steady_row() };
    let unknown = LeaseRow { range: None, ..steady_row() };
    for value in odd().into_iter().chain([json!({"N": "1"}), json!({"SS": ["w1"]})]) {
        for (name, expected) in [
            ("leaseOwner", &free),
            ("checkpointOwner", &steady_row()),
            ("entityType", &steady_row()),
            ("startingHashKey", &unknown),
            ("endingHashKey", &unknown),
        ] {
            let read = changed(name, value.clone());
            assert_eq!(read, RowRead::Lease(expected.clone()), "{name}: {value}");
        }
    }
}

/// `AttributeValue.ss()` is empty for each other type. Of a list of strings more is read than KCL does.
#[test]
fn relatives_are_a_set_of_strings() {
    for value in odd().into_iter().chain([json!({"N": "1"}), json!({"S": "p"})]) {
        for name in ["parentShardId", "childShardIds"] {
            assert_eq!(changed(name, value.clone()), RowRead::Lease(steady_row()), "{name}: {value}");
        }
    }
    let list = json!({"L": [{"S": "q"}, {"NULL": true}, {"S": "p"}, {"S": "q"}]});
    let expected = ["p".into(), "q".into()];
    assert_eq!(lease(with(json!({"parentShardId": list}))).parents, expected);
    assert_eq!(lease(with(json!({"childShardIds": list}))).children, expected);
}

/// `new Long(null)` throws: KCL does not read such a row, and no worker takes its lease before a person has mended the
/// row. A checkpoint of another type than string is an error, too: KCL reads the row, and cannot begin to read its
/// shard.
#[test]
fn a_value_of_another_type_is_no_number_and_no_checkpoint() {
    let names = ["leaseCounter", "ownerSwitchesSinceCheckpoint", "checkpointSubSequenceNumber", "checkpoint"];
    for value in odd().into_iter().chain([json!({"S": "x"}), json!({"SS": ["1"]})]) {
        for name in names {
            match changed(name, value.clone()) {
                RowRead::Unreadable { detail, .. } => assert!(detail.starts_with(name), "{detail}"),
                other => panic!("{name}: {value}: {other:?}"),
            }
        }
    }
}

/// KCL takes an empty string for an owner. No worker has an empty name, so other workers get the lease by expiry.
#[test]
fn an_empty_string_is_a_name() {
    let empty = lease(with(json!({"leaseOwner": {"S": ""}})));
    assert_eq!(empty.owner, Some("".into()));
    let handing = lease(with(json!({"checkpointOwner": {"S": ""}})));
    assert_eq!(handing.actual_owner(), Some(&"".into()));
}

/// A new row, as written by a move to another table, names no worker with an empty name: such an owner would look like
/// no owner.
#[test]
fn a_new_row_names_no_worker_without_a_name() {
    for attribute in ["leaseOwner", "checkpointOwner"] {
        let nameless =
            json!({attribute: {"S": ""}, "leaseholdOwner": {"S": ""}, "leaseholdNextOwner": {"S": ""}});
        let created = item_of(&Kcl, &lease(with(nameless)));
        let empty = created.iter().filter(|(_, value)| value.as_s() == Some(""));
        assert_eq!(empty.count(), 0, "{created:?}");
        assert!(matches!(Kcl.decode(&created), RowRead::Lease(row) if row.hands_over.is_no()));
    }
}

/// The guards agree with the reader: a lease with NULL for its owner is taken as read, and only once.
#[test]
fn a_lease_whose_owner_is_null_is_taken_once() {
    let before = item(with(json!({"leaseOwner": {"NULL": true}, "checkpointOwner": {"NULL": true}})));
    let take = |to: &str| {
        let (counter, owner) = (42, None);
        Kcl.encode(&take_of(&LeaseRow { counter, owner, ..steady_row() }, 43, to))
    };
    let mut table = Some(before.clone());
    take("w2").carry_out(&mut table).unwrap();
    assert!(take("w3").carry_out(&mut table).is_err());
    let taken = lease_of(table.as_ref());
    assert_eq!((taken.owner, taken.handing_over), (Some("w2".into()), None));
    // The former owner finds out.
    let mut table = Some(before);
    let guard = Guard { counter: 42, next: 43, holder: "w1".into(), next_owner: None };
    let renew = Change::Renew { key: "shardId-000000000001".into(), guard, began: None };
    assert!(Kcl.encode(&renew).carry_out(&mut table).is_err());
    // An owner renews a row with NULL for its old owner.
    let mut table = Some(item(with(json!({"checkpointOwner": {"NULL": true}}))));
    Kcl.encode(&renew).carry_out(&mut table).unwrap();
    assert_eq!(lease_of(table.as_ref()).counter, 43);
}

/// The hash keys are filled in wherever they are not read.
#[test]
fn hash_keys_that_are_not_read_are_filled_in() {
    let fill = Kcl.encode(&Change::SetRange {
        key: "shardId-000000000001".into(),
        was: None,
        range: HashRange::ALL,
    });
    for (name, value) in [
        ("startingHashKey", json!({"NULL": true})),
        ("endingHashKey", json!({"N": "7"})),
        ("startingHashKey", json!({"S": ""})),
        ("endingHashKey", json!(null)),
    ] {
        let mut table = Some(item(with(json!({name: value}))));
        assert_eq!(lease_of(table.as_ref()).range, None, "{name}: {value}");
        fill.carry_out(&mut table).unwrap();
        assert_eq!(lease_of(table.as_ref()).range, Some(HashRange::ALL), "{name}: {value}");
    }
    let mut whole = Some(item(steady()));
    assert!(fill.carry_out(&mut whole).is_err(), "the row has hash keys");
}

fn lease_of(item: Option<&Item>) -> LeaseRow {
    match Kcl.decode(item.unwrap()) {
        RowRead::Lease(row) => row,
        other => panic!("{other:?}"),
    }
}
