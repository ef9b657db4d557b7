//! The answers of the service.

use super::{OpId, Payload, World};
use crate::input::Fetched;
use crate::shard::{ChildShard, HashRange};

impl World {
    pub(super) fn fetch(&mut self, op: OpId, from: usize, limit: u32) -> Fetched {
        let ready = self.index(|part| part.arrival > self.now);
        // Kinesis may answer with fewer records than there are, even with none.
        let wanted = self.below(u64::from(limit) + 1);
        let (mut to, mut count) = (from, 0);
        while u64::from(count) < wanted && to < ready {
            let sequence = self.parts[to].at.sequence;
            while to < ready && self.parts[to].at.sequence == sequence {
                to += 1;
            }
            count += 1;
        }
        let bytes = self.parts[from..to].iter().map(|part| part.bytes).sum();
        let lies = !self.lied && self.fails();
        self.lied |= lies;
        let ended = lies || to == self.parts.len() && self.now >= self.close;
        self.iterators.insert(op, (to, self.now));
        if count > 0 && !self.void {
            self.fetched = Some(to);
        }
        if to > self.floor && count > 0 {
            self.held.insert(op, Payload { from, to, bytes });
        }
        Fetched {
            count,
            bytes,
            first: (count > 0).then(|| self.parts[from].at),
            last: (count > 0).then(|| self.parts[to - 1].at),
            behind_ms: if to < ready { 5 } else { 0 },
            end: ended.then(|| self.children()),
            range_unproven: false,
            unordered: false,
        }
    }

    /// The children that an answer names: none or one of two, now and then.
    fn children(&mut self) -> Vec<ChildShard> {
        let child =
            |id: &str| ChildShard { id: id.into(), parents: vec!["shard".into()], range: HashRange::ALL };
        match self.below(5) {
            0 => Vec::new(),
            1 => vec![child("one")],
            _ => vec![child("one"), child("two")],
        }
    }
}
