//! Worlds of real workers under faults, one after another on the thread of the test.

mod host;
mod ports;
mod process;
mod repeat;
mod services;

use crate::harness::{Outcomes, Plan, Quiet, Report, Run, Stage, Which, World, shrink, worlds};
use host::{Processes, play};
use leasehold_engine::internals::Digest;
use process::Clock;
use repeat::line;
use std::collections::BTreeMap;

/// How many runs are made to leave out faults.
const SHRINKS: u32 = 200;
/// The sum of a test's worlds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Summary {
    /// How many worlds were run.
    pub worlds: u64,
    /// The number of records put in all worlds.
    pub records: u64,
    /// How many records were handed over more than once, counted each time.
    pub repeated: u64,
    /// The number of worker processes.
    pub lives: u64,
    /// How many faults were drawn, by kind.
    pub faults: BTreeMap<&'static str, u64>,
    /// The digest of all events in all worlds, with their times. The same seeds give the same digest.
    pub digest: u64,
}

/// Runs a world for each seed: real workers with the handler under test, and faults that the seed decides.
///
/// `chaos` calls `setup` for every world, and for every run of a failed world with fewer faults. `setup` makes the
/// shared parts of the world's workers, names their handler, and states the conditions at the end. Each call must do
/// the same.
///
/// Call `chaos` from a plain `#[test]`: it brings a runtime of its own for every process.
///
/// # Panics
/// If a world fails: with the broken condition, the faults needed for the failure, and one line to repeat it.
#[track_caller]
pub fn chaos(seeds: impl IntoIterator<Item = u64>, setup: impl Fn(&mut World)) -> Summary {
    assert!(
        tokio::runtime::Handle::try_current().is_err(),
        "expected `chaos` to be called outside of a tokio runtime, since every process brings one of its own; call it from a plain #[test] \
         instead of a #[tokio::test]"
    );
    let mut summary = Summary::default();
    let mut digest = Digest::new();
    for which in worlds(seeds) {
        let (plan, outcomes) = attempt(&setup, &which, false);
        if outcomes.failure.is_some() {
            let told = report(&setup, &which, &plan, &outcomes);
            panic!("{told}");
        }
        summary.worlds += 1;
        summary.records += plan.puts.len() as u64;
        summary.repeated += outcomes.repeated;
        summary.lives += outcomes.lives;
        for fault in &plan.faults {
            *summary.faults.entry(fault.kind()).or_default() += 1;
        }
        digest.absorb(&outcomes.digest);
    }
    summary.digest = digest.value();
    summary
}

/// Runs one world.
fn attempt(setup: &impl Fn(&mut World), which: &Which, tell: bool) -> (Plan, Outcomes) {
    let mut world = World::new(which.seed);
    setup(&mut world);
    let plan = world.plan();
    let _quiet = Quiet::begin();
    let clock = Clock::default();
    let now = clock.clone();
    let stage = Stage::new(move || now.now(), plan.source(), plan.judge(), tell);
    let host = Processes::new(clock, &plan);
    let mut run = Run::new(&mut world, &plan, &which.left(&plan.faults), stage, host);
    play(&mut run);
    let outcomes = run.conclude();
    (plan, outcomes)
}

/// The report about a failed world.
fn report(setup: &impl Fn(&mut World), which: &Which, plan: &Plan, outcomes: &Outcomes) -> String {
    let Some(first) = &outcomes.failure else {
        return String::new();
    };
    let seed = which.seed;
    let with = |faults: &[usize], tell| {
        let which = Which { seed, faults: Some(faults.to_vec()) };
        attempt(setup, &which, tell).1
    };
    let all = which.left(&plan.faults);
    let again = with(&all, false);
    if again.digest != outcomes.digest {
        return format!(
            "the world of seed {seed} failed ({}: {}), and its second run was another one: something in the handler differs from run to run, \
             such as a clock, entropy, a thread, `select!` without `biased`, or the order of a HashMap",
            first.property, first.what
        );
    }
    let same = |outcomes: &Outcomes| {
        outcomes.failure.as_ref().is_some_and(|failure| failure.property == first.property)
    };
    let kept = shrink(&all, SHRINKS, |left| same(&with(left, false)));
    let last = with(&kept, true);
    let report = Report {
        seed,
        failure: last.failure.as_ref().unwrap_or(first).clone(),
        needed: kept.iter().map(|number| (*number, plan.faults[*number].to_string())).collect(),
        drawn: all.len(),
        story: last.story,
        repeat: line(seed, &kept),
    };
    report.to_string()
}
