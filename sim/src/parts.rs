//! The parts of shards' records. Oracles and applications count the parts of a shard, from 1 and without gaps. A plain
//! record is one part, and an aggregated record has several. Without aggregated records, parts and records have the
//! same numbers.

use crate::oracles::ShardNo;
use leasehold_engine::aggregate::Misplaced;
use leasehold_engine::position::Position;
use leasehold_engine::shard::{HashKey, HashRange};
use leasehold_local_aws::kinesis::SequenceNumber;
use std::collections::BTreeMap;

/// The parts of all shards. A shard of plain records alone needs no entry.
#[derive(Clone, Debug, Default)]
pub(crate) struct Parts {
    shards: BTreeMap<ShardNo, OfShard>,
}

/// The parts of one shard.
#[derive(Clone, Debug, Default)]
struct OfShard {
    /// The first part of each record, from record 1 on.
    firsts: Vec<u64>,
    /// The hash key of each part, from part 1 on; absent for a plain record.
    keys: Vec<Option<HashKey>>,
}

impl OfShard {
    fn add(&mut self, keys: impl IntoIterator<Item = Option<HashKey>>) {
        self.firsts.push(self.keys.len() as u64 + 1);
        self.keys.extend(keys);
    }

    /// The first part of a record. Records without a note are plain.
    fn first(&self, record: u64) -> u64 {
        let noted = self.firsts.len() as u64;
        match self.firsts.get(record.saturating_sub(1) as usize) {
            Some(first) => *first,
            None => self.keys.len() as u64 + record - noted,
        }
    }

    fn count(&self, record: u64) -> u64 {
        self.first(record + 1) - self.first(record)
    }
}

impl Parts {
    /// Notes a record written to a shard: a plain record, or parts with these hash keys.
    pub(crate) fn note(&mut self, shard: ShardNo, record: u64, keys: Option<&[HashKey]>) {
        let of = self.shards.entry(shard).or_default();
        while (of.firsts.len() as u64) + 1 < record {
            of.add([None]);
        }
        // A stream made anew counts its records from 1 again. No worker may read the new records.
        if of.firsts.len() as u64 + 1 == record {
            match keys {
                Some(keys) => of.add(keys.iter().copied().map(Some)),
                None => of.add([None]),
            }
        }
    }

    /// The first part of a record.
    pub(crate) fn first(&self, shard: ShardNo, record: u64) -> u64 {
        self.shards.get(&shard).map_or(record, |of| of.first(record))
    }

    /// The last part of a record; 0 for record 0, the place before the first record.
    pub(crate) fn last(&self, shard: ShardNo, record: u64) -> u64 {
        self.first(shard, record + 1) - 1
    }

    /// The number of parts of a record.
    pub(crate) fn count(&self, shard: ShardNo, record: u64) -> u64 {
        self.shards.get(&shard).map_or(1, |of| of.count(record))
    }

    /// The part at a position, if the position has a part.
    pub(crate) fn at(&self, shard: ShardNo, position: Position) -> Option<u64> {
        let record = record_of(position)?;
        (position.sub < self.count(shard, record)).then(|| self.first(shard, record) + position.sub)
    }

    /// The record of a part, and the part's place in the record, from 0.
    pub(crate) fn place(&self, shard: ShardNo, part: u64) -> (u64, u64) {
        let Some(of) = self.shards.get(&shard) else {
            return (part, 0);
        };
        if part > of.keys.len() as u64 {
            return (part - of.keys.len() as u64 + of.firsts.len() as u64, 0);
        }
        let record = of.firsts.partition_point(|first| *first <= part) as u64;
        (record, part - of.first(record))
    }

    /// Whether a position is in an aggregated record, before its last part.
    pub(crate) fn is_inside(&self, shard: ShardNo, position: Position) -> bool {
        let record = record_of(position);
        record.is_some_and(|record| position.sub + 1 < self.count(shard, record))
    }

