//! Handlers that block every thread of their runtime, while their worker goes on.
//!
//! The model is that of the adapter. A thread of its own keeps the leases, and looks whether that runtime runs anything: the worker is told
//! when it has not for a while, again and again, and when it does. What is asked of the application meanwhile waits for the
//! runtime; a shard is closed at once, and that is answered later.

use super::Fleet;
use super::handling::took_too_long;
use super::stopped::Told;
use crate::names::shard_of;
use crate::oracles::Fact;
use crate::world::chances::Chances;
use crate::world::context::Context;
use crate::world::heap::What;
use leasehold_engine::ids::{FencingToken, LeaseKey, OpId};
use leasehold_engine::input::{Call, Cause, Outcome};
use leasehold_engine::output::ConsumerOp;
use leasehold_engine::time::{Mono, Span};
use std::collections::VecDeque;

/// So many looks make up the time after which a runtime is said to run nothing: half a lease, and five seconds at most.
const LOOKS: u64 = 5;
const PATIENCE: Span = Span::from_secs(5);

/// Whether the handlers of a worker block every thread of their runtime.
#[derive(Debug, Default)]
pub(super) struct Standstill {
    on: bool,
    for_ever: bool,
    /// Counts, so that what was planned for a former one is not taken by the next.
    count: u32,
    looks: u64,
    /// The worker knows, or has not been told yet that it is over.
    told: bool,
    events: VecDeque<What>,
    asked: VecDeque<Asked>,
}

/// What was asked of the application and waits for the runtime.
#[derive(Debug)]
pub(in crate::world) struct Asked {
    op: OpId,
    give_up: Mono,
    lease: LeaseKey,
    /// Absent: it was done, and is to be answered.
    what: Option<ConsumerOp>,
    told: Told,
}

impl Standstill {
    pub(super) fn is_on(&self) -> bool {
        self.on
    }

    /// Puts an event by that no handler comes to. Whether it does.
    pub(super) fn puts_by(&mut self, what: What) -> bool {
        let of_handlers = matches!(what, What::Handler { .. } | What::PauseEnds { .. } | What::Kept { .. });
        if self.on && of_handlers {
            self.events.push_back(what);
        }
        self.on && of_handlers
    }
}

impl Fleet {
    /// The handlers of a worker block every thread of their runtime for so long, in µs; absent: for ever. Programs of others have none.
    pub(in crate::world) fn block(&mut self, cx: &mut Context, w: usize, for_us: Option<u64>) {
        let worker = &mut self.workers[w];
        if !worker.is_ours() || worker.paused.is_some() {
            return;
        }
        let standstill = &mut worker.standstill;
        if standstill.on || standstill.told {
            // If the worker has not noticed yet that they ran, the standstill that it knows goes on.
            standstill.for_ever |= for_us.is_none();
            standstill.on |= standstill.for_ever;
            return;
        }
        (standstill.on, standstill.looks) = (true, 0);
        standstill.for_ever = for_us.is_none();
        standstill.count += 1;
        let block = standstill.count;
        let (life, generation, worker_no) = (worker.life, worker.generation, w as u16);
        cx.fault("runtime-blocked", Some(w), None);
        cx.fact(Fact::Blocked { life });
        cx.line(|| format!("the handlers of w{w} block every thread of their runtime"));
        if let Some(us) = for_us {
            let what = What::Unblock { worker: worker_no, generation, block };
            cx.push(cx.now() + us, what);
        }
        self.plan_beat(cx, w);
    }

    fn pause_of_looks(&self, cx: &Context) -> Span {
        PATIENCE.min(cx.plan().config.lease_duration().per(2)).per(LOOKS)
    }

    fn plan_beat(&self, cx: &mut Context, w: usize) {
        let pause = self.pause_of_looks(cx);
        let worker = &self.workers[w];
        let at = worker.clock.when(worker.clock.mono(cx.now()) + pause);
        let what =
            What::Beat { worker: w as u16, generation: worker.generation, block: worker.standstill.count };
        cx.push(at.max(cx.now() + 1), what);
    }

    /// A worker looks whether the runtime of its handlers runs anything. What it is to be told.
    pub(in crate::world) fn beat(&mut self, cx: &mut Context, w: usize, block: u32) -> Option<Call> {
        let pause = self.pause_of_looks(cx);
        let worker = &mut self.workers[w];
        let (life, standstill) = (worker.life, &mut worker.standstill);
        if standstill.count != block {
            return None;
        }
        if !standstill.on {
            let told = std::mem::take(&mut standstill.told);
            if told {
                cx.fact(Fact::Unblocked { life });
            }
            return told.then_some(Call::RuntimeRuns);
        }
        standstill.looks += 1;
        let looks = standstill.looks;
        standstill.told |= looks >= LOOKS;
        let told = standstill.told;
        self.plan_beat(cx, w);
        told.then(|| Call::RuntimeBlocked(pause.times(looks)))
    }

