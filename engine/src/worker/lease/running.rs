//! While a shard is read: requests to the stream, and hand-overs to the application.

use super::application::{AppCommand, Given};
use super::failure::Next;
use super::held::HeldLease;
use super::kept;
use super::set_aside;
use super::shard_end;
use super::stage::{DeniedEnd, Reading, Stage};
use crate::ids::OpId;
use crate::input::{Cause, Outcome, Refusal, Reply, Why};
use crate::notice::{ListReason, Notice};
use crate::output::ConsumerOp;
use crate::position::Position;
use crate::reader::{self, Doubtful, Event};
use crate::shard::names_all;
use crate::time::{Mono, Span};
use crate::worker::context::{Context, Request};
use crate::worker::describe;
use crate::worker::lease_table::LeaseTable;

impl HeldLease {
    /// Reads, and hands over.
    pub(super) fn run_step(&mut self, cx: &mut Context) {
        let now = cx.now();
        let Stage::Running(reading) = &mut self.stage else {
            return cx.broken("a shard is read while it runs");
        };
        if self.app.is_idle()
            && !reading.awaits_permission()
            && let Some(children) = reading.reader.finished()
        {
            if children.is_empty() && !reading.childless {
                return self.look_for_children(cx);
            }
            let children = children.to_vec();
            self.children = shard_end::names(&children);
            let ending = shard_end::begin(self.own.key(), children);
            self.watch.moved(now);
            return self.stage.go(|_| Stage::Ending(Box::new(ending)));
        }
        self.fetch(cx);
        let Stage::Running(reading) = &mut self.stage else {
            return cx.broken("a shard runs while it is read");
        };
        let free = self.app.is_idle() && self.lane.believes(now) && !self.paused;
        if free && now >= reading.failure.not_before() {
            let full = reading.reader.keeps_enough(&cx.config().reader);
            let next = reading.failure.next();
            match next {
                _ if full || reading.reader.front().is_none() => self.flush_if_stuck(cx),
                Next::Whole | Next::OneRecord => self.deliver(cx, next == Next::OneRecord),
                Next::SetAside(poison, detail) => self.set_aside(cx, poison, detail),
                Next::Nothing => self.flush_if_stuck(cx),
            }
        }
    }

    /// Hands over the rest of the front batch, or its first record only.
    fn deliver(&mut self, cx: &mut Context, alone: bool) {
        let Stage::Running(reading) = &mut self.stage else {
            return cx.broken("batches are handed over while a shard runs");
        };
        let Some(front) = reading.reader.front() else {
            return;
        };
        debug_assert!(self.lane.believes(cx.now()), "nothing is handed over without the belief");
        debug_assert!(
            front.after.is_none_or(|after| after < front.last),
            "what is handed over has something left to process"
        );
        // Among records out of order, no record is known to be the next.
        let alone = alone && !front.unordered;
        let (lease, token) = (self.own.lease(), self.own.token());
        let (batch, after) = (front.batch, front.after);
        let (attempt, valid_until) = (reading.failure.attempt(), self.lane.valid_until());
        let op = match alone {
            false => ConsumerOp::Deliver { lease, token, batch, after, attempt, valid_until },
            true => ConsumerOp::DeliverOne { lease, token, batch, after, attempt, valid_until },
        };
        let command = AppCommand::Deliver { given: Given { batch, alone, after }, given_back: false };
        reading.reader.delivered();
        reading.flush.gives_more();
        self.app.ask(&self.own, cx, op, command);
    }

