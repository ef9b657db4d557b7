//! Every deliberate bug is caught, by an oracle that is meant for it.
//!
//! An oracle that has never caught anything proves nothing. Run in release, since each bug takes up to some hundred
//! worlds: `cargo test --release -p leasehold-sim --no-default-features --features mutants --test mutants -- --nocapture`.

use leasehold_engine::mutant::Mutant;
use leasehold_sim::oracles::Property::{self, *};
use leasehold_sim::run::{Options, run_seed};
use std::time::Instant;

/// Worlds tried for each bug.
const WORLDS: u64 = 2_000;

/// The properties a bug may break. The first one is the oracle meant for it.
fn meant(mutant: Mutant) -> &'static [Property] {
    match mutant {
        Mutant::StampAtReceipt => &[P14, P18],
        Mutant::UnknownIsFailure => &[P3],
        Mutant::UnknownIsSuccess => &[P3, P12],
        Mutant::NoAdoption => &[P3],
        Mutant::UnguardedCreate => &[P5, P2, P14],
        Mutant::EndBeforeChildren => &[P2, P4],
        Mutant::FirstPageOnly => &[P6, P4, P1, P2, P5],
        Mutant::FirstListingPageOnly => &[P4, P1, P2],
        Mutant::NoParentWait => &[P2],
        Mutant::CheckpointOnDelivery => &[P1],
        Mutant::SkipFailedBatch => &[P1],
        Mutant::NoSettle => &[P14, P18],
        Mutant::NoFence => &[P14, P18],
        Mutant::TakeWhileStopping => &[P11],
        Mutant::NoCloseWhenLost => &[P13],
        Mutant::NoBackoff => &[P15],
        Mutant::BlindToCounter => &[P14, P18],
        Mutant::NoRelease => &[P13],
        Mutant::NoAudit => &[P4, P1],
        Mutant::NeverExpire => &[P6, P1],
    }
}

#[test]
fn every_deliberate_bug_is_caught_by_an_oracle_meant_for_it() {
    // Without a bug the same build finds nothing: what follows is the bugs' doing.
    let sound = (0..20).map(|seed| run_seed(seed, &Options::default()));
    assert!(sound.into_iter().all(|report| report.found.violations.is_empty()));
    let mut survivors = Vec::new();
    println!("| bug | caught by | worlds | seconds |\n|---|---|---|---|");
    for mutant in Mutant::ALL {
        let options = Options {
            mutant: Some(*mutant),
            ..Options::default()
        };
        let begun = Instant::now();
        let mut strays = Vec::new();
        let caught = (0..WORLDS).find_map(|seed| {
            let report = run_seed(seed, &options);
            let found = report
                .found
                .violations
                .iter()
                .find(|violation| meant(*mutant).contains(&violation.property));
            strays.extend(report.found.violations.iter().map(|violation| violation.property));
            found.map(|violation| (violation.property, seed + 1))
        });
        let seconds = begun.elapsed().as_secs_f64();
        match caught {
            Some((property, worlds)) => {
                println!("| {} | {property:?} | {worlds} | {seconds:.1} |", mutant.id())
            }
            None => {
                strays.sort();
                strays.dedup();
                println!(
                    "| {} | nothing meant for it ({strays:?}) | {WORLDS} | {seconds:.1} |",
                    mutant.id()
                );
                survivors.push(mutant.id());
            }
        }
    }
    assert!(
        survivors.is_empty(),
        "not caught by what is meant for them: {survivors:?}"
    );
}
