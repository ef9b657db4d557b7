//! The application: for every open shard a handler that takes its time, fails, hangs, and reports how far it is.

use super::Fleet;
use crate::faults::{Chance, Deed};
use crate::names::{record_of, shard_of};
use crate::oracles::{Fact, LifeNo, ShardNo, Time};
use crate::world::chances::Chances;
use crate::world::context::Context;
use crate::world::heap::What;
use crate::world::request::Request;
use crate::world::services::Services;
use leasehold_engine::ids::{FencingToken, OpId};
use leasehold_engine::input::{Call, Cause, Outcome, Refusal, Reply, Why};
use leasehold_engine::output::{ConsumerOp, EndReason};
use leasehold_engine::position::Position;
use leasehold_engine::time::Mono;

/// One open shard at one worker.
#[derive(Clone, Debug)]
pub(super) struct Consumer {
    token: FencingToken,
    /// Counts what was planned, so that what was planned anew is not done twice.
    run: u32,
    stage: Stage,
}

#[derive(Clone, Debug)]
enum Stage {
    Opening { op: OpId, aborted: bool },
    Idle,
    Handling(Handling),
}

#[derive(Clone, Debug)]
struct Handling {
    op: OpId,
    first: u64,
    last: u64,
    /// Says so when it is here, if not 0.
    report_at: u64,
    checkpoint: bool,
    fails: bool,
    stale_call: bool,
    says_again: bool,
    /// It takes no notice of an abort and finishes.
    deaf: bool,
    ends: Time,
    deaf_until: Time,
    give_up: Time,
    aborted: bool,
    /// The application pauses the shard for so long, in µs; 0: it does not.
    pause_us: u64,
}

struct Delivery {
    shard: ShardNo,
    token: FencingToken,
    batch: OpId,
    after: Option<Position>,
    valid_until: Mono,
}

impl Consumer {
    fn new(token: FencingToken, stage: Stage) -> Self {
        Self { token, run: 0, stage }
    }
}

impl Handling {
    fn new(op: OpId, (first, last): (u64, u64), ends: Time, give_up: Time) -> Self {
        Self {
            op,
            first,
            last,
            report_at: 0,
            checkpoint: false,
            fails: false,
            stale_call: false,
            says_again: false,
            deaf: false,
            ends,
            deaf_until: 0,
            give_up,
            aborted: false,
            pause_us: 0,
        }
    }

    /// What chance makes of a batch that would take so long; `middle` is one of its records.
    fn hit(&mut self, cx: &Context, chances: &[Chance], middle: u64) {
        let mut partial = false;
        for &chance in chances {
            match chance {
                Chance::HandlerSlow { by_us } => self.ends = self.ends.saturating_add(by_us),
                Chance::HandlerHangs { for_us } => {
                    self.ends = self.ends.saturating_add(for_us);
                    self.deaf_until = self.ends;
                }
                Chance::HandlerDeaf { for_us } => {
                    self.ends = self.ends.saturating_add(for_us);
                    self.deaf = true;
                }
                Chance::SaysAgain => self.says_again = true,
                Chance::HandlerFails => self.fails = true,
                Chance::Partial => partial = true,
                Chance::Checkpoint => self.checkpoint = true,
                Chance::StaleCall => self.stale_call = true,
                Chance::ShardPaused { for_us } => self.pause_us = for_us,
                _ => {}
            }
        }
        debug_assert!(self.ends >= cx.now(), "a handler ends after it began");
        self.report_at = if partial || self.fails { middle } else { 0 };
        self.ends = self.ends.min(self.give_up);
    }
}

