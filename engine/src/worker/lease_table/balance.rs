//! How the leases lie: which worker has how many, and which leases can be taken.

use super::LeaseTable;
use crate::ids::{LeaseIx, WorkerId};
use crate::notice::TakeReason;
use crate::time::Span;
use crate::worker::context::Context;
use std::collections::BTreeMap;

/// How the leases lie.
#[derive(Clone, Debug, Default)]
pub(in crate::worker) struct Balance {
    counts: BTreeMap<WorkerId, u32>,
    available: Vec<LeaseIx>,
    unfinished: u32,
    target: u32,
}

impl Balance {
    /// Unfinished leases by live owner. We are always in it.
    pub(in crate::worker) fn counts(&self) -> &BTreeMap<WorkerId, u32> {
        &self.counts
    }

    /// Unfinished leases that are free or expired, and can be taken.
    pub(in crate::worker) fn available(&self) -> &[LeaseIx] {
        &self.available
    }

    /// All unfinished leases.
    pub(in crate::worker) fn unfinished(&self) -> u32 {
        self.unfinished
    }

    /// How many of them one worker should have.
    pub(in crate::worker) fn target(&self) -> u32 {
        self.target
    }

    /// How many leases we have, or are about to have.
    pub(in crate::worker) fn of(&self, worker: &WorkerId) -> u32 {
        self.counts.get(worker).copied().unwrap_or(0)
    }

    /// The owners that are seen to live, and we.
    pub(in crate::worker) fn workers(&self) -> u32 {
        self.counts.len() as u32
    }
}

impl LeaseTable {
    /// Counts which worker has how many leases. A lease counts as expired when an answer showed its row unchanged that was asked for
    /// a lease duration after the first one that showed it so had arrived.
    pub(in crate::worker) fn balance(&self, cx: &Context) -> Balance {
        let mut balance = Balance::default();
        let me = cx.me();
        let mut mine = 0;
        for (ix, lease) in self.iter() {
            let Some(row) = lease.unfinished_row() else {
                continue;
            };
            balance.unfinished += 1;
            let expired = lease.idle() >= cx.config().lease_duration;
            if lease.is_ours() || lease.may_come_to(me) {
                mine += 1;
                if let Some(owner) = lease.renewed_by().filter(|owner| !expired && *owner != me) {
                    // It counts as ours until the take has an answer. Its owner lives, and has a share, too.
                    balance.counts.entry(owner.clone()).or_default();
                }
                continue;
            }
            match row.actual_owner() {
                Some(owner) if !expired && owner != me => {
                    *balance.counts.entry(owner.clone()).or_default() += 1;
                }
                // A lease we are still letting go of cannot be taken again before that is over.
                _ if lease.busy() => {}
                _ if !self.knows_lineage(row) => {}
                _ => balance.available.push(ix),
            }
        }
        balance.counts.insert(me.clone(), mine);
        balance.target = balance.unfinished.div_ceil(balance.workers());
        if cx.config().max_leases > 0 {
            balance.target = balance.target.min(cx.config().max_leases);
        }
        debug_assert!(
            balance.counts.values().sum::<u32>() + balance.available.len() as u32 <= balance.unfinished,
            "every unfinished lease is counted once at most"
        );
        balance
    }

    /// Whether our share has room for so many more leases, by all that was shown to us.
    pub(in crate::worker) fn has_room(&self, cx: &Context, more: u32) -> bool {
        let balance = self.balance(cx);
        balance.of(cx.me()) + more <= balance.target
    }

    /// Why a lease that can be taken is taken.
    pub(in crate::worker) fn reason_to_take(&self, ix: LeaseIx, me: &WorkerId) -> TakeReason {
        let lease = self.get(ix);
        match lease.and_then(|lease| lease.row()?.actual_owner()) {
            None => TakeReason::Unowned,
            Some(owner) if owner == me => TakeReason::Ours,
            Some(owner) => TakeReason::Expired {
                owner: owner.clone(),
                idle: lease.map_or(Span::ZERO, super::Lease::idle),
            },
        }
    }
}
