//! The small scope, exhausted: the sound engine has no violation in it, and the planted bugs that fit in it are found.
//!
//! Run in release: `cargo test --release -p leasehold-sim --no-default-features --features mutants --test exhaust -- --nocapture`.

use leasehold_engine::dialect::Kind;
use leasehold_engine::mutant::Mutant;
use leasehold_sim::exhaust::{Scope, exhaust};
use leasehold_sim::oracles::Property::{self, *};

/// The bugs that fit, with the properties they break there.
const FOUND: &[(Mutant, &[Property])] = &[
    (Mutant::StampAtReceipt, &[P14]),
    (Mutant::UnknownIsFailure, &[P3]),
    (Mutant::UnknownIsSuccess, &[P3, P12]),
    (Mutant::NoAdoption, &[P3]),
    (Mutant::UnguardedCreate, &[P5]),
    (Mutant::EndBeforeChildren, &[P2]),
    (Mutant::NoParentWait, &[P2]),
    (Mutant::CheckpointOnDelivery, &[P1]),
    (Mutant::NoSettle, &[P14]),
    (Mutant::NoFence, &[P14]),
    (Mutant::NoCloseWhenLost, &[P13]),
    (Mutant::BlindToCounter, &[P14]),
    (Mutant::NoRelease, &[P13]),
    (Mutant::NeverExpire, &[P6]),
];

fn jobs() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

#[test]
fn the_planted_bugs_that_fit_are_found_with_at_most_one_fault() {
    println!("| bug | property | faults | steps | states | seconds |\n|---|---|---|---|---|---|");
    for (mutant, meant) in FOUND {
        let scope = Scope {
            faults: 1,
            mutant: Some(*mutant),
            ..Scope::default()
        };
        let report = exhaust(&scope, jobs(), &|_| {});
        let id = mutant.id();
        let found = report
            .violations
            .first()
            .unwrap_or_else(|| panic!("{id} was not found in {} states", report.states));
        assert!(meant.contains(&found.property), "{id}: {found:#?}");
        println!(
            "| {id} | {:?} | {} | {} | {} | {:.1} |",
            found.property, found.faults, found.steps, report.states, report.wall_seconds
        );
    }
}

#[test]
fn deadlines_in_rows_are_searched_too() {
    let scope = |mutant| Scope {
        dialect: Kind::VmwareGoKcl,
        faults: 1,
        mutant,
        ..Scope::default()
    };
    let sound = exhaust(&scope(None), jobs(), &|_| {});
    assert!(sound.violations.is_empty(), "{:#?}", sound.violations);
    assert!(sound.states > 30_000 && sound.ends > 1_000, "{sound:?}");
    for (mutant, meant) in [
        (Mutant::StampAtReceipt, P14),
        (Mutant::UnknownIsFailure, P3),
        (Mutant::TakeUnguarded, P14),
        (Mutant::NoParentWait, P2),
    ] {
        let report = exhaust(&scope(Some(mutant)), jobs(), &|_| {});
        let found = report.violations.first().map(|found| found.property);
        assert_eq!(found, Some(meant), "{} in {} states", mutant.id(), report.states);
    }
}

#[test]
fn taking_leases_while_stopping_is_found_with_two_faults() {
    let scope = Scope {
        slow: 1,
        pauses: 0,
        mutant: Some(Mutant::TakeWhileStopping),
        ..Scope::default()
    };
    let report = exhaust(&scope, jobs(), &|_| {});
    let found = report.violations.first().map(|found| found.property);
    assert_eq!(found, Some(P11), "in {} states", report.states);
}

#[test]
fn the_sound_engine_has_no_violation_and_the_search_repeats() {
    let scope = Scope {
        faults: 1,
        ..Scope::default()
    };
    let report = exhaust(&scope, jobs(), &|_| {});
    assert!(report.violations.is_empty(), "{:#?}", report.violations);
    assert!(report.states > 20_000 && report.ends > 1_000, "{report:?}");
    let again = exhaust(&scope, 1, &|_| {});
    let counts = |report: &leasehold_sim::exhaust::Report| {
        (report.states, report.transitions, report.ends, report.depth)
    };
    assert_eq!(counts(&report), counts(&again));
}
