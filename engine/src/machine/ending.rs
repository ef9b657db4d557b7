//! The end of a shard: its children's leases come first, then its own end is written.
//!
//! A merged child has a second parent, whose lease may not exist yet: it is itself a child of a shard that is still being
//! read. A child whose parent has no row is free to start, so the child's lease is not created before its other parent's
//! is, unless the lineage shows that nobody will ever create that.

use super::Core;
use super::ctx::{Request, Waiter};
use super::tenure::Tenure;
use crate::ids::ShardId;

use crate::input::{Outcome, Reply};
use crate::mutant::Mutant;
use crate::notice::Notice;
use crate::output::TableOp;
use crate::position::Checkpoint;
use crate::row::{Change, LeaseRow};
use crate::shard::{ChildShard, HashRange, Shard};
use crate::sync;
use crate::time::Mono;
use std::collections::BTreeSet;

/// So many times as many listings must show that nothing moves before leases of which nobody knows what they bring are waited
/// for no longer.
const STANDSTILL: u32 = 8;

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
            row.range = Some(child.range).filter(|_| !self.ctx.planted.is(Mutant::RangeUnsaid));
            let why = "its parent was processed to the end".to_string();
            self.ctx
                .write_row(Change::Create(Box::new(row)), why, Some(ix), Mono::NEVER);
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
                self.ctx.request(Request::DoubtStream);
            }
            _ => tenure.look_at = now + self.ctx.config.retry_max.min(self.ctx.config.renew_interval),
        }
    }

    /// A list of all shards says which of the other parents without a lease may still get one.
    pub(crate) fn judge_co_parents(&mut self, ix: u32, shown_open: bool, shards: &[Shard]) {
        let now = self.ctx.now;
        let confidence = self.ctx.config.audit_confidence.max(2);
        let every_listed = self.absence_is_unread();
        let leases = self.known_leases();
        // Unfinished leases of shards that the stream has forgotten: whoever ends them creates the leases of their children,
        // though those are forgotten too. Not so if all of these are listed, and it is none of them that is missed: such a lease
        // may itself wait for what comes of ours.
        let listed: BTreeSet<&str> = shards.iter().map(|shard| shard.id.as_str()).collect();
        let children = sync::Children::of(shards);
        let forgotten: Vec<(u32, Option<HashRange>)> = self
            .view
            .iter()
            .filter(|(other, lease)| *other != ix && lease.unfinished())
            .filter(|(_, lease)| !listed.contains(lease.key.as_str()))
            .filter(|(_, lease)| !children.all_shown(lease.key.as_str()))
            .map(|(other, lease)| (other, lease.row.as_ref().and_then(|row| row.range)))
            .collect();
        let Some(tenure) = self
            .view
            .get_mut(ix)
            .and_then(|lease| lease.tenure.as_deref_mut())
        else {
            return;
        };
        tenure.missing = false;
        // A child whose own descendants have leases was read to its end before, whatever became of its row. Not so where
        // every listed shard has a row until it is forgotten: then its descendants' may have come first.
        if !every_listed {
            let read = |child: &ChildShard| sync::has_leased_descendant(&leases, shards, &child.id);
            tenure.heirs.retain(|child| !read(child));
        }
        tenure.children_left = tenure.heirs.len() as u32;
        let heirs = &tenure.heirs;
        let reaches = |parent: &ShardId, range: HashRange| {
            let mut children = heirs.iter().filter(|child| child.parents.contains(parent));
            children.any(|child| child.range.overlaps(range))
        };
        // Where rows do not tell the range of a forgotten shard, its lease may bring anything.
        let unlikely = |parent: &ShardId| {
            let mut ranges = forgotten.iter().filter_map(|(_, range)| *range);
            !sync::will_come(shards, parent) && !ranges.any(|range| reaches(parent, range))
        };
        let anything: Vec<u32> = forgotten
            .iter()
            .filter(|(_, range)| range.is_none())
            .map(|(other, _)| *other)
            .collect();
        // A listing may lag. One that shows our own shard open is older than its children; and what no listing shows is
        // believed to be gone only after several, a scan interval apart. Leases that may bring anything may wait for each
        // other, in the hands of workers that know nothing of one another: they are waited for as long as one of them ends.
        if shown_open || !tenure.co_parents.iter().any(unlikely) {
            tenure.verdicts = 0;
        } else if tenure.bringers == anything {
            tenure.verdicts = tenure.verdicts.saturating_add(1);
        } else {
            tenure.verdicts = 1;
        }
        let enough = match anything.is_empty() {
            true => confidence,
            false => confidence.saturating_mul(STANDSTILL),
        };
        tenure.bringers = anything;
        if tenure.verdicts >= enough {
            tenure.verdicts = 0;
            tenure.look_at = now;
            tenure.co_parents.retain(|parent| !unlikely(parent));
        }
        self.view.arm(ix, now);
    }
}
