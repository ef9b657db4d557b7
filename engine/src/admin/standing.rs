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
    /// Its owner renewed it, or took it, while the table was watched.
    Alive,
    /// It has an owner, and its row did not change while the table was watched, which was for less than a lease lasts.
    Silent,
    /// It has an owner, and its row did not change for as long as a lease lasts: another worker may take it.
    Expired,
    /// It has no owner.
    Free,
    /// Its shard was read to its end.
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

/// A table, as it stands. Lengths of time are serialized as microseconds.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct TableReport {
    /// For how long the table was watched.
    pub watched: Span,
    /// The leases, in the order of their keys.
    pub leases: Vec<LeaseReport>,
    /// The workers that rows name, in the order of their names.
    pub owners: Vec<OwnerReport>,
    /// Items of other kinds, and what they call themselves.
    pub foreign: BTreeMap<LeaseKey, String>,
    /// Items that should be leases and cannot be read: what was expected, and what was found.
    pub unreadable: BTreeMap<LeaseKey, String>,
}

/// A lease, as it stands.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LeaseReport {
    /// The key of its row: the shard.
    pub lease: LeaseKey,
    /// How it stands.
    pub standing: Standing,
    /// The worker that may process the shard.
    pub owner: Option<WorkerId>,
    /// The worker that it is being handed over to.
    pub handed_to: Option<WorkerId>,
    /// How far the shard was processed.
    pub checkpoint: Checkpoint,
    /// What guards the row.
    pub counter: u64,
}

/// A worker that rows name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct OwnerReport {
    /// Its name.
    pub worker: WorkerId,
    /// Whether a row of it changed while the table was watched.
    pub alive: bool,
    /// So many unfinished leases name it as the one that may process them.
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
