//! The workers: their processes, clocks, engines and applications, and the programs that others wrote.
//!
//! | file | what it does |
//! |---|---|
//! | [`worker`], [`clock`] | one worker, its clocks, and what an adapter keeps for it |
//! | [`process`] | processes start, stand still, are told to stop, stop, die and come back |
//! | [`program`] | a worker whose program others wrote |
//! | [`handler`] | the application: a handler for every open shard |
//! | [`suspended`] | machines are suspended and wake up; handlers ask their fences |
//! | [`standstill`] | handlers block every thread of their runtime |
//! | [`stopped`] | calls of the application that a worker stops |
//! | [`shard_pause`] | the application pauses a shard for a while |
//! | [`absence`] | the application takes a stream away from a worker, and gives it back |
//! | [`unpacking`] | which parts of aggregated records a handler is given |
//! | [`told`] | what workers say: notices, and what they hold |
//! | [`novelty`] | kinds of states that leases were in |
//! | [`transcript`] | the digest of inputs and outputs |

mod absence;
pub(crate) mod clock;
mod handler;
mod handling;
mod kept;
mod novelty;
mod poison;
mod process;
mod program;
mod shard_pause;
pub(super) mod standstill;
mod stopped;
mod suspended;
mod told;
mod transcript;
mod unpacking;
pub(crate) mod worker;

pub(super) use process::{Begun, Healed};
pub(super) use transcript::Transcript;

use super::context::Context;
use super::found::Found;
use super::heap::What;
use crate::faults::{Deed, Site};
use crate::oracles::{Fact, LifeNo, ShardNo, Time};
use leasehold_engine::Engine;
use leasehold_engine::ids::WorkerId;
use leasehold_engine::input::{Body, Input};
use leasehold_engine::internals::Skew;
use leasehold_engine::output::Output;
use told::Said;
use worker::Adapter;
pub(super) use worker::Worker;

/// A worker that takes so many inputs in so short a time is restarted after this.
const SPIN_INPUTS: u32 = 10_000;
const SPIN_WITHIN_US: u64 = 10_000;
/// A process that ended by itself because of an error, or spun, is started again this long after, in µs.
const RESTART_US: u64 = 1_000_000;

/// All workers of a world.
#[derive(Debug)]
pub(super) struct Fleet {
    workers: Vec<Worker>,
    /// What each worker said last that it holds.
    said: Vec<Said>,
    transcript: Transcript,
    scratch: Vec<Output>,
}

impl Fleet {
    pub(super) fn new(transcript: Transcript) -> Self {
        Self { workers: Vec::new(), said: Vec::new(), transcript, scratch: Vec::new() }
    }

    /// Adds what is left when the world has ended.
    pub(super) fn add_to(self, found: &mut Found) {
        self.transcript.add_to(found);
    }

    pub(super) fn len(&self) -> usize {
        self.workers.len()
    }

    pub(super) fn workers(&self) -> &[Worker] {
        &self.workers
    }

    pub(super) fn worker(&self, w: usize) -> &Worker {
        &self.workers[w]
    }

    pub(super) fn adapter_mut(&mut self, w: usize) -> &mut Adapter {
        self.workers[w].adapter_mut()
    }

    /// The worker of which this is the present life.
    pub(super) fn of_life(&self, life: LifeNo) -> Option<usize> {
        let mut workers = self.workers.iter();
        workers.position(|worker| worker.lives() && worker.life() == life)
    }

    /// One of the workers that run a program of others now.
    pub(super) fn other(&self, pick: u32) -> Option<usize> {
        let others = || (0..self.workers.len()).filter(|&w| self.workers[w].is_of_others());
        let many = others().count().max(1);
        others().nth(pick as usize % many)
    }

    /// The names of our workers that live.
    pub(super) fn names(&self) -> Vec<WorkerId> {
        let engines = self.workers.iter().filter_map(|worker| worker.engine.as_ref());
        engines.filter_map(|engine| engine.worker().cloned()).collect()
    }

    /// Counts a deed of a worker's present life.
    pub(super) fn site(&mut self, w: usize, deed: Deed, shard: Option<ShardNo>) -> Site {
        let worker = &mut self.workers[w];
        Site {
            worker: w as u16,
            life: worker.generation,
            deed,
            shard,
            nth: worker.adapter.count(deed, shard),
        }
    }

