//! Fleets of our own workers, as processes, at the defaults except quicker reads of shards: workers join, leave and
//! crash. The test prints the cost of each move for a lease, and a planned move repeats no record.

use super::fleet::Fleet;
use leasehold_tests::history::{Cause, Handover};
use std::time::Duration;

/// Quicker reads: the measured times are then times of hand-overs.
const OPTIONS: &[&str] = &["--reader-idle-interval=200 ms", "--reader-min-interval=200 ms"];
const SHARDS: &[u32] = &[0, 1, 2];
/// A lease of 10 s, quick scans, and a busy machine.
const NOTICED: Duration = Duration::from_secs(20);

fn because(handovers: &[Handover], cause: Cause) -> impl Iterator<Item = &Handover> {
    handovers.iter().filter(move |handover| handover.cause == cause)
}

#[tokio::test(flavor = "multi_thread")]
async fn joins_and_leaves_repeat_nothing_and_a_crash_is_seen_soon() {
    let (fleet, producer) = Fleet::start("ours-hand-over").await;
    let mut anna = fleet.ours_with("anna", OPTIONS);
    fleet.until_read("anna to read all", SHARDS, &["anna"]).await;
    let mut bert = fleet.ours_with("bert", OPTIONS);
    fleet.until_read("bert to get a share", SHARDS, &["anna", "bert"]).await;
    let carl = fleet.ours_with("carl", OPTIONS);
    fleet.until_read("carl to get a share", SHARDS, &["anna", "bert", "carl"]).await;
    fleet.leave(&mut anna).await;
    fleet.until_read("what anna read", SHARDS, &["bert", "carl"]).await;
    fleet.left_without_repeats(&anna);
    fleet.kill(&mut bert);
    fleet.until_read("what bert read", SHARDS, &["carl"]).await;

    let handovers = fleet.watch.handovers();
    let planned: Vec<_> = because(&handovers, Cause::Taken).chain(because(&handovers, Cause::Left)).collect();
    assert!(planned.len() >= 3, "{handovers:?}");
    assert!(planned.iter().all(|moved| moved.repeats == 0), "{planned:?}");
    let crashed: Vec<_> = because(&handovers, Cause::Killed).collect();
    assert!(!crashed.is_empty(), "{handovers:?}");
    assert!(crashed.iter().all(|moved| moved.standstill < NOTICED), "{crashed:?}");
    fleet.finish(producer, vec![carl]).await;
}
