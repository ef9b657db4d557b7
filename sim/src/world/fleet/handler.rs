//! The application: for every open shard a handler that takes its time, fails, hangs, and reports its progress.

use super::Fleet;
use super::handling::{Handling, failed, opened};
use super::kept::{Flushing, Unfinished, tell_done, tell_processed};
use super::poison::{Aside, SettingAside};
use super::stopped::Told;
use crate::faults::Deed;
use crate::names::shard_of;
use crate::oracles::{Fact, LifeNo, ShardNo, Time};
use crate::world::chances::Chances;
use crate::world::context::Context;
use crate::world::heap::WorkerEvent;
use crate::world::request::Request;
use crate::world::services::Services;
use leasehold_engine::ids::{FencingToken, OpId};
use leasehold_engine::input::{Call, Outcome, Refusal, Reply, Why};
use leasehold_engine::output::{ConsumerOp, EndReason};
use leasehold_engine::position::Position;
use leasehold_engine::time::Mono;

/// One open shard at one worker.
#[derive(Clone, Debug)]
pub(super) struct Consumer {
    pub(super) token: FencingToken,
    /// Counts plans, so that a replaced plan is not executed.
    pub(super) run: u32,
    pub(super) stage: Stage,
    pub(super) unfinished: Unfinished,
    /// The time of the last batch given back by the application.
    pub(super) gave_back: Option<Time>,
}

#[derive(Clone, Debug)]
pub(super) enum Stage {
    Opening { op: OpId, told: Told },
    Flushing(Flushing),
    Idle,
    Handling(Handling),
    SettingAside(SettingAside),
}

struct Delivery {
    shard: ShardNo,
    token: FencingToken,
    batch: OpId,
    after: Option<Position>,
    alone: bool,
    valid_until: Mono,
}

impl Consumer {
    fn new(token: FencingToken, stage: Stage) -> Self {
        Self { token, run: 0, stage, unfinished: Unfinished::default(), gave_back: None }
    }
}

impl Fleet {
    /// A consumer operation of a worker. Returns the answer, if immediate.
    pub(in crate::world) fn consume(
        &mut self, cx: &mut Context, chances: &mut Chances, w: usize, (op, give_up): (OpId, Mono),
        consumer_op: ConsumerOp,
    ) -> Option<Outcome> {
        if self.workers[w].standstill.is_on() {
            self.ask_later(cx, w, (op, give_up), consumer_op);
            return None;
        }
        let life = self.workers[w].life;
        let alone = matches!(consumer_op, ConsumerOp::DeliverOne { .. });
        match consumer_op {
            ConsumerOp::Open { lease, token, .. } => {
                let Some(shard) = shard_of(&lease) else {
                    return Some(refusal());
                };
                cx.fact(Fact::OpenBegun { life, shard, token: token.0 });
                let delay = cx.draws().magnitude("open", op_key(op), 100, 20_000);
                let consumer = Consumer::new(token, Stage::Opening { op, told: Told::Nothing });
                self.workers[w].adapter.consumers.insert(shard, consumer);
                self.plan_handler(cx, w, shard, 0, cx.now() + delay);
            }
            ConsumerOp::SetAside { lease, token, batch, record: at, .. } => {
                let aside = Aside { lease, token, batch, at };
                return self.set_aside(cx, w, op, aside);
            }
            ConsumerOp::Deliver { lease, token, batch, after, valid_until, .. }
            | ConsumerOp::DeliverOne { lease, token, batch, after, valid_until, .. } => {
                let Some(shard) = shard_of(&lease) else {
                    return Some(refusal());
                };
                let give_up = self.workers[w].clock.when(give_up);
                let delivery = Delivery { shard, token, batch, after, alone, valid_until };
                return self.deliver(cx, chances, w, (op, give_up), delivery);
            }
            ConsumerOp::Flush { lease, token, why, .. } => self.flush(cx, w, (op, why), &lease, token),
            ConsumerOp::Abort { lease, token } => {
                self.stop_call(cx, w, &lease, token, Told::Aborted);
                self.note(cx, w, op);
            }
            ConsumerOp::TimeOut { lease, token, .. } => {
                self.stop_call(cx, w, &lease, token, Told::TimedOut);
                self.note(cx, w, op);
            }
            ConsumerOp::Close { lease, token, reason } => {
                if let Some(shard) = shard_of(&lease) {
                    self.close(cx, w, shard, token, reason);
                }
                self.note(cx, w, op);
            }
        }
        None
    }

    pub(super) fn note(&self, cx: &mut Context, w: usize, op: OpId) {
        self.plan(cx, w, cx.now() + 50, WorkerEvent::Noted { op: op.n });
    }

