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
use std::sync::Arc;

/// One output of the engine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Output {
    /// Carry out the command, and report its outcome exactly once.
    Do(Command),
    /// An event, and its reason.
    Tell(Notice),
}

/// Something to be done by the adapter.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Command {
    /// Names the command in its outcome.
    pub op: OpId,
    /// The moment after which the engine no longer waits for the answer: the driver then answers `Unknown` (or
    /// `NotSent`) itself. Records that come bit by bit get more time: for as long again from their last byte, and for
    /// twenty times as long in all.
    pub give_up: Mono,
    /// The effect.
    pub effect: Effect,
}

/// The effect of a command.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Effect {
    /// An operation on the lease table.
    Table(TableOp),
    /// An operation on the stream.
    Stream(StreamOp),
    /// An operation on the application.
    Consumer(ConsumerOp),
    /// An operation on one of several streams. The operation names the shard by its id alone.
    StreamOf(StreamId, StreamOp),
}

impl Effect {
    /// The act, and the name of its shard, if the effect concerns one shard: `("read the row of", Some("shardId-1"))`.
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
    /// The table's state. A missing table is an answer, not a refusal.
    Describe,
    /// Create the table. Refused with `InUse` if it exists.
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
        /// The row's key.
        key: LeaseKey,
    },
    /// One guarded write. A failed guard is refused with `ConditionFailed` and, if possible, the row.
    Write(Change),
    /// An operation on the members' tables beside the lease table, for formats with such tables.
    Members(MembersOp),
    /// One write of a fleet row: workers of KCL 3.x know each other by fleet rows. A failed guard is refused with
    /// `ConditionFailed`.
    Fleet(FleetWrite),
    /// Whether the index [`OWNER_INDEX`](crate::fleet::OWNER_INDEX) of the lease table can be used.
    OwnerIndex,
    /// An operation on one of the two tables in which fleets of KCL 3.0 to 3.4 keep these rows.
    FleetTable(FleetTable, FleetTableOp),
    /// One page of the keys of the leases whose rows name this owner, from the index
    /// [`OWNER_INDEX`](crate::fleet::OWNER_INDEX) of the lease table: eventually consistent. Refused if the table has
    /// no such index, or while the index is being filled.
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
    /// The stream's state (DescribeStreamSummary).
    Describe,
    /// One page of shards.
    ListShards {
        /// The filter.
        filter: ShardFilter,
        /// Continue the listing of this command; absent: from the beginning.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        after: Option<OpId>,
    },
    /// A place to read from; the adapter keeps the iterator under this command's id.
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
        /// The command whose answer brought the iterator: a `GetIterator` or an earlier `GetRecords`.
        via: OpId,
        /// No more than this many records.
        limit: u32,
    },
    /// The consumer of this name (DescribeStreamConsumer). Refused with `NotFound` if the stream has none.
    DescribeConsumer {
        /// The ARN of the stream.
        stream: Arc<str>,
        /// The name of the consumer.
        name: Arc<str>,
    },
    /// Registers a consumer under this name (RegisterStreamConsumer). Refused with `InUse` if the stream has one.
    RegisterConsumer {
        /// The ARN of the stream.
        stream: Arc<str>,
        /// The name of the consumer.
        name: Arc<str>,
    },
    /// A subscription of a consumer to a shard (SubscribeToShard); the adapter keeps the subscription under this command's id. Refused with
    /// `InUse` while the place is taken.
    Subscribe {
        /// The shard.
        shard: ShardId,
        /// The ARN of the consumer.
        consumer: Arc<str>,
        /// Where.
        from: IteratorFrom,
    },
    /// The next event of a subscription. Refused with `Expired` when the subscription is over, and with `InUse` when another
    /// subscriber has the place.
    NextEvent {
        /// The shard.
        shard: ShardId,
        /// The command whose answer brought the subscription: a `Subscribe` or an earlier `NextEvent`.
        via: OpId,
    },
}

impl StreamOp {
    fn described(&self) -> (&'static str, Option<&str>) {
        match self {
            StreamOp::Describe => ("describe the stream", None),
            StreamOp::ListShards { .. } => ("list the shards", None),
            StreamOp::GetIterator { shard, .. } => ("get an iterator of", Some(shard.as_str())),
            StreamOp::GetRecords { shard, .. } => ("get records of", Some(shard.as_str())),
            StreamOp::DescribeConsumer { .. } => ("describe the consumer", None),
            StreamOp::RegisterConsumer { .. } => ("register the consumer", None),
            StreamOp::Subscribe { shard, .. } => ("subscribe to", Some(shard.as_str())),
            StreamOp::NextEvent { shard, .. } => ("await an event of", Some(shard.as_str())),
        }
    }
}

