//! `fair-shares`, the half that a history cannot tell: when nothing moves any more, leases lie evenly.

use super::World;
use crate::oracles::fact::Owner;
use crate::oracles::{LifeNo, Property};
use leasehold_engine::policy::Assign;
use std::collections::BTreeMap;

impl World {
    /// Where leases are assigned by count: a worker that has two more unfinished leases than another. With one more only,
    /// the two would but change places.
    pub(super) fn uneven(&self) -> Option<(Property, String)> {
        let plan = &self.cx.plan();
        if plan.config.policies().assign != Assign::Count || plan.has_others() {
            return None;
        }
        let working = |worker: &&super::worker::Worker| {
            worker.core && worker.lives() && !worker.stopping && worker.fatal.is_none()
        };
        let workers = self.workers.iter().filter(working);
        let mut counts: BTreeMap<LifeNo, u32> = workers.map(|worker| (worker.life, 0)).collect();
        let rows = self.services.rows().iter().filter_map(|lease| lease.row());
        for row in rows.filter(|row| !row.checkpoint.is_end()) {
            let owner = row.actual_owner().map(|owner| self.cx.names().owner(owner));
            if let Some(Owner::Life(life)) = owner
                && let Some(count) = counts.get_mut(&life)
            {
                *count += 1;
            }
        }
        let most = counts.iter().max_by_key(|(_, count)| **count)?;
        let least = counts.iter().min_by_key(|(_, count)| **count)?;
        (*most.1 > least.1 + 1).then(|| {
            let sentence = format!(
                "life {} has {} unfinished leases, and life {} has {}",
                most.0, most.1, least.0, least.1
            );
            (Property::FairShares, sentence)
        })
    }
}
