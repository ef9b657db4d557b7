//! Changes of the stream by producers, operators and the service itself: records are put, shards change, old records
//! are forgotten.

use super::Services;
use super::table::wall_ms;
use crate::faults::{MOST_SHARDS, ReshardKind, Trim};
use crate::oracles::{Fact, ShardNo};
use crate::streams::StreamNo;
use crate::world::context::Context;
use crate::world::heap::What;
use leasehold_engine::shard::HashKey;

const SPLIT: u8 = 0;
const SPLIT_TWICE: u8 = 1;
const MERGE: u8 = 2;
const GROW: u8 = 3;
const SHRINK: u8 = 4;

/// The number of a kind of reshard in events.
pub(in crate::world) fn reshard_kind(kind: ReshardKind) -> u8 {
    match kind {
        ReshardKind::Split => SPLIT,
        ReshardKind::SplitTwice => SPLIT_TWICE,
        ReshardKind::Merge => MERGE,
        ReshardKind::Mass { grow: true } => GROW,
        ReshardKind::Mass { grow: false } => SHRINK,
    }
}

impl Services {
    pub(in crate::world) fn produce(&mut self, cx: &mut Context) {
        if cx.is_healed() {
            return;
        }
        self.observe_stream(cx);
        match cx.plan().faults.start.is_silent(cx.now()) {
            true => cx.mark("silence"),
            false => {
                for _ in 0..cx.plan().load.burst {
                    self.put_at(cx, wall_ms(cx.now()));
                }
            }
        }
        cx.push(cx.now() + cx.plan().load.every_us, What::Produce);
    }

    pub(in crate::world) fn put_at(&mut self, cx: &mut Context, at_ms: i64) {
        self.puts += 1;
        let mut roll = cx.draws().roll("put", self.puts);
        let hash_key = u128::from(roll.bits()) << 64 | u128::from(roll.bits());
        let streams = self.source.streams();
        let stream = match streams.are_several() {
            true => roll.below(streams.all().len() as u64) as StreamNo,
            false => 0,
        };
        // Records in a remade stream are not to be read.
        let aggregates =
            Some(&cx.plan().faults.aggregates).filter(|known| known.is_on() && !cx.is_lost_for_good());
        if aggregates.is_some_and(|known| roll.happens(known.aggregated)) {
            return self.put_aggregate(cx, at_ms, (stream, HashKey(hash_key)), &mut roll);
        }
        let noted = aggregates.is_some();
        match self.source.put(at_ms, stream, hash_key, 1) {
            Some((shard, record)) if noted => cx.names_mut().parts_mut().note(shard, record, None),
            Some(_) => {}
            None => cx.mark("put-refused"),
        }
    }

    /// Changes the shards, or tries again when the stream is not busy any more.
    pub(in crate::world) fn reshard(&mut self, cx: &mut Context, kind: u8, pick: u64, tries: u8) {
        if cx.is_healed() || cx.is_lost_for_good() {
            return;
        }
        let now_ms = wall_ms(cx.now());
        self.source.advance(now_ms);
        self.observe_stream(cx);
        let open = self.open_shards();
        let index = (pick % open.len().max(1) as u64) as usize;
        let has_room = |(of, ..): &&(StreamNo, _, _, _)| self.has_room(*of, open.len());
        let Some(&(stream, start, end, shard)) = open.get(index).filter(has_room) else {
            return;
        };
        let count = open.iter().filter(|(of, ..)| *of == stream).count() as u32;
        let (mark, result) = match kind {
            SPLIT | SPLIT_TWICE if count < 400 => {
                let middle = start + (end - start) / 2 + 1;
                ("split", self.source.split(now_ms, shard, middle))
            }
            MERGE => {
                let right = open.get(index + 1).filter(|(of, ..)| *of == stream);
                let Some(&(_, _, _, right)) = right else {
                    return;
                };
                ("merge", self.source.merge(now_ms, [shard, right]))
            }
            GROW if count < 200 => {
                ("mass-reshard", self.source.resize(now_ms, stream, count * 2).map(|_| ()))
            }
            SHRINK if count > 1 => {
                ("mass-reshard", self.source.resize(now_ms, stream, count.div_ceil(2)).map(|_| ()))
            }
            _ => return,
        };
        let streams = self.source.streams();
        let wait = cx.plan().faults.stream.update_ms as u64 * 1_000 + 10_000;
        match result {
            Ok(()) => {
                cx.fault(mark, None, None);
                cx.line(|| format!("the operator begins a {mark} at {}", streams.name_of(shard)));
                if kind == SPLIT_TWICE {
                    // Splits a child, as soon as the children exist.
                    cx.mark("split-at-once");
                    cx.push(cx.now() + wait, What::Reshard { kind: SPLIT, pick: index as u64, tries: 0 });
                }
                self.plan_stream_change(cx);
                self.observe_stream(cx);
            }
            Err(error) => {
                cx.mark("stream-in-use");
                if error.code != "InvalidArgumentException" && tries < 20 {
                    cx.push(cx.now() + wait, What::Reshard { kind, pick, tries: tries + 1 });
                }
            }
        }
    }

    /// Whether the stream has room for another reshard. A doubling of shards with uneven ranges makes even ranges by a
    /// split at each new border and by merges: fewer than six new shards for each open shard.
    fn has_room(&self, stream: StreamNo, open: usize) -> bool {
        let ever = self.source.truth(stream).map_or(0, |truth| truth.shards().len());
        ever + 6 * open <= MOST_SHARDS as usize
    }

    /// The open shards: by stream, and within a stream by their ranges.
    pub(super) fn open_shards(&self) -> Vec<(StreamNo, u128, u128, ShardNo)> {
        let mut open = Vec::new();
        let streams = self.source.streams();
        for stream in streams.all() {
            let shards = self.source.truth(stream).into_iter().flat_map(|truth| truth.shards());
            open.extend(shards.filter(|shard| shard.is_open()).map(|shard| {
                let (range, number) = (shard.hash_range(), streams.shard(stream, shard.index()));
                (stream, range.start, range.end, number)
            }));
        }
        open.sort_unstable();
        open
    }

    /// The service forgets old records.
    pub(in crate::world) fn trim(&mut self, cx: &mut Context, trim: &Trim) {
        self.observe_stream(cx);
        if cx.is_lost_for_good() {
            return;
        }
        // Shards that a listing may still show open, or lack, are younger.
        let keep_us = trim.keep.max(cx.plan().config.scan_interval().0);
        let before_ms = wall_ms(cx.now()) - (keep_us / 1_000) as i64;
        self.source.trim(before_ms);
        cx.fault("trim", None, None);
        cx.line(|| format!("what is older than {} ms is forgotten", keep_us / 1_000));
        let there = |shard: &ShardNo| self.shards[*shard as usize].exists();
        for shard in (0..self.shards.len() as ShardNo).filter(there) {
            let before = cx.names().parts().first(shard, self.source.first(shard));
            if before > cx.oracles().processed(shard) + 1 {
                cx.mark("trim-unread");
            }
            if before > 1 {
                cx.fact(Fact::Trimmed { shard, before });
            }
            if self.source.is_forgotten(shard) {
                cx.fact(Fact::Forgotten { shard });
            }
        }
    }
}
