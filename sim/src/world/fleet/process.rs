//! Workers' processes: they start, stand still, are told to stop, stop, die and come back.

use super::Fleet;
use super::clock::Clock;
use super::worker::Worker;
use crate::oracles::{Fact, Time};
use crate::world::context::Context;
use crate::world::heap::What;
use leasehold_engine::Engine;
use leasehold_engine::input::Boot;
use leasehold_engine::internals::draw;
use leasehold_engine::time::Span;
use std::collections::VecDeque;

/// A process at its beginning.
#[derive(Debug)]
pub(in crate::world) enum Begun {
    /// A foreign program, to be run.
    Program,
    /// An engine, to be given its boot record.
    Engine(Box<Boot>),
}

/// The fate of a worker after the faults.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::world) enum Healed {
    /// The worker is well from now on.
    Core,
    /// The worker is dead.
    Dies,
    /// The worker never reaches a service again.
    CutOff,
    /// The worker's handlers never run again.
    Blocked,
}

impl Fleet {
    /// All workers, and the times of their first start.
    pub(in crate::world) fn set_up(&mut self, cx: &mut Context) {
        for w in 0..cx.plan().workers as usize {
            let ppm = cx.plan().faults.clock.rate_ppm.get(w).copied().unwrap_or(0);
            self.workers.push(Worker::new(Clock::new(0, 0, ppm)));
            // A fleet starts within a few seconds, now and then all workers at once.
            let at = if cx.draws().coin("start-together", 0) {
                0
            } else {
                cx.draws().below("start", w as u64, 5_000_000)
            };
            self.plan_start(cx, w, at, 0);
        }
    }

    fn plan_start(&self, cx: &mut Context, w: usize, at: Time, loops: u32) {
        let what = What::Start { worker: w as u16, generation: self.workers[w].generation, loops };
        cx.push(at, what);
    }

    /// Begins a new process of a worker.
    pub(in crate::world) fn begin(&mut self, cx: &mut Context, w: usize) -> Begun {
        let now = cx.now();
        let key = self.process_key(w);
        let worker = &mut self.workers[w];
        worker.clock.restart(now, cx.draws().below("clock-offset", key, 1 << 40));
        worker.fatal = None;
        worker.gap_us = 1_000_000;
        if self.begin_program(cx, w) {
            return Begun::Program;
        }
        self.workers[w].engine = Some(Engine::new());
        let reached = cx.plan().faults.upgrade.reached(w as u32, now);
        if reached && cx.plan().upgraded.is_some() {
            cx.mark("upgrade");
        }
        let plan = cx.plan();
        let upgraded = plan.upgraded.as_ref().filter(|_| reached);
        // No answer of this world's stream is further behind, and the configuration says so.
        let lag = plan.least(|config| config.scan_interval());
        Begun::Engine(Box::new(Boot {
            worker: plan.fleet.name.clone().unwrap_or_else(|| format!("w{w}")),
            incarnation: self.incarnation(cx, w),
            seed: draw(plan.seed, "engine", "", key),
            config: upgraded.unwrap_or(&plan.config).clone().with_stream_lag(lag),
        }))
    }

    /// Plans the death of the new process, and the deaths of this many later processes.
    pub(in crate::world) fn plan_crash_loop(&self, cx: &mut Context, w: usize, generation: u32, loops: u32) {
        if loops == 0 {
            return;
        }
        let key = (w as u64) << 32 | u64::from(generation);
        let soon = cx.draws().magnitude("crash-loop", key, 1_000, 2_000_000);
        let down_us = cx.draws().magnitude("crash-loop-down", key, 10_000, 1_000_000);
        let what = What::Crash { worker: w as u16, generation, down_us, loops: loops - 1 };
        cx.push(cx.now() + soon, what);
    }

    fn process_key(&self, w: usize) -> u64 {
        (w as u64) << 32 | u64::from(self.workers[w].generation)
    }

    pub(in crate::world) fn incarnation(&self, cx: &Context, w: usize) -> u64 {
        draw(cx.plan().seed, "incarnation", "", self.process_key(w))
    }

    pub(in crate::world) fn stopped(&mut self, cx: &mut Context, w: usize) {
        let life = self.workers[w].life;
        let fatal = self.workers[w].fatal.clone();
        let is_fatal = fatal.is_some();
        // The line shows the worker as it was until now.
        cx.line(|| format!("w{w} has stopped{}", fatal.map(|why| format!(": {why}")).unwrap_or_default()));
        cx.fact(Fact::Stopped { life, fatal: is_fatal });
        let worker = &mut self.workers[w];
        worker.end();
        let over = cx.is_lost_for_good() && cx.is_healed();
        if worker.core && !over {
            let at = cx.now() + worker.gap_us;
            self.plan_start(cx, w, at, 0);
        }
    }

    pub(in crate::world) fn crash(&mut self, cx: &mut Context, w: usize, down_us: u64, loops: u32) {
        let worker = &mut self.workers[w];
        if !worker.lives() {
            return;
        }
        let life = worker.life;
        worker.end();
        cx.mark("crash");
        cx.fact(Fact::Died { life });
        cx.line(|| format!("w{w} dies"));
        if self.workers[w].core {
            self.plan_start(cx, w, cx.now() + down_us, loops);
        }
    }

