//! Lease rows, normalised: what every format's items are turned into, and the guarded changes made to them.

use crate::fleet::FleetRow;
use crate::ids::{LeaseKey, ShardId, WorkerId};
use crate::position::{Checkpoint, Position};
use crate::shard::HashRange;
use crate::stream_identity::StreamIdentity;
use crate::time::Wall;
use serde::{Deserialize, Serialize};

/// One lease as its row says, whatever table format it came from.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct LeaseRow {
    /// Primary key.
    pub key: LeaseKey,
    /// Who owns it (during a graceful hand-over: who will own it next). Absent: nobody.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<WorkerId>,
    /// Present while a graceful hand-over is under way: the old owner, who may still renew and checkpoint.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub handing_over: Option<WorkerId>,
    /// Grows with every renewal, take and checkpoint: the evidence of life, and the guard of writes. What it counts is a
    /// matter of the table format ([`Life`](crate::policy::Life)).
    pub counter: u64,
    /// How often the owner changed since the last checkpoint.
    #[serde(default)]
    pub switches: u64,
    /// How far the shard has been processed.
    pub checkpoint: Checkpoint,
    /// The shards it came from; their leases must have ended before this one starts. Sorted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub parents: Vec<ShardId>,
    /// The shards it was split or merged into, once known. Sorted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub children: Vec<ShardId>,
    /// The keys it covers, if the row says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub range: Option<HashRange>,
    /// Whether its owner, or the old one during a hand-over, hands it over when it is asked to.
    #[serde(default, skip_serializing_if = "HandsOver::is_no")]
    pub hands_over: HandsOver,
    /// How much its owner reads of it, in millionths of KiB/s, where owners of KCL 3.x say so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub throughput: Option<u64>,
    /// At `LATEST` or `AT_TIMESTAMP`: the shard is read from the first record that arrived at this moment or later, by each owner. At
    /// any other checkpoint it means nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub began: Option<Wall>,
    /// The stream that the shard is of, if the row says so. Rows of other programs do not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stream: Option<StreamIdentity>,
}

/// Whether the owner of a lease hands it over when another worker asks for it in the row.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum HandsOver {
    /// The row does not say so. The owner may be a worker of another library.
    #[default]
    No,
    /// The owner is about to take what it was given, and will hand it over from then on.
    Later,
    /// It does.
    Yes,
}

impl HandsOver {
    /// Whether the row does not say so.
    pub fn is_no(&self) -> bool {
        *self == HandsOver::No
    }
}

impl LeaseRow {
    /// A row nobody owns yet.
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

    /// Whether no worker has had it yet: a row is created with 0 for its counter, and every take lets that grow.
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
    /// An item of another kind that belongs in the table (worker metrics, locks, migration state). Left alone.
    Foreign {
        /// Its primary key.
        key: LeaseKey,
        /// What it calls itself.
        kind: String,
        /// What it says, if it is one by which workers of KCL 3.x know each other.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        says: Option<Box<FleetRow>>,
    },
    /// An item that should be a lease and cannot be read as one. Left alone, and reported.
    Unreadable {
        /// Its primary key, or what could be made out of it.
        key: LeaseKey,
        /// What was expected and what was found.
        detail: String,
    },
}

impl RowRead {
    /// The lease, if it is one.
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

/// What must still be true of a row for its holder's write to be made.
///
/// KCL guards with the counter alone. The owner is added, so that a late write of a former owner cannot land on a row
/// that was deleted and created again, whose counter came by the same value.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Guard {
    /// The counter last known to be durable.
    pub counter: u64,
    /// The counter that the write leaves.
    pub next: u64,
    /// Us.
    pub holder: WorkerId,
    /// Set while the row is being handed over from us: then we are its old owner, and this is the next.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_owner: Option<WorkerId>,
}

/// Another name of the stream in a row.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Renaming {
    /// The row.
    pub key: LeaseKey,
    /// The counter that must still be there.
    pub counter: u64,
    /// The checkpoint as read.
    pub checkpoint: Checkpoint,
    /// The stream that the row named as read.
    pub named: StreamIdentity,
    /// The stream that the row names from now on.
    pub stream: StreamIdentity,
}

