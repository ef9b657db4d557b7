//! How a worker behaves. Checked once, at the edge: a bad value is refused with a sentence, never adjusted.

pub use crate::members::MembersConfig;
use crate::policy::{Assign, Finished, Policies};
use crate::time::{Span, Wall};
use serde::{Deserialize, Serialize};
use std::fmt;

/// How long the lease table may take to become usable after a worker first asked for it (KCL waits as long).
pub const TABLE_PATIENCE: Span = Span::from_secs(600);

/// Where a shard nobody has read yet is started.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum InitialPosition {
    /// At the oldest record.
    TrimHorizon,
    /// With what arrives after the lease was first taken.
    Latest,
    /// At the first record at or after a time.
    AtTimestamp(Wall),
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

/// The configuration of a worker. All of it is recorded in a trace's first record.
///
/// What a fleet promises each other must be the same on all of its workers: `table`, `stream`, `initial_position`,
/// `lease_duration` and `clock_rate_error_ppm`. A holder counts on nobody taking its lease before its own `lease_duration`
/// has passed, so a change of these needs all workers to be stopped. Everything else may differ, for instance while a
/// fleet is replaced one by one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// The lease table's name; by KCL's custom the application's name.
    pub table: String,
    /// The stream's name.
    pub stream: String,
    /// Where shards without a lease are started. A lease that the table holds goes on from its checkpoint, whatever this says;
    /// a worker that finds such leases says so ([`Notice::Continued`](crate::notice::Notice::Continued)), unless this is the
    /// default, [`InitialPosition::TrimHorizon`].
    pub initial_position: InitialPosition,
    /// How long a lease lasts without a renewal, as an observer counts (KCL: `failoverTimeMillis`).
    pub lease_duration: Span,
    /// The largest error of the *rate* of any worker's monotonic clock, in parts per million. A holder believes in its
    /// lease for `lease_duration * (1 - e) / (1 + e)`, so that its belief ends before any observer's patience.
    pub clock_rate_error_ppm: u32,
    /// How often a lease is renewed. A checkpoint counts as a renewal.
    pub renew_interval: Span,
    /// The pause between the end of one scan of the lease table and the beginning of the next.
    pub scan_interval: Span,
    /// No more than this many rows a scan page; 0: as many as a page holds.
    pub scan_page_limit: u32,
    /// How long the answer of a table operation is waited for.
    pub table_timeout: Span,
    /// How long the answer of a stream operation is waited for.
    pub stream_timeout: Span,
    /// The least pause before a failed operation is tried again; grows with every failure in a row.
    pub retry_min: Span,
    /// The greatest pause before a failed operation is tried again.
    pub retry_max: Span,
    /// How often progress is written when nobody asks for it.
    pub checkpoint_interval: Span,
    /// No more than this many leases at a time; 0: no limit. Shards beyond what all workers may have are read by nobody, and a
    /// worker that has what it may have compares no further leases with the stream.
    pub max_leases: u32,
    /// No more than this many leases stolen from one busier worker after one scan.
    pub max_steals: u32,
    /// Whether a stolen lease is left idle until its former owner must know. Without it, two workers may process the
    /// shard for up to a renewal interval; with it, none does for a lease duration.
    pub settle_stolen: bool,
    /// A gap in the hash space must be seen by this many scans in a row before shards are listed to close it.
    pub audit_confidence: u32,
    /// How long a wholly processed lease is kept at least before it may be removed; 0: it is never removed. No less than
    /// [`least_cleanup_delay`](Self::least_cleanup_delay) of any worker of the fleet: one whose view is older than that would
    /// create anew what was processed and removed. Of no effect where rows are never removed.
    pub cleanup_delay: Span,
    /// The longest wait, drawn at random, before an empty table is filled.
    pub bootstrap_delay: Span,
    /// No more than this many rows created at the same time.
    pub max_creates: u32,
    /// How long a shutdown may take before handlers are aborted and leases are left to expire.
    pub shutdown_timeout: Span,
    /// The pause before a batch is handed over again after its handler failed; grows to `retry_max`.
    pub handler_backoff: Span,
    /// A lease that is held for this long without anything of its shard being processed, although something is or may be
    /// there, is reported with the reason; again whenever the time has doubled. 0: never.
    pub stall_after: Span,
    /// How shards are read.
    pub reader: ReaderConfig,
    /// What follows from the table's format: that of its [`Dialect`](crate::dialect::Dialect). The default is KCL's.
    pub policies: Policies,
    /// How workers tell each other that they live, where leases are assigned by rank.
    #[serde(skip_serializing_if = "MembersConfig::is_default")]
    pub members: MembersConfig,
}

