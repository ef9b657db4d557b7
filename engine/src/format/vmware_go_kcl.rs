//! The lease table of vmware-go-kcl, versions 1 and 2.
//!
//! | attribute | type | what it says |
//! |---|---|---|
//! | `ShardID` | S, hash key | the lease |
//! | `AssignedTo` | S | the owner; absent: nobody |
//! | `LeaseTimeout` | S | until when, a time as Go's `RFC3339Nano` in UTC: what guards the row |
//! | `Checkpoint` | S | a sequence number or `SHARD_END`; absent or empty: nothing processed yet |
//! | `ParentShardId` | S | the first parent only |
//! | `ClaimRequest` | S | who asks the owner to give the lease up |
//!
//! Programs of vmware-go-kcl take a row without `Checkpoint` for a shard long gone: they begin its children at once,
//! keep the remembered checkpoint, and do not see the lease's owner. So a row created, taken or rewound by ours has an
//! empty checkpoint while no checkpoint is stored.
//!
//! All of these are strings: its workers end themselves on any other type. NULL, which boto3 writes for None, is read here as absent, and
//! the next take puts a string in its place. What is ours begins with `Leasehold`.

use super::deadline::Columns;
use crate::calendar::{read_go, spell_go};

/// The table's attributes.
pub(super) const COLUMNS: Columns = Columns {
    key: "ShardID",
    owner: "AssignedTo",
    timeout: "LeaseTimeout",
    checkpoint: "Checkpoint",
    parent: "ParentShardId",
    claim: "ClaimRequest",
    start: "LeaseholdStart",
    began: "LeaseholdBegan",
    sub: "LeaseholdSubSequence",
    parents: "LeaseholdParents",
    children: "LeaseholdChildren",
    range_start: "LeaseholdRangeStart",
    range_end: "LeaseholdRangeEnd",
    stream: "LeaseholdStream",
    exact: None,
    spell: spell_go,
    read: read_go,
    time: "a time of 1970 or later as Go spells RFC 3339 in UTC",
    says_none: true,
};
