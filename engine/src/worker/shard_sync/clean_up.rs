//! Removing finished leases that are not needed any more: their children have begun, and their parents are gone; or
//! their shards are.

use super::ShardSync;
use crate::policy::Finished;
use crate::position::Checkpoint;
use crate::row::Change;
use crate::time::{Mono, Span};
use crate::worker::context::Context;
use crate::worker::lease_table::{Lease, LeaseTable};

/// No more than this many finished leases are removed after one scan.
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
            .not_plain()
            .map(|(_, lease)| lease)
            .filter(|lease| lease.stream() == self.stream)
            .filter(|lease| !lease.busy() && lease.ended_at() != Mono::NEVER)
            .filter(|lease| now.since(lease.ended_at()) >= patience)
            .collect();
        ended.sort_unstable_by_key(|lease| lease.key());
        let removable: Vec<Change> = ended
            .into_iter()
            .filter_map(|lease| removal(cx, leases, lease))
            .take(MAX_REMOVALS)
            .collect();
        // The next whole scan decides on the rest anew. Where it takes long, so may this.
        let until_next = leases.scans().usual().max(cx.config().scan_interval);
        for change in removable {
            let why = "the shard was processed and its children have begun".to_string();
            cx.write_row(change, why, None, now + until_next);
        }
    }
}

/// The change that removes a lease, if it is finished and not needed.
fn removal(cx: &Context, leases: &LeaseTable, lease: &Lease) -> Option<Change> {
    let row = lease.row().filter(|row| row.checkpoint.is_end())?;
    let begun = |key: &str| {
        let child = leases.row(key);
        child.is_some_and(|row| !matches!(row.checkpoint, Checkpoint::TrimHorizon | Checkpoint::AtTimestamp))
    };
    let needless = match cx.config().policies.finished {
        Finished::WhenRead => {
            let children = !row.children.is_empty() && row.children.iter().all(|child| begun(child.as_str()));
            let mut parents = row.parents.iter();
            let ancestors = parents.any(|parent| leases.row(parent.as_str()).is_some());
            children && !ancestors
        }
        Finished::WhenForgotten => leases.still_listed(lease.key(), lease.ended_at()) == Some(false),
        Finished::Never => false,
    };
    needless.then(|| Change::Delete {
        key: lease.key().clone(),
        counter: row.counter,
    })
}
