//! The limits of options.

use super::{Config, OptionInfo};
use crate::policy::{Assign, Finished};
use crate::shown::is_hidden;
use crate::time::Span;
use std::fmt;

const DAY: Span = Span::from_secs(86_400);

/// A configuration that cannot work: the option, the expected and the found value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadConfig {
    option: &'static str,
    expected: String,
    found: String,
}

impl BadConfig {
    /// The option, such as `reader.max_records`.
    pub fn option(&self) -> &'static str {
        self.option
    }
}

impl fmt::Display for BadConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "option `{}`: expected {}, found {}", self.option, self.expected, self.found)
    }
}

impl std::error::Error for BadConfig {}

/// Refuses a value unless it is `ok`. The table of options says what was expected.
fn within_range(option: &'static str, ok: bool, found: impl fmt::Display) -> Result<(), BadConfig> {
    let range = |info: &&OptionInfo| info.name == option;
    let expected = Config::options().find(range).map_or("", |info| info.range);
    ensure(option, ok, expected, found)
}

/// Refuses a value unless `ok` holds, where the expected value depends on other options.
fn ensure(
    option: &'static str, ok: bool, expected: impl Into<String>, found: impl fmt::Display,
) -> Result<(), BadConfig> {
    if ok {
        return Ok(());
    }
    Err(BadConfig { option, expected: expected.into(), found: found.to_string() })
}

/// One record of the largest size, in transit.
const LEAST_MEMORY: u64 = 2 << 20;

/// The longest name of a worker, in bytes. DynamoDB takes keys of up to 2,048 bytes, and in some formats a worker's name with what
/// follows it is a key.
const LONGEST_WORKER_ID: usize = 1_024;

fn is_name(name: &str, least: usize, most: usize) -> bool {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.');
    (least..=most).contains(&name.len()) && name.bytes().all(allowed)
}

impl Config {
    /// Checks a name for a worker, before any row or message bears the name.
    ///
    /// # Errors
    /// If the name is empty, longer than 1,024 bytes, or holds a character that could forge a line of a log: see
    /// [`is_hidden`](crate::shown::is_hidden).
    pub fn check_worker_id(name: &str) -> Result<(), BadConfig> {
        let short: String = name.chars().take(80).collect();
        let found = match name.len() {
            0 => "none".to_owned(),
            1..=LONGEST_WORKER_ID => format!("{short:?}"),
            bytes => format!("{bytes} bytes, {short:?} and more"),
        };
        let fits = (1..=LONGEST_WORKER_ID).contains(&name.len()) && !name.chars().any(is_hidden);
        let expected = "a name of 1 to 1,024 bytes without control characters";
        ensure("worker_id", fits, expected, found)
    }

    /// Checks the name of a worker, if the configuration gives one.
    ///
    /// # Errors
    /// If the name is refused by [`check_worker_id`](Self::check_worker_id), or is missing although `unique_names` promises something of it.
    pub fn check_given_worker_id(&self, name: Option<&str>) -> Result<(), BadConfig> {
        match name {
            Some(name) => Self::check_worker_id(name),
            None if self.unique_names => ensure(
                "worker_id",
                false,
                "a name that no other process has, as `unique_names` is on",
                "none".to_owned(),
            ),
            None => Ok(()),
        }
    }

    /// Checks the name of an application; its table has the same name.
    ///
    /// # Errors
    /// If DynamoDB has no such names for tables.
    pub fn check_table(name: &str) -> Result<(), BadConfig> {
        within_range("table", is_name(name, 3, 255), format!("{name:?}"))
    }

    /// Checks the name of a stream.
    ///
    /// # Errors
    /// If Kinesis has no such names.
    pub fn check_stream(name: &str) -> Result<(), BadConfig> {
        within_range("stream", is_name(name, 1, 128), format!("{name:?}"))
    }