    pub(super) fn plan_handler(&self, cx: &mut Context, w: usize, shard: ShardNo, run: u32, at: Time) {
        self.plan(cx, w, at, WorkerEvent::Handler { shard, run });
    }

    fn deliver(
        &mut self, cx: &mut Context, chances: &mut Chances, w: usize, (op, give_up): (OpId, Time),
        delivery: Delivery,
    ) -> Option<Outcome> {
        let Delivery { shard, token, batch, after, alone, valid_until } = delivery;
        let now = cx.now();
        let Some(given) = self.given(cx, w, (shard, batch), after, alone) else {
            self.forget_records(cx, w, shard, token);
            return Some(refusal());
        };
        let (first, last) = (given.first, given.last);
        let site = self.site(w, Deed::Batch, Some(shard));
        let mut roll = cx.draws().roll("handle", site.key());
        let ordinary = roll.magnitude(100, cx.plan().faults.application.batch_us);
        let middle = roll.between(first, last.max(first));
        let mut handling = Handling::new((op, batch), &given, now + ordinary, give_up);
        handling.unordered = self.workers[w].adapter.low(shard, batch.n).is_some();
        let hits = match cx.is_healed() {
            true => Vec::new(),
            false if given.is_empty() => Vec::new(),
            false => chances.hit_batch(cx, site, &mut roll),
        };
        handling.hit(cx, &hits, given.up_to(middle));
        if self.workers[w].is_ours() {
            handling.poison(cx, shard, &given);
        }
        self.pause_shard(cx, w, shard, handling.pause_us);
        if handling.alone || !self.workers[w].is_ours() {
            // A single record is flushed at once, and foreign programs keep no batch.
            handling.keeps_us = 0;
        }
        let worker = &mut self.workers[w];
        cx.fact(Fact::Delivered {
            life: worker.life,
            shard,
            token: token.0,
            first,
            last,
            local: worker.clock.mono(now),
            valid_until,
        });
        given.tell_left_out(cx, worker.life, shard, token);
        let at = match handling.report_at {
            0 => handling.ends,
            _ => now + (handling.ends - now) / 2,
        };
        let consumers = &mut worker.adapter.consumers;
        let consumer = consumers.entry(shard).or_insert(Consumer::new(token, Stage::Idle));
        consumer.run += 1;
        consumer.unfinished.given(batch, given.whole);
        consumer.stage = Stage::Handling(handling);
        let run = consumer.run;
        self.plan_handler(cx, w, shard, run, at);
        None
    }

    /// The records of a batch are no longer in memory: the engine reads all records after the first gap again.
    fn forget_records(&mut self, cx: &mut Context, w: usize, shard: ShardNo, token: FencingToken) {
        let life = self.workers[w].life;
        if let Some(consumer) = self.workers[w].adapter.consumers.get_mut(&shard) {
            consumer.unfinished.forget();
            let token = token.0;
            cx.fact(Fact::GivenBack { life, shard, token });
        }
    }

    pub(super) fn close(
        &mut self, cx: &mut Context, w: usize, shard: ShardNo, token: FencingToken, reason: EndReason,
    ) {
        let (life, local) = (self.workers[w].life, self.workers[w].clock.mono(cx.now()));
        cx.fact(Fact::Closed { life, shard, token: token.0, reason, local });
        let adapter = &mut self.workers[w].adapter;
        if adapter.consumers.get(&shard).is_some_and(|consumer| consumer.token == token) {
            adapter.consumers.remove(&shard);
            adapter.forget(shard);
        }
    }

