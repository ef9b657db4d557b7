//! Changes of the table by hand: items other than leases, attributes, edits, removals, begun hand-overs.

use super::Services;
use crate::faults::{RowEdit, RowEditKind};
use crate::names::shard_of;
use crate::oracles::ShardNo;
use crate::oracles::fact::Verb;
use crate::world::context::Context;
use crate::world::request::Request;
use leasehold_engine::format::Format;
use leasehold_engine::ids::{LeaseKey, ShardId, WorkerId};
use leasehold_engine::row::Change;
use leasehold_engine::table::{AttributeValue, Item};
use std::collections::BTreeSet;
use std::sync::Arc;

/// An unknown attribute that must survive.
const ATTRIBUTE: &str = "operatorNote";

/// The guards of rows in all formats.
const GUARDS: [&str; 5] =
    ["leaseCounter", "LeaseTimeout", "lease_timeout", "leasehold_deadline", "LastUpdate"];

/// The owner's attribute in rows of all formats.
pub(super) const OWNERS: [&str; 4] = ["leaseOwner", "AssignedTo", "assigned_to", "OwnerID"];

/// Attributes that a row has only at times, in all formats.
const AT_TIMES: [(Format, &str); 5] = [
    (Format::Kcl, "checkpointOwner"),
    (Format::Kcl, "childShardIds"),
    (Format::VmwareGoKcl, "ClaimRequest"),
    (Format::KclRb, "leasehold_claim"),
    (Format::Kinsumer, "Finished"),
];

/// The most rows of a world with parents written by hand.
const MOST_EDITS: usize = 3;

/// The stream's attribute in rows of all formats.
const NAMES: [&str; 3] = ["leaseholdStream", "LeaseholdStream", "leasehold_stream"];

impl Services {
    pub(in crate::world) fn edit(&mut self, cx: &mut Context, edit: &RowEdit) {
        let now = cx.now();
        if cx.is_lost_for_good() || !self.table.is_usable(now) {
            return;
        }
        let text = |name: &'static str, value: String| (name.into(), AttributeValue::s(value));
        match edit.kind {
            RowEditKind::Foreign => {
                let key = format!("stranger-{}", edit.pick % 1_000);
                let kind = text("entityType", "WORKER_METRIC_STATS".into());
                self.put_stranger(
                    cx,
                    Item::from([text(self.table.format.key_name(), key.clone()), kind]),
                    key,
                    "foreign-row",
                );
            }
            RowEditKind::Unparsable => {
                // No format can read this item as a lease.
                let key = format!("broken-{}", edit.pick % 1_000);
                let broken = ["leaseCounter", "LeaseTimeout"].map(|name| text(name, "many".into()));
                let key_attribute = text(self.table.format.key_name(), key.clone());
                self.put_stranger(
                    cx,
                    broken.into_iter().chain([key_attribute]).collect(),
                    key,
                    "unparsable-row",
                );
            }
            RowEditKind::Attribute => {
                if let Some(key) = self.pick_lease(cx, edit.pick.into())
                    && let Some(mut item) = self.table.item(&key).map(|item| Item::clone(item))
                {
                    item.insert(ATTRIBUTE.into(), AttributeValue::Bool(true));
                    if self.table.put_by_hand(now, &item) {
                        cx.fault("unknown-attribute", None, None);
                        self.attributes.push(key);
                    }
                }
            }
            RowEditKind::Unguarded => {
                if let Some(key) = self.pick_lease(cx, edit.pick.into()) {
                    let unguard = |item: &mut Item| item.retain(|name, _| !GUARDS.contains(&&**name));
                    self.change_item(cx, &key, "guard-removed", unguard);
                }
            }
            RowEditKind::Unnamed => self.unname(cx, edit.pick),
            RowEditKind::Parents => self.set_parents(cx, edit.pick),
            RowEditKind::OwnerNull => self.disown(cx, edit.pick),
            RowEditKind::Null => self.nullify(cx, edit.pick),
            RowEditKind::Ended => self.spoil(cx, edit.pick, true),
            RowEditKind::Misplaced => self.spoil(cx, edit.pick, false),
            RowEditKind::HandOver => {
                if let Some(shard) = self.pick_lease(cx, edit.pick.into()).as_ref().and_then(shard_of) {
                    cx.request(Request::HandOver { shard, to: edit.pick >> 16 });
                }
            }
            RowEditKind::Delete => {
                if let Some(key) = self.pick_lease(cx, edit.pick.into())
                    && self.table.delete_by_hand(now, &key)
                {
                    cx.fault("delete-row", None, None);
                    self.attributes.retain(|known| known != &key);
                    self.row_written(cx, &key, None, None);
                }
            }
        }
    }

