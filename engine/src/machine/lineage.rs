//! What rows do not say of their shards, from the last list of them: for table formats whose rows hold no lineage.

use super::Core;
use super::ctx::Request;
use crate::config::InitialPosition;
use crate::ids::{LeaseKey, ShardId};
use crate::mutant::Mutant;
use crate::policy::{Finished, Lineage as Policy};
use crate::row::LeaseRow;
use crate::shard::{HashRange, Shard};
use crate::time::Mono;
use std::collections::{BTreeMap, BTreeSet};

/// The shards as they were listed last.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Lineage {
    /// Of leases and parents without a listed shard too, once that is certain: those have no range.
    families: BTreeMap<LeaseKey, Family>,
    /// Since when lists lack the shard of a lease, or a parent.
    lacking: BTreeMap<LeaseKey, Mono>,
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

impl Core {
    /// Whether rows may lack what only a list of the shards says.
    pub(crate) fn needs_listings(&self) -> bool {
        self.ctx.config.policies.lineage == Policy::Listed
    }

    /// Keeps what a list of all shards, asked for at `listed_at`, says of them, and fills it in.
    pub(crate) fn learn_lineage(&mut self, shards: &[Shard], listed_at: Mono) {
        let fills = self.needs_listings();
        if !fills && self.ctx.config.policies.finished == Finished::WhenRead {
            return;
        }
        // A list may lag behind a lease by a scan interval: what it then still lacks is gone.
        let listed: BTreeSet<&str> = shards.iter().map(|shard| shard.id.as_str()).collect();
        let before = std::mem::take(&mut self.lineage.lacking);
        let leased = self.view.iter().flat_map(|(_, lease)| {
            let parents = lease.row.iter().flat_map(|row| row.parents.iter());
            std::iter::once(lease.key.clone()).chain(parents.map(ShardId::to_lease))
        });
        let named = shards
            .iter()
            .flat_map(|shard| shard.parents().map(ShardId::to_lease));
        let lacking: BTreeMap<LeaseKey, Mono> = leased
            .chain(named)
            .filter(|key| !listed.contains(key.as_str()))
            .map(|key| {
                let since = before.get(&key).copied().unwrap_or(listed_at);
                (key, since)
            })
            .collect();
        let gone = |since: Mono| listed_at.since(since) >= self.ctx.config.scan_interval;
        let mut families: BTreeMap<LeaseKey, Family> = lacking
            .iter()
            .filter(|(_, since)| gone(**since))
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
        self.lineage = Lineage {
            families,
            lacking,
            listed_at,
        };
        if !fills {
            return;
        }
        for ix in self.view.all() {
            let Some(lease) = self.view.get_mut(ix) else {
                continue;
            };
            if let (Some(row), Some(family)) = (&mut lease.row, self.lineage.families.get(&lease.key)) {
                family.fill(row);
            }
        }
    }

    /// Completes a row that was just read: from what was known of it, or from the last list.
    pub(crate) fn complete_lineage(&self, row: &mut LeaseRow) {
        if row.range.is_some() || !self.needs_listings() {
            return;
        }
        if let Some(family) = self.lineage.families.get(&row.key) {
            family.fill(row);
        }
        if let Some(known) = self.view.row(row.key.as_str()).filter(|_| row.range.is_none()) {
            row.range = known.range;
            row.parents.clone_from(&known.parents);
            if row.children.is_empty() {
                row.children.clone_from(&known.children);
            }
        }
    }

    /// Whether a lease's parents are known, or known not to be found out any more.
    pub(crate) fn knows_lineage(&self, row: &LeaseRow) -> bool {
        row.range.is_some()
            || !self.needs_listings()
            || self.lineage.families.contains_key(&row.key)
            || self.ctx.planted.is(Mutant::LineageNotAsked)
    }

    /// Whether the stream still listed the shard of a lease, some time after `since`, or may have. Absent: nobody asked since.
    pub(crate) fn still_listed(&self, key: &LeaseKey, since: Mono) -> Option<bool> {
        (self.lineage.listed_at >= since).then(|| {
            let family = self.lineage.families.get(key);
            family.is_none_or(|family| family.range.is_some())
        })
    }

    /// Whether a row that is not there means that its shard still has to be read.
    pub(crate) fn absence_is_unread(&self) -> bool {
        let policies = self.ctx.config.policies;
        policies.finished != Finished::WhenRead
            && self.ctx.config.initial_position == InitialPosition::TrimHorizon
    }

    /// Whether a parent without a row still has to be read, for all that is known: it is listed, and somebody will create
    /// its row. It is gone when lists have lacked it for long enough; a single one may show a child without its parent.
    pub(crate) fn is_unread(&mut self, parent: &ShardId) -> bool {
        if !self.absence_is_unread() || self.ctx.planted.is(Mutant::UnreadIsRead) {
            return false;
        }
        let family = self.lineage.families.get(parent.as_str());
        let gone = family.is_some_and(|family| family.range.is_none());
        if !gone && self.ctx.now.since(self.lineage.listed_at) >= self.ctx.config.scan_interval {
            self.ctx.request(Request::ListShards("a parent has no lease"));
        }
        !gone
    }
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
