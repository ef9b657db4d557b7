//! Handlers that block every thread of their runtime, while their worker continues.
//!
//! The model follows the adapter. A separate thread keeps the leases, and looks whether the handlers' runtime runs any
//! task. After a while without a task, the thread tells the worker, again and again, and tells the worker when the
//! runtime runs again. Operations on the application wait for the runtime meanwhile; a shard is closed at once, with a
//! later answer.

use super::Fleet;
use super::stopped::Told;
use crate::names::shard_of;
use crate::oracles::Fact;
use crate::world::chances::Chances;
use crate::world::context::Context;
use crate::world::heap::{What, WorkerEvent};
use leasehold_engine::ids::{FencingToken, LeaseKey, OpId};
use leasehold_engine::input::{Call, Cause, Outcome};
use leasehold_engine::output::ConsumerOp;
use leasehold_engine::time::{Mono, Span};
use std::collections::VecDeque;

/// The number of looks until a runtime counts as blocked: half a lease in all, and five seconds at most.
const LOOKS: u64 = 5;
const PATIENCE: Span = Span::from_secs(5);

/// Whether the handlers of a worker block every thread of their runtime.
#[derive(Debug, Default)]
pub(super) struct Standstill {
    on: bool,
    for_ever: bool,
    /// Counts blocks, so that an event planned for an earlier block does not apply to a later block.
    count: u32,
    looks: u64,
    /// The worker knows of the block, or does not yet know of its end.
    told: bool,
    events: VecDeque<What>,
    asked: VecDeque<Asked>,
}

/// An operation on the application that waits for the runtime.
#[derive(Debug)]
pub(in crate::world) struct Asked {
    op: OpId,
    give_up: Mono,
    lease: LeaseKey,
    /// Absent: the operation was executed, and its answer is due.
    what: Option<ConsumerOp>,
    told: Told,
}

impl Standstill {
    pub(super) fn is_on(&self) -> bool {
        self.on
    }

    /// Puts an event of a blocked handler by. Returns whether the event waits.
    pub(super) fn puts_by(&mut self, what: What) -> bool {
        let What::Of { event, .. } = what else { return false };
        let of_handlers = matches!(
            event,
            WorkerEvent::Handler { .. } | WorkerEvent::PauseEnds { .. } | WorkerEvent::Kept { .. }
        );
        if self.on && of_handlers {
            self.events.push_back(what);
        }
        self.on && of_handlers
    }
}

impl Fleet {
    /// The handlers of a worker block every thread of their runtime for this time, in µs; absent: for ever. Foreign
    /// programs have no such handlers.
    pub(in crate::world) fn block(&mut self, cx: &mut Context, w: usize, for_us: Option<u64>) {
        let worker = &mut self.workers[w];
        if !worker.is_ours() || worker.paused.is_some() {
            return;
        }
        let standstill = &mut worker.standstill;
        if standstill.on || standstill.told {
            // If the worker has not yet noticed the end of its last standstill, the same standstill continues.
            standstill.for_ever |= for_us.is_none();
            standstill.on |= standstill.for_ever;
            return;
        }
        (standstill.on, standstill.looks) = (true, 0);
        standstill.for_ever = for_us.is_none();
        standstill.count += 1;
        let block = standstill.count;
        let life = worker.life;
        cx.fault("runtime-blocked", Some(w), None);
        cx.fact(Fact::Blocked { life });
        cx.line(|| format!("the handlers of w{w} block every thread of their runtime"));
        if let Some(us) = for_us {
            self.plan(cx, w, cx.now() + us, WorkerEvent::Unblock { block });
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
        self.plan(cx, w, at.max(cx.now() + 1), WorkerEvent::Beat { block: worker.standstill.count });
    }

    /// A worker looks whether the runtime of its handlers runs any task. Returns the call for the worker.
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

    /// The number of the present block, if any.
    pub(in crate::world) fn block_of(&self, w: usize) -> Option<u32> {
        let standstill = &self.workers[w].standstill;
        standstill.on.then_some(standstill.count)
    }

    /// The runtime of a worker's handlers runs again. Returns the waiting events and the waiting operations.
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

    /// An operation on an application with blocked handlers.
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

    /// A call receives a request to stop, and hears the request when it can run.
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

    /// Executes an operation that waited for blocked handlers. Returns the answer, if immediate.
    pub(in crate::world) fn consume_late(
        &mut self, cx: &mut Context, chances: &mut Chances, w: usize, asked: Asked,
    ) -> (OpId, Option<Outcome>) {
        let Asked { op, give_up, lease, what, told } = asked;
        let Some(mut what) = what else {
            self.note(cx, w, op);
            return (op, None);
        };
        let left = |token| self.remaining(cx.now(), w, shard_of(&lease)?, token);
        // The application has just given back an earlier batch, and takes no batch until its worker knows.
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
                // The lease was renewed meanwhile: the handler looks at the present belief.
                Some(left) => {
                    *valid_until = self.workers[w].clock.mono(cx.now()) + left;
                    false
                }
            },
            ConsumerOp::SetAside { token, .. } => left(*token).is_none(),
            _ => false,
        };
        let outcome = match told.outcome() {
            None if expired => Some(Outcome::NotSent(Cause::Cancelled)),
            None => self.consume(cx, chances, w, (op, give_up), what),
            stopped => stopped,
        };
        (op, outcome)
    }
}