/// A guarded change of one row. Each is one conditional write.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Change {
    /// Put a whole new row, if there is none with its key.
    Create(Box<LeaseRow>),
    /// Let the counter grow.
    Renew {
        /// The row.
        key: LeaseKey,
        /// What must hold.
        guard: Guard,
        /// The moment that the row is to have instead of the one that it has, which the service calls one of its future.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        began: Option<Wall>,
    },
    /// Become the owner; the counter grows and an unfinished hand-over is cleared.
    Take {
        /// The row.
        key: LeaseKey,
        /// The counter that must still be there.
        counter: u64,
        /// The counter that the write leaves.
        next: u64,
        /// The owner as read (it must still be the owner); absent: nobody.
        from: Option<WorkerId>,
        /// The checkpoint as read. It must still be there if checkpoints of others leave the counter as it is.
        checkpoint: Checkpoint,
        /// The new owner: us.
        to: WorkerId,
        /// The moment from which the shard is read, if the row needs one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        began: Option<Wall>,
        /// The stream that the row named as read. It must still name that one; absent: it named none.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        named: Option<StreamIdentity>,
        /// The stream that the row names from now on: ours. Absent: it goes on naming what it named.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        stream: Option<StreamIdentity>,
    },
    /// Ask the owner to hand the lease over to us; the counter stays as it is.
    Claim {
        /// The row.
        key: LeaseKey,
        /// The counter as read. It must still be there where checkpoints and renewals could not be told from a change of owner.
        counter: u64,
        /// The owner as read.
        from: WorkerId,
        /// The checkpoint as read.
        checkpoint: Checkpoint,
        /// Who asks: us.
        by: WorkerId,
    },
    /// Store how far the shard has been processed; counts as a renewal.
    Checkpoint {
        /// The row.
        key: LeaseKey,
        /// What must hold.
        guard: Guard,
        /// The position up to and including which everything was processed.
        position: Position,
    },
    /// Mark the shard as wholly processed, with its children, and give up ownership.
    End {
        /// The row.
        key: LeaseKey,
        /// What must hold.
        guard: Guard,
        /// The shards it was split or merged into.
        children: Vec<ShardId>,
        /// The last position that was processed, where the table is to say so beside the end. Absent: nothing was, or it is not to.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        last: Option<Position>,
    },
    /// Give up ownership; the counter grows.
    Release {
        /// The row.
        key: LeaseKey,
        /// What must hold.
        guard: Guard,
    },
    /// Complete a graceful hand-over: the next owner becomes the only one; the counter grows.
    HandOver {
        /// The row.
        key: LeaseKey,
        /// What must hold; `next_owner` is set.
        guard: Guard,
    },
    /// Fill in the hash range of a row that has none, or correct a wrong one. Does not touch the counter.
    SetRange {
        /// The row, which must exist.
        key: LeaseKey,
        /// The range as read, which must still be there; absent: none.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        was: Option<HashRange>,
        /// The keys it covers.
        range: HashRange,
    },
    /// Put the lease at a checkpoint, be it another or the same, and take it from its owner; an unfinished hand-over and the moment
    /// from which the shard was read are cleared, and the counter grows. No worker makes this change: an operator does.
    Reset {
        /// The row.
        key: LeaseKey,
        /// The counter that must still be there.
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
    /// Name another stream in the row; nothing else changes, the counter neither. No worker makes this change: an operator does.
    Name(Box<Renaming>),
    /// Remove a row whose shard was wholly processed.
    Delete {
        /// The row, whose checkpoint must be the end of the shard.
        key: LeaseKey,
        /// The counter that must still be there.
        counter: u64,
    },
    /// As the leader of a fleet, make another worker the owner of a lease that is free or expired; the counter grows and an
    /// unfinished hand-over is cleared.
    Assign {
        /// The row.
        key: LeaseKey,
        /// The counter that must still be there.
        counter: u64,
        /// The counter that the write leaves.
        next: u64,
        /// The owner as read; absent: nobody.
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
        /// The owner, which must not be handing the lease over.
        owner: WorkerId,
        /// In millionths of KiB/s.
        throughput: u64,
    },
    /// Remove a row, finished or not: its stream is read no more.
    Forget {
        /// The row.
        key: LeaseKey,
        /// The counter that must still be there.
        counter: u64,
        /// The owner as read; absent: nobody.
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

    /// The counter it relies on.
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

    /// The counter it leaves, if it changes it.
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

    /// As older traces have it, and as newer ones have it where the table says nothing beside an end.
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
