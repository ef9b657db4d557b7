//! The end of a shard: the leases of its children come first, then the shard's own end is written.
//!
//! A merged child has a second parent, whose lease may not exist yet: the second parent may be the child of a shard
//! still being read. A child whose parent has no row is free to start. So the child's lease is created after its other
//! parent's lease, unless the lineage shows that no worker will ever create the parent's lease.

use super::held::HeldLease;
use super::stage::{Ending, Stage};
use super::waiting::look_pause;
use crate::ids::{LeaseIx, LeaseKey, ShardId};
use crate::input::{Outcome, Reply};
use crate::notice::Notice;
use crate::output::TableOp;
use crate::position::Checkpoint;
use crate::row::{Change, LeaseRow};
use crate::shard::{ChildShard, HashRange, Shard};
use crate::sync;
use crate::time::Mono;
use crate::worker::context::{Context, Request, Waiter};
use crate::worker::evidence::{Evidence, Needed, STANDSTILL};
use crate::worker::lease_table::{Lease, LeaseTable};
use crate::worker::table_turns::Turn;
use std::collections::{BTreeMap, BTreeSet};

/// All records of the shard were processed, and these are the shard's children.
pub(super) fn begin(lease: &LeaseKey, mut children: Vec<ChildShard>) -> Ending {
    // An answer may name a child twice.
    let mut named = BTreeSet::new();
    children.retain(|child| named.insert(child.id.clone()));
    let parents: BTreeSet<ShardId> =
        children.iter().flat_map(|child| child.parents.iter().cloned()).collect();
    let others = parents.into_iter().filter(|parent| parent.as_str() != lease.as_str());
    Ending {
        // Until the leases are queued, this holds the end back.
        children_left: children.len() as u32,
        unresolved_parents: others.collect(),
        pending_children: children,
        hopeless: Evidence::default(),
        reading: None,
        look_at: Mono(0),
        looks: 0,
        doubt_at: Mono(0),
        told: false,
        lacks_parent: false,
    }
}

/// The names of these children, sorted.
pub(super) fn names(children: &[ChildShard]) -> Vec<ShardId> {
    let names: BTreeSet<ShardId> = children.iter().map(|child| child.id.clone()).collect();
    names.into_iter().collect()
}

/// The evidence of a listing about leases whose owners may still create other leases.
pub(super) struct Prospects<'a> {
    shards: &'a [Shard],
    leases: BTreeMap<LeaseKey, Checkpoint>,
    /// Unfinished leases of shards that are not listed.
    unlisted: Vec<Unread>,
}

/// An unfinished lease of a shard that is not listed.
struct Unread {
    lease: LeaseIx,
    range: Option<HashRange>,
    /// The listing shows that the stream has not forgotten the shard: the listing is behind, or the shard does not exist.
    stands: bool,
}

impl<'a> Prospects<'a> {
    /// Unfinished leases of shards forgotten by the stream. The worker that ends such a shard creates the leases of the
    /// shard's children, though the stream has forgotten the children too. A lease with all of its children listed does
    /// not count, if the missing lease is none of the children's: that lease may itself wait for leases from ours.
    pub(super) fn new(table: &LeaseTable, shards: &'a [Shard], but: LeaseIx) -> Self {
        let listed: BTreeSet<&str> = shards.iter().map(|shard| shard.id.as_str()).collect();
        let children = sync::Children::of(shards);
        let stream = table.get(but).map(Lease::stream);
        let unread = |(lease, row): (LeaseIx, &LeaseRow)| Unread {
            lease,
            range: row.range,
            stands: sync::stands_against(sync::Unlisted::of(row), shards).is_some(),
        };
        let unlisted = table
            .iter()
            .filter(|(_, lease)| Some(lease.stream()) == stream)
            .filter(|(other, lease)| *other != but && lease.is_unfinished())
            .filter(|(_, lease)| !listed.contains(lease.key().as_str()))
            .filter(|(_, lease)| !children.all_shown(lease.key().as_str()))
            .filter_map(|(other, lease)| Some(unread((other, lease.row()?))))
            .collect();
        Self { shards, leases: stream.map_or_else(BTreeMap::new, |stream| table.known(stream)), unlisted }
    }

    /// Leases that may bring the lease of any shard: their rows lack the ranges of their forgotten shards.
    fn anything(&self) -> Vec<LeaseIx> {
        let unknown = self.unlisted.iter().filter(|unread| unread.range.is_none());
        unknown.map(|unread| unread.lease).collect()
    }

    /// The leases that may bring a lease for a parent, by their ranges.
    fn bringing(&self, parent: &ShardId, pending: &[ChildShard]) -> impl Iterator<Item = &Unread> {
        let reached = |range: HashRange| {
            let mut children = pending.iter().filter(|child| child.parents.contains(parent));
            children.any(|child| child.range.overlaps(range))
        };
        let all = self.unlisted.iter();
        all.filter(move |unread| unread.range.is_some_and(reached))
    }

    /// Whether a parent without a lease will not get a lease, by the ranges.
    fn unlikely(&self, parent: &ShardId, pending: &[ChildShard]) -> bool {
        !sync::will_come(self.shards, parent) && self.bringing(parent, pending).next().is_none()
    }

    /// Whether only leases of not forgotten shards, by this listing, may bring the parent's lease.
    fn doubtful(&self, parent: &ShardId, pending: &[ChildShard]) -> bool {
        !sync::will_come(self.shards, parent) && self.bringing(parent, pending).all(|unread| unread.stands)
    }
}

