//! The small scope, exhausted: the sound engine has no violation, and every deliberate bug of this scope is found.
//!
//! Each search takes up to a minute, so this runs in release, in the copy of the sources with the bugs: see "Deliberate
//! bugs" in CONTRIBUTING.md.

use leasehold_engine::format::Format;
use leasehold_sim::deliberate::Bug;
use leasehold_sim::exhaust::{Scope, exhaust};
use leasehold_sim::oracles::Property::{self, *};

/// The bugs of this scope, with the properties broken by each.
const FOUND: &[(&str, &[Property])] = &[
    ("stamp-at-receipt", &[ExclusiveOwnership]),
    ("unknown-is-failure", &[OwnWritesRecognised]),
    ("unknown-is-success", &[OwnWritesRecognised, ViewMatchesTable]),
    ("no-adoption", &[OwnWritesRecognised]),
    ("unguarded-create", &[ProgressDurable]),
    ("end-before-children", &[ParentsFirst]),
    ("no-parent-wait", &[ParentsFirst]),
    ("checkpoint-on-delivery", &[EveryRecordDelivered]),
    ("no-settle", &[ExclusiveOwnership]),
    ("no-fence", &[ExclusiveOwnership]),
    ("no-close-when-lost", &[StopsCleanly]),
    ("blind-to-counter", &[ExclusiveOwnership]),
    ("no-release", &[StopsCleanly]),
    ("never-expire", &[LeasesOwned]),
];

fn named(id: &str) -> Bug {
    Bug::named(id).unwrap_or_else(|sentence| panic!("{sentence}"))
}

fn jobs() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

#[test]
#[ignore = "needs minutes, and the copy that `leasehold mutants --prepare` writes"]
fn the_fitting_deliberate_bugs_are_found_with_one_fault() {
    println!("| bug | property | faults | steps | states | seconds |\n|---|---|---|---|---|---|");
    for (id, meant) in FOUND {
        let scope = Scope { faults: 1, bug: Some(named(id)), ..Scope::default() };
        let report = exhaust(&scope, jobs(), &|_| {});
        let found = report
            .violations
            .first()
            .unwrap_or_else(|| panic!("{id} was not found in {} states", report.states));
        assert!(meant.contains(&found.property), "{id}: {found:#?}");
        println!(
            "| {id} | {} | {} | {} | {} | {:.1} |",
            found.property, found.faults, found.steps, report.states, report.wall_seconds
        );
    }
}

#[test]
#[ignore = "needs minutes, and the copy that `leasehold mutants --prepare` writes"]
fn deadlines_in_rows_are_searched_too() {
    let scope = |bug| Scope { format: Format::VmwareGoKcl, faults: 1, bug, ..Scope::default() };
    let sound = exhaust(&scope(None), jobs(), &|_| {});
    assert!(sound.violations.is_empty(), "{:#?}", sound.violations);
    assert!(sound.states > 30_000 && sound.ends > 1_000, "{sound:?}");
    for (id, meant) in [
        ("stamp-at-receipt", ExclusiveOwnership),
        ("unknown-is-failure", OwnWritesRecognised),
        ("take-unguarded", ExclusiveOwnership),
        ("no-parent-wait", ParentsFirst),
    ] {
        let report = exhaust(&scope(Some(named(id))), jobs(), &|_| {});
        let found = report.violations.first().map(|found| found.property);
        assert_eq!(found, Some(meant), "{id} in {} states", report.states);
    }
}

#[test]
#[ignore = "needs minutes, and the copy that `leasehold mutants --prepare` writes"]
fn taking_leases_while_stopping_is_found_with_two_faults() {
    let scope = Scope { slow: 1, pauses: 0, bug: Some(named("take-while-stopping")), ..Scope::default() };
    let report = exhaust(&scope, jobs(), &|_| {});
    let found = report.violations.first().map(|found| found.property);
    assert_eq!(found, Some(OneLeader), "in {} states", report.states);
}

#[test]
#[ignore = "needs minutes: run it in release"]
fn hand_overs_that_are_asked_for_have_no_violation() {
    let scope = Scope { asks: true, faults: 1, ..Scope::default() };
    let report = exhaust(&scope, jobs(), &|_| {});
    assert!(report.violations.is_empty(), "{:#?}", report.violations);
    assert!(report.states > 20_000 && report.ends > 1_000, "{report:?}");
}

#[test]
#[ignore = "needs minutes: run it in release"]
fn the_sound_engine_has_no_violation_and_the_search_repeats() {
    let scope = Scope { faults: 1, ..Scope::default() };
    let report = exhaust(&scope, jobs(), &|_| {});
    assert!(report.violations.is_empty(), "{:#?}", report.violations);
    assert!(report.states > 20_000 && report.ends > 1_000, "{report:?}");
    let again = exhaust(&scope, 1, &|_| {});
    let counts = |report: &leasehold_sim::exhaust::Report| {
        (report.states, report.transitions, report.ends, report.depth)
    };
    assert_eq!(counts(&report), counts(&again));
}
