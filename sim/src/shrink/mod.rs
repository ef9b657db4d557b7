//! From a world with a violation to a small world with the same violation.
//!
//! The first step draws smaller worlds and keeps a world with the same violation. The next step takes needless parts
//! away, one after another: faults, workers, shards, records, odd configuration. The last step makes the world shorter.
//! All attempts depend on the world alone, so the result is the same every time.

mod parts;
mod simpler;

use crate::deliberate::Bug;
use crate::draws::Draws;
use crate::oracles::{Property, Time, Violation};
use crate::run::{Cancel, Options, run_plan};
use crate::scenario::Scenario;
use crate::swarm::Plan;
use crate::world::Found;
use serde::Serialize;

/// A small world with a violation.
#[derive(Clone, Debug)]
pub struct Shrunk {
    /// The world.
    pub scenario: Scenario,
    /// The size of the world.
    pub size: Size,
    /// The number of worlds run for the search.
    pub runs: u32,
}

/// The amount of reading for a person.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Size {
    /// Workers.
    pub workers: u32,
    /// Shards at the beginning.
    pub shards: u32,
    /// State changes until the violation: the lines of its column log.
    pub events: u64,
}

/// The limit on inputs to engines: about half a minute.
const MOST_INPUTS: u64 = 12_000_000;
/// The limits on inputs and worlds in the search for a smaller seed.
const MOST_INPUTS_ON_SEEDS: u64 = 3_000_000;
const MOST_SEEDS: u64 = 400;
/// The number of smaller worlds compared.
const CANDIDATES: usize = 4;

/// Shrinks a world, until cancelled. None: the world has no violation, or the cancel came before the first violation.
///
/// # Panics
/// If a bug is named and this program is built without the bugs.
pub fn shrink(plan: &Plan, bug: Option<Bug>, cancel: &Cancel) -> Option<Shrunk> {
    let mut search =
        Search { property: None, of_others: false, bug, inputs: 0, runs: 0, cancel: cancel.clone() };
    let mut best = search.fix(plan)?;
    for smaller in search.reseed(plan) {
        if smaller.burden() < best.burden() {
            best = smaller;
        }
    }
    best = search.cut(best);
    loop {
        let before = best.plan.clone();
        best = search.drop_parts(best);
        best = search.simplify(best);
        best = search.compress(best);
        if best.plan == before || search.is_spent() {
            break;
        }
    }
    Some(search.result(best))
}

/// A failing world, with its failure.
#[derive(Clone, Debug)]
struct Case {
    plan: Plan,
    summary: String,
    at: Time,
    events: u64,
}

impl Case {
    /// The amount left to take away.
    fn burden(&self) -> u64 {
        u64::from(self.plan.workers) * 20 + u64::from(self.plan.shards) * 20 + self.events
    }
}

struct Search {
    property: Option<Property>,
    /// The search is for known behaviour of other programs: the world has no other violation.
    of_others: bool,
    bug: Option<Bug>,
    inputs: u64,
    runs: u32,
    cancel: Cancel,
}

impl Search {
    fn is_spent(&self) -> bool {
        self.inputs >= MOST_INPUTS || self.cancel.is_asked()
    }

    /// Runs a world; whether the world violates the property. The random faults are then a list.
    fn fails(&mut self, plan: &Plan) -> Option<Case> {
        if self.property.is_some() && self.is_spent() {
            return None;
        }
        let options = Options {
            request_faults: true,
            stop: true,
            bug: self.bug,
            cancel: self.cancel.clone(),
            ..Options::default()
        };
        self.runs += 1;
        let found = match run_plan(plan.clone(), &options) {
            Ok(found) => found,
            Err(message) => {
                // A panic leaves no record of its world. A second draw is the only way to the world.
                self.inputs += 100_000;
                return self.is_wanted(Property::World).then(|| Case {
                    plan: plan.clone(),
                    summary: format!("a panic: {message}"),
                    at: plan.fault_us,
                    events: u64::MAX / 2,
                });
            }
        };
        self.inputs += found.inputs + 1_000;
        self.case(plan, found)
    }

    fn case(&mut self, plan: &Plan, found: Found) -> Option<Case> {
        let violations = found.violations;
        let violation = violations
            .iter()
            .find(|violation| self.is_wanted(violation.property) && violation.of_others <= self.of_others)?;
        let mut plan = plan.clone();
        plan.faults.request_faults = Some(found.request_faults);
        Some(Case { summary: violation.summary.clone(), at: violation.at, events: found.changes, plan })
    }

    fn is_wanted(&self, property: Property) -> bool {
        self.property.is_none_or(|wanted| wanted == property)
    }

