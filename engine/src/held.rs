//! A held lease, as a host sees it.

use crate::ids::{FencingToken, LeaseKey};
use crate::position::{Checkpoint, Position};
use crate::time::Mono;

/// A held lease, as the worker knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Held<'a> {
    /// The lease.
    pub lease: &'a LeaseKey,
    /// The ownership.
    pub token: FencingToken,
    /// The counter of the last write known to be durable.
    pub counter: u64,
    /// The checkpoint of the last write known to be durable.
    pub checkpoint: Checkpoint,
    /// The worker believes in its ownership before this moment, and not at or after this moment.
    pub valid_until: Mono,
    /// Whether the application has the shard open.
    pub open: bool,
    /// Whether the last notice about the shard's movement said that the shard has stalled ([`Notice::Stalled`](crate::notice::Notice::Stalled)).
    pub stalled: bool,
    /// Whether no batch is handed over because the application paused the shard
    /// ([`Call::Pause`](crate::input::Call::Pause)).
    pub paused: bool,
    /// Whether nothing is handed over because of a record that the handler could not process
    /// ([`Notice::ShardStopped`](crate::notice::Notice::ShardStopped)), until the application resumes the shard.
    pub stopped: bool,
    /// The last position processed under this ownership; absent: no record was processed. The checkpoint follows this
    /// position.
    pub processed: Option<Position>,
}
