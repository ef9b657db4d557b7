//! What the application and the stream answer to the owner of a shard.

use super::Core;
use super::ctx::Request;
use super::stage::Stage;
use super::tenure::{AppFlight, Tenure};
use crate::ids::OpId;
use crate::input::{Cause, Outcome, Reply, Why};
use crate::mutant::Mutant;
use crate::notice::Notice;
use crate::position::Checkpoint;
use crate::reader::{self, Event, Reader, Start};
use crate::time::{Mono, Span};

impl Core {
    /// An application command ended.
    pub(crate) fn app_done(&mut self, ix: u32, op: OpId, outcome: Outcome) {
        let Some(mut tenure) = self.view.get_mut(ix).and_then(|lease| lease.tenure.take()) else {
            return;
        };
        if let Some((_, flight)) = tenure.app.filter(|(expected, _)| *expected == op) {
            tenure.app = None;
            match flight {
                AppFlight::Open => self.opened(ix, &mut tenure, outcome),
                AppFlight::Deliver { batch } => self.delivered(ix, &mut tenure, batch, outcome),
                AppFlight::Close => {
                    if let Stage::Closing(reason) = tenure.stage {
                        tenure.stage.go(Stage::Closed(reason));
                        let (lease, token) = (self.key(ix), tenure.token);
                        self.ctx.tell(Notice::Closed { lease, token, reason });
                    }
                }
            }
        }
        if let Some(lease) = self.view.get_mut(ix) {
            lease.tenure = Some(tenure);
        }
        self.step(ix);
    }

    fn opened(&mut self, ix: u32, tenure: &mut Tenure, outcome: Outcome) {
        let now = self.ctx.now;
        let applied = matches!(outcome, Outcome::Applied(_));
        if applied {
            tenure.open_failures = 0;
            tenure.opened = true;
            let (lease, token, from) = (self.key(ix), tenure.token, tenure.durable);
            self.ctx.tell(Notice::Opened { lease, token, from });
        }
        if tenure.stage != Stage::Opening {
            return;
        }
        if applied {
            tenure.movement.moved(now);
            tenure.stage.go(Stage::Running);
            let from = match self.ctx.planted.is(Mutant::StartsOver) {
                true => Checkpoint::TrimHorizon,
                false => tenure.durable,
            };
            tenure.reader = Start::from(from, self.ctx.config.initial_position)
                .map(|start| Box::new(Reader::new(start, now)));
            return;
        }
        tenure.open_failures += 1;
        let lease = self.key(ix);
        let failures = tenure.open_failures;
        let pause = self
            .ctx
            .backoff("open", lease.as_str(), failures)
            .max(self.ctx.config.handler_backoff);
        tenure.look_at = now + pause;
        tenure.stage.go(Stage::Waiting);
        let detail = super::describe(&outcome);
        self.ctx.tell(Notice::HandlerFailed {
            lease,
            attempt: failures,
            again_in: self.exit(ix, tenure).is_none().then_some(pause),
            detail,
        });
    }

    fn delivered(&mut self, ix: u32, tenure: &mut Tenure, batch: OpId, outcome: Outcome) {
        let now = self.ctx.now;
        let Some(reader) = &mut tenure.reader else { return };
        let outcome = match outcome {
            Outcome::Refused(refusal)
                if refusal.why == Why::HandlerFailed && self.ctx.planted.is(Mutant::SkipFailedBatch) =>
            {
                Outcome::Applied(Reply::Processed)
            }
            outcome => outcome,
        };
        match outcome {
            Outcome::Applied(_) => {
                reader.processed(batch);
                tenure.processed = reader.watermark().or(tenure.processed);
                tenure.attempts = 0;
                tenure.deliver_after = Mono(0);
                tenure.movement.moved(now);
                return;
            }
            Outcome::Refused(refusal) if refusal.why == Why::Gone => {
                // The records are not in memory any more: they are read again.
                reader.returned(batch);
                reader.rewind();
                tenure.attempts = 0;
                return;
            }
            _ => {}
        }
        reader.returned(batch);
        match outcome {
            // Stopped by us, or never begun.
            Outcome::NotSent(Cause::Cancelled) | Outcome::Unknown(Cause::Cancelled) => {}
            other => {
                let lease = self.key(ix);
                let attempt = tenure.attempts;
                let pause = self
                    .ctx
                    .backoff("handler", lease.as_str(), attempt)
                    .max(self.ctx.config.handler_backoff);
                if !self.ctx.planted.is(Mutant::NoHandlerPause) {
                    tenure.deliver_after = now + pause;
                }
                let detail = super::describe(&other);
                let again = tenure.stage == Stage::Running && self.exit(ix, tenure).is_none();
                self.ctx.tell(Notice::HandlerFailed {
                    lease,
                    attempt,
                    again_in: again.then_some(pause),
                    detail,
                });
            }
        }
    }

