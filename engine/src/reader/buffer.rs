//! The batches that wait to be processed, and how far processing has come.

use crate::ids::OpId;
use crate::position::Position;
use std::collections::VecDeque;

/// A batch to be handed over.
///
/// Batches are handed over in the order of their ids: with one handed over, those before it are not asked for again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct BatchRef {
    /// The `GetRecords` that brought it.
    pub batch: OpId,
    /// Leave out everything up to and including this position.
    pub after: Option<Position>,
    /// Its payload in bytes, all of it.
    pub bytes: u64,
    /// Its records, all of them, before de-aggregation.
    pub count: u32,
    /// The position of its last record.
    pub last: Position,
}

/// Where the front batch is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
enum Front {
    /// Never handed over.
    #[default]
    Waiting,
    /// Being processed.
    Out,
    /// Handed over and not wholly processed.
    Back,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Batch {
    given: BatchRef,
    first: Position,
}

/// Batches in the order they were fetched. Its capacity settles at the budget, so that it does not allocate later.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Buffer {
    batches: VecDeque<Batch>,
    bytes: u64,
    front: Front,
    /// Everything up to here has been processed.
    watermark: Option<Position>,
    /// The highest position ever handed over: nothing above can have been processed.
    handed: Option<Position>,
}

impl Buffer {
    pub(super) fn new(processed: Option<Position>) -> Self {
        Self {
            watermark: processed,
            handed: processed,
            ..Self::default()
        }
    }

    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    pub(super) fn len(&self) -> usize {
        self.batches.len()
    }

    pub(super) fn watermark(&self) -> Option<Position> {
        self.watermark
    }

    /// Takes a batch, unless its `after` covers all of it.
    pub(super) fn push(&mut self, first: Position, given: BatchRef) {
        if given.after < Some(given.last) {
            self.bytes = self.bytes.saturating_add(given.bytes);
            self.batches.push_back(Batch { given, first });
        }
    }

    pub(super) fn front(&self) -> Option<BatchRef> {
        match self.front {
            Front::Out => None,
            Front::Waiting | Front::Back => self.batches.front().map(|batch| batch.given),
        }
    }

    pub(super) fn delivered(&mut self) {
        debug_assert!(self.front != Front::Out, "one batch is out at a time");
        debug_assert!(!self.batches.is_empty(), "what is handed over is there");
        if let Some(batch) = self.batches.front() {
            self.front = Front::Out;
            self.handed = self.handed.max(Some(batch.given.last));
        }
    }

    pub(super) fn returned(&mut self, batch: OpId) -> bool {
        if !self.is_out(batch) {
            return false;
        }
        self.front = Front::Back;
        self.drop_covered();
        true
    }

    pub(super) fn processed(&mut self, batch: OpId) -> bool {
        if !self.is_out(batch) {
            return false;
        }
        if let Some(last) = self.pop() {
            debug_assert!(
                Some(last) <= self.handed,
                "what was processed was handed over before"
            );
            self.watermark = self.watermark.max(Some(last));
        }
        true
    }

    pub(super) fn processed_through(&mut self, position: Position) {
        let through = Some(position).min(self.handed);
        self.watermark = self.watermark.max(through);
        debug_assert!(
            self.watermark <= self.handed,
            "nothing was processed that was not handed over"
        );
        if self.front != Front::Waiting
            && let Some(batch) = self.batches.front_mut()
        {
            batch.given.after = batch.given.after.max(through);
            self.drop_covered();
        }
    }

    /// Forgets all batches, and says which record to read again: the last processed one, or the first of those
    /// forgotten; absent if there never was any.
    pub(super) fn rewind(&mut self) -> Option<Position> {
        let first = self.batches.iter().map(|batch| batch.first).min();
        self.batches.clear();
        self.bytes = 0;
        self.front = Front::Waiting;
        self.watermark.or(first)
    }

    fn is_out(&self, batch: OpId) -> bool {
        self.front == Front::Out && self.batches.front().is_some_and(|b| b.given.batch == batch)
    }

    /// A batch that is back and was processed all the same needs no further hand-over. One that is out stays: its
    /// payload is still in memory.
    fn drop_covered(&mut self) {
        if self.front == Front::Back
            && self
                .batches
                .front()
                .is_some_and(|batch| batch.given.after >= Some(batch.given.last))
        {
            self.pop();
        }
    }

    fn pop(&mut self) -> Option<Position> {
        self.front = Front::Waiting;
        let batch = self.batches.pop_front()?;
        // Not a plain subtraction: the sum saturates.
        self.bytes = match self.batches.is_empty() {
            true => 0,
            false => self.bytes.saturating_sub(batch.given.bytes),
        };
        Some(batch.given.last)
    }
}
