//! The end of a shard: its children's leases come first, then its own end is written.
//!
//! A merged child has a second parent, whose lease may not exist yet: it is itself a child of a shard that is still being
//! read. A child whose parent has no row is free to start, so the child's lease is not created before its other parent's
//! is, unless the lineage shows that nobody will ever create that.

use super::Core;
use super::ctx::Waiter;
use super::tenure::Tenure;
use crate::input::{Outcome, Reply};
use crate::mutant::Mutant;
use crate::notice::Notice;
use crate::output::TableOp;
use crate::position::Checkpoint;
use crate::row::{Change, LeaseRow};
use crate::shard::ChildShard;
use crate::time::Mono;
use std::collections::BTreeSet;

impl Core {
    /// Everything of the shard was processed, and these are its children.
    pub(crate) fn begin_end(&mut self, ix: u32, tenure: &mut Tenure, children: Vec<ChildShard>) {
        let shard = self.key(ix).to_shard();
        let ids: BTreeSet<_> = children.iter().map(|child| child.id.clone()).collect();
        let parents: BTreeSet<_> = children
            .iter()
            .flat_map(|child| child.parents.iter().cloned())
            .collect();
        tenure.children = ids.into_iter().collect();
        // Until the leases are queued, this holds the end back.
        tenure.children_left = children.len() as u32;
        tenure.co_parents = parents.into_iter().filter(|parent| *parent != shard).collect();
        if self.ctx.planted.is(Mutant::NoCoParentWait) {
            tenure.co_parents.clear();
        }
        tenure.heirs = children;
        tenure.look_at = Mono(0);
        self.end_step(ix, tenure);
    }

    /// Queues the children's leases as soon as their other parents have one.
    pub(crate) fn end_step(&mut self, ix: u32, tenure: &mut Tenure) {
        if tenure.heirs.is_empty() {
            return;
        }
        let view = &self.view;
        // A child that has a lease needs nothing more, whatever became of its other parent's.
        tenure.heirs.retain(|child| view.row(child.id.as_str()).is_none());
        let heirs = &tenure.heirs;
        tenure.co_parents.retain(|parent| {
            view.row(parent.as_str()).is_none() && heirs.iter().any(|child| child.parents.contains(parent))
        });
        if let Some(parent) = tenure.co_parents.first() {
            if !tenure.told_waiting {
                tenure.told_waiting = true;
                let lease = self.key(ix);
                self.ctx.tell(Notice::Blocked {
                    lease,
                    parents: tenure.co_parents.clone(),
                });
            }
            if tenure.looking.is_none() && !tenure.missing && self.ctx.now >= tenure.look_at {
                let key = parent.to_lease();
                tenure.looking = Some(self.ctx.table(Waiter::Parent(ix), TableOp::Read { key }));
            }
            return;
        }
        let mut left = 0;
        for child in std::mem::take(&mut tenure.heirs) {
            let key = child.id.to_lease();
            let parents: BTreeSet<_> = child.parents.into_iter().collect();
            let start = if self.ctx.planted.is(Mutant::ChildrenFromLatest) {
                Checkpoint::Latest
            } else {
                Checkpoint::TrimHorizon
            };
            let mut row = LeaseRow::new(key, start);
            row.parents = parents.into_iter().collect();
            row.range = Some(child.range);
            let why = "its parent was processed to the end".to_string();
            self.add_chore(Change::Create(Box::new(row)), why, Some(ix), Mono::NEVER);
            left += 1;
            if self.ctx.planted.is(Mutant::OneChildOnly) {
                break;
            }
        }
        tenure.children_left = if self.ctx.planted.is(Mutant::EndBeforeChildren) {
            0
        } else {
            left
        };
        // Later in this turn they are begun only if the belief holds.
        if tenure.believes(self.ctx.now) || self.ctx.planted.is(Mutant::CreateWhenFenced) {
            self.chores_step();
        }
    }

    /// A consistent look at another parent's row came back.
    pub(crate) fn co_parent_seen(&mut self, tenure: &mut Tenure, outcome: Outcome) {
        let now = self.ctx.now;
        match outcome {
            Outcome::Applied(Reply::Row(Some(_))) if !tenure.co_parents.is_empty() => {
                tenure.co_parents.remove(0);
                tenure.look_at = now;
            }
            Outcome::Applied(Reply::Row(None)) => {
                // Not created yet, or never to be: the lineage says which.
                tenure.missing = true;
                tenure.look_at = now + self.ctx.config.scan_interval;
                self.doubt_stream();
            }
            _ => tenure.look_at = now + self.ctx.config.retry_max.min(self.ctx.config.renew_interval),
        }
    }
}
