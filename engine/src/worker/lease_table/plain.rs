//! Leases plainly of other live workers. In a large fleet nearly all leases are plain. Numbers count them: a plain
//! lease takes a few bytes of memory, and a count looks at neither rows nor names.

use super::{Lease, LeaseTable};
use crate::ids::{LeaseIx, WorkerId};
use crate::leader_assignment::{self, Candidate, Load};
use crate::row::{HandsOver, LeaseRow};
use crate::time::{Mono, Span};
use crate::worker::context::Context;
use crate::worker::kcl3::{Standing, silence_of};
use std::collections::{BTreeMap, BTreeSet};

/// A lease of another live worker, as far as was shown: unfinished, not being handed over, and without an action of
/// ours. Time alone changes none of this.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Plain {
    /// The number of the owner.
    owner: u32,
    hands_over: HandsOver,
}

/// The known plain leases, and numbers for their owners.
#[derive(Clone, Debug, Default)]
pub(super) struct PlainLeases {
    /// By the number of the lease. Absent: the lease itself has to be looked at.
    leases: Vec<Option<Plain>>,
    /// By the number of the lease: the smoothed throughput in its row when the lease was found plain. Without meaning
    /// for other leases.
    throughputs: Vec<u64>,
    names: Vec<WorkerId>,
    /// By the number of the owner.
    counts: Vec<PlainCount>,
    numbers: BTreeMap<WorkerId, u32>,
}

/// The sums over the plain leases of an owner.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct PlainCount {
    pub(super) leases: u32,
    /// How many of their rows do not say that the owner hands the lease over.
    pub(super) silent: u32,
    /// The number of leases with a known throughput, and the sum of their throughputs.
    known: u32,
    throughput: u128,
}

/// Stands for a throughput that is not known.
const UNKNOWN: u64 = u64::MAX;

/// The number of names of former owners kept beside twice the number of owners.
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
        let at = ix.index();
        let plain = self.leases.get_mut(at)?.take()?;
        let throughput = std::mem::replace(&mut self.throughputs[at], UNKNOWN);
        let count = &mut self.counts[plain.owner as usize];
        count.leases -= 1;
        count.silent -= u32::from(plain.hands_over.is_no());
        if throughput != UNKNOWN {
            count.known -= 1;
            count.throughput -= u128::from(throughput);
        }
        Some(plain)
    }

    fn set(&mut self, ix: LeaseIx, plain: Plain, throughput: Option<u64>) {
        let at = ix.index();
        if self.leases.len() <= at {
            self.leases.resize(at + 1, None);
            self.throughputs.resize(at + 1, UNKNOWN);
        }
        debug_assert!(self.leases[at].is_none(), "a lease is counted once");
        self.leases[at] = Some(plain);
        let count = &mut self.counts[plain.owner as usize];
        count.leases += 1;
        count.silent += u32::from(plain.hands_over.is_no());
        if let Some(throughput) = throughput.filter(|known| *known != UNKNOWN) {
            self.throughputs[at] = throughput;
            count.known += 1;
            count.throughput += u128::from(throughput);
        }
    }

    /// The number of an owner. `likely`: the owner's former number.
    fn number(&mut self, owner: &WorkerId, likely: Option<u32>) -> u32 {
        if let Some(number) = likely.filter(|number| self.names.get(*number as usize) == Some(owner)) {
            return number;
        }
        if let Some(number) = self.numbers.get(owner) {
            return *number;
        }
        let number = self.names.len() as u32;
        self.names.push(owner.clone());
        self.counts.push(PlainCount::default());
        self.numbers.insert(owner.clone(), number);
        number
    }

    /// By the number of an owner: the owner's place among these candidates. The candidates stand in the order of their
    /// names.
    fn places(&self, candidates: &[Candidate]) -> Vec<Option<usize>> {
        let mut places = vec![None; self.names.len()];
        let mut candidates = candidates.iter().enumerate().peekable();
        for (name, number) in &self.numbers {
            while candidates.next_if(|(_, other)| other.id < *name).is_some() {}
            let same = candidates.peek().filter(|(_, other)| other.id == *name);
            places[*number as usize] = same.map(|(place, _)| *place);
        }
        places
    }

    /// The owners of plain leases, in order, and what their leases come to.
    pub(super) fn counts(&self) -> impl Iterator<Item = (&WorkerId, PlainCount)> {
        let numbers = self.numbers.iter();
        let counts = numbers.map(|(name, number)| (name, self.counts[*number as usize]));
        counts.filter(|(_, count)| count.leases > 0)
    }

    /// Workers come and go, and each life of a worker has a name of its own. When many names may be of former owners,
    /// all names are forgotten. The next scan shows the needed names.
    pub(super) fn forget_names(&mut self, owners: usize) {
        if self.names.len() > 2 * owners + SPARE_NAMES {
            *self = Self::default();
        }
    }
}

