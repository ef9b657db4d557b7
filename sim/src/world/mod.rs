//! One world: workers, services, network, application and operators in one virtual time. Its parts, and the router
//! between them.
//!
//! | part | what it does |
//! |---|---|
//! | `services` | the table and the stream, the truth about rows and shards, edits by people |
//! | `fleet` | workers: processes, clocks, engines, applications, and foreign programs |
//! | `chances` | chance faults of requests and batches, and workers cut off by chance |
//! | `net` | requests under way, and their fate |
//! | `script` | acts at set times |
//! | `judge` | whether all comes right, and the ending of the world |
//!
//! A part is a struct with private fields. A part sees its arguments: the `context::Context` (time, plan, draws, names,
//! the heap of events, and the record of facts) and, where a signature says so, other parts. A part without access to
//! another part makes a `request::Request`; the world executes requests after the part's return. Only this file knows
//! all parts.
//!
//! A heap of events drives the whole world. Oracles receive all events as facts. The digest receives all inputs and
//! outputs, so two runs of one seed are comparable.

mod asked;
mod chances;
mod context;
pub(crate) mod fleet;
mod found;
mod heap;
mod judge;
pub(crate) mod net;
mod perform;
mod request;
mod script;
pub(crate) mod services;

pub use found::Found;
pub use judge::Ending;

use crate::options::{Cancel, Options};
use crate::oracles::{LifeNo, Property, Time};
use crate::peers::Ask;
use crate::swarm::Plan;
use asked::asked;
use chances::Chances;
use context::Context;
use fleet::{Begun, Fleet, Transcript};
use heap::{What, WorkerEvent};
use judge::Judge;
use leasehold_engine::ids::OpId;
use leasehold_engine::input::{Body, Call, Outcome, Reply};
use leasehold_engine::output::{Command, Effect, Output};
use leasehold_engine::time::Mono;
use net::Net;
use request::Request;
use script::Script;
use services::Services;
use services::stream::Items;

/// The number of events between two looks at the cancellation: a few milliseconds.
const EVENTS_PER_LOOK: u32 = 4_096;

/// A world in the making.
#[derive(Debug)]
pub struct World {
    cx: Context,
    services: Services,
    fleet: Fleet,
    chances: Chances,
    net: Net,
    script: Script,
    judge: Judge,
    /// The time that the run continues after a violation, to show the cascade, in µs.
    aftermath_us: u64,
    /// Violations of other properties do not end the world; none: every violation ends the world.
    only: Vec<Property>,
    /// The cancellation of the run.
    cancel: Cancel,
    /// Whether the world ends with the faults.
    faults_only: bool,
}

impl World {
    /// The world of a plan, before its first moment.
    ///
    /// # Panics
    /// If the in-memory Kinesis refuses a stream of the plan: a fault of the swarm.
    pub fn new(plan: Plan, options: &Options) -> Self {
        let listed = plan.faults.request_faults.as_deref();
        let chances = Chances::new(listed, options.request_faults, plan.workers);
        let mut services = Services::new(&plan);
        let mut fleet = Fleet::new(Transcript::new(options));
        let mut cx = Context::new(plan, options);
        fleet.set_up(&mut cx);
        services.set_up(&mut cx);
        let script = Script::new(&mut cx);
        script::mark_streams(&mut cx);
        cx.push(cx.plan().load.every_us, What::Produce);
        cx.push(look_every(&cx), What::Look);
        let mut world = Self {
            cx,
            services,
            fleet,
            chances,
            net: Net::default(),
            script,
            judge: Judge::default(),
            aftermath_us: if options.stop { 0 } else { 5_000_000 },
            only: options.only.clone(),
            cancel: options.cancel.clone(),
            faults_only: options.faults_only,
        };
        world.carry_out_requests();
        world
    }

    /// Runs the world to its end, or until a cancellation. A world with a violation ends soon.
    pub fn run(mut self) -> Found {
        let (mut last, mut events) = (Time::MAX, 0u32);
        while let Some((at, what)) = self.cx.next_event() {
            if at > last {
                break;
            }
            events = events.wrapping_add(1);
            if last == Time::MAX && events.is_multiple_of(EVENTS_PER_LOOK) && self.cancel.is_asked() {
                self.judge.cancel();
                break;
            }
            self.cx.move_to(at);
            self.happen(what);
            if self.judge.ending().is_some() {
                break;
            }
            if last == Time::MAX && self.cx.oracles().verdict.is_bad(&self.only) {
                last = at + self.aftermath_us;
            }
        }
        self.into_found()
    }

