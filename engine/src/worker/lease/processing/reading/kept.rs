//! Batches kept by the application: acknowledged later, in any order; and the commands to flush.
//!
//! The application is told to flush in three cases: it keeps as much as it may, it has all records of an ended shard,
//! or the lease is given up. Each case brings one command, and another after a failed flush or after a new hand-over.
//!
//! An application that confirms the end of a shard is told the end also when it keeps no batch. The end is written
//! after the application's answer, if no batch was handed over since. The permission is part of the ownership: the next
//! owner reads the end and asks again.

use super::Reading;
use crate::ids::OpId;
use crate::input::{Cause, Outcome, Refusal, Why};
use crate::notice::Notice;
use crate::output::{ConsumerOp, EndReason, FlushReason};
use crate::time::Mono;
use crate::worker::context::Context;
use crate::worker::describe;
use crate::worker::lease::lent::Lent;
use crate::worker::lease::ownership::Ownership;
use crate::worker::lease::processing::application::{AppCommand, AppLane};

/// The commands to flush that the application has received.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(in crate::worker::lease::processing) struct Flush {
    /// The application was told to flush for this reason, and was given no batch since.
    told: Option<FlushReason>,
    /// The lease is given up: acknowledgements are waited for until here.
    until: Option<Mono>,
    /// The end of the shard is not written before the application permits it.
    confirms_end: bool,
    /// The application has permitted the end, and was given no batch since.
    end_permitted: bool,
}

impl Flush {
    pub(in crate::worker::lease::processing) fn new(confirms_end: bool) -> Self {
        Self { told: None, until: None, confirms_end, end_permitted: false }
    }

    /// The application keeps a further batch, or gave one back.
    pub(super) fn kept_more(&mut self) {
        self.told = None;
        self.end_permitted = false;
    }

    /// The application is given a batch.
    pub(super) fn gives_more(&mut self) {
        self.end_permitted = false;
        self.told.take_if(|why| *why == FlushReason::ShardEnd);
    }

    pub(super) fn awaits_permission(&self) -> bool {
        self.confirms_end && !self.end_permitted
    }

    /// When acknowledgements are not waited for any longer.
    pub(super) fn until(&self) -> Option<Mono> {
        self.until
    }
}

/// The answer of a handler that keeps a batch but has already given the batch back.
pub(in crate::worker::lease::processing) fn dropped() -> Outcome {
    Outcome::Refused(Refusal {
        why: Why::HandlerFailed,
        current: None,
        detail: "the handler kept a batch and gave it back without an acknowledgement".into(),
    })
}

impl Reading {
    /// The application has processed all of a kept batch.
    pub(in crate::worker::lease::processing) fn on_acknowledged(&mut self, lent: &mut Lent<'_>, batch: OpId) {
        if self.batches_mut().acknowledged(batch) {
            self.take_watermark(lent);
        }
    }

    /// The application will not process a kept batch: reading begins anew after the records processed without a gap.
    /// `runs`: the shard is not let go of.
    pub(in crate::worker::lease::processing) fn on_given_back(
        &mut self, lent: &mut Lent<'_>, app: &mut AppLane, runs: bool, batch: OpId, detail: String,
    ) {
        let Some(last) = self.batches().keeps(batch) else {
            // All of the batch was acknowledged already, or a rewind forgot the batch.
            return;
        };
        self.reader.rewind();
        self.failure.read_again();
        debug_assert_eq!(self.batches().kept_batches(), 0, "reading begins anew with nothing kept");
        self.flush.kept_more();
        self.failure.attempt();
        // A batch that is being processed comes again, too.
        app.abort(lent.own, lent.lane, lent.cx);
        self.attempt_failed(lent, runs, None, Some(last), detail);
    }

    /// Tells the application to flush if the shard cannot go on otherwise. Nothing is being handed over at this moment.
    pub(super) fn flush_if_stuck(&mut self, lent: &mut Lent<'_>, app: &mut AppLane) {
        if self.batches().kept_batches() == 0 && !self.awaits_permission() {
            return;
        }
        let why = if self.reader.has_handed_all_over() {
            FlushReason::ShardEnd
        } else if self.batches().keeps_enough(&lent.cx.config().reader) || self.failure.is_stopped() {
            FlushReason::Full
        } else {
            return;
        };
        if self.flush.told != Some(why) {
            self.tell_to_flush(lent, app, why, Mono::NEVER);
        }
    }

    /// The lease is given up: whether acknowledgements are waited for. The application is told to flush.
    pub(in crate::worker::lease::processing) fn awaits_acknowledgements(
        &mut self, lent: &mut Lent<'_>, app: &mut AppLane, reason: EndReason,
    ) -> bool {
        let now = lent.now();
        let left = self.batches().kept_batches();
        if left == 0 {
            return false;
        }
        let until = *self.flush.until.get_or_insert(now + lent.cx.config().flush_timeout);
        let why = FlushReason::Leaving(reason);
        if now >= until {
            return false;
        }
        if self.flush.told != Some(why) {
            self.tell_to_flush(lent, app, why, until);
        }
        true
    }

    /// Reports a close with unacknowledged batches.
    pub(in crate::worker::lease::processing) fn tell_unacknowledged(
        &self, own: &Ownership, cx: &mut Context,
    ) {
        let kept = self.batches().kept_batches();
        if kept > 0 {
            let (lease, batches) = (own.lease(), u32::try_from(kept).unwrap_or(u32::MAX));
            cx.notify(Notice::Unacknowledged { lease, batches });
        }
    }

    fn tell_to_flush(&mut self, lent: &mut Lent<'_>, app: &mut AppLane, why: FlushReason, until: Mono) {
        self.flush.told = Some(why);
        let op = ConsumerOp::Flush { lease: lent.own.lease(), token: lent.own.token(), why, until };
        app.ask(lent.own, lent.cx, op, AppCommand::Flush(why));
    }

    /// A flush has ended. Whether everything was acknowledged shows by itself. `runs`: the shard is not let go of.
    pub(in crate::worker::lease::processing) fn on_flushed(
        &mut self, lent: &mut Lent<'_>, runs: bool, why: FlushReason, outcome: &Outcome,
    ) {
        match outcome {
            Outcome::Applied(_) => {
                // What is said of a batch may overtake the answer: a batch that was given back comes again.
                let counts = self.flush.told == Some(why);
                self.flush.end_permitted |= counts && why == FlushReason::ShardEnd;
            }
            // Stopped by us, or never begun.
            Outcome::NotSent(Cause::Cancelled) | Outcome::Unknown(Cause::Cancelled) => {
                self.flush.told = None;
            }
            _ => {
                match why {
                    // There is no time to try again.
                    FlushReason::Leaving(_) => self.flush.until = Some(lent.now()),
                    FlushReason::Full | FlushReason::ShardEnd => self.flush.told = None,
                }
                let attempt = self.failure.attempt();
                self.retry_later(lent, runs, attempt, describe(outcome));
            }
        }
    }
}
