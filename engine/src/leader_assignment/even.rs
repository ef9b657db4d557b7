//! Whether a round would move no lease, judged by the counts of each worker.
//!
//! A leader asks this first: in a fleet at rest, it then looks at numbers only, and not at the row of each lease. The
//! answer is exact in one direction: at yes, [`by_load`](super::by_load()) and [`by_count`](super::by_count()) move no
//! lease. At no, both may still find no movable lease.

use super::by_load::{LoadOptions, Scale, sources};
use super::measure::measures;
use super::{Candidate, members};

/// The totals of an owner's processed leases. An owner may stand in several entries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Load {
    /// The index of the candidate; for a lease in a hand-over, the index of its next owner. Absent: a worker that is no
    /// candidate.
    pub(crate) owner: Option<usize>,
    /// The number of these leases.
    pub(crate) leases: u32,
    /// The number of leases with a known throughput.
    pub(crate) known: u32,
    /// The sum of the known throughputs, in millionths of KiB/s.
    pub(crate) throughput: u128,
}

/// Whether [`by_count`](super::by_count()) moves none of these leases, if none is available.
pub(crate) fn is_even_by_count(candidates: &[Candidate], loads: &[Load]) -> bool {
    let (mut members, numbers) = members(candidates);
    for load in loads {
        if let Some(owner) = number(&numbers, load.owner) {
            members[owner].leases += load.leases as usize;
        }
    }
    let open = members.iter().filter(|member| member.has_room());
    let least = open.map(|member| member.leases).min();
    let most = members.iter().map(|member| member.leases).max();
    least.zip(most).is_none_or(|(least, most)| most < least + 2)
}

/// Whether [`by_load`](super::by_load()) moves none of these leases, if none is available. `light` gives the leases
/// with less than a throughput: the owner of each lease, as in `loads`, and its throughput.
pub(crate) fn is_even_by_load<I: Iterator<Item = (Option<usize>, u64)>>(
    candidates: &[Candidate], loads: &[Load], light: impl FnOnce(u64) -> I, options: &LoadOptions,
) -> bool {
    let known = loads.iter().map(|load| u128::from(load.known)).sum();
    let Some(scale) = Scale::new(loads.iter().map(|load| load.throughput).sum(), known) else {
        return is_even_by_count(candidates, loads);
    };
    let (members, numbers) = members(candidates);
    let mut assigned = vec![0_u128; members.len()];
    for load in loads {
        if let Some(owner) = number(&numbers, load.owner) {
            debug_assert!(load.known <= load.leases, "a lease has one throughput");
            let unknown = u128::from(load.leases - load.known);
            assigned[owner] += load.throughput + unknown * u128::from(scale.weight(None));
        }
    }
    for (owner, throughput) in light(scale.least()) {
        if let Some(owner) = number(&numbers, owner) {
            assigned[owner] += u128::from(scale.weight(Some(throughput)) - throughput);
        }
    }
    let carried: Vec<f64> = assigned.iter().map(|weight| *weight as f64).collect();
    sources(&measures(&members, &carried), &assigned, options).is_empty()
}

/// The number of the member for a candidate.
fn number(numbers: &[Option<usize>], candidate: Option<usize>) -> Option<usize> {
    numbers.get(candidate?).copied().flatten()
}
