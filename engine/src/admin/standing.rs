//! Two views of a table, compared: who lives, and how each lease stands.

use super::View;
use crate::ids::{LeaseKey, WorkerId};
use crate::position::Checkpoint;
use crate::row::LeaseRow;
use crate::time::Span;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// How a lease stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Standing {
    /// The owner renewed or took the lease during the watch of the table.
    Alive,
    /// Its row names an owner and did not change during the watch, but the watch was shorter than a lease duration.
    Silent,
    /// Its row names an owner and did not change for a lease duration: another worker may take it.
    Expired,
    /// The row names no owner.
    Free,
    /// The shard was read to its end.
    Finished,
}

impl fmt::Display for Standing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Standing::Alive => "alive",
            Standing::Silent => "silent",
            Standing::Expired => "expired",
            Standing::Free => "free",
            Standing::Finished => "finished",
        })
    }
}

/// The present state of a table. Lengths of time are serialized as microseconds.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct TableReport {
    /// For how long the table was watched.
    pub watched: Span,
    /// The leases, in the order of their keys.
    pub leases: Vec<LeaseReport>,
    /// The workers that rows name, in the order of their names.
    pub owners: Vec<OwnerReport>,
    /// Items of foreign kinds, each with its kind as the item names it.
    pub foreign: BTreeMap<LeaseKey, String>,
    /// Unreadable items that should be leases: the expected and the found value.
    pub unreadable: BTreeMap<LeaseKey, String>,
}

/// The present state of a lease.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LeaseReport {
    /// The key of its row: the shard.
    pub lease: LeaseKey,
    /// The lease's standing.
    pub standing: Standing,
    /// The worker that may process the shard.
    pub owner: Option<WorkerId>,
    /// The worker receiving the lease in a hand-over.
    pub handed_to: Option<WorkerId>,
    /// How far the shard was processed.
    pub checkpoint: Checkpoint,
    /// The guard of the row.
    pub counter: u64,
}

/// A worker named in rows.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct OwnerReport {
    /// The worker's name.
    pub worker: WorkerId,
    /// Whether a row of it changed while the table was watched.
    pub alive: bool,
    /// The number of unfinished leases processed by this worker, as their rows say.
    pub leases: u32,
}

impl TableReport {
    /// The workers that were seen to live.
    pub fn alive(&self) -> BTreeSet<WorkerId> {
        let alive = self.owners.iter().filter(|owner| owner.alive);
        alive.map(|owner| owner.worker.clone()).collect()
    }
}

/// Compares two views of a table, `watched` apart, where a lease lasts for `lease_duration`.
pub fn report(before: &View, after: &View, watched: Span, lease_duration: Span) -> TableReport {
    let standing = |row: &LeaseRow| {
        let same = before.leases.get(&row.key).is_some_and(|known| {
            (known.counter, &known.owner, &known.handing_over) == (row.counter, &row.owner, &row.handing_over)
        });
        if row.checkpoint.is_end() {
            Standing::Finished
        } else if row.actual_owner().is_none() {
            Standing::Free
        } else if !same && watched > Span::ZERO {
            Standing::Alive
        } else if watched >= lease_duration {
            Standing::Expired
        } else {
            Standing::Silent
        }
    };
    let leases: Vec<LeaseReport> = after
        .leases
        .values()
        .map(|row| LeaseReport {
            lease: row.key.clone(),
            standing: standing(row),
            owner: row.actual_owner().cloned(),
            handed_to: row.handing_over.as_ref().and(row.owner.clone()),
            checkpoint: row.checkpoint,
            counter: row.counter,
        })
        .collect();
    let mut owners: BTreeMap<&WorkerId, (bool, u32)> = BTreeMap::new();
    for lease in leases.iter().filter(|lease| lease.standing != Standing::Finished) {
        if let Some(owner) = &lease.owner {
            let entry = owners.entry(owner).or_default();
            entry.0 |= lease.standing == Standing::Alive;
            entry.1 += 1;
        }
        if let Some(next) = &lease.handed_to {
            owners.entry(next).or_default();
        }
    }
    let owners = owners
        .into_iter()
        .map(|(worker, (alive, leases))| OwnerReport { worker: worker.clone(), alive, leases })
        .collect();
    TableReport {
        watched,
        owners,
        foreign: after.foreign.clone(),
        unreadable: after.unreadable.clone(),
        leases,
    }
}