/// How one shard is read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ReaderConfig {
    /// No more than this many records a call; Kinesis allows 10,000.
    pub max_records: u32,
    /// The least time between two calls for one shard. Kinesis allows five calls a second and shard, over all readers.
    pub min_interval: Span,
    /// The pause after an answer that was empty or at the tip.
    pub idle_interval: Span,
    /// No more than this many bytes a second and shard; Kinesis allows 2 MB.
    pub bytes_per_second: u64,
    /// Stop fetching while this many bytes wait to be processed.
    pub buffer_bytes: u64,
    /// Stop fetching while this many batches wait to be processed.
    pub buffer_batches: u32,
}

impl Default for ReaderConfig {
    fn default() -> Self {
        Self {
            max_records: 10_000,
            min_interval: Span::from_millis(250),
            idle_interval: Span::from_secs(1),
            bytes_per_second: 2_000_000,
            buffer_bytes: 8 << 20,
            buffer_batches: 4,
        }
    }
}

impl Default for Config {
    fn default() -> Self {
        Self {
            table: String::new(),
            stream: String::new(),
            initial_position: InitialPosition::TrimHorizon,
            lease_duration: Span::from_secs(10),
            clock_rate_error_ppm: 10_000,
            renew_interval: Span::from_millis(3_300),
            scan_interval: Span::from_millis(20_050),
            scan_page_limit: 0,
            table_timeout: Span::from_secs(3),
            stream_timeout: Span::from_secs(15),
            retry_min: Span::from_millis(100),
            retry_max: Span::from_secs(5),
            checkpoint_interval: Span::from_secs(5),
            max_leases: 0,
            max_steals: 1,
            settle_stolen: true,
            audit_confidence: 3,
            cleanup_delay: Span::from_secs(300),
            bootstrap_delay: Span::from_secs(3),
            max_creates: 8,
            shutdown_timeout: Span::from_secs(30),
            handler_backoff: Span::from_millis(500),
            stall_after: Span::from_secs(60),
            reader: ReaderConfig::default(),
            policies: Policies::default(),
            members: MembersConfig::default(),
        }
    }
}

/// A configuration that cannot work, and what would.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadConfig {
    option: &'static str,
    expected: String,
    found: String,
}

impl fmt::Display for BadConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "option `{}`: expected {}, found {}",
            self.option, self.expected, self.found
        )
    }
}

impl std::error::Error for BadConfig {}

impl Config {
    /// How long workers that start together have to show themselves to each other: for so long after it first counted leases,
    /// a worker leaves to others half of what they may be about to take. An eighth of the scan interval, or five times
    /// `retry_min` if that is more, and no more than the scan interval.
    pub fn meeting(&self) -> Span {
        let least = self.scan_interval.per(8);
        least.max(self.retry_min.times(5)).min(self.scan_interval)
    }

    /// How long a holder believes in a lease, counted from when it *emitted* the write that was acknowledged.
    ///
    /// With clock rate errors of at most `e`, this ends before `lease_duration` has passed on any other clock.
    pub fn hold(&self) -> Span {
        let e = u64::from(self.clock_rate_error_ppm.min(999_999));
        self.lease_duration.scaled(1_000_000 - e, 1_000_000 + e)
    }

