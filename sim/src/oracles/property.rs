//! The names of what must hold.

use serde::{Deserialize, Serialize};
use std::fmt;

/// What must hold in every world. Files and tables have the names in kebab-case, such as `parents-first`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Property {
    /// Every record is delivered, and not again without need; a checkpoint covers only what was reported done.
    EveryRecordDelivered,
    /// Where a shard is begun is decided once: no owner begins after it, also before the first checkpoint, nor long before it.
    StartKept,
    /// What a producer counts as stored is handed over.
    StoredIsHandedOver,
    /// A child waits for its parents; an ended parent has its children's leases.
    ParentsFirst,
    /// An unknown outcome is resolved before it is acted on; our own write is no loss.
    OwnWritesRecognised,
    /// Leases cover the whole hash space once sync is quiet; rows say of their shards what is true.
    HashSpaceCovered,
    /// Checkpoints never go back; creating never overwrites; the end is final; finished rows go when no other row needs them.
    ProgressDurable,
    /// Every unfinished lease has a renewing and processing owner within a bound; no worker stops without a cause.
    LeasesOwned,
    /// One lease's hung write delays no other's; what is due is sent, and failures delay in proportion.
    RequestsOnTime,
    /// A hand-over ends within a bound, and costs no record twice.
    HandOverCompletes,
    /// One shard cannot delay another.
    ShardsIndependent,
    /// Balance converges and stops, a few steals at a time.
    FairShares,
    /// At most one worker acts as the leader; a worker that stops takes nothing.
    OneLeader,
    /// What a worker takes for the state of a lease is one that its row had.
    ViewMatchesTable,
    /// Every start of a shard has one end, and no effect after it; shutdown ends in time, and what was processed is saved.
    StopsCleanly,
    /// No overlap of live beliefs; no fence is valid after another worker began; foreign rows and attributes survive.
    ExclusiveOwnership,
    /// Requests stay within the stated formula; an application that failed is given time.
    RequestsBounded,
    /// What is held, behind and not moving is noticed in bounded time.
    StallsReported,
    /// A shard that the application has paused is handed nothing until it may go on.
    PausesKept,
    /// A call of a handler is told to stop when it has taken as long as it may, and not before.
    CallsEnd,
    /// A worker of which no handler can run lets go of its leases within a bound and wants no other; and no worker does so before.
    BlockedLetGo,
    /// A record is given up only when it failed alone as often as configured; a shard that was stopped for it is handed nothing.
    SetAsideAfterAttempts,
    /// A worker asks for the end of a shard to be written only when its application has permitted that, if the application wants to.
    EndsPermitted,
    /// A table of another stream, or of an earlier one of the same name, is refused.
    ForeignTablesRefused,
    /// A lease is ended only if the truth of the stream supports that, however the worker was answered.
    FinalActsProven,
    /// The time in which two workers process a shard has a bound: a worker whose belief has ended tells its handler to stop.
    DoubleProcessingBounded,
    /// Memory stays within the budget.
    MemoryBounded,
    /// Nothing is wrong: it proves that reports arrive.
    Canary,
    /// The world itself is consistent: a fake or the harness is at fault, not the engine.
    World,
}

impl Property {
    /// Its name, as files and tables have it.
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
