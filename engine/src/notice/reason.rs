//! Why a lease was chosen, taken or lost, and why the shards are listed.

use crate::ids::{LeaseKey, WorkerId};
use crate::row::LeaseRow;
use crate::time::Span;
use serde::{Deserialize, Serialize};
use std::fmt;

/// The facts weighed at the choice of leases to take. Lists are cut to [`Choice::MOST`] entries.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Choice {
    /// How many are taken, or asked for.
    pub taken: u32,
    /// The leases to be taken, or asked for, in the order drawn.
    pub chosen: Vec<LeaseKey>,
    /// The leases behind the chosen leases in the draw, left for now.
    pub left: Vec<LeaseKey>,
    /// How many there were to choose from.
    pub candidates: u32,
    /// The owner from which the worker steals or requests the leases; absent: the leases are free.
    pub victim: Option<WorkerId>,
    /// The worker requests the leases from their owner, and the owner hands them over after its running batch.
    #[serde(default, skip_serializing_if = "is_false")]
    pub asked: bool,
    /// Unfinished leases of each live worker, the busiest first. Our own count is always present.
    pub counts: Vec<(WorkerId, u32)>,
    /// How many live workers there are.
    pub workers: u32,
    /// All unfinished leases.
    pub unfinished: u32,
    /// The number of leases that each worker should have.
    pub target: u32,
    /// How many we had.
    pub ours: u32,
}

fn is_false(value: &bool) -> bool {
    !*value
}

impl Choice {
    /// The longest length of the lists.
    pub const MOST: usize = 16;
}

impl fmt::Display for Choice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.victim {
            Some(owner) if self.asked => {
                write!(f, "asking {owner} for {} of its {} leases", self.taken, self.candidates)?
            }
            Some(victim) => write!(f, "stealing {} of {} leases of {victim}", self.taken, self.candidates)?,
            None => write!(f, "taking {} of {} free leases", self.taken, self.candidates)?,
        }
        write!(f, ": this worker has {}, and its fair share is {}", self.ours, self.target)
    }
}

/// Why a lease was taken.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
#[allow(missing_docs, reason = "the names of the fields say it")]
pub enum TakeReason {
    /// The lease had no owner.
    Unowned,
    /// The lease expired: its row did not change for longer than a lease duration.
    Expired { owner: WorkerId, idle: Span },
    /// The lease's owner has more than its share.
    Stolen { owner: WorkerId, theirs: u32, ours: u32, target: u32 },
    /// The row names us, by a write of ours that landed late or by assignment.
    Ours,
    /// We requested the lease, and its owner handed the lease over to us.
    Given,
    /// The last owner handed the lease over to the worker `owner`, which did not take the lease.
    LeftLying { owner: WorkerId, idle: Span },
    /// A former process of this worker held the lease, and names are unique.
    FormerLife { owner: WorkerId },
}

/// Why a lease was lost.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
#[allow(missing_docs, reason = "the names of the fields say it")]
pub enum LossReason {
    /// The row names another worker, or none.
    Taken { by: Option<WorkerId>, row: Box<LeaseRow> },
    /// The row is gone, and could not be put back.
    RowGone,
    /// The row became unreadable as a lease.
    Unreadable,
    /// The shard turned out to have ended.
    AlreadyEnded,
}

impl TakeReason {
    /// Writes that a lease was taken, and why.
    pub(super) fn sentence(&self, f: &mut fmt::Formatter<'_>, lease: &LeaseKey) -> fmt::Result {
        match self {
            TakeReason::Unowned => write!(f, "took {lease}, which had no owner"),
            TakeReason::Expired { owner, idle } => write!(
                f,
                "took {lease} from {owner}: the lease expired, as its row did not change for {idle}"
            ),
            TakeReason::Stolen { owner, theirs, ours, target } => write!(
                f,
                "stole {lease} from {owner}, which had {theirs} leases: this worker had {ours}, and its fair share is {target}"
            ),
            TakeReason::Ours => write!(f, "took {lease}, whose row named this worker already"),
            TakeReason::Given => write!(f, "took {lease}, which its owner handed over as asked"),
            TakeReason::LeftLying { owner, idle } => write!(
                f,
                "took {lease}, which was handed over to {owner}: that worker has not taken it for {idle}"
            ),
            TakeReason::FormerLife { owner } => write!(
                f,
                "took {lease} from {owner}, a former process of this worker: `unique_names` says that it has ended"
            ),
        }
    }
}

