//! The shards, and how they come about.

use super::Rig;
use leasehold_engine::ids::*;
use leasehold_engine::position::SequenceNumber;
use leasehold_engine::shard::{HashKey, HashRange, Shard};

impl Rig {
    pub fn id(n: u32) -> ShardId {
        ShardId::from(format!("shardId-{n:012}"))
    }

    pub(super) fn add_shard(&mut self, n: u32, parent: Option<u32>, adjacent: Option<u32>, range: HashRange) {
        self.sequence += 1;
        let id = Self::id(n);
        let starting = SequenceNumber::from(self.sequence);
        let (parent, adjacent_parent) = (parent.map(Self::id), adjacent.map(Self::id));
        self.shards.insert(
            id.clone(),
            Shard {
                id: id.clone(),
                parent,
                adjacent_parent,
                range,
                starting,
                ending: None,
            },
        );
        self.records.insert(id, Vec::new());
    }

    fn close(&mut self, n: u32) -> HashRange {
        self.sequence += 1;
        let shard = self.shards.get_mut(&Self::id(n)).unwrap();
        shard.ending = Some(SequenceNumber::from(self.sequence));
        shard.range
    }

    pub fn split(&mut self, n: u32) -> (u32, u32) {
        let range = self.close(n);
        let next = self.shards.len() as u32;
        let middle = range.start.0 + (range.end.0 - range.start.0) / 2;
        self.add_shard(
            next,
            Some(n),
            None,
            HashRange {
                start: range.start,
                end: HashKey(middle),
            },
        );
        self.add_shard(
            next + 1,
            Some(n),
            None,
            HashRange {
                start: HashKey(middle + 1),
                end: range.end,
            },
        );
        (next, next + 1)
    }

    pub fn merge(&mut self, a: u32, b: u32) -> u32 {
        let (low, high) = (self.close(a), self.close(b));
        let next = self.shards.len() as u32;
        self.add_shard(
            next,
            Some(a),
            Some(b),
            HashRange {
                start: low.start,
                end: high.end,
            },
        );
        next
    }
}
