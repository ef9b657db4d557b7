//! Facts about shards from the last list of shards: for table formats whose rows hold no lineage.

use super::LeaseTable;
use crate::ids::{LeaseKey, ShardId};
use crate::notice::ListReason;
use crate::row::LeaseRow;
use crate::shard::{HashRange, Shard};
use crate::time::Mono;
use crate::worker::context::{Context, Request};
use crate::worker::evidence::{Evidence, Needed};
use crate::worker::stream_set::StreamIx;
use std::collections::{BTreeMap, BTreeSet};

/// The shards as they were listed last.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(in crate::worker) struct Lineage {
    /// Whether rows are completed from it.
    completes_rows: bool,
    /// Of leases and parents without a listed shard too, once that is certain: those have no range.
    families: BTreeMap<LeaseKey, Family>,
    /// Leases and parents whose shards the lists lack, and the evidence of these lists.
    lacking: BTreeMap<LeaseKey, Lacking>,
    /// When that list was asked for.
    listed_at: Mono,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct Family {
    parents: Vec<ShardId>,
    children: Vec<ShardId>,
    /// Absent: the shard was not listed.
    range: Option<HashRange>,
}

/// The lists in a row that lack a shard.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct Lacking {
    lists: Evidence<()>,
    /// The lists are enough: the stream has forgotten the shard.
    forgotten: bool,
}

impl Family {
    fn fill(&self, row: &mut LeaseRow) {
        if row.range.is_none() && self.range.is_some() {
            row.range = self.range;
            row.parents.clone_from(&self.parents);
        }
        if row.children.is_empty() {
            row.children.clone_from(&self.children);
        }
    }
}

impl Lineage {
    pub(super) fn new(completes_rows: bool) -> Self {
        Self { completes_rows, ..Self::default() }
    }

    /// The families shown by a list of all shards, and the families missing from lists for long enough.
    fn read(&mut self, shards: &[Shard], lacking: BTreeMap<LeaseKey, Lacking>, listed_at: Mono) {
        let mut families: BTreeMap<LeaseKey, Family> = lacking
            .iter()
            .filter(|(_, lacking)| lacking.forgotten)
            .map(|(key, _)| (key.clone(), Family::default()))
            .collect();
        for shard in shards {
            let family = families.entry(shard.id.to_lease()).or_default();
            family.parents = shard.parents().cloned().collect();
            family.parents.sort();
            family.parents.dedup();
            family.range = Some(shard.range);
        }
        for shard in shards {
            for parent in shard.parents() {
                if let Some(family) = families.get_mut(parent.as_str()) {
                    family.children.push(shard.id.clone());
                }
            }
        }
        (self.families, self.lacking, self.listed_at) = (families, lacking, listed_at);
    }

    /// Whether a row just read lacks what only a list of the shards says.
    pub(super) fn may_complete(&self, row: &LeaseRow) -> bool {
        row.range.is_none() && self.completes_rows
    }

    /// Completes a row just read: from its known fields, or from the last list.
    pub(super) fn complete(&self, row: &mut LeaseRow, known: Option<&LeaseRow>) {
        if let Some(family) = self.families.get(&row.key) {
            family.fill(row);
        }
        if let Some(known) = known.filter(|_| row.range.is_none()) {
            row.range = known.range;
            row.parents.clone_from(&known.parents);
            if row.children.is_empty() {
                row.children.clone_from(&known.children);
            }
        }
    }

    /// Whether a lease's parents are known, or known not to be found out any more.
    pub(in crate::worker) fn knows(&self, row: &LeaseRow) -> bool {
        row.range.is_some() || !self.completes_rows || self.families.contains_key(&row.key)
    }

    /// Whether the stream still listed the shard of a lease, some time after `since`, or may have. Absent: it was not listed since.
    pub(in crate::worker) fn still_listed(&self, key: &LeaseKey, since: Mono) -> Option<bool> {
        (self.listed_at >= since).then(|| {
            let family = self.families.get(key);
            family.is_none_or(|family| family.range.is_some())
        })
    }

    /// Whether some lists in a row lack the shard of a lease, more lists are needed, and now is the time of the next.
    pub(in crate::worker) fn needs_next_list(&self, cx: &Context, key: &LeaseKey) -> bool {
        let lacking = self.lacking.get(key);
        lacking.is_some_and(|lacking| {
            !lacking.forgotten && cx.now() >= lacking.lists.ask_again_at(Needed::to_forget(cx))
        })
    }

    /// Whether a parent without a row still has to be read, as far as is known: the parent is listed, and some worker
    /// will create its row. The parent is gone when lists have lacked it for long enough. A single list may show a
    /// child without its parent.
    pub(in crate::worker) fn is_unread(&self, cx: &mut Context, parent: &ShardId) -> bool {
        if !cx.absence_is_unread() {
            return false;
        }
        let family = self.families.get(parent.as_str());
        let gone = family.is_some_and(|family| family.range.is_none());
        if !gone && cx.now().since(self.listed_at) >= cx.config().scan_interval {
            cx.request(Request::ListShards(StreamIx::ONLY, ListReason::ParentWithoutLease));
        }
        !gone
    }
}

/// Keeps the facts of a list of all shards, requested at `listed_at`, and fills them into rows.
pub(in crate::worker) fn learn_lineage(
    leases: &mut LeaseTable, cx: &Context, shards: &[Shard], listed_at: Mono,
) {
    debug_assert!(listed_at >= leases.lineage.listed_at, "lists are read in the order of time");
    if !cx.needs_listings() && cx.config().policies.finished == crate::policy::Finished::WhenRead {
        return;
    }
    let listed: BTreeSet<&str> = shards.iter().map(|shard| shard.id.as_str()).collect();
    let needed = Needed::to_forget(cx);
    let mut before = std::mem::take(&mut leases.lineage.lacking);
    let leased = leases.iter().flat_map(|(_, lease)| {
        let parents = lease.row().into_iter().flat_map(|row| row.parents.iter());
        std::iter::once(lease.key().clone()).chain(parents.map(ShardId::to_lease))
    });
    let named = shards.iter().flat_map(|shard| shard.parents().map(ShardId::to_lease));
    let keys: BTreeSet<LeaseKey> = leased.chain(named).filter(|key| !listed.contains(key.as_str())).collect();
    let lacks = |key: LeaseKey| {
        let mut lacking = before.remove(&key).unwrap_or_default();
        lacking.forgotten |= lacking.lists.says(cx, listed_at, (), needed);
        (key, lacking)
    };
    let lacking = keys.into_iter().map(lacks).collect();
    leases.lineage.read(shards, lacking, listed_at);
    if leases.lineage.completes_rows {
        leases.cover.0 += 1;
        for lease in leases.slots.iter_mut().flatten() {
            if let (Some(row), Some(family)) = (&mut lease.row, leases.lineage.families.get(&lease.key)) {
                family.fill(row);
            }
        }
    }
}
