//! Changes as expressions, and carried out.

use super::after::after;
use super::*;
use crate::ids::{ShardId, WorkerId};
use crate::position::SequenceNumber;
use crate::row::{Guard, HandsOver};
use crate::table::{WriteError, render};
use crate::testkit::{item_of, reset_of, take_of};
use crate::time::Wall;
use proptest::prelude::*;
use std::collections::BTreeSet;

fn guard() -> Guard {
    Guard { counter: 42, next: 43, holder: "w1".into(), next_owner: None }
}

fn handing() -> Guard {
    Guard { next_owner: Some("w2".into()), ..guard() }
}

pub(super) fn key() -> LeaseKey {
    "shardId-000000000001".into()
}

/// The expressions of a change, readable with their names and values put back in.
pub(super) fn told(change: &Change) -> String {
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
            AttributeValue::N(number) => number.to_string(),
            other => format!("{other:?}"),
        };
        text = text.replace(placeholder, &value);
    }
    text
}

/// A person removes the owner of a lease in a hand-over, or a worker of KCL 2 takes the lease: the name of the old
/// owner stays in the row.
#[test]
fn a_reset_minds_no_name_that_a_hand_over_has_left() {
    let left = json!({"checkpointOwner": {"S": "w0"}, "leaseholdNextOwner": {"S": "w2"}});
    for owner in [json!(null), json!({"S": "w1"})] {
        let mut row = left.clone();
        row["leaseOwner"] = owner;
        let mut found = Some(item(with(row)));
        let seen = Kcl.decode(found.as_ref().unwrap());
        let RowRead::Lease(seen) = seen else { panic!("{seen:?}") };
        assert_eq!(seen.handing_over, None);
        let reset = reset_of(&seen, seen.counter + 1, Checkpoint::TrimHorizon);
        Kcl.encode(&reset).carry_out(&mut found).unwrap();
        let RowRead::Lease(row) = Kcl.decode(found.as_ref().unwrap()) else { panic!("{found:?}") };
        assert_eq!((row.owner, row.handing_over), (None, None));
    }
}

