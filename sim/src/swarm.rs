//! Drawing a world from one number.
//!
//! Every world is small in its own way: few workers or many, short leases, tiny pages, a handful of fault families. What
//! is drawn here fixes the run; a [`Plan`] can be printed, and is all there is to know about a world beforehand.

use crate::draws::Draws;
use crate::faults::{Faults, Setting};
use crate::scenario::span::micros;
use crate::whatif::Start;
use leasehold_engine::config::{Config, InitialPosition, ReaderConfig};
use leasehold_engine::time::{Span, Wall};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// The wall clock of every world at its beginning, in ms since the Unix epoch.
pub const EPOCH_MS: i64 = 1_700_000_000_000;

/// How much older than the application its stream is.
pub const STREAM_AGE_MS: i64 = 60_000;

/// Everything that is fixed about a world before it begins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// What it was drawn from.
    pub seed: u64,
    /// How many workers.
    pub workers: u32,
    /// How many shards at the beginning.
    pub shards: u32,
    /// How long faults last, in µs.
    pub fault_us: u64,
    /// How all workers are configured.
    pub config: Config,
    /// What is written to the stream.
    pub load: Load,
    /// What goes wrong.
    pub faults: Faults,
    /// The stream and the table, if they are there already; they have the shards then.
    pub start: Option<Arc<Start>>,
}

/// What is written to the stream.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Load {
    /// Records there before the application is first started.
    pub before: u32,
    /// A few records are put every so often, in µs.
    #[serde(rename = "every", with = "micros")]
    pub every_us: u64,
    /// How many.
    pub burst: u32,
    /// The size of a record in bytes.
    pub bytes: u32,
}

impl Default for Load {
    /// One small record a second.
    fn default() -> Self {
        Self {
            before: 0,
            every_us: 1_000_000,
            burst: 1,
            bytes: 100,
        }
    }
}

impl Plan {
    /// Draws the world of a seed.
    pub fn draw(seed: u64) -> Self {
        let draws = Draws::new(seed);
        let workers = match draws.below("workers-rare", 0, 40) {
            0 => 32,
            _ => draws.between("workers", 0, 1, 6) as u32,
        };
        let shards = match draws.below("shards-rare", 0, 100) {
            0 => 200,
            _ => draws.magnitude("shards", 0, 1, 32) as u32,
        };
        let fault_us = draws.magnitude("length", 0, 10_000_000, 300_000_000);
        let config = config(draws);
        let setting = Setting {
            workers: u64::from(workers),
            shards: u64::from(shards),
            length_us: fault_us,
            lease_us: config.lease_duration.0,
            rate_ppm: u64::from(config.clock_rate_error_ppm),
        };
        let load = Load {
            before: if draws.coin("before", 0) {
                draws.magnitude("before", 1, 1, 500) as u32
            } else {
                0
            },
            every_us: draws.magnitude("put-every", 0, 50_000, 4_000_000),
            burst: draws.magnitude("put-burst", 0, 1, 30) as u32,
            bytes: draws.magnitude("put-bytes", 0, 1, 20_000) as u32,
        };
        Self {
            seed,
            workers,
            shards,
            fault_us,
            config,
            load,
            faults: Faults::draw(draws, setting),
            start: None,
        }
    }

    /// A world of this size and length instead, configured alike, with faults drawn anew for it.
    pub fn resized(mut self, workers: u32, shards: u32, fault_us: u64) -> Self {
        let setting = Setting {
            workers: u64::from(workers),
            shards: u64::from(shards),
            length_us: fault_us,
            lease_us: self.config.lease_duration.0,
            rate_ppm: u64::from(self.config.clock_rate_error_ppm),
        };
        (self.workers, self.shards, self.fault_us) = (workers, shards, fault_us);
        self.faults = Faults::draw(Draws::new(self.seed), setting);
        self
    }

    /// The same world, and nothing goes wrong in it.
    pub fn without_faults(mut self) -> Self {
        self.faults = Faults::default();
        self
    }

    /// The configuration in one line.
    pub fn summary(&self) -> String {
        let Config {
            lease_duration,
            renew_interval,
            scan_interval,
            initial_position,
            ..
        } = &self.config;
        format!(
            "{} workers, {} shards, {} s of faults, lease {lease_duration}, renew {renew_interval}, scan {scan_interval}, \
             start {initial_position:?}",
            self.workers,
            self.shards,
            self.fault_us / 1_000_000
        )
    }
}

