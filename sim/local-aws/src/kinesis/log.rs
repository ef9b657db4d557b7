//! The records of one shard: appended at one end, trimmed at the other, cheap to clone.

use bytes::Bytes;
use std::collections::VecDeque;
use std::sync::Arc;

/// A record in the shard's own form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredRecord {
    /// The blob.
    pub data: Bytes,
    /// The producer's key.
    pub partition_key: Arc<str>,
    /// Where the record fell: the explicit hash key, or the MD5 of the partition key.
    pub hash_key: u128,
    /// `ApproximateArrivalTimestamp`.
    pub arrival_ms: i64,
    /// Whether the stream was encrypted when the record came.
    pub encrypted: bool,
}

impl StoredRecord {
    /// The record's size for every limit.
    pub fn size(&self) -> usize {
        self.data.len() + self.partition_key.len()
    }
}

const CHUNK: u64 = 64;

/// Positions count from 1, without gaps. Chunks are shared between clones; a write copies one chunk at most.
#[derive(Clone, Debug)]
pub(crate) struct Log {
    chunks: VecDeque<Arc<Vec<StoredRecord>>>,
    /// The position of the first record of the first chunk.
    base: u64,
    first: u64,
    next: u64,
}

impl Log {
    pub(crate) fn new() -> Self {
        Log { chunks: VecDeque::new(), base: 1, first: 1, next: 1 }
    }

    /// The oldest position left after trimming; equal to `next` for an empty log.
    pub(crate) fn first(&self) -> u64 {
        self.first
    }

    /// The position of the next record.
    pub(crate) fn next(&self) -> u64 {
        self.next
    }

    pub(crate) fn get(&self, position: u64) -> Option<&StoredRecord> {
        if position < self.first || position >= self.next {
            return None;
        }
        let offset = position - self.base;
        self.chunks.get((offset / CHUNK) as usize)?.get((offset % CHUNK) as usize)
    }

    pub(crate) fn push(&mut self, record: StoredRecord) -> u64 {
        let position = self.next;
        if (position - self.base).is_multiple_of(CHUNK) {
            self.chunks.push_back(Arc::new(Vec::new()));
        }
        if let Some(chunk) = self.chunks.back_mut() {
            Arc::make_mut(chunk).push(record);
        }
        self.next += 1;
        position
    }

    /// Forgets every record below `position`.
    pub(crate) fn trim_to(&mut self, position: u64) {
        self.first = position.clamp(self.first, self.next);
        while self.base + CHUNK <= self.first {
            self.chunks.pop_front();
            self.base += CHUNK;
        }
    }

    /// Forgets records with an arrival before `cutoff_ms`.
    pub(crate) fn trim_before(&mut self, cutoff_ms: i64) {
        if self.get(self.first).is_some_and(|oldest| oldest.arrival_ms < cutoff_ms) {
            self.trim_to(self.at_time(cutoff_ms));
        }
    }

    /// The first position with an arrival at `ms` or later.
    pub(crate) fn at_time(&self, ms: i64) -> u64 {
        let (mut low, mut high) = (self.first, self.next);
        while low < high {
            let middle = low + (high - low) / 2;
            if self.get(middle).is_some_and(|record| record.arrival_ms < ms) {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        low
    }

    pub(crate) fn newest(&self) -> Option<&StoredRecord> {
        self.get(self.next - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn record(arrival_ms: i64) -> StoredRecord {
        StoredRecord {
            data: Bytes::new(),
            partition_key: "k".into(),
            hash_key: 0,
            arrival_ms,
            encrypted: false,
        }
    }

    #[test]
    fn a_clone_does_not_see_later_writes() {
        let mut log = Log::new();
        log.push(record(1));
        let before = log.clone();
        log.push(record(2));
        assert_eq!((before.next(), log.next()), (2, 3));
        assert_eq!(before.get(2), None);
        assert_eq!(log.get(2).unwrap().arrival_ms, 2);
    }

    proptest! {
        #[test]
        fn it_is_a_vector_with_a_moving_start(steps in prop::collection::vec((any::<bool>(), 0i64..5), 0..400)) {
            let (mut log, mut model, mut now) = (Log::new(), Vec::new(), 0);
            let mut first = 0;
            for (write, step) in steps {
                now += step;
                if write {
                    prop_assert_eq!(log.push(record(now)), model.len() as u64 + 1);
                    model.push(now);
                } else {
                    log.trim_before(now - 3);
                    first = model.iter().position(|&at| at >= now - 3).unwrap_or(model.len()).max(first);
                }
                prop_assert_eq!(log.first(), first as u64 + 1);
                for (index, &at) in model.iter().enumerate() {
                    let kept = log.get(index as u64 + 1).map(|record| record.arrival_ms);
                    prop_assert_eq!(kept, (index >= first).then_some(at));
                }
                prop_assert_eq!(log.get(model.len() as u64 + 1), None);
            }
        }
    }
}
