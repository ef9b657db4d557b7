//! How the leases lie: which worker has how many, and which leases can be taken.

use super::plain::PlainLeases;
use super::{Lease, LeaseTable};
use crate::ids::{LeaseIx, WorkerId};
use crate::notice::{Choice, TakeReason};
use crate::row::{HandsOver, LeaseRow};
use crate::time::Span;
use crate::worker::context::Context;
use crate::worker::lease::HeldLease;
use std::cell::OnceCell;
use std::collections::{BTreeMap, BTreeSet};

/// How the leases lie.
#[derive(Clone, Debug, Default, PartialEq)]
pub(in crate::worker) struct Balance {
    counts: BTreeMap<WorkerId, u32>,
    available: Vec<LeaseIx>,
    given: Vec<LeaseIx>,
    promised: Vec<LeaseIx>,
    held: u32,
    unfinished: u32,
    target: u32,
    /// Live owners that do not say in any row that they hand leases over.
    silent: BTreeSet<WorkerId>,
    /// Worked out when it is asked for.
    busiest: OnceCell<Vec<(WorkerId, u32)>>,
}

impl Balance {
    /// Unfinished leases by live owner. We are always in it. Where leases are asked for, a lease that is promised counts for the
    /// worker that it is promised to.
    pub(in crate::worker) fn counts(&self) -> &BTreeMap<WorkerId, u32> {
        &self.counts
    }

    /// Unfinished leases that are free or expired, and can be taken. In no order that means anything.
    pub(in crate::worker) fn available(&self) -> &[LeaseIx] {
        &self.available
    }

    /// In key order: leases whose rows name us as their owner, and that we have not taken: we asked for them, and were given them; or a take of
    /// ours landed late. Only where leases are asked for: elsewhere these are among the available ones.
    pub(in crate::worker) fn given(&self) -> &[LeaseIx] {
        &self.given
    }

    /// In key order: leases that live owners are to hand over to us. Only where leases are asked for.
    pub(in crate::worker) fn promised(&self) -> &[LeaseIx] {
        &self.promised
    }

    /// How many leases we hold, or are taking.
    pub(in crate::worker) fn held(&self) -> u32 {
        self.held
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

    /// Whether some live owner does not say that it hands leases over.
    pub(in crate::worker) fn has_other_programs(&self) -> bool {
        !self.silent.is_empty()
    }

    /// The workers with the most leases, by that and by name, at most [`Choice::MOST`]. We are among them in any case.
    pub(in crate::worker) fn busiest(&self, me: &WorkerId) -> &[(WorkerId, u32)] {
        self.busiest.get_or_init(|| {
            let mut counts: Vec<_> = self.counts.iter().collect();
            counts.sort_by(|(a, some), (b, other)| other.cmp(some).then_with(|| a.cmp(b)));
            let us = counts.iter().position(|(worker, _)| *worker == me);
            debug_assert!(us.is_some(), "we are always counted");
            if let Some(us) = us.filter(|us| *us >= Choice::MOST) {
                counts.swap(us, Choice::MOST - 1);
            }
            counts.truncate(Choice::MOST);
            let busiest = counts.into_iter();
            busiest.map(|(worker, count)| (worker.clone(), *count)).collect()
        })
    }

    /// What the leases come to that are known to be plain.
    fn of_plain(plain: &PlainLeases) -> Self {
        let mut balance = Self::default();
        let counts = plain.counts().map(|(owner, count)| {
            balance.unfinished += count.leases;
            if count.silent > 0 {
                balance.silent.insert(owner.clone());
            }
            (owner.clone(), count.leases)
        });
        balance.counts = counts.collect();
        balance
    }

    fn note(&mut self, owner: &WorkerId, row: &LeaseRow) {
        if row.hands_over.is_no() && !self.silent.contains(owner) {
            self.silent.insert(owner.clone());
        }
    }

    fn count(&mut self, worker: &WorkerId) {
        match self.counts.get_mut(worker) {
            Some(count) => *count += 1,
            None => {
                self.counts.insert(worker.clone(), 1);
            }
        }
    }
}

impl LeaseTable {
    /// Counts which worker has how many leases. A lease counts as expired when an answer showed its row unchanged that was asked for
    /// a lease duration after the first one that showed it so had arrived.
    pub(in crate::worker) fn balance(&self, cx: &Context) -> Balance {
        let balance = self.count_beside(cx, &self.plain.0);
        debug_assert!(
            self.len() > 64 || balance == self.balance_anew(cx),
            "plain leases are counted as all leases are"
        );
        balance
    }

