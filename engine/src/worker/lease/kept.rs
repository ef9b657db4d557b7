//! Batches kept by the application: acknowledged later, in any order; and the commands to flush.
//!
//! The application is told to flush in three cases: it keeps as much as it may, it has all records of an ended shard,
//! or the lease is given up. Each case brings one command, and another after a failed flush or after a new hand-over.
//!
//! An application that confirms the end of a shard is told the end also when it keeps no batch. The end is written
//! after the application's answer, if no batch was handed over since. The permission is part of the ownership: the next
//! owner reads the end and asks again.

use super::application::AppCommand;
use super::held::HeldLease;
use super::stage::Stage;
use crate::ids::OpId;
use crate::input::{Cause, Outcome, Refusal, Why};
use crate::notice::Notice;
use crate::output::{ConsumerOp, EndReason, FlushReason};
use crate::time::Mono;
use crate::worker::context::Context;
use crate::worker::describe;
use crate::worker::lease_table::LeaseTable;

/// The commands to flush that the application has received.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Flush {
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

/// The answer of a handler that keeps a batch but has already given the batch back.
pub(super) fn dropped() -> Outcome {
    Outcome::Refused(Refusal {
        why: Why::HandlerFailed,
        current: None,
        detail: "the handler kept a batch and gave it back without an acknowledgement".into(),
    })
}

impl HeldLease {
    /// The application has processed all of a kept batch.
    pub(super) fn on_acknowledged(&mut self, cx: &Context, batch: OpId) {
        let Some(reading) = self.stage.reading_mut() else {
            return;
        };
        if reading.reader.acknowledged(batch) {
            self.take_watermark(cx.now());
        }
    }

    /// The application will not process a kept batch: reading begins anew after the records processed without a gap.
    pub(super) fn on_given_back(
        &mut self, cx: &mut Context, leases: &LeaseTable, batch: OpId, detail: String,
    ) {
        // A call of the application may overtake the answer of its handler.
        if self.app.give_back(batch) {
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
        self.app.abort(&self.own, &self.lane, cx);
        self.attempt_failed(cx, leases, None, Some(last), detail);
    }

    /// Tells the application to flush if the shard cannot go on otherwise. Nothing is being handed over at this moment.
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
        let flushing = matches!(self.app.command(), Some(AppCommand::Flush(_)));
        let until = self.stage.reading().and_then(|reading| reading.flush.until);
        flushing && until.is_some_and(|until| now >= until)
    }

    /// Reports a close with unacknowledged batches.
    pub(super) fn tell_unacknowledged(&self, cx: &mut Context) {
        let kept = self.stage.reading().map_or(0, |reading| reading.reader.kept_batches());
        if kept > 0 {
            let (lease, batches) = (self.own.lease(), u32::try_from(kept).unwrap_or(u32::MAX));
            cx.notify(Notice::Unacknowledged { lease, batches });
        }
    }

    fn flush(&mut self, cx: &mut Context, why: FlushReason, until: Mono) {
        let Some(reading) = self.stage.reading_mut() else {
            return cx.broken("only a shard that is read keeps batches");
        };
        reading.flush.told = Some(why);
        let op = ConsumerOp::Flush { lease: self.own.lease(), token: self.own.token(), why, until };
        self.app.ask(&self.own, cx, op, AppCommand::Flush(why));
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
