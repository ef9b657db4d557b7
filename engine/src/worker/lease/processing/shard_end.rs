//! The end of a shard: the leases of its children come first, then the shard's own end is written.
//!
//! A merged child has a second parent, whose lease may not exist yet: the second parent may be the child of a shard
//! still being read. A child whose parent has no row is free to start. So the child's lease is created after its other
//! parent's lease, unless the lineage shows that no worker will ever create the parent's lease.

use super::View;
use super::waiting::look_pause;
use crate::ids::{LeaseIx, LeaseKey, OpId, ShardId};
use crate::input::{Outcome, Reply};
use crate::notice::{Notice, Stall};
use crate::output::TableOp;
use crate::position::Checkpoint;
use crate::row::{Change, LeaseRow};
use crate::shard::{ChildShard, HashRange, Shard};
use crate::sync;
use crate::time::Mono;
use crate::worker::context::{Context, Request, Waiter};
use crate::worker::evidence::{Evidence, Needed, STANDSTILL};
use crate::worker::lease::lent::Lent;
use crate::worker::lease::ownership::Ownership;
use crate::worker::lease_table::{self, Lease, LeaseTable};
use crate::worker::table_turns::Turn;
use std::collections::{BTreeMap, BTreeSet};

/// A shard that was processed to its end.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Ending {
    /// How many of the children's leases are not known to exist yet.
    children_left: u32,
    /// Children whose leases wait until their other parents have leases.
    pending_children: Vec<ChildShard>,
    /// The other parents of the pending children.
    unresolved_parents: Vec<ShardId>,
    /// Listings by which some of these parents will never have a lease: the leases of forgotten shards that may bring a
    /// parent's lease.
    hopeless: Evidence<Vec<LeaseIx>>,
    /// A read of another parent's row is in flight.
    reading: Option<OpId>,
    /// The next look at another parent.
    look_at: Mono,
    /// How often a look showed another parent without a lease.
    looks: u32,
    /// When the shards are listed again, at the earliest, for the sake of another parent without a lease.
    doubt_at: Mono,
    /// A notice has told of the wait for other parents.
    told: bool,
    /// A read showed another parent without a lease. Until the parent has a lease, the whole of another shard may have
    /// to be read.
    lacks_parent: bool,
}

/// The names of these children, sorted.
pub(super) fn names(children: &[ChildShard]) -> Vec<ShardId> {
    let names: BTreeSet<ShardId> = children.iter().map(|child| child.id.clone()).collect();
    names.into_iter().collect()
}

