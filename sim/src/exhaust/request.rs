//! Workers' requests. Requests without a duration are done at once; the rest is under way until a step completes the
//! request.
//!
//! Requests for rows and the handling of a batch are under way. All other requests are read-only, or between the
//! adapter and its application, and get an answer at once. Examples are tables and streams described, shards listed,
//! records read, shards opened and closed.

use super::world::{World, shard_name};
use crate::draws::Draws;
use crate::names::{record_of, shard_of};
use crate::oracles::fact::{Ask, How};
use crate::oracles::{Fact, LifeNo, ShardNo, Time};
use crate::streams::Streams;
use crate::world::net::ask::{rows_in, table_ask, verb};
use crate::world::net::stream::stream_request;
use crate::world::services::stream::{Carry, Sight};
use crate::world::services::table::Reading;
use leasehold_engine::ids::{FencingToken, OpId};
use leasehold_engine::input::{Body, Cause, Outcome, Refusal, Reply, Why};
use leasehold_engine::internals::Digest;
use leasehold_engine::output::{Command, ConsumerOp, Effect, StreamOp, TableOp};
use leasehold_engine::row::RowRead;
use std::collections::VecDeque;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

/// A request under way.
#[derive(Clone)]
pub(super) struct Flight {
    pub(super) worker: usize,
    life: LifeNo,
    op: OpId,
    pub(super) what: What,
    pub(super) give_up: Time,
    /// The times of execution and answer are unknown. All other requests are served before time goes on.
    pub(super) slow: bool,
    /// No worker waits for the request any more.
    pub(super) orphan: bool,
    /// The request was executed, with this outcome as its answer.
    pub(super) outcome: Option<Outcome>,
}

/// The content of a request.
#[derive(Clone)]
pub(super) enum What {
    /// A request for rows.
    Rows(TableOp),
    /// A handler receives a batch: records from the first to the last.
    Handle { shard: ShardNo, token: FencingToken, first: u64, last: u64 },
}

/// The request itself follows from the engine's state.
impl Hash for Flight {
    fn hash<H: Hasher>(&self, state: &mut H) {
        let outcome = self.outcome.as_ref().map(|outcome| {
            let mut digest = Digest::new();
            digest.absorb(outcome);
            digest.value()
        });
        (self.life, self.op.n, self.slow, self.orphan, outcome).hash(state);
    }
}

impl Flight {
    /// Whether the request may change a row when executed.
    pub(super) fn writes(&self) -> bool {
        matches!(self.what, What::Rows(TableOp::Write(_)))
    }

    pub(super) fn is_handler(&self) -> bool {
        matches!(self.what, What::Handle { .. })
    }

    /// A description of the request.
    pub(super) fn describe(&self) -> String {
        match &self.what {
            What::Rows(TableOp::Write(change)) => format!("{} {}", change.verb(), shard_name(change.key())),
            What::Rows(TableOp::Read { key }) => format!("read {}", shard_name(key)),
            What::Rows(_) => "scan".into(),
            What::Handle { shard, first, last, .. } => {
                format!("handle records {first} to {last} of shard {shard}")
            }
        }
    }

    fn ask(&self) -> (Ask, Option<ShardNo>) {
        match &self.what {
            What::Rows(op) => {
                let (ask, about, ..) = table_ask(op);
                (ask, about)
            }
            What::Handle { shard, .. } => (Ask::Setup, Some(*shard)),
        }
    }
}

impl World {
    /// Carries out a command, or sends it on its way.
    pub(super) fn command(&mut self, w: usize, command: Command, bodies: &mut VecDeque<Body>) {
        let Command { op, give_up, effect } = command;
        let give_up = self.workers[w].clock.when(give_up);
        let outcome = match effect {
            Effect::Consumer(consumer_op) => self.consume(w, op, give_up, consumer_op, bodies),
            Effect::Table(table_op @ (TableOp::Describe | TableOp::Create)) => {
                self.asked(w, op, &table_op);
                let now = self.now;
                let outcome = Arc::make_mut(&mut self.table).execute(now, &table_op, Reading::default());
                self.answered(w, op, (Ask::Setup, None), &outcome);
                Some(outcome)
            }
            Effect::Table(table_op) => {
                self.asked(w, op, &table_op);
                self.send(w, op, give_up, What::Rows(table_op));
                None
            }
            // The workers of a scope read one stream.
            Effect::Stream(stream_op) | Effect::StreamOf(_, stream_op) => {
                Some(self.read_stream(w, op, stream_op))
            }
        };
        if let Some(outcome) = outcome {
            bodies.push_back(Body::Done { op, outcome });
        }
    }