    /// When something is due while the shard is read.
    pub(super) fn reading_wake_at(&self, cx: &Context, reading: &Reading) -> Mono {
        let mut at = reading.reader.wake_at(&cx.config().reader);
        if at <= cx.now() {
            // It was to be done in this step: the answer of the lane is waited for, or memory.
            at = Mono::NEVER;
        }
        if !self.app.is_idle() {
            return at;
        }
        let awaits_permission = reading.awaits_permission();
        let keeps = reading.reader.kept_batches() > 0;
        let waits = reading.reader.front().is_some() || keeps || awaits_permission;
        let not_before = reading.failure.not_before();
        if not_before > cx.now() && waits {
            at = at.min(not_before);
        }
        if !self.missing && !awaits_permission && reading.reader.finished().is_some() {
            at = at.min(reading.look_at);
        }
        at
    }

    /// The shard ended and the answer named no children. They may exist all the same: the stream's shards are listed.
    fn look_for_children(&mut self, cx: &mut Context) {
        let Stage::Running(reading) = &mut self.stage else {
            return cx.broken("children are looked for while a shard runs");
        };
        if !self.missing && cx.now() >= reading.look_at {
            self.missing = true;
            reading.look_at = cx.now() + cx.config().retry_max;
            cx.request(Request::DoubtStream(self.own.stream()));
        }
    }

    /// An application command ended.
    pub(super) fn on_app(&mut self, cx: &mut Context, leases: &LeaseTable, op: OpId, outcome: Outcome) {
        let Some(command) = self.app.ended(op) else {
            // A close that was waited for long enough: the lease was given up without its answer.
            return;
        };
        match command {
            AppCommand::Open => self.on_opened(cx, leases, outcome),
            AppCommand::SetAside { batch, poison } => self.on_set_aside(cx, leases, batch, poison, outcome),
            AppCommand::Deliver { given, given_back } => {
                let outcome = match outcome {
                    Outcome::Applied(Reply::Kept) if given.alone => set_aside::kept_alone(),
                    Outcome::Applied(Reply::Kept) if given_back => kept::dropped(),
                    outcome => outcome,
                };
                self.on_delivered(cx, leases, given, outcome);
            }
            AppCommand::Flush(why) => self.on_flushed(cx, leases, why, &outcome),
            AppCommand::Close => {
                let Stage::Closing(reason) = self.stage else {
                    return cx.broken("a close is answered while the shard is closed");
                };
                self.stage.go(|_| Stage::Closed(reason));
                let (lease, token) = (self.own.lease(), self.own.token());
                cx.notify(Notice::Closed { lease, token, reason });
            }
        }
    }

    fn on_delivered(&mut self, cx: &mut Context, leases: &LeaseTable, given: Given, outcome: Outcome) {
        let (now, batch) = (cx.now(), given.batch);
        let Some(reading) = self.stage.reading_mut() else {
            return cx.broken("a batch is processed while its shard is read, or let go of");
        };
        match outcome {
            Outcome::Applied(Reply::Kept) => {
                if reading.reader.keep(batch) {
                    reading.failure.front_is_new();
                    reading.flush.kept_more();
                    self.take_watermark(now);
                }
            }
            Outcome::Applied(Reply::ProcessedThrough(through)) => {
                // A kept batch given back meanwhile takes this batch along: this batch comes again.
                if !reading.reader.returned(batch) {
                    return;
                }
                // The handler may have acknowledged the single record before its answer.
                let said_before = given.alone && Some(through) > given.after;
                if reading.reader.processed_through(through) || said_before {
                    reading.failure.front_is_new();
                } else {
                    // Without a pause, a handler that acknowledges no record would be called without end.
                    let again_at = now + cx.config().handler_backoff;
                    reading.failure.pause_until(again_at);
                }
                self.take_watermark(now);
            }
            Outcome::Applied(_) => {
                // A kept batch given back meanwhile takes this batch along: this batch comes again.
                if reading.reader.processed(batch) {
                    reading.failure.front_is_new();
                    self.take_watermark(now);
                    self.watch.moved(now);
                }
            }
            Outcome::Refused(refusal) if refusal.why == Why::Gone => {
                // The records are not in memory any more: they are read again.
                reading.reader.returned(batch);
                reading.reader.rewind();
                reading.failure.front_is_lost();
            }
            // Stopped by us, or never begun.
            Outcome::NotSent(Cause::Cancelled) | Outcome::Unknown(Cause::Cancelled) => {
                reading.reader.returned(batch);
            }
            other => {
                if reading.reader.returned(batch) {
                    let front = reading.reader.front().filter(|front| !front.unordered);
                    let last = front.map(|front| front.last);
                    let at = match &other {
                        Outcome::Refused(Refusal { why: Why::RecordFailed(at), .. }) => Some(*at),
                        _ => None,
                    };
                    self.attempt_failed(cx, leases, at, last, describe(&other));
                }
            }
        }
    }

