//! Lease rows, normalised: every format's items are turned into these rows, and guarded changes are made to these rows.

use crate::fleet::FleetRow;
use crate::ids::{LeaseKey, ShardId, WorkerId};
use crate::position::{Checkpoint, Position};
use crate::shard::HashRange;
use crate::stream_identity::StreamIdentity;
use crate::time::Wall;
use serde::{Deserialize, Serialize};

/// One lease as described by its row, in any table format.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct LeaseRow {
    /// Primary key.
    pub key: LeaseKey,
    /// The owner (during a graceful hand-over: the next owner). Absent: no owner.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<WorkerId>,
    /// Present while a graceful hand-over is under way: the old owner; it may still renew and checkpoint.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub handing_over: Option<WorkerId>,
    /// Grows with every renewal, take and checkpoint: the evidence of life, and the guard of writes. The table format
    /// decides the counter's meaning ([`Life`](crate::policy::Life)).
    pub counter: u64,
    /// How often the owner changed since the last checkpoint.
    #[serde(default)]
    pub switches: u64,
    /// How far the shard has been processed.
    pub checkpoint: Checkpoint,
    /// The shard's parents; their leases must have ended before this lease starts. Sorted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub parents: Vec<ShardId>,
    /// The children after a split or a merge, once known. Sorted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub children: Vec<ShardId>,
    /// The keys it covers, if the row says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub range: Option<HashRange>,
    /// Whether its owner, or the old owner during a hand-over, hands over a requested lease.
    #[serde(default, skip_serializing_if = "HandsOver::is_no")]
    pub hands_over: HandsOver,
    /// The rate at which its owner reads the shard, in millionths of KiB/s, where owners of KCL 3.x write a rate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub throughput: Option<u64>,
    /// At `LATEST` or `AT_TIMESTAMP`: each owner reads the shard from the first record that arrived at this moment or
    /// later. The moment has no meaning at any other checkpoint.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub began: Option<Wall>,
    /// The stream of the shard, if the row names its stream. Rows of other programs do not name a stream.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stream: Option<StreamIdentity>,
}

/// Whether the owner of a lease hands the lease over after another worker's request in the row.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum HandsOver {
    /// The row does not say so. The owner may be a worker of another library.
    #[default]
    No,
    /// The owner is about to accept the lease, and will hand it over on request from then on.
    Later,
    /// The owner hands the lease over on request.
    Yes,
}

impl HandsOver {
    /// Whether the row does not say so.
    pub fn is_no(&self) -> bool {
        *self == HandsOver::No
    }
}

impl LeaseRow {
    /// A row without an owner yet.
    pub fn new(key: LeaseKey, checkpoint: Checkpoint) -> Self {
        Self {
            key,
            owner: None,
            handing_over: None,
            counter: 0,
            switches: 0,
            checkpoint,
            parents: Vec::new(),
            children: Vec::new(),
            range: None,
            hands_over: HandsOver::No,
            throughput: None,
            began: None,
            stream: None,
        }
    }

    /// Whether no worker has owned the lease yet: a row is created with counter 0, and every take increases the
    /// counter.
    pub fn never_owned(&self) -> bool {
        self.counter == 0 && self.owner.is_none()
    }

    /// Who may process the shard now: the old owner while a hand-over is under way.
    pub fn actual_owner(&self) -> Option<&WorkerId> {
        self.handing_over.as_ref().or(self.owner.as_ref())
    }
}

/// What a table item turned out to be.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[expect(
    clippy::large_enum_variant,
    reason = "nearly all items of a table are leases, and a box would cost each of them an allocation"
)]
pub enum RowRead {
    /// A lease.
    Lease(LeaseRow),
    /// An item of another kind, with a place in this table (worker metrics, locks, migration state). Workers leave the
    /// item alone.
    Foreign {
        /// The item's primary key.
        key: LeaseKey,
        /// The item's own name of its kind.
        kind: String,
        /// The contents, if the row is a row by which workers of KCL 3.x know each other.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        says: Option<Box<FleetRow>>,
    },
    /// An item that should be a lease and cannot be read as a lease. Workers leave the item alone, and report it.
    Unreadable {
        /// Its primary key, or the readable part of the key.
        key: LeaseKey,
        /// The expected and the found value.
        detail: String,
    },
}

impl RowRead {
    /// The lease, if the item is a lease.
    pub fn lease(&self) -> Option<&LeaseRow> {
        match self {
            RowRead::Lease(row) => Some(row),
            _ => None,
        }
    }

    /// The primary key.
    pub fn key(&self) -> &LeaseKey {
        match self {
            RowRead::Lease(row) => &row.key,
            RowRead::Foreign { key, .. } | RowRead::Unreadable { key, .. } => key,
        }
    }
}

/// The conditions on a row for its holder's write.
///
/// KCL guards with the counter alone. Our guard adds the owner. A row may be deleted and created again, and its counter
/// may reach the same value by chance; the owner keeps a late write of a former owner away from such a row.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Guard {
    /// The counter last known to be durable.
    pub counter: u64,
    /// The counter that the write leaves.
    pub next: u64,
    /// Us.
    pub holder: WorkerId,
    /// Set while we hand the row over: then we are its old owner, and this worker is the next owner.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_owner: Option<WorkerId>,
}