    fn into_found(self) -> Found {
        let mut found = Found::new(self.judge.ending().unwrap_or(Ending::Broken));
        self.cx.add_to(&mut found);
        self.fleet.add_to(&mut found);
        found.request_faults = self.chances.into_struck();
        found
    }

    fn happen(&mut self, what: What) {
        self.route(what);
        self.carry_out_requests();
    }

    fn route(&mut self, what: What) {
        let (cx, services) = (&mut self.cx, &mut self.services);
        match what {
            What::Execute { flight, second } => self.net.execute(cx, services, flight, second),
            What::Line(moment) => self.net.on_line(cx, &self.fleet, moment),
            What::Answer { flight } => self.on_answer(flight),
            What::Of { worker, generation, event } => {
                if let Some(w) = self.fleet.awake(worker, generation, event) {
                    self.on_event(w, event);
                }
            }
            What::Resume { .. } | What::Crash { .. } | What::Stop { .. } | What::Start { .. } => {
                self.on_process(what);
            }
            What::WallRight { worker } => self.fleet.set_wall_right(cx, usize::from(worker)),
            What::Produce => services.produce(cx),
            What::Script { entry } => self.perform(entry),
            What::HandOver { shard, to } => cx.request(Request::HandOver { shard, to }),
            What::Reshard { kind, pick, tries } => services.reshard(cx, kind, pick, tries),
            What::Remake => services.remake_stream(cx),
            What::Beside => services.begin_beside(cx),
            What::Look => {
                self.judge.look(cx, services, &self.fleet, &self.chances);
                cx.push(cx.now() + look_every(cx), What::Look);
            }
        }
    }

    /// An event of a live worker that does not stand still.
    fn on_event(&mut self, w: usize, event: WorkerEvent) {
        let (cx, fleet) = (&mut self.cx, &mut self.fleet);
        let body = match event {
            WorkerEvent::Wake => fleet.wake(cx, w).then_some(Body::Tick),
            WorkerEvent::Handler { shard, run } => {
                return fleet.step_handler(cx, &self.services, w, shard, run);
            }
            WorkerEvent::PauseEnds { shard } => return fleet.end_shard_pause(cx, w, shard),
            WorkerEvent::Kept { shard, batch } => return fleet.finish_kept(cx, w, shard, batch),
            WorkerEvent::Noted { op } => {
                let op = OpId { life: fleet.incarnation(cx, w), n: op };
                Some(Body::Done { op, outcome: Outcome::Applied(Reply::Done) })
            }
            WorkerEvent::Beat { block } => fleet.beat(cx, w, block).map(Body::Call),
            WorkerEvent::Unblock { block } => return self.unblock(w, block),
            WorkerEvent::ReadStream { stream, reads } => {
                fleet.read_stream(cx, w, stream, reads).map(Body::Call)
            }
        };
        if let Some(body) = body {
            self.handle(w, body);
        }
    }

    /// A worker's process continues, ends or begins.
    fn on_process(&mut self, what: What) {
        // Events planned during the faults do not happen after the faults.
        let healed = self.cx.is_healed();
        match what {
            What::Resume { worker, pause } => self.resume(usize::from(worker), pause),
            What::Crash { worker, generation, down_us, loops } => {
                let w = usize::from(worker);
                if self.fleet.worker(w).generation() == generation && !healed {
                    self.fleet.crash(&mut self.cx, w, down_us, loops);
                }
            }
            What::Stop { worker, generation, gap_us } => {
                let w = usize::from(worker);
                if self.fleet.worker(w).generation() == generation && !healed {
                    self.ask_to_stop(w, gap_us);
                }
            }
            What::Start { worker, generation, loops } => {
                let w = usize::from(worker);
                let known = self.fleet.worker(w);
                if known.generation() == generation && !known.lives() {
                    self.start(w, loops);
                }
            }
            _ => debug_assert!(false, "{what:?} is of no process"),
        }
    }

    /// Executes the parts' requests to each other.
    fn carry_out_requests(&mut self) {
        while let Some(request) = self.cx.next_request() {
            self.carry_out(request);
        }
    }

    fn carry_out(&mut self, request: Request) {
        match request {
            Request::NoteState(change) => self.fleet.note_state(&mut self.cx, &change),
            Request::HandOver { shard, to } => {
                let living = self.fleet.names();
                self.services.begin_hand_over(&mut self.cx, shard, to, &living);
            }
            Request::MendRow { shard } => self.services.mend_spoiled(&mut self.cx, shard),
            Request::Done { w, op, outcome } => self.handle(w, Body::Done { op, outcome }),
            Request::Calls { w, life, calls } => self.call(w, life, calls),
        }
    }