    /// The parts withheld from a handler, from a first part to a last, in a shard with these hash keys. The engine's
    /// shipped rule decides. The first part begins its record, and the last part ends its record.
    pub(crate) fn left_out(
        &self, shard: ShardNo, (first, last): (u64, u64), range: Option<HashRange>, misplaced: Misplaced,
    ) -> Vec<u64> {
        let Some(of) = self.shards.get(&shard) else {
            return Vec::new();
        };
        let key = |part: &u64| of.keys.get(*part as usize - 1).copied().flatten();
        let mut left_out = Vec::new();
        let mut next = first;
        while next <= last {
            let (record, _) = self.place(shard, next);
            let parts: Vec<u64> = (next..next + of.count(record)).collect();
            next += parts.len() as u64;
            if parts.iter().any(|part| key(part).is_none()) {
                // A plain record belongs to the shard that took the record.
                continue;
            }
            let sorted = misplaced.sort(parts.clone(), range, |part| key(part).unwrap_or_default());
            left_out.extend(parts.into_iter().filter(|part| !sorted.ours.contains(part)));
        }
        left_out
    }
}

/// The place of a record in its shard, from 1.
pub(crate) fn record_of(position: Position) -> Option<u64> {
    SequenceNumber::from_words(position.sequence.words()).parts().map(|parts| parts.position)
}

#[cfg(test)]
mod tests {
    use super::*;
    use leasehold_engine::position;
    use leasehold_local_aws::kinesis::SequenceParts;

    fn at(record: u64, sub: u64) -> Position {
        let number = SequenceNumber::new(SequenceParts {
            created_secs: 1_700_000_000,
            position: record,
            time_secs: 1_700_000_000,
            shard: 3,
        });
        Position { sequence: position::SequenceNumber::from_words(number.to_words()), sub }
    }

    /// Records of 1, 3, 1 and 2 parts; the first record has no note.
    fn parts() -> Parts {
        let mut parts = Parts::default();
        parts.note(3, 2, Some(&[HashKey(5), HashKey(10), HashKey(21)]));
        parts.note(3, 3, None);
        parts.note(3, 4, Some(&[HashKey(20), HashKey(11)]));
        parts
    }

    #[test]
    fn parts_are_numbered_without_gaps_through_all_records() {
        let parts = parts();
        let firsts: Vec<u64> = (1..=6).map(|record| parts.first(3, record)).collect();
        assert_eq!(firsts, [1, 2, 5, 6, 8, 9]);
        assert_eq!((parts.last(3, 2), parts.last(3, 0), parts.count(3, 2)), (4, 0, 3));
        for part in 1..=9 {
            let (record, sub) = parts.place(3, part);
            assert_eq!(parts.at(3, at(record, sub)), Some(part));
        }
        assert_eq!(parts.at(3, at(2, 3)), None, "it has three parts");
        assert_eq!(parts.at(3, at(1, 1)), None, "a plain record has one");
        assert!(parts.is_inside(3, at(2, 1)) && !parts.is_inside(3, at(2, 2)));
    }

    #[test]
    fn without_aggregates_parts_are_records() {
        let parts = Parts::default();
        assert_eq!((parts.first(0, 7), parts.last(0, 7), parts.place(0, 7)), (7, 7, (7, 0)));
        assert_eq!(parts.at(0, at(7, 0)), Some(7));
    }

    #[test]
    fn left_out_parts_follow_from_the_range_and_the_choice() {
        let range = Some(HashRange { start: HashKey(10), end: HashKey(20) });
        let left_out = |range, misplaced| parts().left_out(3, (1, 8), range, misplaced);
        assert_eq!(left_out(range, Misplaced::Drop), [2, 4]);
        assert_eq!(left_out(range, Misplaced::DropWhole), [2, 3, 4]);
        assert!(left_out(range, Misplaced::Keep).is_empty());
        assert!(left_out(None, Misplaced::Drop).is_empty());
    }

    #[test]
    fn a_stream_that_is_made_anew_changes_nothing() {
        let mut parts = parts();
        parts.note(3, 1, Some(&[HashKey(1); 4]));
        assert_eq!((parts.count(3, 1), parts.first(3, 5)), (1, 8));
    }
}
