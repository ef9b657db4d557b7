//! Behaviour of fleets when shards are split and merged.

use crate::rig::*;
use leasehold_engine::config::ReaderConfig;
use leasehold_engine::output::*;
use leasehold_engine::position::Checkpoint;

#[test]
fn a_split_and_a_merge_are_read_through_in_order() {
    let mut rig = Rig::new(2, 2).with_records(0..2, 50).after(60).with_records([0], 5);
    let (a, b) = rig.split(0);
    rig.put_all([a, b], 20);
    rig.secs(60);
    rig.put(b, 3);
    let merged = rig.merge(b, 1);
    rig.put(merged, 30);
    rig.assert_all_processed_in(90);
    assert_eq!(rig.duplicates(), 0);
    for ended in [0, 1, b] {
        assert_eq!(rig.row(ended).checkpoint, Checkpoint::ShardEnd);
    }
    assert_eq!(rig.row(merged).parents, vec![shard_id(1), shard_id(b)]);
    // Finished leases whose children have begun are removed, the oldest generation first.
    rig.put_all([a, merged], 1);
    rig.secs(2400);
    for ended in [0, 1, b] {
        assert!(!rig.has_row(ended), "lease {ended} is still there: {:?}", rig.row(ended));
    }
    rig.assert_all_processed();
}

#[test]
fn a_lost_child_lease_is_found_by_the_audit_and_created() {
    let mut rig = Rig::new(1, 1).with_records([0], 10).after(20);
    let (a, b) = rig.split(0);
    rig.put_all([a, b], 5);
    rig.secs(20);
    rig[0].die();
    rig.rows_mut().remove(&shard_id(a).to_lease());
    rig.join_then(200);
    assert!(rig.has_row(a));
    rig.assert_all_processed();
}

#[test]
fn a_merged_child_is_not_created_before_its_other_parent_is() {
    // 0 splits into 2 and 3, then 3 merges with 1 into 4. Shard 1 ends long before 0 does, when 3 has no lease yet.
    let reader = ReaderConfig::default().with_max_records(10);
    let mut rig =
        Rig::of(2, 1, |config| config.with_reader(reader)).with_records([0], 400).with_records([1], 1);
    let (a, b) = rig.split(0);
    rig.put_all([a, b], 5);
    let merged = rig.merge(b, 1);
    rig.put(merged, 5);
    rig.secs(8);
    assert!(!rig.has_row(merged), "the child would start before its parent {b}");
    assert!(!rig.row(1).checkpoint.is_end());
    rig.assert_all_processed_in(120);
    let opens: Vec<&Effect> = rig[0].commands(OPEN).map(|(_, open)| open).collect();
    let place = |n| opens.iter().position(|open| OPEN.of(n).is(*open)).unwrap();
    assert!(place(merged) > place(b));
}