    /// Checks the name of a consumer for subscriptions. A text that begins as an ARN passes.
    ///
    /// # Errors
    /// If Kinesis has no such names.
    pub fn check_consumer(name: &str) -> Result<(), BadConfig> {
        let fits = name.starts_with("arn:") || is_name(name, 1, 128);
        within_range("reader.consumer", fits, format!("{name:?}"))
    }

    /// Checks every value against its range and against the other options.
    ///
    /// # Errors
    /// The first option that cannot work, with the expected and the found value.
    pub fn check(&self) -> Result<(), BadConfig> {
        self.check_names()?;
        self.check_leases()?;
        self.check_requests()?;
        self.check_periods()?;
        if self.policies.assign == Assign::Rank {
            self.check_ranked()?;
        }
        self.check_memory()?;
        self.check_reader()
    }

    fn check_memory(&self) -> Result<(), BadConfig> {
        let budget = self.memory_budget;
        within_range("memory_budget", budget == 0 || budget >= LEAST_MEMORY, budget)?;
        within_range("max_reads", self.max_reads >= 1, self.max_reads)?;
        within_range("max_table_requests", self.max_table_requests >= 2, self.max_table_requests)
    }

    fn check_names(&self) -> Result<(), BadConfig> {
        let delay = self.stream_cleanup_delay;
        let long = delay >= self.lease_duration.times(3) && delay <= DAY.times(30);
        within_range("stream_cleanup_delay", delay == Span::ZERO || long, delay)?;
        Self::check_table(&self.table)?;
        for (option, name) in [
            ("worker_metrics_table", &self.worker_metrics_table),
            ("coordinator_table", &self.coordinator_table),
        ] {
            within_range(option, name.is_empty() || is_name(name, 3, 255), format!("{name:?}"))?;
        }
        if !self.streams.is_empty() {
            return self.check_streams();
        }
        Self::check_stream(&self.stream)
    }

    fn check_streams(&self) -> Result<(), BadConfig> {
        let option = "streams";
        if let Some(id) = self.streams.repeated() {
            ensure(option, false, "each stream once", format!("{id} twice"))?;
        }
        ensure(
            option,
            self.policies.are_kcls(),
            "none, since only KCL's table holds leases of several streams",
            "some",
        )?;
        ensure("stream", self.stream.is_empty(), "none beside `streams`", format!("{:?}", self.stream))
    }

    fn check_leases(&self) -> Result<(), BadConfig> {
        let (lease, rate_error) = (self.lease_duration, self.clock_rate_error_ppm);
        within_range("lease_duration", lease >= Span::from_millis(100) && lease <= DAY, lease)?;
        within_range("clock_rate_error_ppm", rate_error <= 200_000, rate_error)?;
        ensure(
            "renew_interval",
            self.renew_interval >= Span::from_millis(10) && self.renew_interval.times(2) <= self.hold(),
            format!("10 ms to half of the {} a holder believes in a lease", self.hold()),
            self.renew_interval,
        )?;
        let scan = self.scan_interval;
        within_range("scan_interval", scan >= Span::from_millis(10) && scan <= DAY, scan)?;
        let lag = self.stream_lag;
        within_range("stream_lag", lag >= Span::from_millis(10) && lag <= Span::from_secs(3_600), lag)?;
        for (option, span) in
            [("quick_scan_interval", self.quick_scan_interval), ("hand_over_timeout", self.hand_over_timeout)]
        {
            within_range(option, span >= Span::from_millis(10) && span <= DAY, span)?;
        }
        Ok(())
    }

    fn check_requests(&self) -> Result<(), BadConfig> {
        let (table, stream) = (self.table_timeout, self.stream_timeout);
        ensure(
            "table_timeout",
            table >= Span::from_millis(10) && table < self.hold(),
            format!("10 ms to below the {} a holder believes in a lease", self.hold()),
            table,
        )?;
        within_range(
            "stream_timeout",
            stream >= Span::from_millis(10) && stream <= Span::from_secs(300),
            stream,
        )?;
        let (least, most) = (self.retry_min, self.retry_max);
        within_range(
            "retry_min",
            least >= Span::from_millis(1) && least <= most && most <= Span::from_secs(300),
            format!("{least} and {most}"),
        )
    }