    /// An application calls its worker, if that life still runs.
    fn call(&mut self, w: usize, life: LifeNo, calls: Vec<Call>) {
        let worker = self.fleet.worker(w);
        if worker.life() != life || !worker.lives() {
            return;
        }
        for call in calls {
            if let Some(fact) = asked(&call, life) {
                self.cx.fact(fact);
            }
            self.handle(w, Body::Call(call));
        }
    }

    /// An answer comes back: to a dead worker, to a worker at a standstill, or to a worker that takes the answer.
    fn on_answer(&mut self, flight: u32) {
        let Some((w, lives)) = self.net.addressee(&self.fleet, flight) else {
            return;
        };
        if !lives {
            self.net.discard(flight);
            return;
        }
        let what = What::Answer { flight };
        if self.fleet.put_by(w, what) {
            return;
        }
        // The worker may stand still from now on.
        let length = self.net.pause_on_answer(flight);
        if length > 0 && !self.cx.is_healed() {
            self.fleet.pause(&mut self.cx, w, length);
            self.fleet.put_by(w, what);
            return;
        }
        self.answer(flight);
    }

    fn answer(&mut self, flight: u32) {
        if let Some(answer) = self.net.answer(&mut self.cx, &mut self.fleet, flight) {
            let (w, done, items, only_read) = answer.into_parts();
            self.handle_answer(w, done, items, only_read);
        }
    }

    fn resume(&mut self, w: usize, pause: u32) {
        for what in self.fleet.resume(&mut self.cx, w, pause) {
            match what {
                // The answer has waited; the worker does not stand still again for the same answer.
                What::Answer { flight }
                    if self.net.addressee(&self.fleet, flight).is_some_and(|(_, lives)| lives) =>
                {
                    self.answer(flight);
                }
                what => self.happen(what),
            }
        }
    }

    fn ask_to_stop(&mut self, w: usize, gap_us: u64) {
        if self.fleet.ask_to_stop(&mut self.cx, w, gap_us) {
            self.handle(w, Body::Call(Call::Shutdown));
        }
    }

    fn start(&mut self, w: usize, loops: u32) {
        let generation = self.fleet.worker(w).generation();
        match self.fleet.begin(&mut self.cx, w) {
            Begun::Program => self.run_program(w),
            Begun::Engine(boot) => self.handle(w, Body::Boot(boot)),
        }
        self.fleet.plan_crash_loop(&mut self.cx, w, generation, loops);
    }

    /// Gives an input to a worker, and executes the worker's commands.
    fn handle(&mut self, w: usize, body: Body) {
        self.handle_answer(w, body, None, false);
    }

    fn handle_answer(&mut self, w: usize, body: Body, items: Option<Items>, only_read: bool) {
        if self.fleet.worker(w).is_of_others() {
            self.fleet.give_program(&self.cx, w, &body, items);
            self.run_program(w);
            return;
        }
        let Some(mut outputs) = self.fleet.take_input(&mut self.cx, w, body) else {
            return;
        };
        for output in outputs.drain(..) {
            match output {
                Output::Do(command) => self.issue(w, command),
                Output::Tell(notice) => self.fleet.told(&mut self.cx, w, &notice),
            }
        }
        self.fleet.end_input(&mut self.cx, w, outputs, only_read);
    }

    /// Runs a foreign program, and executes its requests.
    fn run_program(&mut self, w: usize) {
        let (asked, exit) = self.fleet.run_program(&self.cx, w);
        for (op, ask) in asked {
            match ask {
                Ask::Effect(effect) => {
                    let give_up = Mono::NEVER;
                    self.issue(w, Command { op, give_up, effect });
                }
                Ask::Item(request) => {
                    let parts = (&mut self.fleet, &self.services, &mut self.chances);
                    self.net.issue_item(&mut self.cx, parts, w, op, request);
                }
            }
        }
        self.fleet.end_program(&mut self.cx, w, exit);
    }

    /// Sends a worker's command to its application or to a service.
    fn issue(&mut self, w: usize, command: Command) {
        let cx = &mut self.cx;
        let Effect::Consumer(consumer_op) = command.effect else {
            let parts = (&mut self.fleet, &self.services, &mut self.chances);
            return self.net.issue(cx, parts, w, command);
        };
        let asked = (command.op, command.give_up);
        let chances = &mut self.chances;
        if let Some(outcome) = self.fleet.consume(cx, chances, w, asked, consumer_op) {
            self.net.answer_locally(cx, &self.fleet, w, command.op, outcome);
        }
    }
}

/// The interval between the oracles' looks for overdue events.
fn look_every(cx: &Context) -> u64 {
    (cx.plan().config.lease_duration().0 / 4).clamp(100_000, 2_000_000)
}
