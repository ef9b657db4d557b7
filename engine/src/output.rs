//! Everything the engine can ask for.

pub use crate::end_reason::EndReason;

use crate::fleet::{FleetTable, FleetTableOp, FleetWrite};
use crate::ids::{FencingToken, LeaseKey, OpId, ShardId, WorkerId};
use crate::members::MembersOp;
use crate::notice::Notice;
use crate::position::{Checkpoint, Position};
use crate::row::Change;
use crate::stream_id::StreamId;
use crate::time::{Mono, Span, Wall};
use serde::{Deserialize, Serialize};

/// One output of the engine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Output {
    /// Do this, and say how it went, exactly once.
    Do(Command),
    /// Something happened, and why.
    Tell(Notice),
}

/// Something to be done by the adapter.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Command {
    /// Names it in the outcome.
    pub op: OpId,
    /// The moment after which the engine does not wait for it any longer: the driver then answers `Unknown` (or `NotSent`) itself.
    /// Records that come bit by bit are waited for longer: for as long again from their last byte, and for twenty times as long in all.
    pub give_up: Mono,
    /// What to do.
    pub effect: Effect,
}

/// What to do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Effect {
    /// An operation on the lease table.
    Table(TableOp),
    /// An operation on the stream.
    Stream(StreamOp),
    /// An operation on the application.
    Consumer(ConsumerOp),
    /// An operation on one of several streams. Its shard is named by its id alone.
    StreamOf(StreamId, StreamOp),
}

impl Effect {
    /// What it does, and the name of the shard that it is about, if it is about one: `("read the row of", Some("shardId-1"))`.
    pub fn described(&self) -> (&'static str, Option<&str>) {
        match self {
            Effect::Table(op) => op.described(),
            Effect::Stream(op) | Effect::StreamOf(_, op) => op.described(),
            Effect::Consumer(op) => op.described(),
        }
    }
}

/// An operation on the lease table.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TableOp {
    /// Its state. A missing table is an answer, not a refusal.
    Describe,
    /// Create it. Refused with `InUse` if it exists.
    Create,
    /// One page of rows, eventually consistent.
    Scan {
        /// Start after this key; absent: from the beginning.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        after: Option<LeaseKey>,
        /// Give no more than this many rows; absent: as many as a page holds.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        limit: Option<u32>,
    },
    /// One row, strongly consistent.
    Read {
        /// Its key.
        key: LeaseKey,
    },
    /// One guarded write. A failed guard is refused with `ConditionFailed` and, if possible, the row.
    Write(Change),
    /// An operation on the tables beside it, where the format has such.
    Members(MembersOp),
    /// One write of a row by which workers of KCL 3.x know each other. A failed guard is refused with `ConditionFailed`.
    Fleet(FleetWrite),
    /// Whether the index [`OWNER_INDEX`](crate::fleet::OWNER_INDEX) of the lease table can be used.
    OwnerIndex,
    /// An operation on one of the two tables in which fleets of KCL 3.0 to 3.4 keep these rows.
    FleetTable(FleetTable, FleetTableOp),
    /// One page of the keys of the leases whose rows name this owner, from the index [`OWNER_INDEX`](crate::fleet::OWNER_INDEX) of the
    /// lease table: eventually consistent. Refused if there is no such index, or if it is still being filled.
    Owned {
        /// The owner.
        owner: WorkerId,
        /// Start after this key; absent: from the beginning.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        after: Option<LeaseKey>,
    },
}

impl TableOp {
    fn described(&self) -> (&'static str, Option<&str>) {
        match self {
            TableOp::Describe => ("describe the table", None),
            TableOp::Create => ("create the table", None),
            TableOp::Scan { .. } => ("scan the table", None),
            TableOp::Read { key } => ("read the row of", Some(key.as_str())),
            TableOp::Write(change) => (change.verb(), Some(change.key().as_str())),
            TableOp::Members(op) => (op.verb(), None),
            TableOp::Fleet(write) => (write.verb(), None),
            TableOp::OwnerIndex => ("look for the index of owners", None),
            TableOp::FleetTable(_, op) => (op.verb(), None),
            TableOp::Owned { .. } => ("query the index of owners", None),
        }
    }
}

