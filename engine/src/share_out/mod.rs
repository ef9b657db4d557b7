//! The two rules by which a leader of KCL 3.x shares leases out: by their number, and by the load of the workers.
//!
//! The leader alone decides who processes which lease, so a leader of ours must decide what workers of KCL 3.x can live with:
//! it may replace one of theirs at any time, and be replaced by one. [`by_count()`] is `LEASE_COUNT_BASED`, [`by_load()`] is
//! `WORKER_UTILIZATION_AWARE`. Both are pure functions: from the workers and leases that one scan showed, to the leases that
//! shall get another worker. The leader writes these; each write is guarded, so a decision from an old scan costs time and
//! nothing else.
//!
//! What is available (free, or its owner stopped renewing it) is placed first. Leases that are processed are moved only if the
//! caller asks for balance, and each at most once in a run.
//!
//! # Where these rules differ from the original, and why
//! Both rules:
//! * A worker that is listed twice counts once: its first usable entry. The original counts it twice in averages and shares.
//! * A worker whose last report lacks a metric gets nothing, as in the original; but if that is true of all workers, all of them
//!   take part as workers without metrics. The original then leaves every lease without an owner.
//! * An available lease is not given back to the owner that failed to process it, but to the next best worker. The original
//!   leaves it as it is and counts it as done, so it may stay expired for ever.
//! * An available lease counts for nobody until it is placed. The original counts it for the owner that failed.
//! * A lease that is being handed over counts for its next owner, by the index that the caller gives. The original counts it for
//!   the old one and picks it again.
//!
//! By number:
//! * Each available lease goes to the worker with the fewest, and leases move until no worker has two more than another. The
//!   original fills each worker to the average rounded up, and moves only what is above that: of the counts 2, 2, 2 and 0 it
//!   moves nothing.
//!
//! By load:
//! * If leases have a throughput of less than 1 KiB/s on average, they are shared out by number. The original divides 0 by 0 for
//!   workers without metrics, if there is none; from three workers on, some then get nothing. Of little, it moves leases to and fro.
//! * A worker at 0 is the first to get something. The original ranks it behind one that has half of the average. Of equal
//!   workers, the one with the fewest leases is the first, then the one with the least id.
//! * A lease weighs a hundredth of the average at least, so that idle leases are shared out, too. The original may give all of
//!   them to one worker, as they make it no busier.
//! * While available leases are placed, a worker without metrics is compared with its share of all throughput. The original
//!   compares it with the average of these workers, which is 0 when a fleet starts: then load does not count.
//! * What was placed is a part of the averages by which leases are moved. The original compares with the averages from before.
//! * A destination that refuses a lease is asked again for those of the next worker, and the next destination is asked for
//!   this lease. The original forgets the destination and goes on with the next worker.
//! * Workers without metrics have no operating limit. In the original it is their share of the throughput: the threshold has no
//!   effect, and every small difference moves leases.
//! * A lease that is moved to a worker without metrics adds what it weighs, in relation to the average of these workers. The
//!   original takes the share of all throughput, which is larger if somebody else has leases; so it may move a lease to and
//!   fro for ever.
//! * A lease heavier than what the average leaves room for is moved all the same, among workers without metrics, if the
//!   destination is below the average and then has no more than the source keeps. The original leaves two busy leases with one
//!   worker beside an idle one.
//! * Of the leases that a worker gives, the lightest is moved first. The original moves them in the order drawn.
//! * Only what is above the average, or above the operating limit if that is lower, is moved from a worker. In the original, a
//!   worker at its limit that is below the average gives away a lease in each run, and a threshold of 0 % makes two workers swap
//!   a lease for ever.
//!
//! # Why moving ends
//! By number, one run leaves nothing to move. By load, for workers without metrics and leases of constant throughput: a lease of
//! weight `t` moves from a worker above the average to one that then is at the average at most, or has at most what the source
//! keeps. So `t` is less than the difference of the two, and the sum of the squares of all loads becomes smaller with every move. It cannot do so for ever.
//! Metrics of hosts are measured anew after each move: there, the threshold and the damping are what there is.
//!
//! A worker may fall below the average by a move, if it has no lease that is small enough and `allow_overshoot` is set. It stays
//! above what the destination had.
//!
//! # What the caller sees to
//! * The order of the leases is the order in which available ones are placed: those that stood still for longest come first.
//! * Workers of KCL report the throughput of a lease that they just adopted as about a third of what it is. For a lease
//!   that was just moved, give the throughput from before.
//! * Candidates are workers whose row is complete and was written within the last minute.

mod by_count;
mod by_load;
mod even;
mod measure;
mod rows;
#[cfg(test)]
mod tests;

pub use by_count::by_count;
pub use by_load::{LoadOptions, by_load};
pub(crate) use even::{Load, is_even_by_count, is_even_by_load};
pub use rows::{Rules, candidates, is_fresh, portion, rules};
pub(crate) use rows::{age_of, index_of, whole_seconds};