/// The evidence of a listing about leases whose owners may still create other leases.
pub(in crate::worker::lease) struct Prospects<'a> {
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
    pub(in crate::worker::lease) fn new(table: &LeaseTable, shards: &'a [Shard], but: LeaseIx) -> Self {
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
        Self {
            shards,
            leases: stream.map_or_else(BTreeMap::new, |stream| lease_table::known(table, stream)),
            unlisted,
        }
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

impl Ending {
    /// All records of the shard were processed, and these are the shard's children.
    pub(super) fn begin(lease: &LeaseKey, mut children: Vec<ChildShard>) -> Self {
        // An answer may name a child twice.
        let mut named = BTreeSet::new();
        children.retain(|child| named.insert(child.id.clone()));
        let parents: BTreeSet<ShardId> =
            children.iter().flat_map(|child| child.parents.iter().cloned()).collect();
        let others = parents.into_iter().filter(|parent| parent.as_str() != lease.as_str());
        Self {
            // Until the leases are queued, this holds the end back.
            children_left: children.len() as u32,
            unresolved_parents: others.collect(),
            pending_children: children,
            ..Self::default()
        }
    }

    /// Whether the leases of all children are known to exist.
    pub(super) fn has_all_children(&self) -> bool {
        self.children_left == 0
    }

    /// Whether children wait until their other parents have leases.
    pub(super) fn awaits_other_parents(&self) -> bool {
        !self.pending_children.is_empty()
    }

    /// Whether the end cannot be written before others have done their part.
    pub(super) fn waits_for_others(&self) -> bool {
        self.lacks_parent && !self.unresolved_parents.is_empty()
    }

    /// Why the shard stands still, if because of its children.
    pub(super) fn why(&self) -> Option<Stall> {
        if self.awaits_other_parents() {
            return Some(Stall::CoParents(self.unresolved_parents.clone()));
        }
        (self.children_left > 0).then_some(Stall::Children { left: self.children_left })
    }

    /// When another parent is looked at again.
    pub(super) fn wake_at(&self, own: &Ownership, cx: &Context) -> Mono {
        let waits = self.reading.is_some() || cx.turns().waits(own.ix(), Turn::Begin);
        match waits || !self.awaits_other_parents() {
            true => Mono::NEVER,
            false => self.look_at,
        }
    }

    /// Something has changed: the other parents are looked at now.
    pub(super) fn look_at(&mut self, now: Mono) {
        self.look_at = now;
    }

    /// Queues the leases of the children as soon as their other parents have leases.
    pub(super) fn step(&mut self, lent: &mut Lent<'_>) {
        let (own, leases, cx) = (lent.own, lent.rows, &mut *lent.cx);
        if self.pending_children.is_empty() {
            return;
        }
        // A child with a lease is complete, whatever became of its other parent's lease.
        self.pending_children.retain(|child| leases.row(child.id.as_str()).is_none());
        let pending = &self.pending_children;
        self.unresolved_parents.retain(|parent| {
            leases.row(parent.as_str()).is_none()
                && pending.iter().any(|child| child.parents.contains(parent))
        });
        if let Some(parent) = self.unresolved_parents.first() {
            if !std::mem::replace(&mut self.told, true) {
                cx.notify(Notice::Blocked { lease: own.lease(), parents: self.unresolved_parents.clone() });
            }
            let due = self.reading.is_none() && cx.now() >= self.look_at;
            if due && cx.takes_turn(own.ix(), Turn::Begin) {
                let op = TableOp::Read { key: parent.to_lease() };
                self.reading = Some(cx.table_in_turn(Turn::Begin, Waiter::Relative(own.ix()), op));
            }
            return;
        }
        let mut left = 0;
        for child in std::mem::take(&mut self.pending_children) {
            let row = lease_of(child);
            let why = "its parent was processed to the end".to_string();
            cx.write_row(Change::Create(Box::new(row)), why, Some(own.ix()), Mono::NEVER);
            left += 1;
        }
        debug_assert!(
            self.unresolved_parents.is_empty(),
            "children are created when their other parents have leases"
        );
        self.children_left = left;
    }

    /// A consistent read of another parent's row came back. Whether a listing is to show the fate of that parent.
    pub(super) fn on_relative(&mut self, lent: &mut Lent<'_>, op: OpId, outcome: Outcome) -> bool {
        if self.reading != Some(op) {
            return false;
        }
        self.reading = None;
        let (now, cx) = (lent.now(), &mut *lent.cx);
        match outcome {
            Outcome::Applied(Reply::Row(Some(_))) if !self.unresolved_parents.is_empty() => {
                self.lacks_parent = false;
                self.unresolved_parents.remove(0);
                self.look_at = now;
            }
            Outcome::Applied(Reply::Row(None)) => {
                // The lease does not exist yet, or never will: the lineage decides. The creating worker may create the
                // lease at any moment.
                self.lacks_parent = true;
                self.look_at = now + look_pause(cx, &mut self.looks);
                if now >= self.doubt_at {
                    self.doubt_at = now + cx.config().scan_interval;
                    cx.request(Request::DoubtStream(lent.own.stream()));
                    return true;
                }
            }
            _ => self.look_at = now + cx.config().retry_max.min(cx.config().renew_interval),
        }
        false
    }

    /// The lease of one more child is known to exist, or needs not.
    pub(super) fn on_child_written(&mut self) {
        debug_assert!(self.children_left > 0, "a child is counted once");
        self.children_left = self.children_left.saturating_sub(1);
    }

    /// A list of all shards tells which of the other parents without a lease may still get a lease.
    pub(super) fn judge_other_parents(&mut self, cx: &Context, view: &View<'_>, prospects: &Prospects<'_>) {
        // A child whose own descendants have leases was read to its end before, whatever became of its row. This does
        // not hold where every listed shard has a row until the shard is forgotten: there, the descendants' rows may
        // have come first.
        if !cx.absence_is_unread() {
            let read = |child: &ChildShard| {
                sync::has_leased_descendant(&prospects.leases, prospects.shards, &child.id)
            };
            self.pending_children.retain(|child| !read(child));
        }
        self.children_left = self.pending_children.len() as u32;
        let pending = &self.pending_children;
        let unlikely = |parent: &ShardId| prospects.unlikely(parent, pending);
        let lost = |parent: &ShardId| prospects.doubtful(parent, pending);
        let mut waited_for = prospects.anything();
        let some_unlikely = self.unresolved_parents.iter().any(unlikely);
        if !some_unlikely {
            // A lease whose shard does not exist would be waited for without end.
            let parents = self.unresolved_parents.iter().filter(|parent| lost(parent));
            let leases = parents.flat_map(|parent| prospects.bringing(parent, pending));
            waited_for.extend(leases.map(|unread| unread.lease));
        }
        // A listing may lag. A parent is believed gone only after several listings without the parent, a scan interval
        // apart. Leases with unknown ranges may wait for each other, in the hands of workers without knowledge of each
        // other. The worker waits for these leases as long as any of them ends.
        if view.is_behind() || !self.unresolved_parents.iter().any(lost) {
            return self.hopeless.contradicted();
        }
        let mut needed = Needed::to_forget(cx);
        if !waited_for.is_empty() {
            needed = needed.times(STANDSTILL);
        }
        if self.hopeless.says(cx, view.asked(), waited_for, needed) {
            self.hopeless.contradicted();
            self.look_at = cx.now();
            self.unresolved_parents.retain(|parent| !(unlikely(parent) || (!some_unlikely && lost(parent))));
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
