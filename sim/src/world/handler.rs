//! The application: for every open shard a handler that takes its time, fails, hangs, and reports how far it is.

use super::World;
use super::heap::What;
use crate::faults::{Chance, Deed};
use crate::names::{record_of, shard_of};
use crate::oracles::{Fact, ShardNo, Time};
use leasehold_engine::ids::{FencingToken, LeaseKey, OpId};
use leasehold_engine::input::{Body, Call, Cause, Outcome, Refusal, Reply, Why};
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
}

struct Delivery {
    shard: ShardNo,
    token: FencingToken,
    batch: OpId,
    after: Option<Position>,
    valid_until: Mono,
}

impl World {
    /// A consumer operation of a worker.
    pub(super) fn consume(&mut self, w: usize, op: OpId, give_up: Mono, consumer_op: ConsumerOp) {
        let life = self.workers[w].life;
        match consumer_op {
            ConsumerOp::Open { lease, token, .. } => {
                let Some(shard) = shard_of(&lease) else {
                    return self.refuse(w, op);
                };
                self.cx.fact(Fact::OpenBegun {
                    life,
                    shard,
                    token: token.0,
                });
                let delay = self.cx.draws().magnitude("open", op_key(op), 100, 20_000);
                self.workers[w].adapter.consumers.insert(
                    shard,
                    Consumer {
                        token,
                        run: 0,
                        stage: Stage::Opening { op, aborted: false },
                    },
                );
                self.plan_handler(w, shard, 0, self.cx.now() + delay);
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
                    return self.refuse(w, op);
                };
                let give_up = self.workers[w].clock.when(give_up);
                self.deliver(
                    w,
                    op,
                    give_up,
                    Delivery {
                        shard,
                        token,
                        batch,
                        after,
                        valid_until,
                    },
                );
            }
            ConsumerOp::Abort { lease, token } => {
                if let Some(shard) = shard_of(&lease) {
                    self.abort(w, shard, token);
                }
                self.note(w, op);
            }
            ConsumerOp::Close { lease, token, reason } => {
                if let Some(shard) = shard_of(&lease) {
                    self.close(w, shard, token, reason);
                }
                self.note(w, op);
            }
        }
    }

    fn note(&mut self, w: usize, op: OpId) {
        let generation = self.workers[w].generation;
        self.cx.push(
            self.cx.now() + 50,
            What::Noted {
                worker: w as u16,
                generation,
                op: op.n,
            },
        );
    }

    /// What the adapter does not have cannot be done.
    fn refuse(&mut self, w: usize, op: OpId) {
        let refusal = Refusal {
            why: Why::Gone,
            current: None,
            detail: "there is no such batch".into(),
        };
        self.answer_locally(w, op, Outcome::Refused(refusal));
    }

    fn plan_handler(&mut self, w: usize, shard: ShardNo, run: u32, at: Time) {
        let generation = self.workers[w].generation;
        self.cx.push(
            at,
            What::Handler {
                worker: w as u16,
                generation,
                shard,
                run,
            },
        );
    }

    fn deliver(&mut self, w: usize, op: OpId, give_up: Time, delivery: Delivery) {
        let Delivery {
            shard,
            token,
            batch,
            after,
            valid_until,
        } = delivery;
        let now = self.cx.now();
        let Some((first, last)) = self.workers[w].adapter.batch(shard, batch.n) else {
            return self.refuse(w, op);
        };
        let first = after
            .and_then(record_of)
            .map_or(first, |done| first.max(done + 1));
        let site = self.site(w, Deed::Batch, Some(shard));
        let mut roll = self.cx.draws().roll("handle", site.key());
        let ordinary = roll.magnitude(100, self.cx.plan().faults.application.batch_us);
        let middle = roll.between(first, last.max(first));
        let chances = if self.cx.is_healed() {
            Vec::new()
        } else {
            self.chances_of_batch(site, &mut roll)
        };
        let mut ends = now + ordinary;
        let mut deaf_until = 0;
        let (mut partial, mut checkpoint, mut fails, mut stale_call) = (false, false, false, false);
        let (mut deaf, mut says_again) = (false, false);
        for chance in chances {
            self.cx.fault(chance.family(), Some(w), None);
            match chance {
                Chance::HandlerSlow { by_us } => ends = ends.saturating_add(by_us),
                Chance::HandlerHangs { for_us } => {
                    ends = ends.saturating_add(for_us);
                    deaf_until = ends;
                }
                Chance::HandlerDeaf { for_us } => {
                    ends = ends.saturating_add(for_us);
                    deaf = true;
                }
                Chance::SaysAgain => says_again = true,
                Chance::HandlerFails => fails = true,
                Chance::Partial => partial = true,
                Chance::Checkpoint => checkpoint = true,
                Chance::StaleCall => stale_call = true,
                Chance::Cut { for_us } => self.cut_off(w, for_us),
                _ => {}
            }
        }
        let handling = Handling {
            op,
            first,
            last,
            report_at: if partial || fails { middle } else { 0 },
            checkpoint,
            fails,
            stale_call,
            says_again,
            deaf,
            ends: ends.min(give_up),
            deaf_until,
            give_up,
            aborted: false,
        };
        let life = self.workers[w].life;
        let local = self.workers[w].clock.mono(now);
        self.cx.fact(Fact::Delivered {
            life,
            shard,
            token: token.0,
            first,
            last,
            local,
            valid_until,
        });
        let at = if handling.report_at > 0 {
            now + (handling.ends - now) / 2
        } else {
            handling.ends
        };
        let consumer = self.workers[w]
            .adapter
            .consumers
            .entry(shard)
            .or_insert(Consumer {
                token,
                run: 0,
                stage: Stage::Idle,
            });
        consumer.run += 1;
        consumer.stage = Stage::Handling(handling);
        let run = consumer.run;
        self.plan_handler(w, shard, run, at);
    }

    fn abort(&mut self, w: usize, shard: ShardNo, token: FencingToken) {
        let (now, abort_us, life) = (
            self.cx.now(),
            self.cx.plan().faults.application.abort_us,
            self.workers[w].life,
        );
        self.cx.fact(Fact::Aborted {
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
                self.plan_handler(w, shard, run, ends);
            }
        }
    }

    fn close(&mut self, w: usize, shard: ShardNo, token: FencingToken, reason: EndReason) {
        let (life, local) = (self.workers[w].life, self.workers[w].clock.mono(self.cx.now()));
        self.cx.fact(Fact::Closed {
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
    pub(super) fn step_handler(&mut self, w: usize, shard: ShardNo, run: u32) {
        let now = self.cx.now();
        let life = self.workers[w].life;
        let Some(consumer) = self.workers[w]
            .adapter
            .consumers
            .get_mut(&shard)
            .filter(|known| known.run == run)
        else {
            return;
        };
        let token = consumer.token;
        match &mut consumer.stage {
            Stage::Idle => {}
            Stage::Opening { op, aborted } => {
                let (op, aborted) = (*op, *aborted);
                consumer.stage = Stage::Idle;
                let outcome = if aborted {
                    self.cx.fact(Fact::OpenFailed {
                        life,
                        shard,
                        token: token.0,
                    });
                    Outcome::Unknown(Cause::Cancelled)
                } else {
                    self.cx.fact(Fact::OpenDone {
                        life,
                        shard,
                        token: token.0,
                    });
                    Outcome::Applied(Reply::Done)
                };
                self.done(w, op, outcome);
            }
            Stage::Handling(handling) if now < handling.ends && handling.report_at > 0 => {
                let (record, checkpoint, ends) = (handling.report_at, handling.checkpoint, handling.ends);
                handling.report_at = 0;
                self.plan_handler(w, shard, run, ends);
                let lease = self.cx.names_mut().shard(shard).to_lease();
                self.processed(w, shard, lease.clone(), token, record);
                if checkpoint {
                    self.ask_for_checkpoint(w, shard, lease, token);
                }
            }
            Stage::Handling(handling) => {
                let handling = handling.clone();
                consumer.stage = Stage::Idle;
                self.end_handling(w, shard, token, &handling);
            }
        }
    }

    fn end_handling(&mut self, w: usize, shard: ShardNo, token: FencingToken, handling: &Handling) {
        let life = self.workers[w].life;
        let outcome = if handling.aborted {
            self.cx.mark("handler-aborted");
            Outcome::Unknown(Cause::Cancelled)
        } else if self.cx.now() >= handling.give_up {
            Outcome::Unknown(Cause::Timeout)
        } else if handling.fails {
            let refusal = Refusal {
                why: Why::HandlerFailed,
                current: None,
                detail: "the handler failed".into(),
            };
            Outcome::Refused(refusal)
        } else {
            if handling.first <= handling.last {
                self.cx.fact(Fact::Processed {
                    life,
                    shard,
                    token: token.0,
                    through: handling.last,
                });
            }
            Outcome::Applied(Reply::Processed)
        };
        self.cx.fact(Fact::HandlerEnded {
            life,
            shard,
            token: token.0,
        });
        let ended_well = matches!(outcome, Outcome::Applied(_)) && handling.first <= handling.last;
        self.done(w, handling.op, outcome);
        if handling.says_again && ended_well && self.workers[w].life == life && self.workers[w].lives() {
            let lease = self.cx.names_mut().shard(shard).to_lease();
            if let Some(through) = self.services.position(shard, handling.first) {
                for _ in 0..2 {
                    let lease = lease.clone();
                    self.handle(
                        w,
                        Body::Call(Call::Processed {
                            lease,
                            token,
                            through,
                        }),
                    );
                }
            }
        }
        if handling.stale_call && self.workers[w].life == life && self.workers[w].lives() {
            let lease = self.cx.names_mut().shard(shard).to_lease();
            if let Some(through) = self.services.position(shard, handling.first) {
                let old = FencingToken(token.0.saturating_sub(1));
                self.handle(
                    w,
                    Body::Call(Call::Processed {
                        lease: lease.clone(),
                        token: old,
                        through,
                    }),
                );
            }
            self.ask_for_checkpoint(w, shard, lease, token);
        }
    }

    fn ask_for_checkpoint(&mut self, w: usize, shard: ShardNo, lease: LeaseKey, token: FencingToken) {
        let life = self.workers[w].life;
        self.cx.fact(Fact::CheckpointAsked {
            life,
            shard,
            token: token.0,
        });
        self.handle(w, Body::Call(Call::Checkpoint { lease, token }));
    }

    fn processed(&mut self, w: usize, shard: ShardNo, lease: LeaseKey, token: FencingToken, record: u64) {
        let life = self.workers[w].life;
        let Some(through) = self.services.position(shard, record) else {
            return;
        };
        self.cx.fact(Fact::Processed {
            life,
            shard,
            token: token.0,
            through: record,
        });
        self.handle(
            w,
            Body::Call(Call::Processed {
                lease,
                token,
                through,
            }),
        );
    }
}

/// A number that no other command of the world has.
pub(super) fn op_key(op: OpId) -> u64 {
    op.life.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ op.n
}
