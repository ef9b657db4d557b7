//! The lease table of KCL for Java 2.x and 3.x, of one stream or of several.

mod decode;
mod encode;
mod fleet;
mod state;

use super::LeaseFormat;
use crate::fleet::{FleetTable, FleetWrite};
use crate::policy::Policies;
use crate::row::{Change, RowRead};
use crate::table::{Item, ItemWrite};

/// The attributes' names.
mod name {
    pub(super) const KEY: &str = "leaseKey";
    pub(super) const OWNER: &str = "leaseOwner";
    pub(super) const COUNTER: &str = "leaseCounter";
    pub(super) const SWITCHES: &str = "ownerSwitchesSinceCheckpoint";
    pub(super) const CHECKPOINT: &str = "checkpoint";
    pub(super) const SUB: &str = "checkpointSubSequenceNumber";
    pub(super) const PENDING: &str = "pendingCheckpoint";
    pub(super) const PENDING_SUB: &str = "pendingCheckpointSubSequenceNumber";
    pub(super) const PENDING_STATE: &str = "pendingCheckpointState";
    pub(super) const PARENTS: &str = "parentShardId";
    pub(super) const CHILDREN: &str = "childShardIds";
    pub(super) const RANGE_START: &str = "startingHashKey";
    pub(super) const RANGE_END: &str = "endingHashKey";
    /// The old owner, while a graceful hand-over is under way.
    pub(super) const OLD_OWNER: &str = "checkpointOwner";
    /// The owner's rate of reading, in KiB/s with up to six decimals. KCL 3.x writes this attribute.
    pub(super) const THROUGHPUT: &str = "throughputKBps";
    pub(super) const ENTITY: &str = "entityType";
    /// In an application of several streams: the identifier of the stream, and the shard id.
    pub(super) const STREAM: &str = "streamName";
    pub(super) const SHARD: &str = "shardId";
    /// Ours: the owner that took the lease and hands it over on request. The attribute means nothing after another
    /// worker's take.
    pub(super) const HANDS_OVER: &str = "leaseholdOwner";
    /// Ours: the worker that requested the lease, until its take.
    pub(super) const NEXT_OWNER: &str = "leaseholdNextOwner";
    /// Ours: at `LATEST` or `AT_TIMESTAMP`, the moment from which the shard is read, in ms since 1970: N.
    pub(super) const BEGAN: &str = "leaseholdBegan";
    /// Ours: the identity of the shard's stream.
    pub(super) const IDENTITY: &str = "leaseholdStream";
}

/// The value of `entityType` in a lease. Before KCL 3.5 leases had no such attribute.
const LEASE: &str = "LEASE";

/// The texts of checkpoints other than sequence numbers.
mod sentinel {
    pub(super) const TRIM_HORIZON: &str = "TRIM_HORIZON";
    pub(super) const LATEST: &str = "LATEST";
    pub(super) const AT_TIMESTAMP: &str = "AT_TIMESTAMP";
    pub(super) const SHARD_END: &str = "SHARD_END";
}

/// The lease table of KCL for Java 2.x and 3.x, of one stream or of several.
///
/// In an application of several streams the key names stream and shard ([`stream_id`](crate::stream_id)). Rows then name their parents and
/// children by shard ids alone.
///
/// The writes are KCL's, with stronger guards: KCL checks the counter alone, here the owner is checked too.
#[derive(Clone, Copy, Debug, Default)]
pub struct Kcl;

impl LeaseFormat for Kcl {
    fn key_name(&self) -> &'static str {
        name::KEY
    }

    fn policies(&self) -> Policies {
        Policies::default()
    }

    fn decode(&self, item: &Item) -> RowRead {
        decode::decode(item)
    }

    fn lacks(&self, item: &Item) -> Vec<&'static str> {
        decode::lacks(item)
    }

    fn encode(&self, change: &Change) -> ItemWrite {
        ItemWrite {
            key: self.key(change.key()),
            condition: encode::condition(change),
            action: encode::action(change),
        }
    }

    fn encode_fleet(&self, write: &FleetWrite) -> Option<ItemWrite> {
        Some(fleet::spelled(name::KEY, write))
    }

    fn fleet_table_key(&self, table: FleetTable) -> Option<&'static str> {
        Some(fleet::key_name(table))
    }

    fn decode_fleet(&self, table: FleetTable, item: &Item) -> RowRead {
        decode::decode_fleet(fleet::key_name(table), item)
    }

    fn encode_fleet_in(&self, table: FleetTable, write: &FleetWrite) -> Option<ItemWrite> {
        Some(fleet::spelled(fleet::key_name(table), write))
    }

    fn owner_index_key(&self) -> Option<&'static str> {
        Some(name::OWNER)
    }
}

#[cfg(test)]
mod tests;
