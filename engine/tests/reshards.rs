//! Behaviour of fleets when shards are split and merged.

use crate::rig::{Rig, Trick};
use leasehold_engine::config::ReaderConfig;
use leasehold_engine::input::*;
use leasehold_engine::output::*;
use leasehold_engine::position::Checkpoint;
use leasehold_engine::testkit;

#[test]
fn a_split_and_a_merge_are_read_through_in_order() {
    let mut rig = Rig::new(2, 2);
    rig.put(0, 50);
    rig.put(1, 50);
    rig.secs(60);
    rig.put(0, 5);
    let (a, b) = rig.split(0);
    rig.put(a, 20);
    rig.put(b, 20);
    rig.secs(60);
    rig.put(b, 3);
    let merged = rig.merge(b, 1);
    rig.put(merged, 30);
    rig.secs(90);
    rig.assert_all_processed();
    assert_eq!(rig.duplicates(), 0);
    for ended in [0, 1, b] {
        assert_eq!(rig.row(ended).checkpoint, Checkpoint::ShardEnd);
    }
    assert_eq!(rig.row(merged).parents, vec![Rig::id(1), Rig::id(b)]);
    // Finished leases whose children have begun are removed, the oldest generation first.
    rig.put(a, 1);
    rig.put(merged, 1);
    rig.secs(2400);
    for ended in [0, 1, b] {
        assert!(!rig.has_row(ended), "lease {ended} is still there: {:?}", rig.row(ended));
    }
    rig.assert_all_processed();
}

#[test]
fn a_lost_child_lease_is_found_by_the_audit_and_created() {
    let mut rig = Rig::new(1, 1);
    rig.put(0, 10);
    rig.secs(20);
    let (a, b) = rig.split(0);
    rig.put(a, 5);
    rig.put(b, 5);
    rig.secs(20);
    let key = Rig::id(a).to_lease();
    rig.workers[0].alive = false;
    rig.table.rows.as_mut().unwrap().remove(&key);
    rig.join();
    rig.secs(200);
    assert!(rig.has_row(a));
    rig.assert_all_processed();
}

#[test]
fn unnamed_children_are_found_before_the_end_is_written() {
    let mut rig = Rig::new(1, 1);
    rig.put(0, 10);
    rig.secs(20);
    let (a, b) = rig.split(0);
    rig.workers[0].trap = Some(Box::new(|effect| {
        let last = Fetched { end: Some(Vec::new()), ..testkit::no_records(0) };
        matches!(effect, Effect::Stream(StreamOp::GetRecords { shard, .. }) if *shard == Rig::id(0))
            .then(|| Trick::Instead(Outcome::Applied(Reply::Records(last))))
    }));
    rig.secs(30);
    assert!(rig.row(0).checkpoint.is_end());
    assert_eq!(rig.row(0).children, vec![Rig::id(a), Rig::id(b)]);
    assert!(rig.has_row(a) && rig.has_row(b));
}

#[test]
fn a_merged_child_is_not_created_before_its_other_parent_is() {
    // 0 splits into 2 and 3, then 3 merges with 1 into 4. Shard 1 ends long before 0 does, when 3 has no lease yet.
    let mut rig = Rig::new(2, 1);
    rig.configure(|config| config.with_reader(ReaderConfig::default().with_max_records(10)));
    rig.workers.clear();
    rig.join();
    rig.put(0, 400);
    rig.put(1, 1);
    let (a, b) = rig.split(0);
    rig.put(a, 5);
    rig.put(b, 5);
    let merged = rig.merge(b, 1);
    rig.put(merged, 5);
    rig.secs(8);
    assert!(!rig.has_row(merged), "the child would start before its parent {b}");
    assert!(!rig.row(1).checkpoint.is_end());
    rig.secs(120);
    rig.assert_all_processed();
    let opened = |n: u32| {
        let key = Rig::id(n).to_lease();
        let calls = &rig.workers[0].calls;
        calls
            .iter()
            .position(|(_, op)| matches!(op, ConsumerOp::Open { lease, .. } if *lease == key))
            .unwrap()
    };
    assert!(opened(merged) > opened(b));
}
