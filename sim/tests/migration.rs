//! A fleet goes over from the rules of version 2 of the Java KCL to those of version 3. The leader is a worker of ours, or the model of one
//! of theirs, which reads the whole row as strictly as the original.

use leasehold_sim::run::{Options, run_plan};
use leasehold_sim::scenario::Scenario;
use leasehold_sim::world::Found;
use std::path::Path;

fn run(name: &str) -> Found {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("scenarios").join(name);
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let scenario: Scenario = text.parse().unwrap_or_else(|error| panic!("{name}: {error}"));
    let options = Options { log: true, ..Options::default() };
    run_plan(scenario.plan, &options).unwrap_or_else(|panic| panic!("{name}: {panic}"))
}

/// The time of the first line with this end, in seconds.
fn at(found: &Found, end: &str) -> Option<f64> {
    let line = found.log.iter().find(|line| line.trim_end().ends_with(end))?;
    line.split('|').next()?.trim().parse().ok()
}

#[test]
fn a_fleet_goes_over_led_by_ours_and_by_theirs() {
    for name in ["mixed-kcl-3-migrates.toml", "mixed-kcl-3-migrates-led-by-kcl.toml"] {
        let found = run(name);
        // The third of three is the first of the shuffle.
        let over = at(&found, "w2 says that the fleet is at CLIENT_VERSION_3X_WITH_ROLLBACK");
        let over = over.unwrap_or_else(|| panic!("{name}: the fleet did not go over"));
        assert!(over > 120.0, "{name}: {over}: all have reported for two minutes");
        let leads = found.log.iter().find(|line| line.trim_end().ends_with("leads the fleet"));
        assert!(leads.is_some(), "{name}: nobody led afterwards");
    }
}
