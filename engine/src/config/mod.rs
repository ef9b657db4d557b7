//! How a worker behaves. Checked once, at the edge: a bad value is refused with a sentence, never adjusted.
//!
//! | file | what is in it |
//! |---|---|
//! | `options` | every option, once: name, meaning, default, range; fields, getters, setters and the list come from it |
//! | `text` | options by name, from texts and as texts |
//! | `streams` | the streams of a worker that reads several |
//! | `check` | the limits, and the error that names the option, what was expected and what was found |

mod check;
mod options;
mod streams;
#[cfg(test)]
mod tests;
mod text;

pub use check::BadConfig;
pub use options::{Config, FleetConfig, MembersConfig, OptionInfo, ReaderConfig};
pub use streams::{StreamSource, Streams};
pub use text::BadOption;

use crate::fleet::FleetTable;
use crate::time::{Span, Wall};
use serde::{Deserialize, Serialize};
use std::fmt;

/// How long the lease table may take to become usable after a worker first asked for it (KCL waits as long).
pub const TABLE_PATIENCE: Span = Span::from_secs(600);

/// The default memory for records: the records of 128 shards in a second. The network of a worker sets a tighter limit
/// for more shards at their full rate.
pub const MEMORY_BUDGET: u64 = 256 << 20;

/// Where reading begins in an unread shard.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum InitialPosition {
    /// At the oldest record.
    TrimHorizon,
    /// With the records that arrive after the creation of its lease, or after the first take if a worker of KCL created
    /// the lease. Every owner begins at this place until a checkpoint is stored.
    Latest,
    /// At the first record at or after a time. The lease keeps the time, so a later change of the option has no effect
    /// on the lease.
    AtTimestamp(Wall),
}

impl InitialPosition {
    /// Whether workers with the two positions may be of one fleet. The rows hold the effective time, so times may
    /// differ.
    fn begins_alike(self, other: Self) -> bool {
        std::mem::discriminant(&self) == std::mem::discriminant(&other)
    }
}

/// The reaction when a handler has failed too often with one record.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum FailureAction {
    /// No more batches of the shard are handed over until the application resumes the shard. The lease is kept.
    #[default]
    Stop,
    /// The record is given to the dead-letter sink and counts as processed.
    SetAside,
}

/// The measure by which the leader of a fleet of KCL 3.x shares the leases out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum AssignBy {
    /// By the load of the workers.
    #[default]
    Load,
    /// By the number of leases.
    Number,
}

/// How the shards of a stream are read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum ReadMode {
    /// By GetRecords, again and again.
    #[default]
    Polling,
    /// By subscription (SubscribeToShard). Without a consumer no shard is read.
    FanOut,
    /// By subscription; and by polling where there is no consumer, and while the service refuses a subscription.
    Auto,
}

impl ReadMode {
    /// Whether shards are read by polling alone.
    pub fn is_polling(&self) -> bool {
        *self == ReadMode::Polling
    }
}

/// In the words of the command line: `trim-horizon`, `latest`, or a time as of RFC 3339.
impl fmt::Display for InitialPosition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            InitialPosition::TrimHorizon => f.write_str("trim-horizon"),
            InitialPosition::Latest => f.write_str("latest"),
            InitialPosition::AtTimestamp(time) => time.fmt(f),
        }
    }
}

impl Config {
    /// The bytes of records that may be in transit or wait to be processed: `memory_budget`, or its default.
    pub fn memory(&self) -> u64 {
        match self.memory_budget {
            0 => MEMORY_BUDGET,
            bytes => bytes,
        }
    }

    /// The name or the ARN of the consumer for subscriptions: `reader.consumer`, or its default.
    pub fn consumer(&self) -> &str {
        match self.reader.consumer.as_str() {
            "" => &self.table,
            consumer => consumer,
        }
    }

    /// The time for workers that start together to show themselves to each other: for this time after its first count
    /// of leases, a worker leaves half of the leases that other workers may be about to take. An eighth of the scan
    /// interval, or five times `retry_min` if that is more, and no more than the scan interval.
    pub fn meeting(&self) -> Span {
        let least = self.scan_interval.per(8);
        least.max(self.retry_min.times(5)).min(self.scan_interval)
    }

    /// How long a holder believes in a lease, counted from the moment when it *emitted* the acknowledged write.
    ///
    /// With clock rate errors of at most `e`, the belief ends before `lease_duration` has passed on any other clock.
    pub fn hold(&self) -> Span {
        let e = u64::from(self.clock_rate_error_ppm.min(999_999));
        self.lease_duration.scaled(1_000_000 - e, 1_000_000 + e)
    }

    /// The name of a table in which workers of KCL 3.0 to 3.4 know each other.
    pub fn fleet_table(&self, table: FleetTable) -> String {
        let given = self.given_fleet_table(table);
        match given.is_empty() {
            true => table.default_name(&self.table),
            false => given.to_owned(),
        }
    }

    /// The length of this name, without a text: workers ask for the length at each input.
    pub(crate) fn fleet_table_length(&self, table: FleetTable) -> usize {
        match self.given_fleet_table(table) {
            "" => table.default_length(&self.table),
            given => given.len(),
        }
    }

    fn given_fleet_table(&self, table: FleetTable) -> &str {
        match table {
            FleetTable::Workers => &self.worker_metrics_table,
            FleetTable::Coordinator => &self.coordinator_table,
        }
    }

    /// The first option that must agree within a fleet, and differs between two workers.
    pub fn disagreement(&self, other: &Config) -> Option<&'static str> {
        [
            ("table", self.table == other.table),
            ("stream", self.stream == other.stream),
            ("initial_position", self.initial_position.begins_alike(other.initial_position)),
            ("policies", self.policies == other.policies),
            ("lease_duration", self.lease_duration == other.lease_duration),
            ("members", self.members == other.members),
            ("clock_rate_error_ppm", self.clock_rate_error_ppm == other.clock_rate_error_ppm),
        ]
        .into_iter()
        .find_map(|(option, agrees)| (!agrees).then_some(option))
    }

    /// How long a finished lease must be kept if it is ever removed. A worker may plan with a view of two scan intervals
    /// ago, and carries out its plan within two lease durations and a request.
    pub fn least_cleanup_delay(&self) -> Span {
        self.scan_interval.times(2) + self.lease_duration.times(2) + self.table_timeout
    }
}

impl FleetConfig {
    /// The configuration of a recorded worker whose trace does not tell of this option: older workers did not look in
    /// the index of owners.
    pub(crate) fn of_before() -> Self {
        Self::default().with_discovery_interval(Span::ZERO)
    }

    pub(crate) fn is_of_before(&self) -> bool {
        *self == Self::of_before()
    }
}

impl MembersConfig {
    /// So many intervals of silence count as death.
    const SILENCE: u64 = 5;

    /// How long a member may be silent, and how long a lease lasts.
    pub fn expiry(&self) -> Span {
        self.check_interval.times(Self::SILENCE)
    }

    /// How long a leader may be silent.
    pub fn lead_expiry(&self) -> Span {
        self.lead_interval.times(Self::SILENCE)
    }

    pub(crate) fn is_default(&self) -> bool {
        *self == Self::default()
    }
}
