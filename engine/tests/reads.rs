//! The limits shared by the reads of all shards of a worker: the memory for records, and the number of reads at a time.

use crate::rig::*;
use leasehold_engine::input::*;
use leasehold_engine::notice::{Notice, Stall};
use leasehold_engine::time::Span;

/// A worker with these limits for bytes in memory and for reads under way; the scene decides when a read is answered.
fn hung(shards: u32, bytes: u64, reads: u32) -> Rig {
    let mut rig = Rig::of(shards, 0, |config| config.with_memory_budget(bytes).with_max_reads(reads))
        .with_records(0..shards, 30);
    rig.join_trapped(hangs(either(RECORDS, ITERATOR)));
    rig.secs(30);
    rig
}

/// The shards whose reads are under way.
fn under_way(rig: &Rig) -> Vec<String> {
    let hung = rig[0].hung.iter();
    hung.filter_map(|command| command.effect.described().1.map(str::to_owned)).collect()
}

#[test]
fn reads_under_way_are_bounded_and_each_shard_has_its_turn() {
    let mut rig = hung(5, 0, 2);
    let mut turns = Vec::new();
    for _ in 0..5 {
        let reads = under_way(&rig);
        assert_eq!(reads.len(), 2, "{reads:?}");
        turns.extend(reads);
        rig.release(0);
    }
    turns[..5].sort_unstable();
    let all: Vec<String> = (0..5).map(|n| shard_id(n).to_string()).collect();
    assert_eq!(turns[..5], all, "an iterator for each, before any has a second read");
    rig.free(0);
    rig.assert_all_processed_in(60);
}

#[test]
fn reads_of_unknown_size_share_the_memory() {
    let mut rig = hung(5, 5 << 20, 128);
    assert_eq!(under_way(&rig).len(), 5, "an iterator has no size");
    rig.release(0);
    rig.secs(1);
    assert_eq!(under_way(&rig).len(), 3, "a record may have 1 MiB, and a third more on its way");
    let waits = |notice: &Notice| matches!(notice, Notice::Stalled { why: Stall::WaitsToRead, .. });
    assert_eq!(rig[0].told(waits), 0);
    rig.secs(60);
    assert_eq!(rig[0].told(waits), 2, "a stall names what a shard waits for");
    rig.free(0);
    rig.assert_all_processed_in(60);
}

#[test]
fn unprocessed_records_keep_no_other_shard_from_its_records() {
    let mut rig = Rig::of(4, 1, |config| config.with_memory_budget(2 << 20).with_max_reads(4)).after(30);
    rig[0].trap(hangs(DELIVER.of(0)));
    rig.put_all(0..4, 20_000);
    rig.secs(60);
    let processed = |rig: &Rig, n: u32| {
        let read = rig[0].reading.processed.get(&shard_id(n));
        read.map_or(0, Vec::len)
    };
    assert_eq!([1, 2, 3].map(|n| processed(&rig, n)), [20_000; 3]);
    assert_eq!(processed(&rig, 0), 0);
    rig.free(0);
    rig.assert_all_processed_in(60);
}

/// However a read ends, it takes no memory any more.
#[test]
fn reads_that_fail_give_back_what_they_had() {
    let outcomes = [
        Outcome::Unknown(Cause::Timeout),
        Outcome::NotSent(Cause::Throttled),
        crate::rig::refused(Why::Expired, None),
    ];
    for outcome in outcomes {
        let mut rig = Rig::of(3, 0, |config| config.with_memory_budget(2 << 20).with_max_reads(2))
            .with_records(0..3, 100);
        rig.join_trapped(first(50, RECORDS, Trick::Instead(outcome)));
        rig.run(Span::from_secs(300));
        rig.assert_all_processed();
    }
}
