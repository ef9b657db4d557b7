//! The course of a world. The next event in time happens next: a request comes to its service, an answer comes to its
//! process, or a fault begins or ends. So a run is a function of the plan, of the faults left in the plan, and of the
//! requests that the host's processes send.

mod requests;

use super::fault::{Fault, Micros, Time};
use super::host::Host;
use super::outbox::Outbox;
use super::quiet::caught;
use super::slot::{Alive, Coming, Slot};
use super::stage::{Failure, Stage};
use super::world::{Check, End, Ended, Life, Place, Plan, World};
use leasehold::Error;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::{Notify, oneshot};

/// The interval between two checks for rest.
const LOOK: Time = 250;

/// A reply, and the time of its way back.
type Back<A> = Option<(oneshot::Sender<A>, Micros)>;

/// An event outside of the processes.
enum Event<H: Host> {
    /// A request comes to its service. The answer, if sent, takes this time.
    Arrive(usize, H::Request, Back<H::Answer>),
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
pub struct Outcomes {
    /// The broken property, if any.
    pub failure: Option<Failure>,
    /// The digest of all events.
    pub digest: u64,
    /// How many records were put.
    pub records: u64,
    /// How many of them were not done.
    pub lost: u64,
    /// How many were done more than once.
    pub repeated: u64,
    /// The number of worker processes.
    pub lives: u64,
    /// The last lines of the story.
    pub story: Vec<String>,
}

/// A world that runs.
pub struct Run<'a, H: Host> {
    /// The host of its processes.
    pub host: H,
    /// Wakes the host's loop, at a request or the end of a worker.
    pub wakes: Arc<Notify>,
    world: &'a World,
    check: Option<Check>,
    plan: &'a Plan,
    faults: Vec<Fault>,
    stage: Stage,
    slots: Vec<Slot<H>>,
    events: BTreeMap<(Micros, u64), Event<H>>,
    /// The time of the last step.
    micros: Micros,
    /// The number of ordered events until now.
    order: u64,
    lives: usize,
    stopping: bool,
    over: bool,
}

impl<'a, H: Host> Run<'a, H> {
    /// A world before its first event, with only these faults.
    pub fn new(world: &'a mut World, plan: &'a Plan, faults: &[usize], stage: Stage, host: H) -> Self {
        let check = world.take_check();
        world.starts();
        let mut run = Self {
            host,
            wakes: Arc::default(),
            world,
            check,
            plan,
            faults: faults.iter().map(|number| plan.faults[*number]).collect(),
            stage,
            slots: (0..plan.workers).map(|_| Slot::new()).collect(),
            events: BTreeMap::new(),
            micros: 0,
            order: 0,
            lives: 0,
            stopping: false,
            over: false,
        };
        run.schedule();
        run
    }

    /// The time of the next event.
    pub fn next(&self) -> Option<Micros> {
        let event = self.events.first_key_value().map(|((at, _), _)| *at);
        self.slots.iter().filter_map(Slot::next).chain(event).min()
    }

    /// The time of the next event for a worker.
    pub fn next_of(&self, worker: usize) -> Option<Micros> {
        self.slots[worker].next()
    }

    /// Whether a worker's process runs.
    pub fn is_running(&self, worker: usize) -> bool {
        self.slots[worker].alive.as_ref().is_some_and(|alive| !alive.still)
    }

    /// Whether the world has ended, or failed.
    pub fn is_over(&self) -> bool {
        self.over || self.stage.scene().failure.is_some()
    }

    /// All processes end, and then the check looks.
    pub fn conclude(self) -> Outcomes {
        let Self { host, check, plan, stage, slots, lives, world, .. } = self;
        drop((host, slots));
        let sound = stage.scene().failure.is_none();
        if let Some(check) = check.filter(|_| sound) {
            let puts = plan.puts.iter().map(|(_, put)| put.clone()).collect();
            let end = End { seed: world.seed(), puts };
            if let Err(said) = caught(|| check(&end)) {
                stage.fail("finally", said);
            }
        }
        let (digest, story) = (stage.digest(), stage.story());
        let (records, lost) = stage.judges(|judge, stream| judge.counts(stream));
        let scene = stage.scene();
        let repeated = scene.judge.repeated;
        Outcomes {
            failure: scene.failure.clone(),
            digest,
            records,
            lost,
            repeated,
            lives: lives as u64,
            story,
        }
    }

    fn at(&mut self, at: Time, event: Event<H>) {
        self.order += 1;
        self.events.insert((at * 1_000, self.order), event);
    }

    fn comes(&mut self, slot: usize, at: Time, coming: Coming<H::Answer>) {
        self.order += 1;
        self.slots[slot].inbox.insert((at * 1_000, self.order), coming);
    }

    /// Schedules all events of a known time.
    fn schedule(&mut self) {
        for slot in 0..self.slots.len() {
            let at = self.plan.draws.between("start", slot as u64, 1, 1_500);
            self.at(at + self.plan.scale.opens, Event::Start(slot));
        }
        for number in 0..self.plan.puts.len() {
            self.at(self.plan.puts[number].0, Event::Put(number));
        }
        for number in 0..self.faults.len() {
            match self.faults[number] {
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
                | Fault::Spell { .. }
                | Fault::Weather { .. } => {}
            }
        }
        self.at(self.healed(), Event::Heal);
    }

