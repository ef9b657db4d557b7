//! Everything that can be told to the engine.

use crate::config::{Config, StreamSource};
use crate::ids::{FencingToken, LeaseKey, OpId};
use crate::members::{Leader, MembersPage, Shared};
use crate::position::Position;
use crate::row::RowRead;
use crate::shard::{ChildShard, Shard};
use crate::stream_id::StreamId;
use crate::stream_identity::StreamIdentity;
use crate::time::{Mono, Span, Wall};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::sync::Arc;

/// One input: when, and what. A recorded sequence of inputs is a whole run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Input {
    /// The worker's monotonic clock at the moment of the call. A time in the past counts as no movement of the clock.
    pub at: Mono,
    /// The worker's wall clock at the same moment.
    pub wall: Wall,
    /// The event.
    pub body: Body,
}

/// The event of an input.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Body {
    /// The beginning of a life; always the first input, and only the first.
    Boot(Box<Boot>),
    /// The wake-up that was asked for. Early and late ones are legal.
    Tick,
    /// The outcome of a command. Exactly one outcome per command, eventually.
    Done {
        /// The command.
        op: OpId,
        /// The command's outcome.
        outcome: Outcome,
    },
    /// A message of the application.
    Call(Call),
}

impl Body {
    /// A short name for logs.
    pub fn name(&self) -> &'static str {
        match self {
            Body::Boot(_) => "boot",
            Body::Tick => "tick",
            Body::Done { .. } => "done",
            Body::Call(_) => "call",
        }
    }
}

/// The identity of this worker, and its configuration.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Boot {
    /// The name the operator gave this worker; need not be unique over restarts.
    pub worker: String,
    /// Tells this life from all former lives of the same name: entropy, or a start time in nanoseconds.
    pub incarnation: u64,
    /// Seed of every random choice.
    pub seed: u64,
    /// The configuration.
    pub config: Config,
}

/// A message of the application, or an observed act of the application.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Call {
    /// Everything of this shard up to and including `through` has been processed.
    Processed {
        /// The lease.
        lease: LeaseKey,
        /// The ownership under which the batch was delivered; a stale ownership is ignored.
        token: FencingToken,
        /// The last position processed.
        through: Position,
    },
    /// Write the checkpoint now instead of at the next interval.
    Checkpoint {
        /// The lease.
        lease: LeaseKey,
        /// The ownership the caller believes in; a stale ownership is ignored.
        token: FencingToken,
    },
    /// Stop: finish the running batches, checkpoint, release all leases. The option `shutdown_timeout` limits the time.
    Shutdown,
    /// As [`Call::Shutdown`], within this time, whatever `shutdown_timeout` says. A worker already stopping ends
    /// sooner, if this time is sooner.
    ShutdownWithin(Span),
    /// Hand over no more batches of this shard, and keep its lease. A running handler finishes its batch. The pause
    /// lasts until [`Call::Resume`], and no longer than the ownership. Ignored if the lease is not held.
    Pause {
        /// The lease.
        lease: LeaseKey,
    },
    /// End a pause. Ignored if the shard is not paused.
    Resume {
        /// The lease.
        lease: LeaseKey,
    },
    /// A kept batch of this shard has been processed completely. Kept batches may be acknowledged in any order.
    Acknowledged {
        /// The lease.
        lease: LeaseKey,
        /// The ownership under which the batch was delivered; a stale ownership is ignored.
        token: FencingToken,
        /// The `GetRecords` that brought the batch.
        batch: OpId,
    },
    /// A kept batch will not be processed: the batch and all later records are read and handed over again, after a
    /// pause.
    GivenBack {
        /// The lease.
        lease: LeaseKey,
        /// The ownership under which the batch was delivered; a stale ownership is ignored.
        token: FencingToken,
        /// The `GetRecords` that brought the batch.
        batch: OpId,
        /// Why, for people.
        detail: String,
    },
    /// The runtime of the handlers has run nothing for this time, so no handler can go on. The call is repeated while
    /// the runtime stays blocked.
    RuntimeBlocked(Span),
    /// The runtime runs again. Ignored if no earlier call said that the runtime is blocked.
    RuntimeRuns,
    /// Read a further stream. Ignored by a worker of one stream, and if the stream is read already.
    AddStream(StreamSource),
    /// Read this stream no more: finish the running batches, checkpoint, and release the leases of this stream. Their
    /// rows stay. Ignored by a worker of one stream, and if the stream is not read.
    RemoveStream(StreamId),
}

/// How a command went. There are four ways and no fifth.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// The command was executed, with this answer.
    Applied(Reply),
    /// It was understood and not executed.
    Refused(Refusal),
    /// The command was certainly not executed.
    NotSent(Cause),
    /// The command may have been executed, or may still be executed later.
    Unknown(Cause),
}

