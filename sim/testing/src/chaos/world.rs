//! A test's settings for its worlds: the handler, the check at the end, and sizes.

use super::draws::Draws;
use super::fault::{Fault, HEALED, Time, faults};
use super::services::{APPLICATION, STREAM};
use super::stage::Stage;
use super::watched::Watched;
use bytes::Bytes;
use leasehold::runtime::BoxFuture;
use leasehold::{Config, Error, Handler, InitialPosition, ReaderConfig, Report, Span, Worker};
use std::fmt;
use std::ops::RangeInclusive;
use std::sync::Arc;

/// A record put into the stream by a world.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Put {
    /// The record's number, from 0, in the order of time.
    pub number: u64,
    /// Its partition key: `key-0`, `key-1` and so on.
    pub partition_key: Arc<str>,
    /// The record's number within its partition key, from 0.
    pub nth: u64,
    /// Its payload. By default the partition key and `nth`, such as `key-3/17`; [`World::payload`] changes the default.
    pub data: Bytes,
}

/// One life of a worker: from the start of its process to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Life {
    /// The worker, from 0. `worker-0` is its name.
    pub worker: usize,
    /// The number of the life among the worker's lives, from 0.
    pub nth: usize,
}

/// A world at its end, for the check of [`World::finally`].
#[derive(Debug)]
pub struct End {
    pub(crate) seed: u64,
    pub(crate) puts: Vec<Put>,
}

impl End {
    /// All records put into the stream, in order.
    pub fn puts(&self) -> &[Put] {
        &self.puts
    }

    /// The world's seed.
    pub fn seed(&self) -> u64 {
        self.seed
    }
}

type Start = Box<dyn Fn(Life, Worker, Place) -> BoxFuture<'static, Result<Report, Error>>>;
type Check = Box<dyn FnOnce(&End)>;
type Payload = Box<dyn Fn(&Put) -> Bytes>;
type Options = Box<dyn Fn(Config) -> Config>;

/// Where a handler stands.
#[derive(Debug)]
pub(crate) struct Place {
    pub(crate) stage: Stage,
    pub(crate) life: usize,
}

/// A world before its beginning. The closure of [`chaos`](crate::chaos) states the world's needs.
pub struct World {
    seed: u64,
    workers: RangeInclusive<u64>,
    shards: RangeInclusive<u64>,
    records: RangeInclusive<u64>,
    keys: RangeInclusive<u64>,
    options: Option<Options>,
    payload: Option<Payload>,
    pub(crate) start: Option<Start>,
    pub(crate) check: Option<Check>,
}

impl fmt::Debug for World {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("World").field("seed", &self.seed).finish_non_exhaustive()
    }
}

impl World {
    pub(crate) fn new(seed: u64) -> Self {
        Self {
            seed,
            workers: 2..=3,
            shards: 1..=4,
            records: 40..=120,
            keys: 2..=8,
            options: None,
            payload: None,
            start: None,
            check: None,
        }
    }

    /// The world's seed, for random draws of a handler.
    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// The handler under test: `make` is called for every life of every worker. Parts shared by lives, such as a
    /// stand-in for a database, belong to the closure of [`chaos`](crate::chaos): then every world has its own.
    pub fn handler<H: Handler>(&mut self, make: impl Fn(Life) -> H + 'static) -> &mut Self {
        self.start = Some(Box::new(move |life, worker, place| {
            Box::pin(worker.run(Watched {
                inner: make(life),
                stage: place.stage,
                life: place.life,
                worker: life.worker,
            }))
        }));
        self
    }

    /// The check at the end, after all faults: every record is acknowledged durably and all workers are shut down. The
    /// check panics on a failure, like `assert!`.
    pub fn finally(&mut self, check: impl FnOnce(&End) + 'static) -> &mut Self {
        self.check = Some(Box::new(check));
        self
    }

    /// Makes the payloads of the records.
    pub fn payload(&mut self, make: impl Fn(&Put) -> Bytes + 'static) -> &mut Self {
        self.payload = Some(Box::new(make));
        self
    }

    /// Changes the options of all workers. The drawn options keep worlds short: leases last for 3 to 5 s. Shards are
    /// always read from their beginning.
    pub fn config(&mut self, change: impl Fn(Config) -> Config + 'static) -> &mut Self {
        self.options = Some(Box::new(change));
        self
    }

    /// The number of workers; 2 to 3 by default, at most 16.
    pub fn workers(&mut self, range: RangeInclusive<u64>) -> &mut Self {
        self.workers = within("workers", range, 16);
        self
    }

    /// How many shards the stream begins with; 1 to 4 by default, at most 32.
    pub fn shards(&mut self, range: RangeInclusive<u64>) -> &mut Self {
        self.shards = within("shards", range, 32);
        self
    }

