//! Leading the members: being the member with the first name, and that member's work for all.

use super::members::Members;
use super::tasks::Task;
use crate::ids::ShardId;
use crate::members::Leader;
use crate::policy::Life;
use crate::rank::share_out;
use crate::shard::Shard;
use crate::time::{Mono, Span, Wall};
use crate::worker::context::Context;
use crate::worker::lease_table::LeaseTable;
use std::collections::BTreeSet;

/// No more than this many rows of the dead are removed at a time.
const MAX_REAPED: usize = 25;

impl Members {
    /// The leader's row was read: is it our turn?
    pub(super) fn on_leader_row(
        &mut self, cx: &Context, leases: &LeaseTable, emitted: Mono, row: Option<Leader>,
    ) {
        let expiry = cx.config().members.lead_expiry();
        self.lead.see(row, cx.now());
        let first = leases.turns().is_some_and(|turns| turns.rank() == 0);
        let open = self.lead.is_open(cx.me(), emitted, cx.wall(), expiry);
        self.leads &= open;
        if open && first {
            self.first([Task::Lead].into_iter());
        }
    }

    /// We lead from now on, or still: what a leader does is due.
    pub(super) fn on_lead(&mut self, cx: &Context) {
        let config = &cx.config().members;
        debug_assert!(self.may_lead, "only a member that tried to lead leads");
        self.leads = true;
        self.lead_at = cx.now() + config.lead_interval;
        self.wants_listing = true;
        let dead = self.roster.forgotten(cx.me(), self.asked, cx.wall(), config.expiry());
        for member in dead.into_iter().take(MAX_REAPED) {
            debug_assert_ne!(&member.id, cx.me(), "a member does not remove its own row");
            self.last(Task::Reap(member));
        }
    }

    /// The monotonic clock did not count so much time: another member may lead by now.
    pub(in crate::worker) fn on_missed(&mut self, by: Span) {
        self.lead_at = self.lead_at - by;
    }

    /// Compares the shards that are shared out with a list of all shards, if that is our part: as the leader, or as the first
    /// of the members if there are none.
    pub(in crate::worker) fn compare_shared(&mut self, cx: &Context, leases: &LeaseTable, shards: &[Shard]) {
        let (Some(shared), Some(turns)) = (&self.shared, leases.turns()) else {
            // The shared shards, or the turns, are not known yet.
            return;
        };
        let config = &cx.config().members;
        let leads = self.leads && cx.now() < self.lead_at + config.check_interval;
        if turns.rank() > 0 || !(leads || turns.shards().is_empty()) {
            return;
        }
        let listed: BTreeSet<&ShardId> = shards.iter().map(|shard| &shard.id).collect();
        let lacking = |shard: &&ShardId| !listed.contains(shard);
        let lacks: BTreeSet<ShardId> = self.shards().iter().filter(lacking).cloned().collect();
        // A list may lag: only what two of them lack is gone.
        let kept = lacks.iter().filter(|shard| !self.missed.contains(*shard));
        let finished = |shard: &ShardId| {
            let row = leases.row(shard.as_str());
            row.is_some_and(|row| row.checkpoint.is_end())
        };
        let all = listed.iter().copied().chain(kept);
        let next = share_out(self.shards(), all, finished);
        let at = shared.as_ref().map(|shared| shared.at);
        // Other programs' leaders do nothing before the time in the row, though a wrong clock may have set it.
        let ahead = cx.wall().0.saturating_add(config.lead_interval.as_millis() as i64);
        let ahead = Life::Stamp.next(0, Wall(ahead), Span::ZERO);
        let corrected = || {
            let shards = self.shards().to_vec();
            (at > Some(ahead) && !shards.is_empty()).then_some(shards)
        };
        let task = next.or_else(corrected).map(|shards| Task::Share(shards, at));
        self.missed = lacks;
        self.tasks.retain(|task| !matches!(task, Task::Share(..)));
        self.tasks.extend(task);
    }
}
