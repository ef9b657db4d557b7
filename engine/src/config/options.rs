//! The table of options: the meaning, the default and the range of each option are written here, and only here.
//!
//! From an entry follow the field, the default, the getter, the setter and a line of [`Config::OPTIONS`]; from that list, the
//! page of options in the guide and the errors of [`Config::check`]. Only crates outside see getters and setters: within the
//! engine an option is a field.

use super::text::Value;
use super::{AssignBy, FailureAction, InitialPosition, ReadMode, StreamSource, Streams};
use crate::policy::Policies;
use crate::time::Span;
use serde::{Deserialize, Serialize};

/// What is to be known of an option, as text for people.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct OptionInfo {
    /// The option's name, as spelled in errors and traces. An option within a group has the group's name before it:
    /// `reader.max_records`.
    pub name: &'static str,
    /// The option's default.
    pub default: &'static str,
    /// The values that [`Config::check`] accepts.
    pub range: &'static str,
    /// The option's effect, and its cost; in lines, with spaces around them.
    about: &'static [&'static str],
}

impl OptionInfo {
    /// The effect of the option, and its cost, in one line.
    pub fn about(&self) -> String {
        let lines: Vec<&str> = self.about.iter().map(|line| line.trim()).collect();
        lines.join(" ")
    }
}

