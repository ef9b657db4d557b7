//! What a worker says at its end.

use leasehold_engine::ids::ShardId;
use leasehold_engine::notice::StopSummary;
use leasehold_engine::position::Checkpoint;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;

/// The result of a shutdown: the leases given up and left, and the progress of the worker's shards. `Display` gives
/// the end of a sentence after "the worker has stopped".
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Report {
    /// How many leases were released, how many were left to expire and why, and how many handlers were stopped before the end.
    pub stop: StopSummary,
    /// The last known durable checkpoint of each shard held by the worker at the request to stop, or taken later. A
    /// shard taken over by another worker meanwhile is not in the map.
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
