//! Machines that are suspended and wake up, and handlers that ask their fences.
//!
//! The model of a fence follows the adapter: the engine's belief after its last input, compared with both clocks at the
//! moment of the question.

use super::Fleet;
use super::handler::Stage;
use crate::faults::{Meanwhile, Suspension, WallAfter};
use crate::names;
use crate::oracles::{Fact, ShardNo, Time};
use crate::world::context::Context;
use crate::world::heap::What;
use leasehold_engine::ids::FencingToken;
use leasehold_engine::time::Span;

/// The longest time between a driver's look at its clocks and the machine's wake-up or the correction of its wall
/// clock, in µs.
const LOOK_US: u64 = 250_000;

impl Fleet {
    /// Suspends a machine, if a worker of ours runs on the machine. Foreign programs have no fences.
    pub(in crate::world) fn suspend(&mut self, cx: &mut Context, suspension: Suspension) {
        let w = suspension.worker as usize;
        let worker = &mut self.workers[w];
        if !worker.is_ours() || worker.paused.is_some() {
            return;
        }
        cx.fault("suspended", Some(w), None);
        let life = worker.life;
        if suspension.clock == Meanwhile::Stands {
            worker.clock.stand(cx.now());
            cx.fact(Fact::ClockStands { life });
        }
        worker.suspended = Some(suspension);
        self.pause(cx, w, suspension.us);
    }

    /// A suspended machine wakes up: handlers continue before any act of their worker.
    pub(super) fn wake_up(&mut self, cx: &mut Context, w: usize, stood: Time) {
        let worker = &mut self.workers[w];
        let Some(suspension) = worker.suspended.take() else {
            return;
        };
        let now = cx.now();
        if suspension.clock == Meanwhile::Stands {
            // Timers wait for a clock that stood.
            worker.wanted = worker.wanted.saturating_add(stood);
        }
        worker.clock.go_on(now, stood, suspension.wall != WallAfter::Right);
        let worker_no = w as u16;
        match suspension.wall {
            WallAfter::Right => {}
            WallAfter::Late { us } => {
                cx.mark("suspended-wall-late");
                cx.push(now + us, What::WallRight { worker: worker_no });
            }
            WallAfter::Wrong => cx.mark("suspended-wall-wrong"),
        }
        self.look_soon(cx, w);
        if suspension.clock == Meanwhile::Stands {
            self.hold_again(cx, w);
        }
        let open: Vec<ShardNo> = self.workers[w].adapter.consumers.keys().copied().collect();
        for shard in open {
            self.ask_fence(cx, w, shard);
        }
    }

    /// The wall clock of a machine is set right after a suspension.
    pub(in crate::world) fn set_wall_right(&mut self, cx: &mut Context, w: usize) {
        self.workers[w].clock.set_right();
        cx.line(|| format!("the wall clock of w{w} is set right"));
        if self.workers[w].is_ours() && self.workers[w].paused.is_none() {
            self.look_soon(cx, w);
        }
    }

    /// The driver of a worker looks at its clocks.
    fn look_soon(&mut self, cx: &mut Context, w: usize) {
        let soon = cx.now() + cx.draws().below("clock-look", cx.now() ^ (w as u64) << 56, LOOK_US);
        let worker = &mut self.workers[w];
        worker.wanted = worker.wanted.min(soon);
        self.plan_wake(cx, w);
    }

    /// After its standstill, a clock's beliefs end later than it seemed.
    fn hold_again(&self, cx: &mut Context, w: usize) {
        let worker = &self.workers[w];
        for held in worker.engine.iter().flat_map(|engine| engine.held()) {
            let Some(shard) = names::shard_of(held.lease) else {
                continue;
            };
            let fact = Fact::Holds {
                life: worker.life,
                shard,
                counter: held.counter,
                checkpoint: cx.names().mark(Some(shard), held.checkpoint),
                open: held.open,
                until: worker.clock.when(held.valid_until),
            };
            cx.observe(&fact);
        }
    }

    /// A handler at work asks its fence. Handlers on machines without any suspension need no question: the oracles
    /// compare their beliefs all the time.
    pub(super) fn ask_fence(&self, cx: &mut Context, w: usize, shard: ShardNo) {
        let worker = &self.workers[w];
        let consumer = worker.adapter.consumers.get(&shard);
        let Some(consumer) = consumer.filter(|known| matches!(known.stage, Stage::Handling(_))) else {
            return;
        };
        if !worker.clock.was_suspended() {
            return;
        }
        let fact = Fact::FenceAsked {
            life: worker.life,
            shard,
            token: consumer.token.0,
            valid: self.remaining(cx.now(), w, shard, consumer.token).is_some(),
            adrift: worker.clock.is_adrift(cx.now()),
        };
        cx.observe(&fact);
    }

    /// The remaining time of a fence's belief in its lease. Absent: the fence is not valid.
    pub(super) fn remaining(&self, now: Time, w: usize, shard: ShardNo, token: FencingToken) -> Option<Span> {
        let worker = &self.workers[w];
        let mut held = worker.engine.iter().flat_map(|engine| engine.held());
        let held = held.find(|held| names::shard_of(held.lease) == Some(shard) && held.token == token);
        let held = held?;
        let at = worker.clock.mono(now);
        let missed = worker.skew.as_ref().map_or(Span::ZERO, |skew| skew.missed(at, worker.clock.wall(now)));
        let left = Span(held.valid_until.since(at).0.saturating_sub(missed.0));
        (left > Span::ZERO).then_some(left)
    }
}
