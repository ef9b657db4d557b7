//! The steps after a failed attempt: another attempt, a stopped shard, or a record that is set aside.

use super::application::AppCommand;
use super::failure::{Poison, Verdict};
use super::held::HeldLease;
use super::stage::Stage;
use crate::ids::OpId;
use crate::input::{Cause, Outcome, Refusal, Reply, Why};
use crate::notice::Notice;
use crate::output::ConsumerOp;
use crate::position::Position;
use crate::worker::context::Context;
use crate::worker::describe;
use crate::worker::lease_table::LeaseTable;

/// The answer of an adapter that keeps a single record.
pub(super) fn kept_alone() -> Outcome {
    Outcome::Refused(Refusal {
        why: Why::HandlerFailed,
        current: None,
        detail: "expected that a record which is handed over alone is processed before the answer, found that it is kept".into(),
    })
}

impl HeldLease {
    /// An attempt at the front batch failed. `at`: the record, if it was handed over alone. `last`: the last position
    /// of the failed hand-over.
    pub(super) fn attempt_failed(
        &mut self, cx: &mut Context, leases: &LeaseTable, at: Option<Position>, last: Option<Position>,
        detail: String,
    ) {
        let goes_on = matches!(self.stage, Stage::Running(_)) && self.exit(cx, leases).is_none();
        let Some(reading) = self.stage.reading_mut() else {
            return cx.broken("a handler fails at a shard that is read, or let go of");
        };
        // A record acknowledged by the handler before its failure is not the failing record.
        let at = at.filter(|at| reading.reader.awaits(*at));
        let attempt = reading.failure.attempts();
        if !goes_on {
            return self.retry_later(cx, leases, attempt, detail);
        }
        match reading.failure.fail(cx.config(), at, last, &detail) {
            Verdict::Again => self.retry_later(cx, leases, attempt, detail),
            // The outcome of the setting aside is reported.
            Verdict::SetAside => {}
            Verdict::Stop(Poison { at, attempts }) => {
                cx.notify(Notice::ShardStopped { lease: self.own.lease(), position: at, attempts, detail })
            }
        }
    }

    /// Has the application set the record aside.
    pub(super) fn set_aside(&mut self, cx: &mut Context, poison: Poison, detail: String) {
        let Stage::Running(reading) = &mut self.stage else {
            return cx.broken("records are set aside while a shard runs");
        };
        let Some(front) = reading.reader.front() else {
            return;
        };
        if !reading.reader.awaits(poison.at) {
            reading.failure.read_again();
            return cx.broken("a record that is set aside is the first one that is left");
        }
        debug_assert!(self.lane.believes(cx.now()), "nothing is set aside without the belief");
        let op = ConsumerOp::SetAside {
            lease: self.own.lease(),
            token: self.own.token(),
            batch: front.batch,
            record: poison.at,
            attempts: poison.attempts,
            detail,
            valid_until: self.lane.valid_until(),
        };
        let command = AppCommand::SetAside { batch: front.batch, poison };
        reading.reader.delivered();
        self.app.ask(&self.own, cx, op, command);
    }

    /// The application has set a record aside, or could not.
    pub(super) fn on_set_aside(
        &mut self, cx: &mut Context, leases: &LeaseTable, batch: OpId, poison: Poison, outcome: Outcome,
    ) {
        let Some(reading) = self.stage.reading_mut() else {
            return cx.broken("a record is set aside while its shard is read, or let go of");
        };
        // If a kept batch was given back meanwhile, the record comes again.
        if !reading.reader.returned(batch) {
            return;
        }
        match outcome {
            Outcome::Applied(Reply::ProcessedThrough(at)) if at == poison.at => {
                reading.reader.processed_through(at);
                reading.failure.front_is_new();
                let detail = reading.failure.detail().to_owned();
                self.take_watermark(cx.now());
                cx.notify(Notice::SetAside {
                    lease: self.own.lease(),
                    position: at,
                    attempts: poison.attempts,
                    detail,
                });
            }
            Outcome::Refused(refusal) if refusal.why == Why::Gone => {
                reading.reader.rewind();
                reading.failure.front_is_lost();
            }
            // Stopped by us, or never begun.
            Outcome::NotSent(Cause::Cancelled) | Outcome::Unknown(Cause::Cancelled) => {}
            other => self.set_aside_later(cx, leases, poison.at, describe(&other)),
        }
    }

    fn set_aside_later(&mut self, cx: &mut Context, leases: &LeaseTable, position: Position, detail: String) {
        let goes_on = matches!(self.stage, Stage::Running(_)) && self.exit(cx, leases).is_none();
        let Some(reading) = self.stage.reading_mut() else {
            return cx.broken("a record is set aside while its shard is read, or let go of");
        };
        let attempt = reading.failure.set_aside_failed();
        let pause = cx.pause("set-aside", self.own.key().as_str(), attempt).max(cx.config().handler_backoff);
        reading.failure.pause_until(cx.now() + pause);
        cx.notify(Notice::SetAsideFailed {
            lease: self.own.lease(),
            position,
            attempt,
            again_in: goes_on.then_some(pause),
            detail,
        });
    }

    /// The application resumes the shard. Whether it was stopped because of a record.
    pub(super) fn ends_stop(&mut self) -> bool {
        match &mut self.stage {
            Stage::Running(reading) => reading.failure.resume(),
            _ => false,
        }
    }
}
