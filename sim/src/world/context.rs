//! What every part is given: the plan, the time, draws, names, the heap of events, and what takes note of what happens.

use super::found::Found;
use super::heap::{Heap, What};
use super::record::Record;
use super::request::Request;
use crate::draws::Draws;
use crate::faults::{Faults, WallAfter};
use crate::names::Names;
use crate::options::Options;
use crate::oracles::{Fact, LifeNo, Oracles, Property, ShardNo, Terms, Time, canary};
use crate::recording::RequestNo;
use crate::swarm::Plan;
use leasehold_engine::ids::WorkerId;
use leasehold_engine::notice::Notice;
use std::collections::VecDeque;

/// The part of a world that all parts stand on.
#[derive(Debug)]
pub(super) struct Context {
    plan: Plan,
    draws: Draws,
    now: Time,
    heap: Heap,
    names: Names,
    /// The faults are over.
    healed: bool,
    /// The stream or the table was taken away for good.
    lost: bool,
    record: Record,
    /// Empty between two events.
    requests: VecDeque<Request>,
}

impl Context {
    pub(super) fn new(plan: Plan, options: &Options) -> Self {
        Self {
            draws: Draws::new(plan.seed),
            now: 0,
            heap: Heap::default(),
            names: Names::of(plan.streams()),
            healed: false,
            lost: false,
            record: Record::new(&terms(&plan), plan.workers, options),
            requests: VecDeque::new(),
            plan,
        }
    }

    pub(super) fn plan(&self) -> &Plan {
        &self.plan
    }

    pub(super) fn draws(&self) -> Draws {
        self.draws
    }

    pub(super) fn now(&self) -> Time {
        self.now
    }

    /// The next event. What was due while its worker stood still happens when the worker goes on: time does not go back.
    pub(super) fn next_event(&mut self) -> Option<(Time, What)> {
        self.heap.pop()
    }

    pub(super) fn move_to(&mut self, at: Time) {
        self.now = self.now.max(at);
    }

    /// Plans an event.
    pub(super) fn push(&mut self, at: Time, what: What) {
        self.heap.push(at, what);
    }

    /// All that is to happen, in no order.
    pub(super) fn planned(&self) -> impl Iterator<Item = &What> {
        self.heap.planned()
    }

    /// Asks another part for something.
    pub(super) fn request(&mut self, request: Request) {
        self.requests.push_back(request);
    }

    pub(super) fn next_request(&mut self) -> Option<Request> {
        self.requests.pop_front()
    }

    pub(super) fn names(&self) -> &Names {
        &self.names
    }

    pub(super) fn names_mut(&mut self) -> &mut Names {
        &mut self.names
    }

    /// A process of a worker begins, under this name.
    pub(super) fn begin_life(&mut self, w: usize, name: &WorkerId) -> LifeNo {
        let life = self.names.begin_life(w as u16, name);
        let worker = w as u32;
        self.fact(Fact::Booted { life, worker });
        self.line(|| format!("w{w} starts as life {life}"));
        life
    }

    /// Whether the faults are over.
    pub(super) fn is_healed(&self) -> bool {
        self.healed
    }

    pub(super) fn set_healed(&mut self) {
        self.healed = true;
    }

    /// Whether something was taken away for good.
    pub(super) fn is_lost_for_good(&self) -> bool {
        self.lost
    }

    pub(super) fn set_lost_for_good(&mut self) {
        self.lost = true;
    }

    /// Something happened.
    pub(super) fn fact(&mut self, fact: Fact) {
        self.record.fact(self.now, &self.names, fact);
    }

    /// Tells only the oracles of something that the recording does not need.
    pub(super) fn observe(&mut self, fact: &Fact) {
        self.record.oracles_mut().observe(self.now, fact);
    }

    /// A property is violated.
    pub(super) fn report(&mut self, property: Property, summary: impl FnOnce() -> String) {
        let verdict = &mut self.record.oracles_mut().verdict;
        verdict.report(property, self.now, summary);
    }

    /// Something was made to go wrong, for a worker or for one of its requests.
    pub(super) fn fault(&mut self, name: &'static str, worker: Option<usize>, request: Option<RequestNo>) {
        self.record.fault(self.now, name, worker, request);
    }

    /// Something occurred that is counted.
    pub(super) fn mark(&mut self, mark: &'static str) {
        self.record.mark(mark);
    }

    /// A lease was seen in a state of this kind.
    pub(super) fn state(&mut self, kind: u32) {
        self.record.state(kind);
    }

    /// A worker says something of itself.
    pub(super) fn told(&mut self, w: usize, notice: &Notice) {
        self.record.told(self.now, w, notice);
    }

    /// The row of a shard names this owner from now on.
    pub(super) fn owned(&mut self, shard: ShardNo, owner: Option<&WorkerId>) {
        self.record.owned(shard, owner);
    }

    /// A state change, in words.
    pub(super) fn line(&mut self, line: impl FnOnce() -> String) {
        self.record.line(self.now, &self.names, line);
    }

    pub(super) fn oracles(&self) -> &Oracles {
        self.record.oracles()
    }

    /// This life is of a program that others wrote.
    pub(super) fn note_other(&mut self, life: LifeNo) {
        self.record.oracles_mut().note_other(life);
    }

    /// The oracles look for what is overdue.
    pub(super) fn look(&mut self) {
        self.record.oracles_mut().look(self.now);
    }

    /// The oracles look for what should have happened since all was well.
    pub(super) fn look_at_end(&mut self, since: Time, ours: bool) {
        self.record.oracles_mut().look_at_end(self.now, since, ours);
    }

    /// Adds what is left when the world has ended.
    pub(super) fn add_to(self, found: &mut Found) {
        found.simulated = self.now;
        self.record.add_to(found);
    }
}

/// Whether some wall clock is wrong for a while.
fn sets_clocks(faults: &Faults) -> bool {
    let mut suspensions = faults.suspension.suspensions.iter();
    !faults.clock.steps.is_empty() || suspensions.any(|suspension| suspension.wall != WallAfter::Right)
}

/// What a world promises its oracles, and what it does not.
fn terms(plan: &Plan) -> Terms {
    let application = &plan.faults.application;
    let (most, deaf) = plan.faults.worst_handler();
    Terms {
        config: plan.config.clone(),
        upgraded: plan.upgraded.clone(),
        clocks_beyond: plan.faults.clock.beyond,
        wall_steps: sets_clocks(&plan.faults),
        deaf_us: if deaf { most + application.batch_us } else { 0 },
        abort_us: application.abort_us,
        mixed: plan.has_others() || plan.start.is_some(),
        led: plan.fleet.is_led(),
        migrates: plan.fleet.migrates,
        canary: canary::fires(plan.seed),
        streams: plan.streams,
        even: !plan.faults.aggregates.is_on(),
        tight: plan.is_tight(),
    }
}
