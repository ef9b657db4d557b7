//! The scenarios of `sim/scenarios/`: no world has a violation, and the column logs are unchanged.
//!
//! `LEASEHOLD_BLESS=1` writes an intended change of a log. In the copy with the deliberate bugs, a scenario that names
//! a bug must also show the bug.
#![allow(clippy::disallowed_methods, reason = "LEASEHOLD_BLESS says that texts are to be written anew")]

use leasehold_sim::deliberate::HAS_BUGS;
use leasehold_sim::run::{Options, run_plan};
use leasehold_sim::scenario::Scenario;
use std::path::{Path, PathBuf};

fn scenarios() -> Vec<(PathBuf, Scenario)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("scenarios");
    let entries = std::fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut files: Vec<PathBuf> = entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.extension().is_some_and(|extension| extension == "toml"))
        .collect();
    files.sort();
    let read = |path: PathBuf| {
        let text =
            std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let scenario = text.parse().unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        (path, scenario)
    };
    files.into_iter().map(read).collect()
}

#[test]
fn an_old_mistake_does_not_come_back() {
    let bless = std::env::var_os("LEASEHOLD_BLESS").is_some_and(|value| value == "1");
    let options = Options { log: true, ..Options::default() };
    let mut wrong = Vec::new();
    let all = scenarios();
    assert!(!all.is_empty(), "there are no scenarios");
    for (path, scenario) in all {
        let name = path.display();
        let found = match run_plan(scenario.plan.clone(), &options) {
            Ok(found) => found,
            Err(panic) => {
                wrong.push(format!("{name}: a panic: {panic}"));
                continue;
            }
        };
        if let Err(difference) = scenario.judge(&found, false) {
            wrong.push(format!("{name}: {difference}"));
        }
        let log = found.log.join("\n") + "\n";
        let golden = path.with_extension("log");
        if bless {
            std::fs::write(&golden, &log).unwrap_or_else(|error| panic!("{}: {error}", golden.display()));
            continue;
        }
        let expected = std::fs::read_to_string(&golden).unwrap_or_default();
        if let Some(line) = (1..).zip(expected.lines().zip(log.lines())).find(|(_, (old, new))| old != new) {
            let (number, (old, new)) = line;
            wrong.push(format!("{name}: line {number} of its log was\n  {old}\nand is\n  {new}"));
        } else if expected.lines().count() != log.lines().count() {
            wrong.push(format!(
                "{name}: its log had {} lines and has {}",
                expected.lines().count(),
                log.lines().count()
            ));
        }
    }
    assert!(wrong.is_empty(), "{}\n(if that is as it should be: LEASEHOLD_BLESS=1)", wrong.join("\n"));
}

#[test]
fn a_scenario_with_a_bug_shows_it() {
    if !HAS_BUGS {
        println!("skipped: this is not the copy that has the deliberate bugs in it");
        return;
    }
    let mut wrong = Vec::new();
    for (path, scenario) in scenarios() {
        if scenario.bug.is_none() {
            continue;
        }
        let options = Options { bug: scenario.bug, ..Options::default() };
        let judged = run_plan(scenario.plan.clone(), &options).and_then(|found| scenario.judge(&found, true));
        if let Err(difference) = judged {
            wrong.push(format!("{}: {difference}", path.display()));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
