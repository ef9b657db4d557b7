//! Records as the application sees them.

use bytes::Bytes;
use leasehold_engine::ids::ShardId;
use leasehold_engine::position::Position;
use leasehold_engine::shard::HashKey;
use leasehold_engine::time::Wall;
use std::fmt;
use std::sync::Arc;

/// One record: a plain record, or one part of an aggregated record. A clone copies no payload.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Record {
    /// The record's shard, by its name: see [`ShardInfo::shard`](crate::ShardInfo::shard).
    pub shard: ShardId,
    /// Where it is in its shard. Parts of an aggregated record share a sequence number and count up in `sub`.
    pub position: Position,
    /// The partition key.
    pub partition_key: Arc<str>,
    /// The hash key its producer gave instead of the partition key's own. Known for parts of aggregated records only.
    pub explicit_hash_key: Option<HashKey>,
    /// The payload.
    pub data: Bytes,
    /// About when it arrived in the stream, by the clock of Kinesis.
    pub arrival: Option<Wall>,
    /// Whether the record was part of an aggregated record (KPL).
    pub aggregated: bool,
}

impl Record {
    /// A plain record. For what stands in the place of Kinesis: an application is given its records.
    #[doc(hidden)]
    pub fn new(shard: ShardId, position: Position, partition_key: Arc<str>, data: Bytes) -> Self {
        Self {
            shard,
            position,
            partition_key,
            explicit_hash_key: None,
            data,
            arrival: None,
            aggregated: false,
        }
    }
}

impl fmt::Debug for Record {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Payloads do not belong into logs.
        f.debug_struct("Record")
            .field("shard", &self.shard)
            .field("position", &self.position)
            .field("partition_key", &self.partition_key)
            .field("bytes", &self.data.len())
            .finish_non_exhaustive()
    }
}
