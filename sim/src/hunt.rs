//! The hunt for one bug: world after world, until an oracle that is meant for it reports a violation.

use crate::deliberate::Bug;
use crate::oracles::Property;
use crate::quick;
use crate::run::{Cancel, Options, plan_of, run_seed};
use crate::shrink::{Shrunk, Size, shrink};
use serde::Serialize;
use std::time::Instant;

/// What became of one bug.
#[derive(Clone, Debug, Serialize)]
pub struct Hunt {
    /// Its name.
    pub id: &'static str,
    /// What it does wrong.
    pub description: &'static str,
    /// Whether an oracle that is meant for it caught it.
    pub killed: bool,
    /// Which did.
    pub property: Option<Property>,
    /// How many worlds it took.
    pub seeds_to_kill: u64,
    /// The seed of the world that showed it.
    pub seed: Option<u64>,
    /// How long that took, on one core.
    pub seconds: f64,
    /// How small the case became.
    pub shrunk: Option<Size>,
    /// Properties that it broke before, though they are not meant for it.
    pub strays: Vec<Property>,
    /// The small case.
    #[serde(skip)]
    pub case: Option<Shrunk>,
}

/// With which world a hunt begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Begin {
    /// With the world that is known to show the bug, if the bug's file names one.
    Known,
    /// With the first world, so that the hunt says how many worlds the bug takes.
    First,
}

/// Runs worlds until a bug is caught, or so many were run.
///
/// # Panics
/// If this program does not have the bugs in it.
#[expect(
    clippy::disallowed_methods,
    reason = "the time that a hunt took is reported; nothing follows from it"
)]
pub fn hunt(bug: Bug, begin: Begin, seeds: u64, shrunk: bool) -> Hunt {
    let options =
        Options { bug: Some(bug), formats: vec![bug.format()], mixed: bug.mixed(), ..Options::default() };
    let begun = Instant::now();
    let mut strays = Vec::new();
    let mut caught = None;
    let mut run = 0;
    let known = bug.known_world().filter(|_| begin == Begin::Known);
    for seed in known.into_iter().chain(quick::first(seeds, &options)) {
        run += 1;
        let violations = run_seed(seed, &options).found.violations;
        if let Some(found) = violations.iter().find(|found| bug.properties().contains(&found.property)) {
            caught = Some((seed, found.property));
            break;
        }
        strays.extend(violations.iter().map(|found| found.property));
    }
    let seconds = begun.elapsed().as_secs_f64();
    strays.sort_unstable();
    strays.dedup();
    let small = caught
        .filter(|_| shrunk)
        .and_then(|(seed, _)| shrink(&plan_of(seed, &options), Some(bug), &Cancel::default()));
    Hunt {
        id: bug.id(),
        description: bug.about(),
        killed: caught.is_some(),
        property: caught.map(|(_, property)| property),
        seeds_to_kill: run,
        seed: caught.map(|(seed, _)| seed),
        seconds,
        shrunk: small.as_ref().map(|small| small.size),
        strays,
        case: small,
    }
}
