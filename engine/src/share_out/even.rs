//! Whether a round would move nothing, told from what each worker has.
//!
//! A leader asks this first: in a fleet at rest, it then looks at numbers only, and not at the row of each lease. The answer is exact in
//! one direction: where it is yes, [`by_load`](super::by_load()) and [`by_count`](super::by_count()) move nothing. Where it is
//! no, they may still find no lease that can be moved.

use super::by_load::{LoadOptions, Scale, sources};
use super::measure::measures;
use super::{Candidate, members};

/// What somebody has of the leases that are processed. An owner may stand in several of these.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Load {
    /// The index of the candidate; of a lease that is being handed over, that of its next owner. Absent: a worker that is no candidate.
    pub(crate) owner: Option<usize>,
    /// How many leases these are.
    pub(crate) leases: u32,
    /// The throughput of how many of them is known.
    pub(crate) known: u32,
    /// The sum of it, in millionths of KiB/s.
    pub(crate) throughput: u128,
}

/// Whether [`by_count`](super::by_count()) moves none of these leases, of which none is available.
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

/// Whether [`by_load`](super::by_load()) moves none of these leases, of which none is available. `light` gives the leases with less than a
/// throughput: the owner of each, as in `loads`, and its throughput.
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

/// The number of the member that stands for a candidate.
fn number(numbers: &[Option<usize>], candidate: Option<usize>) -> Option<usize> {
    numbers.get(candidate?).copied().flatten()
}
