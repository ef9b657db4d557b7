//! A test's settings for its worlds: the handler, the check at the end, and sizes.

use super::draws::Draws;
use super::fault::{Dice, Fault, Micros, Time, faults, weather};
use super::judge::{Done, Judge};
use super::source::{APPLICATION, STREAM, Source};
use super::stage::Stage;
use super::watched::Watched;
use bytes::Bytes;
use leasehold::runtime::BoxFuture;
use leasehold::{Config, Error, Handler, InitialPosition, ReaderConfig, Report, Span, Worker};
use leasehold_local_aws::kinesis::{EndOfShard, KinesisConfig};
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
    pub seed: u64,
    pub puts: Vec<Put>,
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

/// The end of a worker.
pub(super) type Ended = Result<Report, Error>;

/// Starts a worker with a new handler.
type Start = Box<dyn Fn(Life, Worker, Place) -> BoxFuture<'static, Ended>>;
pub(super) type Check = Box<dyn FnOnce(&End)>;
type Payload = Box<dyn Fn(&Put) -> Bytes>;
type Options = Box<dyn Fn(Config) -> Config>;

/// Where a handler stands.
#[derive(Debug)]
pub struct Place {
    /// Its world.
    pub stage: Stage,
    /// Its life, counted over all workers.
    pub life: usize,
}

/// What a host asks of its worlds.
#[derive(Clone, Debug)]
pub struct Scale {
    /// When the last fault is over.
    pub healed: Time,
    /// How long a world may take to come to rest after its last fault, and then to shut down.
    pub rest: Time,
    /// For how long leases keep their owners before the workers shut down; absent: for no time, and the leases left behind
    /// are not looked at.
    pub calm: Option<fn(&Config) -> Span>,
    /// How long a request or an answer is on its way; drawn under a name and a key.
    pub way: fn(Draws, &str, u64) -> Micros,
    /// When records and workers come first.
    pub opens: Time,
    /// How long leases last.
    pub lease: RangeInclusive<Time>,
    /// Requests have faults by chance, too.
    pub weather: bool,
    /// The stream; its time of updates is drawn.
    pub kinesis: KinesisConfig,
    /// What makes a record done.
    pub done: Done,
    /// Two owners may believe in one shard for a while.
    pub shares: bool,
}

impl Default for Scale {
    fn default() -> Self {
        Self {
            healed: 20_000,
            rest: 90_000,
            calm: None,
            // A process without a clock finer than milliseconds is woken at whole milliseconds.
            way: |draws, way, key| draws.between(way, key, 1, 8) * 1_000,
            opens: 0,
            lease: 3_000..=5_000,
            weather: false,
            kinesis: KinesisConfig { end_of_shard: EndOfShard::OwnAnswer, ..KinesisConfig::instant() },
            done: Done::HandedOver,
            shares: false,
        }
    }
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
    scale: Scale,
    start: Option<Start>,
    check: Option<Check>,
}

impl fmt::Debug for World {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("World").field("seed", &self.seed).finish_non_exhaustive()
    }
}

impl World {
    #[doc(hidden)]
    pub fn new(seed: u64) -> Self {
        Self {
            seed,
            workers: 2..=3,
            shards: 1..=4,
            records: 40..=120,
            keys: 2..=8,
            options: None,
            payload: None,
            scale: Scale::default(),
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
        self.handler_at(move |life, _| make(life))
    }

    /// Like `handler`; the handler knows its place.
    #[doc(hidden)]
    pub fn handler_at<H: Handler>(&mut self, make: impl Fn(Life, &Place) -> H + 'static) -> &mut Self {
        self.start = Some(Box::new(move |life, worker, place| {
            let inner = make(life, &place);
            let Place { stage, life: number } = place;
            Box::pin(worker.run(Watched { inner, stage, life: number, worker: life.worker }))
        }));
        self
    }

    #[doc(hidden)]
    pub fn scale(&mut self, scale: Scale) -> &mut Self {
        self.scale = scale;
        self
    }

    /// What starts a worker.
    ///
    /// # Panics
    /// Without a handler.
    pub(super) fn starts(&self) -> &Start {
        let start = self.start.as_ref();
        start.expect("expected the world to have a handler, found none; call `world.handler(…)`")
    }

    pub(super) fn take_check(&mut self) -> Option<Check> {
        self.check.take()
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
    #[doc(hidden)]
    pub fn plan(&self) -> Plan {
        let draws = Draws::new(self.seed);
        let size = |what, range: &RangeInclusive<u64>| draws.between(what, 0, *range.start(), *range.end());
        let lease = size("lease", &self.scale.lease);
        let workers = size("workers", &self.workers) as usize;
        let config = config(draws, lease);
        let config = match &self.options {
            Some(change) => change(config),
            None => config,
        };
        if let Err(bad) = config.check() {
            panic!("the options of `World::config` cannot work: {bad}");
        }
        let dice = Dice { draws, workers, lease, healed: self.scale.healed };
        let mut faults = faults(dice);
        if self.scale.weather {
            faults.extend(weather(dice));
        }
        Plan {
            draws,
            scale: self.scale.clone(),
            workers,
            shards: size("shards", &self.shards) as u32,
            update: draws.magnitude("update", 0, 1, 1_500),
            puts: self.puts(draws, size("records", &self.records), size("keys", &self.keys)),
            config: config.with_initial_position(InitialPosition::TrimHorizon),
            faults,
        }
    }

    fn puts(&self, draws: Draws, records: u64, keys: u64) -> Vec<(Time, Put)> {
        let Scale { opens, healed, .. } = self.scale;
        let mut times: Vec<Time> =
            (0..records).map(|n| draws.between("put", n, opens + 100, healed + 1_500)).collect();
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
pub struct Plan {
    pub draws: Draws,
    pub scale: Scale,
    pub workers: usize,
    pub shards: u32,
    /// How long a split or a merge takes.
    pub update: Time,
    pub puts: Vec<(Time, Put)>,
    pub config: Config,
    pub faults: Vec<Fault>,
}

impl Plan {
    /// The stream of the world.
    pub fn source(&self) -> Source {
        let update_ms = i64::try_from(self.update).unwrap_or(0);
        Source::new(KinesisConfig { update_ms, ..self.scale.kinesis.clone() }, self.shards)
    }

    /// The judge of the world.
    pub fn judge(&self) -> Judge {
        Judge::new(self.scale.done, self.scale.shares)
    }
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
            assert!(plan.puts.is_sorted_by_key(|(at, _)| *at));
        }
    }

    #[test]
    #[should_panic(expected = "expected a range of workers within 1..=16, found 0..=2")]
    fn a_world_without_workers_is_refused() {
        World::new(0).workers(0..=2);
    }
}
