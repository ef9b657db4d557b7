//! Runs a range of seeds: `seeds FROM..TO [JOBS]`, or one with its column log: `seeds SEED`.

use leasehold_sim::run::{Options, run_seed, run_seeds};
use std::process::ExitCode;

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let range = arguments.next().unwrap_or_else(|| "0..100".to_owned());
    let jobs = arguments.next().and_then(|jobs| jobs.parse().ok()).unwrap_or(1);
    let Some((from, to)) = range.split_once("..") else {
        return one(&range);
    };
    let (Ok(from), Ok(to)) = (from.parse(), to.parse()) else {
        eprintln!("expected FROM..TO, found {range:?}");
        return ExitCode::from(2);
    };
    let summary = run_seeds(from..to, jobs, &Options::default(), &|_| {});
    let mut shown = std::collections::BTreeSet::new();
    for violation in &summary.violations {
        // One of a kind and world says enough.
        if !shown.insert((violation.property, violation.seed)) {
            continue;
        }
        println!("{:?} {} — {}", violation.property, violation.summary, violation.scenario);
    }
    for (mark, worlds) in &summary.marks {
        println!("{worlds:>8} {mark}");
    }
    let rate = summary.inputs as f64 / summary.wall_seconds;
    println!(
        "{} seeds, {} violations, {} excused, {} inputs, {:.0} simulated s, {:.1} s, {rate:.0} inputs/s, window {} ms, digest {}",
        summary.seeds,
        summary.violations.len(),
        summary.excused,
        summary.inputs,
        summary.simulated_seconds,
        summary.wall_seconds,
        summary.longest_window_ms,
        summary.digest
    );
    if summary.violations.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn one(seed: &str) -> ExitCode {
    let Ok(seed) = seed.parse() else {
        eprintln!("expected a seed or FROM..TO, found {seed:?}");
        return ExitCode::from(2);
    };
    let report = run_seed(seed, &Options { log: true, ..Options::default() });
    for line in &report.found.log {
        println!("{line}");
    }
    println!("{}", report.scenario());
    println!("{:?}, digest {:016x}", report.found.ending, report.found.digest);
    for violation in &report.found.violations {
        println!("{:?} at {:.3} s: {}", violation.property, violation.at as f64 / 1e6, violation.summary);
    }
    if report.found.violations.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
