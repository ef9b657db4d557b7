//! The workers: their processes, clocks, engines and applications, and foreign programs.
//!
//! | file | what it does |
//! |---|---|
//! | [`worker`], [`clock`] | a worker, its clocks, and the memory of its adapter |
//! | [`process`] | processes start, stand still, are told to stop, stop, die and come back |
//! | [`program`] | a worker with a foreign program |
//! | [`handler`] | the application: a handler for every open shard |
//! | [`suspended`] | machines are suspended and wake up; handlers ask their fences |
//! | [`standstill`] | handlers block every thread of their runtime |
//! | [`stopped`] | calls of the application that a worker stops |
//! | [`shard_pause`] | the application pauses a shard for a while |
//! | [`absence`] | the application takes a stream away from a worker, and gives the stream back |
//! | [`unpacking`] | a handler's parts of aggregated records |
//! | [`told`] | workers' reports: notices, and their owned leases |
//! | [`novelty`] | kinds of leases' states |
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
use super::heap::{What, WorkerEvent};
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

/// A worker with this many inputs within this time is restarted.
const SPIN_INPUTS: u32 = 10_000;
const SPIN_WITHIN_US: u64 = 10_000;
/// The pause between the end of a process by itself (by an error, or for spinning) and its restart, in µs.
const RESTART_US: u64 = 1_000_000;

/// All workers of a world.
#[derive(Debug)]
pub(super) struct Fleet {
    workers: Vec<Worker>,
    /// The last report of owned leases, by worker.
    said: Vec<Said>,
    transcript: Transcript,
    scratch: Vec<Output>,
}

impl Fleet {
    pub(super) fn new(transcript: Transcript) -> Self {
        Self { workers: Vec::new(), said: Vec::new(), transcript, scratch: Vec::new() }
    }

    /// Adds the results at the world's end.
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

    /// The worker with this present life.
    pub(super) fn of_life(&self, life: LifeNo) -> Option<usize> {
        let mut workers = self.workers.iter();
        workers.position(|worker| worker.lives() && worker.life() == life)
    }

    /// A worker that runs a foreign program now.
    pub(super) fn other(&self, pick: u32) -> Option<usize> {
        let others = || (0..self.workers.len()).filter(|&w| self.workers[w].is_of_others());
        let many = others().count().max(1);
        others().nth(pick as usize % many)
    }

    /// The names of our live workers.
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

    /// The worker of an event, if its process lives and does not stand still. An event for a worker at a standstill
    /// waits.
    pub(super) fn awake(&mut self, worker: u16, generation: u32, event: WorkerEvent) -> Option<usize> {
        let (w, what) = (usize::from(worker), What::Of { worker, generation, event });
        let waits = |fleet: &mut Self| fleet.put_by(w, what) || fleet.workers[w].standstill.puts_by(what);
        (self.workers[w].is_process(generation) && !waits(self)).then_some(w)
    }

    /// Plans an event of a worker's present process.
    fn plan(&self, cx: &mut Context, w: usize, at: Time, event: WorkerEvent) {
        let generation = self.workers[w].generation;
        cx.push(at, What::Of { worker: w as u16, generation, event });
    }

    /// Puts an event by for a worker at a standstill. Returns whether the worker stands still.
    pub(super) fn put_by(&mut self, w: usize, what: What) -> bool {
        let worker = &mut self.workers[w];
        if worker.paused.is_some() {
            worker.backlog.push_back(what);
            return true;
        }
        false
    }

    /// A planned wake-up has come. Returns whether the worker is to take a tick.
    pub(super) fn wake(&mut self, cx: &mut Context, w: usize) -> bool {
        let worker = &mut self.workers[w];
        if cx.now() < worker.wake {
            // An earlier plan, replaced long ago.
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
            let at = worker.wake;
            self.plan(cx, w, at, WorkerEvent::Wake);
        }
    }

    /// Gives an input to a worker's engine. The caller executes the engine's commands, and then calls
    /// [`Fleet::end_input`].
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

    /// The engine's commands were executed. `only_read`: the input was the answer to a read of the stream.
    pub(super) fn end_input(&mut self, cx: &mut Context, w: usize, outputs: Vec<Output>, only_read: bool) {
        self.scratch = outputs;
        // Records of a read change no lease; a possible change shows with the next input. But the engine looks at both
        // clocks with every input, and its beliefs follow from the clocks.
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

    /// Whether a worker takes input after input while time hardly advances: such a world would never end.
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
