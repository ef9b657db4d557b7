//! All leases that shard sync creates: those that are missing, and those of what nobody has read, where a row that is not there tells
//! that. And whether shards may come that are not listed.

use super::BadListing;
use super::Children;
use super::plan::{Plan, PlannedLease, plan, planned};
use crate::config::InitialPosition;
use crate::ids::{LeaseKey, ShardId};
use crate::policy::Finished;
use crate::position::Checkpoint;
use crate::shard::Shard;
use std::collections::{BTreeMap, BTreeSet};

/// What shard sync creates: what [`plan`] says and, where rows of finished shards stay (`finished`), every listed shard without a row.
///
/// # Errors
/// The listing contradicts itself.
pub fn missing(
    leases: &BTreeMap<LeaseKey, Checkpoint>, unreadable: &BTreeSet<LeaseKey>, shards: &[Shard],
    initial: InitialPosition, table_empty: bool, finished: Finished,
) -> Result<Plan, BadListing> {
    let mut plan = plan(leases, unreadable, shards, initial, table_empty)?;
    if !table_empty && finished != Finished::WhenRead {
        let unread = unread(leases, unreadable, shards, initial, &plan.create);
        plan.create.extend(unread);
    }
    Ok(plan)
}

/// Where the rows of finished shards stay as long as their shards are listed: every listed shard without one, which nobody
/// can have read. Those that `planned_already` has are left out. The leases that are `unreadable` end by nobody's doing.
///
/// There are such only from the trim horizon. From elsewhere, what was there before is not wanted. A shard whose parent is
/// neither listed nor leased waits as long as an unfinished lease of a shard that is not listed either may bring that parent.
pub(super) fn unread(
    leases: &BTreeMap<LeaseKey, Checkpoint>, unreadable: &BTreeSet<LeaseKey>, shards: &[Shard],
    initial: InitialPosition, planned_already: &[PlannedLease],
) -> Vec<PlannedLease> {
    if initial != InitialPosition::TrimHorizon {
        return Vec::new();
    }
    let known: BTreeSet<_> = planned_already.iter().map(|lease| lease.row.key.as_str()).collect();
    let listed: BTreeSet<&str> = shards.iter().map(|shard| shard.id.as_str()).collect();
    let brings_unlisted = brings_unlisted(leases, unreadable, shards);
    let lost = |parent: &ShardId| !listed.contains(parent.as_str()) && !leases.contains_key(parent.as_str());
    shards
        .iter()
        .filter(|shard| !leases.contains_key(shard.id.as_str()) && !known.contains(shard.id.as_str()))
        .filter(|shard| !brings_unlisted || !shard.parents().any(lost))
        .map(|shard| {
            planned(shard, Checkpoint::TrimHorizon, "its shard is listed, and nobody has read it".to_owned())
        })
        .collect()
}

/// Whether there is an unfinished lease of a shard that is not listed, whose end may bring shards that are not either.
pub(super) fn brings_unlisted(
    leases: &BTreeMap<LeaseKey, Checkpoint>, unreadable: &BTreeSet<LeaseKey>, shards: &[Shard],
) -> bool {
    let listed: BTreeSet<&str> = shards.iter().map(|shard| shard.id.as_str()).collect();
    let mut forgotten = leases
        .iter()
        .filter(|(lease, checkpoint)| !checkpoint.is_end() && !listed.contains(lease.as_str()))
        .map(|(lease, _)| lease)
        .filter(|lease| !unreadable.contains(*lease))
        .peekable();
    if forgotten.peek().is_none() {
        return false;
    }
    let children = Children::of(shards);
    forgotten.any(|lease| !children.all_shown(lease.as_str()))
}