/// An entry: the meaning, then `name, setter: type = default, "default for people", "range for people";`.
macro_rules! options {
    ($(#[$struct_doc:meta])* pub struct $Options:ident in $prefix:literal {$(
        $(#[doc = $about:literal])+
        $(#[serde $serde:tt])?
        $name:ident, $with:ident: $Type:ident = $default:expr, $shown:literal, $range:literal;
    )+}) => {
        $(#[$struct_doc])*
        #[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
        #[serde(default, deny_unknown_fields)]
        pub struct $Options {$(
            $(#[doc = $about])+
            $(#[serde $serde])?
            pub(crate) $name: $Type,
        )+}

        impl Default for $Options {
            fn default() -> Self {
                Self { $($name: $default,)+ }
            }
        }

        impl $Options {
            /// All options of this group, in the order of their spelling in a trace.
            pub const OPTIONS: &'static [OptionInfo] = &[$(OptionInfo {
                name: concat!($prefix, stringify!($name)),
                default: $shown,
                range: $range,
                about: &[$($about),+],
            }),+];

            /// The value of the option of this name within the group.
            pub(super) fn value(&mut self, name: &str) -> Option<&mut dyn Value> {
                match name {
                    $(stringify!($name) => Some(&mut self.$name),)+
                    _ => None,
                }
            }
        }

        $(accessors! { $Options $Type $name $with
            concat!($($about, "\n",)+ "\n\nDefault: ", $shown, ". Range: ", $range, ".")
        })+
    };
}

/// The getter and the setter of an option.
macro_rules! accessors {
    ($Options:ident String $name:ident $with:ident $doc:expr) => {
        accessors! { @both $Options $name $with $doc, &str, |text| text, impl Into<String> }
    };
    ($Options:ident Span $name:ident $with:ident $doc:expr) => {
        accessors! { @both $Options $name $with $doc, Span, |span| *span, impl Into<Span> }
    };
    ($Options:ident ReaderConfig $name:ident $with:ident $doc:expr) => {
        accessors! { @both $Options $name $with $doc, &ReaderConfig, |group| group, ReaderConfig }
    };
    ($Options:ident MembersConfig $name:ident $with:ident $doc:expr) => {
        accessors! { @both $Options $name $with $doc, &MembersConfig, |group| group, MembersConfig }
    };
    ($Options:ident FleetConfig $name:ident $with:ident $doc:expr) => {
        accessors! { @both $Options $name $with $doc, &FleetConfig, |group| group, FleetConfig }
    };
    ($Options:ident Streams $name:ident $with:ident $doc:expr) => {
        accessors! { @both $Options $name $with $doc, &[StreamSource], |streams: &Streams| streams.as_slice(), impl Into<Streams> }
    };
    ($Options:ident $Type:ident $name:ident $with:ident $doc:expr) => {
        accessors! { @both $Options $name $with $doc, $Type, |value| *value, $Type }
    };
    (@both $Options:ident $name:ident $with:ident $doc:expr, $Shown:ty, $show:expr, $Given:ty) => {
        impl $Options {
            #[doc = $doc]
            pub fn $name(&self) -> $Shown {
                let show: fn(&_) -> $Shown = $show;
                show(&self.$name)
            }

            #[doc = $doc]
            ///
            /// [`Config::check`] refuses a value out of this range; a worker calls the check before it starts. The
            /// error names this option, the expected and the found value.
            #[must_use]
            pub fn $with(mut self, value: $Given) -> Self {
                self.$name = value.into();
                self
            }
        }
    };
}

options! {
    /// The configuration of a worker. A trace's first record holds the whole configuration.
    ///
    /// The options with a promise between workers must be the same on all workers of a fleet: `table`, `stream`,
    /// `initial_position`, `lease_duration`, `clock_rate_error_ppm`, `policies` and `members`. A holder counts on no
    /// worker taking its lease before the holder's own `lease_duration` has passed. So stop the whole fleet to change
    /// any of these options. The remaining options may differ, for instance while workers are replaced one by one.
    ///
    /// ```
    /// use leasehold_engine::config::Config;
    /// use std::time::Duration;
    ///
    /// let config = Config::default()
    ///     .with_table("billing")
    ///     .with_stream("orders")
    ///     .with_lease_duration(Duration::from_secs(20));
    /// assert_eq!(config.check(), Ok(()));
    ///
    /// let error = config.with_renew_interval(Duration::from_secs(15)).check().unwrap_err();
    /// assert_eq!(
    ///     error.to_string(),
    ///     "option `renew_interval`: expected 10 ms to half of the 19.603s a holder believes in a lease, found 15.000s",
    /// );
    /// ```
    pub struct Config in "" {
        /// The name of the lease table: the application's name.
        table, with_table: String = String::new(), "none", "3 to 255 of a-z, A-Z, 0-9, '_', '-', '.'";
        /// The name of the stream. A worker of several streams has none: `streams` holds its streams.
        stream, with_stream: String = String::new(), "none", "1 to 128 of a-z, A-Z, 0-9, '_', '-', '.'";
        /// The streams, if one application reads several: KCL's multi-stream mode. As text: identifiers
        /// `<account>:<stream>:<creation time in seconds>` with commas between them. Workers of a fleet may have
        /// different lists: a stream is read by the workers with this stream in their list. Leases of one stream and
        /// leases of several do not mix in one table.
        #[serde(skip_serializing_if = "Streams::is_empty")]
        streams, with_streams: Streams = Streams::default(), "none", "each stream once; only with KCL's table, and without `stream`";
        /// Where reading of shards without a lease begins. A shard with a lease goes on from its checkpoint or, before
        /// the first checkpoint, from the start stored in its lease, whatever this option says; a worker that finds
        /// leases with a different start warns of them, unless the option has its default. At `latest`, the start is
        /// the moment of the lease's creation or first take, by that worker's clock: records that arrive from then on
        /// are handed over, if the clock is not ahead.
        initial_position, with_initial_position: InitialPosition = InitialPosition::TrimHorizon,
            "trim-horizon", "trim-horizon, latest, or a time";
        /// How long a lease lasts without a renewal, as an observer counts (KCL: `failoverTimeMillis`). Shorter: a crashed
        /// worker's leases are taken over sooner. Longer: an outage of DynamoDB is survived for longer.
        lease_duration, with_lease_duration: Span = Span::from_secs(10), "10 s", "100 ms to 24 h";
        /// The largest error of the *rate* of any worker's monotonic clock, in parts per million. With an error of `e`,
        /// a holder believes in its lease for `lease_duration * (1 - e) / (1 + e)`, so that its belief ends before the
        /// patience of any observer. Larger: clocks may be worse, and a lease is released sooner when its renewals
        /// fail.
        clock_rate_error_ppm, with_clock_rate_error_ppm: u32 = 10_000, "10000", "at most 200000 (20 %)";
        /// Whether a worker name never belongs to two processes at the same time: as with a StatefulSet, or one worker
        /// a host. With `true`, a starting worker takes at once the leases of a former process of its name, up to its
        /// share. With `false` the worker waits for `lease_duration`, as the former process may live. Two processes of
        /// one name at the same time take leases from each other once, when the later process starts, and both process
        /// a shard until the earlier process's renewal fails. Only with KCL's table, and where no leader assigns
        /// leases. A lease without a checkpoint since the former process's take is waited for, as the former process
        /// may have stolen the lease just before.
        #[serde(default)]
        unique_names, with_unique_names: bool = false, "false", "true or false";
        /// How often a lease is renewed. A checkpoint counts as a renewal. Shorter: more failed renewals in a row are survived.
        /// Each renewal is one write to the table.
        renew_interval, with_renew_interval: Span = Span::from_millis(3_300),
            "3.3 s", "10 ms to half of the time for which a holder believes in a lease";
        /// The pause between the end of one scan of the lease table and the beginning of the next. Shorter: crashes and new
        /// shards are noticed sooner. Each scan reads the whole table.
        scan_interval, with_scan_interval: Span = Span::from_millis(20_050), "20.05 s", "10 ms to 24 h";
        /// The pause between two scans of the lease table while all of its owners hand leases over on request, as
        /// workers of this library do in KCL's tables. The pause is longer where these scans would cost more than a
        /// quarter of the renewals of a fair share, and never longer than `scan_interval`. Shorter: crashes, free
        /// leases and uneven shares are noticed sooner. At `scan_interval` or more, no such scans take place.
        quick_scan_interval, with_quick_scan_interval: Span = Span::from_millis(500), "500 ms", "10 ms to 24 h";
        /// No more than this many rows in a page of a scan; 0: as many as DynamoDB gives. Smaller: each request uses less
        /// capacity of the table at once, and a scan takes more requests.
        scan_page_limit, with_scan_page_limit: u32 = 0, "0", "any";
        /// How long the answer of a request to DynamoDB is waited for. Longer: fewer outcomes are unknown. Shorter: a lost
        /// renewal is noticed sooner, and leaves time for another.
        table_timeout, with_table_timeout: Span = Span::from_secs(3),
            "3 s", "10 ms to below the time for which a holder believes in a lease";
        /// How long the answer of a request to Kinesis is waited for; of records that come bit by bit, from the last byte, and twenty times as long
        /// in all. Shorter: a request that hangs is repeated sooner.
        stream_timeout, with_stream_timeout: Span = Span::from_secs(15), "15 s", "10 ms to 300 s";
        /// How far an answer of Kinesis about the stream and its shards may be behind. The final end of a shard or a
        /// stream needs answers that span this time. Shorter: a forgotten shard, and a missing lease, are noticed
        /// sooner; an answer further behind may then cost records.
        stream_lag, with_stream_lag: Span = Span::from_millis(20_050), "20.05 s", "10 ms to 1 h";
        /// The least pause before a failed request is repeated. It grows with every failure in a row, up to `retry_max`. Shorter:
        /// a brief failure costs less time, and more requests.
        retry_min, with_retry_min: Span = Span::from_millis(100), "100 ms", "1 ms to `retry_max`, which is at most 300 s";
        /// The greatest pause before a failed request is repeated. Longer: an outage costs fewer requests, and its end is
        /// noticed later.
        retry_max, with_retry_max: Span = Span::from_secs(5), "5 s", "`retry_min` to 300 s";
        /// How often progress is written at least when no handler asks for it: new progress is also written with each
        /// renewal. A crash repeats the records processed since the last checkpoint. Shorter than `renew_interval`:
        /// fewer records are repeated, and more writes are made. Longer: no difference.
        checkpoint_interval, with_checkpoint_interval: Span = Span::from_secs(5), "5 s", "at most 24 h";
        /// The most leases that a worker holds at a time; 0: no limit. Shards beyond what all workers may hold are read
        /// by no worker. A worker at its limit compares no further leases with the stream.
        max_leases, with_max_leases: u32 = 0, "0", "any";
        /// The most leases stolen from a busier worker after one scan; 0: none. More: a joining worker has its share
        /// sooner, and more shards are interrupted at once. The option does not limit requests for leases, where owners
        /// hand leases over.
        max_steals, with_max_steals: u32 = 1, "1", "any";
        /// How long a hand-over may take. After that time the owner tells its handler to stop, saves its checkpoint and
        /// releases the lease; the next owner steals the lease of an owner that does not release it. Longer: a handler
        /// has more time to finish its batch. Shorter: a hanging handler holds its lease up for less time.
        hand_over_timeout, with_hand_over_timeout: Span = Span::from_secs(30), "30 s", "10 ms to 24 h";
        /// Whether a stolen lease is left idle until its former owner must know. With `true` no worker processes the shard for a
        /// lease duration. With `false` two workers may process it for up to a renewal interval, as with KCL.
        steal_cooldown, with_steal_cooldown: bool = true, "true", "true or false";
        /// How many scans in a row must show a gap in the hash space before the shards are listed to close it. More: fewer
        /// needless requests for lists. Fewer: shards without a lease are read sooner. For a gap beside a finished shard, one scan
        /// or two are enough.
        audit_confidence, with_audit_confidence: u32 = 3, "3", "at least 1";
        /// How long the lease of a finished shard is kept at least before its row may be removed; 0: for ever. It must be no less
        /// than `Config::least_cleanup_delay` of any worker of the fleet: a worker whose view is older
        /// would create the lease anew. Without effect where rows are never removed.
        cleanup_delay, with_cleanup_delay: Span = Span::from_secs(300),
            "300 s", "0, or at least two scan intervals, two lease durations and `table_timeout`";
        /// How long the leases of a stream must have stood still, while this worker does not read the stream, before
        /// the worker removes their rows; 0: rows are never removed. Only for workers of several streams. The progress
        /// in the stream is forgotten with the rows. While another worker reads the stream and renews its leases, the
        /// leases do not stand still; time without a successful scan of this worker does not count. Longer than any
        /// worker may be cut off from DynamoDB alone: at `latest`, records may be skipped of a stream whose rows were
        /// removed while a worker read it.
        #[serde(skip_serializing_if = "Span::is_zero")]
        stream_cleanup_delay, with_stream_cleanup_delay: Span = Span::ZERO, "0 s", "0, or three lease durations to 30 days";
        /// The longest wait, drawn at random, before an empty table is filled. Longer: fewer workers of a new fleet do the same
        /// work at once.
        bootstrap_delay, with_bootstrap_delay: Span = Span::from_millis(500), "500 ms", "at most 24 h";
        /// No more than this many rows are created at the same time. More: a table for many shards is filled sooner, with a
        /// higher peak of writes.
        max_creates, with_max_creates: u32 = 8, "8", "at least 1";
        /// How long a shutdown may take before handlers are aborted and leases are left to expire. Records processed by
        /// an aborted handler since its last checkpoint come again at the next owner. The last two `table_timeout` are for the
        /// final writes. A shorter time counts as two `table_timeout`, and a handler is then not waited for.
        shutdown_timeout, with_shutdown_timeout: Span = Span::from_secs(30), "30 s", "at most 24 h";
        /// How long a handler with kept batches may take to acknowledge them when its lease is given up: at a shutdown,
        /// or at a hand-over. Records not acknowledged by then come again at the next owner. Longer: fewer records come
        /// again, and the shard stands still for longer.
        flush_timeout, with_flush_timeout: Span = Span::from_secs(20), "20 s", "at most 24 h";
        /// The pause before a batch is handed over again after its handler failed. It grows with every failure in a row, up to
        /// `retry_max`.
        handler_backoff, with_handler_backoff: Span = Span::from_millis(500), "500 ms", "any";
        /// How long the runtime of the handlers may run nothing, as handlers block all of its threads, before the
        /// worker releases all its leases for other workers; 0: the worker keeps its leases. No lease is released while
        /// one thread is free, or while a handler reports progress. The default equals the time that a worker waits for
        /// a hanging owner of a requested lease: three lease durations, each renewed by the owner without progress.
        /// Shorter: shards stand still for less time. Longer: a handler gets more of its blocking work done before its
        /// records go to another worker; so the time doubles with each such release in the life of a worker.
        give_up_after, with_give_up_after: Span = Span::from_secs(30), "30 s", "at most 24 h";
        /// How long a call of the handler may take: to process a batch, to open a shard, to flush while the lease is
        /// kept, or of the dead-letter sink; 0: no limit. A call that takes longer is stopped at its next `.await`,
        /// counts as failed, and is made again after a pause. Shorter: a hanging call holds its shard up for less time.
        /// Shorter than a call that makes progress: the call is repeated for ever. A call that blocks its thread is
        /// stopped only when the thread is free again.
        #[serde(skip_serializing_if = "Span::is_zero")]
        handler_timeout, with_handler_timeout: Span = Span::ZERO, "0 s", "at most 24 h";
        /// How often a batch, and then one of its records alone, may fail without progress before `failure_action` is
        /// taken; 0: no limit; the handler gets the batch again until it succeeds. At the limit the records of the
        /// batch are handed over one at a time, until the failing record is known and past. Smaller: a record that can
        /// never be processed holds its shard up for less time, but a passing failure is more easily taken for such a
        /// record.
        failure_attempts, with_failure_attempts: u32 = 0, "0", "any";
        /// The reaction when one record has failed `failure_attempts` times alone. `stop`: no more batches of its shard
        /// are handed over until the application resumes the shard; the lease is kept. `set-aside`: the record goes to
        /// the dead-letter sink and counts as processed; an event names the record. Without a sink, only the event is
        /// left of the record.
        failure_action, with_failure_action: FailureAction = FailureAction::Stop, "stop", "stop or set-aside";
        /// The time after which a held shard without movement is reported with its cause, although records are or may
        /// be waiting, and again whenever the time has doubled; 0: never.
        stall_after, with_stall_after: Span = Span::from_secs(60), "60 s", "at most 24 h";
        /// The most bytes of all shards in transit or waiting to be processed; 0: 256 MiB, or a quarter of the memory
        /// available to the process, if less. A read without room waits for its turn. Batches kept by a handler have
        /// limits of their own: `reader.kept_bytes`. Smaller: a worker that is behind needs less memory, and reads less
        /// of a shard at once.
        memory_budget, with_memory_budget: u64 = 0, "0", "0, or at least 2097152 (2 MiB)";
        /// The most reads of shards at the same time, each on a connection of its own. Further reads wait for their
        /// turn. More: shards that are at their tips are asked more often where Kinesis answers slowly, and more
        /// descriptors are open.
        max_reads, with_max_reads: u32 = 64, "64", "at least 1";
        /// The most requests that keep, take and release leases at the same time, each on a connection of its own; half
        /// of them for takes. Further requests wait for their turn, renewals before takes. More: more leases are kept
        /// where DynamoDB answers slowly, and more descriptors are open.
        max_table_requests, with_max_table_requests: u32 = 64, "64", "at least 2";
        /// How shards are read.
        reader, with_reader: ReaderConfig = ReaderConfig::default(), "its options' defaults", "see its options";
        /// The rules that follow from the format of the lease table: `LeaseFormat::policies`.
        policies, with_policies: Policies = Policies::default(), "KCL's", "those of a format";
        /// Whether the worker looks for the two tables in which workers of KCL 3.0 to 3.4 report and elect their
        /// leader, and takes part in them. The worker looks once at its start, and once a minute while workers of
        /// another library own leases. Only with KCL's table. With `false`, a leader of KCL 3.0 to 3.4 does not see
        /// this worker.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        fleet_tables, with_fleet_tables: bool = true, "true", "true or false";
        /// The table in which workers of KCL 3.0 to 3.4 report (KCL: `WorkerMetricsTableConfig`). Empty:
        /// `<table>-WorkerMetricStats`. KCL derives it from the application's name: set it if KCL's lease table has a
        /// name of its own.
        #[serde(skip_serializing_if = "String::is_empty")]
        worker_metrics_table, with_worker_metrics_table: String = String::new(),
            "none", "empty, or 3 to 255 of a-z, A-Z, 0-9, '_', '-', '.'";
        /// The table in which workers of KCL 3.0 to 3.4 elect their leader (KCL: `CoordinatorStateTableConfig`). Empty:
        /// `<table>-CoordinatorState`. KCL derives it from the application's name: set it if KCL's lease table has a
        /// name of its own.
        #[serde(skip_serializing_if = "String::is_empty")]
        coordinator_table, with_coordinator_table: String = String::new(),
            "none", "empty, or 3 to 255 of a-z, A-Z, 0-9, '_', '-', '.'";
        /// How workers report their life to each other, where leases are assigned by rank: in kinsumer's tables only.
        #[serde(skip_serializing_if = "MembersConfig::is_default")]
        members, with_members: MembersConfig = MembersConfig::default(), "its options' defaults", "see its options";
        /// How a worker is a member of a fleet of KCL 3.x: in KCL's tables only.
        #[serde(default = "FleetConfig::of_before", skip_serializing_if = "FleetConfig::is_of_before")]
        fleet, with_fleet: FleetConfig = FleetConfig::default(), "its options' defaults", "see its options";
    }
}

options! {
    /// How a shard is read. The options apply to each shard held by a worker.
    pub struct ReaderConfig in "reader." {
        /// How shards are read. `polling`: by GetRecords; all applications share 2 MB and five reads a second and shard. `fan-out`: by
        /// SubscribeToShard, at 2 MB a second for this application alone; records arrive sooner, AWS bills each consumer and shard by the
        /// hour and each GB, and nothing is read without the permission. `auto`: as `fan-out`, and by polling where there is no consumer
        /// and while the service refuses a subscription, so that no move of a lease waits. Workers of a fleet may differ.
        mode, with_mode: ReadMode = ReadMode::Polling, "polling", "polling, fan-out or auto";
        /// The name of the consumer for subscriptions, or its ARN; empty: the application's name, as KCL has it. A name is registered
        /// where the stream has no such consumer. No worker deregisters a consumer: `leasehold admin deregister` does.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        consumer, with_consumer: String = String::new(), "none", "a name of 1 to 128 letters, digits and _ . -, or an ARN";
        /// The most records in one answer of GetRecords. Smaller: batches are smaller, and more requests are made.
        max_records, with_max_records: u32 = 10_000, "10000", "1 to 10000";
        /// The least time between two reads of a shard. Kinesis allows five reads a second and shard, over all applications.
        /// Shorter: records arrive sooner while a shard is behind, and other applications are throttled sooner.
        min_interval, with_min_interval: Span = Span::from_millis(250),
            "250 ms", "at least 200 ms (Kinesis allows five calls a second)";
        /// The pause after an answer that was empty or at the tip. Shorter: new records arrive sooner, and more requests are
        /// made.
        idle_interval, with_idle_interval: Span = Span::from_secs(1), "1 s", "at most 240 s (an iterator lives 300 s)";
        /// The most bytes a second and shard. Kinesis allows 2 MB, over all applications. No read asks for more than a
        /// second of these bytes, as far as the size of a record is known. Applications reading the same shard take
        /// turns when Kinesis refuses their reads.
        bytes_per_second, with_bytes_per_second: u64 = 2_000_000, "2000000", "at least 1";
        /// Reading a shard pauses while this many of its bytes wait to be processed. A shard needs no more memory than
        /// these bytes and one answer, within `memory_budget`.
        buffer_bytes, with_buffer_bytes: u64 = 8 << 20, "8388608", "any";
        /// Reading a shard pauses while this many of its batches wait to be processed.
        buffer_batches, with_buffer_batches: u32 = 4, "4", "at least 1";
        /// The most bytes of a shard kept by a handler with later acknowledgement. At the limit the handler is told to
        /// flush, and no more batches are handed over until the handler has acknowledged some records. A worker needs
        /// this memory for each shard, beside `buffer_bytes`.
        kept_bytes, with_kept_bytes: u64 = 64 << 20, "67108864", "any";
        /// The most batches of a shard kept by a handler with later acknowledgement. At the limit the handler is told
        /// to flush, and no more batches are handed over until the handler has acknowledged some records.
        kept_batches, with_kept_batches: u32 = 1_000, "1000", "at least 1";
    }
}

options! {
    /// How workers report their life to each other, where leases are assigned by rank: in kinsumer's tables. All
    /// members of a fleet must agree on both options.
    pub struct MembersConfig in "members." {
        /// How often a member reports its life and looks for further live members (kinsumer: `shardCheckFrequency`). A
        /// member silent for five intervals is not counted. A lease lasts for as long: set `lease_duration` to five
        /// times this interval.
        check_interval, with_check_interval: Span = Span::from_secs(60), "60 s", "a fifth of `lease_duration`";
        /// How often the leader compares the shared list of shards with the stream's list (kinsumer:
        /// `leaderActionFrequency`). A leader silent for five intervals leads no more.
        lead_interval, with_lead_interval: Span = Span::from_secs(60), "60 s", "`members.check_interval` to 24 h";
    }
}

options! {
    /// How a worker is a member of a fleet of KCL 3.x: in KCL's tables only. Workers of a fleet may differ in these.
    pub struct FleetConfig in "fleet." {
        /// The measure by which a worker shares the leases out when it leads a fleet with workers of KCL 3.x. `load`:
        /// by the workers' reports of their hosts, or by the throughput of their leases (KCL:
        /// `WORKER_UTILIZATION_AWARE`). `number`: each worker gets the same number of leases (KCL:
        /// `LEASE_COUNT_BASED`); leases move less often, and a busy host is not relieved.
        assign_by, with_assign_by: AssignBy = AssignBy::Load, "load", "load or number";
        /// How often a worker reports to workers of KCL 3.x (KCL: `workerMetricsReporterFreqInMillis`). KCL's leader
        /// takes a worker for dead after twice the leader's own interval without a report: set this option to KCL's
        /// interval, if KCL's is shorter than the default.
        report_interval, with_report_interval: Span = Span::from_secs(30), "30 s", "1 s to 30 s";
        /// For how long all owners of leases must have reported before a worker that leads a migration from KCL 2 to KCL 3 ends it.
        /// Shorter: the rules of KCL 3 hold sooner, and a worker of KCL 2 that is only being restarted is more easily overlooked.
        migration_wait, with_migration_wait: Span = Span::from_secs(600), "600 s", "at most 24 h";
        /// How often a worker looks in the index `LeaseOwnerToLeaseKeyIndex` for leases assigned by a leader (KCL: half
        /// of `leaseAssignmentIntervalMillis`), while the pause between its scans is longer; 0: never, and only scans
        /// show such leases. Shorter: an assigned lease is read sooner, for one small request each time. A leader
        /// assigns a lease again after a lease duration without a renewal.
        #[serde(default, skip_serializing_if = "Span::is_zero")]
        discovery_interval, with_discovery_interval: Span = Span::from_millis(2_500), "2.5 s", "0, or 100 ms to 24 h";
    }
}

impl Config {
    /// Every option, those of a group in place of the group.
    pub fn options() -> impl Iterator<Item = &'static OptionInfo> {
        Self::OPTIONS.iter().flat_map(|option| match option.name {
            "reader" => ReaderConfig::OPTIONS.iter(),
            "members" => MembersConfig::OPTIONS.iter(),
            "fleet" => FleetConfig::OPTIONS.iter(),
            _ => std::slice::from_ref(option).iter(),
        })
    }
}
