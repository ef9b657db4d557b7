//! The choices: possible next events of a world, and their execution.
//!
//! # Time
//!
//! A request takes no time, unless the fault *slow* is spent on the request. Execution and answer come before the clock
//! moves on, in every order among the workers. The clock moves from deadline to deadline. Deadlines belong to running
//! workers and to requests given up; while a worker is paused, the ends of its beliefs are deadlines, too. An event
//! without a fixed time may happen at each of these moments, before or after all other events of the moment. So the
//! search visits every *order* of events, and one of each kind of the lengths between events.
//!
//! A worker's requests of one moment are served in the order of their emission; another order takes a slow request.
//! Execution and answer happen at once: events of other workers between the two could as well come after the answer,
//! since an answer by itself changes only its receiver.

use super::request::Flight;
use super::world::World;
use crate::oracles::{Fact, Time};
use crate::world::services::table::wall_ms;
use leasehold_engine::input::{Body, Call};
use leasehold_local_aws::kinesis::ShardIndex;
use std::sync::Arc;

/// One choice. Numbers of requests are places in the list of requests under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// A request is executed and answered.
    Serve(usize),
    /// Fault: from now on, the times of the request's execution and answer are unknown.
    Slow(usize),
    /// A slow or forsaken request is executed.
    Execute(usize),
    /// The answer to a slow request arrives.
    Answer(usize),
    /// Fault: a worker's oldest request is executed, and the worker pauses as the answer arrives.
    StandBeforeAnswer(usize),
    /// Fault: a worker pauses.
    Stand(usize),
    /// A paused worker goes on, first with the answers received or with its deadlines.
    GoOn(usize, First),
    /// Fault: a worker dies, and a new life begins.
    Crash(usize),
    /// Fault: a worker is told to stop.
    Stop(usize),
    /// The first shard is split.
    Split,
    /// The clock moves on to the next deadline.
    Wait,
}

/// The first input of a worker after a pause.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum First {
    Answers,
    Deadlines,
}

impl World {
    /// The possible next steps. If none, the path ends here.
    pub(super) fn offered(&self) -> Vec<Step> {
        let mut steps = Vec::new();
        let oldest: Vec<usize> = (0..self.workers.len()).filter_map(|w| self.oldest(w)).collect();
        let (scope, spent) = (&*self.scope, self.spent);
        let may_fail = spent.faults() < scope.faults;
        for (index, flight) in self.flights.iter().enumerate().filter(|(_, flight)| flight.slow) {
            if flight.outcome.is_none() && !flight.is_handler() {
                steps.push(Step::Execute(index));
            } else if !flight.orphan && self.workers[flight.worker].runs() {
                steps.push(Step::Answer(index));
            }
        }
        let slow = may_fail && spent.slow < scope.slow;
        let pauses = may_fail && spent.pauses < scope.pauses;
        let crashes = may_fail && spent.crashes < scope.crashes;
        if let Some(&index) = oldest.iter().find(|&&index| self.flights[index].is_handler()) {
            // No other worker's event depends on a handler's end.
            steps.push(Step::Serve(index));
            steps.extend(slow.then_some(Step::Slow(index)));
        } else if !oldest.is_empty() {
            for index in oldest {
                let flight = &self.flights[index];
                steps.push(Step::Serve(index));
                steps.extend(slow.then_some(Step::Slow(index)));
                steps.extend(pauses.then_some(Step::StandBeforeAnswer(flight.worker)));
                steps.extend((crashes && flight.writes()).then_some(Step::Crash(flight.worker)));
            }
        } else {
            if self.next_moment() > scope.horizon.0 {
                return Vec::new();
            }
            for (w, worker) in self.workers.iter().enumerate() {
                if worker.paused.is_some() {
                    steps.push(Step::GoOn(w, First::Answers));
                    let waits =
                        |flight: &Arc<Flight>| flight.worker == w && flight.outcome.is_some() && !flight.slow;
                    let both = self.flights.iter().any(waits);
                    steps.extend(both.then_some(Step::GoOn(w, First::Deadlines)));
                } else if worker.runs() {
                    steps.extend(pauses.then_some(Step::Stand(w)));
                    steps.extend(crashes.then_some(Step::Crash(w)));
                    let stops = may_fail && spent.stops < scope.stops && !worker.stopping;
                    steps.extend(stops.then_some(Step::Stop(w)));
                }
            }
            steps.extend((scope.split && !spent.split).then_some(Step::Split));
            steps.push(Step::Wait);
        }
        steps
    }

    /// The oldest request of a running worker, without slow requests.
    fn oldest(&self, w: usize) -> Option<usize> {
        if !self.workers[w].runs() {
            return None;
        }
        self.flights.iter().position(|flight| flight.worker == w && !flight.slow && !flight.orphan)
    }

    /// The next deadline.
    pub(super) fn next_moment(&self) -> Time {
        let mut next = Time::MAX;
        for worker in self.workers.iter().filter(|worker| !worker.ended) {
            if worker.paused.is_some() {
                let ahead = worker.beliefs().chain([worker.wanted]);
                next = next.min(ahead.filter(|&at| at > self.now).min().unwrap_or(Time::MAX));
            } else {
                next = next.min(worker.wanted.max(self.now));
            }
        }
        for flight in self.flights.iter().filter(|flight| !flight.orphan) {
            if self.workers[flight.worker].runs() {
                next = next.min(flight.give_up.max(self.now));
            } else if flight.give_up > self.now {
                next = next.min(flight.give_up);
            }
        }
        next
    }