    fn healed(&self) -> Time {
        self.plan.scale.healed
    }

    /// Everything due by now happens.
    pub fn step(&mut self, micros: Micros) {
        self.micros = micros;
        let now = micros / 1_000;
        if now > self.healed() + self.plan.scale.rest {
            self.stage.fail("delivery", self.restless(now));
        }
        while let Some(entry) = self.events.first_entry().filter(|entry| entry.key().0 <= micros) {
            let event = entry.remove();
            self.take_place(now, event);
        }
        for slot in 0..self.slots.len() {
            while let Some(coming) = self.slots[slot].pop(micros) {
                self.arrives(now, slot, coming);
            }
        }
    }

    fn take_place(&mut self, now: Time, event: Event<H>) {
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
        let written = self.stage.scene().source.put(now, &put.partition_key, put.data.clone());
        if let Err(error) = written {
            let key = &put.partition_key;
            self.stage.fail("world", format!("record {number} of {key} cannot be put: {error}"));
        }
    }

    fn start(&mut self, slot: usize) {
        if self.stopping || self.slots[slot].alive.is_some() {
            return;
        }
        let life = self.lives;
        self.lives += 1;
        self.stage.happens("start", &slot);
        self.stage.tell(|| format!("worker-{slot} is started"));
        if let Ok(Err(why)) | Err(why) = caught(|| self.begin(slot, life)) {
            self.stage.fail("start", format!("worker-{slot} cannot be started: {why}"));
        }
    }

    /// Begins the life with this number.
    fn begin(&mut self, slot: usize, unique: usize) -> Result<(), String> {
        let life = Life { worker: slot, nth: self.slots[slot].lives };
        self.slots[slot].lives += 1;
        let outbox = Outbox::new(self.wakes.clone());
        let (heard, config) = (self.stage.clone(), self.plan.config.clone());
        let worker = self
            .host
            .begin(&self.stage, life, unique, outbox.clone())?
            .config(|_| config)
            .worker_id(format!("worker-{slot}"))
            .on_notice(move |notice| heard.hears(slot, notice))
            .build()
            .map_err(|error| error.to_string())?;
        let control = worker.control();
        let start = self.world.starts();
        let place = Place { stage: self.stage.clone(), life: unique };
        let ended = Arc::new(Mutex::default());
        let (result, wakes) = (ended.clone(), self.wakes.clone());
        self.host.spawn(slot, || {
            let run = start(life, worker, place);
            Box::pin(async move {
                let end = run.await;
                *result.lock().unwrap_or_else(PoisonError::into_inner) = Some(end);
                wakes.notify_one();
            })
        });
        let alive = Alive { life: unique, outbox, control, ended, still: false, asked: false, again: 0 };
        self.slots[slot].alive = Some(alive);
        Ok(())
    }

    fn crash(&mut self, now: Time, slot: usize, back: Time) {
        if let Some(dead) = self.slots[slot].alive.take() {
            self.stage.happens("crash", &slot);
            self.stage.tell(|| format!("worker-{slot} dies"));
            self.stage.scene().judge.dies(dead.life);
            self.host.kill(slot);
            self.at(now + back.max(1), Event::Start(slot));
        }
    }

    fn reshard(&mut self, now: Time, number: usize, tries: u32) {
        let done = {
            let source = &mut self.stage.scene().source;
            match self.faults[number] {
                Fault::Split { pick, .. } => source.split(now, pick).map(|shard| ("split", shard)),
                Fault::Merge { pick, .. } => source.merge(now, pick).map(|shard| ("merged", shard)),
                _ => None,
            }
        };
        match done {
            Some((what, shard)) => {
                self.stage.happens(what, &shard.0);
                self.stage.tell(|| format!("{shard} is {what}"));
            }
            // Another change is under way.
            None if tries < 10 => self.at(now + 400, Event::Reshard(number, tries + 1)),
            None => {}
        }
    }

    /// A checkpoint has come to the table, and may bring a fault.
    fn checkpointed(&mut self, now: Time, slot: usize) {
        self.slots[slot].checkpoints += 1;
        let nth = self.slots[slot].checkpoints;
        let back = self.faults.iter().find_map(|fault| match fault {
            Fault::CrashAtCheckpoint { worker, nth: at, back } if (*worker, *at) == (slot, nth) => {
                Some(*back)
            }
            _ => None,
        });
        if let Some(back) = back.filter(|_| now < self.healed()) {
            self.crash(now, slot, back.min(self.healed() - now));
        }
    }