/// What a leader has to weigh.
#[derive(Debug)]
pub(in crate::worker) struct Loads<'a> {
    each: Vec<Load>,
    plain: &'a PlainLeases,
    /// By the number of an owner of plain leases: its place among the candidates.
    places: Vec<Option<usize>>,
    /// The remaining leases: the place of the owner, and the throughput.
    rest: Vec<(Option<usize>, Option<u64>)>,
}

impl Loads<'_> {
    /// What each owner has.
    pub(in crate::worker) fn each(&self) -> &[Load] {
        &self.each
    }

    /// The leases with less than this throughput, each with the place of its owner.
    pub(in crate::worker) fn light(&self, below: u64) -> impl Iterator<Item = (Option<usize>, u64)> {
        let throughputs = self.plain.throughputs.iter().copied().enumerate();
        let plain = throughputs.filter(move |(_, throughput)| *throughput < below);
        let plain = plain.filter_map(|(at, throughput)| {
            let owner = self.plain.get(at)?.owner as usize;
            Some((self.places[owner], throughput))
        });
        let rest = self.rest.iter().filter_map(|(owner, throughput)| Some((*owner, (*throughput)?)));
        plain.chain(rest.filter(move |(_, throughput)| *throughput < below))
    }
}

/// The row and its owner, if the lease is plainly another's.
fn plain_row<'a>(lease: &'a Lease, cx: &Context) -> Option<(&'a LeaseRow, &'a WorkerId)> {
    let row = lease.unfinished_row().filter(|row| row.handing_over.is_none())?;
    // What was handed over, and is not taken yet, is anybody's in a moment.
    let row = Some(row).filter(|row| match row.hands_over {
        HandsOver::Yes => true,
        HandsOver::Later => false,
        // Before its owner's first renewal, the lease may have been assigned to a worker that has left.
        HandsOver::No => lease.has_moved(),
    })?;
    let expired = lease.idle() >= cx.config().lease_duration;
    let owner = row.owner.as_ref().filter(|owner| *owner != cx.me() && !cx.is_former_life(owner))?;
    (!expired && !lease.is_unwatched() && !lease.busy()).then_some((row, owner))
}

/// Takes note of a lease as `change` leaves it.
pub(super) fn weigh_after<R>(
    leases: &mut LeaseTable, cx: &Context, ix: LeaseIx, change: impl FnOnce(&mut LeaseTable) -> R,
) -> R {
    let before = leases.plain.0.take(ix);
    let result = change(leases);
    let lease = leases.slots.get(ix.index()).and_then(Option::as_ref);
    if let Some((row, owner)) = lease.and_then(|lease| plain_row(lease, cx)) {
        let plain = Plain {
            owner: leases.plain.0.number(owner, before.map(|plain| plain.owner)),
            hands_over: row.hands_over,
        };
        leases.plain.0.set(ix, plain, row.throughput);
    }
    result
}

/// All leases but the plain leases, by their numbers.
pub(super) fn not_among<'a>(
    leases: &'a LeaseTable, plain: &'a PlainLeases,
) -> impl Iterator<Item = (LeaseIx, &'a Lease)> {
    // The memory of a lease that is plain is not touched.
    let noted = plain.leases.iter().enumerate();
    let others = noted.filter_map(|(at, plain)| plain.is_none().then_some(at));
    let others = others.chain(plain.leases.len()..leases.slots.len());
    others.filter_map(|at| {
        let ix = LeaseIx::from_index(at);
        Some((ix, leases.get(ix)?))
    })
}

/// The owners that rows name, and their leases.
#[derive(Clone, Copy, Debug)]
pub(in crate::worker) struct LeaseOwners<'a> {
    leases: &'a LeaseTable,
}

impl<'a> LeaseOwners<'a> {
    pub(super) fn of(leases: &'a LeaseTable) -> Self {
        Self { leases }
    }

