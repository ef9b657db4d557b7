//! Rows of an application that reads several streams.

use super::writes::told;
use super::*;
use crate::ids::ShardId;
use crate::position::{Checkpoint, Position};
use crate::row::{Guard, LeaseRow};

const STREAM: &str = "123456789012:orders:1700000000";

fn named(shard: &str) -> String {
    format!("{STREAM}:{shard}")
}

fn guard() -> Guard {
    Guard {
        counter: 42,
        next: 43,
        holder: "w1".into(),
        next_owner: None,
    }
}

/// As KCL's serializer for several streams writes it.
#[test]
fn a_new_row_names_its_stream_and_its_relatives_by_their_ids_alone() {
    let mut row = LeaseRow::new(named("shardId-000000000004").into(), Checkpoint::TrimHorizon);
    row.parents = ["shardId-000000000002", "shardId-000000000003"]
        .map(|id| ShardId::from(named(id)))
        .to_vec();
    let write = Kcl.encode(&Change::Create(Box::new(row.clone())));
    let mut item = None;
    write.carry_out(&mut item).unwrap();
    let item = item.unwrap();
    let text = |name: &str| item.get(name).and_then(AttributeValue::as_s);
    assert_eq!(text("leaseKey"), Some(named("shardId-000000000004").as_str()));
    assert_eq!(text("streamName"), Some(STREAM));
    assert_eq!(text("shardId"), Some("shardId-000000000004"));
    let parents = ["shardId-000000000002", "shardId-000000000003"].map(String::from);
    assert_eq!(item["parentShardId"], AttributeValue::Ss(parents.into()));
    assert_eq!(Kcl.decode(&item), RowRead::Lease(row));
}

#[test]
fn progress_names_the_stream_as_kcl_does_and_children_by_their_ids_alone() {
    let key = LeaseKey::from(named("shardId-000000000001"));
    let names = format!("streamName = '{STREAM}', shardId = 'shardId-000000000001'");
    let checkpoint = Change::Checkpoint {
        key: key.clone(),
        guard: guard(),
        position: Position::of(77.into()),
    };
    assert!(told(&checkpoint).contains(&names), "{}", told(&checkpoint));
    let end = Change::End {
        key: key.clone(),
        guard: guard(),
        children: vec![named("shardId-000000000004").into()],
        last: None,
    };
    let told_end = told(&end);
    assert!(told_end.contains(&names), "{told_end}");
    assert!(
        told_end.contains(r#"childShardIds = Ss({"shardId-000000000004"})"#),
        "{told_end}"
    );
    // A renewal leaves them alone.
    let renewal = told(&Change::Renew {
        key,
        guard: guard(),
        began: None,
    });
    assert!(!renewal.contains("streamName"), "{renewal}");
}

/// Whatever attributes say, the key is what names a lease: KCL finds rows by it.
#[test]
fn a_row_that_lacks_its_names_is_read_by_its_key() {
    let row = LeaseRow::new(named("shardId-000000000004").into(), Checkpoint::Latest);
    let mut item = None;
    let write = Kcl.encode(&Change::Create(Box::new(row.clone())));
    write.carry_out(&mut item).unwrap();
    let mut item = item.unwrap();
    item.remove("streamName");
    item.remove("shardId");
    assert_eq!(Kcl.decode(&item), RowRead::Lease(row));
}

/// Whether a row is the one that is to be forgotten.
pub(super) fn forgets(row: &LeaseRow, change: &Change) -> bool {
    let Change::Forget {
        counter,
        owner,
        handing_over,
        ..
    } = change
    else {
        return false;
    };
    row.counter == *counter && row.owner == *owner && row.handing_over == *handing_over
}