/// An operation on the stream.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum StreamOp {
    /// Its state (DescribeStreamSummary).
    Describe,
    /// One page of shards.
    ListShards {
        /// Which.
        filter: ShardFilter,
        /// Continue the listing of this command; absent: from the beginning.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        after: Option<OpId>,
    },
    /// A place to read from, which the adapter keeps under this command's id.
    GetIterator {
        /// The shard.
        shard: ShardId,
        /// Where.
        from: IteratorFrom,
    },
    /// The next records.
    GetRecords {
        /// The shard.
        shard: ShardId,
        /// The command whose answer brought the iterator to use: a `GetIterator` or an earlier `GetRecords`.
        via: OpId,
        /// No more than this many records.
        limit: u32,
    },
}

impl StreamOp {
    fn described(&self) -> (&'static str, Option<&str>) {
        match self {
            StreamOp::Describe => ("describe the stream", None),
            StreamOp::ListShards { .. } => ("list the shards", None),
            StreamOp::GetIterator { shard, .. } => ("get an iterator of", Some(shard.as_str())),
            StreamOp::GetRecords { shard, .. } => ("get records of", Some(shard.as_str())),
        }
    }
}

/// Which shards to list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ShardFilter {
    /// All that have not been trimmed, open and closed.
    All,
    /// Those open at the trim horizon.
    AtTrimHorizon,
    /// Those open now.
    AtLatest,
    /// Those open at a time.
    AtTimestamp(Wall),
}

/// Where to start reading a shard.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum IteratorFrom {
    /// The oldest record.
    TrimHorizon,
    /// What arrives from now on.
    Latest,
    /// The first record at or after a time.
    AtTimestamp(Wall),
    /// This record, again. What was processed of it is filtered by position.
    At(Position),
    /// The record after this one.
    After(Position),
}

