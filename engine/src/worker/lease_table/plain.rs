//! Which leases are plainly of other workers that live. In a large fleet nearly all leases are. They are counted by numbers: that
//! takes a few bytes of memory for each lease, and neither its row nor a name is looked at.

use super::{Lease, LeaseTable};
use crate::ids::{LeaseIx, WorkerId};
use crate::row::HandsOver;
use crate::worker::context::Context;
use std::collections::{BTreeMap, BTreeSet};

/// A lease of another worker that lives, as far as was shown: it is unfinished, it is not being handed over, and nothing of ours is
/// going on with it. Time alone changes none of this.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Plain {
    /// The number of the owner.
    owner: u32,
    hands_over: HandsOver,
}

/// What is known of leases that are plain, and numbers for their owners.
#[derive(Clone, Debug, Default)]
pub(super) struct PlainLeases {
    /// By the number of the lease. Absent: the lease itself has to be looked at.
    leases: Vec<Option<Plain>>,
    names: Vec<WorkerId>,
    numbers: BTreeMap<WorkerId, u32>,
}

/// What the plain leases of one owner come to.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct PlainCount {
    pub(super) leases: u32,
    /// How many of their rows do not say that the owner hands the lease over.
    pub(super) silent: u32,
}

/// Names of former owners that may be kept beside twice as many as there are owners.
const SPARE_NAMES: usize = 64;

impl PlainLeases {
    fn get(&self, ix: usize) -> Option<Plain> {
        self.leases.get(ix).copied().flatten()
    }

    /// The lease has to be looked at from now on.
    pub(super) fn forget(&mut self, ix: LeaseIx) {
        self.take(ix);
    }

    fn take(&mut self, ix: LeaseIx) -> Option<Plain> {
        self.leases.get_mut(ix.index())?.take()
    }

    fn set(&mut self, ix: LeaseIx, plain: Plain) {
        let at = ix.index();
        if self.leases.len() <= at {
            self.leases.resize(at + 1, None);
        }
        self.leases[at] = Some(plain);
    }

    /// The number of an owner. `likely`: the number that it had.
    fn number(&mut self, owner: &WorkerId, likely: Option<u32>) -> u32 {
        if let Some(number) = likely.filter(|number| self.names.get(*number as usize) == Some(owner)) {
            return number;
        }
        if let Some(number) = self.numbers.get(owner) {
            return *number;
        }
        let number = self.names.len() as u32;
        self.names.push(owner.clone());
        self.numbers.insert(owner.clone(), number);
        number
    }

    /// The owners of plain leases, in order, and what their leases come to.
    pub(super) fn counts(&self) -> impl Iterator<Item = (&WorkerId, PlainCount)> {
        let mut counts = vec![PlainCount::default(); self.names.len()];
        for plain in self.leases.iter().flatten() {
            let count = &mut counts[plain.owner as usize];
            count.leases += 1;
            count.silent += u32::from(plain.hands_over.is_no());
        }
        let counts = self
            .numbers
            .iter()
            .map(move |(name, number)| (name, counts[*number as usize]));
        counts.filter(|(_, count)| count.leases > 0)
    }

    /// Workers come and go, and each life of one has a name of its own. When many names may be those of former owners, all are
    /// forgotten. The next scan shows those that are needed.
    pub(super) fn forget_names(&mut self, owners: usize) {
        if self.names.len() > 2 * owners + SPARE_NAMES {
            *self = Self::default();
        }
    }
}

impl Lease {
    /// The owner, if the lease is plainly another's.
    fn plain_owner(&self, cx: &Context) -> Option<(&WorkerId, HandsOver)> {
        let row = self.unfinished_row().filter(|row| row.handing_over.is_none())?;
        let expired = self.idle() >= cx.config().lease_duration;
        let owner = row.owner.as_ref().filter(|owner| *owner != cx.me())?;
        (!expired && !self.busy()).then_some((owner, row.hands_over))
    }
}

impl LeaseTable {
    /// Takes note of a lease, after what `change` makes of it.
    pub(super) fn weigh_after<R>(
        &mut self,
        cx: &Context,
        ix: LeaseIx,
        change: impl FnOnce(&mut LeaseTable) -> R,
    ) -> R {
        let before = self.plain.0.take(ix);
        let result = change(self);
        let lease = self.slots.get(ix.index()).and_then(Option::as_ref);
        if let Some((owner, hands_over)) = lease.and_then(|lease| lease.plain_owner(cx)) {
            let owner = self.plain.0.number(owner, before.map(|plain| plain.owner));
            self.plain.0.set(ix, Plain { owner, hands_over });
        }
        result
    }

    /// The leases that are not known to be plainly another's, by their numbers.
    pub(in crate::worker) fn not_plain(&self) -> impl Iterator<Item = (LeaseIx, &Lease)> {
        self.not_among(&self.plain.0)
    }

    pub(super) fn not_among(&self, plain: &PlainLeases) -> impl Iterator<Item = (LeaseIx, &Lease)> {
        let slots = self.slots.iter().enumerate();
        slots.filter_map(|(at, lease)| match plain.get(at) {
            Some(_) => None,
            None => Some((LeaseIx::from_index(at), lease.as_ref()?)),
        })
    }

    /// All leases with an owner, by the one that the row names: during a hand-over, that is the next one.
    pub(in crate::worker) fn by_owner(&self) -> BTreeMap<&WorkerId, Vec<LeaseIx>> {
        let plain = &self.plain.0;
        let mut by_number = vec![Vec::new(); plain.names.len()];
        for (at, lease) in plain.leases.iter().enumerate() {
            if let Some(lease) = lease {
                by_number[lease.owner as usize].push(LeaseIx::from_index(at));
            }
        }
        let numbers = plain.numbers.iter();
        let mut by_owner: BTreeMap<_, _> = numbers
            .map(|(name, number)| (name, std::mem::take(&mut by_number[*number as usize])))
            .collect();
        for (ix, lease) in self.not_plain() {
            if let Some(owner) = lease.row().and_then(|row| row.owner.as_ref()) {
                by_owner.entry(owner).or_default().push(ix);
            }
        }
        by_owner
    }

    /// The leases whose rows may name this owner: all that do are among them.
    pub(in crate::worker) fn perhaps_of(&self, owner: &WorkerId) -> impl Iterator<Item = (LeaseIx, &Lease)> {
        let number = self.plain.0.numbers.get(owner).copied();
        let slots = self.slots.iter().enumerate();
        slots.filter_map(move |(at, lease)| match self.plain.0.get(at) {
            Some(plain) if Some(plain.owner) != number => None,
            _ => Some((LeaseIx::from_index(at), lease.as_ref()?)),
        })
    }

    /// All owners that rows name: during a hand-over, the next one.
    pub(in crate::worker) fn owners(&self) -> BTreeSet<WorkerId> {
        let plain = self.plain.0.counts().map(|(owner, _)| owner.clone());
        let mut owners: BTreeSet<WorkerId> = plain.collect();
        for owner in self
            .not_plain()
            .filter_map(|(_, lease)| lease.row()?.owner.as_ref())
        {
            if !owners.contains(owner) {
                owners.insert(owner.clone());
            }
        }
        owners
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_former_owners_do_not_pile_up() {
        let mut plain = PlainLeases::default();
        for life in 0..1_000 {
            plain.number(&WorkerId::of_life("worker", life), None);
            plain.forget_names(1);
            assert!(plain.names.len() <= 2 + SPARE_NAMES && plain.numbers.len() == plain.names.len());
        }
    }
}