/// The shards to list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ShardFilter {
    /// All shards not trimmed yet, open and closed.
    All,
    /// Those open at the trim horizon.
    AtTrimHorizon,
    /// The shards open now.
    AtLatest,
    /// The shards open at a time.
    AtTimestamp(Wall),
}

/// Where to start reading a shard.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum IteratorFrom {
    /// The oldest record.
    TrimHorizon,
    /// The records that arrive from now on.
    Latest,
    /// The first record at or after a time.
    AtTimestamp(Wall),
    /// This record, again. The processed part of this record is filtered by position.
    At(Position),
    /// The record after this position.
    After(Position),
}

/// An operation on the application. Operations of one lease never run in parallel, but for `Abort` and `TimeOut`.
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
    /// Process a batch. `Applied(Processed)` when the whole batch is done, `Applied(ProcessedThrough)` when a part is
    /// done, `Applied(Kept)` when the application keeps the batch to acknowledge it later, `Refused(HandlerFailed)`
    /// when the handler failed, `Refused(RecordFailed)` when the handler failed with a batch of only one record.
    Deliver {
        /// The lease.
        lease: LeaseKey,
        /// The ownership.
        token: FencingToken,
        /// The `GetRecords` that brought the batch.
        batch: OpId,
        /// Leave out all records up to and including this position.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        after: Option<Position>,
        /// Counts attempts at this batch, from 1.
        attempt: u32,
        /// The ownership is known to last until here on this worker's clock, at the moment of the hand-over.
        valid_until: Mono,
    },
    /// Stop the running operations of this lease, but for a `Close`, as soon as possible. An abort has no effect of its
    /// own on the lease.
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
    /// Processing of a shard ends; no further operation follows under this token.
    Close {
        /// The lease.
        lease: LeaseKey,
        /// The ownership.
        token: FencingToken,
        /// Why.
        reason: EndReason,
    },
    /// Acknowledge the kept batches, as far as possible: no more batches are handed over before the answer.
    Flush {
        /// The lease.
        lease: LeaseKey,
        /// The ownership.
        token: FencingToken,
        /// Why.
        why: FlushReason,
        /// Batches not acknowledged by then are given up; [`Mono::NEVER`]: the flush has no deadline.
        until: Mono,
    },
    /// Process one record of a batch: the first record left. `Applied(ProcessedThrough)` with its position when the
    /// record is done, `Applied(Processed)` when no record was left, `Refused(RecordFailed)` with its position when the
    /// handler failed. The record is not kept: an application that would acknowledge the record later is told to flush
    /// and waited for.
    DeliverOne {
        /// The lease.
        lease: LeaseKey,
        /// The ownership.
        token: FencingToken,
        /// The `GetRecords` that brought the batch.
        batch: OpId,
        /// Leave out all records up to and including this position.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        after: Option<Position>,
        /// Counts attempts at this record, from 1.
        attempt: u32,
        /// The ownership is known to last until here on this worker's clock, at the moment of the hand-over.
        valid_until: Mono,
    },
    /// Give an unprocessable record to the application's place for such records. `Applied(ProcessedThrough)` with its
    /// position when the record is safe in this place, `Refused` when the record is not safe.
    SetAside {
        /// The lease.
        lease: LeaseKey,
        /// The ownership.
        token: FencingToken,
        /// The `GetRecords` that brought the batch.
        batch: OpId,
        /// The record.
        record: Position,
        /// How often the handler failed with this record alone.
        attempts: u32,
        /// The last failure.
        detail: String,
        /// The ownership is known to last until here on this worker's clock, at the moment of the hand-over.
        valid_until: Mono,
    },
}

impl ConsumerOp {
    /// The lease of the operation.
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

/// Why a handler is to acknowledge its kept batches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum FlushReason {
    /// The handler keeps as much as allowed: no more batches are handed over until the handler has acknowledged some
    /// records.
    Full,
    /// The handler has all records of an ended shard. The end is written after all records are acknowledged; if the
    /// shard was opened with [`Reply::ConfirmsEnd`](crate::input::Reply::ConfirmsEnd), not before an `Applied` answer
    /// to this flush, too.
    ShardEnd,
    /// The lease is given up, for this reason. What is not acknowledged in time comes again at the next owner.
    Leaving(EndReason),
}
