//! Letting go of a lease: why, the conditions for the close of the shard, and the remaining work after the release.

use super::application::AppCommand;
use super::held::HeldLease;
use super::stage::Stage;
use crate::notice::Notice;
use crate::output::{ConsumerOp, EndReason};
use crate::time::Mono;
use crate::worker::context::{Context, Request};
use crate::worker::lease_table::LeaseTable;

impl HeldLease {
    /// Why this lease should be let go of, if at all.
    pub(super) fn exit(&self, cx: &Context, leases: &LeaseTable) -> Option<EndReason> {
        if self.lane.is_lost() {
            return Some(EndReason::LeaseLost);
        }
        if let Some(reason) = cx.leaves(self.own.stream()) {
            return Some(reason);
        }
        let yields = self.lane.next_owner().is_some() || !leases.keeps(self.own.key());
        yields.then_some(EndReason::HandedOver)
    }

    /// When a shard in the course of letting go is looked at again, if nothing else happens.
    pub(super) fn draining_wake_at(&self, cx: &Context) -> Mono {
        let now = cx.now();
        let flush = self.stage.reading().and_then(|reading| reading.flush.until());
        // What is not acknowledged by then is given up; after that, the handler is waited for.
        let due = [flush, Some(self.lane.hands_over_by(cx))];
        let ahead = due.into_iter().flatten().filter(|due| *due > now);
        ahead.min().unwrap_or(Mono::NEVER)
    }

    pub(super) fn drain_step(&mut self, cx: &mut Context, reason: EndReason) {
        let (lost, table_gone) = (self.lane.is_lost(), cx.phase().table_gone());
        let overdue = cx.now() >= self.lane.hands_over_by(cx);
        let blocked = cx.standstill().lets_go();
        if lost || cx.forced() || table_gone || overdue || blocked || self.flushes_too_long(cx.now()) {
            self.app.abort(&self.own, &self.lane, cx);
        }
        if !self.app.is_idle() {
            return;
        }
        if !self.app.has_opened() {
            return self.stage.go(|_| Stage::Closed(reason));
        }
        let hopeless = lost || cx.forced() || table_gone;
        if !hopeless && !overdue && !blocked && self.awaits_acknowledgements(cx, reason) {
            return;
        }
        if hopeless || (self.lane.processed().is_durable() && !self.lane.is_in_flight()) {
            self.close(cx, reason);
        }
    }

    pub(super) fn close(&mut self, cx: &mut Context, reason: EndReason) {
        debug_assert!(self.app.has_opened(), "only what was opened is closed");
        self.tell_unacknowledged(cx);
        self.stage.go(|_| Stage::Closing(reason));
        let op = ConsumerOp::Close { lease: self.own.lease(), token: self.own.token(), reason };
        self.app.ask(&self.own, cx, op, AppCommand::Close);
    }

    /// We own the lease no more, by our own will.
    pub(super) fn on_given_up(&mut self, cx: &mut Context, leases: &mut LeaseTable) {
        debug_assert!(
            matches!(self.stage, Stage::Closed(_) | Stage::Closing(_) | Stage::Draining { .. }),
            "a lease is given up when its shard is let go of"
        );
        self.lane.end(cx.now());
        cx.request(Request::DropRowWrites(self.own.ix()));
        leases.given_up(self.own.ix(), self.lane.counter(), self.lane.next_owner().cloned(), cx.now());
        cx.request(Request::GivenUp(self.own.ix()));
        cx.phase_mut().count_released();
        let lease = self.own.lease();
        cx.notify(Notice::Released { lease });
    }
}