    /// The handler failed: its unprocessed records come again after a pause.
    pub(super) fn retry_later(
        &mut self, cx: &mut Context, leases: &LeaseTable, attempt: u32, detail: String,
    ) {
        let Some(reading) = self.stage.reading_mut() else {
            return cx.broken("a handler fails at a shard that is read, or let go of");
        };
        debug_assert!(attempt > 0, "what failed was attempted");
        let pause = cx.pause("handler", self.own.key().as_str(), attempt).max(cx.config().handler_backoff);
        reading.failure.pause_until(cx.now() + pause);
        let again = matches!(self.stage, Stage::Running(_)) && self.exit(cx, leases).is_none();
        cx.notify(Notice::HandlerFailed {
            lease: self.own.lease(),
            attempt,
            again_in: again.then_some(pause),
            detail,
        });
    }

    /// A stream command of the reader ended.
    pub(super) fn on_read(&mut self, cx: &mut Context, leases: &LeaseTable, op: OpId, outcome: Outcome) {
        let now = cx.now();
        // The shard may be closed by now.
        let Some(reading) = self.stage.reading_mut() else {
            return;
        };
        let context = reader::Ctx {
            cfg: &cx.config().reader,
            retry_min: cx.config().retry_min,
            retry_max: cx.config().retry_max,
            stream_lag: cx.config().stream_lag,
            stream_timeout: cx.config().stream_timeout,
            seed: cx.seed(),
            subject: self.own.key().as_str(),
        };
        let event = reading.reader.fetched(op, now, &outcome, &context);
        self.lane.begin_at(reading.reader.began_earlier());
        if matches!(outcome, Outcome::Applied(_))
            && reading.is_doubted()
            && reading.reader.finished().is_none()
        {
            reading.found();
        }
        reading.strange.note(&outcome, now);
        let doubted = matches!(event, Some(Event::Doubted { .. }));
        if let Outcome::Applied(Reply::Records(answer)) = &outcome
            && !doubted
        {
            let waiting = reading.reader.buffered_batches();
            match answer.end.as_deref() {
                // A listing decides whether the shard has ended. Until then, no evidence shows that the tip was
                // reached.
                Some(children) if !names_all(children) => reading.denied.read = Some(op),
                _ => {
                    reading.denied = DeniedEnd::default();
                    self.watch.fetched(answer, waiting, now);
                }
            }
            self.watch.read(answer.bytes);
            if answer.range_unproven {
                cx.request(Request::ListShards(self.own.stream(), ListReason::RangeUnproven));
            }
        }
        match event {
            Some(Event::ShardMissing) => {
                self.missing = true;
                cx.request(Request::DoubtStream(self.own.stream()));
            }
            Some(Event::Trimmed { at, first }) => {
                let detail = format!(
                    "expected the record {at} or the one after it, found {first} as the first: the stream has trimmed the records \
                     between, or no record has the number {at}, at which the shard was begun"
                );
                let lease = self.own.lease();
                cx.notify(Notice::Trimmed { lease, detail });
            }
            Some(Event::EndOfShard) | None => {}
            // The next ones say the same, five times a second.
            Some(Event::Doubted { answers, .. }) if !answers.is_power_of_two() => {}
            Some(event) => {
                self.on_read_trouble(cx, op, &event, &outcome);
                if let Event::BadPosition { at, .. } = event {
                    self.judge_strange(cx, leases, at, &outcome);
                }
            }
        }
    }