    fn arrives(&mut self, now: Time, slot: usize, coming: Coming<H::Answer>) {
        let alive = self.slots[slot].alive.as_mut();
        match (coming, alive) {
            // A worker that has given the request up, or is dead, does not listen.
            (Coming::Answer(reply, answered), _) => drop(reply.send(*answered)),
            (Coming::Pause(until), Some(alive)) if until > now => {
                alive.still = true;
                self.host.pause(slot);
                self.stage.happens("pause", &slot);
                self.stage.tell(|| format!("worker-{slot} stands still"));
            }
            (Coming::Resume, Some(alive)) if alive.still => {
                alive.still = false;
                self.host.resume(slot, now);
                self.stage.tell(|| format!("worker-{slot} goes on"));
            }
            (Coming::ShutDown(again), Some(alive)) if !self.stopping => {
                (alive.asked, alive.again) = (true, again);
                alive.control.shutdown();
                *self.stage.scene().events.entry("shutdown").or_default() += 1;
                self.stage.tell(|| format!("worker-{slot} is asked to shut down"));
            }
            _ => {}
        }
    }

    /// Takes in what a worker's process has done until now. Returns whether the process lives on.
    pub fn settle(&mut self, slot: usize) -> bool {
        let now = self.micros / 1_000;
        let Some(alive) = &self.slots[slot].alive else {
            return false;
        };
        let (life, sent, ended) = (alive.life, alive.outbox.take(), alive.take_end());
        for request in sent {
            self.send(now, slot, life, request);
        }
        match ended {
            Some(ended) => self.ended(now, slot, ended),
            None => self.strike_in_batch(now, slot),
        }
        self.slots[slot].alive.is_some()
    }

    /// Batches handed over just now may bring faults.
    fn strike_in_batch(&mut self, now: Time, slot: usize) {
        let batches = self.stage.scene().batches.get(&slot).copied().unwrap_or(0);
        let new = std::mem::replace(&mut self.slots[slot].batches, batches) + 1..=batches;
        let healed = self.healed();
        for number in 0..self.faults.len() {
            match self.faults[number] {
                Fault::CrashInBatch { worker, nth, after, back }
                    if worker == slot && new.contains(&nth) && now + after < healed =>
                {
                    self.at(now + after, Event::Crash(slot, back.min(healed - now)));
                }
                Fault::PauseInBatch { worker, nth, after, lasts }
                    if worker == slot && new.contains(&nth) && now + after < healed =>
                {
                    let until = (now + after + lasts).min(healed);
                    self.comes(slot, now + after, Coming::Pause(until));
                    self.comes(slot, until, Coming::Resume);
                }
                _ => {}
            }
        }
    }

    /// A worker has returned, and its process ends.
    fn ended(&mut self, now: Time, slot: usize, ended: Ended) {
        let Some(alive) = self.slots[slot].alive.take() else {
            return;
        };
        self.host.kill(slot);
        self.stage.happens("ended", &slot);
        self.stage.tell(|| format!("worker-{slot} has ended"));
        self.stage.scene().judge.dies(alive.life);
        let unexpected = match ended {
            Ok(_) | Err(Error::Unclean(_)) if alive.asked => None,
            Ok(_) | Err(Error::Unclean(_)) => Some("it was not asked to".to_owned()),
            Err(error) => Some(error.to_string()),
        };
        if !self.stopping {
            self.at(alive.again.max(now + 1), Event::Start(slot));
        }
        if let Some(why) = unexpected {
            self.stage.fail("worker", format!("worker-{slot} ended: {why}"));
        }
    }

    /// The sentence about a world without rest.
    fn restless(&self, now: Time) -> String {
        let why = self.unrest(now);
        let why = why.unwrap_or_else(|| "workers do not shut down".to_owned());
        let mut text = format!("no rest {} s after the last fault: {why}", self.plan.scale.rest / 1_000);
        if let Some(error) = &self.stage.scene().last_error {
            let _ = write!(text, "; a handler failed, the last time with: {error}");
        }
        text
    }

    /// The reason against rest, if any.
    fn unrest(&self, now: Time) -> Option<String> {
        let left = self.plan.puts.iter().filter(|(at, _)| *at > now).count();
        if left > 0 {
            return Some(format!("{left} records are still to be put"));
        }
        let calm = self.plan.scale.calm.map(|calm| calm(&self.plan.config).0 / 1_000);
        self.stage.judges(|judge, stream| {
            let missing = judge.missing(stream);
            missing.or_else(|| judge.unsettled(stream, now, calm?))
        })
    }

    /// Looks whether all is done: then the workers shut down, and then the world is over.
    fn look(&mut self, now: Time) {
        self.at(now + LOOK, Event::Look);
        if self.stopping {
            self.over = self.slots.iter().all(|slot| slot.alive.is_none());
            if self.over && self.plan.scale.calm.is_some() {
                let left = self.stage.judges(|judge, stream| judge.left(stream));
                left.into_iter().for_each(|what| self.stage.fail("rows", what));
            }
        } else if self.unrest(now).is_none() {
            // Each worker hears of the shutdown at its process's next run, within a second.
            for alive in self.slots.iter_mut().filter_map(|slot| slot.alive.as_mut()) {
                alive.asked = true;
                alive.control.shutdown();
            }
            self.stopping = true;
        }
    }
}