    /// How many records are put; 40 to 120 by default, at most 100,000.
    pub fn records(&mut self, range: RangeInclusive<u64>) -> &mut Self {
        self.records = within("records", range, 100_000);
        self
    }

    /// The number of partition keys; 2 to 8 by default, at most 10,000.
    pub fn keys(&mut self, range: RangeInclusive<u64>) -> &mut Self {
        self.keys = within("keys", range, 10_000);
        self
    }

    /// What the seed decides.
    pub(crate) fn plan(&self) -> Plan {
        let draws = Draws::new(self.seed);
        let size = |what, range: &RangeInclusive<u64>| draws.between(what, 0, *range.start(), *range.end());
        let lease = draws.between("lease", 0, 3_000, 5_000);
        let workers = size("workers", &self.workers) as usize;
        let config = config(draws, lease);
        let config = match &self.options {
            Some(change) => change(config),
            None => config,
        };
        Plan {
            draws,
            workers,
            shards: size("shards", &self.shards) as u32,
            update: draws.magnitude("update", 0, 1, 1_500),
            puts: self.puts(draws, size("records", &self.records), size("keys", &self.keys)),
            config: config.with_initial_position(InitialPosition::TrimHorizon),
            faults: faults(draws, workers, lease),
        }
    }

    fn puts(&self, draws: Draws, records: u64, keys: u64) -> Vec<(Time, Put)> {
        let mut times: Vec<Time> =
            (0..records).map(|n| draws.between("put", n, 100, HEALED + 1_500)).collect();
        times.sort_unstable();
        let mut counts = vec![0; keys as usize];
        let put = |(number, at): (u64, Time)| {
            let key = draws.between("key", number, 0, keys - 1) as usize;
            let nth = counts[key];
            counts[key] += 1;
            let mut put = Put {
                number,
                partition_key: format!("key-{key}").into(),
                nth,
                data: format!("key-{key}/{nth}").into(),
            };
            if let Some(make) = &self.payload {
                put.data = make(&put);
            }
            (at, put)
        };
        (0..).zip(times).map(put).collect()
    }
}

#[track_caller]
fn within(what: &str, range: RangeInclusive<u64>, most: u64) -> RangeInclusive<u64> {
    assert!(
        *range.start() >= 1 && range.start() <= range.end() && *range.end() <= most,
        "expected a range of {what} within 1..={most}, found {range:?}"
    );
    range
}

/// The seed's decisions before a world begins.
#[derive(Debug)]
pub(crate) struct Plan {
    pub(crate) draws: Draws,
    pub(crate) workers: usize,
    pub(crate) shards: u32,
    /// How long a split or a merge takes.
    pub(crate) update: Time,
    pub(crate) puts: Vec<(Time, Put)>,
    pub(crate) config: Config,
    pub(crate) faults: Vec<Fault>,
}

fn config(draws: Draws, lease: Time) -> Config {
    let ms = |what, low, high| Span::from_millis(draws.between(what, 0, low, high));
    let reader = ReaderConfig::default()
        .with_max_records(draws.magnitude("max-records", 0, 4, 100) as u32)
        .with_idle_interval(ms("idle", 250, 700))
        .with_buffer_batches(draws.between("buffer", 0, 1, 3) as u32);
    Config::default()
        .with_stream(STREAM)
        .with_table(APPLICATION)
        .with_lease_duration(Span::from_millis(lease))
        .with_renew_interval(Span::from_millis(lease / draws.between("renew", 0, 3, 4)))
        .with_scan_interval(ms("scan", 500, 1_500))
        .with_table_timeout(ms("table-timeout", 500, 1_000))
        .with_stream_lag(ms("scan", 500, 1_500))
        .with_stream_timeout(ms("stream-timeout", 1_000, 2_000))
        .with_retry_min(ms("retry-min", 10, 100))
        .with_retry_max(ms("retry-max", 200, 800))
        .with_checkpoint_interval(ms("checkpoint", 200, 1_500))
        .with_handler_backoff(ms("backoff", 20, 200))
        .with_bootstrap_delay(ms("bootstrap", 0, 500))
        .with_shutdown_timeout(Span::from_secs(6))
        .with_audit_confidence(2)
        .with_reader(reader)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_plan_can_work() {
        for seed in 0..500 {
            let plan = World::new(seed).plan();
            assert_eq!(plan.config.check(), Ok(()), "seed {seed}");
            assert!(plan.puts.is_sorted_by_key(|(at, _)| *at));
        }
    }

    #[test]
    #[should_panic(expected = "expected a range of workers within 1..=16, found 0..=2")]
    fn a_world_without_workers_is_refused() {
        World::new(0).workers(0..=2);
    }
}