fn config(draws: Draws) -> Config {
    let initial_position = match draws.below("initial", 0, 4) {
        0 => InitialPosition::Latest,
        1 => InitialPosition::AtTimestamp(Wall(
            EPOCH_MS - draws.between("initial", 1, 0, STREAM_AGE_MS as u64) as i64,
        )),
        _ => InitialPosition::TrimHorizon,
    };
    let named = Config {
        table: "app".into(),
        stream: "orders".into(),
        initial_position,
        ..Config::default()
    };
    if draws.below("shrunk", 0, 8) == 0 {
        return Config {
            cleanup_delay: cleanup(draws, named.lease_duration.0),
            ..named
        };
    }
    let ms = |name: &str, low: u64, high: u64| {
        Span(draws.magnitude(name, 0, low.max(1) * 1_000, high.max(1) * 1_000))
    };
    let lease_duration = ms("lease", 1_000, 10_000);
    let clock_rate_error_ppm = [0, 1_000, 10_000, 50_000][draws.below("rate-error", 0, 4) as usize];
    let sized = Config {
        lease_duration,
        clock_rate_error_ppm,
        ..named
    };
    let hold = sized.hold();
    let share =
        |name: &str, low: u64, high: u64, of: Span| Span(draws.between(name, 0, of.0 / low, of.0 / high));
    Config {
        renew_interval: share("renew", 10, 3, hold),
        scan_interval: share("scan", 4, 1, lease_duration.times(2)),
        scan_page_limit: match draws.below("page", 0, 3) {
            0 => 0,
            1 => draws.between("page", 1, 1, 5) as u32,
            _ => draws.magnitude("page", 2, 1, 100) as u32,
        },
        table_timeout: share("table-timeout", 10, 3, hold),
        stream_timeout: ms("stream-timeout", 200, 5_000),
        retry_min: ms("retry-min", 5, 100),
        retry_max: share("retry-max", 8, 4, lease_duration),
        checkpoint_interval: Span(draws.between("checkpoint", 0, 0, lease_duration.0)),
        max_steals: draws.between("steals", 0, 1, 4) as u32,
        settle_stolen: draws.below("settle", 0, 8) != 0,
        audit_confidence: draws.between("audit", 0, 1, 3) as u32,
        cleanup_delay: cleanup(draws, lease_duration.0),
        bootstrap_delay: Span(draws.between("bootstrap", 0, 0, 3_000_000)),
        max_creates: draws.magnitude("creates", 0, 1, 16) as u32,
        shutdown_timeout: ms("shutdown", 500, 30_000),
        handler_backoff: ms("backoff", 10, 500),
        reader: ReaderConfig {
            max_records: draws.magnitude("records", 0, 1, 1_000) as u32,
            min_interval: Span::from_millis(draws.between("read", 0, 200, 500)),
            idle_interval: Span::from_millis(draws.between("idle", 0, 200, 2_000)),
            bytes_per_second: draws.magnitude("bytes", 0, 50_000, 2_000_000),
            buffer_bytes: draws.magnitude("buffer", 0, 10_000, 8 << 20),
            buffer_batches: draws.between("batches", 0, 1, 4) as u32,
        },
        ..sized
    }
}

fn cleanup(draws: Draws, lease_us: u64) -> Span {
    match draws.below("cleanup", 0, 4) {
        0 => Span::ZERO,
        _ => Span(draws.magnitude("cleanup", 1, lease_us, lease_us.saturating_mul(20))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_drawn_configuration_is_accepted() {
        for seed in 0..5_000 {
            let plan = Plan::draw(seed);
            assert_eq!(plan.config.check(), Ok(()), "seed {seed}");
            assert!(plan.workers >= 1 && plan.shards >= 1);
        }
    }

    #[test]
    fn every_family_is_on_in_about_half_of_the_worlds() {
        let on = |count: &dyn Fn(&Faults) -> bool| {
            (0..1_000).filter(|&seed| count(&Plan::draw(seed).faults)).count()
        };
        type Family<'a> = (&'a str, &'a dyn Fn(&Faults) -> bool);
        let families: [Family<'_>; 8] = [
            ("lost answer", &|f| f.call.lost_answer > 0),
            ("late", &|f| f.call.late > 0),
            ("outage", &|f| !f.outage.outages.is_empty()),
            ("stale", &|f| f.table.stale > 0),
            ("reshard", &|f| !f.stream.reshards.is_empty()),
            ("interruptions on write", &|f| f.process.crash_on_write > 0),
            ("rate", &|f| !f.clock.rate_ppm.is_empty()),
            ("handler fails", &|f| f.application.fails > 0),
        ];
        for (name, family) in families {
            let count = on(family);
            assert!((430..570).contains(&count), "{name}: {count} of 1000");
        }
    }
}
