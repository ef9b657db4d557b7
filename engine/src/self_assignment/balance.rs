//! How the leases lie: the number of leases of each worker, and the leases that can be taken.

use crate::ids::{LeaseIx, WorkerId};
use crate::notice::Choice;
use crate::row::LeaseRow;
use std::cell::OnceCell;
use std::collections::{BTreeMap, BTreeSet};

/// The counting worker, and its rules.
#[derive(Clone, Copy, Debug)]
pub struct Counting<'a> {
    /// Us.
    pub me: &'a WorkerId,
    /// Owners hand leases over: on request, or at a leader's word.
    pub hands_over: bool,
    /// The most leases that we may have; 0: as many as come.
    pub max_leases: u32,
}

/// Facts about a lease beside its row.
#[derive(Clone, Copy, Debug, Default)]
pub struct Standing<'a> {
    /// Its row has stood still for a lease duration: its owner counts as dead.
    pub expired: bool,
    /// The scan before had shown the expiry, too: a worker aware of the expiry has had the time to take the lease as a
    /// part of its share.
    pub overdue: bool,
    /// In a hand-over: the hand-over is too young for the lease to count for its owner again.
    pub young: bool,
    /// We hold the lease, or are taking it.
    pub ours: Option<Ours<'a>>,
}

/// A lease that we hold, or are taking.
#[derive(Clone, Copy, Debug, Default)]
pub struct Ours<'a> {
    /// The receiver of our hand-over.
    pub next: Option<&'a WorkerId>,
    /// The owner that has renewed the lease since our take began.
    pub renewed_by: Option<&'a WorkerId>,
}

/// How the leases lie.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Balance {
    counts: BTreeMap<WorkerId, u32>,
    available: Vec<LeaseIx>,
    overdue: Vec<LeaseIx>,
    handed_over: Vec<LeaseIx>,
    requested: Vec<LeaseIx>,
    held: u32,
    unfinished: u32,
    target: u32,
    /// Live owners whose rows promise no hand-over.
    silent: BTreeSet<WorkerId>,
    /// Worked out when it is needed.
    busiest: OnceCell<Vec<(WorkerId, u32)>>,
}

impl Balance {
    /// Unfinished leases by live owner. Our own count is always present. Where owners hand leases over on request, a
    /// requested lease counts for its next owner.
    pub fn counts(&self) -> &BTreeMap<WorkerId, u32> {
        &self.counts
    }

    /// Unfinished leases that are free or expired, and can be taken. The order has no meaning.
    pub fn available(&self) -> &[LeaseIx] {
        &self.available
    }

    /// The available leases left by dead workers, and taken by no worker as a part of its share.
    pub fn overdue(&self) -> &[LeaseIx] {
        &self.overdue
    }

    /// In key order: leases whose rows name us as their owner, but not taken by us yet: we requested the leases, and
    /// their owners handed them over; or a take of ours landed late. Only where leases are requested: elsewhere these
    /// leases are among the available leases.
    pub fn handed_over(&self) -> &[LeaseIx] {
        &self.handed_over
    }

    /// In key order: leases that live owners are to hand over to us. Only where leases are requested.
    pub fn requested(&self) -> &[LeaseIx] {
        &self.requested
    }

    /// How many leases we hold, or are taking.
    pub fn held(&self) -> u32 {
        self.held
    }

    /// All unfinished leases.
    pub fn unfinished(&self) -> u32 {
        self.unfinished
    }

    /// The number of leases that each worker should have.
    pub fn target(&self) -> u32 {
        self.target
    }

    /// How many leases we have, or are about to have.
    pub fn of(&self, worker: &WorkerId) -> u32 {
        self.counts.get(worker).copied().unwrap_or(0)
    }

    /// The owners seen to live, and ourselves.
    pub fn workers(&self) -> u32 {
        self.counts.len() as u32
    }

    /// Whether some live owner does not say that it hands leases over.
    pub fn has_other_programs(&self) -> bool {
        !self.silent.is_empty()
    }