    /// The first option in which two workers differ although the workers of a fleet must agree on it.
    pub fn disagreement(&self, other: &Config) -> Option<&'static str> {
        [
            ("table", self.table == other.table),
            ("stream", self.stream == other.stream),
            (
                "initial_position",
                self.initial_position == other.initial_position,
            ),
            ("policies", self.policies == other.policies),
            ("lease_duration", self.lease_duration == other.lease_duration),
            ("members", self.members == other.members),
            (
                "clock_rate_error_ppm",
                self.clock_rate_error_ppm == other.clock_rate_error_ppm,
            ),
        ]
        .into_iter()
        .find_map(|(option, agrees)| (!agrees).then_some(option))
    }

    /// How long a finished lease must be kept if it is ever removed. A worker may plan with a view of two scan intervals
    /// ago, and carries out its plan within two lease durations and a request.
    pub fn least_cleanup_delay(&self) -> Span {
        self.scan_interval.times(2) + self.lease_duration.times(2) + self.table_timeout
    }

    /// Checks every value against its limits and against the others.
    ///
    /// # Errors
    /// The first option that cannot work, with what was expected and what was found.
    pub fn check(&self) -> Result<(), BadConfig> {
        fn ensure(
            ok: bool,
            option: &'static str,
            expected: impl Into<String>,
            found: impl fmt::Display,
        ) -> Result<(), BadConfig> {
            if ok {
                Ok(())
            } else {
                Err(BadConfig {
                    option,
                    expected: expected.into(),
                    found: found.to_string(),
                })
            }
        }
        let name_ok = |name: &str, min: usize, max: usize| {
            (min..=max).contains(&name.len())
                && name
                    .bytes()
                    .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'.'))
        };
        let day = Span::from_secs(86_400);
        ensure(
            name_ok(&self.table, 3, 255),
            "table",
            "3 to 255 of a-z, A-Z, 0-9, '_', '-', '.'",
            format!("{:?}", self.table),
        )?;
        ensure(
            name_ok(&self.stream, 1, 128),
            "stream",
            "1 to 128 of a-z, A-Z, 0-9, '_', '-', '.'",
            format!("{:?}", self.stream),
        )?;
        ensure(
            self.lease_duration >= Span::from_millis(100) && self.lease_duration <= day,
            "lease_duration",
            "100 ms to 24 h",
            self.lease_duration,
        )?;
        ensure(
            self.clock_rate_error_ppm <= 200_000,
            "clock_rate_error_ppm",
            "at most 200000 (20 %)",
            self.clock_rate_error_ppm,
        )?;
        ensure(
            self.renew_interval >= Span::from_millis(10) && self.renew_interval.times(2) <= self.hold(),
            "renew_interval",
            format!(
                "10 ms to half of the {} a holder believes in a lease",
                self.hold()
            ),
            self.renew_interval,
        )?;
        ensure(
            self.scan_interval >= Span::from_millis(10) && self.scan_interval <= day,
            "scan_interval",
            "10 ms to 24 h",
            self.scan_interval,
        )?;
        ensure(
            self.table_timeout >= Span::from_millis(10) && self.table_timeout < self.hold(),
            "table_timeout",
            format!("10 ms to below the {} a holder believes in a lease", self.hold()),
            self.table_timeout,
        )?;
        ensure(
            self.stream_timeout >= Span::from_millis(10) && self.stream_timeout <= Span::from_secs(300),
            "stream_timeout",
            "10 ms to 300 s",
            self.stream_timeout,
        )?;
        ensure(
            self.retry_min >= Span::from_millis(1)
                && self.retry_min <= self.retry_max
                && self.retry_max <= Span::from_secs(300),
            "retry_min",
            "1 ms to `retry_max`, which is at most 300 s",
            format!("{} and {}", self.retry_min, self.retry_max),
        )?;
        ensure(
            self.checkpoint_interval <= day,
            "checkpoint_interval",
            "at most 24 h",
            self.checkpoint_interval,
        )?;
        ensure(
            self.cleanup_delay == Span::ZERO
                || self.cleanup_delay >= self.least_cleanup_delay()
                || self.policies.finished == Finished::Never,
            "cleanup_delay",
            format!(
                "0 (never) or at least {}, as it takes for every worker to have seen that a lease ended",
                self.least_cleanup_delay()
            ),
            self.cleanup_delay,
        )?;
        ensure(
            self.audit_confidence >= 1,
            "audit_confidence",
            "at least 1",
            self.audit_confidence,
        )?;
        ensure(
            self.max_creates >= 1,
            "max_creates",
            "at least 1",
            self.max_creates,
        )?;
        ensure(
            self.bootstrap_delay <= day,
            "bootstrap_delay",
            "at most 24 h",
            self.bootstrap_delay,
        )?;
        ensure(
            self.shutdown_timeout <= day,
            "shutdown_timeout",
            "at most 24 h",
            self.shutdown_timeout,
        )?;
        ensure(
            self.stall_after <= day,
            "stall_after",
            "at most 24 h",
            self.stall_after,
        )?;
        if self.policies.assign == Assign::Rank {
            let members = &self.members;
            ensure(
                self.lease_duration == members.expiry(),
                "lease_duration",
                format!(
                    "{}, five times `members.check_interval`, as all members of the fleet count",
                    members.expiry()
                ),
                self.lease_duration,
            )?;
            ensure(
                members.lead_interval >= members.check_interval && members.lead_interval <= day,
                "members.lead_interval",
                format!("{} (`members.check_interval`) to 24 h", members.check_interval),
                members.lead_interval,
            )?;
            ensure(
                self.max_leases == 0,
                "max_leases",
                "0 (no limit): leases are assigned by rank, and nobody else would take what is left",
                self.max_leases,
            )?;
        }
        let reader = &self.reader;
        ensure(
            (1..=10_000).contains(&reader.max_records),
            "reader.max_records",
            "1 to 10000",
            reader.max_records,
        )?;
        ensure(
            reader.min_interval >= Span::from_millis(200),
            "reader.min_interval",
            "at least 200 ms (Kinesis allows five calls a second)",
            reader.min_interval,
        )?;
        ensure(
            reader.idle_interval <= Span::from_secs(240),
            "reader.idle_interval",
            "at most 240 s (an iterator lives 300 s)",
            reader.idle_interval,
        )?;
        ensure(
            reader.bytes_per_second >= 1,
            "reader.bytes_per_second",
            "at least 1",
            reader.bytes_per_second,
        )?;
        ensure(
            reader.buffer_batches >= 1,
            "reader.buffer_batches",
            "at least 1",
            reader.buffer_batches,
        )?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn good() -> Config {
        Config {
            table: "app".into(),
            stream: "orders".into(),
            ..Config::default()
        }
    }

    #[test]
    fn the_defaults_work_once_table_and_stream_are_named() {
        assert_eq!(good().check(), Ok(()));
        assert!(
            Config::default()
                .check()
                .unwrap_err()
                .to_string()
                .contains("option `table`")
        );
    }

    #[test]
    fn a_belief_ends_before_the_patience_of_the_fastest_observer() {
        let config = good();
        let e = config.clock_rate_error_ppm as f64 / 1e6;
        let slow_holder = config.hold().0 as f64 / (1.0 - e);
        let fast_observer = config.lease_duration.0 as f64 / (1.0 + e);
        assert!(slow_holder <= fast_observer);
    }

    #[test]
    fn by_rank_a_lease_lasts_as_long_as_a_member_may_be_silent() {
        let mut config = good();
        (config.policies.assign, config.policies.finished) = (Assign::Rank, Finished::Never);
        let error = config.check().unwrap_err().to_string();
        assert!(
            error.contains("`lease_duration`: expected 300.000s, five times"),
            "{error}"
        );
        config.lease_duration = Span::from_secs(300);
        assert_eq!(config.check(), Ok(()));
        config.max_leases = 3;
        assert!(config.check().unwrap_err().to_string().contains("max_leases"));
        // What is the same for everybody is not in a trace.
        let text = serde_json::to_string(&good()).unwrap();
        assert!(!text.contains("members") && !text.contains("assign"), "{text}");
    }

    #[test]
    fn a_renewal_interval_that_leaves_no_second_try_is_refused() {
        let config = Config {
            renew_interval: Span::from_secs(6),
            ..good()
        };
        let error = config.check().unwrap_err().to_string();
        assert!(
            error.contains("renew_interval") && error.contains("half of the 9.801s"),
            "{error}"
        );
    }
}
