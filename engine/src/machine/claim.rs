//! Asking for leases in their rows, where a lease is had from a worker that lives by asking its owner.
//!
//! The owner gives up what was asked for when it has finished what it does. But other programs may write a row back as they
//! knew it, and the claim with it is gone; one that does so will do it again. So a claim that did not last is repeated ever
//! more seldom.

use super::Core;
use super::view::Lease;
use crate::ids::{LeaseKey, WorkerId};
use crate::mutant::Mutant;
use crate::row::Change;
use crate::time::Mono;
use std::collections::{BTreeMap, BTreeSet};

/// The longest pause between two claims of a lease is this power of two, in scan intervals.
const MAX_DOUBLINGS: u32 = 5;

/// The claims made of leases that are still with the owner they were asked from.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Claims {
    made: BTreeMap<LeaseKey, Made>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Made {
    from: WorkerId,
    times: u32,
    /// Not again before this.
    again_at: Mono,
}

impl Core {
    /// How many leases of others are being handed over to us, or asked for. What was asked for counts until we saw that it
    /// was given or refused: a scan may be older than the claim.
    pub(crate) fn claimed(&self) -> u32 {
        let promised = |lease: &&Lease| {
            let row = lease.row.as_ref().filter(|row| row.handing_over.is_some());
            row.is_some_and(|row| row.owner.as_ref() == Some(&self.ctx.me))
        };
        let promised = self.view.unordered().filter(promised).map(|lease| &lease.key);
        let asked = self.chores.claims().filter(|key| {
            let ix = self.view.find(key.as_str());
            ix.and_then(|ix| self.view.get(ix))
                .is_none_or(|lease| !lease.busy())
        });
        let asked = asked.filter(|_| !self.ctx.planted.is(Mutant::ClaimsForgotten));
        let leases: BTreeSet<&LeaseKey> = promised.chain(asked).collect();
        leases.len() as u32
    }

    /// Whether it is not too soon to ask for a lease again.
    pub(crate) fn may_claim(&self, lease: &Lease) -> bool {
        let owner = lease.row.as_ref().and_then(|row| row.owner.as_ref());
        let made = self.claims.made.get(&lease.key);
        made.is_none_or(|made| Some(&made.from) != owner || self.ctx.now >= made.again_at)
    }

    /// Asks the owner of a lease for it. The row is looked at until it gave it up, for a while; then scans show it.
    pub(crate) fn claim(&mut self, ix: u32) {
        let Some(lease) = self.view.get(ix) else { return };
        let Some((row, from)) = lease.row.as_ref().and_then(|row| Some((row, row.owner.clone()?))) else {
            return;
        };
        let key = lease.key.clone();
        let change = Change::Claim {
            key: key.clone(),
            counter: row.counter,
            from: from.clone(),
            checkpoint: row.checkpoint,
            by: self.ctx.me.clone(),
        };
        let now = self.ctx.now;
        let before = self.claims.made.get(&key).filter(|made| made.from == from);
        let times = before.map_or(0, |made| made.times).saturating_add(1);
        let pause = self
            .ctx
            .config
            .scan_interval
            .times(1 << (times - 1).min(MAX_DOUBLINGS));
        let made = Made {
            from,
            times,
            again_at: now + pause,
        };
        self.claims.made.insert(key, made);
        let expires = now + self.ctx.config.table_timeout;
        self.ctx
            .write_row(change, "its owner has more than its share".into(), None, expires);
    }

    /// Forgets the claims of leases that are not with whom they were asked from any more.
    pub(crate) fn forget_claims(&mut self) {
        let view = &self.view;
        self.claims.made.retain(|key, made| {
            let row = view.row(key.as_str());
            row.is_some_and(|row| row.actual_owner() == Some(&made.from))
        });
    }
}
