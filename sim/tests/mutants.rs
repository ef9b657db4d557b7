//! Every deliberate bug is caught, by an oracle that is meant for it.
//!
//! Run in release, since each bug takes up to some hundred worlds:
//! `cargo test --release -p leasehold-sim --no-default-features --features mutants --test mutants -- --nocapture`.

use leasehold_engine::dialect::Kind;
use leasehold_engine::mutant::Mutant;
use leasehold_sim::mutants::hunt;
use leasehold_sim::run::{Options, plan_of, run_plan, run_seed};
use leasehold_sim::shrink::shrink;

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

/// kinsumer checkpoints what it delivers, too, and is known to: that is not what the world is shrunk for.
#[test]
fn a_mixed_fleet_is_shrunk_to_what_ours_does() {
    let options = Options {
        dialects: vec![Kind::Kinsumer],
        mixed: true,
        mutant: Some(Mutant::CheckpointOnDelivery),
        ..Options::default()
    };
    let seed = (0..100)
        .find(|seed| !run_seed(*seed, &options).found.violations.is_empty())
        .expect("one of a hundred worlds shows the bug");
    let shrunk = shrink(&plan_of(seed, &options), options.mutant).expect("it fails");
    let found = run_plan(shrunk.scenario.plan, &options).expect("no panic");
    let ours = found.violations.iter().find(|violation| !violation.of_others);
    assert_eq!(ours.map(|violation| violation.property), shrunk.scenario.violates);
}
