//! Both formats of this kind: rows written by their own programs, and rows written by our workers.

use super::super::Format;
use super::super::tests::checkpoints;
use super::*;
use crate::began;
use crate::ids::{LeaseKey, ShardId, WorkerId};
use crate::position::{Checkpoint, Position};
use crate::row::{Guard, HandsOver, LeaseRow};
use crate::shard::{HashKey, HashRange};
use crate::stream_identity::StreamIdentity;
use crate::table::{holds, render};
use crate::testkit::{at, item_of, take_of};
use crate::time::Wall;
use proptest::prelude::*;

const NOON: u64 = 1_700_000_000_000_000_001;
const LATER: u64 = 1_700_000_010_500_000_001;

fn key() -> LeaseKey {
    "shardId-000000000001".into()
}

fn item(attributes: &[(&'static str, &str)]) -> Item {
    let mut item: Item =
        attributes.iter().map(|(name, text)| ((*name).into(), AttributeValue::s(*text))).collect();
    item.insert("ShardID".into(), AttributeValue::s(key()));
    item
}

fn row(item: &Item) -> LeaseRow {
    match Format::VmwareGoKcl.decode(item) {
        RowRead::Lease(row) => row,
        other => panic!("{other:?}"),
    }
}

/// The rows left behind by the format's own workers, and their meaning.
#[test]
fn rows_of_its_workers() {
    let never = row(&item(&[("AssignedTo", "a"), ("LeaseTimeout", "2023-11-14T22:13:20Z")]));
    assert_eq!(never.owner, Some("a".into()));
    assert_eq!(never.counter, 1_700_000_000_000_000_000);
    assert_eq!(never.checkpoint, Checkpoint::TrimHorizon, "nothing may be lost");
    let released = row(&item(&[("LeaseTimeout", "2023-11-14T22:13:20.5Z"), ("Checkpoint", "77")]));
    assert_eq!((released.owner, released.checkpoint), (None, at(77)));
    let child = row(&item(&[("ParentShardId", "p"), ("Checkpoint", "SHARD_END")]));
    assert_eq!((child.parents, child.counter), (vec!["p".into()], 0));
    assert!(child.checkpoint.is_end());
    let claimed = row(&item(&[("AssignedTo", "a"), ("ClaimRequest", "b"), ("Checkpoint", "")]));
    assert_eq!(claimed.owner, Some("b".into()));
    assert_eq!(claimed.handing_over, Some("a".into()));
    let waits = row(&item(&[("ClaimRequest", "b"), ("Checkpoint", "5")]));
    assert_eq!((waits.owner, waits.handing_over), (Some("b".into()), None));
    // A checkpoint after a release leaves an empty owner behind; other workers get this lease only by expiry.
    assert_eq!(row(&item(&[("AssignedTo", "")])).owner, Some("".into()));
}

/// Rows as kcl-rb leaves them, with null values.
#[test]
fn rows_of_ruby() {
    let item = |attributes: &[(&'static str, AttributeValue)]| -> Item {
        let key = [("shard_id", AttributeValue::s(key()))];
        let all = attributes.iter().chain(&key);
        all.map(|(name, value)| ((*name).into(), value.clone())).collect()
    };
    let read = |item: &Item| match Format::KclRb.decode(item) {
        RowRead::Lease(row) => row,
        other => panic!("{other:?}"),
    };
    let leased = item(&[
        ("assigned_to", AttributeValue::s("a")),
        ("lease_timeout", AttributeValue::s("2023-11-14 22:13:20 UTC")),
        ("checkpoint", AttributeValue::Null),
    ]);
    let row = read(&leased);
    assert_eq!((row.owner.clone(), row.checkpoint), (Some("a".into()), Checkpoint::TrimHorizon));
    assert_eq!(row.counter, 1_700_000_000_000_000_000);
    let poison = item(&[("assigned_to", AttributeValue::Null), ("lease_timeout", AttributeValue::s(""))]);
    assert_eq!((read(&poison).owner, read(&poison).counter), (None, 0));
    // Both rows can be taken as read, and cannot be taken after a change.
    for mut before in [leased, poison].map(Some) {
        let row = before.as_ref().map(read).unwrap();
        let write = Format::KclRb.encode(&take_of(&row, NOON + 5, "me"));
        write.carry_out(&mut before).unwrap();
        assert_eq!(read(before.as_ref().unwrap()).counter, NOON + 5);
        assert!(write.carry_out(&mut before).is_err());
    }
}

#[test]
fn an_item_that_is_no_row_tells_the_expectation() {
    for (name, value, expected) in [
        ("LeaseTimeout", AttributeValue::s("yesterday"), "LeaseTimeout: expected a time"),
        ("AssignedTo", AttributeValue::n(1), "AssignedTo: expected a string, found the number 1"),
        ("Checkpoint", AttributeValue::s("TRIM_HORIZON"), "Checkpoint: expected a sequence number"),
    ] {
        let mut item = item(&[]);
        item.insert(name.into(), value);
        match Format::VmwareGoKcl.decode(&item) {
            RowRead::Unreadable { detail, .. } => assert!(detail.starts_with(expected), "{detail}"),
            other => panic!("{other:?}"),
        }
    }
    let of_kcl = Item::from([("leaseKey".into(), AttributeValue::s("a"))]);
    assert!(matches!(Format::VmwareGoKcl.decode(&of_kcl), RowRead::Unreadable { .. }));
}

fn told(change: &Change) -> String {
    let rendered = render(&Format::VmwareGoKcl.encode(change));
    let mut text = format!("{} IF {}", rendered.update.unwrap_or_default(), rendered.condition);
    for (placeholder, name) in rendered.names.iter().rev() {
        text = text.replace(placeholder, name);
    }
    for (placeholder, value) in rendered.values.iter().rev() {
        text = text.replace(placeholder, value.as_s().unwrap_or("?"));
    }
    text
}

#[test]
fn changes_in_words() {
    let guard = |next_owner: Option<&str>| Guard {
        counter: NOON,
        next: LATER,
        holder: "w1".into(),
        next_owner: next_owner.map(WorkerId::from),
    };
    let (noon, later) = ("2023-11-14T22:13:20.000000001Z", "2023-11-14T22:13:30.500000001Z");
    let held = format!(
        "IF LeaseTimeout = {noon} AND AssignedTo = w1 AND (attribute_not_exists(ClaimRequest) OR ClaimRequest =  OR ClaimRequest = ?)"
    );
    let claimed = format!("IF LeaseTimeout = {noon} AND AssignedTo = w1 AND ClaimRequest = w2");
    let take = |from: Option<&str>, checkpoint| {
        let (counter, owner) = (if from.is_some() { NOON } else { 0 }, from.map(WorkerId::from));
        take_of(&LeaseRow { counter, owner, ..LeaseRow::new(key(), checkpoint) }, LATER, "w2")
    };
    for (change, expected) in [
        (
            Change::Renew { key: key(), guard: guard(None), began: None },
            format!("SET LeaseTimeout = {later} {held}"),
        ),
        (
            Change::Renew { key: key(), guard: guard(None), began: Some(Wall(7)) },
            format!("SET LeaseTimeout = {later}, LeaseholdBegan = ? {held}"),
        ),
        (
            Change::Checkpoint { key: key(), guard: guard(Some("w2")), position: Position::of(7.into()) },
            format!(
                "SET LeaseTimeout = {later}, Checkpoint = 7 REMOVE LeaseholdBegan, LeaseholdStart, LeaseholdSubSequence {claimed}"
            ),
        ),
        (
            Change::HandOver { key: key(), guard: guard(Some("w2")) },
            format!("SET LeaseTimeout = {later} REMOVE AssignedTo {claimed}"),
        ),
        (
            Change::End { key: key(), guard: guard(None), children: vec![], last: None },
            format!(
                "SET LeaseTimeout = {later}, Checkpoint = SHARD_END REMOVE LeaseholdStart, LeaseholdBegan, LeaseholdSubSequence, \
                 AssignedTo, ClaimRequest {held}"
            ),
        ),
        (
            take(None, Checkpoint::Latest),
            format!(
                "SET LeaseTimeout = {later}, AssignedTo = w2, Checkpoint =  REMOVE ClaimRequest IF attribute_exists(ShardID) AND (attribute_not_exists(LeaseTimeout) OR LeaseTimeout =  OR LeaseTimeout = ?) \
                 AND ((attribute_not_exists(AssignedTo) OR AssignedTo = ?) AND (attribute_not_exists(ClaimRequest) OR ClaimRequest =  OR ClaimRequest = ?)) \
                 AND (attribute_not_exists(Checkpoint) OR Checkpoint =  OR Checkpoint = ?)"
            ),
        ),
        (
            take(Some("w1"), at(7)),
            format!(
                "SET LeaseTimeout = {later}, AssignedTo = w2 REMOVE ClaimRequest, LeaseholdBegan IF attribute_exists(ShardID) AND LeaseTimeout = {noon} \
                 AND (ClaimRequest = w1 OR (AssignedTo = w1 AND (attribute_not_exists(ClaimRequest) OR ClaimRequest =  OR ClaimRequest = ?))) AND Checkpoint = 7"
            ),
        ),
        (
            Change::Claim {
                key: key(),
                counter: NOON,
                from: "w1".into(),
                checkpoint: Checkpoint::TrimHorizon,
                by: "w2".into(),
            },
            format!(
                "SET ClaimRequest = w2, Checkpoint =  {held} AND (attribute_not_exists(Checkpoint) OR Checkpoint =  OR Checkpoint = ?)"
            ),
        ),
        (
            Change::Delete { key: key(), counter: NOON },
            format!(" IF LeaseTimeout = {noon} AND Checkpoint = SHARD_END"),
        ),
    ] {
        assert_eq!(told(&change), expected);
    }
}

fn formats() -> impl Strategy<Value = Format> {
    prop::sample::select(vec![Format::VmwareGoKcl, Format::KclRb])
}

fn workers() -> impl Strategy<Value = WorkerId> {
    prop::sample::select(vec!["w1", "w2", "w3"]).prop_map(WorkerId::from)
}

fn ids() -> impl Strategy<Value = Vec<ShardId>> {
    let ids = prop::collection::btree_set("[a-z]{1,3}", 0..3);
    ids.prop_map(|ids| ids.into_iter().map(ShardId::from).collect())
}

fn counters() -> impl Strategy<Value = u64> {
    prop_oneof![Just(0), Just(NOON), Just(LATER)]
}

fn streams() -> impl Strategy<Value = Option<StreamIdentity>> {
    let names = ["", "arn:aws:kinesis:eu-west-1:1:stream/orders", "returns"];
    prop::sample::select(names.to_vec()).prop_map(|name| StreamIdentity::new(name, Wall(1_700_000_000_000)))
}

prop_compose! {
    fn rows()(
        owner in prop::option::of(workers()),
        handing in prop::option::of(workers()),
        counter in counters(),
        checkpoint in checkpoints(3, 2),
        parents in ids(),
        children in ids(),
        start in prop::option::of(any::<u128>()),
        began in prop::option::of((0i64..3).prop_map(Wall)),
        stream in streams(),
    ) -> LeaseRow {
        // Only what has an owner to come is handed over, and not to itself.
        let handing_over = handing.filter(|from| owner.as_ref().is_some_and(|to| to != from));
        let range = start.map(|start| HashRange { start: HashKey(start), end: HashKey::MAX });
        LeaseRow { key: key(), owner, handing_over, counter, switches: 0, checkpoint, parents, children, range, hands_over: HandsOver::No, throughput: None, began, stream }
    }
}

proptest! {
    #[test]
    fn a_created_row_reads_as_itself(row in rows(), format in formats()) {
        prop_assert_eq!(format.decode(&item_of(&format, &row)), RowRead::Lease(row));
    }

    /// A take of the row as read succeeds, and a take of any changed row fails.
    #[test]
    fn a_take_is_of_the_row_as_read(before in rows(), now in rows(), ours in streams(), format in formats()) {
        let mut table = Some(item_of(&format, &now));
        let take = Change::Take {
            key: key(),
            counter: before.counter,
            next: LATER + 1,
            from: before.owner.clone(),
            checkpoint: before.checkpoint,
            to: "me".into(),
            began: None,
            named: before.stream.clone(),
            stream: ours.clone(),
        };
        let write = format.encode(&take);
        let place = |checkpoint: Checkpoint| checkpoint.position().map(|position| position.sequence);
        let same = before.owner == now.owner
            && before.counter == now.counter
            && (before.stream.is_none() || before.stream == now.stream)
            && place(before.checkpoint) == place(now.checkpoint)
            && before.checkpoint.is_end() == now.checkpoint.is_end();
        prop_assert_eq!(holds(&write.condition, table.as_ref()), same);
        if same {
            write.carry_out(&mut table).unwrap();
            let began = now.began.filter(|_| began::is_of(before.checkpoint));
            let stream = ours.or(now.stream.clone());
            let expected = LeaseRow { owner: Some("me".into()), handing_over: None, counter: LATER + 1, began, stream, ..now };
            prop_assert_eq!(format.decode(&table.unwrap()), RowRead::Lease(expected));
        }
    }

    /// The format's workers write whole items. An attribute of ours dropped by a worker is missed, not misread.
    #[test]
    fn a_dropped_outcome_is_missed(row in rows()) {
        let mut item = item_of(&Format::VmwareGoKcl, &row);
        item.retain(|name, _| !name.starts_with("Leasehold"));
        let checkpoint = match row.checkpoint {
            Checkpoint::At(position) => Checkpoint::At(Position::of(position.sequence)),
            Checkpoint::ShardEnd => Checkpoint::ShardEnd,
            _ => Checkpoint::TrimHorizon,
        };
        let parents = row.parents.first().cloned().into_iter().collect();
        let expected = LeaseRow { checkpoint, parents, children: vec![], range: None, began: None, stream: None, ..row };
        prop_assert_eq!(Format::VmwareGoKcl.decode(&item), RowRead::Lease(expected));
    }

    /// Whatever is in a table gets an answer.
    #[test]
    fn any_item_is_read(names in prop::collection::vec(prop::sample::select(vec![
        "ShardID", "AssignedTo", "LeaseTimeout", "Checkpoint", "ParentShardId", "ClaimRequest", "LeaseholdStart", "x",
        "shard_id", "assigned_to", "lease_timeout", "checkpoint", "leasehold_deadline",
    ]), 0..8), texts in prop::collection::vec("\\PC{0,30}", 8), numbers in any::<u8>(), format in formats()) {
        let item: Item = names.into_iter().zip(texts).enumerate().map(|(at, (name, text))| {
            let value = if numbers >> at & 1 == 1 { AttributeValue::n(at) } else { AttributeValue::s(text) };
            (name.into(), value)
        }).collect();
        let _ = format.decode(&item);
    }
}
