//! The meaning of the rows of a fleet of KCL 3.x: the rules for getting leases, the workers that may get leases, and
//! the leases to share out. Pure: a worker passes the rows of its scans, and `leasehold plan` passes the rows of a
//! file.

use super::{Candidate, Owner, Portion};
use crate::fleet::{FleetVersion, FleetWorker, WORKER_EXPIRY, seconds};
use crate::ids::WorkerId;
use crate::row::LeaseRow;
use crate::time::{Span, Wall};
use std::collections::BTreeMap;

/// How a worker of ours comes by leases beside workers of KCL 3.x.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Rules {
    /// There is no fleet of KCL 3.x: as the format's policies say.
    #[default]
    Own,
    /// The same. But the fleet waits for the reports of all workers, to move on to the rules of KCL 3.x.
    Reporting,
    /// A leader assigns leases. No worker takes a lease that was not assigned to it.
    Led,
}

/// The rules in force: by the version in the table, and by whether workers of other libraries report that they live.
pub fn rules(version: Option<&FleetVersion>, others_live: bool) -> Rules {
    match version {
        None | Some(FleetVersion::Version2x) => Rules::Own,
        Some(FleetVersion::UpgradeFrom2x) => Rules::Reporting,
        Some(_) if others_live => Rules::Led,
        Some(_) => Rules::Reporting,
    }
}

/// Whether a report seen for the first time comes from a live worker, by the time in the report.
pub fn is_fresh(report: &FleetWorker, now: Wall) -> bool {
    age_of(report, now) < WORKER_EXPIRY
}

/// The age of a report, by the time in the report.
pub(crate) fn age_of(report: &FleetWorker, now: Wall) -> Span {
    let age = seconds(now).saturating_sub(report.at).max(0);
    Span(age.unsigned_abs().saturating_mul(1_000_000))
}

/// The number of whole seconds.
pub(crate) fn whole_seconds(span: Span) -> i64 {
    i64::try_from(span.0 / 1_000_000).unwrap_or(i64::MAX)
}

/// The live workers and the leader, in the order of their names. The leader has no more than `most` leases, if `most`
/// is given; the leader need not report.
pub fn candidates<'a>(
    live: impl Iterator<Item = &'a FleetWorker>, leader: &WorkerId, most: Option<u32>,
) -> Vec<Candidate> {
    let mut candidates: BTreeMap<WorkerId, Candidate> = live
        .map(|worker| {
            let candidate = Candidate { id: worker.id.clone(), metrics: worker.metrics.clone(), most: None };
            (worker.id.clone(), candidate)
        })
        .collect();
    let leads = candidates.entry(leader.clone()).or_insert_with(|| Candidate {
        id: leader.clone(),
        metrics: Vec::new(),
        most: None,
    });
    leads.most = most;
    candidates.into_values().collect()
}

/// The place of a worker among `candidates`, which stand in the order of their names.
pub(crate) fn index_of(candidates: &[Candidate], worker: &WorkerId) -> Option<usize> {
    candidates.binary_search_by(|other| other.id.cmp(worker)).ok()
}

/// A lease to be shared out among `candidates`, sorted by their names. `is_settled` says of the row and its owner
/// whether no change of the lease is under way.
pub fn portion(
    row: Option<&LeaseRow>, available: bool, candidates: &[Candidate],
    is_settled: impl FnOnce(&LeaseRow, &WorkerId) -> bool,
) -> Portion {
    // A lease in a hand-over counts for its next owner.
    let owner = row.and_then(|row| row.owner.as_ref());
    Portion {
        owner: match (owner, owner.and_then(|owner| index_of(candidates, owner))) {
            (_, Some(index)) => Owner::Candidate(index),
            (Some(_), None) if !available => Owner::Other,
            _ => Owner::Nobody,
        },
        throughput: row.and_then(|row| row.throughput),
        available,
        movable: row.zip(owner).is_some_and(|(row, owner)| is_settled(row, owner)),
    }
}
