//! Handing batches over to the application, and its answers.

use super::Reading;
use crate::input::{Cause, Outcome, Refusal, Reply, Why};
use crate::notice::Notice;
use crate::output::ConsumerOp;
use crate::worker::describe;
use crate::worker::lease::lent::Lent;
use crate::worker::lease::processing::application::{AppCommand, AppLane, Given};

impl Reading {
    /// Hands over the rest of the front batch, or its first record only.
    pub(super) fn deliver(&mut self, lent: &mut Lent<'_>, app: &mut AppLane, alone: bool) {
        let Some(front) = self.batches().front() else {
            return lent.cx.broken("a batch that is handed over is in memory");
        };
        debug_assert!(lent.believes(), "nothing is handed over without the belief");
        debug_assert!(
            front.after.is_none_or(|after| after < front.last),
            "what is handed over has something left to process"
        );
        // Among records out of order, no record is known to be the next.
        let alone = alone && !front.unordered;
        let (lease, token) = (lent.own.lease(), lent.own.token());
        let (batch, after) = (front.batch, front.after);
        let (attempt, valid_until) = (self.failure.attempt(), lent.lane.valid_until());
        let op = match alone {
            false => ConsumerOp::Deliver { lease, token, batch, after, attempt, valid_until },
            true => ConsumerOp::DeliverOne { lease, token, batch, after, attempt, valid_until },
        };
        let command = AppCommand::Deliver { given: Given { batch, alone, after }, given_back: false };
        self.batches_mut().delivered();
        self.flush.gives_more();
        app.ask(lent.own, lent.cx, op, command);
    }

    /// The handler has answered. `runs`: the shard is not let go of.
    pub(in crate::worker::lease::processing) fn on_delivered(
        &mut self, lent: &mut Lent<'_>, runs: bool, given: Given, outcome: Outcome,
    ) {
        let (now, batch) = (lent.now(), given.batch);
        match outcome {
            Outcome::Applied(Reply::Kept) => {
                if self.batches_mut().keep(batch) {
                    self.failure.front_is_new();
                    self.flush.kept_more();
                    self.take_watermark(lent);
                }
            }
            Outcome::Applied(Reply::ProcessedThrough(through)) => {
                // A kept batch given back meanwhile takes this batch along: this batch comes again.
                if !self.batches_mut().returned(batch) {
                    return;
                }
                // The handler may have acknowledged the single record before its answer.
                let said_before = given.alone && Some(through) > given.after;
                if self.batches_mut().processed_through(through) || said_before {
                    self.failure.front_is_new();
                } else {
                    // Without a pause, a handler that acknowledges no record would be called without end.
                    self.failure.pause_until(now + lent.cx.config().handler_backoff);
                }
                self.take_watermark(lent);
            }
            Outcome::Applied(_) => {
                // A kept batch given back meanwhile takes this batch along: this batch comes again.
                if self.batches_mut().processed(batch) {
                    self.failure.front_is_new();
                    self.take_watermark(lent);
                    lent.watch.moved(now);
                }
            }
            Outcome::Refused(refusal) if refusal.why == Why::Gone => {
                // The records are not in memory any more: they are read again.
                self.batches_mut().returned(batch);
                self.reader.rewind();
                self.failure.front_is_lost();
            }
            // Stopped by us, or never begun.
            Outcome::NotSent(Cause::Cancelled) | Outcome::Unknown(Cause::Cancelled) => {
                self.batches_mut().returned(batch);
            }
            other => {
                if self.batches_mut().returned(batch) {
                    let front = self.batches().front().filter(|front| !front.unordered);
                    let last = front.map(|front| front.last);
                    let at = match &other {
                        Outcome::Refused(Refusal { why: Why::RecordFailed(at), .. }) => Some(*at),
                        _ => None,
                    };
                    self.attempt_failed(lent, runs, at, last, describe(&other));
                }
            }
        }
    }

    /// The handler failed: its unprocessed records come again after a pause. `runs`: the shard is not let go of.
    pub(super) fn retry_later(&mut self, lent: &mut Lent<'_>, runs: bool, attempt: u32, detail: String) {
        debug_assert!(attempt > 0, "what failed was attempted");
        let (own, cx) = (lent.own, &*lent.cx);
        let pause = cx.pause("handler", own.key().as_str(), attempt).max(cx.config().handler_backoff);
        self.failure.pause_until(cx.now() + pause);
        let again = runs && lent.exit().is_none();
        lent.cx.notify(Notice::HandlerFailed {
            lease: own.lease(),
            attempt,
            again_in: again.then_some(pause),
            detail,
        });
    }
}
