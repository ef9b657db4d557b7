//! What positions tell of the records of an answer, and where they tell nothing.

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

    /// Whether the last record has this position, and no other one has.
    pub(crate) fn is_last(&self, position: Position) -> bool {
        let same = self.records.iter().position(|record| record.position == position);
        same.is_some_and(|index| index + 1 == self.records.len())
    }

    /// Whether a checkpoint at the last record, or after it, tells that all records are processed.
    pub(crate) fn ends_highest(&self) -> bool {
        let last = self.records.last().map(|record| record.position);
        !self.unordered || self.records.iter().all(|record| Some(record.position) <= last)
    }

    /// Whether the engine is to doubt the answer.
    pub(super) fn is_doubtful(&self) -> bool {
        self.foreign || self.unordered
    }
}
