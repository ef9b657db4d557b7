//! The names of the properties.

use crate::named::named;
use serde::{Deserialize, Serialize};
use std::fmt;

named! {
    /// A property of every world. Files and tables have the names in kebab-case, such as `parents-first`.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
    pub enum Property by pub name {
        /// Every record is delivered, and not again without need; a checkpoint covers only records reported done.
        EveryRecordDelivered = "every-record-delivered",
        /// The start place of a shard is decided once: no owner begins after the place, also before the first checkpoint,
        /// nor long before.
        StartKept = "start-kept",
        /// Records counted as stored by a producer are handed over.
        StoredIsHandedOver = "stored-is-handed-over",
        /// A child waits for its parents; an ended parent has its children's leases.
        ParentsFirst = "parents-first",
        /// An unknown outcome is resolved before the worker acts on the outcome; our own write is no loss.
        OwnWritesRecognised = "own-writes-recognised",
        /// Leases cover the whole hash space once sync is quiet; rows describe their shards truly.
        HashSpaceCovered = "hash-space-covered",
        /// Checkpoints never go back; creating never overwrites; the end is final; finished rows are removed after all
        /// other rows' need.
        ProgressDurable = "progress-durable",
        /// Every unfinished lease has a renewing and processing owner within a bound; no worker stops without a cause.
        LeasesOwned = "leases-owned",
        /// A lease's hung write delays no other lease's write; due requests are sent, and failures delay in proportion.
        RequestsOnTime = "requests-on-time",
        /// A hand-over ends within a bound, and costs no record twice.
        HandOverCompletes = "hand-over-completes",
        /// One shard cannot delay another.
        ShardsIndependent = "shards-independent",
        /// Balance converges and stops, a few steals at a time.
        FairShares = "fair-shares",
        /// At most one worker acts as the leader; a stopping worker takes no lease.
        OneLeader = "one-leader",
        /// A worker's view of a lease is a state once held by the lease's row.
        ViewMatchesTable = "view-matches-table",
        /// Every start of a shard has one end, and no effect after the end; shutdown ends in time, and processed records
        /// are saved.
        StopsCleanly = "stops-cleanly",
        /// No overlap of live beliefs; no fence is valid after another worker began; foreign rows and attributes survive.
        ExclusiveOwnership = "exclusive-ownership",
        /// Requests stay within the stated formula; an application has time after a failure.
        RequestsBounded = "requests-bounded",
        /// A held shard that is behind and does not move is noticed in bounded time.
        StallsReported = "stalls-reported",
        /// A shard paused by the application receives no batch until the application resumes the shard.
        PausesKept = "pauses-kept",
        /// A call of a handler is told to stop at its time limit, and not before.
        CallsEnd = "calls-end",
        /// A worker whose handlers cannot run releases its leases within a bound and wants no other lease; no worker does
        /// so earlier.
        BlockedLetGo = "blocked-let-go",
        /// A worker gives up a record only after the configured number of failures of the record alone; a shard stopped for
        /// a record receives no batch.
        SetAsideAfterAttempts = "set-aside-after-attempts",
        /// A worker requests the write of a shard's end only with its application's permission, if the application wants to
        /// permit ends.
        EndsPermitted = "ends-permitted",
        /// A worker refuses a table of another stream, or of an earlier stream with the same name.
        ForeignTablesRefused = "foreign-tables-refused",
        /// A lease is ended only with support from the truth of the stream, whatever the worker's answers were.
        FinalActsProven = "final-acts-proven",
        /// The time of two workers in one shard has a bound: a worker whose belief has ended tells its handler to stop.
        DoubleProcessingBounded = "double-processing-bounded",
        /// Memory stays within the budget.
        MemoryBounded = "memory-bounded",
        /// No error: the canary proves the arrival of reports.
        Canary = "canary",
        /// The world itself is consistent: a violation is an error of a fake or of the harness, not of the engine.
        World = "world",
    }
}

impl fmt::Display for Property {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