    /// The same by a look at every lease.
    pub(super) fn balance_anew(&self, cx: &Context) -> Balance {
        self.count_beside(cx, &PlainLeases::default())
    }

    /// Looks at all leases but those that are known to be plain.
    fn count_beside(&self, cx: &Context, plain: &PlainLeases) -> Balance {
        let mut balance = Balance::of_plain(plain);
        balance.counts.entry(cx.me().clone()).or_insert(0);
        for (ix, lease) in self.not_among(plain) {
            let counts = cx.streams().reads(lease.stream()) || lease.is_ours();
            if let Some(row) = lease.unfinished_row().filter(|_| counts) {
                balance.unfinished += 1;
                self.weigh(cx, &mut balance, ix, lease, row);
            }
        }
        if balance.has_other_programs() {
            // A row that another program wrote says nothing; what its owner took itself does.
            for (owner, count) in plain.counts() {
                if count.silent < count.leases {
                    balance.silent.remove(owner);
                }
            }
            let rows = self
                .not_among(plain)
                .filter_map(|(_, lease)| lease.unfinished_row());
            for owner in rows
                .filter(|row| !row.hands_over.is_no())
                .filter_map(LeaseRow::actual_owner)
            {
                balance.silent.remove(owner);
            }
        }
        balance.target = balance.unfinished.div_ceil(balance.workers());
        if cx.config().max_leases > 0 {
            balance.target = balance.target.min(cx.config().max_leases);
        }
        let by_key = |ix: &LeaseIx| self.get(*ix).map(Lease::key);
        balance.given.sort_by_key(by_key);
        balance.promised.sort_by_key(by_key);
        debug_assert!(
            balance.counts.values().sum::<u32>() + balance.available.len() as u32 <= balance.unfinished,
            "every unfinished lease is counted once at most"
        );
        balance
    }

    fn weigh(&self, cx: &Context, balance: &mut Balance, ix: LeaseIx, lease: &Lease, row: &LeaseRow) {
        let (me, asks) = (cx.me(), cx.asks() || self.fleet().is_led());
        // A worker that is to have a lease need not live. While its owner does not come to hand it over, it is the owner's.
        let young = lease.promised_for(cx.now()) < cx.config().hand_over_timeout;
        let expired = lease.idle() >= cx.config().lease_duration;
        if lease.is_ours() || lease.may_come_to(me) {
            let next = lease
                .held()
                .and_then(HeldLease::next_owner)
                .filter(|_| asks && young);
            balance.held += u32::from(next.is_none());
            balance.count(next.unwrap_or(me));
            if let Some(owner) = lease.renewed_by().filter(|owner| !expired && *owner != me) {
                // It counts as ours until the take has an answer. Its owner lives, and has a share, too.
                balance.counts.entry(owner.clone()).or_default();
                balance.note(owner, row);
            }
            return;
        }
        let owner = row.actual_owner().filter(|_| !expired);
        if let Some(owner) = owner.filter(|owner| *owner != me) {
            balance.note(owner, row);
            let next = row.owner.as_ref().filter(|next| asks && (young || *next == me));
            let next = next.unwrap_or(owner);
            balance.count(next);
            if next == me {
                balance.promised.push(ix);
            }
            if next != owner {
                // An owner from which all was asked lives, and has a share, too.
                balance.counts.entry(owner.clone()).or_default();
            }
            return;
        }
        // A lease we are still letting go of cannot be taken again before that is over.
        if lease.busy() || !self.knows_lineage(row) || !cx.may_take(lease.stream()) {
            return;
        }
        if asks && row.owner.as_ref() == Some(me) && row.handing_over.is_none() {
            balance.count(me);
            balance.given.push(ix);
        } else {
            balance.available.push(ix);
        }
    }

    /// Whether our share has room for so many more leases, by all that was shown to us.
    pub(in crate::worker) fn has_room(&self, cx: &Context, more: u32) -> bool {
        let balance = self.balance(cx);
        balance.of(cx.me()) + more <= balance.target
    }

    /// Why a lease that can be taken is taken.
    pub(in crate::worker) fn reason_to_take(&self, ix: LeaseIx, me: &WorkerId) -> TakeReason {
        let lease = self.get(ix);
        let row = lease.and_then(Lease::row);
        let given = row.is_some_and(|row| row.hands_over == HandsOver::Later);
        match row.and_then(LeaseRow::actual_owner) {
            None => TakeReason::Unowned,
            Some(owner) if owner == me && given => TakeReason::Given,
            Some(owner) if owner == me => TakeReason::Ours,
            Some(owner) => TakeReason::Expired {
                owner: owner.clone(),
                idle: lease.map_or(Span::ZERO, super::Lease::idle),
            },
        }
    }
}
