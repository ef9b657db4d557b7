//! One world: workers, services, network, application and operators in one virtual time.
//!
//! A heap of events is all that drives it. What happens is told to the oracles as facts, and to the digest as inputs and
//! outputs, so that two runs of one seed can be compared.

pub(crate) mod ask;
mod behind;
mod call;
mod chances;
pub(crate) mod clock;
mod context;
mod evenness;
mod found;
mod handler;
mod heap;
mod novelty;
mod peer;
mod process;
mod record;
mod script;
pub(crate) mod services;
mod settle;
mod tell;
mod view;
pub(crate) mod worker;

use crate::options::{Cancel, Options};
use crate::oracles::{Fact, LifeNo, Property, ShardNo, Time};
use crate::swarm::Plan;
use call::Flight;
use chances::Chances;
use clock::Clock;
use context::{Context, Request};
use heap::What;
use leasehold_engine::Engine;
use leasehold_engine::ids::WorkerId;
use leasehold_engine::input::{Body, Input};
use leasehold_engine::internals::Digest;
use leasehold_engine::output::Output;
use script::Entry;
use services::Services;
use settle::Settling;
use std::sync::Arc;
use worker::Worker;

/// A worker that takes so many inputs in so short a time is restarted after this.
const SPIN_INPUTS: u32 = 10_000;
const SPIN_WITHIN_US: u64 = 10_000;
const RESTART_US: u64 = 1_000_000;
/// So many events pass between two looks at whether to go on: a few milliseconds.
const EVENTS_PER_LOOK: u32 = 4_096;

pub use found::Found;
pub use settle::Ending;

/// A world in the making.
#[derive(Debug)]
pub struct World {
    cx: Context,
    workers: Vec<Worker>,
    services: Services,
    flights: Vec<Option<Flight>>,
    free_flights: Vec<u32>,
    script: Vec<(Time, Entry)>,
    chances: Chances,
    settling: Option<Settling>,
    ending: Option<Ending>,
    digest: Digest,
    check_every: u64,
    checks: Vec<u64>,
    inputs: u64,
    trace: Option<Vec<(LifeNo, Input)>>,
    scratch: Vec<Output>,
    /// How long the run goes on after a violation, so that the cascade is seen, in µs.
    aftermath_us: u64,
    /// Violations of other properties do not end it; none: all do.
    only: Vec<Property>,
    /// What each worker said last that it holds.
    said: Vec<view::Said>,
    /// The input under way is the answer to a read of the stream.
    only_read: bool,
    /// The items of the answer under way, for another program.
    brought: Option<(
        Vec<Arc<leasehold_engine::table::Item>>,
        Option<leasehold_engine::table::Item>,
    )>,
    /// Whether to go on.
    cancel: Cancel,
}

impl World {
    /// The world of a plan, before its first moment.
    ///
    /// # Panics
    /// If the plan asks for a stream that the in-memory Kinesis refuses: the swarm's own fault.
    pub fn new(plan: Plan, options: &Options) -> Self {
        let mut world = Self {
            workers: Vec::new(),
            services: Services::new(&plan),
            flights: Vec::new(),
            free_flights: Vec::new(),
            script: Vec::new(),
            chances: Chances::new(plan.faults.request_faults.as_deref(), options.request_faults),
            settling: None,
            ending: None,
            digest: Digest::new(),
            check_every: options.check_every,
            checks: Vec::new(),
            inputs: 0,
            trace: options.trace.then(Vec::new),
            scratch: Vec::new(),
            aftermath_us: if options.stop { 0 } else { 5_000_000 },
            only: options.only.clone(),
            said: Vec::new(),
            only_read: false,
            brought: None,
            cancel: options.cancel.clone(),
            cx: Context::new(plan, options),
        };
        world.set_up();
        world
    }

    fn set_up(&mut self) {
        for w in 0..self.cx.plan().workers as usize {
            let ppm = self.cx.plan().faults.clock.rate_ppm.get(w).copied().unwrap_or(0);
            self.workers.push(Worker::new(Clock::new(0, 0, ppm)));
            // A fleet is started within a few seconds, now and then all at once.
            let at = if self.cx.draws().coin("start-together", 0) {
                0
            } else {
                self.cx.draws().below("start", w as u64, 5_000_000)
            };
            self.cx.push(
                at,
                What::Start {
                    worker: w as u16,
                    generation: 0,
                    loops: 0,
                },
            );
        }
        self.services.set_up(&mut self.cx);
        self.carry_out_requests();
        self.plan_script();
        self.cx.push(self.cx.plan().load.every_us, What::Produce);
        self.cx.push(self.look_every(), What::Look);
    }

