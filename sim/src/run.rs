//! Running one world or many.

pub use crate::options::{Cancel, Options};

use crate::deliberate::turn_on;
use crate::marks::{BlindSpot, Together};
use crate::oracles::{Property, Time, canary};
use crate::swarm::Plan;
use crate::world::{Ending, Found, World};
use leasehold_engine::format::Format;
use leasehold_engine::internals::Digest;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc;
use std::time::Instant;

/// The result of one world.
#[derive(Clone, Debug)]
pub struct WorldReport {
    /// The world's seed.
    pub seed: u64,
    /// The plan drawn, in one line.
    pub configuration: String,
    /// The command's flags besides the seed, to repeat the world.
    pub flags: String,
    /// The findings.
    pub found: Found,
}

/// A violation, with the command to repeat its world.
#[derive(Clone, Debug, Serialize)]
pub struct SeedViolation {
    /// The world's seed.
    pub seed: u64,
    /// The property.
    pub property: Property,
    /// The time of the violation, in µs of the world's time.
    pub at: Time,
    /// The violation in a sentence.
    pub summary: String,
    /// The command to repeat the world, and the world's plan.
    pub scenario: String,
}

/// The result of many worlds.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Summary {
    /// The number of worlds.
    pub seeds: u64,
    /// Violations, in the order of seeds.
    pub violations: Vec<SeedViolation>,
    /// Worlds excused from coming right.
    pub excused: u64,
    /// Inputs to engines.
    pub inputs: u64,
    /// Time passed in the worlds.
    pub simulated_seconds: f64,
    /// Time passed outside the worlds.
    pub wall_seconds: f64,
    /// The number of worlds with each mark.
    pub marks: BTreeMap<String, u64>,
    /// Records delivered more than once.
    pub duplicates: u64,
    /// The greatest window of double processing, in ms.
    pub longest_window_ms: u64,
    /// A digest of all worlds' digests, in the order of seeds.
    pub digest: String,
    /// Signs of a thorough run.
    pub looking: Looking,
}

/// Signs of a thorough run: a run without findings proves little by itself.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Looking {
    /// Worlds with a canary to be heard.
    pub canaries: u64,
    /// Worlds with the canary heard.
    pub canaries_heard: u64,
    /// New kinds of lease states in each thousand worlds.
    pub new_states: Vec<u64>,
    /// Marks seen in fewer worlds than required.
    pub too_rare: Vec<(&'static str, u64)>,
    /// Marks and faults never seen in one world.
    pub blind_spots: Vec<BlindSpot>,
    /// Of the worlds come right: the share of the allowed time taken by the slowest tenth, the slowest hundredth and
    /// the slowest world, in percent.
    pub slowest_percent_of_bound: [u64; 3],
    /// The table of marks and faults.
    #[serde(skip)]
    pub together: Together,
}

impl Looking {
    /// Checks the signs. `excused` of `seeds` worlds were excused from coming right.
    ///
    /// # Errors
    /// The first missing sign, as a sentence.
    pub fn check(&self, seeds: u64, excused: u64) -> Result<(), String> {
        if self.canaries != self.canaries_heard {
            return Err(format!(
                "expected the canary to be heard in {} worlds, heard it in {}: reports get lost",
                self.canaries, self.canaries_heard
            ));
        }
        if excused * 20 >= seeds.max(1) {
            return Err(format!(
                "expected fewer than one in twenty worlds to be excused, found {excused} of {seeds}"
            ));
        }
        // Shares from a few worlds prove nothing.
        match self.too_rare.first() {
            Some((mark, worlds)) if seeds >= 1_000 => Err(format!(
                "expected {mark:?} in at least one of a hundred worlds, found it in {worlds} of {seeds}"
            )),
            _ => Ok(()),
        }
    }
}

