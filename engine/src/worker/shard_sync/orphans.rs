//! Children of finished shards that have no lease.
//!
//! Another library ends a shard, and its worker leaves before the children have leases. The row of the finished shard
//! is a sign of its own: a hole beside this row need not show in several scans. A listing names the parents of each
//! child shown. So a late listing lacks a child; no listing shows a child as due too early. An orphaned child does not
//! wait for `stream_lag`, but for [`patience`] only.

use super::ShardSync;
use crate::ids::{LeaseKey, ShardId};
use crate::notice::ListReason;
use crate::position::Checkpoint;
use crate::row::LeaseRow;
use crate::shard::{HashRange, Shard};
use crate::sync;
use crate::time::{Mono, Span};
use crate::worker::context::{Context, Request};
use crate::worker::lease_table::{Lease, LeaseTable};
use crate::worker::stream_set::StreamIx;
use std::collections::BTreeMap;

/// Whether a finished lease had keys of these parts of the hash space.
pub(super) fn beside_finished(leases: &LeaseTable, stream: StreamIx, holes: &[HashRange]) -> bool {
    let rows = leases.of(stream).filter_map(Lease::row);
    let ended = rows.filter(|row| row.checkpoint.is_end());
    let mut ranges = ended.filter_map(|row| row.range);
    ranges.any(|range| holes.iter().any(|hole| hole.overlaps(range)))
}

/// Whether the shard of a planned lease is the next to be read: each of its parents has a row with the end, and no
/// shard below has a row.
pub(super) fn is_due(known: &BTreeMap<LeaseKey, Checkpoint>, shards: &[Shard], planned: &LeaseRow) -> bool {
    let has_ended =
        |parent: &ShardId| known.get(parent.as_str()).is_some_and(|checkpoint| checkpoint.is_end());
    let parents = &planned.parents;
    !parents.is_empty()
        && parents.iter().all(has_ended)
        && !sync::has_leased_descendant(known, shards, &planned.key.to_shard())
}

/// For how long a due lease must have been missing. A person may have removed the row of a live owner: that owner
/// believes in the lease for a lease duration, and puts the row back with the next renewal. Where leases are assigned
/// by rank, no other member takes the lease of that owner, so two renewal intervals are enough.
pub(super) fn patience(cx: &Context) -> Span {
    let config = cx.config();
    let patience = match cx.ranks() {
        true => config.renew_interval.times(2),
        false => config.lease_duration,
    };
    patience.min(config.stream_lag)
}

/// When a worker looks again for a due lease, missing since `since`. Each rank leaves the ranks before it the time to
/// create the lease.
pub(super) fn look_at(cx: &Context, since: Mono, deputy: u32) -> Mono {
    since + patience(cx) + cx.poll_pause().times(u64::from(deputy))
}

impl ShardSync {
    /// A whole scan has ended. If leases due a while ago are still missing, a listing follows, and then their creation.
    /// A listing also follows a scan wanted by the last listing. `deputy`: how much longer than the leader we wait.
    pub(in crate::worker) fn look_for_orphans(&mut self, cx: &mut Context, leases: &LeaseTable, deputy: u32) {
        if self.planned.takes_old_view() {
            return cx.request(Request::ListShards(self.stream, ListReason::RowsTooOld));
        }
        let due = self.planned.due(leases.scans().complete());
        let missing = due.filter(|(key, _)| leases.row(key.as_str()).is_none());
        let Some(since) = missing.map(|(_, since)| since).min() else {
            // No due lease is missing.
            return;
        };
        let at = look_at(cx, since, deputy);
        cx.request(match cx.now() >= at {
            true => Request::ListShards(self.stream, ListReason::ChildWithoutLease),
            false => Request::Rescan(at),
        });
    }
}
