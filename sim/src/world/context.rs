//! The common context of all parts: the plan, the time, draws, names, the heap of events, and the record of all events.

mod record;

use super::heap::{Heap, What};
use super::request::Request;
use crate::draws::Draws;
use crate::faults::{Faults, WallAfter};
use crate::names::Names;
use crate::options::Options;
use crate::oracles::{Fact, LifeNo, Terms, Time, canary};
use crate::swarm::Plan;
use leasehold_engine::ids::WorkerId;
use record::Record;
use std::collections::{BTreeSet, VecDeque};

/// The common base of all parts.
#[derive(Debug)]
pub(super) struct Context {
    plan: Plan,
    draws: Draws,
    now: Time,
    heap: Heap,
    names: Names,
    /// The faults are over.
    healed: bool,
    /// The stream or the table was lost for good.
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

    /// The next event. An event due during a worker's standstill happens when the worker continues: time does not go
    /// back.
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

    /// All planned events, in no order.
    pub(super) fn planned(&self) -> impl Iterator<Item = &What> {
        self.heap.planned()
    }

    /// Makes a request to another part.
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

    /// A process of a worker begins under this name.
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

    /// Whether the stream or the table was lost for good.
    pub(super) fn is_lost_for_good(&self) -> bool {
        self.lost
    }

    pub(super) fn set_lost_for_good(&mut self) {
        self.lost = true;
    }
}

/// The workers with a wall clock that is wrong for a while.
fn wrong_walls(faults: &Faults) -> BTreeSet<u32> {
    let suspensions = faults.suspension.suspensions.iter();
    let wrong = suspensions.filter(|suspension| suspension.wall != WallAfter::Right);
    let steps = faults.clock.steps.iter().map(|step| step.worker);
    steps.chain(wrong.map(|suspension| suspension.worker)).collect()
}

/// A world's promises to its oracles, and their exceptions.
fn terms(plan: &Plan) -> Terms {
    let application = &plan.faults.application;
    let (most, deaf) = plan.faults.worst_handler();
    Terms {
        config: plan.config.clone(),
        upgraded: plan.upgraded.clone(),
        clocks_beyond: plan.faults.clock.beyond,
        wrong_walls: wrong_walls(&plan.faults),
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
