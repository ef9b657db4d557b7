//! Shards of which nothing is handed over because the application wants it so, while their leases are kept.
//!
//! Only the hand-over of batches rests. The lease is renewed, a handler that runs finishes, what it processed is written, and the
//! shard is read until the reader's buffer is full. A shard of which all was processed ends, unless its application is to
//! permit the end: it is asked when the pause is over. The pause is part of the ownership: a lease that is given up, lost and taken
//! again is not paused.

use super::held::HeldLease;
use super::stage::Stage;
use super::step;
use crate::ids::LeaseIx;
use crate::notice::Notice;
use crate::worker::context::Context;
use crate::worker::lease_table::LeaseTable;

/// The application wants a shard to be paused, or to go on.
pub(in crate::worker) fn on_pause_wanted(
    cx: &mut Context, leases: &mut LeaseTable, ix: LeaseIx, paused: bool,
) {
    let changed = leases.with_held(ix, |held, _| held.on_pause_wanted(cx, paused));
    if changed == Some(true) {
        step(cx, leases, ix);
    }
}

impl HeldLease {
    /// Whether that changes anything.
    fn on_pause_wanted(&mut self, cx: &mut Context, paused: bool) -> bool {
        if self.is_lost() {
            return false;
        }
        let stopped = !paused && self.ends_stop();
        if self.paused == paused && !stopped {
            return false;
        }
        self.paused = paused;
        let lease = self.key.clone();
        if paused {
            cx.notify(Notice::Paused { lease });
        } else {
            // That nothing moved meanwhile was wanted.
            self.movement.since = cx.now();
            cx.notify(Notice::PauseEnded { lease });
        }
        true
    }

    /// Whether the pause is what the shard waits for. A handler that runs, a belief that has run out and a shard that is not
    /// found are worth more attention.
    pub(super) fn rests(&self) -> bool {
        let runs = matches!(self.stage, Stage::Running(_)) && self.app.is_none();
        self.paused && runs && !self.lane.fenced && !self.missing
    }
}
