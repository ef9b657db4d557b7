//! A producer that packs many small records into one by its own map of the shards, and sends the parts of a wrong shard
//! again.

use super::Services;
use super::stream::Source;
use crate::draws::Roll;
use crate::faults::MadeBy;
use crate::oracles::{Fact, ShardNo, Time};
use crate::streams::StreamNo;
use crate::world::context::Context;
use leasehold_engine::shard::{HashKey, HashRange};
use std::collections::BTreeMap;

/// A producer's knowledge of the shards of each stream.
#[derive(Clone, Debug, Default)]
pub(super) struct Packer {
    maps: BTreeMap<StreamNo, Map>,
}

/// The open shards of a stream at some time.
#[derive(Clone, Debug)]
struct Map {
    taken_at: Time,
    shards: Vec<(HashRange, ShardNo)>,
}

impl Map {
    /// The shard of a hash key by this map.
    fn shard(&self, key: HashKey) -> Option<(HashRange, ShardNo)> {
        self.shards.iter().copied().find(|(range, _)| takes(*range, key))
    }
}

/// The most attempts of a producer for a part.
const TRIES: u32 = 6;

impl Services {
    /// Puts an aggregated record, whose first part has this hash key.
    pub(super) fn put_aggregate(
        &mut self, cx: &mut Context, at_ms: i64, (stream, first): (StreamNo, HashKey), roll: &mut Roll,
    ) {
        self.renew_map(cx, stream, false);
        let faults = &cx.plan().faults.aggregates;
        let (made_by, most) = (faults.made_by, u64::from(faults.parts));
        let map = self.packer.maps.get(&stream);
        let Some((range, _)) = map.and_then(|map| map.shard(first)) else {
            return cx.mark("put-refused");
        };
        let range = match made_by {
            MadeBy::Other => HashRange::ALL,
            MadeBy::Kpl | MadeBy::OldKpl => range,
        };
        let count = roll.between(1, most.max(1));
        let keys = (1..count).map(|_| key_in(range, roll));
        let keys: Vec<HashKey> = std::iter::once(first).chain(keys).collect();
        cx.mark("aggregate");
        self.send(cx, at_ms, stream, keys, TRIES);
    }

    /// Takes the producer's map anew if the map is old or known to be outdated.
    fn renew_map(&mut self, cx: &Context, stream: StreamNo, outdated: bool) {
        let kept_us = cx.plan().faults.aggregates.map_us;
        let known = self.packer.maps.get(&stream);
        if outdated || known.is_none_or(|map| cx.now() >= map.taken_at + kept_us) {
            let range = |(_, start, end, shard)| {
                let (start, end) = (HashKey(start), HashKey(end));
                (HashRange { start, end }, shard)
            };
            let open = self.open_shards().into_iter().filter(|(of, ..)| *of == stream);
            let map = Map { taken_at: cx.now(), shards: open.map(range).collect() };
            self.packer.maps.insert(stream, map);
        }
    }

    /// Sends parts as one record to the shard of the first part, and sends the parts that do not count as stored again.
    fn send(&mut self, cx: &mut Context, at_ms: i64, stream: StreamNo, keys: Vec<HashKey>, tries: u32) {
        let Some(&first) = keys.first().filter(|_| tries > 0) else {
            return;
        };
        // A single part goes as a plain record.
        let aggregated = keys.len() > 1;
        let Some((shard, record)) = self.source.put(at_ms, stream, first.0, keys.len()) else {
            return cx.mark("put-refused");
        };
        let parts = cx.names_mut().parts_mut();
        parts.note(shard, record, aggregated.then_some(&keys[..]));
        let numbers = parts.first(shard, record)..;
        let predicted = self.packer.maps.get(&stream).and_then(|map| map.shard(first));
        let taken = range_of(&self.source, shard);
        let made_by = cx.plan().faults.aggregates.made_by;
        let expected = predicted.is_some_and(|(_, expected)| expected == shard);
        let counts = |key: HashKey| match made_by {
            MadeBy::Other => true,
            MadeBy::Kpl => expected || takes(taken, key),
            MadeBy::OldKpl => expected,
        };
        let (stored, again): (Vec<_>, Vec<_>) = numbers.zip(keys).partition(|(_, key)| counts(*key));
        if !stored.is_empty() {
            let parts = stored.into_iter().map(|(part, _)| part).collect();
            cx.fact(Fact::Stored { shard, parts });
        }
        if again.is_empty() {
            return;
        }
        cx.mark("aggregate-sent-again");
        self.renew_map(cx, stream, true);
        let mut packs: BTreeMap<ShardNo, Vec<HashKey>> = BTreeMap::new();
        for (_, key) in again {
            let map = self.packer.maps.get(&stream);
            if let Some((_, shard)) = map.and_then(|map| map.shard(key)) {
                packs.entry(shard).or_default().push(key);
            }
        }
        for pack in packs.into_values() {
            self.send(cx, at_ms, stream, pack, tries - 1);
        }
    }
}

/// The hash keys of a shard.
fn range_of(source: &Source, shard: ShardNo) -> HashRange {
    source.shard(shard).map_or(HashRange::ALL, |shard| {
        let range = shard.hash_range();
        let (start, end) = (HashKey(range.start), HashKey(range.end));
        HashRange { start, end }
    })
}

/// Whether a range has a key. Written apart from the rule under test.
fn takes(range: HashRange, key: HashKey) -> bool {
    (range.start..=range.end).contains(&key)
}

/// A hash key of a range: any key, or a key at an edge of the range or at an edge of its halves.
fn key_in(range: HashRange, roll: &mut Roll) -> HashKey {
    let (start, end) = (range.start.0, range.end.0);
    let middle = start + (end - start) / 2;
    let any = u128::from(roll.bits()) << 64 | u128::from(roll.bits());
    HashKey(match roll.below(16) {
        0 => start,
        1 => end,
        2 | 3 => middle,
        4 => middle.saturating_add(1).min(end),
        _ => match (end - start).checked_add(1) {
            Some(width) => start + any % width,
            None => any,
        },
    })
}
