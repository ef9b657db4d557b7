//! The reader's batches: hand-overs and acknowledgements are of the buffer alone.

use super::Reader;
use crate::config::ReaderConfig;
use crate::ids::OpId;
use crate::position::Position;
use crate::reader::buffer::{BatchRef, Buffer};

impl Reader {
    /// The batches that wait, are handed over, or are kept.
    pub(crate) fn batches(&self) -> &Buffer {
        &self.buffer
    }

    pub(crate) fn batches_mut(&mut self) -> &mut Buffer {
        &mut self.buffer
    }

    /// The next batch to hand over; none while one is being processed.
    pub fn front(&self) -> Option<BatchRef> {
        self.buffer.front()
    }

    /// The front batch was handed over.
    pub fn delivered(&mut self) {
        self.buffer.delivered();
    }

    /// The batch handed over was processed completely. Says whether this batch was out.
    pub fn processed(&mut self, batch: OpId) -> bool {
        self.buffer.processed(batch)
    }

    /// The batch handed over is kept by the application: the next batch may be handed over, and this batch is
    /// acknowledged later. Says whether this batch was out.
    pub fn keep(&mut self, batch: OpId) -> bool {
        self.buffer.keep(batch)
    }

    /// A kept batch was processed completely, in whatever order. Says whether such a batch exists.
    pub fn acknowledged(&mut self, batch: OpId) -> bool {
        self.buffer.acknowledged(batch)
    }

    /// The last position of this batch, if the application keeps the batch and has not acknowledged all its records.
    pub fn keeps(&self, batch: OpId) -> Option<Position> {
        self.buffer.keeps(batch)
    }

    /// Whether the record at this position is in the next batch to be handed over, and was not processed.
    pub fn awaits(&self, record: Position) -> bool {
        self.buffer.awaits(record)
    }

    /// The last processed position among the records handed over. Earlier records may be unprocessed.
    pub fn reached(&self) -> Option<Position> {
        self.buffer.reached()
    }

    /// All records up to and including this position were processed. Positions never handed over are not believed.
    /// While batches are kept, the position counts for the batch of this position, and for no earlier batch. A position
    /// tells nothing of an unordered batch. Says whether the call brought progress.
    pub fn processed_through(&mut self, position: Position) -> bool {
        self.buffer.processed_through(position)
    }

    /// The batch handed over was not (wholly) processed: [`front`](Self::front) gives the rest of the batch again. Says
    /// whether this batch was out.
    pub fn returned(&mut self, batch: OpId) -> bool {
        self.buffer.returned(batch)
    }

    /// How many batches the application keeps.
    pub fn kept_batches(&self) -> usize {
        self.buffer.kept_batches()
    }

    /// Whether the application keeps as much as allowed: no more batches are handed over until the application has
    /// acknowledged some records.
    pub fn keeps_enough(&self, cfg: &ReaderConfig) -> bool {
        self.buffer.keeps_enough(cfg)
    }
}
