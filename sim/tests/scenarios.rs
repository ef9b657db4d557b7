//! The scenarios of `sim/scenarios/`: no world has a violation. A scenario without a bug shows a behaviour, and its column
//! log is unchanged; `LEASEHOLD_BLESS=1` writes an intended change of a log. A scenario that names a deliberate bug has no
//! log: in the copy with the bugs, the scenario must show the bug.
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
    let mut wrong = Vec::new();
    let all = scenarios();
    assert!(!all.is_empty(), "there are no scenarios");
    for (path, scenario) in all {
        let name = path.display();
        let options = Options { log: scenario.bug.is_none(), ..Options::default() };
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
        if scenario.bug.is_none()
            && let Err(difference) = compare(&path.with_extension("log"), &(found.log.join("\n") + "\n"))
        {
            wrong.push(format!("{name}: {difference}"));
        }
    }
    assert!(wrong.is_empty(), "{}\n(if that is as it should be: LEASEHOLD_BLESS=1)", wrong.join("\n"));
}

/// Compares a column log with its file, or writes the file.
fn compare(golden: &Path, log: &str) -> Result<(), String> {
    if std::env::var_os("LEASEHOLD_BLESS").is_some_and(|value| value == "1") {
        std::fs::write(golden, log).unwrap_or_else(|error| panic!("{}: {error}", golden.display()));
        return Ok(());
    }
    let expected = std::fs::read_to_string(golden).unwrap_or_default();
    if let Some(line) = (1..).zip(expected.lines().zip(log.lines())).find(|(_, (old, new))| old != new) {
        let (number, (old, new)) = line;
        return Err(format!("line {number} of its log was\n  {old}\nand is\n  {new}"));
    }
    let [had, has] = [expected.lines().count(), log.lines().count()];
    if had == has { Ok(()) } else { Err(format!("its log had {had} lines and has {has}")) }
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
