//! How far a shard was processed, as its application says.

use super::held::HeldLease;
use crate::position::Position;
use crate::time::Mono;
use crate::worker::context::Context;

impl HeldLease {
    /// The application says that everything up to here was processed.
    pub(super) fn on_processed_through(&mut self, cx: &Context, through: Position) {
        let Some(reading) = self.stage.reading_mut() else {
            return;
        };
        reading.reader.processed_through(through);
        self.take_watermark(cx.now());
    }

    /// More may have been processed without a gap.
    pub(super) fn take_watermark(&mut self, now: Mono) {
        let Some(reading) = self.stage.reading_mut() else {
            return;
        };
        if self.lane.processed_mut().go_to(reading.reader.watermark()) {
            reading.failure.progressed();
            self.watch.moved(now);
        }
        if reading.failure.is_watched() {
            reading.failure.reached(reading.reader.reached());
        }
    }

    /// The application requests a checkpoint of the processed records. Whether a position is still to be written.
    pub(super) fn on_checkpoint_wanted(&mut self) -> bool {
        self.lane.processed_mut().want_durable()
    }
}
