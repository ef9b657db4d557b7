//! The metrics of a worker: one table of their names, and functions for setting metrics.
//!
//! Metrics go to the recorder installed by the program for the crate `metrics`. To add a metric, add a line to the
//! table below and set the metric where its value is known.
//!
//! * Every series has the labels [`COMMON`]. The label `worker` is this life's worker name in the lease table: no two
//!   workers share a series, whatever their given names.
//! * A gauge tells the state at the time of its last update. Gauges are set once a second, whatever the handlers do,
//!   and set to 0 at the end of the worker, even if the worker's future is dropped.
//! * Gauges of one shard are set while this worker holds the shard's lease, and set to 0 once after the lease's end:
//!   the worker then owes nothing. The facade cannot remove a series. An exporter can drop a series without updates:
//!   for
//!   `metrics-exporter-prometheus`, call
//!   `PrometheusBuilder::idle_timeout(MetricKindMask::GAUGE, Some(Duration::from_secs(60)))`, and the series of shards
//!   that are gone disappear after a minute.
//! * Histograms are up to the exporter. Without buckets, `metrics-exporter-prometheus` shows quantiles of one
//!   process, and quantiles cannot be summed over a fleet: configure buckets with `PrometheusBuilder::set_buckets`.
//! * Names are as Prometheus advises: base units, the unit in the name, `_total` for what only grows.

use ::metrics::{Key, KeyName, Label, Level, Metadata, SharedString, with_recorder};
use leasehold_engine::time::Span;
use std::sync::Arc;

pub use ::metrics::Unit;

/// The labels that every series has: the application, the stream, and the life of the worker as the lease table names it.
pub const COMMON: [&str; 3] = ["application", "stream", "worker"];

/// A line of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Metric {
    /// Its name.
    pub name: &'static str,
    /// How it behaves.
    pub kind: Kind,
    /// What it counts or measures in.
    pub unit: Unit,
    /// The labels it has beside [`COMMON`].
    pub labels: &'static [&'static str],
    /// What it says.
    pub help: &'static str,
}

/// How a metric behaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Kind {
    /// Only grows, from 0 at the beginning of the worker's life.
    Counter,
    /// It tells the state.
    Gauge,
    /// Each value is taken into a distribution, from which an exporter makes a histogram or a summary. Its number and its sum only
    /// grow.
    Histogram,
}

/// The name of a counter, and the names of its labels besides the common labels.
#[derive(Debug)]
pub(crate) struct Counter<const N: usize>(&'static str, [&'static str; N]);

/// The name of a gauge, and the names of its labels besides the common labels.
#[derive(Debug)]
pub(crate) struct Gauge<const N: usize>(&'static str, [&'static str; N]);

/// The name of a histogram, and the names of its labels besides the common labels.
#[derive(Debug)]
pub(crate) struct Histogram<const N: usize>(&'static str, [&'static str; N]);

macro_rules! table {
    ($($kind:ident $id:ident $name:literal $unit:ident [$($label:literal),*] $help:literal;)*) => {
        $(
            pub(crate) const $id: $kind<{ <[&str]>::len(&[$($label),*]) }> = $kind($name, [$($label),*]);
        )*

        /// All metrics of this crate.
        pub const ALL: &[Metric] = &[$(Metric {
            name: $name,
            kind: Kind::$kind,
            unit: Unit::$unit,
            labels: &[$($label),*],
            help: $help,
        }),*];
    };
}

