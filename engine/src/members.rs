//! What workers say to each other beside the lease table, where leases are assigned by rank: that they live, who leads, and
//! which shards are shared out.

use crate::ids::{ShardId, WorkerId};
use serde::{Deserialize, Serialize};

/// A table beside the lease table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Side {
    /// One row for each member.
    Members,
    /// One row that names the leader, and one with the shards.
    Fleet,
}

impl Side {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Members, Self::Fleet];

    /// What it is, for people.
    pub fn name(self) -> &'static str {
        match self {
            Side::Members => "members",
            Side::Fleet => "leader and shards",
        }
    }
}

/// An operation on the tables of members. Reads are strongly consistent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MembersOp {
    /// A table's state. A missing table is an answer, not a refusal.
    Describe(Side),
    /// Create a table. Refused with `InUse` if it exists.
    Create(Side),
    /// One page of members.
    List {
        /// Start after this one; absent: from the beginning.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        after: Option<WorkerId>,
    },
    /// Who leads.
    ReadLeader,
    /// The shards that are shared out.
    ReadShards,
    /// One write. A failed guard is refused with `ConditionFailed`; the row is not given.
    Write(MembersChange),
}

/// A row with the time at which it was written.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Member {
    /// Who.
    pub id: WorkerId,
    /// In nanoseconds since 1970, of the writer's clock.
    pub at: u64,
}

/// The row of the leader.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Leader {
    /// Who; absent: nobody, somebody stepped down.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<WorkerId>,
    /// In nanoseconds since 1970, of the writer's clock.
    pub at: u64,
}

/// The shards that are shared out among the members, in the order of their names.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Shared {
    /// Their ids.
    pub shards: Vec<ShardId>,
    /// In nanoseconds since 1970, of the writer's clock.
    pub at: u64,
}

/// One page of members.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MembersPage {
    /// The members, in the table's order. Rows that cannot be read as such are left out.
    pub members: Vec<Member>,
    /// Where the next page starts; absent after the last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<WorkerId>,
}

/// A write to the tables of members. Times are in nanoseconds since 1970.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MembersChange {
    /// Say that we live, whatever was there.
    Register(Member),
    /// Remove our own row, whatever it says.
    Leave(WorkerId),
    /// Remove the row of one that died long ago, if it is as it was read.
    Reap(Member),
    /// Become the leader, or remain it, if the row is as it was read.
    Lead {
        /// Us, and now.
        me: Member,
        /// The row as read; absent: there was none.
        seen: Option<Leader>,
    },
    /// Lead no more, if we do.
    StepDown(Member),
    /// Share out other shards, if the row is as it was read.
    Share {
        /// The new row.
        shared: Shared,
        /// The time in the row as read; absent: there was none.
        seen: Option<u64>,
    },
}

impl MembersOp {
    /// A short name for logs.
    pub fn verb(&self) -> &'static str {
        match self {
            MembersOp::Describe(_) => "describe a table of members",
            MembersOp::Create(_) => "create a table of members",
            MembersOp::List { .. } => "list the members",
            MembersOp::ReadLeader => "read who leads",
            MembersOp::ReadShards => "read which shards are shared out",
            MembersOp::Write(change) => match change {
                MembersChange::Register(_) => "register as a member",
                MembersChange::Leave(_) => "leave the members",
                MembersChange::Reap(_) => "remove a dead member",
                MembersChange::Lead { .. } => "become the leader",
                MembersChange::StepDown(_) => "step down as the leader",
                MembersChange::Share { .. } => "share out the shards",
            },
        }
    }
}