    fn send(&mut self, w: usize, op: OpId, give_up: Time, what: What) {
        let life = self.workers[w].life;
        let at = self
            .flights
            .partition_point(|flight| (flight.worker, flight.life, flight.op.n) < (w, life, op.n));
        let flight = Flight { worker: w, life, op, what, give_up, slow: false, orphan: false, outcome: None };
        self.flights.insert(at, Arc::new(flight));
    }

    fn asked(&mut self, w: usize, op: OpId, table_op: &TableOp) {
        let (ask, about, guard, leaves) = table_ask(table_op);
        let worker = &self.workers[w];
        let (life, local) = (worker.life, worker.clock.mono(self.now));
        self.fact(&Fact::Asked { life, ask, about, op: op.n, guard, leaves, local });
    }

    fn answered(&mut self, w: usize, op: OpId, (ask, about): (Ask, Option<ShardNo>), outcome: &Outcome) {
        let life = self.workers[w].life;
        self.show(life, outcome);
        let how = How::of(outcome);
        self.fact(&Fact::Answered { life, ask, about, op: op.n, how });
        if let Outcome::Applied(Reply::Page(page)) = outcome
            && page.next.is_none()
        {
            self.fact(&Fact::ScanEnded { life });
        }
    }

    /// Shows the rows of an answer to the oracles.
    fn show(&mut self, life: LifeNo, outcome: &Outcome) {
        let (rows, scanned) = rows_in(outcome);
        for row in rows.iter().filter_map(RowRead::lease) {
            if let Some(shard) = shard_of(&row.key) {
                let row = self.truth.names.row(row);
                self.fact(&Fact::Shown { life, shard, row, scanned });
            }
        }
    }

    fn read_stream(&mut self, w: usize, op: OpId, stream_op: StreamOp) -> Outcome {
        let now = self.now;
        let worker = &self.workers[w];
        let (life, local) = (worker.life, worker.clock.mono(now));
        let source = Arc::make_mut(&mut self.source);
        let names = &mut Arc::make_mut(&mut self.truth).names;
        let (request, ask, about) = stream_request(&worker.adapter, (Streams::default(), 0), stream_op);
        let (outcome, carry) = request.map_or_else(
            || (gone(), Carry::Nothing),
            |request| {
                let mut roll = Draws::new(0).roll("list", 0);
                let sight = Sight::new(&mut roll, None);
                request.answer(source, now, false, names, sight)
            },
        );
        self.fact(&Fact::Asked { life, ask, about, op: op.n, guard: None, leaves: None, local });
        if let Some(fact) = carry.fetched(life, &outcome) {
            self.fact(&fact);
        }
        Arc::make_mut(&mut self.workers[w]).adapter.keep(op.n, carry);
        self.answered(w, op, (ask, about), &outcome);
        outcome
    }