    pub(in crate::world) fn pause(&mut self, cx: &mut Context, w: usize, us: u64) {
        let now = cx.now();
        let worker = &mut self.workers[w];
        if !worker.lives() || worker.paused.is_some() {
            return;
        }
        worker.paused = Some(now);
        worker.pauses += 1;
        let (pause, life) = (worker.pauses, worker.life);
        cx.push(now + us, What::Resume { worker: w as u16, pause });
        cx.fact(Fact::Paused { life });
        cx.line(|| format!("w{w} stands still for {} ms", us / 1_000));
    }

    /// A worker continues. Returns the events of its standstill; the events happen now.
    pub(in crate::world) fn resume(&mut self, cx: &mut Context, w: usize, pause: u32) -> VecDeque<What> {
        let worker = &mut self.workers[w];
        if worker.pauses != pause {
            return VecDeque::new();
        }
        let Some(since) = worker.paused.take() else {
            return VecDeque::new();
        };
        let life = worker.life;
        let backlog = std::mem::take(&mut worker.backlog);
        let stood = cx.now() - since;
        cx.fact(Fact::Resumed { life, stood });
        cx.line(|| format!("w{w} goes on"));
        self.wake_up(cx, w, stood);
        backlog
    }

    /// Requests a worker to stop. Returns whether the worker is to receive the call.
    pub(in crate::world) fn ask_to_stop(&mut self, cx: &mut Context, w: usize, gap_us: u64) -> bool {
        let worker = &mut self.workers[w];
        if !worker.lives() || worker.stopping || worker.paused.is_some() {
            return false;
        }
        worker.stopping = true;
        worker.gap_us = gap_us;
        let life = worker.life;
        cx.mark("replace");
        cx.fact(Fact::ShutdownAsked { life });
        cx.line(|| format!("w{w} is told to stop"));
        true
    }

    /// A wall clock jumps, and perhaps stands still from then on.
    pub(in crate::world) fn step_wall(&mut self, cx: &mut Context, w: usize, by_ms: i64, freeze: bool) {
        let name = if freeze { "wall-freeze" } else { "wall-step" };
        cx.fault(name, Some(w), None);
        self.workers[w].clock.step(cx.now(), by_ms, freeze);
    }

    /// The end of the faults for a worker: whether the worker belongs to the core. `sure`: a certain member of the
    /// core.
    pub(in crate::world) fn heal(&mut self, cx: &mut Context, w: usize, sure: u64) -> Healed {
        let limited = cx.plan().config.max_leases() > 0;
        let core = limited || w as u64 == sure || cx.draws().coin("core", w as u64);
        let dies = cx.draws().coin("core-dies", w as u64);
        self.workers[w].core = core;
        let may_block = cx.plan().faults.process.blocked_for_ever
            && cx.plan().least(|config| config.give_up_after()) > Span::ZERO;
        let known = &self.workers[w];
        let may_block = may_block && known.is_ours() && !known.stopping && known.fatal.is_none();
        if core {
            if !self.workers[w].lives() {
                self.plan_start(cx, w, cx.now(), 0);
            }
            Healed::Core
        } else if dies {
            self.crash(cx, w, 0, 0);
            // A planned restart does not happen either.
            self.workers[w].end();
            Healed::Dies
        } else if may_block {
            Healed::Blocked
        } else {
            Healed::CutOff
        }
    }

    /// In the end an operator kills a foreign program after a request to stop: vmware-go-kcl waits for parents first,
    /// and kinsumer may wait for ever.
    pub(in crate::world) fn kill_stopping(&mut self, cx: &mut Context, w: usize) {
        let worker = &self.workers[w];
        if worker.stopping && worker.is_of_others() && cx.plan().is_mixed() {
            self.crash(cx, w, 0, 0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::Options;
    use crate::swarm::Plan;
    use crate::world::fleet::Transcript;
    use leasehold_engine::input::Body;

    /// The test has no service and no network: the fleet needs neither.
    #[test]
    fn a_worker_starts_dies_and_is_started_again() {
        let options = Options::default();
        let mut cx = Context::new(Plan::draw(3).without_faults(), &options);
        let mut fleet = Fleet::new(Transcript::new(&options));
        fleet.set_up(&mut cx);
        let starts = cx.planned().filter(|what| matches!(what, What::Start { .. }));
        assert_eq!(starts.count(), fleet.len());
        let Begun::Engine(boot) = fleet.begin(&mut cx, 0) else {
            panic!("expected one of ours");
        };
        let outputs = fleet.take_input(&mut cx, 0, Body::Boot(boot));
        let outputs = outputs.expect("an engine takes its boot record");
        assert!(!outputs.is_empty(), "it asks for something");
        fleet.end_input(&mut cx, 0, Vec::new(), false);
        assert_eq!(fleet.of_life(fleet.worker(0).life()), Some(0));
        fleet.crash(&mut cx, 0, 5, 0);
        assert!(!fleet.worker(0).lives());
        let again = |what: &What| matches!(what, What::Start { worker: 0, generation: 1, .. });
        assert!(cx.planned().any(again));
    }
}
