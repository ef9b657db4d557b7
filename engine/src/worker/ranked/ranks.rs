//! The turns of leases assigned by rank: the leases to be taken. [`LeaseTable::keeps`] decides which leases are given
//! up.

use super::members::Members;
use crate::notice::ListReason;
use crate::self_assignment::MAX_TAKES;
use crate::worker::choice::{Way, report_choice};
use crate::worker::context::{Context, Request};
use crate::worker::lease_table::{Balance, LeaseTable};
use crate::worker::stream_set::StreamIx;
use std::collections::BTreeSet;

impl Members {
    /// Takes leases that are ours by rank and have no live owner.
    ///
    /// A shard not shared out yet goes round in the same way among the members, and so does a shard that is no longer
    /// shared out though it was not read to its end. Other programs never take these leases. After a while, any member
    /// of this library may take them.
    pub(in crate::worker) fn take_turns(&self, cx: &mut Context, leases: &LeaseTable, balance: &Balance) {
        let Some(turns) = leases.turns() else {
            // The turns are not known yet.
            return;
        };
        let available: BTreeSet<_> = balance.available().iter().copied().collect();
        // A live owner gives up a lease outside its turn. The owner may be silent until then: other programs do not
        // write to a lease without events.
        let checks = cx.config().members.check_interval.times(2);
        let all_know = cx.now().since(self.turns_since()) >= checks;
        let forgotten = cx.config().lease_duration.times(2);
        let mut strays = 0;
        let mut wanted = Vec::new();
        for (ix, lease) in leases.iter() {
            let Some(row) = lease.unfinished_row() else {
                continue;
            };
            let ours = turns.has(lease.key().as_str()).unwrap_or_else(|| {
                strays += 1;
                turns.is_ours(strays - 1) || lease.idle() >= forgotten
            });
            let owner = row.actual_owner();
            let lives = owner.is_some_and(|owner| turns.counts(owner));
            // A late write of ours made the row ours: the lease is taken, and given up if the turn is not ours.
            if available.contains(&ix) && (owner == Some(cx.me()) || (ours && (all_know || !lives))) {
                wanted.push(ix);
            }
        }
        wanted.truncate(MAX_TAKES as usize);
        report_choice(cx, leases, balance, balance.of(cx.me()), Way::Take, &wanted, wanted.len());
        for ix in wanted {
            let why = leases.shares(cx).reason_to_take(ix);
            cx.request(Request::Take(ix, why));
        }
    }
}

/// Lists the shards if a shard of our rank has no lease yet: other programs create the lease at its take.
pub(in crate::worker) fn ask_leases(cx: &mut Context, leases: &LeaseTable) {
    let Some(turns) = leases.turns() else {
        // The turns are not known yet.
        return;
    };
    let lacks = |shard: &str| leases.row(shard).is_none() && !leases.scans().occupied().contains(shard);
    let ours = |shard: &str| turns.has(shard) == Some(true);
    let mut shards = turns.shards().iter().map(|shard| shard.as_str());
    if cx.absence_is_unread() && shards.any(|shard| ours(shard) && lacks(shard)) {
        cx.request(Request::ListShards(StreamIx::ONLY, ListReason::SharedShardWithoutLease));
    }
}