    fn on_read_trouble(&self, cx: &mut Context, op: OpId, event: &Event, outcome: &Outcome) {
        // The position may be of an earlier stream of this name.
        if matches!(event, Event::BadPosition { tries, .. } if tries.is_power_of_two()) {
            cx.request(Request::DoubtStream(self.own.stream()));
        }
        let (how, again_in) = trouble(event, outcome);
        cx.notify(Notice::Trouble {
            op,
            what: format!("read {}", self.own.key()),
            lease: Some(self.own.lease()),
            how,
            again_in,
        });
    }
}

fn position(position: Option<Position>) -> String {
    position.map_or_else(|| "no position".into(), |position| position.to_string())
}

/// What speaks against an answer, in words.
fn doubt(why: &Doubtful) -> String {
    match why {
        Doubtful::Foreign { of: Some(of) } => {
            format!("expected an answer about this shard, found sequence numbers of shard {of}")
        }
        Doubtful::Foreign { of: None } => {
            "expected an answer about this shard, found children of another shard".to_owned()
        }
        Doubtful::Disorder { first, last, inside: true, .. } => format!(
            "expected records in the order of their sequence numbers, found others between the first, {}, and the last, {}",
            position(*first),
            position(*last)
        ),
        Doubtful::Disorder { before, first, last, .. } => format!(
            "expected records after {}, found records from {} to {}",
            position(*before),
            position(*first),
            position(*last)
        ),
        Doubtful::Gap { at, first } => {
            let found = first.map_or("no record".into(), |first| format!("{first}"));
            format!("expected the record {at} first, found {found}")
        }
    }
}

/// The failure of a read, in words, and the pause of its reader.
fn trouble(event: &Event, outcome: &Outcome) -> (String, Span) {
    match event {
        Event::Trouble { how, again_in } => (how.to_string(), *again_in),
        Event::Denied { again_in } => {
            let said = describe(outcome);
            let remedy = match outcome {
                Outcome::Refused(refusal) if refusal.why == Why::WrongClock => {
                    "set the clock of this host right"
                }
                _ => "grant the permission or renew the credentials",
            };
            (format!("{said}; {remedy}"), *again_in)
        }
        Event::BadPosition { at, tries, again_in } => (
            format!(
                "the service calls position {at} invalid ({tries} times in a row); compare the checkpoint in the row of the lease with \
                 the stream"
            ),
            *again_in,
        ),
        Event::Early { at, again_in } => (
            format!(
                "the service calls {at} a time of its future: expected the clock of the worker that first took the lease to be right, and \
                 found it ahead; set that clock. An earlier moment is tried"
            ),
            *again_in,
        ),
        Event::Disorder {
            before,
            first,
            last,
            inside,
        } => {
            let why = doubt(&Doubtful::Disorder {
                before: *before,
                first: *first,
                last: *last,
                inside: *inside,
            });
            let waits = match inside {
                true => ", and no checkpoint is written before all of them are processed",
                false => "",
            };
            let how = format!("{why}, and so did later answers; all of them are handed over{waits}");
            (how, Span::ZERO)
        }
        Event::Doubted { why, .. } => {
            let how = format!(
                "{}; the answer is not used, and a new iterator is asked for",
                doubt(why)
            );
            (how, Span::ZERO)
        }
        Event::WeakEnd { again_in } => (
            "expected an answer at the end of the shard to name children, found an answer without an iterator and without children; the \
             end counts when an answer `stream_lag` later claims it, too"
                .to_owned(),
            *again_in,
        ),
        Event::ShardMissing | Event::Trimmed { .. } | Event::EndOfShard => {
            debug_assert!(false, "what is no trouble has a notice of its own");
            (String::new(), Span::ZERO)
        }
    }
}
