//! The batches kept by the application, the batch being handed over, the waiting batches, and the progress of
//! processing.

use crate::config::ReaderConfig;
use crate::ids::OpId;
use crate::position::Position;
use std::collections::VecDeque;

/// A batch to be handed over.
///
/// Batches are handed over in the order of their ids: after the hand-over of one batch, earlier batches are not asked
/// for again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct BatchRef {
    /// The `GetRecords` that brought the batch.
    pub batch: OpId,
    /// Leave out all records up to and including this position.
    pub after: Option<Position>,
    /// The batch's whole payload, in bytes.
    pub bytes: u64,
    /// The number of all its records, before de-aggregation.
    pub count: u32,
    /// The position of its last record.
    pub last: Position,
    /// Its records are not in the order of their numbers: no position tells how much of the batch was processed. The
    /// batch counts as processed as a whole, or not at all.
    pub unordered: bool,
}

/// Where the front batch is: the first batch not kept by the application.
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
    /// Its `after` is the progress within the batch.
    given: BatchRef,
    first: Position,
}

/// Batches in the order they were fetched. Its capacity settles at the budget, so later pushes do not allocate.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Buffer {
    /// First the kept batches, then the front, then the waiting batches.
    batches: VecDeque<Batch>,
    bytes: u64,
    /// The number of kept batches; the application acknowledges the batches later. An acknowledged batch stays while an
    /// earlier batch is not acknowledged.
    kept: usize,
    kept_bytes: u64,
    front: Front,
    /// Everything up to here has been processed.
    watermark: Option<Position>,
    /// The highest position ever handed over: nothing above can have been processed.
    handed: Option<Position>,
}

impl Buffer {
    pub(super) fn new(processed: Option<Position>) -> Self {
        Self { watermark: processed, handed: processed, ..Self::default() }
    }

    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    pub(crate) fn len(&self) -> usize {
        self.batches.len()
    }

    /// How many are kept, and their bytes.
    pub(super) fn kept(&self) -> (usize, u64) {
        (self.kept, self.kept_bytes)
    }

    /// How many batches the application keeps.
    pub(crate) fn kept_batches(&self) -> usize {
        self.kept
    }

    /// Whether the application keeps as much as allowed: no more batches are handed over until the application has
    /// acknowledged some records.
    pub(crate) fn keeps_enough(&self, cfg: &ReaderConfig) -> bool {
        let (batches, bytes) = self.kept();
        batches > 0 && (batches as u64 >= u64::from(cfg.kept_batches) || bytes >= cfg.kept_bytes)
    }

    /// The batches that the application does not keep: the waiting batches, and the batch being processed by the
    /// handler.
    pub(super) fn waiting(&self) -> impl Iterator<Item = &BatchRef> {
        self.batches.iter().skip(self.kept).map(|batch| &batch.given)
    }

    pub(crate) fn watermark(&self) -> Option<Position> {
        self.watermark
    }

    /// Takes a batch, unless its `after` covers the whole batch.
    pub(super) fn push(&mut self, first: Position, given: BatchRef) {
        debug_assert!(
            !given.unordered || given.after.is_none(),
            "nothing is left out of records that are not in order"
        );
        if given.after < Some(given.last) {
            self.bytes = self.bytes.saturating_add(given.bytes);
            self.batches.push_back(Batch { given, first });
        }
    }

    pub(crate) fn front(&self) -> Option<BatchRef> {
        match self.front {
            Front::Out => None,
            Front::Waiting | Front::Back => self.batches.get(self.kept).map(|batch| batch.given),
        }
    }

    pub(crate) fn delivered(&mut self) {
        debug_assert!(self.front != Front::Out, "one batch is out at a time");
        debug_assert!(self.batches.len() > self.kept, "what is handed over is there");
        if let Some(batch) = self.batches.get(self.kept) {
            self.front = Front::Out;
            self.handed = self.handed.max(Some(batch.given.last));
        }
    }

    pub(crate) fn returned(&mut self, batch: OpId) -> bool {
        if !self.is_out(batch) {
            return false;
        }
        self.front = Front::Back;
        self.drop_covered();
        true
    }

    pub(crate) fn processed(&mut self, batch: OpId) -> bool {
        if !self.is_out(batch) {
            return false;
        }
        self.cover_front();
        self.keep_front();
        true
    }

    /// The batch handed over is kept by the application. Says whether this batch was out.
    pub(crate) fn keep(&mut self, batch: OpId) -> bool {
        if !self.is_out(batch) {
            return false;
        }
        self.keep_front();
        true
    }

    /// A batch handed over has been processed completely: a kept batch, or a batch whose hand-over is not answered yet.
    /// Says whether such a batch exists.
    pub(crate) fn acknowledged(&mut self, batch: OpId) -> bool {
        let Some(index) = self.handed_over().position(|known| known.given.batch == batch) else {
            // All of the batch was acknowledged already, or a rewind forgot the batch.
            return false;
        };
        if let Some(known) = self.batches.get_mut(index) {
            known.given.after = known.given.after.max(Some(known.given.last));
        }
        self.advance();
        self.drop_covered();
        true
    }

