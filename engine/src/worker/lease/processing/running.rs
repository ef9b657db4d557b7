//! While a shard is read: requests to the stream, and the answers of the application.

use super::application::AppCommand;
use super::failure::Next;
use super::reading::Reading;
use super::shard_end::{self, Ending};
use super::stage::Stage;
use super::{Processing, kept, set_aside};
use crate::ids::OpId;
use crate::input::{Outcome, Reply};
use crate::notice::Notice;
use crate::time::Mono;
use crate::worker::context::{Context, Request};
use crate::worker::lease::lent::Lent;

impl Processing {
    /// Reads, and hands over.
    pub(super) fn run_step(&mut self, lent: &mut Lent<'_>) {
        let now = lent.now();
        let Stage::Running(reading) = &mut self.stage else {
            return lent.cx.broken("a shard is read while it runs");
        };
        if self.app.is_idle()
            && !reading.awaits_permission()
            && let Some(children) = reading.finished()
        {
            if children.is_empty() && !reading.search.is_childless() {
                return self.look_for_children(lent);
            }
            let children = children.to_vec();
            self.children = shard_end::names(&children);
            let ending = Ending::begin(lent.own.key(), children);
            lent.watch.moved(now);
            return self.stage.go(|_| Stage::Ending(Box::new(ending)));
        }
        self.share.fetch(&mut reading.reader, lent.own, lent.lane, lent.cx);
        let free = self.app.is_idle() && lent.lane.believes(now) && !self.paused;
        if free && now >= reading.failure.not_before() {
            let full = reading.reader.keeps_enough(&lent.cx.config().reader);
            let (app, next) = (&mut self.app, reading.failure.next());
            match next {
                _ if full || reading.reader.front().is_none() => reading.flush_if_stuck(lent, app),
                Next::Whole | Next::OneRecord => reading.deliver(lent, app, next == Next::OneRecord),
                Next::SetAside(poison, detail) => reading.set_aside(lent, app, poison, detail),
                Next::Nothing => reading.flush_if_stuck(lent, app),
            }
        }
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
        if !self.missing && !awaits_permission && reading.finished().is_some() {
            at = at.min(reading.search.next_look());
        }
        at
    }

    /// The shard ended and the answer named no children. They may exist all the same: the stream's shards are listed.
    fn look_for_children(&mut self, lent: &mut Lent<'_>) {
        let Stage::Running(reading) = &mut self.stage else {
            return lent.cx.broken("children are looked for while a shard runs");
        };
        if !self.missing && lent.now() >= reading.search.next_look() {
            self.missing = true;
            reading.look_at(lent.now() + lent.cx.config().retry_max);
            lent.cx.request(Request::DoubtStream(lent.own.stream()));
        }
    }

    /// A stream command of the reader ended.
    pub(in crate::worker::lease) fn on_read(&mut self, lent: &mut Lent<'_>, op: OpId, outcome: &Outcome) {
        // The shard may be closed by now.
        if let Some(reading) = self.stage.reading_mut() {
            self.missing |= reading.on_read(lent, op, outcome);
        }
    }

    /// An application command ended.
    pub(in crate::worker::lease) fn on_app(&mut self, lent: &mut Lent<'_>, op: OpId, outcome: Outcome) {
        let Some(command) = self.app.ended(op) else {
            // A close that was waited for long enough: the lease was given up without its answer.
            return;
        };
        let runs = self.is_running();
        match (command, self.stage.reading_mut()) {
            (AppCommand::Open, _) => self.on_opened(lent, outcome),
            (AppCommand::SetAside { batch, poison }, Some(reading)) => {
                reading.on_set_aside(lent, runs, batch, poison, outcome);
            }
            (AppCommand::Deliver { given, given_back }, Some(reading)) => {
                let outcome = match outcome {
                    Outcome::Applied(Reply::Kept) if given.alone => set_aside::kept_alone(),
                    Outcome::Applied(Reply::Kept) if given_back => kept::dropped(),
                    outcome => outcome,
                };
                reading.on_delivered(lent, runs, given, outcome);
            }
            (AppCommand::Flush(why), Some(reading)) => reading.on_flushed(lent, runs, why, &outcome),
            (AppCommand::Close, _) => self.on_closed(lent),
            (AppCommand::SetAside { .. } | AppCommand::Deliver { .. } | AppCommand::Flush(_), None) => {
                lent.cx.broken("batches are processed and flushed while their shard is read, or let go of");
            }
        }
    }

    fn on_closed(&mut self, lent: &mut Lent<'_>) {
        let Stage::Closing(reason) = self.stage else {
            return lent.cx.broken("a close is answered while the shard is closed");
        };
        self.stage.go(|_| Stage::Closed(reason));
        let (lease, token) = (lent.own.lease(), lent.own.token());
        lent.cx.notify(Notice::Closed { lease, token, reason });
    }
}