    fn plain(self) -> &'a PlainLeases {
        &self.leases.plain.0
    }

    /// The leases that are not known to be plainly another's, by their numbers.
    pub(in crate::worker) fn not_plain(self) -> impl Iterator<Item = (LeaseIx, &'a Lease)> {
        not_among(self.leases, self.plain())
    }

    /// All leases with an owner, by the owner in the row: during a hand-over, by the next owner.
    pub(in crate::worker) fn leases(self) -> BTreeMap<&'a WorkerId, Vec<LeaseIx>> {
        let plain = self.plain();
        let mut by_number = vec![Vec::new(); plain.names.len()];
        for (at, lease) in plain.leases.iter().enumerate() {
            if let Some(lease) = lease {
                by_number[lease.owner as usize].push(LeaseIx::from_index(at));
            }
        }
        let numbers = plain.numbers.iter();
        let mut by_owner: BTreeMap<_, _> =
            numbers.map(|(name, number)| (name, std::mem::take(&mut by_number[*number as usize]))).collect();
        for (ix, lease) in self.not_plain() {
            if let Some(owner) = lease.row().and_then(|row| row.owner.as_ref()) {
                by_owner.entry(owner).or_default().push(ix);
            }
        }
        by_owner
    }

    /// The unfinished leases, as a leader weighs them.
    pub(in crate::worker) fn loads(self, candidates: &[Candidate]) -> Loads<'a> {
        let plain = self.plain();
        let places = plain.places(candidates);
        let of_plain = plain.counts.iter().zip(&places).map(|(count, place)| Load {
            owner: *place,
            leases: count.leases,
            known: count.known,
            throughput: count.throughput,
        });
        let rows = self.not_plain().filter_map(|(_, lease)| lease.unfinished_row());
        let place = |owner: &WorkerId| leader_assignment::index_of(candidates, owner);
        let rest: Vec<_> = rows.map(|row| (row.owner.as_ref().and_then(place), row.throughput)).collect();
        let of_rest = rest.iter().map(|(owner, throughput)| Load {
            owner: *owner,
            leases: 1,
            known: u32::from(throughput.is_some()),
            throughput: throughput.unwrap_or(0).into(),
        });
        Loads { each: of_plain.chain(of_rest).collect(), plain, places, rest }
    }

    /// The leases whose rows may name this owner. Every lease of this owner is among these.
    pub(in crate::worker) fn perhaps_of(
        self, owner: &WorkerId,
    ) -> impl Iterator<Item = (LeaseIx, &'a Lease)> {
        let plain = self.plain();
        let number = plain.numbers.get(owner).copied();
        let slots = self.leases.slots.iter().enumerate();
        slots.filter_map(move |(at, lease)| match plain.get(at) {
            Some(plain) if Some(plain.owner) != number => None,
            _ => Some((LeaseIx::from_index(at), lease.as_ref()?)),
        })
    }

    /// All owners that rows name: during a hand-over, the next one.
    pub(in crate::worker) fn names(self) -> BTreeSet<WorkerId> {
        let plain = self.plain().counts().map(|(owner, _)| owner.clone());
        let mut owners: BTreeSet<WorkerId> = plain.collect();
        for owner in self.not_plain().filter_map(|(_, lease)| lease.row()?.owner.as_ref()) {
            if !owners.contains(owner) {
                owners.insert(owner.clone());
            }
        }
        owners
    }

    /// The owners of rows changed within `patience`, by all rows counted by other programs. Finished leases and leases
    /// of unread streams count, too. During a hand-over, both owners count.
    pub(in crate::worker) fn live(self, cx: &Context, patience: Span) -> BTreeSet<WorkerId> {
        let mut owners = BTreeSet::new();
        let mut count = |owner: &WorkerId| {
            if !owners.contains(owner) {
                owners.insert(owner.clone());
            }
        };
        for (_, lease) in self.leases.iter() {
            let still = !lease.is_ours() && lease.idle() >= patience;
            if let Some(row) = lease.row().filter(|_| !still) {
                row.owner.iter().chain(&row.handing_over).for_each(&mut count);
            }
        }
        let moved = |since: Mono| cx.now().since(since) < patience;
        for (owner, _) in self.leases.unread().owners().filter(|(_, since)| moved(*since)) {
            count(owner);
        }
        owners
    }

    /// What rows tell of their owners.
    pub(super) fn standings(self, cx: &Context) -> BTreeMap<WorkerId, Standing> {
        let plain = self.plain().counts().filter(|(_, count)| count.leases > 0);
        let plain =
            plain.map(|(owner, count)| (owner.clone(), Standing::of_plain(count.silent < count.leases)));
        let mut standings: BTreeMap<WorkerId, Standing> = plain.collect();
        for (_, lease) in self.not_plain() {
            let owned = lease.unfinished_row().and_then(|row| Some((row, row.actual_owner()?)));
            if let Some((row, owner)) = owned {
                let first = lease.observed_at() <= self.leases.scans().first_ended();
                let standing = standings.entry(owner.clone()).or_default();
                let renewed = match lease.has_moved() {
                    // Perhaps the owner renewed the lease long ago, and is dead.
                    true => (!lease.is_unwatched()).then_some(true),
                    false => (!first).then_some(false),
                };
                standing.add(row, renewed, lease.idle() < silence_of(cx, row));
            }
        }
        standings
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
