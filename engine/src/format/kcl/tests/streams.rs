//! Rows of an application that reads several streams.

use super::writes::{key, told};
use super::*;
use crate::ids::{ShardId, WorkerId};
use crate::position::{Checkpoint, Position};
use crate::row::{Guard, LeaseRow, Renaming};
use crate::stream_identity::StreamIdentity;
use crate::testkit::item_of;
use crate::time::Wall;
use proptest::prelude::*;

const STREAM: &str = "123456789012:orders:1700000000";

fn named(shard: &str) -> String {
    format!("{STREAM}:{shard}")
}

fn guard() -> Guard {
    Guard { counter: 42, next: 43, holder: "w1".into(), next_owner: None }
}

/// As KCL's serializer for several streams writes it.
#[test]
fn a_new_row_names_its_stream_and_relatives_by_ids_alone() {
    let mut row = LeaseRow::new(named("shardId-000000000004").into(), Checkpoint::TrimHorizon);
    row.parents =
        ["shardId-000000000002", "shardId-000000000003"].map(|id| ShardId::from(named(id))).to_vec();
    let item = item_of(&Kcl, &row);
    let text = |name: &str| item.get(name).and_then(AttributeValue::as_s);
    assert_eq!(text("leaseKey"), Some(named("shardId-000000000004").as_str()));
    assert_eq!(text("streamName"), Some(STREAM));
    assert_eq!(text("shardId"), Some("shardId-000000000004"));
    let parents = ["shardId-000000000002", "shardId-000000000003"].map(String::from);
    assert_eq!(item["parentShardId"], AttributeValue::Ss(parents.into()));
    assert_eq!(Kcl.decode(&item), RowRead::Lease(row));
}

#[test]
fn progress_names_the_stream_and_children_as_kcl_does() {
    let key = LeaseKey::from(named("shardId-000000000001"));
    let names = format!("streamName = '{STREAM}', shardId = 'shardId-000000000001'");
    let checkpoint =
        Change::Checkpoint { key: key.clone(), guard: guard(), position: Position::of(77.into()) };
    assert!(told(&checkpoint).contains(&names), "{}", told(&checkpoint));
    let end = Change::End {
        key: key.clone(),
        guard: guard(),
        children: vec![named("shardId-000000000004").into()],
        last: None,
    };
    let told_end = told(&end);
    assert!(told_end.contains(&names), "{told_end}");
    assert!(told_end.contains(r#"childShardIds = Ss({"shardId-000000000004"})"#), "{told_end}");
    // A renewal leaves both attributes alone.
    let renewal = told(&Change::Renew { key, guard: guard(), began: None });
    assert!(!renewal.contains("streamName"), "{renewal}");
}

/// The key names the lease, whatever the attributes say: KCL finds rows by their keys.
#[test]
fn a_row_that_lacks_its_names_is_read_by_its_key() {
    let row = LeaseRow::new(named("shardId-000000000004").into(), Checkpoint::Latest);
    let mut item = item_of(&Kcl, &row);
    item.remove("streamName");
    item.remove("shardId");
    assert_eq!(Kcl.decode(&item), RowRead::Lease(row));
}

/// Whether a row is the row to forget.
pub(super) fn forgets(row: &LeaseRow, change: &Change) -> bool {
    let Change::Forget { counter, owner, handing_over, .. } = change else {
        return false;
    };
    row.counter == *counter && row.owner == *owner && row.handing_over == *handing_over
}

/// Streams that a row may name.
pub(super) fn identities() -> impl Strategy<Value = Option<StreamIdentity>> {
    let names = ["", "arn:aws:kinesis:eu-west-1:1:stream/orders", "returns"];
    prop::sample::select(names.to_vec()).prop_map(|name| StreamIdentity::new(name, Wall(1_700_000_000_000)))
}

/// Takes of rows as a worker may have read them.
pub(super) fn takes(
    rows: impl Strategy<Value = LeaseRow>, workers: impl Strategy<Value = WorkerId>,
    moments: impl Strategy<Value = Option<Wall>>,
) -> impl Strategy<Value = Change> {
    let parts = (rows, 0u64..4, workers, moments, identities());
    parts.prop_map(|(row, counter, to, began, stream)| Change::Take {
        key: key(),
        counter,
        next: counter + 1,
        from: row.owner,
        checkpoint: Checkpoint::Latest,
        to,
        began,
        named: row.stream,
        stream,
    })
}

/// Whether the guard of a take holds.
pub(super) fn is_taken(row: &LeaseRow, change: &Change) -> bool {
    let Change::Take { counter, from, checkpoint, named, .. } = change else {
        return false;
    };
    let still = named.is_none() || row.stream == *named;
    let bare = *counter == 0 && from.is_none();
    let there = !bare || matches!(checkpoint, Checkpoint::At(_)) || row.checkpoint == *checkpoint;
    row.counter == *counter && row.owner == *from && still && there
}

/// A change of the stream named in one of these rows.
pub(super) fn renamings(rows: impl Strategy<Value = LeaseRow>) -> impl Strategy<Value = Change> {
    (rows, identities(), identities()).prop_filter_map("both are streams", |(row, named, stream)| {
        Some(Change::Name(Box::new(Renaming {
            key: key(),
            counter: row.counter,
            checkpoint: row.checkpoint,
            named: named?,
            stream: stream?,
        })))
    })
}

/// The row with the new name, if the row is unchanged since the read.
pub(super) fn renamed(mut row: LeaseRow, renaming: &Renaming) -> Option<LeaseRow> {
    let as_read = row.counter == renaming.counter && row.checkpoint == renaming.checkpoint;
    let named = row.stream.replace(renaming.stream.clone());
    (as_read && named.as_ref() == Some(&renaming.named)).then_some(row)
}
