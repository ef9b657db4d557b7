//! While a shard is read: requests to the stream, and the answers of the application.

use super::Processing;
use super::application::AppCommand;
use super::reading;
use super::shard_end::{self, Ending};
use super::stage::Stage;
use crate::ids::OpId;
use crate::input::{Outcome, Reply};
use crate::notice::Notice;
use crate::worker::context::Request;
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
            if children.is_empty() && !reading.is_childless() {
                return self.look_for_children(lent);
            }
            let children = children.to_vec();
            self.children = shard_end::names(&children);
            let ending = Ending::begin(lent.own.key(), children);
            lent.watch.moved(now);
            return self.stage.go(|_| Stage::Ending(Box::new(ending)));
        }
        reading.request(&mut self.share, lent);
        let free = self.app.is_idle() && lent.lane.believes(now) && !self.paused;
        if free {
            reading.hand_over(lent, &mut self.app);
        }
    }

    /// The shard ended and the answer named no children. They may exist all the same: the stream's shards are listed.
    fn look_for_children(&mut self, lent: &mut Lent<'_>) {
        let Stage::Running(reading) = &mut self.stage else {
            return lent.cx.broken("children are looked for while a shard runs");
        };
        if !self.missing && lent.now() >= reading.next_look() {
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
                    Outcome::Applied(Reply::Kept) if given.alone => reading::kept_alone(),
                    Outcome::Applied(Reply::Kept) if given_back => reading::dropped(),
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