    fn check_periods(&self) -> Result<(), BadConfig> {
        let at_most_a_day = |option: &'static str, span: Span| within_range(option, span <= DAY, span);
        at_most_a_day("checkpoint_interval", self.checkpoint_interval)?;
        ensure(
            "cleanup_delay",
            self.cleanup_delay == Span::ZERO
                || self.cleanup_delay >= self.least_cleanup_delay()
                || self.policies.finished == Finished::Never,
            format!(
                "0 (never) or at least {}, as it takes for every worker to have seen that a lease ended",
                self.least_cleanup_delay()
            ),
            self.cleanup_delay,
        )?;
        within_range("audit_confidence", self.audit_confidence >= 1, self.audit_confidence)?;
        within_range("max_creates", self.max_creates >= 1, self.max_creates)?;
        at_most_a_day("bootstrap_delay", self.bootstrap_delay)?;
        at_most_a_day("shutdown_timeout", self.shutdown_timeout)?;
        at_most_a_day("flush_timeout", self.flush_timeout)?;
        at_most_a_day("stall_after", self.stall_after)?;
        at_most_a_day("handler_timeout", self.handler_timeout)?;
        at_most_a_day("give_up_after", self.give_up_after)?;
        at_most_a_day("fleet.migration_wait", self.fleet.migration_wait)?;
        let discovery = self.fleet.discovery_interval;
        within_range(
            "fleet.discovery_interval",
            discovery.is_zero() || discovery >= Span::from_millis(100) && discovery <= DAY,
            discovery,
        )?;
        let report = self.fleet.report_interval;
        within_range(
            "fleet.report_interval",
            report >= Span::from_secs(1) && report <= Span::from_secs(30),
            report,
        )
    }

    /// Conditions where leases are assigned by rank.
    fn check_ranked(&self) -> Result<(), BadConfig> {
        let members = &self.members;
        ensure(
            "lease_duration",
            self.lease_duration == members.expiry(),
            format!(
                "{}, five times `members.check_interval`, as all members of the fleet count",
                members.expiry()
            ),
            self.lease_duration,
        )?;
        ensure(
            "members.lead_interval",
            members.lead_interval >= members.check_interval && members.lead_interval <= DAY,
            format!("{} (`members.check_interval`) to 24 h", members.check_interval),
            members.lead_interval,
        )?;
        ensure(
            "max_leases",
            self.max_leases == 0,
            "0 (no limit): leases are assigned by rank, and no other worker would take what is left",
            self.max_leases,
        )
    }

    fn check_consumers(&self) -> Result<(), BadConfig> {
        for source in self.streams.as_slice() {
            let mode = source.reader_mode.unwrap_or(self.reader.mode);
            if !mode.is_polling() {
                Self::check_consumer(source.consumer.as_deref().unwrap_or(self.consumer()))?;
            }
        }
        if self.streams.is_empty() && !self.reader.mode.is_polling() {
            Self::check_consumer(self.consumer())?;
        }
        Ok(())
    }

    fn check_reader(&self) -> Result<(), BadConfig> {
        self.check_consumers()?;
        let reader = &self.reader;
        within_range("reader.max_records", (1..=10_000).contains(&reader.max_records), reader.max_records)?;
        within_range(
            "reader.min_interval",
            reader.min_interval >= Span::from_millis(200),
            reader.min_interval,
        )?;
        within_range(
            "reader.idle_interval",
            reader.idle_interval <= Span::from_secs(240),
            reader.idle_interval,
        )?;
        within_range("reader.bytes_per_second", reader.bytes_per_second >= 1, reader.bytes_per_second)?;
        within_range("reader.buffer_batches", reader.buffer_batches >= 1, reader.buffer_batches)?;
        within_range("reader.kept_batches", reader.kept_batches >= 1, reader.kept_batches)
    }
}
