//! How far a shard was processed, and how much of the progress is durable.

use crate::position::{Checkpoint, Position};

/// The progress of a shard under this ownership, as far as its lane knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(in crate::worker::lease) struct Processed {
    /// Everything up to here was processed.
    pub(super) through: Option<Position>,
    /// The checkpoint known to be durable.
    pub(super) durable: Checkpoint,
    /// The application requests a checkpoint.
    pub(super) wanted: bool,
}

impl Processed {
    pub(super) fn new(durable: Checkpoint) -> Self {
        Self { through: None, durable, wanted: false }
    }

    /// Everything up to here was processed.
    pub(in crate::worker::lease) fn through(&self) -> Option<Position> {
        self.through
    }

    /// The checkpoint known to be durable.
    pub(in crate::worker::lease) fn durable(&self) -> Checkpoint {
        self.durable
    }

    /// Whether everything the application processed is durable.
    pub(in crate::worker::lease) fn is_durable(&self) -> bool {
        self.through.is_none_or(|position| self.durable.covers(position))
    }

    /// The watermark of the reader is here. Whether more was processed than before.
    pub(in crate::worker::lease) fn go_to(&mut self, watermark: Option<Position>) -> bool {
        let before = self.through;
        self.through = watermark.or(before);
        debug_assert!(self.through >= before, "the watermark does not go back");
        self.through > before
    }

    /// The application requests a checkpoint of the processed records. Whether a position is still to be written.
    pub(in crate::worker::lease) fn want_durable(&mut self) -> bool {
        let wanted = !self.is_durable();
        self.wanted |= wanted;
        wanted
    }

    /// The end of the shard is durable.
    pub(in crate::worker::lease) fn end(&mut self) {
        self.durable = Checkpoint::ShardEnd;
    }

    /// A checkpoint is durable.
    pub(super) fn saved(&mut self, position: Position) {
        self.durable = self.durable.max(Checkpoint::At(position));
        if self.is_durable() {
            self.wanted = false;
        }
    }
}