/// The answer to a command that was executed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reply {
    /// Executed, without further content: writes, `Open`, `Close`, `CreateTable`.
    Done,
    /// To [`TableOp::Describe`](crate::output::TableOp::Describe).
    Table(TableState),
    /// To [`TableOp::OwnerIndex`](crate::output::TableOp::OwnerIndex): whether the index exists, and is ACTIVE.
    OwnerIndex(bool),
    /// To [`TableOp::Scan`](crate::output::TableOp::Scan).
    Page(ScanPage),
    /// To [`TableOp::Read`](crate::output::TableOp::Read); absent: no such row exists.
    Row(Option<Box<RowRead>>),
    /// To [`StreamOp::Describe`](crate::output::StreamOp::Describe).
    Stream(StreamState),
    /// To [`StreamOp::ListShards`](crate::output::StreamOp::ListShards).
    Shards(ShardPage),
    /// To [`StreamOp::GetIterator`](crate::output::StreamOp::GetIterator): the iterator exists, kept by the adapter.
    Iterator,
    /// To [`StreamOp::GetRecords`](crate::output::StreamOp::GetRecords) and
    /// [`StreamOp::NextEvent`](crate::output::StreamOp::NextEvent).
    Records(Fetched),
    /// To [`StreamOp::DescribeConsumer`](crate::output::StreamOp::DescribeConsumer) and
    /// [`StreamOp::RegisterConsumer`](crate::output::StreamOp::RegisterConsumer).
    Consumer(ConsumerState),
    /// To [`StreamOp::Subscribe`](crate::output::StreamOp::Subscribe): the subscription exists, kept by the adapter.
    Subscribed,
    /// To [`ConsumerOp::Deliver`](crate::output::ConsumerOp::Deliver): the whole batch has been processed.
    Processed,
    /// To [`MembersOp::List`](crate::members::MembersOp::List).
    Members(MembersPage),
    /// To [`MembersOp::ReadLeader`](crate::members::MembersOp::ReadLeader); absent: no such row exists.
    Leader(Option<Leader>),
    /// To [`MembersOp::ReadShards`](crate::members::MembersOp::ReadShards); absent: no such row exists.
    Shared(Option<Shared>),
    /// To [`ConsumerOp::Deliver`](crate::output::ConsumerOp::Deliver) and
    /// [`ConsumerOp::DeliverOne`](crate::output::ConsumerOp::DeliverOne): the batch has been processed up to and including this
    /// position. The rest is to be handed over again. To [`ConsumerOp::SetAside`](crate::output::ConsumerOp::SetAside): the
    /// record at this position was set aside.
    ProcessedThrough(Position),
    /// To [`ConsumerOp::Deliver`](crate::output::ConsumerOp::Deliver): the application keeps the batch, and
    /// acknowledges the batch later.
    Kept,
    /// To [`ConsumerOp::Open`](crate::output::ConsumerOp::Open): the application has opened the shard, and decides
    /// whether the shard's end may be written. The application is told the end with
    /// [`FlushReason::ShardEnd`](crate::output::FlushReason::ShardEnd), even without a kept batch. The end is written
    /// after an `Applied` answer to this flush.
    ConfirmsEnd,
    /// To [`TableOp::Owned`](crate::output::TableOp::Owned).
    Owned(OwnedPage),
}

/// The state of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TableState {
    /// The table does not exist.
    Missing,
    /// The table is being created.
    Creating,
    /// The table can be used (ACTIVE or UPDATING), and its key is the key expected by the format.
    Usable,
    /// The table is being deleted.
    Deleting,
    /// The table exists with another primary key: it belongs to a different program.
    Incompatible,
}

/// One page of a scan.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScanPage {
    /// The rows, in the table's order.
    pub rows: Vec<RowRead>,
    /// Where the next page starts; absent after the last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<LeaseKey>,
}

/// One page of the keys of an owner's leases.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OwnedPage {
    /// The keys, in order. The rows may say otherwise by now.
    pub keys: Vec<LeaseKey>,
    /// The key after which the next page starts; absent after the last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<LeaseKey>,
}

/// The state of a stream.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct StreamState {
    /// Whether shards can be listed and read: ACTIVE or UPDATING.
    pub readable: bool,
    /// When the stream was created; tells the stream from a later stream of the same name.
    pub created: Wall,
    /// Its ARN, as the service says it, however the request named the stream; its name, where the service says no ARN.
    /// Empty: not known, as in traces of earlier versions. Rows are then not compared with the ARN.
    #[serde(default, skip_serializing_if = "str::is_empty")]
    pub arn: Arc<str>,
}

impl StreamState {
    /// The identity of the stream that was described. Absent: the answer says no ARN.
    pub fn identity(&self) -> Option<StreamIdentity> {
        StreamIdentity::new(&self.arn, self.created)
    }
}