#[test]
fn every_change_in_words() {
    let held = "IF leaseCounter = 42 AND leaseOwner = 'w1' AND NOT attribute_type(checkpointOwner, 'S')";
    let handed = "IF leaseCounter = 42 AND leaseOwner = 'w2' AND checkpointOwner = 'w1'";
    let forget =
        "leaseholdBegan, pendingCheckpoint, pendingCheckpointSubSequenceNumber, pendingCheckpointState";
    let position = Position { sequence: 77.into(), sub: 3 };
    let take_at = |counter: u64, from: Option<&str>| {
        let owner = from.map(WorkerId::from);
        take_of(&LeaseRow { counter, owner, ..LeaseRow::new(key(), Checkpoint::Latest) }, counter + 1, "w2")
    };
    let take = |from| take_at(42, from);
    for (change, expected) in [
        (
            Change::Create(Box::new(steady_row())),
            "IF attribute_not_exists(leaseKey)".to_string(),
        ),
        (
            Change::Renew { key: key(), guard: guard(), began: None },
            format!("SET leaseCounter = 43 {held}"),
        ),
        (
            Change::Renew { key: key(), guard: guard(), began: Some(Wall(7)) },
            format!("SET leaseCounter = 43, leaseholdBegan = 7 {held}"),
        ),
        (
            reset_of(
                &LeaseRow { checkpoint: Checkpoint::ShardEnd, ..steady_row() },
                43,
                Checkpoint::TrimHorizon,
            ),
            format!(
                "SET leaseCounter = 43, checkpoint = 'TRIM_HORIZON', checkpointSubSequenceNumber = 0, \
                 ownerSwitchesSinceCheckpoint = 0 REMOVE {forget}, leaseOwner, checkpointOwner IF attribute_exists(leaseKey) AND \
                 leaseCounter = 42 AND leaseOwner = 'w1' AND checkpoint = 'SHARD_END'"
            ),
        ),
        (
            Change::Renew { key: key(), guard: handing(), began: None },
            format!("SET leaseCounter = 43 {handed}"),
        ),
        (
            take(Some("w1")),
            "SET leaseCounter = 43, leaseOwner = 'w2', leaseholdOwner = 'w2' REMOVE checkpointOwner, leaseholdNextOwner, throughputKBps ADD ownerSwitchesSinceCheckpoint 1 \
             IF leaseCounter = 42 AND leaseOwner = 'w1'"
                .into(),
        ),
        (
            take(Some("w2")),
            "SET leaseCounter = 43, leaseOwner = 'w2', leaseholdOwner = 'w2' REMOVE checkpointOwner, leaseholdNextOwner, throughputKBps ADD ownerSwitchesSinceCheckpoint 0 \
             IF leaseCounter = 42 AND leaseOwner = 'w2'"
                .into(),
        ),
        (
            take(None),
            "SET leaseCounter = 43, leaseOwner = 'w2', leaseholdOwner = 'w2' REMOVE checkpointOwner, leaseholdNextOwner, throughputKBps ADD ownerSwitchesSinceCheckpoint 0 \
             IF leaseCounter = 42 AND NOT attribute_type(leaseOwner, 'S')"
                .into(),
        ),
        // Zero stands for a missing counter, too; a missing row has no zero counter.
        (
            take_at(0, None),
            "SET leaseCounter = 1, leaseOwner = 'w2', leaseholdOwner = 'w2' REMOVE checkpointOwner, leaseholdNextOwner, throughputKBps ADD ownerSwitchesSinceCheckpoint 0 \
             IF attribute_exists(leaseKey) AND checkpoint = 'LATEST' AND (attribute_not_exists(leaseCounter) OR leaseCounter = 0) \
             AND NOT attribute_type(leaseOwner, 'S')"
                .into(),
        ),
        (
            take_at(0, Some("w1")),
            "SET leaseCounter = 1, leaseOwner = 'w2', leaseholdOwner = 'w2' REMOVE checkpointOwner, leaseholdNextOwner, throughputKBps ADD ownerSwitchesSinceCheckpoint 1 \
             IF (attribute_not_exists(leaseCounter) OR leaseCounter = 0) AND leaseOwner = 'w1'"
                .into(),
        ),
        (
            Change::Claim {
                key: key(),
                counter: 42,
                from: "w1".into(),
                checkpoint: Checkpoint::Latest,
                by: "w2".into(),
            },
            "SET leaseOwner = 'w2', checkpointOwner = 'w1', leaseholdNextOwner = 'w2' \
             IF leaseOwner = 'w1' AND NOT attribute_type(checkpointOwner, 'S')"
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
            Change::End { key: key(), guard: guard(), children: vec!["c".into()], last: None },
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
            Change::SetRange { key: key(), was: None, range: HashRange { start: HashKey(1), end: HashKey(2) } },
            "SET startingHashKey = '1', endingHashKey = '2' \
             IF attribute_exists(leaseKey) AND (NOT attribute_type(startingHashKey, 'S') OR startingHashKey = '' OR \
             NOT attribute_type(endingHashKey, 'S') OR endingHashKey = '')"
                .into(),
        ),
        (
            Change::SetRange {
                key: key(),
                was: Some(HashRange { start: HashKey(1), end: HashKey(3) }),
                range: HashRange { start: HashKey(1), end: HashKey(2) },
            },
            "SET startingHashKey = '1', endingHashKey = '2' \
             IF startingHashKey = '1' AND endingHashKey = '3'"
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

pub(super) fn workers() -> impl Strategy<Value = WorkerId> {
    prop::sample::select(vec!["w1", "w2", "w3"]).prop_map(WorkerId::from)
}

fn places() -> impl Strategy<Value = Position> {
    (any::<[u64; 3]>(), 0u64..5)
        .prop_map(|(words, sub)| Position { sequence: SequenceNumber::from_words(words), sub })
}

fn moments() -> impl Strategy<Value = Option<Wall>> {
    prop::option::of((0i64..3).prop_map(Wall))
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
        hands_over in prop::sample::select(vec![HandsOver::No, HandsOver::Later, HandsOver::Yes]),
        began in moments(),
        stream in super::streams::identities(),
    ) -> LeaseRow {
        let range = range.map(|(a, b)| HashRange { start: HashKey(a.min(b)), end: HashKey(a.max(b)) });
        let hands_over = match (&handing_over, &owner, hands_over) {
            // An assigned lease cannot be handed on yet, and a lease without an owner is handed over by no worker.
            (None, None, _) | (Some(_), _, HandsOver::Later) => HandsOver::No,
            (_, _, hands_over) => hands_over,
        };
        LeaseRow { key: key(), owner, handing_over, counter, switches, checkpoint, parents, children, range, hands_over, throughput: None, began, stream }
    }
}

/// A range that is filled in or corrected.
fn ranges() -> impl Strategy<Value = Change> {
    (any::<u128>(), prop::option::of(Just(HashRange::ALL))).prop_map(|(start, was)| Change::SetRange {
        key: key(),
        was,
        range: HashRange { start: HashKey(start), end: HashKey::MAX },
    })
}

fn changes() -> impl Strategy<Value = Change> {
    let guards =
        || {
            (0u64..4, workers(), prop::option::of(workers())).prop_map(|(counter, holder, next_owner)| {
                Guard { counter, next: counter + 1, holder, next_owner }
            })
        };
    prop_oneof![
        rows().prop_map(|row| Change::Create(Box::new(row))),
        (guards(), moments()).prop_map(|(guard, began)| Change::Renew { key: key(), guard, began }),
        super::streams::takes(rows(), workers(), moments()),
        (0u64..4, workers(), workers()).prop_map(|(counter, from, by)| Change::Claim {
            key: key(),
            counter,
            from,
            checkpoint: Checkpoint::Latest,
            by
        }),
        super::fleet::of_a_leader(),
        (guards(), places()).prop_map(|(guard, position)| Change::Checkpoint { key: key(), guard, position }),
        (guards(), ids()).prop_map(|(guard, children)| Change::End {
            key: key(),
            guard,
            children,
            last: None
        }),
        guards().prop_map(|guard| Change::Release { key: key(), guard }),
        guards().prop_map(|guard| Change::HandOver { key: key(), guard }),
        ranges(),
        (0u64..4).prop_map(|counter| Change::Delete { key: key(), counter }),
        super::streams::renamings(rows()),
        rows().prop_map(|row| Change::Forget {
            key: key(),
            counter: row.counter,
            owner: row.owner,
            handing_over: row.handing_over,
        }),
        (rows(), places(), any::<bool>()).prop_map(|(row, position, end)| {
            let to = if end { Checkpoint::TrimHorizon } else { Checkpoint::At(position) };
            reset_of(&row, row.counter.wrapping_add(1), to)
        }),
    ]
}

fn values() -> impl Strategy<Value = AttributeValue> {
    let leaf = prop_oneof![
        "\\PC{0,12}".prop_map(AttributeValue::s),
        "[-+0-9.eEx]{0,8}".prop_map(AttributeValue::n),
        any::<Vec<u8>>().prop_map(AttributeValue::B),
        any::<bool>().prop_map(AttributeValue::Bool),
        Just(AttributeValue::Null),
        prop::collection::btree_set("[a-z]{0,2}", 0..3).prop_map(AttributeValue::Ss),
        prop::collection::btree_set("[0-9]{0,2}", 0..3).prop_map(AttributeValue::Ns),
        prop::sample::select(vec!["LEASE", "SHARD_END", "LATEST", "1"]).prop_map(AttributeValue::s),
    ];
    leaf.prop_recursive(2, 8, 3, |inner| prop::collection::vec(inner, 0..3).prop_map(AttributeValue::L))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn a_created_row_reads_as_itself(row in rows()) {
        prop_assert_eq!(Kcl.decode(&item_of(&Kcl, &row)), RowRead::Lease(row));
    }

    #[test]
    fn changes_change_what_they_should_and_nothing_else(row in rows(), change in changes()) {
        let mut table = Some(item_of(&Kcl, &row));
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
                let throughput = match change {
                    Change::Take { .. } => None,
                    Change::Weigh { throughput, .. } => Some(throughput),
                    _ => Some(1),
                };
                let weighs = matches!(change, Change::Take { .. } | Change::Weigh { .. });
                let expected = LeaseRow { throughput, ..expected };
                prop_assert_eq!(Kcl.decode(&item), RowRead::Lease(expected));
                for (name, value) in foreign.iter().filter(|(name, _)| !weighs || *name != name::THROUGHPUT) {
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
            prop_assert_eq!(read.key().as_str(), &**key);
        } else {
            let unreadable = matches!(read, RowRead::Unreadable { .. });
            prop_assert!(unreadable);
        }
    }
}
