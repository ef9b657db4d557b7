//! What deploys and crashes cost a fleet of our own workers, as processes at the defaults, ten shards a worker. The
//! test prints tables: moves of leases, records that come again, and the age of the oldest record that is printed.

use super::fleet::Fleet;
use leasehold_tests::history::{Cause, Handover};
use leasehold_tests::member::Member;
use leasehold_tests::producer::Producer;
use leasehold_tests::wait::until;
use std::collections::BTreeSet;
use std::time::Duration;

const OPTIONS: &[&str] = &[];
const SETTLES: Duration = Duration::from_secs(60);
/// A fleet's shares are even for so long before the next worker stops, and before the costs are counted.
const BETWEEN: Duration = Duration::from_secs(5);
/// A worker knows no lease from before its start after this long.
const QUIET: Duration = Duration::from_secs(15);

/// A fleet with even shares, its shards, and the number of workers that it ever had.
struct Settled {
    fleet: Fleet,
    producer: Producer,
    workers: Vec<Member>,
    shards: usize,
    started: usize,
}

impl Settled {
    async fn start(test: &'static str, workers: u32) -> Self {
        let shards = 10 * workers;
        let (fleet, producer) = Fleet::with_shards(test, shards as i32).await;
        let mut settled = Self { fleet, producer, workers: Vec::new(), shards: shards as usize, started: 0 };
        (0..workers).for_each(|_| settled.add());
        settled.until_shared().await;
        settled
    }

    fn add(&mut self) {
        self.started += 1;
        self.workers.push(self.fleet.ours_with(&format!("w{}", self.started), OPTIONS));
    }

    /// Until all workers have the same number of leases, and no stopped worker has a lease.
    async fn until_shared(&self) {
        let workers: BTreeSet<&str> = self.workers.iter().map(|worker| worker.name.as_str()).collect();
        until("even shares", SETTLES, || async {
            let ledger = self.fleet.watch.ledger();
            let owners: BTreeSet<&str> = ledger.now().values().map(|lease| lease.holder()).collect();
            owners == workers && self.fleet.is_even(self.shards, workers.len())
        })
        .await;
    }

    /// The hand-overs since this moment of the watch, and the age of the oldest record printed since then.
    fn cost(&self, since: Duration) -> (Vec<Handover>, Duration) {
        let mut moves = self.fleet.watch.handovers();
        moves.retain(|moved| moved.at >= since);
        let seen = self.fleet.watch.seen();
        let late = seen.iter().filter(|seen| seen.at >= since).filter_map(|seen| seen.late).max();
        (moves, late.expect("printed records"))
    }

    /// The owners of each lease up to now, one after the other.
    fn owners(&self) -> usize {
        let ledger = self.fleet.watch.ledger();
        let owned = |owners: &Vec<&str>| owners.iter().filter(|owner| !owner.is_empty()).count();
        ledger.holders().values().map(owned).sum()
    }

    fn now(&self) -> Duration {
        self.fleet.watch.now()
    }

    async fn finish(self) {
        self.fleet.finish(self.producer, self.workers).await;
    }
}

/// Takes two minutes: `cargo test … restarts -- --ignored --nocapture`.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs two cores for itself"]
async fn a_deploy_of_six_workers_repeats_nothing() {
    let mut settled = Settled::start("deploy", 6).await;
    tokio::time::sleep(QUIET).await;
    let (began, owners) = (settled.now(), settled.owners());
    for _ in 0..6 {
        let mut worker = settled.workers.remove(0);
        settled.fleet.leave(&mut worker).await;
        settled.add();
        settled.until_shared().await;
        tokio::time::sleep(BETWEEN).await;
    }
    let (handovers, late) = settled.cost(began);
    let repeats: usize = handovers.iter().map(|moved| moved.repeats).sum();
    let moves = settled.owners() - owners;
    println!(
        "| a deploy of 6 workers, 60 shards | moves | records again | oldest record |\n|---|---|---|---|"
    );
    println!("| | {moves} | {repeats} | {:.1} s |", late.as_secs_f64());
    settled.finish().await;
    assert_eq!(repeats, 0, "a deploy repeats nothing");
    assert!(moves <= 2 * 60, "expected at most two moves a shard, found {moves}");
}

/// When a killed worker starts again.
const RESTARTS: [(&str, Option<u64>); 3] = [("at once", Some(0)), ("after 5 s", Some(5)), ("never", None)];

/// The longest standstill of a shard of the killed worker, for each restart.
async fn crashes(test: &'static str, workers: u32) -> String {
    let mut settled = Settled::start(test, workers).await;
    let mut cells = String::new();
    for (_, restart) in RESTARTS {
        tokio::time::sleep(QUIET).await;
        let began = settled.now();
        let mut worker = settled.workers.remove(0);
        settled.fleet.kill(&mut worker);
        if let Some(seconds) = restart {
            tokio::time::sleep(Duration::from_secs(seconds)).await;
            settled.add();
        }
        settled.until_shared().await;
        tokio::time::sleep(BETWEEN).await;
        let (mut moves, _) = settled.cost(began);
        moves.retain(|moved| moved.cause == Cause::Killed);
        let longest = moves.iter().map(|moved| moved.standstill).max().expect("shards of the killed worker");
        cells.push_str(&format!(" {:.1} s |", longest.as_secs_f64()));
    }
    settled.finish().await;
    format!("| {workers} | {} |{cells}", workers * 10)
}

/// Takes four minutes. A shard gets a record each second, so that a time is too long by a second at most.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs two cores for itself"]
async fn a_crash_costs_a_lease_duration_and_a_little() {
    let [at_once, later, never] = RESTARTS.map(|(name, _)| name);
    let rows = [crashes("crash-2", 2).await, crashes("crash-6", 6).await];
    println!("| workers | shards | {at_once} | {later} | {never} |\n|---|---|---|---|---|");
    rows.iter().for_each(|row| println!("{row}"));
}