/// Another name of the stream in a row.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Renaming {
    /// The row.
    pub key: LeaseKey,
    /// The counter required in the row.
    pub counter: u64,
    /// The checkpoint as read.
    pub checkpoint: Checkpoint,
    /// The stream that the row named as read.
    pub named: StreamIdentity,
    /// The stream that the row names from now on.
    pub stream: StreamIdentity,
}

/// A guarded change of one row. Each change is one conditional write.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Change {
    /// Put a whole new row, if no row with its key exists.
    Create(Box<LeaseRow>),
    /// Let the counter grow.
    Renew {
        /// The row.
        key: LeaseKey,
        /// The required state of the row.
        guard: Guard,
        /// The row's new moment, in place of a moment that the service calls a future time.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        began: Option<Wall>,
    },
    /// Become the owner; the counter grows and an unfinished hand-over is cleared.
    Take {
        /// The row.
        key: LeaseKey,
        /// The counter required in the row.
        counter: u64,
        /// The counter that the write leaves.
        next: u64,
        /// The owner as read (the row must still name this owner); absent: no owner.
        from: Option<WorkerId>,
        /// The checkpoint as read. The row must still hold this checkpoint if other programs' checkpoints leave the
        /// counter as it is.
        checkpoint: Checkpoint,
        /// The new owner: us.
        to: WorkerId,
        /// The moment from which owners read the shard, if the row needs a moment.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        began: Option<Wall>,
        /// The stream named by the row as read. The row must still name this stream; absent: the row named no stream.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        named: Option<StreamIdentity>,
        /// The stream named by the row from now on: ours. Absent: the row keeps its present name.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        stream: Option<StreamIdentity>,
    },
    /// Ask the owner to hand the lease over to us; the counter stays as it is.
    Claim {
        /// The row.
        key: LeaseKey,
        /// The counter as read. The row must still hold this counter where checkpoints and renewals look like a change
        /// of owner.
        counter: u64,
        /// The owner as read.
        from: WorkerId,
        /// The checkpoint as read.
        checkpoint: Checkpoint,
        /// The requesting worker: us.
        by: WorkerId,
    },
    /// Store how far the shard has been processed; counts as a renewal.
    Checkpoint {
        /// The row.
        key: LeaseKey,
        /// The required state of the row.
        guard: Guard,
        /// The position up to and including which all records were processed.
        position: Position,
    },
    /// Mark the shard as wholly processed, with its children, and give up ownership.
    End {
        /// The row.
        key: LeaseKey,
        /// The required state of the row.
        guard: Guard,
        /// The shards it was split or merged into.
        children: Vec<ShardId>,
        /// The last processed position, where the table is to hold a position beside the end. Absent: no record was
        /// processed, or the table holds none.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        last: Option<Position>,
    },
    /// Give up ownership; the counter grows.
    Release {
        /// The row.
        key: LeaseKey,
        /// The required state of the row.
        guard: Guard,
    },
    /// Complete a graceful hand-over: the next owner becomes the only one; the counter grows.
    HandOver {
        /// The row.
        key: LeaseKey,
        /// The required state of the row; `next_owner` is set.
        guard: Guard,
    },
    /// Fill in the hash range of a row without a range, or correct a wrong range. The counter stays.
    SetRange {
        /// The row; it must exist.
        key: LeaseKey,
        /// The range as read; the row must still hold this range; absent: none.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        was: Option<HashRange>,
        /// The hash keys of the shard.
        range: HashRange,
    },
    /// Put the lease at a new or the same checkpoint, and take the lease from its owner; an unfinished hand-over and
    /// the moment from which the shard was read are cleared, and the counter grows. Operators make this change, and
    /// workers never do.
    Reset {
        /// The row.
        key: LeaseKey,
        /// The counter required in the row.
        counter: u64,
        /// The counter that the write leaves.
        next: u64,
        /// The owner as read.
        owner: Option<WorkerId>,
        /// The old owner of an unfinished hand-over, as read.
        handing_over: Option<WorkerId>,
        /// The checkpoint as read.
        checkpoint: Checkpoint,
        /// The checkpoint that the write leaves.
        to: Checkpoint,
    },
    /// Name another stream in the row; all other attributes stay, and the counter, too. Operators make this change, and
    /// workers never do.
    Name(Box<Renaming>),
    /// Remove a row whose shard was wholly processed.
    Delete {
        /// The row, whose checkpoint must be the end of the shard.
        key: LeaseKey,
        /// The counter required in the row.
        counter: u64,
    },
    /// As the leader of a fleet, assign a free or expired lease to another worker; the counter grows and an unfinished
    /// hand-over is cleared.
    Assign {
        /// The row.
        key: LeaseKey,
        /// The counter required in the row.
        counter: u64,
        /// The counter that the write leaves.
        next: u64,
        /// The owner as read; absent: no owner.
        from: Option<WorkerId>,
        /// The old owner of an unfinished hand-over, as read.
        handing_over: Option<WorkerId>,
        /// The new owner.
        to: WorkerId,
    },
    /// As the leader of a fleet, ask the owner to hand the lease over to another worker; the counter stays as it is.
    Offer {
        /// The row.
        key: LeaseKey,
        /// The owner as read.
        from: WorkerId,
        /// The next owner.
        to: WorkerId,
    },
    /// Say how much is read of the shard. Does not touch the counter.
    Weigh {
        /// The row.
        key: LeaseKey,
        /// The owner; it must not be handing the lease over.
        owner: WorkerId,
        /// In millionths of KiB/s.
        throughput: u64,
    },
    /// Remove a row, finished or not: its stream is read no more.
    Forget {
        /// The row.
        key: LeaseKey,
        /// The counter required in the row.
        counter: u64,
        /// The owner as read; absent: no owner.
        owner: Option<WorkerId>,
        /// The old owner of an unfinished hand-over, as read.
        handing_over: Option<WorkerId>,
    },
}