use crate::fleet::FleetMetric;
use crate::ids::WorkerId;

/// A worker that lives, as its row says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// Its name.
    pub id: WorkerId,
    /// What it reports of its host; empty if it reports nothing. Of two with one name, the first counts.
    pub metrics: Vec<FleetMetric>,
    /// The most leases it may have; absent if there is no limit.
    pub most: Option<u32>,
}

impl Candidate {
    /// Whether it can be compared with others: every metric has a limit and was captured last time.
    fn is_usable(&self) -> bool {
        let captured = |metric: &FleetMetric| metric.recent.last().is_none_or(|value| *value >= 0);
        self.metrics.iter().all(|metric| metric.limit > 0 && captured(metric))
    }
}

/// Who processes a lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Owner {
    /// Nobody: it is free, or its owner is dead.
    Nobody,
    /// The candidate of this index. Of an available lease: the one that failed to process it, which does not get it again.
    Candidate(usize),
    /// A worker that lives and is no candidate.
    Other,
}

/// A lease to be shared out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Portion {
    /// Who processes it. If it is being handed over: its next owner.
    pub owner: Owner,
    /// Its smoothed throughput in millionths of KiB/s, if it is known.
    pub throughput: Option<u64>,
    /// It is free, or its owner stopped renewing it.
    pub available: bool,
    /// It may be moved although somebody processes it: it is not finished and not being handed over.
    pub movable: bool,
}

/// A lease that shall get another worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Move {
    /// The index of the lease.
    pub lease: usize,
    /// The index of the candidate.
    pub to: usize,
}

/// A candidate that takes part.
struct Member<'a> {
    /// The index of the candidate.
    index: usize,
    metrics: &'a [FleetMetric],
    /// The most leases it may have.
    most: usize,
    /// How many leases it has.
    leases: usize,
}

impl Member<'_> {
    fn has_room(&self) -> bool {
        self.leases < self.most
    }
}

/// The candidates that take part, in the order of their ids, and who has which lease.
struct Fleet<'a> {
    members: Vec<Member<'a>>,
    leases: &'a [Portion],
    /// The number of the member that a lease names as its owner.
    owners: Vec<Option<usize>>,
}

/// The candidates that take part, in the order of their ids, and of each candidate the number of the member that stands for it.
fn members(candidates: &[Candidate]) -> (Vec<Member<'_>>, Vec<Option<usize>>) {
    let some_usable = candidates.iter().any(Candidate::is_usable);
    let mut chosen: Vec<usize> =
        (0..candidates.len()).filter(|index| !some_usable || candidates[*index].is_usable()).collect();
    // A stable sort: of the entries with one id, the first comes first.
    chosen.sort_by(|a, b| candidates[*a].id.cmp(&candidates[*b].id));
    chosen.dedup_by(|a, b| candidates[*a].id == candidates[*b].id);
    let mut numbers = vec![None; candidates.len()];
    for (number, index) in chosen.iter().enumerate() {
        numbers[*index] = Some(number);
    }
    // What another entry of a member has is the member's, too.
    for (index, number) in numbers.iter_mut().enumerate().filter(|(_, number)| number.is_none()) {
        let id = &candidates[index].id;
        *number = chosen.binary_search_by(|index| candidates[*index].id.cmp(id)).ok();
    }
    let member = |index: &usize| Member {
        index: *index,
        metrics: if some_usable { &candidates[*index].metrics } else { &[] },
        most: candidates[*index].most.map_or(usize::MAX, |most| most as usize),
        leases: 0,
    };
    (chosen.iter().map(member).collect(), numbers)
}

impl<'a> Fleet<'a> {
    fn new(candidates: &'a [Candidate], leases: &'a [Portion]) -> Self {
        let (mut members, numbers) = members(candidates);
        let number_of = |lease: &Portion| match lease.owner {
            Owner::Candidate(index) => numbers.get(index).copied().flatten(),
            Owner::Nobody | Owner::Other => None,
        };
        let owners: Vec<Option<usize>> = leases.iter().map(number_of).collect();
        for (owner, lease) in owners.iter().zip(leases) {
            if let Some(member) = owner.filter(|_| !lease.available) {
                members[member].leases += 1;
            }
        }
        Self { members, leases, owners }
    }

    /// The available leases, in the order of the caller.
    fn available(&self) -> impl Iterator<Item = usize> {
        (0..self.leases.len()).filter(|lease| self.leases[*lease].available)
    }

    /// The leases of each member that may be moved, in the order of the caller.
    fn movable(&self) -> Vec<Vec<usize>> {
        let mut movable = vec![Vec::new(); self.members.len()];
        for (number, lease) in self.leases.iter().enumerate() {
            if let Some(owner) = self.owners[number].filter(|_| lease.movable && !lease.available) {
                movable[owner].push(number);
            }
        }
        movable
    }

    /// The move of a lease to a member.
    fn to(&self, lease: usize, member: usize) -> Move {
        Move { lease, to: self.members[member].index }
    }
}
