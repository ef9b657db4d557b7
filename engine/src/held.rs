//! A held lease, as a host sees it.

use crate::ids::{FencingToken, LeaseKey};
use crate::position::{Checkpoint, Position};
use crate::time::Mono;

/// A lease this worker holds, as it knows it.
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
    /// The worker believes in its ownership before this moment, and not at or after it.
    pub valid_until: Mono,
    /// Whether the application has the shard open.
    pub open: bool,
    /// Whether it was said that its shard does not move ([`Notice::Stalled`](crate::notice::Notice::Stalled)), and not yet that it moves again.
    pub stalled: bool,
    /// Whether nothing is handed over because the application wants it so ([`Call::Pause`](crate::input::Call::Pause)).
    pub paused: bool,
    /// Whether nothing is handed over because of a record that the handler could not process
    /// ([`Notice::ShardStopped`](crate::notice::Notice::ShardStopped)), until the application resumes the shard.
    pub stopped: bool,
    /// The last position that was processed under this ownership; absent: none was. The checkpoint follows it.
    pub processed: Option<Position>,
}