    /// A stream command of a reader ended.
    pub(crate) fn read_done(&mut self, ix: u32, op: OpId, outcome: Outcome) {
        let now = self.ctx.now;
        let Some(mut tenure) = self.view.get_mut(ix).and_then(|lease| lease.tenure.take()) else {
            return;
        };
        let outcome = if self.ctx.planted.is(Mutant::EmptyIsEnd) {
            empty_is_end(outcome)
        } else {
            outcome
        };
        if let Some(reader) = &mut tenure.reader {
            let key = self.view.get(ix).map(|lease| lease.key.clone());
            let context = reader::Ctx {
                cfg: &self.ctx.config.reader,
                retry_min: self.ctx.config.retry_min,
                retry_max: self.ctx.config.retry_max,
                seed: self.ctx.seed,
                subject: key.as_ref().map_or("", |key| key.as_str()),
            };
            let event = reader.fetched(op, now, &outcome, &context);
            if let Outcome::Applied(Reply::Records(answer)) = &outcome {
                tenure.movement.fetched(answer, reader.buffered_batches(), now);
                if answer.count == 0 && self.ctx.planted.is(Mutant::StallForgotten) {
                    tenure.movement.moved(now);
                }
            }
            match event {
                Some(Event::ShardMissing) => {
                    tenure.missing = true;
                    self.ctx.request(Request::DoubtStream);
                }
                Some(Event::Trimmed { at, first }) => {
                    let detail =
                        format!("expected the record {at} or the one after it, found {first} as the first");
                    self.ctx.tell(Notice::Trimmed {
                        lease: self.key(ix),
                        detail,
                    });
                }
                Some(Event::EndOfShard) | None => {}
                Some(event) => {
                    // The position may be of an earlier stream of this name.
                    if matches!(event, Event::BadPosition { tries, .. } if tries.is_power_of_two()) {
                        self.ctx.request(Request::DoubtStream);
                    }
                    let (how, again_in) = trouble(&event, &outcome);
                    let lease = self.key(ix);
                    self.ctx.tell(Notice::Trouble {
                        op,
                        what: format!("read {lease}"),
                        lease: Some(lease),
                        how,
                        again_in,
                    });
                }
            }
        }
        if let Some(lease) = self.view.get_mut(ix) {
            lease.tenure = Some(tenure);
        }
        self.step(ix);
    }
}

/// A planted bug: an empty answer at the tip as the end of the shard.
fn empty_is_end(mut outcome: Outcome) -> Outcome {
    if let Outcome::Applied(Reply::Records(fetched)) = &mut outcome
        && fetched.count == 0
        && fetched.behind_ms == 0
    {
        fetched.end.get_or_insert_default();
    }
    outcome
}

/// A reader's event as words, and how long it pauses.
fn trouble(event: &Event, outcome: &Outcome) -> (String, Span) {
    match event {
        Event::Trouble { how, again_in } => (how.to_string(), *again_in),
        Event::Denied { again_in } => {
            let said = super::describe(outcome);
            (
                format!("{said}; grant the permission or renew the credentials"),
                *again_in,
            )
        }
        Event::BadPosition { at, tries, again_in } => (
            format!(
                "the service calls position {at} invalid ({tries} times in a row); check the lease's checkpoint"
            ),
            *again_in,
        ),
        other => (format!("{other:?}"), Span::ZERO),
    }
}
