//! Every deliberate bug is caught, by an oracle that is meant for it.
//!
//! Run in release, since each bug takes up to some hundred worlds:
//! `cargo test --release -p leasehold-sim --no-default-features --features mutants --test mutants -- --nocapture`.

use leasehold_engine::mutant::Mutant;
use leasehold_sim::mutants::hunt;
use leasehold_sim::run::{Options, run_seed};

/// Worlds tried for each bug.
const WORLDS: u64 = 2_000;

#[test]
fn every_deliberate_bug_is_caught_by_an_oracle_meant_for_it() {
    // Without a bug the same build finds nothing: what follows is the bugs' doing.
    let sound = (0..20).map(|seed| run_seed(seed, &Options::default()));
    assert!(sound.into_iter().all(|report| report.found.violations.is_empty()));
    let mut survivors = Vec::new();
    for mutant in Mutant::ALL {
        let hunt = hunt(*mutant, WORLDS, false);
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