    fn consume(
        &mut self, w: usize, op: OpId, give_up: Time, consumer_op: ConsumerOp, bodies: &mut VecDeque<Body>,
    ) -> Option<Outcome> {
        let worker = &self.workers[w];
        let (life, local) = (worker.life, worker.clock.mono(self.now));
        match consumer_op {
            ConsumerOp::Open { lease, token, .. } => {
                let (shard, token) = (shard_of(&lease)?, token.0);
                self.fact(&Fact::OpenBegun { life, shard, token });
                self.fact(&Fact::OpenDone { life, shard, token });
            }
            ConsumerOp::Deliver { lease, token, batch, after, valid_until, .. } => {
                let shard = shard_of(&lease)?;
                let Some((first, last)) = worker.adapter.batch(shard, batch.n) else {
                    return Some(gone());
                };
                let first = after.and_then(record_of).map_or(first, |done| first.max(done + 1));
                self.fact(&Fact::Delivered { life, shard, token: token.0, first, last, local, valid_until });
                self.send(w, op, give_up, What::Handle { shard, token, first, last });
                return None;
            }
            // No state to keep here, and no operation fails often enough.
            ConsumerOp::Flush { .. } | ConsumerOp::DeliverOne { .. } | ConsumerOp::SetAside { .. } => {}
            // No operation takes long here.
            ConsumerOp::TimeOut { .. } => {}
            ConsumerOp::Abort { lease, token } => {
                let shard = shard_of(&lease)?;
                self.fact(&Fact::Aborted { life, shard, token: token.0 });
                let running = self.flights.iter().position(|flight| {
                    flight.life == life
                        && matches!(flight.what, What::Handle { shard: of, token: by, .. } if (of, by) == (shard, token))
                });
                if let Some(index) = running {
                    let flight = self.flights.remove(index);
                    self.fact(&Fact::HandlerEnded { life, shard, token: token.0 });
                    bodies
                        .push_back(Body::Done { op: flight.op, outcome: Outcome::Unknown(Cause::Cancelled) });
                }
            }
            ConsumerOp::Close { lease, token, reason } => {
                let shard = shard_of(&lease)?;
                self.fact(&Fact::Closed { life, shard, token: token.0, reason, local });
                Arc::make_mut(&mut self.workers[w]).adapter.forget(shard);
            }
        }
        Some(Outcome::Applied(Reply::Done))
    }

    /// The service executes a request.
    pub(super) fn execute(&mut self, index: usize) {
        let now = self.now;
        let flight = Arc::make_mut(&mut self.flights[index]);
        let What::Rows(op) = &flight.what else { return };
        let outcome = Arc::make_mut(&mut self.table).execute(now, op, Reading::default());
        let written = match (op, &outcome) {
            (TableOp::Write(change), Outcome::Applied(_)) => {
                Some((change.key().clone(), verb(change), flight.life))
            }
            _ => None,
        };
        flight.outcome = Some(outcome);
        if flight.orphan {
            self.flights.remove(index);
        }
        if let Some((key, verb, life)) = written {
            self.row_written(&key, verb, life);
        }
    }

    /// Completes a request: the worker receives the outcome so far of the service or handler.
    pub(super) fn answer(&mut self, index: usize) {
        let flight = self.flights.remove(index);
        let (w, op) = (flight.worker, flight.op);
        let outcome = match flight.what {
            What::Handle { shard, token, last, .. } => {
                let (life, token) = (flight.life, token.0);
                self.fact(&Fact::Processed { life, shard, token, through: last });
                self.fact(&Fact::HandlerEnded { life, shard, token });
                Outcome::Applied(Reply::Processed)
            }
            What::Rows(_) => {
                let outcome = flight.outcome.clone().unwrap_or(Outcome::Unknown(Cause::Timeout));
                self.answered(w, op, flight.ask(), &outcome);
                outcome
            }
        };
        self.tell(|_| {
            format!("w{w} is told of its request to {}: {}", flight.describe(), How::of(&outcome).said())
        });
        self.feed(w, Body::Done { op, outcome });
    }

    /// Ends the wait for a request: the worker receives `Unknown`, and the request may still be executed.
    pub(super) fn give_up(&mut self, index: usize) {
        let flight = Arc::make_mut(&mut self.flights[index]);
        let (w, op, ask) = (flight.worker, flight.op, flight.ask());
        let dead_letter = flight.writes() && flight.outcome.is_none();
        flight.orphan = true;
        let what = flight.describe();
        if !dead_letter {
            self.flights.remove(index);
        }
        self.tell(|_| format!("w{w} waits no longer for its request to {what}"));
        let outcome = Outcome::Unknown(Cause::Timeout);
        self.answered(w, op, ask, &outcome);
        self.feed(w, Body::Done { op, outcome });
    }

    /// Leaves a dead worker's requests without a receiver. Writes not yet executed may still be executed.
    pub(super) fn orphan(&mut self, w: usize) {
        let life = self.workers[w].life;
        self.flights.retain_mut(|flight| {
            if flight.life != life {
                return true;
            }
            let stays = flight.writes() && flight.outcome.is_none();
            if stays {
                let flight = Arc::make_mut(flight);
                (flight.slow, flight.orphan) = (true, true);
            }
            stays
        });
    }
}

/// The adapter no longer has the object of the request.
fn gone() -> Outcome {
    Outcome::Refused(Refusal { why: Why::Gone, current: None, detail: String::new() })
}