    /// The workers with the most leases, by that and by name, at most [`Choice::MOST`]. We are among them in any case.
    pub fn busiest(&self, me: &WorkerId) -> &[(WorkerId, u32)] {
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
}

/// The steps of counting: [`begin`](Balance::begin), every unfinished lease, [`hear`](Balance::hear),
/// [`settle`](Balance::settle).
impl Balance {
    /// Begins with our own count and `plain`: for each other live worker, the number of its leases outside a hand-over,
    /// and how many of their rows do not say that the owner hands the lease over. These leases are not counted again.
    pub fn begin<'a>(counting: &Counting<'_>, plain: impl Iterator<Item = (&'a WorkerId, u32, u32)>) -> Self {
        let mut balance = Self::default();
        let counts = plain.map(|(owner, leases, silent)| {
            balance.unfinished += leases;
            if silent > 0 {
                balance.silent.insert(owner.clone());
            }
            (owner.clone(), leases)
        });
        balance.counts = counts.collect();
        balance.see(counting.me);
        balance
    }

    /// A worker lives, and has a share.
    fn see(&mut self, worker: &WorkerId) {
        if !self.counts.contains_key(worker) {
            self.counts.insert(worker.clone(), 0);
        }
    }

    /// Counts an unfinished lease. `can_take` is called for a lease without a live owner: may we take the lease, apart
    /// from the balance?
    pub fn count(
        &mut self, counting: &Counting<'_>, ix: LeaseIx, row: &LeaseRow, standing: &Standing<'_>,
        can_take: impl FnOnce() -> bool,
    ) {
        debug_assert!(!row.checkpoint.is_end(), "only what is unfinished is shared");
        self.unfinished += 1;
        let (me, hands_over) = (counting.me, counting.hands_over);
        if let Some(ours) = &standing.ours {
            // The next owner of a lease need not live. After a long wait for the next owner, the lease counts for its
            // owner again.
            let next = ours.next.filter(|_| hands_over && standing.young);
            self.held += u32::from(next.is_none());
            self.add(next.unwrap_or(me));
            if let Some(owner) = ours.renewed_by.filter(|owner| !standing.expired && *owner != me) {
                // The lease counts as ours until the take has an answer. Its owner lives, and has a share, too.
                self.see(owner);
                self.note(owner, row);
            }
            return;
        }
        let owner = row.actual_owner().filter(|_| !standing.expired);
        if let Some(owner) = owner.filter(|owner| *owner != me) {
            self.note(owner, row);
            let young = standing.young;
            let next = row.owner.as_ref().filter(|next| hands_over && (young || *next == me));
            let next = next.unwrap_or(owner);
            self.add(next);
            if next == me {
                self.requested.push(ix);
            }
            if next != owner {
                // An owner of whom all leases are requested lives, and has a share, too.
                self.see(owner);
            }
            return;
        }
        if !can_take() {
            return;
        }
        if hands_over && row.owner.as_ref() == Some(me) && row.handing_over.is_none() {
            self.add(me);
            self.handed_over.push(ix);
        } else {
            self.available.push(ix);
            if standing.overdue && row.actual_owner().is_some_and(|owner| owner != me) {
                debug_assert!(standing.expired, "what is overdue has expired");
                self.overdue.push(ix);
            }
        }
    }

    fn note(&mut self, owner: &WorkerId, row: &LeaseRow) {
        if row.hands_over.is_no() && !self.silent.contains(owner) {
            self.silent.insert(owner.clone());
        }
    }

    fn add(&mut self, worker: &WorkerId) {
        match self.counts.get_mut(worker) {
            Some(count) => *count += 1,
            None => {
                self.counts.insert(worker.clone(), 1);
            }
        }
    }

    /// Some row of each of these workers says that the worker hands leases over. A row written by another program tells
    /// nothing; a row taken by its owner tells the owner's habit.
    pub fn hear<'a>(&mut self, owners: impl Iterator<Item = &'a WorkerId>) {
        if self.has_other_programs() {
            for owner in owners {
                self.silent.remove(owner);
            }
        }
    }

    /// All leases are counted: works our share out. `by_key` is an order of the leases.
    pub fn settle<K: Ord>(&mut self, counting: &Counting<'_>, mut by_key: impl FnMut(&LeaseIx) -> K) {
        self.target = self.unfinished.div_ceil(self.workers());
        if counting.max_leases > 0 {
            self.target = self.target.min(counting.max_leases);
        }
        self.handed_over.sort_by_key(&mut by_key);
        self.requested.sort_by_key(&mut by_key);
        debug_assert!(
            self.counts.values().sum::<u32>() + self.available.len() as u32 <= self.unfinished,
            "every unfinished lease is counted once at most"
        );
    }
}
