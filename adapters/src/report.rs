//! What a worker says at its end.

use leasehold_engine::ids::ShardId;
use leasehold_engine::notice::StopSummary;
use leasehold_engine::position::Checkpoint;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;

/// What a worker that was shut down gave up, what it left, and how far its shards were processed. It is shown as what follows
/// "the worker has stopped" in a sentence.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Report {
    /// How many leases were released, how many were left to expire and why, and how many handlers were stopped before the end.
    pub stop: StopSummary,
    /// The last checkpoint that is known to be durable of each shard that the worker held when it was asked to stop, or took
    /// after that. A shard that another worker took from it meanwhile is not among them.
    pub durable: BTreeMap<ShardId, Checkpoint>,
}

impl Report {
    /// Whether every lease was released and every handler had finished. [`Worker::run`](crate::Worker::run) gives a report that
    /// is not clean as [`Error::Unclean`](crate::Error::Unclean).
    pub fn is_clean(&self) -> bool {
        self.stop.is_clean()
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.stop, f)
    }
}