impl Fleet {
    /// A consumer operation of a worker. Gives the answer, if there is one at once.
    pub(in crate::world) fn consume(
        &mut self,
        cx: &mut Context,
        chances: &mut Chances,
        w: usize,
        (op, give_up): (OpId, Mono),
        consumer_op: ConsumerOp,
    ) -> Option<Outcome> {
        let life = self.workers[w].life;
        match consumer_op {
            ConsumerOp::Open { lease, token, .. } => {
                let Some(shard) = shard_of(&lease) else {
                    return Some(refusal());
                };
                cx.fact(Fact::OpenBegun {
                    life,
                    shard,
                    token: token.0,
                });
                let delay = cx.draws().magnitude("open", op_key(op), 100, 20_000);
                let consumer = Consumer::new(token, Stage::Opening { op, aborted: false });
                self.workers[w].adapter.consumers.insert(shard, consumer);
                self.plan_handler(cx, w, shard, 0, cx.now() + delay);
            }
            ConsumerOp::Deliver {
                lease,
                token,
                batch,
                after,
                valid_until,
                ..
            } => {
                let Some(shard) = shard_of(&lease) else {
                    return Some(refusal());
                };
                let give_up = self.workers[w].clock.when(give_up);
                let delivery = Delivery {
                    shard,
                    token,
                    batch,
                    after,
                    valid_until,
                };
                return self.deliver(cx, chances, w, (op, give_up), delivery);
            }
            ConsumerOp::Abort { lease, token } => {
                if let Some(shard) = shard_of(&lease) {
                    self.abort(cx, w, shard, token);
                }
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

    fn note(&self, cx: &mut Context, w: usize, op: OpId) {
        let generation = self.workers[w].generation;
        let what = What::Noted {
            worker: w as u16,
            generation,
            op: op.n,
        };
        cx.push(cx.now() + 50, what);
    }

    fn plan_handler(&self, cx: &mut Context, w: usize, shard: ShardNo, run: u32, at: Time) {
        let generation = self.workers[w].generation;
        let what = What::Handler {
            worker: w as u16,
            generation,
            shard,
            run,
        };
        cx.push(at, what);
    }

    fn deliver(
        &mut self,
        cx: &mut Context,
        chances: &mut Chances,
        w: usize,
        (op, give_up): (OpId, Time),
        delivery: Delivery,
    ) -> Option<Outcome> {
        let Delivery {
            shard,
            token,
            batch,
            after,
            valid_until,
        } = delivery;
        let now = cx.now();
        let Some((first, last)) = self.workers[w].adapter.batch(shard, batch.n) else {
            return Some(refusal());
        };
        let first = after
            .and_then(record_of)
            .map_or(first, |done| first.max(done + 1));
        let site = self.site(w, Deed::Batch, Some(shard));
        let mut roll = cx.draws().roll("handle", site.key());
        let ordinary = roll.magnitude(100, cx.plan().faults.application.batch_us);
        let middle = roll.between(first, last.max(first));
        let mut handling = Handling::new(op, (first, last), now + ordinary, give_up);
        let hits = match cx.is_healed() {
            true => Vec::new(),
            false => chances.hit_batch(cx, site, &mut roll),
        };
        handling.hit(cx, &hits, middle);
        self.pause_shard(cx, w, shard, handling.pause_us);
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
        let at = match handling.report_at {
            0 => handling.ends,
            _ => now + (handling.ends - now) / 2,
        };
        let consumers = &mut worker.adapter.consumers;
        let consumer = consumers
            .entry(shard)
            .or_insert(Consumer::new(token, Stage::Idle));
        consumer.run += 1;
        consumer.stage = Stage::Handling(handling);
        let run = consumer.run;
        self.plan_handler(cx, w, shard, run, at);
        None
    }

    fn abort(&mut self, cx: &mut Context, w: usize, shard: ShardNo, token: FencingToken) {
        let (now, abort_us, life) = (
            cx.now(),
            cx.plan().faults.application.abort_us,
            self.workers[w].life,
        );
        cx.fact(Fact::Aborted {
            life,
            shard,
            token: token.0,
        });
        let Some(consumer) = self.workers[w]
            .adapter
            .consumers
            .get_mut(&shard)
            .filter(|known| known.token == token)
        else {
            return;
        };
        match &mut consumer.stage {
            Stage::Opening { aborted, .. } => *aborted = true,
            Stage::Idle => {}
            Stage::Handling(handling) => {
                if handling.deaf {
                    return;
                }
                handling.aborted = true;
                if handling.deaf_until > now {
                    return;
                }
                handling.report_at = 0;
                handling.ends = handling.ends.min(now + abort_us);
                consumer.run += 1;
                let (run, ends) = (consumer.run, handling.ends);
                self.plan_handler(cx, w, shard, run, ends);
            }
        }
    }

    fn close(&mut self, cx: &mut Context, w: usize, shard: ShardNo, token: FencingToken, reason: EndReason) {
        let (life, local) = (self.workers[w].life, self.workers[w].clock.mono(cx.now()));
        cx.fact(Fact::Closed {
            life,
            shard,
            token: token.0,
            reason,
            local,
        });
        let adapter = &mut self.workers[w].adapter;
        if adapter
            .consumers
            .get(&shard)
            .is_some_and(|consumer| consumer.token == token)
        {
            adapter.consumers.remove(&shard);
            adapter.forget(shard);
        }
    }

    /// The next step of a handler.
    pub(in crate::world) fn step_handler(
        &mut self,
        cx: &mut Context,
        services: &Services,
        w: usize,
        shard: ShardNo,
        run: u32,
    ) {
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
            Stage::Opening { op, aborted } => {
                let (op, aborted) = (*op, *aborted);
                consumer.stage = Stage::Idle;
                let (fact, outcome) = opened(aborted, life, shard, token);
                cx.fact(fact);
                cx.request(Request::Done { w, op, outcome });
            }
            Stage::Handling(handling) if now < handling.ends && handling.report_at > 0 => {
                let (record, checkpoint, ends) = (handling.report_at, handling.checkpoint, handling.ends);
                handling.report_at = 0;
                self.plan_handler(cx, w, shard, run, ends);
                let lease = cx.names_mut().shard(shard).to_lease();
                let mut calls = Vec::new();
                if let Some(through) = services.position(shard, record) {
                    cx.fact(Fact::Processed {
                        life,
                        shard,
                        token: token.0,
                        through: record,
                    });
                    let lease = lease.clone();
                    calls.push(Call::Processed {
                        lease,
                        token,
                        through,
                    });
                }
                if checkpoint {
                    calls.push(Call::Checkpoint { lease, token });
                }
                cx.request(Request::Calls { w, life, calls });
            }
            Stage::Handling(handling) => {
                let handling = handling.clone();
                consumer.stage = Stage::Idle;
                end_handling(cx, services, (w, life), (shard, token), &handling);
            }
        }
    }
}

/// What oracles and the engine are told when a shard was opened, or was not.
fn opened(aborted: bool, life: LifeNo, shard: ShardNo, token: FencingToken) -> (Fact, Outcome) {
    let token = token.0;
    if aborted {
        let fact = Fact::OpenFailed { life, shard, token };
        (fact, Outcome::Unknown(Cause::Cancelled))
    } else {
        let fact = Fact::OpenDone { life, shard, token };
        (fact, Outcome::Applied(Reply::Done))
    }
}

/// A handler has returned: its worker is told how, and what else the application says then.
fn end_handling(
    cx: &mut Context,
    services: &Services,
    (w, life): (usize, LifeNo),
    (shard, token): (ShardNo, FencingToken),
    handling: &Handling,
) {
    let outcome = if handling.aborted {
        cx.mark("handler-aborted");
        Outcome::Unknown(Cause::Cancelled)
    } else if cx.now() >= handling.give_up {
        Outcome::Unknown(Cause::Timeout)
    } else if handling.fails {
        Outcome::Refused(Refusal {
            why: Why::HandlerFailed,
            current: None,
            detail: "the handler failed".into(),
        })
    } else {
        if handling.first <= handling.last {
            cx.fact(Fact::Processed {
                life,
                shard,
                token: token.0,
                through: handling.last,
            });
        }
        Outcome::Applied(Reply::Processed)
    };
    cx.fact(Fact::HandlerEnded {
        life,
        shard,
        token: token.0,
    });
    let ended_well = matches!(outcome, Outcome::Applied(_)) && handling.first <= handling.last;
    let op = handling.op;
    cx.request(Request::Done { w, op, outcome });
    if !handling.says_again && !handling.stale_call {
        return;
    }
    let lease = cx.names_mut().shard(shard).to_lease();
    let through = services.position(shard, handling.first);
    let processed = |token: FencingToken| {
        through.map(|through| Call::Processed {
            lease: lease.clone(),
            token,
            through,
        })
    };
    if handling.says_again && ended_well {
        let calls = processed(token).into_iter().chain(processed(token)).collect();
        cx.request(Request::Calls { w, life, calls });
    }
    if handling.stale_call {
        let old = FencingToken(token.0.saturating_sub(1));
        let checkpoint = Call::Checkpoint {
            lease: lease.clone(),
            token,
        };
        let calls = processed(old).into_iter().chain([checkpoint]).collect();
        cx.request(Request::Calls { w, life, calls });
    }
}

/// What the adapter does not have cannot be done.
fn refusal() -> Outcome {
    Outcome::Refused(Refusal {
        why: Why::Gone,
        current: None,
        detail: "there is no such batch".into(),
    })
}

/// A number that no other command of the world has.
fn op_key(op: OpId) -> u64 {
    op.life.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ op.n
}
