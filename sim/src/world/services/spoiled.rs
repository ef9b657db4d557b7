//! Rows that a person or a script puts at no place in their shards: at the end of an open shard, or at a number of no
//! shard. No worker reads such a shard; workers report the shard until an operator puts the row at a place.

use super::Services;
use super::by_hand::OWNERS;
use crate::names::shard_of;
use crate::oracles::ShardNo;
use crate::world::context::Context;
use leasehold_engine::format::Format;
use leasehold_engine::ids::LeaseKey;
use leasehold_engine::position::Checkpoint;
use leasehold_engine::row::Change;
use leasehold_engine::table::AttributeValue;
use std::borrow::Cow;

/// Every shard begins with a greater number.
const NOWHERE: &str = "1000";

impl Services {
    /// Makes a row say that its open shard was processed to its end, or has a number of no shard; and that its lease is
    /// free.
    pub(super) fn spoil(&mut self, cx: &mut Context, pick: u32, end: bool) {
        let Some(key) = self.pick_lease(cx, pick.into()) else {
            return;
        };
        let family = shard_of(&key).and_then(|shard| self.shards().get(shard as usize));
        let open = family.is_some_and(|family| !family.is_closed());
        let unfinished = self.table.lease(&key).is_some_and(|row| !row.checkpoint.is_end());
        let outweighs = shard_of(&key).is_some_and(|shard| self.outweighs_spoiled(shard, 1));
        if !unfinished || !open || !outweighs {
            return;
        }
        let (name, value) = match (cx.plan().format, end) {
            (Format::Kcl | Format::KclRb, _) => ("checkpoint", end.then_some("SHARD_END")),
            (Format::VmwareGoKcl, _) => ("Checkpoint", end.then_some("SHARD_END")),
            (Format::Kinsumer, true) => ("Finished", None),
            (Format::Kinsumer, false) => ("SequenceNumber", None),
            _ => return,
        };
        let value = match (name, value) {
            ("Finished", _) => AttributeValue::n(1),
            (_, value) => AttributeValue::s(value.unwrap_or(NOWHERE)),
        };
        let mark = if end { "ended-by-hand" } else { "misplaced-by-hand" };
        let spoiled = self.change_item(cx, &key, mark, |item| {
            item.retain(|name, _| !OWNERS.contains(&&**name));
            item.insert(Cow::Borrowed(name), value);
        });
        if spoiled {
            self.spoiled.push(key);
        }
    }

    /// Whether the rows of the shard's stream certainly fit the stream, even with so `many` more spoiled rows: more of
    /// its rows are at places in their shards. Workers judge the rows of each stream apart.
    pub(super) fn outweighs_spoiled(&self, shard: ShardNo, many: usize) -> bool {
        let streams = self.source.streams();
        let stream = streams.of(shard);
        let is_of_stream = |key: &LeaseKey| shard_of(key).is_some_and(|known| streams.of(known) == stream);
        let rows = self.rows().iter().filter_map(|lease| lease.row());
        let placed = rows.filter(|row| {
            let spoiled = self.spoiled.contains(&row.key);
            !spoiled && is_of_stream(&row.key) && matches!(row.checkpoint, Checkpoint::At(_))
        });
        let spoiled = self.spoiled.iter().filter(|key| is_of_stream(key));
        placed.count() > spoiled.count() + 1 + many
    }

    /// An operator puts a spoiled row at the oldest record.
    pub(in crate::world) fn mend_spoiled(&mut self, cx: &mut Context, shard: ShardNo) {
        let key = cx.names_mut().shard(shard).to_lease();
        let Some(at) = self.spoiled.iter().position(|known| *known == key) else {
            return;
        };
        self.spoiled.swap_remove(at);
        let Some(row) = self.table.lease(&key) else { return };
        let change = Change::Reset {
            key: key.clone(),
            counter: row.counter,
            next: row.counter.saturating_add(1),
            owner: row.owner,
            handing_over: row.handing_over,
            checkpoint: row.checkpoint,
            to: Checkpoint::TrimHorizon,
        };
        if self.table.change_by_hand(cx.now(), &change) {
            self.row_written(cx, &key, None, None);
        }
    }
}