    /// The owner of a row is NULL.
    fn disown(&mut self, cx: &mut Context, pick: u32) {
        let owner = |item: &Item| OWNERS.into_iter().find(|name| item.contains_key(*name));
        if let Some(key) = self.pick_lease(cx, pick.into())
            && let Some(name) = self.table.item(&key).and_then(|item| owner(item))
            && !cx.plan().has_others()
        {
            let disown = |item: &mut Item| drop(item.insert(name.into(), AttributeValue::Null));
            self.change_item(cx, &key, "owner-null", disown);
        }
    }

    /// Sets an attribute that a row lacks to NULL, or to a value of another type where the library of the format reads
    /// each as absent.
    fn nullify(&mut self, cx: &mut Context, pick: u32) {
        let format = cx.plan().format;
        let names: Vec<&str> =
            AT_TIMES.into_iter().filter(|(of, _)| *of == format).map(|(_, name)| name).collect();
        let odd = match (format, pick >> 16 & 3) {
            (Format::Kcl, 0) => AttributeValue::n(7),
            (Format::Kcl, 1) => AttributeValue::L(Vec::new()),
            _ => AttributeValue::Null,
        };
        if let Some(key) = self.pick_lease(cx, pick.into())
            && let Some(item) = self.table.item(&key)
            && let Some(name) = names.get((pick >> 20) as usize % names.len().max(1))
            && !item.contains_key(*name)
            && !cx.plan().has_others()
        {
            let nullify = |item: &mut Item| drop(item.insert((*name).into(), odd));
            self.change_item(cx, &key, "null-attribute", nullify);
        }
    }

    /// Names an open shard as the parent of itself, or of an older open shard. A younger shard with a listed parent is
    /// never forgotten, also if the parent is wrong.
    fn set_parents(&mut self, cx: &mut Context, pick: u32) {
        let is_open = |services: &Self, key: &LeaseKey| {
            let family = shard_of(key).and_then(|shard| services.shards().get(shard as usize));
            family.is_some_and(|family| !family.is_closed())
        };
        let name = match cx.plan().format {
            Format::Kcl => "parentShardId",
            Format::VmwareGoKcl => "ParentShardId",
            _ => return,
        };
        let (Some(key), Some(other)) =
            (self.pick_lease(cx, pick.into()), self.pick_lease(cx, (pick >> 16).into()))
        else {
            return;
        };
        let streams = self.source.streams();
        let stream = |key: &LeaseKey| shard_of(key).map(|shard| streams.of(shard));
        let of_one_stream = stream(&key) == stream(&other) && shard_of(&other) >= shard_of(&key);
        let fits = of_one_stream && is_open(self, &key) && is_open(self, &other) && self.may_begin(&key);
        let fits = fits && shard_of(&key).is_some_and(|shard| self.outweighs_spoiled(shard, MOST_EDITS));
        // A worker of another library may wait for ever.
        if !fits || cx.plan().has_others() {
            return;
        }
        let id = other.as_str().rsplit(':').next().unwrap_or_default().to_owned();
        let value = match cx.plan().format {
            Format::Kcl => AttributeValue::Ss(BTreeSet::from([id])),
            _ => AttributeValue::s(id),
        };
        self.change_item(cx, &key, "parents-by-hand", |item| drop(item.insert(name.into(), value)));
    }

    /// Whether a lease is unfinished, and all parents in its row have ended. Once the stream has forgotten an unfinished
    /// parent, the row alone names that parent.
    fn may_begin(&mut self, key: &LeaseKey) -> bool {
        let Some(row) = self.table.lease(key) else { return false };
        let mut parents = row.parents.iter().map(ShardId::to_lease);
        let ended = |parent: LeaseKey| self.table.lease(&parent).is_none_or(|row| row.checkpoint.is_end());
        !row.checkpoint.is_end() && parents.all(ended)
    }

