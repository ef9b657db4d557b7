//! Two hundred shards among our own workers, as processes at the defaults: the time until all workers have the same
//! number of leases. The test prints a table. The workers need two free cores: a worker without a core cannot hand
//! over in time.

use crate::interop::fleet::Fleet;
use leasehold_tests::member::Member;
use leasehold_tests::wait::until;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

const SHARDS: i32 = 200;
const JOIN: [&str; 5] = ["b0", "b1", "b2", "b3", "b4"];
/// Shards are looked at once a second, as by default.
const OPTIONS: &[&str] = &[];

fn start<const N: usize>(fleet: &Fleet, names: [&str; N]) -> Vec<Member> {
    names.iter().map(|name| fleet.ours_with(name, OPTIONS)).collect()
}

/// Whether every lease is with one of `workers` workers, no lease moves, and the numbers of leases differ by one at
/// most.
fn is_even(fleet: &Fleet, workers: usize) -> bool {
    let ledger = fleet.watch.ledger();
    let leases = ledger.now();
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for lease in leases.values() {
        *counts.entry(lease.holder()).or_default() += 1;
    }
    let (most, least) = (counts.values().max(), counts.values().min());
    leases.len() == SHARDS as usize
        && leases.values().all(|lease| lease.from.is_none())
        && !counts.contains_key("")
        && counts.len() == workers
        && most.zip(least).is_some_and(|(most, least)| most - least <= 1)
}

/// The time from now until the leases are even among this number of workers.
async fn seconds_until_even(fleet: &Fleet, workers: usize, within: u64) -> f64 {
    let began = Instant::now();
    let what = format!("{}: {workers} workers to have even shares", fleet.test);
    until(&what, Duration::from_secs(within), || async { is_even(fleet, workers) }).await;
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
