//! Scenario files: running a file, and writing a file for a seed's violation.

use crate::exit::{self, Failure, Verdict};
use leasehold_sim::deliberate::{HAS_BUGS, HOW};
use leasehold_sim::hazards::of_ours;
use leasehold_sim::run::{Cancel, Options, run_plan};
use leasehold_sim::scenario::Scenario;
use leasehold_sim::shrink::{Shrunk, Size, shrink};
use leasehold_sim::swarm::Plan;
use serde::Serialize;
use serde_json::json;
use std::fmt::{self, Write as _};
use std::path::{Path, PathBuf};

/// Reads a scenario file.
pub(super) fn read(path: &Path) -> Result<Scenario, Failure> {
    let name = path.display();
    let bytes = std::fs::read(path).map_err(|error| {
        Failure::unusable(format!("expected a readable scenario file, but {name}: {error}"))
    })?;
    let text = String::from_utf8(bytes).map_err(|error| {
        Failure::unusable(format!(
            "{name}: expected a text in UTF-8, found other bytes after the first {}",
            error.utf8_error().valid_up_to()
        ))
    })?;
    text.parse().map_err(|error| Failure::unusable(format!("{name}: {error}")))
}

/// Runs the world of a scenario file and shows it.
/// `ours`: Leasehold's workers replace the workers of other programs, and must violate nothing.
pub(super) fn run(path: &Path, ours: bool, as_json: bool) -> Result<Verdict, Failure> {
    let mut scenario = read(path)?;
    if ours {
        (scenario.plan, scenario.violates) = (of_ours(&scenario.plan), None);
    }
    let bug = scenario.bug;
    let has_bug = bug.filter(|_| HAS_BUGS);
    let options = Options {
        log: !as_json,
        bug: has_bug,
        // Further violations of another program do not end its world.
        only: scenario.violates.filter(|_| scenario.plan.has_others()).into_iter().collect(),
        ..Options::default()
    };
    let found = run_plan(scenario.plan.clone(), &options)
        .map_err(|panic| Failure::under_way(format!("the world ended in a panic: {panic}")))?;
    let judged = scenario.judge(&found, has_bug.is_some());
    if as_json {
        exit::print_json(&json!({
            "scenario": path,
            "violations": found.violations,
            "as_expected": judged.is_ok(),
            "inputs": found.inputs,
            "simulated_seconds": found.simulated as f64 / 1e6,
            "digest": format!("{:016x}", found.digest),
        }))?;
    } else {
        let mut text = found.log.join("\n");
        for violation in &found.violations {
            let _ = write!(
                text,
                "\n\nVIOLATION of {} at {:.3} s: {}",
                violation.property,
                violation.at as f64 / 1e6,
                violation.summary
            );
        }
        if let (Some(bug), None) = (bug, has_bug) {
            let _ = write!(
                text,
                "\n\nthe bug {bug:?} is not in this program, so the sound engine was run; {HOW}"
            );
        }
        let verdict = match &judged {
            Ok(()) => "as the scenario says".to_owned(),
            Err(difference) => difference.clone(),
        };
        let _ = write!(text, "\n\n{verdict}; {} inputs, digest {:016x}", found.inputs, found.digest);
        exit::print(&text)?;
    }
    Ok(Verdict::of(judged.is_err() || found.violations.iter().any(|violation| !violation.of_others)))
}

/// A shrunk and written failure.
#[derive(Debug, Serialize)]
pub(super) struct Kept {
    /// The scenario.
    pub file: PathBuf,
    #[serde(flatten)]
    pub size: Size,
    /// The number of worlds run by the shrinker.
    pub runs: u32,
    /// The violation in a sentence.
    pub about: String,
    /// The command to show the failure again.
    pub again: String,
}

impl fmt::Display for Kept {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let file = self.file.display();
        let Size { workers, shards, events } = self.size;
        writeln!(
            f,
            "shrunk to {workers} workers, {shards} shards and {events} events in {} runs: {}",
            self.runs, self.about
        )?;
        writeln!(f, "  again: {}", self.again)?;
        writeln!(f, "  its column log: {}", self.file.with_extension("log").display())?;
        write!(f, "  keep it as a regression test: cp {file} sim/scenarios/")
    }
}

/// Shrinks the violation of a drawn world and writes the result into a folder. None: the world violates nothing any
/// more, or the shrinking was cancelled.
pub(super) fn keep(plan: &Plan, folder: &Path, cancel: &Cancel) -> Result<Option<Kept>, Failure> {
    match shrink(plan, None, cancel) {
        Some(shrunk) => {
            let property = shrunk.scenario.violates.map(|property| format!("-{property}"));
            let name = format!("seed-{}{}", plan.seed, property.unwrap_or_default());
            write(&shrunk, &name, folder).map(Some)
        }
        None => Ok(None),
    }
}

/// Writes a shrunk world and its column log.
pub(super) fn write(shrunk: &Shrunk, name: &str, folder: &Path) -> Result<Kept, Failure> {
    let scenario = &shrunk.scenario;
    let file = folder.join(format!("{name}.toml"));
    let options = Options { log: true, bug: scenario.bug, ..Options::default() };
    let log = run_plan(scenario.plan.clone(), &options)
        .map_or_else(|panic| format!("a panic: {panic}"), |found| found.log.join("\n"));
    let failed = |error: std::io::Error| {
        Failure::under_way(format!(
            "{} cannot be written: {error}; choose another folder with --failures",
            file.display()
        ))
    };
    std::fs::create_dir_all(folder).map_err(failed)?;
    std::fs::write(&file, scenario.to_string()).map_err(failed)?;
    std::fs::write(file.with_extension("log"), log + "\n").map_err(failed)?;
    Ok(Kept {
        again: format!("leasehold sim --scenario {}", file.display()),
        size: shrunk.size,
        runs: shrunk.runs,
        about: scenario.about.clone(),
        file,
    })
}
