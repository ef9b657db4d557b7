//! The bounds of a search.

use crate::deliberate::Bug;
use crate::swarm::policies;
use leasehold_engine::config::{Config, ReaderConfig};
use leasehold_engine::format::Format;
use leasehold_engine::time::Span;
use std::fmt;

/// The bounds of a search. The search visits every state within the bounds.
#[derive(Clone, Debug)]
pub struct Scope {
    /// The format of the table. A format with direct contact between workers is not searched.
    pub format: Format,
    /// Whether workers request leases from each other in KCL's tables. Otherwise workers steal.
    pub asks: bool,
    /// The number of workers.
    pub workers: usize,
    /// The number of shards at the beginning; the first shard may be split once.
    pub shards: u32,
    /// The number of records of each shard. A child has one record.
    pub records: u32,
    /// The first shard may be split, at any moment.
    pub split: bool,
    /// The number of faults on one path, of all kinds together.
    pub faults: u32,
    /// The number of slow requests on one path. Of a slow request, neither the execution nor its time nor the answer's
    /// time is certain.
    pub slow: u32,
    /// The number of pauses of a worker, of any length.
    pub pauses: u32,
    /// The number of crashes. A new life begins at once.
    pub crashes: u32,
    /// The number of graceful shutdowns.
    pub stops: u32,
    /// Choices end at this time; later all must come right by itself.
    pub horizon: Span,
    /// The greatest length of a path, in steps; longer paths are not judged for coming right. None: no limit.
    pub depth: Option<u32>,
    /// The deliberate bug switched on. If absent, all bugs are off. Only a program built from the copy has bugs.
    pub bug: Option<Bug>,
}

impl Default for Scope {
    fn default() -> Self {
        Self {
            format: Format::Kcl,
            asks: false,
            workers: 2,
            shards: 1,
            records: 2,
            split: true,
            faults: 2,
            slow: 1,
            pauses: 1,
            crashes: 1,
            stops: 1,
            horizon: Span::from_secs(24),
            depth: None,
            bug: None,
        }
    }
}

/// The greatest error of a clock's rate: the first worker's clock is as slow as promised, all other clocks as fast.
pub(super) const RATE_ERROR_PPM: i64 = 10_000;

impl Scope {
    /// A configuration with few deadlines: occasional events happen about once in the life of a lease.
    pub fn config(&self) -> Config {
        Config::default()
            .with_policies(policies(self.format, self.asks))
            .with_table("app")
            .with_stream("orders")
            .with_lease_duration(Span::from_secs(10))
            .with_clock_rate_error_ppm(RATE_ERROR_PPM as u32)
            .with_renew_interval(Span::from_millis(4_500))
            .with_scan_interval(Span::from_secs(8))
            .with_quick_scan_interval(Span::from_secs(8))
            .with_table_timeout(Span::from_secs(2))
            .with_stream_timeout(Span::from_secs(2))
            .with_stream_lag(Span::from_secs(8))
            .with_retry_min(Span::from_secs(1))
            .with_retry_max(Span::from_secs(1))
            .with_checkpoint_interval(Span::ZERO)
            .with_audit_confidence(1)
            .with_cleanup_delay(Span::ZERO)
            .with_bootstrap_delay(Span::ZERO)
            .with_fleet_tables(false)
            .with_shutdown_timeout(Span::from_secs(6))
            .with_handler_backoff(Span::from_secs(1))
            .with_reader(
                ReaderConfig::default()
                    .with_max_records(1)
                    .with_min_interval(Span::from_secs(6))
                    .with_idle_interval(Span::from_secs(6))
                    .with_buffer_batches(1),
            )
    }
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let asks = if self.asks { ", leases are asked for" } else { "" };
        let split = if self.split { ", a split" } else { "" };
        write!(
            f,
            "{}{asks}: {} workers, {} shards of {} records{split}; at most {} faults: {} slow requests, {} pauses, {} crashes, {} \
             shutdowns; {} long",
            self.format,
            self.workers,
            self.shards,
            self.records,
            self.faults,
            self.slow,
            self.pauses,
            self.crashes,
            self.stops,
            self.horizon
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_configuration_is_one_that_works() {
        assert_eq!(Scope::default().config().check(), Ok(()));
    }
}