impl HeldLease {
    /// Queues the leases of the children as soon as their other parents have leases.
    pub(super) fn end_step(&mut self, cx: &mut Context, leases: &LeaseTable) {
        let Stage::Ending(ending) = &mut self.stage else {
            return cx.broken("children are created while a shard ends");
        };
        if ending.pending_children.is_empty() {
            return;
        }
        // A child with a lease is complete, whatever became of its other parent's lease.
        ending.pending_children.retain(|child| leases.row(child.id.as_str()).is_none());
        let pending = &ending.pending_children;
        ending.unresolved_parents.retain(|parent| {
            leases.row(parent.as_str()).is_none()
                && pending.iter().any(|child| child.parents.contains(parent))
        });
        if let Some(parent) = ending.unresolved_parents.first() {
            if !std::mem::replace(&mut ending.told, true) {
                cx.notify(Notice::Blocked {
                    lease: self.own.lease(),
                    parents: ending.unresolved_parents.clone(),
                });
            }
            let due = ending.reading.is_none() && cx.now() >= ending.look_at;
            if due && cx.takes_turn(self.own.ix(), Turn::Begin) {
                let op = TableOp::Read { key: parent.to_lease() };
                ending.reading = Some(cx.table_in_turn(Turn::Begin, Waiter::Relative(self.own.ix()), op));
            }
            return;
        }
        let mut left = 0;
        for child in std::mem::take(&mut ending.pending_children) {
            let row = lease_of(child);
            let why = "its parent was processed to the end".to_string();
            cx.write_row(Change::Create(Box::new(row)), why, Some(self.own.ix()), Mono::NEVER);
            left += 1;
        }
        debug_assert!(
            ending.unresolved_parents.is_empty(),
            "children are created when their other parents have leases"
        );
        ending.children_left = left;
    }

    /// A consistent read of another parent's row came back.
    pub(super) fn on_other_parent(&mut self, cx: &mut Context, outcome: Outcome) {
        let now = cx.now();
        let Stage::Ending(ending) = &mut self.stage else {
            return cx.broken("other parents are asked about while a shard ends");
        };
        match outcome {
            Outcome::Applied(Reply::Row(Some(_))) if !ending.unresolved_parents.is_empty() => {
                ending.lacks_parent = false;
                ending.unresolved_parents.remove(0);
                ending.look_at = now;
            }
            Outcome::Applied(Reply::Row(None)) => {
                // The lease does not exist yet, or never will: the lineage decides. The creating worker may create the
                // lease at any moment.
                ending.lacks_parent = true;
                ending.look_at = now + look_pause(cx, &mut ending.looks);
                if now >= ending.doubt_at {
                    ending.doubt_at = now + cx.config().scan_interval;
                    self.missing = true;
                    cx.request(Request::DoubtStream(self.own.stream()));
                }
            }
            _ => ending.look_at = now + cx.config().retry_max.min(cx.config().renew_interval),
        }
    }

    /// The lease of one more child is known to exist, or needs not.
    pub(in crate::worker) fn on_child_written(&mut self) {
        if let Stage::Ending(ending) = &mut self.stage {
            debug_assert!(ending.children_left > 0, "a child is counted once");
            ending.children_left = ending.children_left.saturating_sub(1);
        }
    }

    /// A list of all shards, requested at `asked`, tells which of the other parents without a lease may still get a
    /// lease. `is_behind`: the list is older than the end of our own shard.
    pub(super) fn judge_other_parents(
        &mut self, cx: &mut Context, (asked, is_behind): (Mono, bool), prospects: &Prospects<'_>,
    ) {
        let Some(ending) = self.stage.ending_mut() else {
            return cx.broken("other parents are judged while a shard ends");
        };
        self.missing = false;
        // A child whose own descendants have leases was read to its end before, whatever became of its row. This does
        // not hold where every listed shard has a row until the shard is forgotten: there, the descendants' rows may
        // have come first.
        if !cx.absence_is_unread() {
            let read = |child: &ChildShard| {
                sync::has_leased_descendant(&prospects.leases, prospects.shards, &child.id)
            };
            ending.pending_children.retain(|child| !read(child));
        }
        ending.children_left = ending.pending_children.len() as u32;
        let pending = &ending.pending_children;
        let unlikely = |parent: &ShardId| prospects.unlikely(parent, pending);
        let lost = |parent: &ShardId| prospects.doubtful(parent, pending);
        let mut waited_for = prospects.anything();
        let some_unlikely = ending.unresolved_parents.iter().any(unlikely);
        if !some_unlikely {
            // A lease whose shard does not exist would be waited for without end.
            let parents = ending.unresolved_parents.iter().filter(|parent| lost(parent));
            let leases = parents.flat_map(|parent| prospects.bringing(parent, pending));
            waited_for.extend(leases.map(|unread| unread.lease));
        }
        // A listing may lag. A parent is believed gone only after several listings without the parent, a scan interval
        // apart. Leases with unknown ranges may wait for each other, in the hands of workers without knowledge of each
        // other. The worker waits for these leases as long as any of them ends.
        if is_behind || !ending.unresolved_parents.iter().any(lost) {
            return ending.hopeless.contradicted();
        }
        let mut needed = Needed::to_forget(cx);
        if !waited_for.is_empty() {
            needed = needed.times(STANDSTILL);
        }
        if ending.hopeless.says(cx, asked, waited_for, needed) {
            ending.hopeless.contradicted();
            ending.look_at = cx.now();
            ending
                .unresolved_parents
                .retain(|parent| !(unlikely(parent) || (!some_unlikely && lost(parent))));
        }
    }
}

fn lease_of(child: ChildShard) -> LeaseRow {
    let parents: BTreeSet<ShardId> = child.parents.into_iter().collect();
    let mut row = LeaseRow::new(child.id.to_lease(), Checkpoint::TrimHorizon);
    row.parents = parents.into_iter().collect();
    row.range = Some(child.range);
    row
}
