//! What the application keeps: batches that it acknowledges later, in any order, and when it is told to flush.
//!
//! It is told to flush when it keeps as much as it may, when it has everything of a shard that has ended, and when the lease is
//! given up. It is told once for each of these, and again after a flush that failed or after it was given more.
//!
//! An application that confirms the end of a shard is told the end also when it keeps nothing. The end is written when it has answered
//! that, and was given nothing since. The permission is part of the ownership: the next owner reads the end, and asks, again.

use super::held::{AppCommand, HeldLease};
use super::stage::Stage;
use crate::ids::OpId;
use crate::input::{Cause, Outcome, Refusal, Why};
use crate::notice::Notice;
use crate::output::{ConsumerOp, EndReason, FlushReason};
use crate::time::Mono;
use crate::worker::context::Context;
use crate::worker::describe;
use crate::worker::lease_table::LeaseTable;

/// What the application was told about the batches that it keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Flush {
    /// It was told to flush for this reason, and was given nothing since.
    told: Option<FlushReason>,
    /// The lease is given up: acknowledgements are waited for until here.
    until: Option<Mono>,
    /// The end of the shard is not written before the application permits it.
    confirms_end: bool,
    /// It has permitted that, and was given nothing since.
    end_permitted: bool,
}

impl Flush {
    pub(super) fn new(confirms_end: bool) -> Self {
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

/// The answer of a handler that keeps a batch, and has given it back already.
pub(super) fn dropped() -> Outcome {
    Outcome::Refused(Refusal {
        why: Why::HandlerFailed,
        current: None,
        detail: "the handler kept a batch and gave it back without an acknowledgement".into(),
    })
}

impl HeldLease {
    /// The application says that it has processed all of a batch that it keeps.
    pub(super) fn on_acknowledged(&mut self, cx: &Context, batch: OpId) {
        let Some(reading) = self.stage.reading_mut() else {
            return;
        };
        if reading.reader.acknowledged(batch) {
            self.take_watermark(cx.now());
        }
    }

    /// The application will not process a batch that it keeps: reading begins anew after what was processed without a gap.
    pub(super) fn on_given_back(
        &mut self, cx: &mut Context, leases: &LeaseTable, batch: OpId, detail: String,
    ) {
        // What the application says may overtake the answer of its handler.
        if let Some((_, AppCommand::Deliver { given, given_back })) = &mut self.app
            && given.batch == batch
        {
            *given_back = true;
            return;
        }
        let Some(reading) = self.stage.reading_mut() else {
            return;
        };
        let Some(last) = reading.reader.keeps(batch) else {
            return;
        };
        reading.reader.rewind();
        reading.failure.read_again();
        debug_assert_eq!(reading.reader.kept_batches(), 0, "reading begins anew with nothing kept");
        reading.flush.kept_more();
        reading.failure.attempt();
        // A batch that is being processed comes again, too.
        self.abort(cx);
        self.attempt_failed(cx, leases, None, Some(last), detail);
    }

    /// Nothing is handed over at this moment: has the application flush if nothing else leads on.
    pub(super) fn flush_if_stuck(&mut self, cx: &mut Context) {
        let Stage::Running(reading) = &self.stage else {
            return cx.broken("a flush is considered while a shard runs");
        };
        if reading.reader.kept_batches() == 0 && !reading.awaits_permission() {
            return;
        }
        let why = if reading.reader.handed_all_over() {
            FlushReason::ShardEnd
        } else if reading.reader.keeps_enough(&cx.config().reader) || reading.failure.is_stopped() {
            FlushReason::Full
        } else {
            return;
        };
        if reading.flush.told != Some(why) {
            self.flush(cx, why, Mono::NEVER);
        }
    }

    /// The lease is given up: whether acknowledgements are waited for. The application is told to flush.
    pub(super) fn awaits_acknowledgements(&mut self, cx: &mut Context, reason: EndReason) -> bool {
        let now = cx.now();
        let Some(reading) = self.stage.reading_mut() else {
            return false;
        };
        let left = reading.reader.kept_batches();
        if left == 0 {
            return false;
        }
        let until = *reading.flush.until.get_or_insert(now + cx.config().flush_timeout);
        let why = FlushReason::Leaving(reason);
        if now >= until {
            return false;
        }
        if reading.flush.told != Some(why) {
            self.flush(cx, why, until);
        }
        true
    }

    /// Whether the application still flushes after the time it was given.
    pub(super) fn flushes_too_long(&self, now: Mono) -> bool {
        let flushing = matches!(self.app, Some((_, AppCommand::Flush(_))));
        let until = self.stage.reading().and_then(|reading| reading.flush.until);
        flushing && until.is_some_and(|until| now >= until)
    }

    /// Says what is closed with batches that were not acknowledged.
    pub(super) fn tell_unacknowledged(&self, cx: &mut Context) {
        let kept = self.stage.reading().map_or(0, |reading| reading.reader.kept_batches());
        if kept > 0 {
            let (lease, batches) = (self.key.clone(), u32::try_from(kept).unwrap_or(u32::MAX));
            cx.notify(Notice::Unacknowledged { lease, batches });
        }
    }

    fn flush(&mut self, cx: &mut Context, why: FlushReason, until: Mono) {
        let Some(reading) = self.stage.reading_mut() else {
            return cx.broken("only a shard that is read keeps batches");
        };
        reading.flush.told = Some(why);
        let op = ConsumerOp::Flush { lease: self.key.clone(), token: self.token, why, until };
        self.ask_app(cx, op, AppCommand::Flush(why));
    }

    /// A flush has ended. Whether everything was acknowledged shows by itself.
    pub(super) fn on_flushed(
        &mut self, cx: &mut Context, leases: &LeaseTable, why: FlushReason, outcome: &Outcome,
    ) {
        let Some(reading) = self.stage.reading_mut() else {
            return cx.broken("a flush ends while its shard is read, or let go of");
        };
        match outcome {
            Outcome::Applied(_) => {
                // What is said of a batch may overtake the answer: a batch that was given back comes again.
                let counts = reading.flush.told == Some(why);
                reading.flush.end_permitted |= counts && why == FlushReason::ShardEnd;
            }
            // Stopped by us, or never begun.
            Outcome::NotSent(Cause::Cancelled) | Outcome::Unknown(Cause::Cancelled) => {
                reading.flush.told = None;
            }
            _ => {
                match why {
                    // There is no time to try again.
                    FlushReason::Leaving(_) => reading.flush.until = Some(cx.now()),
                    FlushReason::Full | FlushReason::ShardEnd => reading.flush.told = None,
                }
                let attempt = reading.failure.attempt();
                self.retry_later(cx, leases, attempt, describe(outcome));
            }
        }
    }
}