impl Change {
    /// The primary key of the row it changes.
    pub fn key(&self) -> &LeaseKey {
        match self {
            Change::Create(row) => &row.key,
            Change::Name(renaming) => &renaming.key,
            Change::Renew { key, .. }
            | Change::Take { key, .. }
            | Change::Claim { key, .. }
            | Change::Assign { key, .. }
            | Change::Offer { key, .. }
            | Change::Checkpoint { key, .. }
            | Change::End { key, .. }
            | Change::Release { key, .. }
            | Change::HandOver { key, .. }
            | Change::SetRange { key, .. }
            | Change::Reset { key, .. }
            | Change::Delete { key, .. }
            | Change::Weigh { key, .. }
            | Change::Forget { key, .. } => key,
        }
    }

    /// The counter required by the change.
    pub fn guard(&self) -> Option<u64> {
        match self {
            Change::Create(_) | Change::Offer { .. } | Change::SetRange { .. } | Change::Weigh { .. } => None,
            Change::Name(renaming) => Some(renaming.counter),
            Change::Renew { guard, .. }
            | Change::Checkpoint { guard, .. }
            | Change::End { guard, .. }
            | Change::Release { guard, .. }
            | Change::HandOver { guard, .. } => Some(guard.counter),
            Change::Take { counter, .. }
            | Change::Claim { counter, .. }
            | Change::Assign { counter, .. }
            | Change::Reset { counter, .. }
            | Change::Delete { counter, .. }
            | Change::Forget { counter, .. } => Some(*counter),
        }
    }

    /// The counter left by the change, if the change sets a counter.
    pub fn leaves(&self) -> Option<u64> {
        match self {
            Change::Create(row) => Some(row.counter),
            Change::Renew { guard, .. }
            | Change::Checkpoint { guard, .. }
            | Change::End { guard, .. }
            | Change::Release { guard, .. }
            | Change::HandOver { guard, .. } => Some(guard.next),
            Change::Take { next, .. } | Change::Assign { next, .. } | Change::Reset { next, .. } => {
                Some(*next)
            }
            Change::Claim { .. }
            | Change::Offer { .. }
            | Change::SetRange { .. }
            | Change::Name(_)
            | Change::Delete { .. }
            | Change::Weigh { .. }
            | Change::Forget { .. } => None,
        }
    }

    /// A short name for logs.
    pub fn verb(&self) -> &'static str {
        match self {
            Change::Create(_) => "create",
            Change::Renew { .. } => "renew",
            Change::Take { .. } => "take",
            Change::Claim { .. } => "claim",
            Change::Assign { .. } => "assign",
            Change::Offer { .. } => "offer",
            Change::Checkpoint { .. } => "checkpoint",
            Change::End { .. } => "end",
            Change::Release { .. } => "release",
            Change::HandOver { .. } => "hand over",
            Change::SetRange { .. } => "set range",
            Change::Reset { .. } => "reset",
            Change::Name(_) => "name the stream of",
            Change::Delete { .. } => "delete",
            Change::Weigh { .. } => "weigh",
            Change::Forget { .. } => "forget",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::{AtEnd, Policies};

    /// The spelling of older traces, and of newer traces where the table holds nothing beside an end.
    #[test]
    fn an_end_that_says_no_position_is_read_and_written_as_before() {
        let text = r#"{"end":{"key":"a","guard":{"counter":1,"next":2,"holder":"w"},"children":["b"]}}"#;
        let end: Change = serde_json::from_str(text).expect("an end");
        assert!(matches!(end, Change::End { last: None, .. }), "{end:?}");
        assert_eq!(serde_json::to_string(&end).expect("a text"), text);
        let policies = serde_json::to_string(&Policies::default()).expect("a text");
        assert!(!policies.contains("at_end"), "{policies}");
        let read: Policies = serde_json::from_str(&policies).expect("policies");
        assert_eq!(read.at_end, AtEnd::Alone);
    }
}
