//! The search: depth first, each state once, on several threads.
//!
//! The search runs without faults first, then with one fault, and more: a finding then needs no fewer faults. The set
//! of visited states holds 64-bit fingerprints only.

use super::scope::Scope;
use super::step::Step;
use super::world::World;
use crate::deliberate::turn_on;
use crate::oracles::{Property, Time};
use serde::Serialize;
use std::collections::VecDeque;
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

/// The extent and the findings of a search.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Report {
    /// The bounds, in words.
    pub scope: String,
    /// The number of different states.
    pub states: u64,
    /// The number of steps between states.
    pub transitions: u64,
    /// Steps of the longest path.
    pub depth: u32,
    /// Ends of paths with all come right.
    pub ends: u64,
    /// Violations; the first violation ends the search.
    pub violations: Vec<Counterexample>,
    /// The length of the search, in seconds.
    pub wall_seconds: f64,
}

/// A path to a violation.
#[derive(Clone, Debug, Serialize)]
pub struct Counterexample {
    /// The property.
    pub property: Property,
    /// The time of the violation, in µs.
    pub at: Time,
    /// The violation in a sentence.
    pub summary: String,
    /// The number of faults on the path.
    pub faults: u32,
    /// The number of steps on the path.
    pub steps: usize,
    /// The events of the path, step by step.
    pub story: Vec<String>,
}

/// Searches a scope. `progress` receives the number of states now and then.
///
/// # Panics
/// If the scope names a bug and this program is built without the bugs.
#[expect(
    clippy::disallowed_methods,
    reason = "the time that the search took is reported; nothing follows from it"
)]
pub fn exhaust(scope: &Scope, jobs: usize, progress: &(dyn Fn(u64) + Sync)) -> Report {
    let begun = Instant::now();
    let _switched = turn_on(scope.bug);
    let mut report = Report { scope: scope.to_string(), ..Report::default() };
    for faults in 0..=scope.faults.min(scope.slow + scope.pauses + scope.crashes + scope.stops) {
        let scope = Arc::new(Scope { faults, ..scope.clone() });
        let search = Search::new(progress);
        let found = search.run(&scope, jobs.max(1));
        // States with fewer faults are part of a search with more faults.
        report.states = search.states.load(Ordering::Relaxed);
        report.transitions = search.transitions.load(Ordering::Relaxed);
        report.depth = search.depth.load(Ordering::Relaxed);
        report.ends = search.ends.load(Ordering::Relaxed);
        if let Some(path) = found {
            report.violations.extend(retell(&scope, &path));
            break;
        }
    }
    report.wall_seconds = begun.elapsed().as_secs_f64();
    report
}

type Path = Vec<Step>;

#[expect(clippy::disallowed_types, reason = "the hasher is fixed, and the set is never iterated over")]
type Fingerprints = std::collections::HashSet<u64, BuildHasherDefault<Identity>>;

struct Search<'a> {
    visited: Vec<Mutex<Fingerprints>>,
    states: AtomicU64,
    transitions: AtomicU64,
    ends: AtomicU64,
    depth: AtomicU32,
    found: Mutex<Option<Path>>,
    stop: AtomicBool,
    progress: &'a (dyn Fn(u64) + Sync),
}

/// Parts of the set of visited states: threads seldom wait for each other.
const PARTS: usize = 64;
/// Beginnings of paths for distribution among the threads.
const SHARES: usize = 4_096;

impl<'a> Search<'a> {
    fn new(progress: &'a (dyn Fn(u64) + Sync)) -> Self {
        Self {
            visited: (0..PARTS).map(|_| Mutex::default()).collect(),
            states: AtomicU64::new(0),
            transitions: AtomicU64::new(0),
            ends: AtomicU64::new(0),
            depth: AtomicU32::new(0),
            found: Mutex::new(None),
            stop: AtomicBool::new(false),
            progress,
        }
    }

    #[expect(
        clippy::disallowed_methods,
        reason = "threads share the states out; which of them visits a state changes no result"
    )]
    fn run(&self, scope: &Arc<Scope>, jobs: usize) -> Option<Path> {
        let first = World::new(scope.clone(), false);
        let mut shares = VecDeque::new();
        if self.enter(&first, &[]) {
            shares.push_back((first, Path::new()));
        }
        // Breadth first, until each thread has enough work.
        while shares.len() < SHARES
            && let Some((world, mut path)) = shares.pop_front()
        {
            self.expand(&world, &mut path, &mut |world, path| {
                shares.push_back((world, path.clone()));
            });
        }
        let shares = Mutex::new(shares);
        std::thread::scope(|threads| {
            for _ in 0..jobs {
                threads.spawn(|| {
                    let _switched = turn_on(scope.bug);
                    while let Some((world, mut path)) = lock(&shares).pop_front() {
                        self.explore(&world, &mut path);
                    }
                });
            }
        });
        lock(&self.found).take()
    }

    fn explore(&self, world: &World, path: &mut Path) {
        self.expand(world, path, &mut |world, path| self.explore(&world, path));
    }

    /// Takes every step from a state that was just entered.
    fn expand(&self, world: &World, path: &mut Path, each: &mut dyn FnMut(World, &mut Path)) {
        if world.scope.depth.is_some_and(|depth| world.steps >= depth) {
            return;
        }
        let offered = world.offered();
        if offered.is_empty() {
            let mut end = world.clone();
            end.settle();
            self.ends.fetch_add(1, Ordering::Relaxed);
            self.judge(&end, path);
        }
        for step in offered {
            if self.stop.load(Ordering::Relaxed) {
                return;
            }
            let mut next = world.clone();
            next.take(step);
            self.transitions.fetch_add(1, Ordering::Relaxed);
            path.push(step);
            if self.judge(&next, path) && self.enter(&next, path) {
                each(next, path);
            }
            path.pop();
        }
    }

    /// Whether the state is visited for the first time.
    fn enter(&self, world: &World, path: &[Step]) -> bool {
        let key = world.key();
        if !lock(&self.visited[(key >> 58) as usize % PARTS]).insert(key) {
            return false;
        }
        let states = self.states.fetch_add(1, Ordering::Relaxed) + 1;
        if states.is_multiple_of(4_096) {
            (self.progress)(states);
        }
        self.depth.fetch_max(path.len() as u32, Ordering::Relaxed);
        true
    }

    /// Whether the world has no violation so far.
    fn judge(&self, world: &World, path: &[Step]) -> bool {
        if world.violations().is_empty() {
            return true;
        }
        let mut found = lock(&self.found);
        if found.as_ref().is_none_or(|known| known.len() > path.len()) {
            *found = Some(path.to_vec());
        }
        self.stop.store(true, Ordering::Relaxed);
        false
    }
}

/// Repeats a path and records its events.
fn retell(scope: &Arc<Scope>, path: &[Step]) -> Option<Counterexample> {
    let mut world = World::new(scope.clone(), true);
    for step in path {
        world.take(*step);
    }
    if world.violations().is_empty() {
        world.settle();
    }
    let violation = world.violations().first()?.clone();
    Some(Counterexample {
        property: violation.property,
        at: violation.at,
        summary: violation.summary,
        faults: world.spent.faults(),
        steps: path.len(),
        story: world.story.unwrap_or_default(),
    })
}

/// A panicked thread leaves no unfinished change behind these locks.
fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The keys are fingerprints already.
#[derive(Default)]
struct Identity(u64);

impl Hasher for Identity {
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = self.0 << 8 | u64::from(*byte);
        }
    }

    fn write_u64(&mut self, value: u64) {
        self.0 = value;
    }

    fn finish(&self) -> u64 {
        self.0
    }
}