table! {
    Gauge LEASES_HELD "leasehold_leases_held" Count []
        "Leases this worker holds.";
    Gauge LEASES_STALLED "leasehold_leases_stalled" Count []
        "Leases this worker holds whose shards have not moved for Config::stall_after.";
    Gauge SHARDS_STOPPED "leasehold_shards_stopped" Count []
        "Shards this worker holds and has stopped because of a record that the handler cannot process, until Control::resume.";
    Gauge ROWS_UNREADABLE "leasehold_rows_unreadable" Count []
        "Rows of the lease table that should be leases and cannot be read. No worker reads their shards.";
    Gauge BEHIND "leasehold_behind_seconds" Seconds []
        "The greatest leasehold_shard_behind_seconds of the shards this worker holds.";
    Gauge WAITING "leasehold_waiting_records" Count []
        "Records that were fetched and are not processed, of all shards this worker holds.";
    Gauge SHARD_BEHIND "leasehold_shard_behind_seconds" Seconds ["shard"]
        "All records that arrived in the shard longer ago than this are processed. Before the first answer to a read: for how \
         long the lease is held.";
    Gauge SHARD_WAITING "leasehold_shard_waiting_records" Count ["shard"]
        "Records of the shard that were fetched and are not processed.";
    Gauge LEASE_USED "leasehold_lease_used_ratio" Count []
        "The greatest part that has passed of the time for which a held lease is believed in after a confirmed renewal. 0: no \
         lease is held, or all were renewed just now. 1: a belief has run out, and its shard is paused.";
    Histogram RENEWAL_LEFT "leasehold_renewal_left_seconds" Seconds []
        "For how long a held lease was still believed in when its next renewal was confirmed. 0: the belief had run out before.";
    Histogram HANDOVER "leasehold_handover_seconds" Seconds []
        "The time from the take of a lease to its first batch in the handler, or to the first read that shows that there is \
         none. Not for a shard that waits for its parents.";
    Gauge HANDLERS_LATE "leasehold_handlers_late_seconds" Seconds []
        "For how long the runtime of the handlers has not run a task it was given. Above 0 if handlers block its threads.";
    Gauge HANDLERS_BLOCKING "leasehold_handlers_blocking" Count []
        "Handlers that have been in one poll, and so have blocked a thread, for longer than 5 s or half a lease.";
    Histogram HANDLER "leasehold_handler_seconds" Seconds ["result"]
        "How long a handler took for a batch: ok, failed, panicked, or stopped by the worker before its end.";
    Histogram ARRIVAL "leasehold_arrival_to_handler_seconds" Seconds ["reader"]
        "The age of the first record of a batch when a handler was first called with the batch: from the arrival of the record in \
         the stream, as Kinesis says. By the reader of the batch: polling or fan-out.";
    Counter BATCHES "leasehold_batches_total" Count ["result"]
        "Batches that handlers were called with: ok, failed, panicked, or stopped by the worker before the end.";
    Counter FETCHED_RECORDS "leasehold_fetched_records_total" Count []
        "Kinesis records fetched. An aggregated record counts as one.";
    Counter FETCHED_BYTES "leasehold_fetched_bytes_total" Bytes []
        "Payload fetched.";
    Counter PROCESSED_RECORDS "leasehold_processed_records_total" Count []
        "Records that were acknowledged as a batch, at once or later, or as the beginning of a batch by Ack::UpTo. An aggregated \
         record counts as what it holds.";
    Counter PROCESSED_BYTES "leasehold_processed_bytes_total" Bytes []
        "Payload of these records.";
    Counter MISPLACED "leasehold_misplaced_aggregates_total" Count []
        "Aggregated records of which parts were dropped, because some part belongs to another shard (Misplaced::Drop and \
         Misplaced::DropWhole).";
    Counter MISPLACED_PARTS "leasehold_misplaced_parts_total" Count ["result"]
        "Parts of these records: handed-over (fetched for the handler, as they belong to the shard) or dropped.";
    Counter SET_ASIDE "leasehold_set_aside_records_total" Count ["reason"]
        "Records that were set aside: failed (the handler could not process the record) or misplaced (the record belongs to another \
         shard: Misplaced::DeadLetter).";
    Counter REQUESTS "leasehold_requests_total" Count ["operation", "outcome"]
        "Requests to DynamoDB and Kinesis, by their names there, that ended as ok, condition-failed (another write was first), \
         denied, refused, throttled, timeout or error.";
    Histogram REQUEST "leasehold_request_seconds" Seconds ["operation"]
        "How long a request to DynamoDB or Kinesis took, however it ended.";
    Counter RETRIES "leasehold_retries_total" Count ["operation"]
        "Requests that failed and that the worker makes again.";
    Counter READ_UNITS "leasehold_dynamodb_read_units_total" Count []
        "Read request units that the lease table has cost, as DynamoDB says.";
    Counter WRITE_UNITS "leasehold_dynamodb_write_units_total" Count []
        "Write request units that the lease table has cost, as DynamoDB says; and 1 for each write whose condition failed, as it \
         does not say those.";
    Counter NOTICES "leasehold_notices_total" Count ["kind"]
        "What the engine told, by kind, such as took, lost or handler-failed.";
    Counter INPUTS "leasehold_inputs_total" Count []
        "Inputs the engine was given.";
    Counter COMMANDS "leasehold_commands_total" Count ["kind"]
        "Commands of the engine, by the port they go to: table, stream or consumer.";
    Counter GIVEN_UP "leasehold_commands_given_up_total" Count ["kind"]
        "Commands that were not answered in time.";
    Counter OUTCOMES "leasehold_outcomes_total" Count ["kind", "result"]
        "Outcomes of commands: applied, refused, not-sent or unknown.";
    Counter TRACE_GAPS "leasehold_trace_gaps_total" Count []
        "Gaps in the full trace, where it could not be written fast enough.";
}