    /// The next step of a handler.
    pub(in crate::world) fn step_handler(
        &mut self, cx: &mut Context, services: &Services, w: usize, shard: ShardNo, run: u32,
    ) {
        self.ask_fence(cx, w, shard);
        let now = cx.now();
        let worker = &mut self.workers[w];
        let life = worker.life;
        let consumer = worker.adapter.consumers.get_mut(&shard);
        let Some(consumer) = consumer.filter(|known| known.run == run) else {
            return;
        };
        let token = consumer.token;
        match &mut consumer.stage {
            Stage::Idle => {}
            Stage::Opening { op, told } => {
                let (op, told) = (*op, *told);
                consumer.stage = Stage::Idle;
                let confirms = worker.peer.is_none() && cx.draws().below("confirms-end", op_key(op), 4) == 0;
                let (fact, outcome) = opened((told, confirms), life, shard, token);
                cx.fact(fact);
                if outcome == Outcome::Applied(Reply::ConfirmsEnd) {
                    let token = token.0;
                    cx.fact(Fact::ConfirmsEnd { life, shard, token });
                }
                cx.request(Request::Done { w, op, outcome });
            }
            Stage::Flushing(flushing) => {
                let flushing = *flushing;
                consumer.stage = Stage::Idle;
                self.end_flush(cx, w, shard, flushing);
            }
            Stage::SettingAside(aside) => {
                let aside = *aside;
                consumer.stage = Stage::Idle;
                self.end_set_aside(cx, w, shard, aside);
            }
            Stage::Handling(handling) if now < handling.ends && handling.report_at > 0 => {
                let (record, checkpoint, ends) = (handling.report_at, handling.checkpoint, handling.ends);
                handling.report_at = 0;
                let (batch, first, counts) = (handling.batch, handling.first, !handling.unordered);
                // A record trimmed meanwhile has no position any more: the handler does not report the record, so it
                // counts as not processed.
                let position = services.position(cx, shard, record);
                let done = position.filter(|_| counts && consumer.unfinished.holds(batch));
                let reached = done.and_then(|_| consumer.unfinished.processed(batch, record));
                self.plan_handler(cx, w, shard, run, ends);
                let lease = cx.names_mut().shard(shard).to_lease();
                let mut calls = Vec::new();
                if let Some(through) = position {
                    if done.is_some() {
                        tell_done(cx, life, shard, token, (first, record, reached));
                    }
                    let lease = lease.clone();
                    calls.push(Call::Processed { lease, token, through });
                }
                if checkpoint {
                    calls.push(Call::Checkpoint { lease, token });
                }
                cx.request(Request::Calls { w, life, calls });
            }
            Stage::Handling(handling) => {
                let handling = handling.clone();
                consumer.stage = Stage::Idle;
                let at = services.position(cx, shard, handling.only.unwrap_or(handling.last));
                let outcome = handling.outcome(cx, at);
                if handling.is_done(&outcome) {
                    if consumer.unfinished.holds(handling.batch) {
                        let reached = consumer.unfinished.processed(handling.batch, handling.last);
                        let told = (handling.first, handling.last, reached);
                        tell_done(cx, life, shard, token, told);
                    } else if consumer.unfinished.is_over(handling.last) {
                        tell_processed(cx, life, shard, token, handling.last);
                    }
                } else if matches!(outcome, Outcome::Applied(Reply::Kept)) {
                    let keeps = (handling.keeps_us, handling.gives_back);
                    let batch = (handling.batch, handling.first, handling.last);
                    self.keep(cx, w, shard, batch, keeps);
                } else if is_gone(&outcome) {
                    consumer.unfinished.forget();
                    let token = token.0;
                    cx.fact(Fact::GivenBack { life, shard, token });
                }
                tell_failed(cx, life, shard, token, &handling, &outcome);
                end_handling(cx, services, (w, life), (shard, token), &handling, outcome);
            }
        }
    }
}

/// Whether the engine reads all records after the first gap again.
fn is_gone(outcome: &Outcome) -> bool {
    matches!(outcome, Outcome::Refused(refusal) if refusal.why == Why::Gone)
}

/// Tells the oracles that a handler failed with one record.
fn tell_failed(
    cx: &mut Context, life: LifeNo, shard: ShardNo, token: FencingToken, handling: &Handling,
    outcome: &Outcome,
) {
    if let Outcome::Refused(Refusal { why: Why::RecordFailed(_), .. }) = outcome {
        cx.fact(Fact::RecordFailed {
            life,
            shard,
            token: token.0,
            record: handling.only.unwrap_or(handling.last),
        });
    }
}

/// A handler has returned: its worker receives the outcome, and further calls of the application.
fn end_handling(
    cx: &mut Context, services: &Services, (w, life): (usize, LifeNo),
    (shard, token): (ShardNo, FencingToken), handling: &Handling, outcome: Outcome,
) {
    cx.fact(Fact::HandlerEnded { life, shard, token: token.0 });
    let ended_well = handling.is_done(&outcome);
    let op = handling.op;
    cx.request(Request::Done { w, op, outcome });
    if !handling.says_again && !handling.stale_call {
        return;
    }
    let lease = cx.names_mut().shard(shard).to_lease();
    let through = services.position(cx, shard, handling.first);
    let processed =
        |token: FencingToken| through.map(|through| Call::Processed { lease: lease.clone(), token, through });
    if handling.says_again && ended_well {
        let calls = processed(token).into_iter().chain(processed(token)).collect();
        cx.request(Request::Calls { w, life, calls });
    }
    if handling.stale_call {
        let old = FencingToken(token.0.saturating_sub(1));
        let checkpoint = Call::Checkpoint { lease: lease.clone(), token };
        let calls = processed(old).into_iter().chain([checkpoint]).collect();
        cx.request(Request::Calls { w, life, calls });
    }
}

/// The answer to an operation on data absent from the adapter.
pub(super) fn refusal() -> Outcome {
    failed(Why::Gone, "there is no such batch")
}

/// A number unique among all commands of the world.
pub(super) fn op_key(op: OpId) -> u64 {
    op.life.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ op.n
}