/// The world of one seed, before simplifications. A bug is on during the draw, since some worlds begin with rows
/// written by the engine.
///
/// # Panics
/// If the options name a bug and this program is built without the bugs.
pub fn plan_of(seed: u64, options: &Options) -> Plan {
    let _switched = turn_on(options.bug);
    let plan = match &options.given {
        Some(given) => given.plan(seed),
        None if options.formats.is_empty() => Plan::draw(seed),
        None => Plan::draw_of(seed, &options.formats),
    };
    if options.mixed { plan.mixed() } else { plan }
}

/// Runs the world of one seed.
///
/// # Panics
/// If the options name a bug and this program is built without the bugs.
pub fn run_seed(seed: u64, options: &Options) -> WorldReport {
    let drawn = plan_of(seed, options);
    let plan = if options.no_faults { drawn.without_faults() } else { drawn };
    let configuration = plan.summary();
    let _switched = turn_on(options.bug);
    let mut found = World::new(plan, options).run();
    // Violations by other programs are known behaviour of those programs.
    found.violations.retain(|violation| !violation.of_others);
    WorldReport { seed, configuration, flags: flags(options), found }
}

/// Runs a given world. A panic of the engine or of the world is a finding.
///
/// # Panics
/// If the options name a bug and this program is built without the bugs.
pub fn run_plan(plan: Plan, options: &Options) -> Result<Found, String> {
    let _switched = turn_on(options.bug);
    catch_unwind(AssertUnwindSafe(|| World::new(plan, options).run())).map_err(|panic| message(&*panic))
}

impl WorldReport {
    /// The command to repeat this world, and the world's plan.
    pub fn scenario(&self) -> String {
        format!("leasehold sim --seed {}{} ({})", self.seed, self.flags, self.configuration)
    }
}

fn flags(options: &Options) -> String {
    let given = options.given.as_ref();
    let mut given = given.map_or_else(String::new, |given| given.flags.clone());
    if options.mixed {
        given.push_str(" --mixed");
    }
    match options.formats[..] {
        [] | [Format::Kcl] => given,
        [format] => format!(" --format {format}{given}"),
        _ => format!(" --format all{given}"),
    }
}

/// Runs the worlds of a range of seeds on this many threads. The result does not depend on the number of threads.
///
/// After a cancel, no new world begins and running worlds stop early. The summary then covers the first seeds whose
/// worlds came to their end. `progress` receives the number of finished worlds now and then, on any thread.
#[expect(
    clippy::disallowed_methods,
    reason = "worlds are independent, and their results are gathered in the order of their seeds"
)]
pub fn run_seeds(
    seeds: Range<u64>, jobs: usize, options: &Options, progress: &(dyn Fn(u64) + Sync),
) -> Summary {
    let began = Instant::now();
    let next = AtomicU64::new(seeds.start);
    let mut gathering = Gathering {
        options,
        next: seeds.start,
        waiting: BTreeMap::new(),
        summary: Summary::default(),
        digest: Digest::new(),
        states: BTreeSet::new(),
        shares: Vec::new(),
    };
    let (send, receive) = mpsc::channel();
    std::thread::scope(|scope| {
        for _ in 0..jobs.max(1) {
            let (send, next, end) = (send.clone(), &next, seeds.end);
            scope.spawn(move || {
                while !options.cancel.is_asked() {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= end {
                        return;
                    }
                    // A panic of the engine or of the world is a finding.
                    let report = catch_unwind(AssertUnwindSafe(|| run_seed(seed, options)));
                    if report.as_ref().is_ok_and(|report| report.found.ending == Ending::Cancelled) {
                        return;
                    }
                    if send.send((seed, report.map_err(|panic| message(&*panic)))).is_err() {
                        return;
                    }
                }
            });
        }
        drop(send);
        for (done, (seed, report)) in (1..).zip(receive) {
            gathering.add(seed, report);
            progress(done);
        }
    });
    gathering.finish();
    let mut summary = gathering.summary;
    summary.digest = format!("{:016x}", gathering.digest.value());
    summary.wall_seconds = began.elapsed().as_secs_f64();
    summary
}

