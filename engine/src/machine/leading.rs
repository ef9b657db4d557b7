//! Leading the members: being the one whose name is first, and what that one does for all.

use super::Core;
use super::members::Task;
use crate::ids::ShardId;
use crate::members::Leader;
use crate::mutant::Mutant;
use crate::policy::Life;
use crate::rank::share_out;
use crate::shard::Shard;
use crate::time::{Mono, Span, Wall};
use std::collections::BTreeSet;

/// No more than this many rows of the dead are removed at a time.
const MAX_REAPED: usize = 25;

impl Core {
    /// The leader's row was read: is it our turn?
    pub(super) fn leader_read(&mut self, emitted: Mono, row: Option<Leader>) {
        let expiry = self.ctx.config.members.lead_expiry();
        let members = &mut self.members;
        members.lead.see(row, self.ctx.now);
        let first = members.turns.as_ref().is_some_and(|turns| turns.rank() == 0);
        let open = members.lead.is_open(&self.ctx.me, emitted, self.ctx.wall, expiry);
        members.leads &= open;
        if open && first {
            members.first([Task::Lead].into_iter());
        }
    }

    /// We lead from now on, or still: what a leader does is due.
    pub(super) fn lead(&mut self) {
        let config = &self.ctx.config.members;
        let members = &mut self.members;
        members.leads = true;
        members.lead_at = self.ctx.now + config.lead_interval;
        members.wants_listing = true;
        let dead = members
            .roster
            .forgotten(&self.ctx.me, members.asked, self.ctx.wall, config.expiry());
        for member in dead.into_iter().take(MAX_REAPED) {
            members.last(Task::Reap(member));
        }
    }

    /// Compares the shards that are shared out with a list of all shards, if that is our part: as the leader, or as the first
    /// of the members if there are none.
    pub(crate) fn compare_shared(&mut self, shards: &[Shard]) {
        let now = self.ctx.now;
        let (Some(shared), Some(turns)) = (&self.members.shared, &self.members.turns) else {
            return;
        };
        let leads = self.members.leads && now < self.members.lead_at + self.ctx.config.members.check_interval;
        if turns.rank() > 0 || !(leads || turns.shards().is_empty()) {
            return;
        }
        if self.ctx.planted.is(Mutant::SharesOnce) && !turns.shards().is_empty() {
            return;
        }
        let listed: BTreeSet<&ShardId> = shards.iter().map(|shard| &shard.id).collect();
        let lacking = |shard: &&ShardId| !listed.contains(shard);
        let lacks: BTreeSet<ShardId> = self.members.shards().iter().filter(lacking).cloned().collect();
        // A list may lag: only what two of them lack is gone.
        let kept = lacks.iter().filter(|shard| !self.members.missed.contains(*shard));
        let finished = |shard: &ShardId| {
            let row = self.view.row(shard.as_str());
            row.is_some_and(|row| row.checkpoint.is_end())
        };
        let all = listed.iter().copied().chain(kept);
        let next = share_out(self.members.shards(), all, finished);
        let at = shared.as_ref().map(|shared| shared.at);
        // Other programs' leaders do nothing before the time in the row, though it may be of a clock that was wrong.
        let ahead = Wall(
            self.ctx
                .wall
                .0
                .saturating_add(self.ctx.config.members.lead_interval.as_millis() as i64),
        );
        let ahead = Life::Stamp.next(0, ahead, Span::ZERO);
        let corrected = || {
            let shards = self.members.shards().to_vec();
            (at > Some(ahead) && !shards.is_empty()).then_some(shards)
        };
        let task = next.or_else(corrected).map(|shards| Task::Share(shards, at));
        self.members.missed = lacks;
        self.members.tasks.retain(|task| !matches!(task, Task::Share(..)));
        self.members.tasks.extend(task);
    }
}
