//! The loop of a world. The next event in time happens next: a request comes to its service, an answer comes to its
//! process, a fault begins or ends, or a process's timer is due. So a run is a function of the plan and of the faults
//! left in the plan.

use super::fault::{Fault, HEALED, How, Time};
use super::ports::{Asked, Request};
use super::process::Clock;
use super::services::{Carry, Services};
use super::slot::{Coming, Slot, how};
use super::stage::{Failure, Stage};
use super::world::{End, Plan, World};
use leasehold::Error;
use leasehold::engine::input::{Cause, Outcome, Reply};
use leasehold::engine::output::TableOp;
use leasehold::engine::row::Change;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use tokio::sync::oneshot;

/// How long a world may take to come to rest after its last fault, and then to shut down.
const REST: Time = 90_000;
/// The interval between two checks for rest.
const LOOK: Time = 250;
/// How many shards may be open.
const MOST_SHARDS: usize = 8;

/// An event outside of the processes.
#[derive(Debug)]
enum Event {
    /// A request comes to its service. The answer, if sent, takes this time.
    Arrive(usize, Asked, Option<(oneshot::Sender<super::ports::Answered>, Time)>),
    Start(usize),
    Crash(usize, Time),
    /// The fault with this number, and the number of earlier tries.
    Reshard(usize, u32),
    Put(usize),
    Heal,
    Look,
}

/// The result of a run.
#[derive(Debug)]
pub(crate) struct Outcomes {
    pub(crate) failure: Option<Failure>,
    pub(crate) digest: u64,
    pub(crate) repeated: u64,
    pub(crate) lives: u64,
    pub(crate) story: Vec<String>,
}

/// A world that runs.
struct Run<'a> {
    world: &'a World,
    plan: &'a Plan,
    faults: &'a [Fault],
    stage: Stage,
    clock: Clock,
    slots: Vec<Slot>,
    events: BTreeMap<(Time, u64), Event>,
    /// The number of ordered events until now.
    order: u64,
    lives: usize,
    stopping: bool,
    over: bool,
}

/// Runs a world with only these faults.
pub(crate) fn run(world: &mut World, plan: &Plan, faults: &[Fault], tell: bool) -> Outcomes {
    let clock = Clock::default();
    let services = match Services::new(plan.shards, plan.update) {
        Ok(services) => services,
        Err(error) => panic!("expected the stream of a world to be created, but: {error}"),
    };
    let stage = Stage::new(clock.clone(), services, tell);
    let mut run = Run {
        world,
        plan,
        faults,
        stage: stage.clone(),
        clock,
        slots: (0..plan.workers).map(Slot::new).collect(),
        events: BTreeMap::new(),
        order: 0,
        lives: 0,
        stopping: false,
        over: false,
    };
    run.schedule();
    run.play();
    let lives = run.lives as u64;
    // All processes end before the check looks.
    drop(run);
    let puts: Vec<_> = plan.puts.iter().map(|(_, put)| put.clone()).collect();
    let sound = stage.scene().failure.is_none();
    if let Some(check) = world.check.take().filter(|_| sound) {
        let end = End { seed: world.seed(), puts };
        if let Err(said) = super::quiet::caught(|| check(&end)) {
            stage.fail("finally", said);
        }
    }
    let digest = stage.digest();
    let story = stage.story();
    let scene = stage.scene();
    Outcomes { failure: scene.failure.clone(), digest, repeated: scene.judge.repeated, lives, story }
}

