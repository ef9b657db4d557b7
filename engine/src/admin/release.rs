//! Leases are taken from their owners.

use super::{Deed, LeftAlone, Plan, Step, View, Which};
use crate::ids::WorkerId;
use crate::row::LeaseRow;
use std::collections::BTreeSet;

/// The plan to free leases. `alive` are the owners seen to renew; see [`report`](super::report).
pub fn release(view: &View, which: &Which, alive: &BTreeSet<WorkerId>) -> Plan {
    let (rows, left) = which.of(view);
    let mut plan = Plan { left, ..Plan::default() };
    for row in rows {
        if row.checkpoint.is_end() {
            // A release of all leases does not mean finished leases.
            if let Which::Shards(_) = which {
                let why = "its shard was read to its end, so no worker has it";
                plan.left.push(LeftAlone::new(&row.key, why));
            }
        } else if row.owner.is_none() && row.handing_over.is_none() {
            if let Which::Shards(_) = which {
                let why = "it has no owner: a worker with room for it takes it at its next scan";
                plan.left.push(LeftAlone::new(&row.key, why));
            }
        } else {
            plan.steps.push(Step {
                lease: row.key.clone(),
                deed: Deed::Release,
                seen: Some(row.clone()),
                follows: vec![
                    owner(row, alive),
                    "any worker with room for it, the former one too, takes it at its next scan of the table, and goes on from \
                     the checkpoint"
                        .to_owned(),
                ],
            });
        }
    }
    plan
}

/// What becomes of the present owner.
pub(super) fn owner(row: &LeaseRow, alive: &BTreeSet<WorkerId>) -> String {
    match row.actual_owner() {
        None => "it has no owner".to_owned(),
        Some(owner) if alive.contains(owner) => format!(
            "{owner} is alive and loses the lease: its next write is refused, within its renewal interval; until then it may process \
             records beside the next owner, and what it processed since the checkpoint comes again"
        ),
        Some(owner) => format!(
            "{owner} was not seen to renew a lease; if it is alive all the same, its next write is refused"
        ),
    }
}
