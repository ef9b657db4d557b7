//! `leasehold exhaust`: every order of events of a small scope.

use crate::copy::hand_over;
use crate::exit::{self, Failure, Verdict};
use crate::formats::counted;
use clap::Args;
use indicatif::{ProgressBar, ProgressStyle};
use leasehold_engine::format::Format;
use leasehold_engine::time::Span;
use leasehold_sim::deliberate::{Bug, HAS_BUGS};
use leasehold_sim::exhaust::{Report, Scope, exhaust};
use std::fmt::Write as _;
use std::num::NonZeroUsize;

/// Visit every order of events of a few workers with a few faults, and judge each.
///
/// By default: two workers, one shard that is split, and two faults out of a slow request (executed and answered at any
/// time or never), a pause, a crash and a shutdown.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  leasehold exhaust\n  leasehold exhaust --slow 2 --crashes 0 --stops 0 --json"
)]
pub(super) struct ExhaustArgs {
    /// How leases are kept in the table: kcl, vmware-go-kcl or kcl-rb, as the library of that name does.
    #[arg(long, alias = "dialect", value_name = "FORMAT", default_value_t, value_parser = counted)]
    format: Format,
    /// Workers ask each other for leases in KCL's tables, instead of stealing.
    #[arg(long)]
    asks: bool,
    /// How many workers.
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..=4))]
    workers: u32,
    /// How many shards at the beginning.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=4))]
    shards: u32,
    /// No path longer than so many steps. By default, only the length of time is limited.
    #[arg(long, value_name = "D")]
    depth: Option<u32>,
    /// At most so many faults on one path.
    #[arg(long, value_name = "N", default_value_t = 2)]
    faults: u32,
    /// At most so many of the faults are slow requests.
    #[arg(long, value_name = "N", default_value_t = 1)]
    slow: u32,
    /// At most so many of the faults are pauses of a worker.
    #[arg(long, value_name = "N", default_value_t = 1)]
    pauses: u32,
    /// At most so many of the faults are crashes.
    #[arg(long, value_name = "N", default_value_t = 1)]
    crashes: u32,
    /// At most so many of the faults are shutdowns.
    #[arg(long, value_name = "N", default_value_t = 1)]
    stops: u32,
    /// The shard is not split.
    #[arg(long)]
    no_split: bool,
    /// Choices are offered for so many seconds of the world's time; later all must come right by itself.
    #[arg(long, value_name = "SECONDS", default_value_t = 24, value_parser = clap::value_parser!(u64).range(1..=600))]
    horizon: u64,
    /// How many threads search; by default one for every processor.
    #[arg(long, value_name = "J")]
    jobs: Option<NonZeroUsize>,
    /// A deliberate bug for every worker. Like `mutants`, this builds a program with the bug from a copy of the
    /// sources.
    #[arg(long, value_name = "ID", value_parser = Bug::named)]
    mutant: Option<Bug>,
    /// Results as one JSON object.
    #[arg(long)]
    json: bool,
}

pub(super) fn run(args: &ExhaustArgs) -> Result<Verdict, Failure> {
    if args.mutant.is_some() && !HAS_BUGS {
        return hand_over();
    }
    let scope = Scope {
        format: args.format,
        asks: args.asks,
        workers: args.workers as usize,
        shards: args.shards,
        split: !args.no_split,
        faults: args.faults,
        slow: args.slow,
        pauses: args.pauses,
        crashes: args.crashes,
        stops: args.stops,
        horizon: Span::from_secs(args.horizon),
        depth: args.depth,
        bug: args.mutant,
        ..Scope::default()
    };
    let jobs = args.jobs.or_else(|| std::thread::available_parallelism().ok());
    let bar = ProgressBar::new_spinner();
    bar.set_style(
        ProgressStyle::with_template("{spinner} {pos} states, {per_sec}, {elapsed}")
            .unwrap_or_else(|_| ProgressStyle::default_spinner()),
    );
    let report = exhaust(&scope, jobs.map_or(1, NonZeroUsize::get), &|states| bar.set_position(states));
    bar.finish_and_clear();
    exit::show(args.json, &report, || describe(&report))?;
    Ok(Verdict::of(!report.violations.is_empty()))
}

fn describe(report: &Report) -> String {
    let mut text = String::new();
    for violation in &report.violations {
        for (n, line) in violation.story.iter().enumerate() {
            let _ = writeln!(text, "{:>4}  {line}", n + 1);
        }
        let _ = writeln!(
            text,
            "VIOLATION of {} at {:.3} s, with {} faults and in {} steps: {}",
            violation.property,
            violation.at as f64 / 1e6,
            violation.faults,
            violation.steps,
            violation.summary
        );
    }
    let _ = write!(
        text,
        "{}\n{} states, {} transitions, {} ends, at most {} steps deep, {} violations, in {:.1} s",
        report.scope,
        report.states,
        report.transitions,
        report.ends,
        report.depth,
        report.violations.len(),
        report.wall_seconds
    );
    text
}