/// An operation on the application. Those of one lease never run in parallel, but for `Abort` and `TimeOut`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ConsumerOp {
    /// Processing of a shard begins.
    Open {
        /// The lease.
        lease: LeaseKey,
        /// The ownership.
        token: FencingToken,
        /// Everything up to here has been processed before.
        from: Checkpoint,
        /// At `LATEST` or `AT_TIMESTAMP`: reading begins with the first record that arrived at this moment or later.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        since: Option<Wall>,
    },
    /// Process a batch. `Applied(Processed)` when all of it is done, `Applied(ProcessedThrough)` when a part is,
    /// `Applied(Kept)` when the application keeps it to acknowledge it later, `Refused(HandlerFailed)` when the handler failed,
    /// `Refused(RecordFailed)` when it did and was given only one record.
    Deliver {
        /// The lease.
        lease: LeaseKey,
        /// The ownership.
        token: FencingToken,
        /// The `GetRecords` that brought it.
        batch: OpId,
        /// Leave out everything up to and including this position.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        after: Option<Position>,
        /// Counts attempts at this batch, from 1.
        attempt: u32,
        /// The ownership is known to last until here on this worker's clock, at the moment of the hand-over.
        valid_until: Mono,
    },
    /// Stop what runs of this lease, but for a `Close`, as soon as possible. Has no effect of its own on the lease.
    Abort {
        /// The lease.
        lease: LeaseKey,
        /// The ownership.
        token: FencingToken,
    },
    /// Stop the running call of this lease, but not a `Close`, as soon as possible: the call takes longer than `handler_timeout`, and has failed.
    /// The outcome of the call is `Refused(HandlerFailed)`, or `Refused(RecordFailed)` if the call got only one record.
    TimeOut {
        /// The lease.
        lease: LeaseKey,
        /// The ownership.
        token: FencingToken,
        /// So long a call may take.
        after: Span,
    },
    /// Processing of a shard ends; nothing of it follows under this token.
    Close {
        /// The lease.
        lease: LeaseKey,
        /// The ownership.
        token: FencingToken,
        /// Why.
        reason: EndReason,
    },
    /// Acknowledge what is kept, as far as that is possible: nothing more is handed over before this was answered.
    Flush {
        /// The lease.
        lease: LeaseKey,
        /// The ownership.
        token: FencingToken,
        /// Why.
        why: FlushReason,
        /// What is not acknowledged by then is given up; [`Mono::NEVER`]: there is time.
        until: Mono,
    },
    /// Process one record of a batch: the first one that is left. `Applied(ProcessedThrough)` with its position when it is done,
    /// `Applied(Processed)` when nothing was left, `Refused(RecordFailed)` with its position when the handler failed. It is not
    /// kept: an application that would acknowledge it later is told to flush and waited for.
    DeliverOne {
        /// The lease.
        lease: LeaseKey,
        /// The ownership.
        token: FencingToken,
        /// The `GetRecords` that brought it.
        batch: OpId,
        /// Leave out everything up to and including this position.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        after: Option<Position>,
        /// Counts attempts at this record, from 1.
        attempt: u32,
        /// The ownership is known to last until here on this worker's clock, at the moment of the hand-over.
        valid_until: Mono,
    },
    /// Give a record that cannot be processed to where the application keeps such records. `Applied(ProcessedThrough)` with its
    /// position when it is safe there, `Refused` when it is not.
    SetAside {
        /// The lease.
        lease: LeaseKey,
        /// The ownership.
        token: FencingToken,
        /// The `GetRecords` that brought it.
        batch: OpId,
        /// The record.
        record: Position,
        /// How often the handler failed with this record alone.
        attempts: u32,
        /// How it failed last.
        detail: String,
        /// The ownership is known to last until here on this worker's clock, at the moment of the hand-over.
        valid_until: Mono,
    },
}

impl ConsumerOp {
    /// The lease that it is about.
    pub fn lease(&self) -> &LeaseKey {
        match self {
            ConsumerOp::Open { lease, .. }
            | ConsumerOp::Deliver { lease, .. }
            | ConsumerOp::DeliverOne { lease, .. }
            | ConsumerOp::SetAside { lease, .. }
            | ConsumerOp::Flush { lease, .. }
            | ConsumerOp::Abort { lease, .. }
            | ConsumerOp::TimeOut { lease, .. }
            | ConsumerOp::Close { lease, .. } => lease,
        }
    }

    fn described(&self) -> (&'static str, Option<&str>) {
        match self {
            ConsumerOp::Open { lease, .. } => ("open", Some(lease.as_str())),
            ConsumerOp::Deliver { lease, .. } => ("hand over records of", Some(lease.as_str())),
            ConsumerOp::DeliverOne { lease, .. } => ("hand over a record of", Some(lease.as_str())),
            ConsumerOp::SetAside { lease, .. } => ("set aside a record of", Some(lease.as_str())),
            ConsumerOp::Flush { lease, .. } => ("flush", Some(lease.as_str())),
            ConsumerOp::Abort { lease, .. } => ("abort the handler of", Some(lease.as_str())),
            ConsumerOp::TimeOut { lease, .. } => ("end the call of the handler of", Some(lease.as_str())),
            ConsumerOp::Close { lease, .. } => ("close", Some(lease.as_str())),
        }
    }
}

/// Why a handler is to acknowledge what it keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum FlushReason {
    /// It keeps as much as it may: nothing more is handed over until it has acknowledged something.
    Full,
    /// It has everything of a shard that has ended. The end is written when all is acknowledged; if the shard was opened with
    /// [`Reply::ConfirmsEnd`](crate::input::Reply::ConfirmsEnd), not before this flush was `Applied`, too.
    ShardEnd,
    /// The lease is given up, for this reason. What is not acknowledged in time comes again at the next owner.
    Leaving(EndReason),
}