/// What follows "lost (the lease)" in a sentence.
impl fmt::Display for LossReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LossReason::Taken { by: Some(by), .. } => write!(f, " to {by}"),
            LossReason::Taken { by: None, .. } => f.write_str(": its row names no owner"),
            LossReason::RowGone => f.write_str(": its row was removed, and could not be put back"),
            LossReason::Unreadable => f.write_str(": its row cannot be read as a lease any more"),
            LossReason::AlreadyEnded => f.write_str(": its row says that the shard has ended"),
        }
    }
}

/// Why the shards of the stream are listed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum ListReason {
    /// The lease table is empty, and is to be filled.
    TableIsEmpty,
    /// The lease table had leases before this worker began: the leases are compared with the shards, since the table
    /// may have been filled from another stream.
    TableWasThere,
    /// This worker wrote rows from one listing. A second listing confirms or corrects the rows.
    RowsWritten,
    /// The last listing contradicts rows: the listing lacks their shards, or shows different hash keys.
    RowsContradicted,
    /// A shard has aggregated records, and no two answers say which hash keys the shard takes.
    RangeUnproven,
    /// Part of the hash space has no unfinished lease.
    Hole,
    /// The shards of a stream were listed, and a child of finished shards has no lease: a second listing confirms the
    /// missing lease.
    ChildWithoutLease,
    /// Leases have been missing for a while, but the rows known at the last listing were too old to create leases.
    RowsTooOld,
    /// Some rows lack their hash range.
    RangesUnknown,
    /// The table does not say what the parents of some leases are.
    ParentsUnknown,
    /// A parent of a leased shard has no lease.
    ParentWithoutLease,
    /// A finished lease may be removed once its shard is listed no more.
    MayBeForgotten,
    /// A read did not find a shard, or did not find the children of an ended shard.
    ShardNotFound,
    /// A shard waits for a parent of its row, and the parent has not ended for a while.
    ParentUnfinished,
    /// The list of shards that the members share is compared with the stream.
    SharedList,
    /// A shard of the list that the members share has no lease.
    SharedShardWithoutLease,
}

/// What follows "listing the shards:" in a sentence.
impl fmt::Display for ListReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            ListReason::TableIsEmpty => "the lease table is empty",
            ListReason::TableWasThere => "the leases in the table must be of this stream",
            ListReason::RowsWritten => "a second listing is to bear out the one from which rows were written",
            ListReason::RowsContradicted => {
                "the last listing lacks the shards of some rows, or shows other hash keys"
            }
            ListReason::RangeUnproven => {
                "no two answers say which hash keys a shard with aggregated records takes"
            }
            ListReason::Hole => "part of the hash space has no unfinished lease",
            ListReason::ChildWithoutLease => "a child of finished shards has no lease",
            ListReason::RowsTooOld => {
                "leases are missing, and the rows known at the last listing were too old"
            }
            ListReason::RangesUnknown => "some rows lack their hash range",
            ListReason::ParentsUnknown => "the parents of some leases are not known",
            ListReason::ParentWithoutLease => "a parent has no lease",
            ListReason::MayBeForgotten => "the stream may have forgotten shards whose leases are finished",
            ListReason::ShardNotFound => "a shard, or a child of one that ended, was not found",
            ListReason::ParentUnfinished => {
                "a shard waits for a parent that its row names, and the row may be wrong"
            }
            ListReason::SharedList => "the list of shards that members share is compared with the stream",
            ListReason::SharedShardWithoutLease => "a shard of the list that members share has no lease",
        })
    }
}

/// How a failure goes on: with another attempt after a pause, or with the next owner.
pub(super) fn retries(f: &mut fmt::Formatter<'_>, again_in: Option<Span>, what: &str) -> fmt::Result {
    match again_in {
        Some(again_in) => write!(f, "retrying in {again_in}"),
        None => write!(f, "not retrying: the lease is given up, and its next owner gets {what}"),
    }
}
