//! A fleet of our own workers or of ours and KCL's, its history, and the properties of that history.

use super::{APPLICATION, World, shard};
use leasehold_tests::cache::available;
use leasehold_tests::history::{self, Cause, Handover};
use leasehold_tests::kcl_java::{Kcl, Program};
use leasehold_tests::member::Member;
use leasehold_tests::producer::{Producer, Put};
use leasehold_tests::wait::until;
use leasehold_tests::watch::Watch;
use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

/// A lease of 3 s is taken when the second scan after shows it unchanged, and a machine may be busy.
const SOON: Duration = Duration::from_secs(120);

/// Times as the Java workers have them, and perhaps a further option.
macro_rules! like_theirs {
    ($($more:literal)?) => {
        &[
            "--lease-duration=3 s",
            "--renew-interval=950 ms",
            "--scan-interval=6 s",
            "--table-timeout=1 s",
            "--reader-min-interval=200 ms",
            "--reader-idle-interval=200 ms",
            "--checkpoint-interval=200 ms",
            $($more)?
        ]
    };
}
pub(super) use like_theirs;

pub(super) struct Fleet {
    pub test: &'static str,
    pub world: World,
    pub watch: Watch,
}

/// Builds the program; nothing where that cannot be done.
pub(super) async fn program(test: &str, kcl: Kcl) -> Option<Program> {
    let installed = tokio::task::spawn_blocking(move || Program::install(kcl)).await;
    available(test, installed.expect("no panic"))
}

impl Fleet {
    /// A stream of three shards, records put all the time, and no worker yet.
    pub(super) async fn start(test: &'static str) -> (Self, Producer) {
        Self::with_shards(test, 3).await
    }

    /// The same, and the program of a KCL; nothing where that cannot be built.
    pub(super) async fn with(test: &'static str, kcl: Kcl) -> Option<(Self, Producer, Program)> {
        let program = program(test, kcl).await?;
        let (fleet, producer) = Self::start(test).await;
        Some((fleet, producer, program))
    }

    /// The same of so many shards.
    pub(super) async fn with_shards(test: &'static str, shards: i32) -> (Self, Producer) {
        Self::on(test, World::with_shards(test, shards).await)
    }

    /// The same on this stream.
    pub(super) fn on(test: &'static str, world: World) -> (Self, Producer) {
        let producer = Producer::start(world.kinesis.clone(), &world.place.stream);
        let watch = Watch::start(world.dynamodb.clone(), APPLICATION);
        (Self { test, world, watch }, producer)
    }

    pub(super) fn theirs(&self, program: &Program, name: &str, more: &[&str]) -> Member {
        self.watched(program.start(&self.world.place, name, more))
    }

    /// With the timers that the library has by default, but for reads.
    pub(super) fn theirs_by_default(&self, program: &Program, name: &str) -> Member {
        self.watched(program.start_by_default(&self.world.place, name, &["--idle-ms=200"]))
    }

    pub(super) fn ours(&self, name: &str) -> Member {
        self.ours_with(name, like_theirs!())
    }

    /// A worker that reads by subscription, and by polling while the service refuses a subscription.
    pub(super) fn ours_by_fan_out(&self, name: &str) -> Member {
        self.ours_with(name, like_theirs!("--fan-out"))
    }