    /// Removes the stream's name from a row, or makes the name unreadable.
    fn unname(&mut self, cx: &mut Context, pick: u32) {
        let Some(key) = self.pick_lease(cx, pick.into()) else {
            return;
        };
        // Without this name, no worker could know the stream of the rows.
        if shard_of(&key).is_some_and(|shard| self.is_last_to_name(shard)) {
            return;
        }
        let odd = match pick >> 16 & 3 {
            0 => Some(AttributeValue::n(7)),
            1 => Some(AttributeValue::s("orders")),
            _ => None,
        };
        self.change_item(cx, &key, "name-removed", |item| {
            for name in NAMES {
                if item.remove(name).is_some()
                    && let Some(odd) = &odd
                {
                    item.insert(name.into(), odd.clone());
                }
            }
        });
    }

    /// A leader in the way of KCL 3 names the next owner of a lease; the present owner is to hand the lease over.
    /// `living`: the names of our workers.
    pub(in crate::world) fn begin_hand_over(
        &mut self, cx: &mut Context, shard: ShardNo, to: u32, living: &[WorkerId],
    ) {
        let row = self.rows.get(shard as usize).and_then(|lease| lease.row.as_ref());
        let row = row.filter(|row| row.handing_over.is_none() && !row.checkpoint.is_end());
        let Some((key, old, counter, checkpoint)) =
            row.and_then(|row| Some((row.key.clone(), row.owner.clone()?, row.counter, row.checkpoint)))
        else {
            return;
        };
        if cx.is_healed() {
            return;
        }
        let others: Vec<&WorkerId> = living.iter().filter(|name| **name != old).collect();
        // One choice beside the live workers is a worker that died just then.
        let place = to as usize % (others.len() + 1);
        let next = others.get(place).map_or_else(|| "late-worker".into(), |name| WorkerId::clone(name));
        let change = Change::Claim { key: key.clone(), counter, from: old, checkpoint, by: next };
        if self.table.change_by_hand(cx.now(), &change) {
            cx.fault("hand-over-begun", None, None);
            self.row_written(cx, &key, Some(Verb::BeginHandOver), None);
        }
    }

    /// Changes the item of a lease. Returns whether the table took the change.
    pub(super) fn change_item(
        &mut self, cx: &mut Context, key: &LeaseKey, mark: &'static str, change: impl FnOnce(&mut Item),
    ) -> bool {
        let Some(mut item) = self.table.item(key).map(|item| Item::clone(item)) else {
            return false;
        };
        change(&mut item);
        let taken = self.table.put_by_hand(cx.now(), &item);
        if taken {
            cx.fault(mark, None, None);
            self.row_written(cx, key, None, None);
        }
        taken
    }

    fn put_stranger(&mut self, cx: &mut Context, item: Item, key: String, mark: &'static str) {
        if self.table.put_by_hand(cx.now(), &item) {
            cx.fault(mark, None, None);
            let key = LeaseKey::from(key);
            self.strangers.retain(|(known, _)| known != &key);
            self.strangers.push((key, Arc::new(item)));
        }
    }

    pub(super) fn pick_lease(&self, cx: &mut Context, pick: u64) -> Option<LeaseKey> {
        let rows: Vec<ShardNo> = (0..self.rows.len())
            .filter(|&shard| self.rows[shard].row.is_some())
            .map(|shard| shard as ShardNo)
            .collect();
        let shard = *rows.get((pick % rows.len().max(1) as u64) as usize)?;
        Some(cx.names_mut().shard(shard).to_lease())
    }

    /// The first key whose foreign item has changed, or whose unknown attribute is gone.
    pub(in crate::world) fn harmed(&self) -> Option<&LeaseKey> {
        let strangers = self
            .strangers
            .iter()
            .filter(|(key, item)| self.table.item(key) != Some(item))
            .map(|(key, _)| key);
        let bare = self.attributes.iter().filter(|key| {
            // The removal of a row after its end takes the row's attributes, too.
            self.table.item(key).is_some_and(|item| !item.contains_key(ATTRIBUTE))
        });
        strangers.chain(bare).next()
    }
}