fn message(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("a panic without a message").to_owned()
}

/// Puts reports back into the order of seeds.
struct Gathering<'a> {
    options: &'a Options,
    next: u64,
    waiting: BTreeMap<u64, Result<WorldReport, String>>,
    summary: Summary,
    digest: Digest,
    /// Kinds of states seen so far.
    states: BTreeSet<u32>,
    /// Each world's share of its bound until the world came right, in percent.
    shares: Vec<u64>,
}

impl Gathering<'_> {
    /// Computes the figures known only after the last world.
    fn finish(&mut self) {
        self.shares.sort_unstable();
        let at = |per_mille: usize| {
            let place = self.shares.len() * per_mille / 1_000;
            self.shares.get(place.min(self.shares.len().saturating_sub(1))).copied()
        };
        let looking = &mut self.summary.looking;
        looking.slowest_percent_of_bound = [900, 990, 1_000].map(|per_mille| at(per_mille).unwrap_or(0));
        looking.too_rare = looking.together.too_rare();
        looking.blind_spots = looking.together.blind_spots();
    }

    fn look(&mut self, seed: u64, found: &Found) {
        let looking = &mut self.summary.looking;
        looking.canaries += u64::from(canary::fires(seed));
        looking.canaries_heard += u64::from(found.canary);
        looking.together.add(&found.marks);
        let thousand = ((self.summary.seeds - 1) / 1_000) as usize;
        if looking.new_states.len() <= thousand {
            looking.new_states.push(0);
        }
        let before = self.states.len();
        self.states.extend(&found.states);
        looking.new_states[thousand] += (self.states.len() - before) as u64;
        if let Ending::Settled { after_us, bound_us } = found.ending {
            self.shares.push(after_us.saturating_mul(100) / bound_us.max(1));
        }
    }

    fn add(&mut self, seed: u64, report: Result<WorldReport, String>) {
        self.waiting.insert(seed, report);
        while let Some(report) = self.waiting.remove(&self.next) {
            self.take(self.next, report);
            self.next += 1;
        }
    }

    fn take(&mut self, seed: u64, report: Result<WorldReport, String>) {
        let summary = &mut self.summary;
        summary.seeds += 1;
        let report = match report {
            Ok(report) => report,
            Err(message) => {
                let (flags, plan) = (flags(self.options), plan_of(seed, self.options));
                let scenario = format!("leasehold sim --seed {seed}{flags} ({})", plan.summary());
                let summary_line = format!("a panic: {message}");
                summary.violations.push(SeedViolation {
                    seed,
                    property: Property::World,
                    at: 0,
                    summary: summary_line,
                    scenario,
                });
                return;
            }
        };
        let scenario = report.scenario();
        self.look(seed, &report.found);
        let summary = &mut self.summary;
        let found = report.found;
        self.digest.absorb(&(seed, found.digest));
        summary.violations.extend(found.violations.into_iter().map(|violation| SeedViolation {
            seed,
            property: violation.property,
            at: violation.at,
            summary: match &self.options.given {
                Some(given) => given.start.with_names(&violation.summary),
                None => violation.summary,
            },
            scenario: scenario.clone(),
        }));
        summary.excused += u64::from(matches!(found.ending, Ending::Excused(_)));
        summary.inputs += found.inputs;
        summary.simulated_seconds += found.simulated as f64 / 1e6;
        summary.duplicates += found.duplicates;
        summary.longest_window_ms = summary.longest_window_ms.max(found.window_us / 1_000);
        for mark in found.marks.iter() {
            match summary.marks.get_mut(mark) {
                Some(count) => *count += 1,
                None => drop(summary.marks.insert(mark.to_owned(), 1)),
            }
        }
    }
}

#[cfg(test)]
mod tests;