    fn look_every(&self) -> u64 {
        (self.cx.plan().config.lease_duration().0 / 4).clamp(100_000, 2_000_000)
    }

    /// Runs the world to its end, or until it is cancelled. One in which something is wrong comes to its end soon.
    pub fn run(mut self) -> Found {
        let (mut last, mut events) = (Time::MAX, 0u32);
        while let Some((at, what)) = self.cx.next_event() {
            if at > last {
                break;
            }
            events = events.wrapping_add(1);
            if last == Time::MAX && events.is_multiple_of(EVENTS_PER_LOOK) && self.cancel.is_asked() {
                self.ending = Some(Ending::Cancelled);
                break;
            }
            self.cx.move_to(at);
            self.happen(what);
            if self.ending.is_some() {
                break;
            }
            if last == Time::MAX && self.cx.oracles().verdict.is_bad(&self.only) {
                last = at + self.aftermath_us;
            }
        }
        let simulated = self.cx.now();
        let kept = self.cx.into_kept();
        let (violations, canary) = kept.violations;
        Found {
            violations,
            canary,
            ending: self.ending.unwrap_or(Ending::Broken),
            inputs: self.inputs,
            simulated,
            digest: self.digest.value(),
            checks: self.checks,
            marks: kept.marks,
            states: kept.states,
            duplicates: kept.duplicates,
            window_us: kept.window_us,
            log: kept.log,
            trace: self.trace.unwrap_or_default(),
            request_faults: self.chances.struck.unwrap_or_default(),
            changes: kept.changes,
            recording: kept.recording,
        }
    }

    fn happen(&mut self, what: What) {
        self.route(what);
        self.carry_out_requests();
    }

    /// Carries out what parts asked of each other.
    fn carry_out_requests(&mut self) {
        while let Some(request) = self.cx.next_request() {
            match request {
                Request::NoteState(change) => self.note_state(&change),
                Request::HandOver { shard, to } => self.begin_hand_over(shard, to),
            }
        }
    }

    fn begin_hand_over(&mut self, shard: ShardNo, to: u32) {
        let engines = self.workers.iter().filter_map(|worker| worker.engine.as_ref());
        let living: Vec<WorkerId> = engines.filter_map(|engine| engine.worker().cloned()).collect();
        self.services.begin_hand_over(&mut self.cx, shard, to, &living);
    }

    fn route(&mut self, what: What) {
        match what {
            What::Execute { flight, second } => self.execute(flight, second),
            What::Answer { flight } => {
                let Some((w, lives)) = self.addressee(flight) else {
                    return;
                };
                if !lives {
                    self.discard(flight);
                } else if self.stands(w, flight) {
                    self.workers[w].backlog.push_back(what);
                } else {
                    self.answer(flight);
                }
            }
            What::Wake { worker, generation } => {
                if let Some(w) = self.awake(worker, generation, what) {
                    self.wake(w);
                }
            }
            What::Handler {
                worker,
                generation,
                shard,
                run,
            } => {
                if let Some(w) = self.awake(worker, generation, what) {
                    self.step_handler(w, shard, run);
                }
            }
            What::Noted {
                worker,
                generation,
                op,
            } => {
                if let Some(w) = self.awake(worker, generation, what) {
                    let life = self.incarnation(w);
                    let op = leasehold_engine::ids::OpId { life, n: op };
                    self.done(
                        w,
                        op,
                        leasehold_engine::input::Outcome::Applied(leasehold_engine::input::Reply::Done),
                    );
                }
            }
            What::Resume { worker, pause } => self.resume(worker as usize, pause),
            What::Crash {
                worker,
                generation,
                down_us,
                loops,
            } => {
                let w = worker as usize;
                // What was planned while faults lasted does not happen after them.
                if self.workers[w].generation == generation && !self.cx.is_healed() {
                    self.crash(w, down_us, loops);
                }
            }
            What::Stop {
                worker,
                generation,
                gap_us,
            } => {
                let w = worker as usize;
                if self.workers[w].generation == generation && !self.cx.is_healed() {
                    self.ask_to_stop(w, gap_us);
                }
            }
            What::Start {
                worker,
                generation,
                loops,
            } => {
                let w = worker as usize;
                if self.workers[w].generation == generation && !self.workers[w].lives() {
                    self.start(w, loops);
                }
            }
            What::Produce => self.services.produce(&mut self.cx),
            What::Script { entry } => self.perform(entry),
            What::HandOver { shard, to } => self.begin_hand_over(shard, to),
            What::Reshard { kind, pick, tries } => self.services.reshard(&mut self.cx, kind, pick, tries),
            What::Remake => self.services.remake_stream(&mut self.cx),
            What::Look => {
                self.look_for_the_slow();
                self.cx.look();
                self.look();
                self.cx.push(self.cx.now() + self.look_every(), What::Look);
            }
        }
    }