    /// Keeps the world unchanged, with its first violated property as the target of the search.
    fn fix(&mut self, plan: &Plan) -> Option<Case> {
        let options =
            Options { stop: true, bug: self.bug, cancel: self.cancel.clone(), ..Options::default() };
        self.property = Some(match run_plan(plan.clone(), &options) {
            Ok(found) => {
                let counts = |violation: &&Violation| !violation.of_others;
                let first = found.violations.iter().find(counts);
                let first = first.or(found.violations.first())?;
                self.of_others = first.of_others;
                first.property
            }
            Err(_) => Property::World,
        });
        self.fails(plan)
    }

    /// Smaller worlds with the same violation.
    fn reseed(&mut self, first: &Plan) -> Vec<Case> {
        let draws = Draws::new(first.seed);
        let mut found = Vec::new();
        let until = self.inputs + MOST_INPUTS_ON_SEEDS;
        for n in 0..MOST_SEEDS {
            if found.len() >= CANDIDATES || self.inputs >= until || self.is_spent() {
                break;
            }
            let mut plan = Plan::draw(draws.roll("smaller", n).bits() >> 1).with_format(first.format);
            let (workers, shards) = (1 + n / 2 % 3, 1 + n % 2);
            if first.is_mixed() {
                plan = plan.mixed();
            }
            plan = plan.of_streams(first.streams);
            plan.start = first.start.clone();
            if plan.start.is_some() {
                plan.start_at(first.config.initial_position());
            }
            plan.workers = plan.workers.clamp(1, workers as u32);
            plan.shards = plan.shards.min(shards as u32);
            plan.fault_us = plan.fault_us.min(20_000_000);
            plan.load.before = plan.load.before.min(20);
            plan.load.burst = plan.load.burst.min(3);
            plan.load.bytes = plan.load.bytes.min(100);
            parts::keep_possible(&mut plan);
            found.extend(self.fails(&plan));
        }
        found
    }

    /// Leaves out plans for times after the violation.
    fn cut(&mut self, case: Case) -> Case {
        let mut plan = case.plan.clone();
        if case.at >= plan.fault_us {
            return case;
        }
        plan.fault_us = case.at + 1;
        parts::until(&mut plan, case.at);
        self.better(case, &plan)
    }

    /// The smaller world if its run fails, too, else the old world.
    fn better(&mut self, case: Case, plan: &Plan) -> Case {
        if *plan == case.plan {
            return case;
        }
        self.fails(plan).unwrap_or(case)
    }

    /// Takes faults away: half of the faults first, then a quarter, and at last single faults.
    fn drop_parts(&mut self, mut case: Case) -> Case {
        let mut size = parts::of(&case.plan).len().div_ceil(2).max(1);
        loop {
            let mut from = 0;
            loop {
                let all = parts::of(&case.plan);
                if from >= all.len() || self.is_spent() {
                    break;
                }
                let rest: Vec<_> = all
                    .iter()
                    .enumerate()
                    .filter(|(n, _)| !(from..from + size).contains(n))
                    .map(|(_, part)| part.clone())
                    .collect();
                let before = all.len();
                case = self.better(case.clone(), &parts::assemble(&case.plan, &rest));
                if parts::of(&case.plan).len() == before {
                    from += size;
                }
            }
            if size == 1 {
                return case;
            }
            size = size.div_ceil(2);
        }
    }

    /// Fewer workers, shards and records, and no odd options without need.
    fn simplify(&mut self, mut case: Case) -> Case {
        for change in simpler::CHANGES {
            // Each change repeats while the world gets smaller.
            while !self.is_spent() {
                let mut plan = case.plan.clone();
                change(&mut plan);
                parts::keep_possible(&mut plan);
                if plan == case.plan {
                    break;
                }
                let Some(next) = self.fails(&plan) else { break };
                case = next;
            }
        }
        for option in simpler::options(&case.plan) {
            if let Some(plan) = simpler::without(&case.plan, &option) {
                case = self.better(case, &plan);
            }
        }
        case
    }

    /// All events happen earlier.
    fn compress(&mut self, mut case: Case) -> Case {
        for (numerator, denominator) in [(1, 4), (1, 2), (3, 4), (9, 10)] {
            while !self.is_spent() {
                let mut plan = case.plan.clone();
                parts::hasten(&mut plan, numerator, denominator);
                if plan == case.plan {
                    break;
                }
                let Some(next) = self.fails(&plan) else { break };
                // The violation may merely come later.
                if next.at >= case.at {
                    break;
                }
                case = next;
            }
        }
        self.cut(case)
    }

    fn result(&self, case: Case) -> Shrunk {
        let property = self.property.unwrap_or(Property::World);
        Shrunk {
            size: Size { workers: case.plan.workers, shards: case.plan.shards, events: case.events },
            runs: self.runs,
            scenario: Scenario {
                about: format!("{property} is violated after {} ms: {}", case.at / 1_000, case.summary),
                violates: Some(property),
                bug: self.bug,
                plan: case.plan,
            },
        }
    }
}
