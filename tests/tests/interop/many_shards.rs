//! Two hundred shards among our own workers, as processes at the defaults: the time until all workers have the same
//! number of leases. The test prints a table. The workers need two free cores: a worker without a core cannot hand
//! over in time.

use crate::interop::fleet::Fleet;
use leasehold_tests::member::Member;
use leasehold_tests::wait::until;
use std::time::{Duration, Instant};

const SHARDS: i32 = 200;
const JOIN: [&str; 5] = ["b0", "b1", "b2", "b3", "b4"];
/// Shards are looked at once a second, as by default.
const OPTIONS: &[&str] = &[];

fn start<const N: usize>(fleet: &Fleet, names: [&str; N]) -> Vec<Member> {
    names.iter().map(|name| fleet.ours_with(name, OPTIONS)).collect()
}

/// The time from now until the leases are even among this number of workers.
async fn seconds_until_even(fleet: &Fleet, workers: usize, within: u64) -> f64 {
    let began = Instant::now();
    let what = format!("{}: {workers} workers to have even shares", fleet.test);
    until(&what, Duration::from_secs(within), || async { fleet.is_even(SHARDS as usize, workers) }).await;
    began.elapsed().as_secs_f64()
}

/// Takes half a minute: `cargo test … many_shards -- --ignored --nocapture`.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs two cores for itself"]
async fn two_hundred_shards_are_even_among_workers_that_start_or_join() {
    let (fleet, producer) = Fleet::with_shards("many-shards-start", SHARDS).await;
    let workers = start(&fleet, JOIN);
    let together = seconds_until_even(&fleet, JOIN.len(), 30).await;
    fleet.finish(producer, workers).await;

    let (fleet, producer) = Fleet::with_shards("many-shards-join", SHARDS).await;
    let mut workers = start(&fleet, ["a0"]);
    let alone = seconds_until_even(&fleet, 1, 30).await;
    // Its checkpoints follow its first records.
    tokio::time::sleep(Duration::from_secs(5)).await;
    workers.extend(start(&fleet, JOIN));
    let joined = seconds_until_even(&fleet, 1 + JOIN.len(), 60).await;
    let handovers = fleet.watch.handovers();
    let ledger = fleet.watch.ledger();
    let changes = |holders: &Vec<&str>| holders.iter().filter(|holder| !holder.is_empty()).count() - 1;
    let moved: usize = ledger.holders().values().map(changes).sum();
    let repeats: usize = handovers.iter().map(|moved| moved.repeats).sum();
    fleet.finish(producer, workers).await;

    println!("| {SHARDS} shards | until even |\n|---|---|");
    println!("| a worker starts on a new table | {alone:.1} s |");
    println!("| five start on a new table | {together:.1} s |");
    println!("| five join one | {joined:.1} s, {moved} moves, {repeats} records again |");
    assert_eq!(repeats, 0, "what is handed over does not come again");
    assert!(moved <= 2 * SHARDS as usize, "expected no more than two moves for each shard, found {moved}");
}