    /// The worker this is meant for, if that process lives and does not stand still; then it gets it later.
    fn awake(&mut self, worker: u16, generation: u32, what: What) -> Option<usize> {
        let known = &mut self.workers[worker as usize];
        if known.generation != generation || !known.lives() {
            return None;
        }
        if known.paused.is_some() {
            known.backlog.push_back(what);
            return None;
        }
        Some(worker as usize)
    }

    /// Whether a worker stands still as an answer arrives; that may be when it begins.
    fn stands(&mut self, w: usize, flight: u32) -> bool {
        if self.workers[w].paused.is_some() {
            return true;
        }
        let length = self.pause_on_answer(flight);
        if length == 0 || self.cx.is_healed() {
            return false;
        }
        self.pause(w, length);
        true
    }

    fn wake(&mut self, w: usize) {
        let worker = &mut self.workers[w];
        if self.cx.now() < worker.wake {
            // An earlier plan, long replaced.
            return;
        }
        worker.wake = Time::MAX;
        if worker.wanted <= self.cx.now() {
            self.handle(w, Body::Tick);
        } else {
            self.plan_wake(w);
        }
    }

    fn plan_wake(&mut self, w: usize) {
        let worker = &mut self.workers[w];
        if worker.wanted < worker.wake {
            worker.wake = worker.wanted.max(self.cx.now());
            let what = What::Wake {
                worker: w as u16,
                generation: worker.generation,
            };
            self.cx.push(worker.wake, what);
        }
    }

    /// Gives one input to a worker's engine, and does what it asks for.
    fn handle(&mut self, w: usize, body: Body) {
        if self.handle_original(w, &body) {
            return;
        }
        let now = self.cx.now();
        let worker = &mut self.workers[w];
        let Some(engine) = &mut worker.engine else { return };
        let boots = matches!(body, Body::Boot(_));
        let input = Input {
            at: worker.clock.mono(now),
            wall: worker.clock.wall(now),
            body,
        };
        self.inputs += 1;
        self.digest.absorb(&(now, w as u16, &input));
        let kept = self.trace.is_some().then(|| input.clone());
        let outbox = engine.handle(input);
        let wake_at = outbox.wake_at();
        let mut outputs = std::mem::take(&mut self.scratch);
        outputs.extend(outbox);
        self.digest.absorb(&wake_at);
        for output in &outputs {
            self.digest.absorb(output);
        }
        if self.check_every > 0 && self.inputs.is_multiple_of(self.check_every) {
            self.checks.push(self.digest.value());
        }
        worker.wanted = worker.clock.when(wake_at);
        if boots {
            let name = engine.worker().cloned().unwrap_or_else(|| WorkerId::from(""));
            self.begin_life(w, &name);
        }
        if let (Some(trace), Some(input)) = (&mut self.trace, kept) {
            trace.push((self.workers[w].life, input));
        }
        for output in outputs.drain(..) {
            match output {
                Output::Do(command) => self.issue(w, command),
                Output::Tell(notice) => self.told(w, &notice),
            }
        }
        self.scratch = outputs;
        // What a read brought changes no lease; whatever it might have changed shows with the next input.
        if !std::mem::take(&mut self.only_read) {
            self.compare_view(w);
        }
        if self.workers[w].engine.as_ref().is_some_and(Engine::is_stopped) {
            self.stopped(w);
        } else if self.spins(w) {
            self.crash(w, RESTART_US, 0);
        } else {
            self.plan_wake(w);
        }
    }

    /// Whether a worker takes one input after the other and time hardly goes on: such a world would never end.
    fn spins(&mut self, w: usize) -> bool {
        let (now, worker) = (self.cx.now(), &mut self.workers[w]);
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
        self.cx.fact(Fact::Spins {
            life,
            inputs,
            within_us,
        });
        true
    }
}
