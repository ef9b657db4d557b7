//! The steps after a failed attempt: another attempt, a stopped shard, or a record that is set aside.

use super::Reading;
use super::failure::{Poison, Verdict};
use crate::ids::OpId;
use crate::input::{Cause, Outcome, Refusal, Reply, Why};
use crate::notice::Notice;
use crate::output::ConsumerOp;
use crate::position::Position;
use crate::worker::describe;
use crate::worker::lease::lent::Lent;
use crate::worker::lease::processing::application::{AppCommand, AppLane};

/// The answer of an adapter that keeps a single record.
pub(in crate::worker::lease::processing) fn kept_alone() -> Outcome {
    Outcome::Refused(Refusal {
        why: Why::HandlerFailed,
        current: None,
        detail: "expected that a record which is handed over alone is processed before the answer, found that it is kept".into(),
    })
}

impl Reading {
    /// An attempt at the front batch failed. `runs`: the shard is not let go of. `at`: the record, if it was handed over
    /// alone. `last`: the last position of the failed hand-over.
    pub(super) fn attempt_failed(
        &mut self, lent: &mut Lent<'_>, runs: bool, at: Option<Position>, last: Option<Position>,
        detail: String,
    ) {
        // A record acknowledged by the handler before its failure is not the failing record.
        let at = at.filter(|at| self.batches().awaits(*at));
        let attempt = self.failure.attempts();
        if !runs || lent.exit().is_some() {
            return self.retry_later(lent, runs, attempt, detail);
        }
        match self.failure.fail(lent.cx.config(), at, last, &detail) {
            Verdict::Again => self.retry_later(lent, runs, attempt, detail),
            // The outcome of the setting aside is reported.
            Verdict::SetAside => {}
            Verdict::Stop(Poison { at, attempts }) => {
                let lease = lent.own.lease();
                lent.cx.notify(Notice::ShardStopped { lease, position: at, attempts, detail });
            }
        }
    }

    /// Has the application set the record aside.
    pub(super) fn set_aside(
        &mut self, lent: &mut Lent<'_>, app: &mut AppLane, poison: Poison, detail: String,
    ) {
        let Some(front) = self.batches().front() else {
            return lent.cx.broken("a record that is set aside is of a batch in memory");
        };
        if !self.batches().awaits(poison.at) {
            self.failure.read_again();
            return lent.cx.broken("a record that is set aside is the first one that is left");
        }
        debug_assert!(lent.believes(), "nothing is set aside without the belief");
        let op = ConsumerOp::SetAside {
            lease: lent.own.lease(),
            token: lent.own.token(),
            batch: front.batch,
            record: poison.at,
            attempts: poison.attempts,
            detail,
            valid_until: lent.lane.valid_until(),
        };
        let command = AppCommand::SetAside { batch: front.batch, poison };
        self.batches_mut().delivered();
        app.ask(lent.own, lent.cx, op, command);
    }

    /// The application has set a record aside, or could not. `runs`: the shard is not let go of.
    pub(in crate::worker::lease::processing) fn on_set_aside(
        &mut self, lent: &mut Lent<'_>, runs: bool, batch: OpId, poison: Poison, outcome: Outcome,
    ) {
        // If a kept batch was given back meanwhile, the record comes again.
        if !self.batches_mut().returned(batch) {
            return;
        }
        match outcome {
            Outcome::Applied(Reply::ProcessedThrough(at)) if at == poison.at => {
                self.batches_mut().processed_through(at);
                self.failure.front_is_new();
                let detail = self.failure.detail().to_owned();
                self.take_watermark(lent);
                lent.cx.notify(Notice::SetAside {
                    lease: lent.own.lease(),
                    position: at,
                    attempts: poison.attempts,
                    detail,
                });
            }
            Outcome::Refused(refusal) if refusal.why == Why::Gone => {
                self.reader.rewind();
                self.failure.front_is_lost();
            }
            // Stopped by us, or never begun.
            Outcome::NotSent(Cause::Cancelled) | Outcome::Unknown(Cause::Cancelled) => {}
            other => self.set_aside_later(lent, runs, poison.at, describe(&other)),
        }
    }

    fn set_aside_later(&mut self, lent: &mut Lent<'_>, runs: bool, position: Position, detail: String) {
        let (own, cx) = (lent.own, &*lent.cx);
        let attempt = self.failure.set_aside_failed();
        let pause = cx.pause("set-aside", own.key().as_str(), attempt).max(cx.config().handler_backoff);
        self.failure.pause_until(cx.now() + pause);
        let goes_on = runs && lent.exit().is_none();
        lent.cx.notify(Notice::SetAsideFailed {
            lease: own.lease(),
            position,
            attempt,
            again_in: goes_on.then_some(pause),
            detail,
        });
    }
}
