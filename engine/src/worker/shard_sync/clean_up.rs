//! Removing finished leases that are not needed any more: their children have begun, and their parents are gone; or
//! their shards are.

use super::ShardSync;
use crate::ids::ShardId;
use crate::policy::Finished;
use crate::position::Checkpoint;
use crate::row::{Change, LeaseRow};
use crate::time::{Mono, Span};
use crate::worker::context::Context;
use crate::worker::lease_table::{Lease, LeaseTable};
use std::cell::LazyCell;
use std::collections::BTreeSet;

/// The most finished leases removed after one scan.
const MAX_REMOVALS: usize = 100;

impl ShardSync {
    /// Removes what can go. `deputy`: how much longer than the leader we wait.
    pub(in crate::worker) fn clean_up(&self, cx: &mut Context, leases: &LeaseTable, deputy: u32) {
        let delay = cx.config().cleanup_delay;
        if delay == Span::ZERO {
            return;
        }
        let now = cx.now();
        let patience = delay.times(1 + u64::from(deputy));
        let mut ended: Vec<&Lease> = leases
            .owners()
            .not_plain()
            .map(|(_, lease)| lease)
            .filter(|lease| lease.stream() == self.stream)
            .filter(|lease| !lease.busy() && lease.ended_at() != Mono::NEVER)
            .filter(|lease| now.since(lease.ended_at()) >= patience)
            .collect();
        ended.sort_unstable_by_key(|lease| lease.key());
        let awaited = LazyCell::new(|| awaited_parents(leases));
        let removable: Vec<Change> = ended
            .into_iter()
            .filter_map(|lease| removal(cx, leases, lease, || &awaited))
            .take(MAX_REMOVALS)
            .collect();
        // The next whole scan decides on the rest anew. Where a scan takes long, removals may take as long.
        let until_next = leases.scans().usual().max(cx.config().scan_interval);
        for change in removable {
            let why = "the shard was processed and its children have begun".to_string();
            cx.write_row(change, why, None, now + until_next);
        }
    }
}

fn has_begun(row: &LeaseRow) -> bool {
    !matches!(row.checkpoint, Checkpoint::TrimHorizon | Checkpoint::AtTimestamp)
}

/// The parents of the shards not begun yet, as named by these shards' rows. The row of a parent may name fewer
/// children: the answer that ended the parent may have left a child out.
fn awaited_parents(leases: &LeaseTable) -> BTreeSet<&str> {
    let rows = leases.iter().filter_map(|(_, lease)| lease.row());
    let waiting = rows.filter(|row| !has_begun(row));
    waiting.flat_map(|row| row.parents.iter().map(ShardId::as_str)).collect()
}

/// The removal of a lease, if the lease is finished and not needed.
fn removal<'a>(
    cx: &Context, leases: &LeaseTable, lease: &Lease, awaited: impl Fn() -> &'a BTreeSet<&'a str>,
) -> Option<Change> {
    let row = lease.row().filter(|row| row.checkpoint.is_end())?;
    let begun = |key: &str| leases.row(key).is_some_and(has_begun);
    let needless = match cx.config().policies.finished {
        Finished::WhenRead => {
            let children = !row.children.is_empty() && row.children.iter().all(|child| begun(child.as_str()));
            let mut parents = row.parents.iter();
            let ancestors = parents.any(|parent| leases.row(parent.as_str()).is_some());
            children && !ancestors && !awaited().contains(lease.key().as_str())
        }
        Finished::WhenForgotten => {
            leases.lineage().still_listed(lease.key(), lease.ended_at()) == Some(false)
        }
        Finished::Never => false,
    };
    needless.then(|| Change::Delete { key: lease.key().clone(), counter: row.counter })
}
