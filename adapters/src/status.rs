//! What a worker shows of itself: [`Control::status`](crate::Control::status).

use leasehold_engine::ids::{FencingToken, LeaseKey, ShardId, WorkerId};
use leasehold_engine::position::{Checkpoint, Position};
use leasehold_engine::time::Span;
use serde::Serialize;

/// The state of a worker, and every lease held by the worker. Lengths of time are serialized as microseconds.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Status {
    /// The worker's name in the lease table in this life. Absent before [`Worker::run`](crate::Worker::run).
    pub worker: Option<WorkerId>,
    /// What the worker does.
    pub phase: Phase,
    /// For how long it has done that. 0 before [`Worker::run`](crate::Worker::run).
    pub phase_for: Span,
    /// For how long the runtime of the handlers has run nothing, once the worker has reported a block: see
    /// [`RuntimeNews::Blocked`](crate::RuntimeNews::Blocked).
    pub blocked_for: Option<Span>,
    /// The held leases, in the order of their keys. After the worker's stop: the leases left to expire.
    pub leases: Vec<LeaseStatus>,
}

/// What a worker does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Phase {
    /// It has not been run, or has not read the whole lease table for the first time.
    #[default]
    Starting,
    /// It takes and holds leases.
    Running,
    /// It gives its leases up: it was asked to, or cannot go on.
    Stopping,
    /// [`Worker::run`](crate::Worker::run) has ended, or was dropped.
    Stopped,
}

/// A lease that a worker holds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct LeaseStatus {
    /// The key of the lease's row in the lease table.
    pub lease: LeaseKey,
    /// The shard it is for, by its name: see [`ShardInfo::shard`](crate::ShardInfo::shard).
    pub shard: ShardId,
    /// Grows with every change of the shard's owner.
    pub token: FencingToken,
    /// The last checkpoint known to be durable.
    pub checkpoint: Checkpoint,
    /// The last position processed under this ownership; the checkpoint follows this position. Absent: nothing was
    /// processed.
    pub processed: Option<Position>,
    /// The number of records fetched and not yet processed.
    pub waiting: u64,
    /// All records older than this are processed. Before the first answer of Kinesis: how long the lease has been
    /// held.
    pub behind: Span,
    /// Whether Kinesis has answered a read of the shard under this ownership. Before the answer, the shard's content
    /// is unknown.
    pub read: bool,
    /// Whether a handler has the shard open.
    pub open: bool,
    /// Whether [`Control::pause`](crate::Control::pause) pauses the shard's handler.
    pub paused: bool,
    /// The shard's present reason to wait, in words, for short and long waits. Absent: the shard waits for new
    /// records only.
    pub waits_for: Option<String>,
    /// For how long the worker still counts on the lease without a renewal; 0: no longer, and the shard's handler is
    /// given nothing.
    pub remaining: Span,
    /// The shard's standstill, and its reason. Absent while the shard moves, and for the first `stall_after` (60 s by
    /// default) of a standstill.
    pub stalled: Option<Stalled>,
}

/// That a shard does not move.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Stalled {
    /// For how long nothing was processed although the shard has, or may have, records to process.
    pub idle: Span,
    /// The reason at the last look, in words: the text of the last [`Notice::Stalled`](crate::Notice::Stalled).
    pub waits_for: String,
}