    /// The worker this is meant for, if that process lives and does not stand still; then it gets it later.
    pub(super) fn awake(&mut self, worker: u16, generation: u32, what: What) -> Option<usize> {
        let w = usize::from(worker);
        if !self.workers[w].is_process(generation) || self.put_by(w, what) {
            return None;
        }
        if self.workers[w].standstill.puts_by(what) {
            return None;
        }
        Some(w)
    }

    /// Puts an event by for a worker that stands still. Whether it does.
    pub(super) fn put_by(&mut self, w: usize, what: What) -> bool {
        let worker = &mut self.workers[w];
        if worker.paused.is_some() {
            worker.backlog.push_back(what);
            return true;
        }
        false
    }

    /// A planned wake-up has come. Whether the worker is to take a tick.
    pub(super) fn wake(&mut self, cx: &mut Context, w: usize) -> bool {
        let worker = &mut self.workers[w];
        if cx.now() < worker.wake {
            // An earlier plan, long replaced.
            return false;
        }
        worker.wake = Time::MAX;
        let due = worker.wanted <= cx.now();
        if !due {
            self.plan_wake(cx, w);
        }
        due
    }

    fn plan_wake(&mut self, cx: &mut Context, w: usize) {
        let worker = &mut self.workers[w];
        if worker.wanted < worker.wake {
            worker.wake = worker.wanted.max(cx.now());
            let what = What::Wake { worker: w as u16, generation: worker.generation };
            cx.push(worker.wake, what);
        }
    }

    /// Gives one input to a worker's engine. What the engine asks for is to be carried out, and then [`Fleet::end_input`] called.
    pub(super) fn take_input(&mut self, cx: &mut Context, w: usize, body: Body) -> Option<Vec<Output>> {
        let now = cx.now();
        let worker = &mut self.workers[w];
        let engine = worker.engine.as_mut()?;
        let boots = matches!(body, Body::Boot(_));
        let input = Input { at: worker.clock.mono(now), wall: worker.clock.wall(now), body };
        match &input.body {
            Body::Boot(boot) => worker.skew = Some(Skew::new(&boot.config, input.at, input.wall)),
            _ => {
                let skew = worker.skew.as_mut();
                let missed = skew.and_then(|skew| skew.look(input.at, input.wall));
                worker.missed |= missed.is_some();
            }
        }
        let kept = self.transcript.input(now, w, &input);
        let outbox = engine.handle(input);
        let wake_at = outbox.wake_at();
        let mut outputs = std::mem::take(&mut self.scratch);
        outputs.extend(outbox);
        self.transcript.outputs(wake_at, &outputs);
        worker.wanted = worker.clock.when(wake_at);
        if boots {
            let name = engine.worker().cloned().unwrap_or_else(|| WorkerId::from(""));
            worker.life = cx.begin_life(w, &name);
        }
        self.transcript.keep(worker.life, kept);
        Some(outputs)
    }

    /// What an engine asked for was carried out. `only_read`: its input was the answer to a read of the stream.
    pub(super) fn end_input(&mut self, cx: &mut Context, w: usize, outputs: Vec<Output>, only_read: bool) {
        self.scratch = outputs;
        // What a read brought changes no lease; whatever it might have changed shows with the next input. But both clocks are looked at with
        // every input, and beliefs follow from them.
        let missed = std::mem::take(&mut self.workers[w].missed);
        let right = self.workers[w].clock.look(cx.now());
        if !only_read || missed || right {
            self.compare_view(cx, w);
        }
        if right {
            let life = self.workers[w].life;
            cx.fact(Fact::ClockRight { life });
        }
        if self.workers[w].engine.as_ref().is_some_and(Engine::is_stopped) {
            self.stopped(cx, w);
        } else if self.spins(cx, w) {
            self.crash(cx, w, RESTART_US, 0);
        } else {
            self.plan_wake(cx, w);
        }
    }

    /// Whether a worker takes one input after the other and time hardly goes on: such a world would never end.
    fn spins(&mut self, cx: &mut Context, w: usize) -> bool {
        let (now, worker) = (cx.now(), &mut self.workers[w]);
        let (since, inputs) = &mut worker.inputs;
        if now >= *since + SPIN_WITHIN_US {
            (*since, *inputs) = (now, 0);
        }
        *inputs += 1;
        if *inputs < SPIN_INPUTS {
            return false;
        }
        let (life, inputs, within_us) = (worker.life, *inputs, now - *since);
        worker.inputs = (now, 0);
        cx.fact(Fact::Spins { life, inputs, within_us });
        true
    }
}
