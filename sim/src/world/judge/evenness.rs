//! `fair-shares`, the half beyond the reach of a history: once no lease moves any more, leases lie evenly, and with the
//! owner whose turn it is.

use super::conditions::Scene;
use crate::names::number;
use crate::oracles::fact::Owner;
use crate::oracles::{LifeNo, Property, ShardNo};
use crate::world::fleet::Worker;
use leasehold_engine::ids::WorkerId;
use leasehold_engine::policy::Assign;
use std::collections::BTreeMap;

impl Scene<'_> {
    /// With assignment by count: a worker that has two more unfinished leases than another. With a difference of one,
    /// the two would only change places.
    pub(super) fn uneven(&self) -> Option<(Property, String)> {
        let plan = &self.cx.plan();
        if plan.config.policies().assign != Assign::Count || plan.has_others() {
            return None;
        }
        // Leases of an unreadable stream count, and a worker started later cannot take them.
        if plan.faults.several.any_lasts() {
            return None;
        }
        let working = |worker: &&Worker| {
            worker.is_core() && worker.lives() && !worker.is_stopping() && worker.fatal().is_none()
        };
        let workers = self.fleet.workers().iter().filter(working);
        let mut counts: BTreeMap<LifeNo, u32> = workers.map(|worker| (worker.life(), 0)).collect();
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

    /// With assignment by rank: once only the core is left, an unfinished lease without a turn, or not with the owner
    /// whose turn it is.
    pub(super) fn out_of_turn(&self) -> Option<(Property, String)> {
        if self.cx.plan().config.policies().assign != Assign::Rank {
            return None;
        }
        let core = self.fleet.workers().iter().filter(|worker| worker.is_core());
        let mut members: Vec<&WorkerId> = core
            .filter_map(|worker| match worker.is_of_others() {
                true => self.cx.names().name(worker.life()).filter(|name| !self.hangs(name)),
                false => worker.name(),
            })
            .collect();
        members.sort();
        let shards = self.services.shared();
        let left_out = (0..self.services.shards().len()).find(|&n| {
            let waits = self.services.row(n).is_some_and(|row| !row.checkpoint.is_end());
            let listed = !self.services.is_forgotten(n as ShardNo);
            waits && listed && !shards.iter().any(|shard| number(shard.as_str()) == Some(n as ShardNo))
        });
        if let Some(shard) = left_out {
            let sentence =
                format!("shard {shard} is unfinished and not shared out: other programs would not read it");
            return Some((Property::HashSpaceCovered, sentence));
        }
        shards.iter().enumerate().find_map(|(place, shard)| {
            let number = number(shard.as_str())?;
            let row = self.services.row(number as usize).filter(|row| !row.checkpoint.is_end())?;
            let turn = members.get(place % members.len().max(1))?;
            (row.owner.as_ref() != Some(*turn)).then(|| {
                let sentence =
                    format!("shard {number} belongs to {:?}, and it is the turn of {turn}", row.owner);
                (Property::FairShares, sentence)
            })
        })
    }

    /// Whether a member of a foreign program hangs for ever. A member of kinsumer hangs when more than ten of its
    /// shards fail while the members change (the hazard `kin-errors-block`). The member no longer reports its life, so
    /// its turns go to other members. Our workers' own rows are not judged here.
    fn hangs(&self, member: &WorkerId) -> bool {
        let expiry = self.cx.plan().config.members().expiry();
        let silent = self.services.silent_for(self.cx.now(), member);
        self.cx.plan().is_mixed() && silent.is_some_and(|silent| silent > expiry.0)
    }
}
