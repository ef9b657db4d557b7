//! The limits shared by the reads of all shards of a worker: the memory for records, and the number of reads at a time.

use crate::rig::{Rig, Trick};
use leasehold_engine::input::*;
use leasehold_engine::notice::{Notice, Stall};
use leasehold_engine::output::*;
use leasehold_engine::time::Span;

fn is_read(effect: &Effect) -> bool {
    matches!(effect, Effect::Stream(StreamOp::GetRecords { .. } | StreamOp::GetIterator { .. }))
}

/// A worker with these limits for bytes in memory and for reads under way; the scene decides when a read is answered.
fn hung(shards: u32, bytes: u64, reads: u32) -> Rig {
    let mut rig = Rig::new(shards, 0);
    rig.configure(|config| config.with_memory_budget(bytes).with_max_reads(reads));
    for shard in 0..shards {
        rig.put(shard, 30);
    }
    rig.join_trapped(Some(Box::new(|effect| is_read(effect).then_some(Trick::Hang))));
    rig.secs(30);
    rig
}

/// The shards whose reads are under way.
fn under_way(rig: &Rig) -> Vec<String> {
    let hung = rig.workers[0].hung.iter();
    let shards = hung.filter_map(|command| match &command.effect {
        Effect::Stream(StreamOp::GetRecords { shard, .. } | StreamOp::GetIterator { shard, .. }) => {
            Some(shard.as_str().to_owned())
        }
        _ => None,
    });
    shards.collect()
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
    let all: Vec<String> = (0..5).map(|n| Rig::id(n).as_str().to_owned()).collect();
    assert_eq!(turns[..5], all, "an iterator for each, before any has a second read");
    rig.workers[0].trap = None;
    rig.release(0);
    rig.secs(60);
    rig.assert_all_processed();
}

#[test]
fn reads_of_unknown_size_share_the_memory() {
    let mut rig = hung(5, 5 << 20, 128);
    assert_eq!(under_way(&rig).len(), 5, "an iterator has no size");
    rig.release(0);
    rig.secs(1);
    assert_eq!(under_way(&rig).len(), 3, "a record may have 1 MiB, and a third more on its way");
    let stalls = |rig: &Rig| -> usize {
        let mut notices = rig.workers[0].notices.iter();
        let waits = |notice: &Notice| matches!(notice, Notice::Stalled { why: Stall::WaitsToRead, .. });
        notices.by_ref().filter(|(_, notice)| waits(notice)).count()
    };
    assert_eq!(stalls(&rig), 0);
    rig.secs(60);
    assert_eq!(stalls(&rig), 2, "a stall names what a shard waits for");
    rig.workers[0].trap = None;
    rig.release(0);
    rig.secs(60);
    rig.assert_all_processed();
}

#[test]
fn unprocessed_records_keep_no_other_shard_from_its_records() {
    let mut rig = Rig::new(4, 0);
    rig.configure(|config| config.with_memory_budget(2 << 20).with_max_reads(4));
    rig.join();
    rig.secs(30);
    let stuck = Rig::id(0).to_lease();
    rig.workers[0].trap = Some(Box::new(move |effect| {
        matches!(effect, Effect::Consumer(ConsumerOp::Deliver { lease, .. }) if *lease == stuck)
            .then_some(Trick::Hang)
    }));
    for shard in 0..4 {
        rig.put(shard, 20_000);
    }
    rig.secs(60);
    let processed = |rig: &Rig, n: u32| {
        let read = rig.workers[0].reading.processed.get(&Rig::id(n));
        read.map_or(0, Vec::len)
    };
    assert_eq!([1, 2, 3].map(|n| processed(&rig, n)), [20_000; 3]);
    assert_eq!(processed(&rig, 0), 0);
    rig.workers[0].trap = None;
    rig.release(0);
    rig.secs(60);
    rig.assert_all_processed();
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
        let mut rig = Rig::new(3, 0);
        rig.configure(|config| config.with_memory_budget(2 << 20).with_max_reads(2));
        for shard in 0..3 {
            rig.put(shard, 100);
        }
        let (mut left, of) = (50, outcome.clone());
        rig.join_trapped(Some(Box::new(move |effect| {
            let hit = matches!(effect, Effect::Stream(StreamOp::GetRecords { .. })) && left > 0;
            left -= u32::from(hit);
            hit.then(|| Trick::Instead(of.clone()))
        })));
        rig.run(Span::from_secs(300));
        rig.assert_all_processed();
    }
}
