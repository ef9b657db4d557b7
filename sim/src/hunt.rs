//! The hunt for one bug. World after world runs until an oracle meant for the bug reports a violation.

use crate::deliberate::Bug;
use crate::oracles::Property;
use crate::quick;
use crate::run::{Cancel, Options, plan_of, run_seed};
use crate::shrink::{Shrunk, Size, shrink};
use serde::Serialize;
use std::time::Instant;

/// The result of the hunt for one bug.
#[derive(Clone, Debug, Serialize)]
pub struct Hunt {
    /// The bug's name.
    pub id: &'static str,
    /// The bug's error.
    pub description: &'static str,
    /// Whether an oracle meant for the bug caught the bug.
    pub killed: bool,
    /// The property violated.
    pub property: Option<Property>,
    /// The number of worlds run.
    pub seeds_to_kill: u64,
    /// The seed of the world with the violation.
    pub seed: Option<u64>,
    /// The length of the hunt in seconds, on one core.
    pub seconds: f64,
    /// The size of the shrunk case.
    pub shrunk: Option<Size>,
    /// Properties broken in worlds before, though not meant for this bug.
    pub strays: Vec<Property>,
    /// The shrunk case.
    #[serde(skip)]
    pub case: Option<Shrunk>,
}

/// The first world of a hunt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Begin {
    /// The world known to show the bug, if the bug's file names a world.
    Known,
    /// The first world, to count the worlds until the bug shows.
    First,
}

/// Runs worlds until the bug is caught, or until the given number of worlds has run.
///
/// # Panics
/// If this program is built without the bugs.
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