    /// The last position of a batch that the application keeps and has not acknowledged all of.
    pub(crate) fn keeps(&self, batch: OpId) -> Option<Position> {
        let mut kept = self.batches.iter().take(self.kept);
        let found = kept.find(|known| known.given.batch == batch && !known.is_covered());
        found.map(|known| known.given.last)
    }

    /// Whether the record at this position is in the next batch to be handed over, and was not processed.
    pub(crate) fn awaits(&self, record: Position) -> bool {
        let awaits = |front: BatchRef| !front.unordered && front.after < Some(record) && record <= front.last;
        self.front().is_some_and(awaits) && self.watermark < Some(record)
    }

    /// The last processed position among the records handed over. Earlier records may be unprocessed.
    pub(crate) fn reached(&self) -> Option<Position> {
        let of_batches = self.handed_over().filter_map(|batch| batch.given.after).max();
        of_batches.max(self.watermark)
    }

    pub(crate) fn processed_through(&mut self, position: Position) -> bool {
        if self.front != Front::Waiting
            && self.batches.get(self.kept).is_some_and(|front| front.given.unordered)
        {
            return false;
        }
        let through = Some(position).min(self.handed);
        let mut more = false;
        if self.kept == 0 {
            more = through > self.watermark;
            self.watermark = self.watermark.max(through);
            if self.front != Front::Waiting
                && let Some(batch) = self.batches.front_mut()
            {
                batch.given.after = batch.given.after.max(through);
            }
        } else {
            // Earlier records in kept batches are acknowledged separately.
            let has = |batch: &Batch| Some(batch.first) <= through && !batch.given.unordered;
            let of = self.handed_over().rposition(has);
            if let Some(batch) = of.and_then(|index| self.batches.get_mut(index)) {
                let through = through.min(Some(batch.given.last));
                more = through > batch.given.after;
                batch.given.after = batch.given.after.max(through);
            }
            self.advance();
        }
        debug_assert!(self.watermark <= self.handed, "nothing was processed that was not handed over");
        self.drop_covered();
        more
    }

    /// Forgets all batches, and returns the record to read again: the last processed record, or the first forgotten
    /// record; absent if no batch ever came, or if the numbers of the records do not tell the first record.
    pub(super) fn rewind(&mut self) -> Option<Position> {
        let unordered = self.batches.iter().any(|batch| batch.given.unordered);
        let first = self.batches.iter().map(|batch| batch.first).min();
        let first = first.filter(|_| !unordered);
        self.batches.clear();
        self.bytes = 0;
        if self.kept > 0 {
            // A kept batch is a gap from now on: a later position handed over tells no progress within the gap.
            self.handed = self.watermark;
        }
        (self.kept, self.kept_bytes) = (0, 0);
        self.front = Front::Waiting;
        self.watermark.or(first)
    }

    fn is_out(&self, batch: OpId) -> bool {
        self.front == Front::Out && self.batches.get(self.kept).is_some_and(|b| b.given.batch == batch)
    }

    /// The kept batches, and the front if already handed over.
    fn handed_over(&self) -> std::iter::Take<std::collections::vec_deque::Iter<'_, Batch>> {
        let front = usize::from(self.front != Front::Waiting);
        self.batches.iter().take(self.kept + front)
    }

    /// All of the front batch has been processed.
    fn cover_front(&mut self) {
        if let Some(batch) = self.batches.get_mut(self.kept) {
            batch.given.after = Some(batch.given.last);
        }
    }

    /// The front batch joins the kept batches, until all earlier batches have been processed.
    fn keep_front(&mut self) {
        self.front = Front::Waiting;
        if let Some(batch) = self.batches.get(self.kept) {
            self.kept += 1;
            self.kept_bytes = self.kept_bytes.saturating_add(batch.given.bytes);
        }
        self.advance();
    }

    /// A batch that is back and was processed all the same needs no further hand-over. One that is out stays: its
    /// payload is still in memory.
    fn drop_covered(&mut self) {
        if self.front == Front::Back && self.batches.get(self.kept).is_some_and(Batch::is_covered) {
            self.keep_front();
        }
    }

    /// Drops the unbroken run of kept and processed batches. The watermark follows the run into the first batch with
    /// unprocessed records, and skips no gap.
    fn advance(&mut self) {
        while self.kept > 0 && self.batches.front().is_some_and(Batch::is_covered) {
            self.pop();
        }
        let first = self.handed_over().next();
        if let Some(begun) = first.filter(|batch| batch.given.after >= Some(batch.first)) {
            self.watermark = self.watermark.max(begun.given.after);
        }
    }

    fn pop(&mut self) {
        let Some(batch) = self.batches.pop_front() else {
            debug_assert!(false, "a covered batch is at the front");
            return;
        };
        debug_assert!(Some(batch.given.last) <= self.handed, "what was processed was handed over before");
        self.watermark = self.watermark.max(Some(batch.given.last));
        self.kept -= 1;
        // Not plain subtractions: the sums saturate.
        self.bytes = match self.batches.is_empty() {
            true => 0,
            false => self.bytes.saturating_sub(batch.given.bytes),
        };
        self.kept_bytes = match self.kept {
            0 => 0,
            _ => self.kept_bytes.saturating_sub(batch.given.bytes),
        };
    }
}

impl Batch {
    /// Whether all of it has been processed.
    fn is_covered(&self) -> bool {
        self.given.after >= Some(self.given.last)
    }
}
