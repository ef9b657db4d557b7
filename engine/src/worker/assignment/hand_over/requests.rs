//! Requests for leases in their rows, in formats where a live worker hands a lease over on request.
//!
//! The owner gives up a requested lease when its present work is finished. But other programs may write a row back as
//! they knew the row, and so remove the claim. Such a program writes old rows again and again. So the pauses before a
//! lost claim is repeated grow.

use crate::ids::{LeaseIx, LeaseKey, WorkerId};
use crate::row::Change;
use crate::time::Mono;
use crate::worker::context::Context;
use crate::worker::lease_table::{Lease, LeaseTable};
use std::collections::{BTreeMap, BTreeSet};

/// The longest pause between two claims of a lease is this power of two, in scan intervals.
const MAX_DOUBLINGS: u32 = 5;

/// The claims of leases still owned by the workers asked for them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Claims {
    made: BTreeMap<LeaseKey, Made>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Made {
    from: WorkerId,
    times: u32,
    /// Not again before this.
    again_at: Mono,
}

/// How many leases of other workers are being handed over to us, or requested. A requested lease counts until a scan
/// shows the hand-over or the refusal: a scan may be older than the claim.
pub(super) fn count(cx: &Context, leases: &LeaseTable, asked: &[LeaseKey]) -> u32 {
    let promised = |lease: &&Lease| {
        let row = lease.row().filter(|row| row.handing_over.is_some());
        row.is_some_and(|row| row.owner.as_ref() == Some(cx.me()))
    };
    let promised = leases.unordered().filter(promised).map(Lease::key);
    let asked = asked.iter().filter(|key| {
        let lease = leases.find(key.as_str()).and_then(|ix| leases.get(ix));
        lease.is_none_or(|lease| !lease.busy())
    });
    let all: BTreeSet<&LeaseKey> = promised.chain(asked).collect();
    all.len() as u32
}

impl Claims {
    /// Whether it is not too soon to ask for a lease again.
    pub(super) fn may_claim(&self, cx: &Context, lease: &Lease) -> bool {
        let owner = lease.row().and_then(|row| row.owner.as_ref());
        let made = self.made.get(lease.key());
        made.is_none_or(|made| Some(&made.from) != owner || cx.now() >= made.again_at)
    }

    /// Requests a lease from its owner. For a while, the worker looks at the row until the owner gives the lease up.
    /// Later, scans show the row.
    pub(super) fn claim(&mut self, cx: &mut Context, leases: &LeaseTable, ix: LeaseIx) {
        let row = leases.get(ix).and_then(|lease| lease.row());
        let Some((row, from)) = row.and_then(|row| Some((row, row.owner.clone()?))) else {
            debug_assert!(false, "a lease is claimed from its owner");
            return;
        };
        debug_assert_ne!(&from, cx.me(), "we do not claim our own lease");
        let change = Change::Claim {
            key: row.key.clone(),
            counter: row.counter,
            from: from.clone(),
            checkpoint: row.checkpoint,
            by: cx.me().clone(),
        };
        let now = cx.now();
        let before = self.made.get(&row.key).filter(|made| made.from == from);
        let times = before.map_or(0, |made| made.times).saturating_add(1);
        let doublings = (times - 1).min(MAX_DOUBLINGS);
        let made = Made { from, times, again_at: now + cx.config().scan_interval.times(1 << doublings) };
        self.made.insert(row.key.clone(), made);
        let expires = now + cx.config().table_timeout;
        cx.write_row(change, "its owner has more than its share".into(), None, expires);
    }

    /// Forgets the claims of leases no longer with the owner asked for them.
    pub(super) fn forget_settled(&mut self, leases: &LeaseTable) {
        self.made.retain(|key, made| {
            let row = leases.row(key.as_str());
            row.is_some_and(|row| row.actual_owner() == Some(&made.from))
        });
    }
}
