//! Whose turn a lease is, where leases are assigned by rank: what is taken, and what is given up.

use super::Core;
use super::ctx::Request;
use super::take::Balance;
use crate::mutant::Mutant;
use std::collections::BTreeSet;

/// No more than this many leases are taken after one scan, to spare the table a burst.
const MAX_TAKES: usize = 1_000;

impl Core {
    /// Takes what is ours by rank and held by nobody who lives.
    ///
    /// What is not shared out yet, or not any more though it was not read to its end, goes round in the same way among the
    /// members; other programs do not take it, and so it is anybody's after a while.
    pub(crate) fn take_turns(&mut self, balance: &Balance) {
        let Some(turns) = &self.members.turns else { return };
        let (now, me, config) = (self.ctx.now, &self.ctx.me, &self.ctx.config);
        let available: BTreeSet<u32> = balance.available.iter().copied().collect();
        // An owner that lives gives up what is not its turn. It may be silent until then: other programs say nothing of a
        // lease while nothing happens.
        let checks = config.members.check_interval.times(2);
        let all_know = now.since(self.members.turns_since) >= checks;
        let mut strays = 0;
        let mut wanted = Vec::new();
        for (ix, lease) in self.view.iter() {
            let Some(row) = lease.row.as_ref().filter(|row| !row.checkpoint.is_end()) else {
                continue;
            };
            let ours = turns.has(lease.key.as_str()).unwrap_or_else(|| {
                strays += 1;
                turns.is_ours(strays - 1) || lease.idle() >= config.lease_duration.times(2)
            });
            let owner = row.actual_owner();
            let lives = owner.is_some_and(|owner| turns.counts(owner));
            // A write of ours that came late made the row ours: it is taken, and given up if it is not our turn.
            if available.contains(&ix) && (owner == Some(me) || (ours && (all_know || !lives))) {
                wanted.push((0, ix));
            }
        }
        wanted.truncate(MAX_TAKES);
        let mine = balance.counts.get(me).copied().unwrap_or(0);
        self.tell_choice(balance, mine, None, &wanted, wanted.len());
        for (_, ix) in wanted {
            let why = self.reason_to_take(ix);
            self.ctx.request(Request::Take(ix, why));
        }
    }

    /// Whether a lease of ours is not that of another member by now.
    pub(crate) fn keeps(&self, ix: u32) -> bool {
        let lease = self.view.get(ix);
        match (&self.members.turns, lease) {
            (Some(turns), Some(lease)) => {
                turns.has(lease.key.as_str()) != Some(false) || self.ctx.planted.is(Mutant::KeepsOthersTurns)
            }
            _ => true,
        }
    }

    /// Lists the shards if one that is ours by rank has no lease yet: other programs create that when they take it.
    pub(crate) fn ask_leases(&mut self) {
        let Some(turns) = &self.members.turns else { return };
        let lacks = |shard: &str| self.view.row(shard).is_none() && !self.scan.occupied.contains(shard);
        let ours = |shard: &str| turns.has(shard) == Some(true);
        let shards = turns.shards().iter().map(|shard| shard.as_str());
        if self.absence_is_unread() && shards.into_iter().any(|shard| ours(shard) && lacks(shard)) {
            self.ctx
                .request(Request::ListShards("a shard that is shared out has no lease"));
        }
    }

    /// Our place among the members and how many they are, where leases are assigned by rank.
    pub(crate) fn place(&self) -> Option<(u32, u32)> {
        let turns = self.members.turns.as_ref()?;
        Some((turns.rank(), turns.count()))
    }
}
