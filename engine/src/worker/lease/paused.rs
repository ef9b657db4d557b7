//! Shards without hand-over of records, because the application paused them, while their leases are kept.
//!
//! Only the hand-over of batches rests. The lease is renewed, a running handler finishes, its processed records are
//! written, and the shard is read until the reader's buffer is full. A fully processed shard ends, unless its
//! application must permit the end: then the application is asked after the pause. The pause is part of the ownership:
//! a lease that is given up, lost and taken again is not paused.

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
    /// Whether the call changes the pause.
    fn on_pause_wanted(&mut self, cx: &mut Context, paused: bool) -> bool {
        if self.is_lost() {
            return false;
        }
        let stopped = !paused && self.ends_stop();
        if self.paused == paused && !stopped {
            return false;
        }
        self.paused = paused;
        let lease = self.own.lease();
        if paused {
            cx.notify(Notice::Paused { lease });
        } else {
            // The application wanted the standstill of the pause.
            self.watch.count_from(cx.now());
            cx.notify(Notice::PauseEnded { lease });
        }
        true
    }

    /// Whether the shard waits for the end of the pause. A running handler, the end of the belief and a shard not found
    /// are worth more attention.
    pub(super) fn rests(&self) -> bool {
        let runs = matches!(self.stage, Stage::Running(_)) && self.app.is_idle();
        self.paused && runs && !self.lane.is_fenced() && !self.missing
    }
}
