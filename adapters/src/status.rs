//! What a worker shows of itself: [`Control::status`](crate::Control::status).

use leasehold_engine::ids::{FencingToken, LeaseKey, ShardId, WorkerId};
use leasehold_engine::position::{Checkpoint, Position};
use leasehold_engine::time::Span;
use serde::Serialize;

/// What a worker does, and every lease it holds. Lengths of time are serialized as microseconds.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Status {
    /// The name that this life of the worker writes into the lease table. Absent before [`Worker::run`](crate::Worker::run).
    pub worker: Option<WorkerId>,
    /// What the worker does.
    pub phase: Phase,
    /// For how long it has done that. 0 before [`Worker::run`](crate::Worker::run).
    pub phase_for: Span,
    /// For how long the runtime of the handlers has run nothing, once the worker has said so: see
    /// [`RuntimeNews::Blocked`](crate::RuntimeNews::Blocked).
    pub blocked_for: Option<Span>,
    /// The leases it holds, in the order of their keys. Of a worker that has stopped: those that it left to expire.
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
    /// The key of its row in the lease table.
    pub lease: LeaseKey,
    /// The shard it is for, by its name: see [`ShardInfo::shard`](crate::ShardInfo::shard).
    pub shard: ShardId,
    /// Grows with every change of the shard's owner.
    pub token: FencingToken,
    /// The last checkpoint that is known to be durable.
    pub checkpoint: Checkpoint,
    /// The last position that was processed under this ownership; the checkpoint follows it. Absent: none was.
    pub processed: Option<Position>,
    /// So many records were fetched and are not processed.
    pub waiting: u64,
    /// Everything that came to the shard longer ago than this is processed. Before the first answer of Kinesis: how long the
    /// lease has been held.
    pub behind: Span,
    /// Whether Kinesis has answered a read of the shard under this ownership. Before that, nothing is known of what is in it.
    pub read: bool,
    /// Whether a handler has the shard open.
    pub open: bool,
    /// Whether [`Control::pause`](crate::Control::pause) keeps it from being handed anything.
    pub paused: bool,
    /// What it waits for now, in words, be it for a moment or for long. Absent: for new records alone.
    pub waits_for: Option<String>,
    /// For how long the worker still counts on the lease if it is not renewed; 0: it does not, and its handler is given nothing.
    pub remaining: Span,
    /// That the shard does not move, and what it waits for. Absent while it moves, and for the first `stall_after` (60 s by
    /// default) in which it does not.
    pub stalled: Option<Stalled>,
}

/// That a shard does not move.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Stalled {
    /// For how long nothing was processed although there is, or may be, something to process.
    pub idle: Span,
    /// What it waited for when that was last looked at, in words: as the last [`Notice::Stalled`](crate::Notice::Stalled) said.
    pub waits_for: String,
}
