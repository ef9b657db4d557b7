//! The two rules by which a leader of KCL 3.x shares leases out: by their number, and by the load of the workers.
//!
//! The leader alone decides which worker processes which lease, so a leader of ours must decide in a way acceptable to
//! workers of KCL 3.x: a leader of ours may replace a leader of KCL at any time, and be replaced by a leader of KCL.
//! [`by_count()`] is `LEASE_COUNT_BASED`, [`by_load()`] is `WORKER_UTILIZATION_AWARE`. Both are pure functions: from
//! the workers and leases of one scan, to the leases that shall get another worker. The leader writes these moves; each
//! write is guarded, so a decision from an old scan costs time, and costs no lease.
//!
//! Available leases (free, or no longer renewed by their owner) are placed first. Processed leases are moved only if
//! the caller asks for balance, and each at most once in a run.
//!
//! # Where these rules differ from the original, and why
//! Both rules:
//! * A worker listed twice counts once: by its first usable entry. The original counts such a worker twice in averages
//!   and shares.
//! * A worker whose last report lacks a metric gets no lease, as in the original; but if all workers lack a metric, all
//!   of them take part as workers without metrics. The original then leaves every lease without an owner.
//! * An available lease is not given back to the owner that failed to process it, but to the next best worker. The
//!   original leaves the lease as it is and counts it as done, so the lease may stay expired for ever.
//! * An available lease counts for no worker until it is placed. The original counts the lease for the failed owner.
//! * A lease in a hand-over counts for its next owner, by the index given by the caller. The original counts the lease
//!   for the old owner and picks it again.
//!
//! By number:
//! * Each available lease goes to the worker with the fewest leases, and leases move until no worker has two more than
//!   another worker. The original fills each worker to the average rounded up, and moves only leases above this number:
//!   of the counts 2, 2, 2 and 0 the original moves no lease.
//!
//! By load:
//! * If leases have a throughput of less than 1 KiB/s on average, they are shared out by number. The original divides 0 by 0 for
//!   workers without metrics, if there is none; from three workers on, some then get nothing. Of little, it moves leases to and fro.
//! * A worker at 0 is the first to get a lease. The original ranks such a worker behind a worker with half of the
//!   average. Of equal workers, the worker with the fewest leases is the first, then the worker with the least id.
//! * A lease weighs a hundredth of the average at least, so that idle leases are shared out, too. The original may give
//!   all idle leases to one worker, as they make this worker no busier.
//! * While available leases are placed, a worker without metrics is compared with its share of all throughput. The
//!   original compares with the average of these workers; the average is 0 when a fleet starts: then load does not
//!   count.
//! * The averages for moves include the leases just placed. The original compares with the averages from before.
//! * A destination that refuses a lease is tried with the leases of the next worker again, and the next destination is
//!   tried with this lease. The original forgets the destination and goes on with the next worker.
//! * Workers without metrics have no operating limit. In the original the limit is their share of the throughput: the
//!   threshold has no effect, and every small difference moves leases.
//! * A lease moved to a worker without metrics adds its weight, in relation to the average of these workers. The
//!   original takes the share of all throughput, a larger value if other workers have leases; so the original may move
//!   a lease to and fro for ever.
//! * A lease heavier than the room up to the average is moved all the same, among workers without metrics, if the
//!   destination is below the average and then has no more than the source keeps. The original leaves two busy leases
//!   with one worker beside an idle worker.
//! * Of the leases that a worker hands over, the lightest is moved first. The original moves them in the order drawn.
//! * Only the load above the average, or above the operating limit if lower, is moved from a worker. In the original, a
//!   worker at its limit that is below the average hands a lease over in each run, and a threshold of 0 % makes two
//!   workers swap a lease for ever.
//!
//! # Why moving ends
//! By number, one run leaves no lease to move. By load, for workers without metrics and leases of constant throughput:
//! a lease of weight `t` moves from a worker above the average to a worker that stays at or below the average, or has
//! at most the load kept by the source. So `t` is less than the difference of the two loads, and the sum of the squares
//! of all loads becomes smaller with every move. The sum cannot become smaller for ever. Metrics of hosts are measured
//! anew after each move: for hosts, only the threshold and the damping limit the moves.
//!
//! A worker may fall below the average by a move, if it has no lease that is small enough and `allow_overshoot` is set. It stays
//! above what the destination had.
//!
//! # What the caller sees to
//! * The order of the leases is the order in which available leases are placed: the leases that stood still for longest
//!   come first.
//! * Workers of KCL report the throughput of a newly adopted lease as about a third of the true value. For a lease just
//!   moved, give the throughput from before.
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

/// A live worker, as its row describes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// The worker's name.
    pub id: WorkerId,
    /// The metrics of its host; empty if the worker reports none. Of two entries with one name, the first counts.
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

/// The processing worker of a lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Owner {
    /// No worker: the lease is free, or its owner is dead.
    Nobody,
    /// The candidate of this index. Of an available lease: the candidate that failed to process the lease; it does not
    /// get the lease again.
    Candidate(usize),
    /// A worker that lives and is no candidate.
    Other,
}

/// A lease to be shared out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Portion {
    /// The processing worker. In a hand-over: the next owner.
    pub owner: Owner,
    /// The lease's smoothed throughput in millionths of KiB/s, if known.
    pub throughput: Option<u64>,
    /// The lease is free, or its owner stopped renewing.
    pub available: bool,
    /// The lease may be moved although a worker processes it: the lease is not finished and not in a hand-over.
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
    /// The number of its leases.
    leases: usize,
}

impl Member<'_> {
    fn has_room(&self) -> bool {
        self.leases < self.most
    }
}

/// The candidates that take part, in the order of their ids, and the owner of each lease.
struct Fleet<'a> {
    members: Vec<Member<'a>>,
    leases: &'a [Portion],
    /// The number of the member named by a lease as its owner.
    owners: Vec<Option<usize>>,
}

/// The candidates that take part, in the order of their ids, and for each candidate the number of its member.
fn members(candidates: &[Candidate]) -> (Vec<Member<'_>>, Vec<Option<usize>>) {
    let some_usable = candidates.iter().any(Candidate::is_usable);
    let mut chosen: Vec<usize> =
        (0..candidates.len()).filter(|index| !some_usable || candidates[*index].is_usable()).collect();
    // A stable sort: of several entries with one id, the first comes first.
    chosen.sort_by(|a, b| candidates[*a].id.cmp(&candidates[*b].id));
    chosen.dedup_by(|a, b| candidates[*a].id == candidates[*b].id);
    let mut numbers = vec![None; candidates.len()];
    for (number, index) in chosen.iter().enumerate() {
        numbers[*index] = Some(number);
    }
    // The leases of a member's second entry are the member's, too.
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
