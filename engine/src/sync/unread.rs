//! All leases that shard sync creates: the missing leases, and the leases of unread shards, where a missing row means
//! an unread shard. And whether unlisted shards may come.

use super::BadListing;
use super::Children;
use super::plan::{Plan, PlannedLease, plan, planned};
use crate::config::InitialPosition;
use crate::ids::{LeaseKey, ShardId};
use crate::policy::Finished;
use crate::position::Checkpoint;
use crate::shard::Shard;
use std::collections::{BTreeMap, BTreeSet};

/// The leases that shard sync creates: the leases of [`plan`] and, where rows of finished shards stay (`finished`), a
/// lease for every listed shard without a row.
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

/// Where the rows of finished shards stay as long as their shards are listed: every listed shard without a row, as no
/// worker can have read it. The shards in `planned_already` are left out. No worker ends the leases in `unreadable`.
///
/// Such leases exist only from the trim horizon. From other positions, earlier records are not wanted. A shard whose
/// parent is neither listed nor leased waits as long as an unfinished lease of another unlisted shard may bring the
/// parent.
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

/// Whether an unlisted shard has an unfinished lease; its end may bring further unlisted shards.
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
