//! The meaning of positions for the records of an answer, and the cases without a meaning.

use super::Fetched;
use leasehold_engine::position::Position;

impl Fetched {
    /// The index of the first record after `position`.
    pub(crate) fn first_after(&self, position: Option<Position>) -> usize {
        match position {
            None => 0,
            Some(_) if self.unordered => 0,
            Some(done) => self.records.partition_point(|record| record.position <= done),
        }
    }

    /// Whether the last record, and no other record, has this position.
    pub(crate) fn is_last(&self, position: Position) -> bool {
        let same = self.records.iter().position(|record| record.position == position);
        same.is_some_and(|index| index + 1 == self.records.len())
    }

    /// Whether a checkpoint at or after the last record means that all records are processed.
    pub(crate) fn ends_highest(&self) -> bool {
        let last = self.records.last().map(|record| record.position);
        !self.unordered || self.records.iter().all(|record| Some(record.position) <= last)
    }

    /// Whether the engine is to doubt the answer.
    pub(super) fn is_doubtful(&self) -> bool {
        self.foreign || self.unordered
    }
}
