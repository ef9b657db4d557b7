//! Every deliberate bug is caught, by an oracle that is meant for it.
//!
//! Each takes up to some hundred worlds, but for rare ones, which `.ci/nightly` hunts. So this runs in release, in the copy of the sources that has the bugs in it:
//! see "Deliberate bugs" in CONTRIBUTING.md.

use leasehold_sim::deliberate::Bug;
use leasehold_sim::hunt::hunt;
use leasehold_sim::run::{Options, run_seed};

/// Worlds tried for each bug.
const WORLDS: u64 = 2_000;

#[test]
#[ignore = "needs minutes, and the copy that `leasehold mutants --prepare` writes"]
fn every_deliberate_bug_is_caught_by_an_oracle_meant_for_it() {
    // Without a bug the same build finds nothing: what follows is the bugs' doing.
    let sound = (0..20).map(|seed| run_seed(seed, &Options::default()));
    assert!(sound.into_iter().all(|report| report.found.violations.is_empty()));
    let mut survivors = Vec::new();
    let all = Bug::all().unwrap_or_else(|sentence| panic!("{sentence}"));
    for bug in all.into_iter().filter(|bug| !bug.is_rare()) {
        let hunt = hunt(bug, WORLDS, false);
        println!(
            "{:<28} {:?} after {} worlds, {:.1} s",
            hunt.id, hunt.property, hunt.seeds_to_kill, hunt.seconds
        );
        if !hunt.killed {
            survivors.push((hunt.id, hunt.strays));
        }
    }
    assert!(
        survivors.is_empty(),
        "not caught by what is meant for them: {survivors:?}"
    );
}
