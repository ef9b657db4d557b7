//! The names of the properties.

use serde::{Deserialize, Serialize};
use std::fmt;

/// A property of every world. Files and tables have the names in kebab-case, such as `parents-first`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Property {
    /// Every record is delivered, and not again without need; a checkpoint covers only records reported done.
    EveryRecordDelivered,
    /// The start place of a shard is decided once: no owner begins after the place, also before the first checkpoint,
    /// nor long before.
    StartKept,
    /// Records counted as stored by a producer are handed over.
    StoredIsHandedOver,
    /// A child waits for its parents; an ended parent has its children's leases.
    ParentsFirst,
    /// An unknown outcome is resolved before the worker acts on the outcome; our own write is no loss.
    OwnWritesRecognised,
    /// Leases cover the whole hash space once sync is quiet; rows describe their shards truly.
    HashSpaceCovered,
    /// Checkpoints never go back; creating never overwrites; the end is final; finished rows are removed after all
    /// other rows' need.
    ProgressDurable,
    /// Every unfinished lease has a renewing and processing owner within a bound; no worker stops without a cause.
    LeasesOwned,
    /// A lease's hung write delays no other lease's write; due requests are sent, and failures delay in proportion.
    RequestsOnTime,
    /// A hand-over ends within a bound, and costs no record twice.
    HandOverCompletes,
    /// One shard cannot delay another.
    ShardsIndependent,
    /// Balance converges and stops, a few steals at a time.
    FairShares,
    /// At most one worker acts as the leader; a stopping worker takes no lease.
    OneLeader,
    /// A worker's view of a lease is a state once held by the lease's row.
    ViewMatchesTable,
    /// Every start of a shard has one end, and no effect after the end; shutdown ends in time, and processed records
    /// are saved.
    StopsCleanly,
    /// No overlap of live beliefs; no fence is valid after another worker began; foreign rows and attributes survive.
    ExclusiveOwnership,
    /// Requests stay within the stated formula; an application has time after a failure.
    RequestsBounded,
    /// A held shard that is behind and does not move is noticed in bounded time.
    StallsReported,
    /// A shard paused by the application receives no batch until the application resumes the shard.
    PausesKept,
    /// A call of a handler is told to stop at its time limit, and not before.
    CallsEnd,
    /// A worker whose handlers cannot run releases its leases within a bound and wants no other lease; no worker does
    /// so earlier.
    BlockedLetGo,
    /// A worker gives up a record only after the configured number of failures of the record alone; a shard stopped for
    /// a record receives no batch.
    SetAsideAfterAttempts,
    /// A worker requests the write of a shard's end only with its application's permission, if the application wants to
    /// permit ends.
    EndsPermitted,
    /// A worker refuses a table of another stream, or of an earlier stream with the same name.
    ForeignTablesRefused,
    /// A lease is ended only with support from the truth of the stream, whatever the worker's answers were.
    FinalActsProven,
    /// The time of two workers in one shard has a bound: a worker whose belief has ended tells its handler to stop.
    DoubleProcessingBounded,
    /// Memory stays within the budget.
    MemoryBounded,
    /// No error: the canary proves the arrival of reports.
    Canary,
    /// The world itself is consistent: a violation is an error of a fake or of the harness, not of the engine.
    World,
}

impl Property {
    /// The property's name in files and tables.
    pub const fn name(self) -> &'static str {
        match self {
            Property::EveryRecordDelivered => "every-record-delivered",
            Property::StartKept => "start-kept",
            Property::StoredIsHandedOver => "stored-is-handed-over",
            Property::ParentsFirst => "parents-first",
            Property::OwnWritesRecognised => "own-writes-recognised",
            Property::HashSpaceCovered => "hash-space-covered",
            Property::ProgressDurable => "progress-durable",
            Property::LeasesOwned => "leases-owned",
            Property::RequestsOnTime => "requests-on-time",
            Property::HandOverCompletes => "hand-over-completes",
            Property::ShardsIndependent => "shards-independent",
            Property::FairShares => "fair-shares",
            Property::OneLeader => "one-leader",
            Property::ViewMatchesTable => "view-matches-table",
            Property::StopsCleanly => "stops-cleanly",
            Property::ExclusiveOwnership => "exclusive-ownership",
            Property::RequestsBounded => "requests-bounded",
            Property::StallsReported => "stalls-reported",
            Property::PausesKept => "pauses-kept",
            Property::CallsEnd => "calls-end",
            Property::BlockedLetGo => "blocked-let-go",
            Property::SetAsideAfterAttempts => "set-aside-after-attempts",
            Property::EndsPermitted => "ends-permitted",
            Property::ForeignTablesRefused => "foreign-tables-refused",
            Property::FinalActsProven => "final-acts-proven",
            Property::DoubleProcessingBounded => "double-processing-bounded",
            Property::MemoryBounded => "memory-bounded",
            Property::Canary => "canary",
            Property::World => "world",
        }
    }
}

impl fmt::Display for Property {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