/// Tells the recorder what every metric is. A worker does so when it begins.
pub(crate) fn describe() {
    with_recorder(|recorder| {
        for metric in ALL {
            let name = KeyName::from_const_str(metric.name);
            let (unit, help) = (Some(metric.unit), SharedString::const_str(metric.help));
            match metric.kind {
                Kind::Counter => recorder.describe_counter(name, unit, help),
                Kind::Gauge => recorder.describe_gauge(name, unit, help),
                Kind::Histogram => recorder.describe_histogram(name, unit, help),
            }
        }
    });
}

/// Notices of dangers. Their counters start at 0 at the beginning: the first notice is visible as an increase.
const DANGERS: [&str; 6] = ["fenced", "lost", "handler-failed", "trimmed", "trouble", "fatal"];

const METADATA: Metadata<'static> = Metadata::new("leasehold", Level::INFO, None);

/// Sets the metrics of one worker. Clones are handles on the same.
///
/// Series are looked up anew each time, not kept: an exporter may be installed later, or drop a series that was idle.
#[derive(Clone, Debug, Default)]
pub(crate) struct Meter {
    /// The common labels; empty in tests of parts without a worker.
    common: Arc<[Label]>,
}

impl Meter {
    /// A meter for this application, this stream, and this worker's name in the lease table.
    pub(crate) fn new(application: &str, stream: &str, worker: &str) -> Self {
        let values = [application, stream, worker].map(|value| SharedString::from_shared(Arc::from(value)));
        let labels = COMMON.into_iter().zip(values);
        Self { common: labels.map(|(name, value)| Label::new(name, value)).collect() }
    }

    /// Describes all metrics, and shows all metrics without further labels before the first event.
    pub(crate) fn begin(&self) {
        describe();
        for metric in ALL.iter().filter(|metric| metric.labels.is_empty()) {
            match metric.kind {
                Kind::Counter => self.count(&Counter(metric.name, []), [], 0),
                Kind::Gauge => self.set(&Gauge(metric.name, []), [], 0.0),
                // It has no value before the first.
                Kind::Histogram => {}
            }
        }
        for kind in DANGERS {
            self.count(&NOTICES, [kind.into()], 0);
        }
        for result in ["handed-over", "dropped"] {
            self.count(&MISPLACED_PARTS, [result.into()], 0);
        }
        for reason in ["failed", "misplaced"] {
            self.count(&SET_ASIDE, [reason.into()], 0);
        }
    }

    /// Counts so many more.
    pub(crate) fn count<const N: usize>(&self, counter: &Counter<N>, values: [SharedString; N], more: u64) {
        let key = self.key(counter.0, counter.1, values);
        with_recorder(|recorder| recorder.register_counter(&key, &METADATA).increment(more));
    }

    /// Sets a counter to this total.
    pub(crate) fn count_to<const N: usize>(
        &self, counter: &Counter<N>, values: [SharedString; N], total: u64,
    ) {
        let key = self.key(counter.0, counter.1, values);
        with_recorder(|recorder| recorder.register_counter(&key, &METADATA).absolute(total));
    }

    /// Sets a gauge.
    pub(crate) fn set<const N: usize>(&self, gauge: &Gauge<N>, values: [SharedString; N], value: f64) {
        let key = self.key(gauge.0, gauge.1, values);
        with_recorder(|recorder| recorder.register_gauge(&key, &METADATA).set(value));
    }

    /// Takes a value into a histogram.
    pub(crate) fn observe<const N: usize>(
        &self, histogram: &Histogram<N>, values: [SharedString; N], span: Span,
    ) {
        let key = self.key(histogram.0, histogram.1, values);
        with_recorder(|recorder| recorder.register_histogram(&key, &METADATA).record(seconds(span)));
    }

    /// The values of the common labels, in their order; empty in tests of parts without a worker.
    pub(crate) fn names(&self) -> [&str; 3] {
        [0, 1, 2].map(|at| self.common.get(at).map_or("", Label::value))
    }

    fn key<const N: usize>(
        &self, name: &'static str, labels: [&'static str; N], values: [SharedString; N],
    ) -> Key {
        let further = labels.into_iter().zip(values);
        let further = further.map(|(name, value)| Label::new(name, value));
        Key::from_parts(name, self.common.iter().cloned().chain(further).collect::<Vec<_>>())
    }
}

/// A time in the unit of metrics.
pub(crate) fn seconds(span: Span) -> f64 {
    span.0 as f64 / 1_000_000.0
}

#[cfg(test)]
#[path = "metrics_tests.rs"]
mod tests;