    /// Takes a step.
    pub(super) fn take(&mut self, step: Step) {
        self.steps += 1;
        if self.story.is_some() {
            let line = self.describe(step);
            self.tell(|_| line);
        }
        match step {
            Step::Serve(index) => self.serve(index),
            Step::Slow(index) => {
                self.spent.slow += 1;
                Arc::make_mut(&mut self.flights[index]).slow = true;
            }
            Step::Execute(index) => self.execute(index),
            Step::Answer(index) => self.answer(index),
            Step::StandBeforeAnswer(w) => {
                for index in 0..self.flights.len() {
                    let flight = &self.flights[index];
                    if flight.worker == w && !flight.slow && !flight.orphan {
                        self.execute(index);
                    }
                }
                self.stand(w);
            }
            Step::Stand(w) => self.stand(w),
            Step::GoOn(w, first) => self.go_on(w, first),
            Step::Crash(w) => {
                self.spent.crashes += 1;
                let life = self.workers[w].life;
                self.fact(&Fact::Died { life });
                self.orphan(w);
                self.start(w);
            }
            Step::Stop(w) => {
                self.spent.stops += 1;
                self.ask_to_stop(w);
            }
            Step::Split => self.split(),
            Step::Wait => self.wait(),
        }
    }

    fn serve(&mut self, index: usize) {
        self.execute(index);
        self.answer(index);
    }

    fn stand(&mut self, w: usize) {
        self.spent.pauses += 1;
        Arc::make_mut(&mut self.workers[w]).paused = Some(self.now);
    }

    pub(super) fn go_on(&mut self, w: usize, first: First) {
        let worker = Arc::make_mut(&mut self.workers[w]);
        let Some(since) = worker.paused.take() else { return };
        let life = worker.life;
        let stood = self.now - since;
        self.fact(&Fact::Resumed { life, stood });
        if first == First::Deadlines {
            self.feed(w, Body::Tick);
        }
        let arrived = |flight: &Arc<Flight>| flight.worker == w && !flight.slow && flight.outcome.is_some();
        while let Some(index) = self.flights.iter().position(arrived) {
            self.answer(index);
        }
        if first == First::Answers {
            self.feed(w, Body::Tick);
        }
    }

    pub(super) fn ask_to_stop(&mut self, w: usize) {
        let worker = Arc::make_mut(&mut self.workers[w]);
        worker.stopping = true;
        let life = worker.life;
        self.fact(&Fact::ShutdownAsked { life });
        self.feed(w, Body::Call(Call::Shutdown));
    }

    /// Halves the first shard; each half gets a record.
    fn split(&mut self) {
        self.spent.split = true;
        let now_ms = wall_ms(self.now);
        let source = Arc::make_mut(&mut self.source);
        let range =
            source.truth(0).and_then(|stream| stream.shard(ShardIndex(0))).map(|shard| shard.hash_range());
        let Some(range) = range else { return };
        let middle = range.start + (range.end - range.start) / 2 + 1;
        let done = source.split(now_ms, 0, middle);
        debug_assert!(done.is_ok(), "{done:?}");
        source.advance(now_ms);
        source.put(now_ms, 0, range.start, 1);
        source.put(now_ms, 0, range.end, 1);
        self.observe_stream();
    }

    pub(super) fn wait(&mut self) {
        self.now = self.next_moment();
        let now = self.now;
        // A paused worker is excused from deadlines until its pause ends.
        if self.workers.iter().all(|worker| worker.paused.is_none()) {
            self.truth_mut().oracles.look(now);
        }
        let overdue = |world: &World| {
            world.flights.iter().position(|flight| {
                !flight.orphan && flight.give_up <= now && world.workers[flight.worker].runs()
            })
        };
        while let Some(index) = overdue(self) {
            self.give_up(index);
        }
        for w in 0..self.workers.len() {
            let worker = &self.workers[w];
            if worker.runs() && worker.wanted <= now {
                self.feed(w, Body::Tick);
            }
        }
    }

    /// Takes the step needed without a choice: serves the oldest request of the first worker with a request, or else
    /// waits.
    pub(super) fn go_straight_on(&mut self) {
        match (0..self.workers.len()).find_map(|w| self.oldest(w)) {
            Some(index) => self.take(Step::Serve(index)),
            None => self.take(Step::Wait),
        }
    }

    fn describe(&self, step: Step) -> String {
        let of = |index: usize| {
            let flight = &self.flights[index];
            let whose = if flight.orphan { "'s former" } else { "'s" };
            format!("w{}{whose} request to {}", flight.worker, flight.describe())
        };
        match step {
            Step::Serve(index) => format!("{} is served", of(index)),
            Step::Slow(index) => format!("FAULT: {} is slow", of(index)),
            Step::Execute(index) => format!("{} is executed, late", of(index)),
            Step::Answer(index) => format!("the answer to {} arrives, late", of(index)),
            Step::StandBeforeAnswer(w) => match self.oldest(w) {
                Some(index) => {
                    format!("FAULT: {} is executed, and w{w} stands still before the answer", of(index))
                }
                None => format!("FAULT: w{w} stands still"),
            },
            Step::Stand(w) => format!("FAULT: w{w} stands still"),
            Step::GoOn(w, First::Answers) => format!("w{w} goes on"),
            Step::GoOn(w, First::Deadlines) => {
                format!("w{w} goes on, and looks at its deadlines before the answers")
            }
            Step::Crash(w) => format!("FAULT: w{w} dies and is started again"),
            Step::Stop(w) => format!("FAULT: w{w} is told to stop"),
            Step::Split => "shard 0 is split".into(),
            Step::Wait => {
                let next = self.next_moment();
                format!("time passes until {}.{:03}", next / 1_000_000, next / 1_000 % 1_000)
            }
        }
    }
}
