//! The lease table of KCL for Java 2.x and 3.x, single stream.

mod decode;
mod encode;

use super::Dialect;
use crate::ids::LeaseKey;
use crate::policy::Policies;
use crate::row::{Change, RowRead};
use crate::table::{AttributeValue, Item, ItemWrite};

/// The attributes' names.
mod name {
    pub const KEY: &str = "leaseKey";
    pub const OWNER: &str = "leaseOwner";
    pub const COUNTER: &str = "leaseCounter";
    pub const SWITCHES: &str = "ownerSwitchesSinceCheckpoint";
    pub const CHECKPOINT: &str = "checkpoint";
    pub const SUB: &str = "checkpointSubSequenceNumber";
    pub const PENDING: &str = "pendingCheckpoint";
    pub const PENDING_SUB: &str = "pendingCheckpointSubSequenceNumber";
    pub const PENDING_STATE: &str = "pendingCheckpointState";
    pub const PARENTS: &str = "parentShardId";
    pub const CHILDREN: &str = "childShardIds";
    pub const RANGE_START: &str = "startingHashKey";
    pub const RANGE_END: &str = "endingHashKey";
    /// The old owner, while a graceful hand-over is under way.
    pub const OLD_OWNER: &str = "checkpointOwner";
    pub const ENTITY: &str = "entityType";
}

/// What `entityType` says of a lease. Before KCL 3.5 there was no such attribute.
const LEASE: &str = "LEASE";

/// The texts of checkpoints that are no sequence number.
mod sentinel {
    pub const TRIM_HORIZON: &str = "TRIM_HORIZON";
    pub const LATEST: &str = "LATEST";
    pub const AT_TIMESTAMP: &str = "AT_TIMESTAMP";
    pub const SHARD_END: &str = "SHARD_END";
}

/// The lease table of KCL for Java 2.x and 3.x, single stream.
///
/// The writes are KCL's, with stronger guards: KCL checks the counter alone, here the owner is checked too.
#[derive(Clone, Copy, Debug, Default)]
pub struct Kcl;

impl Dialect for Kcl {
    fn key_name(&self) -> &'static str {
        name::KEY
    }

    fn policies(&self) -> Policies {
        Policies::default()
    }

    fn key(&self, key: &LeaseKey) -> Item {
        Item::from([(name::KEY.into(), AttributeValue::s(key.clone()))])
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
}

#[cfg(test)]
mod tests;