    /// The number of the block that is on, if one is.
    pub(in crate::world) fn block_of(&self, w: usize) -> Option<u32> {
        let standstill = &self.workers[w].standstill;
        standstill.on.then_some(standstill.count)
    }

    /// The runtime of a worker's handlers runs again. Gives what is to happen now, and what was asked of the application.
    pub(in crate::world) fn unblock(
        &mut self, cx: &mut Context, w: usize, block: u32,
    ) -> (VecDeque<What>, VecDeque<Asked>) {
        let worker = &mut self.workers[w];
        let (life, standstill) = (worker.life, &mut worker.standstill);
        if standstill.count != block || !standstill.on || standstill.for_ever {
            return Default::default();
        }
        standstill.on = false;
        let events = std::mem::take(&mut standstill.events);
        let asked = std::mem::take(&mut standstill.asked);
        let told = standstill.told;
        cx.line(|| format!("the handlers of w{w} run again"));
        if !told {
            cx.fact(Fact::Unblocked { life });
        }
        (events, asked)
    }

    /// Something is asked of an application of which no handler can run.
    pub(super) fn ask_later(
        &mut self, cx: &mut Context, w: usize, (op, give_up): (OpId, Mono), consumer_op: ConsumerOp,
    ) {
        let lease = consumer_op.lease().clone();
        let what = match consumer_op {
            ConsumerOp::Abort { token, .. } => {
                return self.stop_later(cx, w, op, (&lease, token), Told::Aborted);
            }
            ConsumerOp::TimeOut { token, .. } => {
                return self.stop_later(cx, w, op, (&lease, token), Told::TimedOut);
            }
            ConsumerOp::Close { token, reason, .. } => {
                if let Some(shard) = shard_of(&lease) {
                    self.close(cx, w, shard, token, reason);
                }
                None
            }
            other => Some(other),
        };
        self.workers[w].standstill.asked.push_back(Asked { op, give_up, lease, what, told: Told::Nothing });
    }

    /// A call is told to stop, which it hears when it can run.
    fn stop_later(
        &mut self, cx: &mut Context, w: usize, op: OpId, (lease, token): (&LeaseKey, FencingToken),
        told: Told,
    ) {
        let asked = self.workers[w].standstill.asked.iter_mut();
        for waiting in asked.filter(|waiting| waiting.lease == *lease && waiting.what.is_some()) {
            waiting.told.hear(told);
        }
        self.stop_call(cx, w, lease, token, told);
        self.note(cx, w, op);
    }

    /// Something is done that was asked for while no handler could run. Gives the answer, if there is one at once.
    pub(in crate::world) fn consume_late(
        &mut self, cx: &mut Context, chances: &mut Chances, w: usize, asked: Asked,
    ) -> (OpId, Option<Outcome>) {
        let Asked { op, give_up, lease, what, told } = asked;
        let Some(mut what) = what else {
            self.note(cx, w, op);
            return (op, None);
        };
        let left = |token| self.remaining(cx.now(), w, shard_of(&lease)?, token);
        // The application has just given back a batch before this one, and takes none until its worker knows.
        let gave_back = |token| {
            let consumers = &self.workers[w].adapter.consumers;
            let consumer = shard_of(&lease).and_then(|shard| consumers.get(&shard));
            consumer.is_some_and(|known| known.token == token && known.gave_back == Some(cx.now()))
        };
        let expired = match &mut what {
            ConsumerOp::Deliver { token, .. } | ConsumerOp::DeliverOne { token, .. } if gave_back(*token) => {
                true
            }
            ConsumerOp::Deliver { token, valid_until, .. }
            | ConsumerOp::DeliverOne { token, valid_until, .. } => match left(*token) {
                None => true,
                // The lease was renewed meanwhile: the handler looks at the belief as it is by now.
                Some(left) => {
                    *valid_until = self.workers[w].clock.mono(cx.now()) + left;
                    false
                }
            },
            ConsumerOp::SetAside { token, .. } => left(*token).is_none(),
            _ => false,
        };
        let outcome = match told {
            Told::Aborted => Some(Outcome::Unknown(Cause::Cancelled)),
            Told::TimedOut => Some(took_too_long()),
            Told::Nothing if expired => Some(Outcome::NotSent(Cause::Cancelled)),
            Told::Nothing => self.consume(cx, chances, w, (op, give_up), what),
        };
        (op, outcome)
    }
}