impl Run<'_> {
    fn at(&mut self, at: Time, event: Event) {
        self.order += 1;
        self.events.insert((at, self.order), event);
    }

    fn comes(&mut self, slot: usize, at: Time, coming: Coming) {
        self.order += 1;
        self.slots[slot].inbox.insert((at, self.order), coming);
    }

    /// Schedules all events of a known time.
    fn schedule(&mut self) {
        for slot in 0..self.slots.len() {
            let at = self.plan.draws.between("start", slot as u64, 1, 1_500);
            self.at(at, Event::Start(slot));
        }
        for number in 0..self.plan.puts.len() {
            self.at(self.plan.puts[number].0, Event::Put(number));
        }
        for (number, fault) in self.faults.iter().enumerate() {
            match *fault {
                Fault::Crash { worker, at, back } => self.at(at, Event::Crash(worker, back)),
                Fault::Pause { worker, at, lasts } => {
                    self.comes(worker, at, Coming::Pause(at + lasts));
                    self.comes(worker, at + lasts, Coming::Resume);
                }
                Fault::ShutDown { worker, at, back } => {
                    self.comes(worker, at, Coming::ShutDown(at + back));
                }
                Fault::Split { at, .. } | Fault::Merge { at, .. } => self.at(at, Event::Reshard(number, 0)),
                Fault::CrashAtCheckpoint { .. }
                | Fault::CrashInBatch { .. }
                | Fault::PauseInBatch { .. }
                | Fault::Request { .. }
                | Fault::Spell { .. } => {}
            }
        }
        self.at(HEALED, Event::Heal);
    }

    fn play(&mut self) {
        while !self.over {
            let slots = self.slots.iter().filter_map(Slot::next);
            let event = self.events.first_key_value().map(|((at, _), _)| *at);
            let Some(now) = slots.chain(event).min() else {
                return;
            };
            self.clock.set(now);
            if now > HEALED + REST {
                self.stage.fail("delivery", self.restless());
            }
            while let Some(entry) = self.events.first_entry().filter(|entry| entry.key().0 <= now) {
                let event = entry.remove();
                self.take_place(now, event);
            }
            for slot in 0..self.slots.len() {
                while let Some(coming) = self.slots[slot].pop(now) {
                    self.arrives(now, slot, coming);
                }
            }
            for slot in 0..self.slots.len() {
                self.turn(now, slot);
            }
            if self.stage.scene().failure.is_some() {
                return;
            }
        }
    }

    fn take_place(&mut self, now: Time, event: Event) {
        match event {
            Event::Arrive(slot, asked, reply) => self.serve(now, slot, &asked, reply),
            Event::Start(slot) => self.start(slot),
            Event::Crash(slot, back) => self.crash(now, slot, back),
            Event::Reshard(number, tries) => self.reshard(now, number, tries),
            Event::Put(number) => self.put(now, number),
            Event::Heal => {
                self.stage.tell(|| "all faults are over".to_owned());
                (0..self.slots.len()).for_each(|slot| self.start(slot));
                self.at(now + LOOK, Event::Look);
            }
            Event::Look => self.look(now),
        }
    }

    fn put(&mut self, now: Time, number: usize) {
        let put = &self.plan.puts[number].1;
        let written = self.stage.scene().services.put(now, &put.partition_key, put.data.clone());
        if written.is_none() {
            let key = &put.partition_key;
            self.stage.fail(
                "world",
                format!("record {number} of {key} cannot be put: is its payload above 1 MiB?"),
            );
        }
    }

    fn start(&mut self, slot: usize) {
        if self.stopping || self.slots[slot].alive.is_some() {
            return;
        }
        let life = self.lives;
        self.lives += 1;
        self.stage.note(&("start", slot));
        self.stage.tell(|| format!("worker-{slot} is started"));
        let started = super::quiet::caught(|| {
            self.slots[slot].start(self.world, self.plan, &self.stage, &self.clock, life)
        });
        if let Ok(Err(why)) | Err(why) = started {
            self.stage.fail("start", format!("worker-{slot} cannot be started: {why}"));
        }
    }

    fn crash(&mut self, now: Time, slot: usize, back: Time) {
        if let Some(dead) = self.slots[slot].alive.take() {
            self.stage.note(&("crash", slot));
            self.stage.tell(|| format!("worker-{slot} dies"));
            self.stage.scene().judge.dies(dead.life);
            drop(dead);
            self.at(now + back.max(1), Event::Start(slot));
        }
    }

    fn reshard(&mut self, now: Time, number: usize, tries: u32) {
        let done = {
            let services = &mut self.stage.scene().services;
            match self.faults[number] {
                Fault::Split { pick, .. } => {
                    services.split(now, pick, MOST_SHARDS).map(|shard| ("split", shard))
                }
                Fault::Merge { pick, .. } => services.merge(now, pick).map(|shard| ("merged", shard)),
                _ => None,
            }
        };
        match done {
            Some((what, shard)) => {
                self.stage.note(&(what, shard.0));
                self.stage.tell(|| format!("{shard} is {what}"));
            }
            // Another change is under way.
            None if tries < 10 => self.at(now + 400, Event::Reshard(number, tries + 1)),
            None => {}
        }
    }

    /// A service executes a request and answers.
    fn serve(
        &mut self, now: Time, slot: usize, asked: &Asked,
        reply: Option<(oneshot::Sender<super::ports::Answered>, Time)>,
    ) {
        let answered = match asked {
            Asked::Table(op) => (self.stage.scene().services.table(op), Carry::Nothing),
            Asked::Stream(op, iterator) => self.stage.scene().services.stream(now, op, iterator.as_deref()),
        };
        match asked {
            Asked::Table(op) => self.stage.note(&(slot, op, &answered.0)),
            Asked::Stream(op, iterator) => self.stage.note(&(slot, op, iterator, &answered.0)),
        }
        let progress =
            matches!(asked, Asked::Table(TableOp::Write(Change::Checkpoint { .. } | Change::End { .. })));
        if progress && matches!(answered.0, Outcome::Applied(Reply::Done)) {
            self.slots[slot].checkpoints += 1;
            let nth = self.slots[slot].checkpoints;
            let back = self.faults.iter().find_map(|fault| match fault {
                Fault::CrashAtCheckpoint { worker, nth: at, back } if (*worker, *at) == (slot, nth) => {
                    Some(*back)
                }
                _ => None,
            });
            if let Some(back) = back.filter(|_| now < HEALED) {
                self.crash(now, slot, back.min(HEALED - now));
            }
        }
        if let Some((reply, back)) = reply {
            self.comes(slot, now + back, Coming::Answer(reply, Box::new(answered)));
        }
    }

    fn arrives(&mut self, now: Time, slot: usize, coming: Coming) {
        let alive = self.slots[slot].alive.as_mut();
        match (coming, alive) {
            // A worker that has given the request up, or is dead, does not listen.
            (Coming::Answer(reply, answered), _) => drop(reply.send(*answered)),
            (Coming::Pause(until), Some(alive)) if until > now => {
                alive.still = true;
                self.stage.note(&("pause", slot));
                self.stage.tell(|| format!("worker-{slot} stands still"));
            }
            (Coming::Resume, Some(alive)) if alive.still => {
                alive.still = false;
                alive.process.jump(now);
                alive.process.set_next(now);
                self.stage.tell(|| format!("worker-{slot} goes on"));
            }
            (Coming::ShutDown(again), Some(alive)) if !self.stopping => {
                (alive.asked, alive.again) = (true, again);
                alive.control.shutdown();
                self.stage.tell(|| format!("worker-{slot} is asked to shut down"));
            }
            _ => {}
        }
    }

    /// Runs a process, if its next run is due.
    fn turn(&mut self, now: Time, slot: usize) {
        let before = self.batches(slot);
        let Some(alive) =
            self.slots[slot].alive.as_mut().filter(|alive| !alive.still && alive.process.next() <= now)
        else {
            return;
        };
        alive.process.run();
        let (life, sent) = (alive.life, alive.outbox.take());
        let ended = alive.take_end();
        for request in sent {
            self.send(now, slot, life, request);
        }
        if let Some(ended) = ended {
            self.ended(slot, ended);
            return;
        }
        self.strike_in_batch(now, slot, before);
        let horizon = self.slots[slot].horizon(now);
        if let Some(alive) = &mut self.slots[slot].alive {
            alive.process.look_ahead(horizon);
        }
    }

    fn batches(&self, slot: usize) -> u64 {
        self.stage.scene().batches.get(&slot).copied().unwrap_or(0)
    }

    /// Batches handed over just now may bring faults.
    fn strike_in_batch(&mut self, now: Time, slot: usize, before: u64) {
        let new = before + 1..=self.batches(slot);
        for fault in self.faults {
            match *fault {
                Fault::CrashInBatch { worker, nth, after, back }
                    if worker == slot && new.contains(&nth) && now + after < HEALED =>
                {
                    self.at(now + after, Event::Crash(slot, back.min(HEALED - now)));
                }
                Fault::PauseInBatch { worker, nth, after, lasts }
                    if worker == slot && new.contains(&nth) && now + after < HEALED =>
                {
                    let until = (now + after + lasts).min(HEALED);
                    self.comes(slot, now + after, Coming::Pause(until));
                    self.comes(slot, until, Coming::Resume);
                }
                _ => {}
            }
        }
    }

    /// A worker has returned, and its process ends.
    fn ended(&mut self, slot: usize, ended: Result<leasehold::Report, Error>) {
        let Some(alive) = self.slots[slot].alive.take() else {
            return;
        };
        self.stage.note(&("ended", slot));
        self.stage.tell(|| format!("worker-{slot} has ended"));
        self.stage.scene().judge.dies(alive.life);
        let unexpected = match ended {
            Ok(_) | Err(Error::Unclean(_)) if alive.asked => None,
            Ok(_) | Err(Error::Unclean(_)) => Some("it was not asked to".to_owned()),
            Err(error) => Some(error.to_string()),
        };
        if !self.stopping {
            self.at(alive.again.max(self.clock.now() + 1), Event::Start(slot));
        }
        if let Some(why) = unexpected {
            self.stage.fail("worker", format!("worker-{slot} ended: {why}"));
        }
    }

    /// A worker sends a request.
    fn send(&mut self, now: Time, slot: usize, life: usize, request: Request) {
        let service = request.asked.service();
        let number = self.slots[slot].counts(service);
        let draws = self.plan.draws;
        // Keyed by the life and its own count: a fault of one worker shifts no latency of another.
        let key = (life as u64) << 40 | (service as u64) << 32 | number;
        let there = draws.between("there", key, 1, 8);
        let back = draws.between("back", key, 1, 8);
        let how = match now < HEALED {
            true => how(self.faults, now, slot, service, number),
            false => None,
        };
        if let Some(how) = how {
            self.stage.tell(|| format!("request {number} of worker-{slot} to the {service} is {how}"));
        }
        let Request { asked, reply } = request;
        let unknown = || Outcome::Unknown(Cause::Network);
        let (lands, told) = match how {
            None => (Some(there), None),
            Some(How::Slow(long)) => {
                let back = Some((reply, long));
                return self.at(now + there, Event::Arrive(slot, asked, back));
            }
            Some(How::NotSent) => (None, Some((there, Outcome::NotSent(Cause::Network)))),
            Some(How::Throttled) => (None, Some((there + back, Outcome::NotSent(Cause::Throttled)))),
            Some(How::LostRequest) => (None, Some((there + back, unknown()))),
            Some(How::LostAnswer) => (Some(there), Some((there + back, unknown()))),
            Some(How::Late(long)) => (Some(long), Some((there, unknown()))),
        };
        let answer = match told {
            None => Some((reply, back)),
            Some((after, outcome)) => {
                let answered = Box::new((outcome, Carry::Nothing));
                self.comes(slot, now + after, Coming::Answer(reply, answered));
                None
            }
        };
        if let Some(after) = lands {
            self.at(now + after, Event::Arrive(slot, asked, answer));
        }
    }

    /// The sentence about a world without rest.
    fn restless(&self) -> String {
        let why = self.unrest();
        let why = why.unwrap_or_else(|| "workers do not shut down".to_owned());
        let mut text = format!("no rest {} s after the last fault: {why}", REST / 1_000);
        if let Some(error) = &self.stage.scene().last_error {
            let _ = write!(text, "; a handler failed, the last time with: {error}");
        }
        text
    }

    /// The reason against rest, if any.
    fn unrest(&self) -> Option<String> {
        let now = self.clock.now();
        let left = self.plan.puts.iter().filter(|(at, _)| *at > now).count();
        if left > 0 {
            return Some(format!("{left} records are still to be put"));
        }
        let scene = &mut *self.stage.scene();
        scene.judge.missing(&mut scene.services, now)
    }

    /// Looks whether all is done: then the workers shut down, and then the world is over.
    fn look(&mut self, now: Time) {
        self.at(now + LOOK, Event::Look);
        if self.stopping {
            self.over = self.slots.iter().all(|slot| slot.alive.is_none());
        } else if self.unrest().is_none() {
            // Each worker hears of the shutdown at its process's next run, within a second.
            for alive in self.slots.iter_mut().filter_map(|slot| slot.alive.as_mut()) {
                alive.asked = true;
                alive.control.shutdown();
            }
            self.stopping = true;
        }
    }
}