/// The state of a consumer of a stream.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ConsumerState {
    /// The ARN of the consumer. A consumer registered anew has another ARN.
    pub arn: Arc<str>,
    /// Whether the consumer may subscribe: ACTIVE.
    pub active: bool,
}

/// One page of ListShards.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShardPage {
    /// The shards.
    pub shards: Vec<Shard>,
    /// Whether another page follows; the adapter keeps the next page's token under this command's id.
    pub more: bool,
}

/// A description of what GetRecords brought. The records themselves stay in the adapter, under this command's id.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fetched {
    /// How many records, before de-aggregation.
    pub count: u32,
    /// Their payload in bytes.
    pub bytes: u64,
    /// The first record's position; absent for an answer without records.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first: Option<Position>,
    /// The last record's position, with the last part of an aggregated one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last: Option<Position>,
    /// How far behind the tip of the stream this answer is, in milliseconds.
    pub behind_ms: u64,
    /// Present at the end of the shard (no next iterator): the shard's children, as named by the answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end: Option<Vec<ChildShard>>,
    /// The answer holds an aggregated record, and no two answers prove the hash keys of the shard: see
    /// [`KnownRange`](crate::known_range::KnownRange). All parts are handed over, and the shards are listed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub range_unproven: bool,
    /// The sequence numbers of the records, before de-aggregation, do not grow from each record to the next: no number
    /// tells the order of the records.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unordered: bool,
}

/// Why a command was refused.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refusal {
    /// The reason.
    pub why: Why,
    /// For a failed condition: the row as it is, if the service returned the row.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub current: Option<Box<RowRead>>,
    /// What the service said, for people.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub detail: String,
}

/// The reason of a refusal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Why {
    /// The guard of a write did not hold.
    ConditionFailed,
    /// The table, stream or shard does not exist.
    NotFound,
    /// The resource exists, or its present state does not allow the request.
    InUse,
    /// The iterator or page token is too old.
    Expired,
    /// Credentials are missing or expired, or do not allow the request.
    Denied,
    /// The request itself is wrong: a limit, a type, a malformed argument.
    Invalid,
    /// The application's handler returned an error.
    HandlerFailed,
    /// The adapter does not have what the command refers to (a batch, an iterator).
    Gone,
    /// The application's handler returned an error, and was given only the record at this position.
    RecordFailed(Position),
    /// The service says that the sequence number of the request belongs to another stream.
    OfAnotherStream,
    /// The clock by which the request was signed is off by too much. Otherwise as [`Denied`](Why::Denied).
    WrongClock,
}

impl Why {
    /// Whether the service refuses all requests of this kind by this worker.
    pub(crate) fn is_denial(self) -> bool {
        matches!(self, Why::Denied | Why::WrongClock)
    }
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Why::ConditionFailed => "the condition of the write did not hold",
            Why::NotFound => "the table, stream or shard does not exist",
            Why::InUse => "the resource is in use",
            Why::Expired => "the iterator or page token has expired",
            Why::Denied => "access was denied",
            Why::WrongClock => "the clock of this host is wrong",
            Why::Invalid => "the service calls the request invalid",
            Why::HandlerFailed | Why::RecordFailed(_) => "the handler returned an error",
            Why::OfAnotherStream => "the service says that the sequence number did not come from this stream",
            Why::Gone => "the batch or iterator is not in memory any more",
        })
    }
}

/// Why a command was not executed, or why its execution is uncertain.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Cause {
    /// No answer in time.
    Timeout,
    /// The connection failed or broke.
    Network,
    /// The service said it failed (5xx).
    Server,
    /// Too many requests; certainly not executed.
    Throttled,
    /// No usable credentials could be had; certainly not sent.
    Credentials,
    /// Given up on our side: the driver, a shutdown, or an `Abort`.
    Cancelled,
    /// The client cannot make the request, for lack of a region or of an endpoint that is a URL; certainly not sent.
    Client,
    /// An answer that could not be read.
    Garbled,
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Cause::Timeout => "the request timed out",
            Cause::Network => "the connection broke",
            Cause::Server => "the service failed",
            Cause::Throttled => "the service throttled the request",
            Cause::Credentials => "no usable credentials were found",
            Cause::Cancelled => "the request was cancelled",
            Cause::Client => "the client cannot make the request",
            Cause::Garbled => "the answer could not be read",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Traces are kept: a shutdown without a time of its own keeps its old spelling.
    #[test]
    fn a_shutdown_is_spelled_with_its_time_only_if_it_has_one() {
        for (call, text) in [
            (Call::Shutdown, r#""shutdown""#),
            (Call::ShutdownWithin(Span::from_millis(1_500)), r#"{"shutdown-within":1500000}"#),
        ] {
            assert_eq!(serde_json::to_string(&call).unwrap(), text);
            assert_eq!(serde_json::from_str::<Call>(text).unwrap(), call);
        }
    }
}