    pub(super) fn ours_with(&self, name: &str, options: &'static [&'static str]) -> Member {
        self.watched(self.world.ours(name, "kcl", options))
    }

    fn watched(&self, member: Member) -> Member {
        self.watch.add(&member.name, &member.output);
        member
    }

    /// Waits until exactly these shards are unfinished, and each is read by its owner. The owners are exactly these
    /// workers: each worker owns some shard.
    pub(super) async fn until_read(&self, what: &str, shards: &[u32], by: &[&str]) {
        let by: BTreeSet<&str> = by.iter().copied().collect();
        self.until(what, shards, |owners| *owners == by).await;
    }

    /// As [`until_read`](Self::until_read), within another time.
    pub(super) async fn until_owned_within(&self, what: &str, shards: &[u32], by: &[&str], within: Duration) {
        let by: BTreeSet<&str> = by.iter().copied().collect();
        let shards: BTreeSet<String> = shards.iter().map(|number| shard(*number)).collect();
        self.until_named(what, &shards, within, |owners| *owners == by).await;
    }

    /// The same for shards named by the keys of their leases.
    pub(super) async fn until_leases_are_read(&self, what: &str, leases: &BTreeSet<String>, by: &[&str]) {
        let by: BTreeSet<&str> = by.iter().copied().collect();
        self.until_named(what, leases, SOON, |owners| *owners == by).await;
    }

    /// The same, but a worker may have none.
    pub(super) async fn until_read_among(&self, what: &str, shards: &[u32], by: &[&str]) {
        let by: BTreeSet<&str> = by.iter().copied().collect();
        self.until(what, shards, |owners| owners.is_subset(&by)).await;
    }

    async fn until(&self, what: &str, shards: &[u32], right_owners: impl Fn(&BTreeSet<&str>) -> bool) {
        let shards: BTreeSet<String> = shards.iter().map(|number| shard(*number)).collect();
        self.until_named(what, &shards, SOON, right_owners).await;
    }

    async fn until_named(
        &self, what: &str, shards: &BTreeSet<String>, within: Duration,
        right_owners: impl Fn(&BTreeSet<&str>) -> bool,
    ) {
        let began = Instant::now();
        loop {
            let (owners, readers) = self.owners_and_readers();
            let right = owners.keys().eq(shards)
                && right_owners(&owners.values().map(String::as_str).collect())
                && owners.iter().all(|(shard, owner)| readers.get(shard) == Some(owner));
            if right {
                return;
            }
            assert!(
                began.elapsed() < within,
                "{}: expected {what} within {within:?}, found the owners {owners:?} and the readers {readers:?}",
                self.test
            );
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    /// Whether every lease is with one of `workers` workers, no lease moves, and the numbers of leases differ by one at
    /// most.
    pub(super) fn is_even(&self, shards: usize, workers: usize) -> bool {
        let ledger = self.watch.ledger();
        let leases = ledger.now();
        let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
        for lease in leases.values() {
            *counts.entry(lease.holder()).or_default() += 1;
        }
        let (most, least) = (counts.values().max(), counts.values().min());
        leases.len() == shards
            && leases.values().all(|lease| lease.from.is_none())
            && !counts.contains_key("")
            && counts.len() == workers
            && most.zip(least).is_some_and(|(most, least)| most - least <= 1)
    }

    /// The owner of each unfinished shard (an empty name means no owner), and the printer of each shard's last
    /// record.
    fn owners_and_readers(&self) -> (BTreeMap<String, String>, BTreeMap<String, String>) {
        let ledger = self.watch.ledger();
        let open = ledger.now().into_iter().filter(|(_, entry)| !entry.finished());
        let owners = open.map(|(lease, entry)| (lease.to_owned(), entry.holder().to_owned()));
        let seen = self.watch.seen().into_iter();
        (owners.collect(), seen.map(|seen| (seen.record.shard, seen.worker)).collect())
    }

    /// Asks a worker to leave and waits for its end.
    pub(super) async fn leave(&self, worker: &mut Member) {
        self.no_errors(worker);
        self.watch.ends(&worker.name, Cause::Left);
        worker.process.terminate().expect("a signal");
        worker.process.ends_well(SOON).await;
        self.watch.has_left(&worker.name);
    }

    /// Kills a worker, as `kill -9` does.
    pub(super) fn kill(&self, worker: &mut Member) {
        self.no_errors(worker);
        self.watch.ends(&worker.name, Cause::Killed);
        worker.process.kill().expect("a worker that lives until now");
    }

    /// Checks that the table's rows made a worker log no error. Asked before the worker's stop: the KCL logs errors
    /// in a stop.
    fn no_errors(&self, worker: &Member) {
        let log = worker.process.stderr();
        let error = log.lines().find(|line| line.contains(" ERROR "));
        assert_eq!(error, None, "{}: {} logged\n{log}", self.test, worker.name);
    }

    /// That leaving in good order repeated nothing. Asked when others read what it had. A lease that another library stole from the
    /// leaving worker is no hand-over of the worker.
    pub(super) fn left_without_repeats(&self, worker: &Member) {
        let ledger = self.watch.ledger();
        let (name, ended) = (&worker.name, self.watch.left_at(&worker.name));
        let mut handovers = self.watch.handovers();
        handovers.retain(|handover| handover.from == *name && handover.cause == Cause::Left);
        assert!(!handovers.is_empty(), "{}: {name} left nothing", self.test);
        let stolen = |shard: &str| {
            ledger.taken_from(shard, name).is_some_and(|at| ended.is_some_and(|ended| at < ended))
        };
        let wrong = |handover: &&Handover| handover.repeats > 0 && !stolen(&handover.shard);
        assert!(
            !handovers.iter().any(|handover| wrong(&handover)),
            "{}: expected no repeats when {name} left, found\n{}\nin the table {:?}\n{}",
            self.test,
            history::table(&handovers),
            ledger.holders(),
            worker.process.stderr()
        );
    }

    /// Ends it all: every record was printed, in order and without a hole by each owner, and the table says so.
    pub(super) async fn finish(self, producer: Producer, workers: Vec<Member>) {
        self.finish_with(producer.finish().await, workers).await;
    }

    /// The same, when these records were put.
    pub(super) async fn finish_with(self, put: Put, mut workers: Vec<Member>) {
        let Self { test, watch, .. } = &self;
        let what = format!("{test}: every record to be printed");
        until(&what, SOON, || async { history::missing(&watch.seen(), &put).is_empty() }).await;
        let what = format!("{test}: the last records to be checkpointed");
        until(&what, SOON, || async { at_the_end(watch, &put) }).await;
        for worker in &mut workers {
            self.leave(worker).await;
        }
        let seen = watch.seen();
        println!("{test}\n{}", history::table(&watch.handovers()));
        println!("owners in the table: {:?}", watch.ledger().holders());
        assert_eq!(history::missing(&seen, &put), Vec::<String>::new(), "{test}");
        assert_eq!(history::holes(&seen, &put), Vec::<String>::new(), "{test}");
        assert_eq!(watch.ledger().went_back(), Vec::<String>::new(), "{test}");
    }
}

/// Whether finished shards are marked as finished, and the remaining shards are at their last record.
fn at_the_end(watch: &Watch, put: &Put) -> bool {
    let ledger = watch.ledger();
    let now = ledger.now();
    put.iter().all(|(shard, records)| {
        let (last, _) = &records[records.len() - 1];
        now.get(shard.as_str()).is_some_and(|lease| lease.finished() || lease.checkpoint == *last)
    })
}
