//! Letting go of a shard: the conditions for its close.

use super::Processing;
use super::application::AppCommand;
use super::stage::Stage;
use crate::output::{ConsumerOp, EndReason};
use crate::time::Mono;
use crate::worker::context::Context;
use crate::worker::lease::lane::Lane;
use crate::worker::lease::lent::Lent;

impl Processing {
    /// When a shard in the course of letting go is looked at again, if nothing else happens.
    pub(super) fn draining_wake_at(&self, lane: &Lane, cx: &Context) -> Mono {
        let now = cx.now();
        let flush = self.stage.reading().and_then(|reading| reading.flushes_until());
        // What is not acknowledged by then is given up; after that, the handler is waited for.
        let due = [flush, Some(lane.hands_over_by(cx))];
        let ahead = due.into_iter().flatten().filter(|due| *due > now);
        ahead.min().unwrap_or(Mono::NEVER)
    }

    pub(super) fn drain_step(&mut self, lent: &mut Lent<'_>, reason: EndReason) {
        let cx = &mut *lent.cx;
        let (lost, table_gone) = (lent.lane.is_lost(), cx.phase().table_gone());
        let overdue = cx.now() >= lent.lane.hands_over_by(cx);
        let blocked = cx.standstill().lets_go();
        if lost || cx.forced() || table_gone || overdue || blocked || self.flushes_too_long(cx.now()) {
            self.app.abort(lent.own, lent.lane, cx);
        }
        if !self.app.is_idle() {
            return;
        }
        if !self.app.has_opened() {
            return self.stage.go(|_| Stage::Closed(reason));
        }
        let hopeless = lost || cx.forced() || table_gone;
        if !hopeless
            && !overdue
            && !blocked
            && let Some(reading) = self.stage.reading_mut()
            && reading.awaits_acknowledgements(lent, &mut self.app, reason)
        {
            return;
        }
        if hopeless || (lent.lane.processed().is_durable() && !lent.lane.is_in_flight()) {
            self.close(lent, reason);
        }
    }

    /// Whether the application still flushes after the time it was given.
    fn flushes_too_long(&self, now: Mono) -> bool {
        let flushing = matches!(self.app.command(), Some(AppCommand::Flush(_)));
        let until = self.stage.reading().and_then(|reading| reading.flushes_until());
        flushing && until.is_some_and(|until| now >= until)
    }

    pub(super) fn close(&mut self, lent: &mut Lent<'_>, reason: EndReason) {
        debug_assert!(self.app.has_opened(), "only what was opened is closed");
        if let Some(reading) = self.stage.reading() {
            reading.tell_unacknowledged(lent.own, lent.cx);
        }
        self.stage.go(|_| Stage::Closing(reason));
        let op = ConsumerOp::Close { lease: lent.own.lease(), token: lent.own.token(), reason };
        self.app.ask(lent.own, lent.cx, op, AppCommand::Close);
    }
}
