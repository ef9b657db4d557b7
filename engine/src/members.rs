//! The messages of workers to each other beside the lease table, where leases are assigned by rank: members report
//! their life, the leader claims the lead, and the leader shares out the shards.

use crate::ids::{ShardId, WorkerId};
use serde::{Deserialize, Serialize};

/// A table beside the lease table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Side {
    /// One row for each member.
    Members,
    /// One row with the leader's name, and one row with the shards.
    Fleet,
}

impl Side {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Members, Self::Fleet];

    /// The table's purpose, for people.
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
        /// Start after this member; absent: from the beginning.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        after: Option<WorkerId>,
    },
    /// Read the leader's row.
    ReadLeader,
    /// The shards that are shared out.
    ReadShards,
    /// One write. A failed guard is refused with `ConditionFailed`; the row is not given.
    Write(MembersChange),
}

/// A row with the time of its last write.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Member {
    /// The member.
    pub id: WorkerId,
    /// In nanoseconds since 1970, of the writer's clock.
    pub at: u64,
}

/// The row of the leader.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Leader {
    /// The leader; absent: no member leads, as the leader stepped down.
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
    /// The members, in the table's order. Unreadable rows are left out.
    pub members: Vec<Member>,
    /// Where the next page starts; absent after the last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<WorkerId>,
}

/// A write to the tables of members. Times are in nanoseconds since 1970.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MembersChange {
    /// Report that we live, over any earlier row.
    Register(Member),
    /// Remove our own row, whatever it says.
    Leave(WorkerId),
    /// Remove the row of a member that died long ago, if the row is unchanged since the read.
    Reap(Member),
    /// Become the leader, or remain the leader, if the row is unchanged since the read.
    Lead {
        /// Us, and now.
        me: Member,
        /// The row as read; absent: the row did not exist.
        seen: Option<Leader>,
    },
    /// Lead no more, if we do.
    StepDown(Member),
    /// Share out different shards, if the row is unchanged since the read.
    Share {
        /// The new row.
        shared: Shared,
        /// The time in the row as read; absent: the row did not exist.
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
