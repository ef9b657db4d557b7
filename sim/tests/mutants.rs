//! Every deliberate bug is caught by an oracle meant for the bug.
//!
//! Each hunt begins with the world known to show the bug. Some hunts take up to a hundred worlds, so this runs in
//! release, in the copy of the sources with the bugs: see "Deliberate bugs" in CONTRIBUTING.md.

use leasehold_sim::deliberate::Bug;
use leasehold_sim::hunt::{Begin, Hunt, hunt};
use leasehold_sim::run::{Options, run_seed};
use std::sync::Mutex;
use std::thread;

/// Worlds tried for each bug.
const WORLDS: u64 = 2_000;

/// Hunts all of these bugs, as many at a time as there are processors. The answers come in any order.
#[expect(
    clippy::disallowed_methods,
    reason = "hunts are independent of each other, so their order decides nothing"
)]
fn hunt_all(bugs: Vec<Bug>) -> Vec<Hunt> {
    let jobs = thread::available_parallelism().map_or(1, usize::from);
    let left = Mutex::new(bugs.into_iter());
    let done = Mutex::new(Vec::new());
    thread::scope(|threads| {
        for _ in 0..jobs {
            threads.spawn(|| {
                loop {
                    let bug = left.lock().expect("no hunt panics").next();
                    let Some(bug) = bug else { return };
                    let hunt = hunt(bug, Begin::Known, WORLDS, false);
                    println!(
                        "{:<28} {:?} after {} worlds, in {:?}, {:.1} s",
                        hunt.id, hunt.property, hunt.seeds_to_kill, hunt.seed, hunt.seconds
                    );
                    done.lock().expect("no hunt panics").push(hunt);
                }
            });
        }
    });
    done.into_inner().expect("no hunt panics")
}

#[test]
#[ignore = "needs minutes, and the copy that `leasehold mutants --prepare` writes"]
fn every_deliberate_bug_is_caught_by_an_oracle_meant_for_it() {
    // Without a bug the same build finds no violation: the violations below come from the bugs.
    let sound = (0..20).map(|seed| run_seed(seed, &Options::default()));
    assert!(sound.into_iter().all(|report| report.found.violations.is_empty()));
    let mut bugs = Bug::all().unwrap_or_else(|sentence| panic!("{sentence}"));
    bugs.retain(|bug| !bug.is_rare());
    let count = bugs.len();
    let hunts = hunt_all(bugs);
    assert_eq!(hunts.len(), count, "every bug was hunted");
    let survivors: Vec<_> =
        (hunts.iter().filter(|hunt| !hunt.killed)).map(|hunt| (hunt.id, &hunt.strays)).collect();
    assert!(survivors.is_empty(), "not caught by what is meant for them: {survivors:?}");
}
