//! The seed's decisions before its world begins.

use crate::cloud::{STREAM, TABLE};
use leasehold::{Config, ReaderConfig};
use leasehold_engine::time::Span;
use leasehold_sim::draws::Draws;

/// One world.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The seed.
    pub seed: u64,
    /// How many shards the stream begins with.
    pub shards: u32,
    /// How many partition keys are written to.
    pub keys: u64,
    /// The number of workers.
    pub workers: u32,
    /// When faults end, in milliseconds since the beginning.
    pub heal_ms: u64,
    /// When the last record is written.
    pub last_record_ms: u64,
    /// How often each family of faults hits.
    pub weather: Weather,
    /// Events with their times, in order.
    pub events: Vec<(u64, Event)>,
    /// The workers' options.
    pub config: Config,
    /// How long a batch is processed at most.
    pub work_ms: u64,
}

/// How often each family of faults hits a request, per thousand.
#[derive(Clone, Copy, Debug)]
pub struct Weather {
    /// The request is lost.
    pub lost_request: u32,
    /// The request is executed, the answer is lost.
    pub lost_answer: u32,
    /// No answer comes; the execution of the request is drawn, too.
    pub silence: u32,
    /// The client reads no longer; whether the request was executed is drawn too.
    pub read_timeout: u32,
    /// It takes long.
    pub slow: u32,
    /// The service refuses: too many requests.
    pub throttled: u32,
    /// A 5xx; whether the request was executed is drawn too.
    pub server_error: u32,
    /// Nobody listens.
    pub refused: u32,
    /// The connection breaks, and the request is executed much later.
    pub late: u32,
}

/// An event of the world.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Event {
    /// The worker's process dies.
    Kill(u32),
    /// The worker stands still: none of its tasks runs, and time goes on.
    Pause(u32),
    /// The worker goes on.
    Resume(u32),
    /// The worker is asked to shut down.
    ShutDown(u32),
    /// The worker's process starts; a running process starts anew.
    Start(u32),
    /// The worker is cut off from the services.
    Cut(u32),
    /// It is connected again.
    Mend(u32),
    /// A shard is split. The number picks it.
    Split(u64),
    /// Two shards are merged. The number picks them.
    Merge(u64),
}

impl Plan {
    /// The plan of a seed.
    pub fn new(seed: u64) -> Self {
        let draws = Draws::new(seed);
        let workers = draws.between("workers", 0, 2, 4) as u32;
        let heal_ms = draws.between("heal", 0, 40_000, 70_000);
        let config = config(draws);
        let events = events(draws, workers, heal_ms, config.lease_duration());
        Self {
            seed,
            shards: draws.between("shards", 0, 1, 5) as u32,
            keys: draws.between("keys", 0, 4, 24),
            workers,
            heal_ms,
            last_record_ms: heal_ms + 5_000,
            weather: Weather::new(draws),
            events,
            config,
            work_ms: draws.magnitude("work", 0, 1, 800),
        }
    }
}

impl Weather {
    fn new(draws: Draws) -> Self {
        // Every family is absent from some worlds, so that no family hides behind another.
        let family = |name| match draws.coin("family", name) {
            true => draws.magnitude("often", name, 2, 60) as u32,
            false => 0,
        };
        Self {
            lost_request: family(0),
            lost_answer: family(1),
            silence: family(2) / 2,
            read_timeout: family(3) / 2,
            slow: family(4),
            throttled: family(5),
            server_error: family(6),
            refused: family(7),
            late: family(8) / 2,
        }
    }
}

fn config(draws: Draws) -> Config {
    let ms = |name, low, high| Span::from_millis(draws.between(name, 0, low, high));
    let lease_ms = draws.between("lease", 0, 3_000, 8_000);
    // Fewer than the producer writes would not be read to the end in time.
    let max_records = draws.magnitude("records", 0, 16, 400) as u32;
    let reader = ReaderConfig::default()
        .with_max_records(max_records)
        .with_min_interval(ms("read-interval", 200, 500))
        .with_idle_interval(ms("idle", 200, 1_000))
        .with_buffer_batches(draws.between("buffer", 0, 1, 4) as u32);
    Config::default()
        .with_table(TABLE)
        .with_stream(STREAM)
        .with_lease_duration(Span::from_millis(lease_ms))
        .with_renew_interval(Span::from_millis(lease_ms / draws.between("renew", 0, 3, 5)))
        .with_scan_interval(ms("scan", 500, 4_000))
        .with_scan_page_limit([0, 1, 3][draws.below("page", 0, 3) as usize])
        .with_table_timeout(Span::from_millis(lease_ms / draws.between("table-timeout", 0, 2, 6)))
        .with_stream_lag(ms("scan", 500, 4_000))
        .with_stream_timeout(ms("stream-timeout", 1_000, 5_000))
        .with_retry_min(ms("retry-min", 10, 200))
        .with_retry_max(ms("retry-max", 300, 2_000))
        .with_checkpoint_interval(ms("checkpoint", 200, 3_000))
        .with_max_steals(draws.between("steals", 0, 1, 3) as u32)
        .with_steal_cooldown(draws.below("settle", 0, 4) != 0)
        .with_cleanup_delay([Span::ZERO, Span::from_secs(28)][draws.below("cleanup", 0, 2) as usize])
        .with_bootstrap_delay(ms("bootstrap", 0, 1_500))
        .with_max_creates(draws.between("creates", 0, 1, 8) as u32)
        .with_shutdown_timeout(Span::from_secs(12))
        .with_handler_backoff(ms("backoff", 50, 500))
        .with_reader(reader)
}

fn events(draws: Draws, workers: u32, heal_ms: u64, lease: Span) -> Vec<(u64, Event)> {
    let mut events = Vec::new();
    let at = |what, n| draws.between(what, n, 3_000, heal_ms);
    let lease_ms = lease.0 / 1000;
    for n in 0..draws.between("splits", 0, 1, 3) {
        events.push((at("split-at", n), Event::Split(draws.below("split", n, u64::MAX))));
    }
    for n in 0..draws.between("merges", 0, 1, 2) {
        events.push((at("merge-at", n), Event::Merge(draws.below("merge", n, u64::MAX))));
    }
    for n in 0..draws.between("blows", 0, 1, 6) {
        let worker = draws.below("struck", n, u64::from(workers)) as u32;
        let (from, lasts) = (at("blow-at", n), draws.magnitude("blow-lasts", n, 50, 3 * lease_ms));
        let (begin, end) = match draws.below("blow", n, 5) {
            0 | 1 => (Event::Kill(worker), Event::Start(worker)),
            2 => (Event::Pause(worker), Event::Resume(worker)),
            3 => (Event::Cut(worker), Event::Mend(worker)),
            _ => (Event::ShutDown(worker), Event::Start(worker)),
        };
        events.push((from, begin));
        events.push(((from + lasts).min(heal_ms), end));
    }
    // Among events of one time, an end comes after its beginning.
    events.sort_by_key(|(at, _)| *at);
    events
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_plan_can_work_and_none_is_empty() {
        for seed in 0..2_000 {
            let plan = Plan::new(seed);
            assert_eq!(plan.config.check(), Ok(()), "seed {seed}");
            let has = |wanted: fn(&Event) -> bool| plan.events.iter().any(|(_, event)| wanted(event));
            assert!(has(|event| matches!(event, Event::Split(_))));
            assert!(has(|event| matches!(event, Event::Merge(_))));
            assert!(plan.events.is_sorted_by_key(|(at, _)| *at));
            assert!(plan.events.iter().all(|(at, _)| *at <= plan.heal_ms));
        }
    }
}
