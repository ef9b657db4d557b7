//! `leasehold sim`: simulated worlds.

use crate::exit::{self, Failure, Verdict};
use crate::formats::Formats;
use crate::hazards;
use crate::input;
use crate::page;
use crate::position::parse_position;
use crate::scenario;
use clap::Args;
use indicatif::{ProgressBar, ProgressStyle};
use leasehold::internals::{Machine as _, MemorySink, OutputDigest, Recorder};
use leasehold_engine::Engine;
use leasehold_engine::config::InitialPosition;
use leasehold_engine::format::{Format, LeaseFormat as _};
use leasehold_engine::input::Input;
use leasehold_sim::run::{Cancel, Options, Summary, WorldReport, plan_of, run_seed, run_seeds};
use leasehold_sim::start::Start;
use leasehold_sim::what_if::{Given, Unusable};
use leasehold_sim::world::Ending;
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::num::NonZeroUsize;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Run simulated fleets through resharding, crashes, lost answers and skewed clocks, and judge what happened.
///
/// A seed is a whole world: the same seed draws the same world again. One seed prints a line for every change of state;
/// many seeds print a summary.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  leasehold sim --seed 42 --html 42.html\n  leasehold sim --seeds 0..20000 --jobs 2 --json\n  leasehold sim --scenario sim/scenarios/no-parent-wait.toml\n  leasehold sim --shards shards.json --leases leases.json"
)]
pub(super) struct SimArgs {
    /// One world, with a line for every change of state.
    #[arg(long, value_name = "N", conflicts_with = "seeds")]
    seed: Option<u64>,
    /// Many worlds: from A up to but not including B.
    #[arg(long, value_name = "A..B", default_value = "0..1000", value_parser = parse_range)]
    seeds: Range<u64>,
    /// The number of worlds run at the same time; by default one for every processor. The results do not depend on this
    /// number.
    #[arg(long, value_name = "J")]
    jobs: Option<NonZeroUsize>,
    /// The table format, named after its library: kcl, vmware-go-kcl, kcl-rb or kinsumer; or all formats, by turns.
    #[arg(long, alias = "dialect", value_name = "FORMAT", default_value_t)]
    format: Formats,
    /// Run workers of the format's own library beside Leasehold's workers, or let Leasehold's workers replace them.
    /// Worlds have only faults that the library survives.
    #[arg(long, conflicts_with_all = ["scenario", "hazards", "shards"])]
    mixed: bool,
    /// With --seed: record each life of a worker, for `leasehold replay`; `out.jsonl` makes `out.0.jsonl` and so on.
    #[arg(long, value_name = "FILE", requires = "seed")]
    trace: Option<PathBuf>,
    /// With --seed: the timeline as a page in one file.
    #[arg(long, value_name = "OUT", requires = "seed")]
    html: Option<PathBuf>,
    /// With --seed: a Mermaid sequence diagram, if the world is small enough for one.
    #[arg(long, value_name = "OUT", requires = "seed")]
    mermaid: Option<PathBuf>,
    /// The world of a scenario file, with a line for every change of state.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["seed", "seeds", "format"])]
    scenario: Option<PathBuf>,
    /// With --scenario: our workers in the place of others'.
    #[arg(long, requires = "scenario")]
    ours: bool,
    /// Hazards of other libraries: a scenario for each, with the violations of the library and the result of Leasehold.
    #[arg(long, alias = "museum", conflicts_with_all = ["seed", "seeds", "format", "scenario", "shards"])]
    hazards: bool,
    /// Worlds with a real stream at the start: the output of `aws kinesis list-shards`.
    #[arg(long, value_name = "FILE", requires = "leases", conflicts_with = "scenario")]
    shards: Option<PathBuf>,
    /// The real stream's lease table: the output of `aws dynamodb scan`. The owners in the file are dead; new workers
    /// start.
    #[arg(long, value_name = "FILE", requires = "shards", conflicts_with = "scenario")]
    leases: Option<PathBuf>,
    /// With --shards: where shards that have no lease yet are started, trim-horizon, latest or a time as of RFC 3339 (which
    /// stands for some time of the stream's life).
    #[arg(long, default_value = "trim-horizon", value_name = "POSITION", value_parser = parse_position, requires = "shards")]
    from: InitialPosition,
    /// Also fail (exit code 1) if the run was not looking: a missing canary, too many excuses, marks that did not occur.
    #[arg(long)]
    gate: bool,
    /// Show the table of marks and faults.
    #[arg(long)]
    table: bool,
    /// Do not shrink a failure.
    #[arg(long)]
    no_shrink: bool,
    /// Where a failure is written to, shrunk, with its column log.
    #[arg(long, value_name = "FOLDER", default_value = "target/leasehold-failures")]
    failures: PathBuf,
    /// Results as one JSON object.
    #[arg(long)]
    json: bool,
}

pub(super) fn parse_range(text: &str) -> Result<Range<u64>, String> {
    let expected = || "expected two numbers such as 0..1000, the first below the second".to_owned();
    let (from, to) = text.split_once("..").ok_or_else(expected)?;
    match (from.trim().parse::<u64>(), to.trim().parse::<u64>()) {
        (Ok(from), Ok(to)) if from < to => Ok(from..to),
        _ => Err(expected()),
    }
}

pub(super) fn run(args: &SimArgs) -> Result<Verdict, Failure> {
    if args.hazards {
        return hazards::run(args.json);
    }
    check_mixed(args)?;
    match (&args.scenario, args.seed) {
        (Some(file), _) => scenario::run(file, args.ours, args.json),
        (None, Some(seed)) => one(seed, args, given(args)?),
        (None, None) => many(args, given(args)?),
    }
}

/// Checks the formats against `--mixed`.
fn check_mixed(args: &SimArgs) -> Result<(), Failure> {
    if args.mixed && matches!(args.format.0[..], [Format::KclRb]) {
        return Err(Failure::unusable(
            "expected --format kcl, vmware-go-kcl, kinsumer or all with --mixed, found kcl-rb, whose workers must not meet ours",
        ));
    }
    Ok(())
}

/// The stream and the table given for the start of worlds.
fn given(args: &SimArgs) -> Result<Option<Given>, Failure> {
    let (Some(shards), Some(leases)) = (&args.shards, &args.leases) else {
        return Ok(None);
    };
    let [format] = args.format.0[..] else {
        return Err(Failure::unusable(
            "expected one format with --shards and --leases, that of the table, found --format all",
        ));
    };
    let items = input::items(leases, format.key_name())?;
    let start = Start::of(format, &input::shards(shards)?, items).map_err(|error| match error {
        Unusable::Shards(sentence) => Failure::unusable(format!("{}: {sentence}", shards.display())),
        Unusable::Table(sentence) => Failure::unusable(format!("{}: {sentence}", leases.display())),
    })?;
    let from = match args.from {
        InitialPosition::TrimHorizon => String::new(),
        InitialPosition::Latest => " --from latest".to_owned(),
        // Any time is as good.
        InitialPosition::AtTimestamp(_) => " --from 2025-01-31T12:00:00Z".to_owned(),
    };
    Ok(Some(Given {
        start: Arc::new(start),
        format,
        from: args.from,
        flags: format!(" --shards {} --leases {}{from}", shards.display(), leases.display()),
    }))
}

fn one(seed: u64, args: &SimArgs, given: Option<Given>) -> Result<Verdict, Failure> {
    let plain = worlds(args, given);
    let options = Options {
        log: !args.json,
        trace: args.trace.is_some(),
        record: args.html.is_some() || args.mermaid.is_some(),
        ..plain.clone()
    };
    if args.json {
        // The same object as of many worlds.
        let summary = run_seeds(seed..seed.saturating_add(1), 1, &plain, &|_| {});
        if options.trace || options.record {
            let report = run_seed(seed, &options);
            if let Some(path) = &args.trace {
                write_traces(path, &report.found.trace)?;
            }
            page::write_world(&report, args.html.as_deref(), args.mermaid.as_deref())?;
        }
        exit::print_json(&summary)?;
        return Ok(Verdict::of(!summary.violations.is_empty()));
    }
    let report = run_seed(seed, &options);
    if let Some(path) = &args.trace {
        for file in write_traces(path, &report.found.trace)? {
            eprintln!("recorded {}", file.display());
        }
    }
    exit::print(&describe_world(&report, options.given.as_ref()))?;
    page::write_world(&report, args.html.as_deref(), args.mermaid.as_deref())?;
    Ok(Verdict::of(!report.found.violations.is_empty()))
}

/// The worlds to run, without a log or a record.
fn worlds(args: &SimArgs, given: Option<Given>) -> Options {
    Options { formats: args.format.0.clone(), mixed: args.mixed, given, ..Options::default() }
}

fn describe_world(report: &WorldReport, given: Option<&Given>) -> String {
    let found = &report.found;
    let mut text = found.log.join("\n");
    let _ = write!(text, "\n\nseed {}: {}\n", report.seed, report.configuration);
    for violation in &found.violations {
        let _ = writeln!(
            text,
            "VIOLATION of {} at {:.3} s: {}",
            violation.property,
            violation.at as f64 / 1e6,
            match given {
                Some(given) => given.start.with_names(&violation.summary),
                None => violation.summary.clone(),
            }
        );
    }
    let verdict = match (&found.ending, found.violations.is_empty()) {
        (Ending::Settled { after_us, .. }, true) => {
            format!("all is well, {:.1} s after the last fault", *after_us as f64 / 1e6)
        }
        (Ending::Excused(why), true) => format!("no violation; excused from coming right: {why}"),
        (_, true) => "no violation".to_owned(),
        (_, false) => format!("{} violations", found.violations.len()),
    };
    let _ = write!(
        text,
        "{verdict}; {} inputs, {:.0} simulated seconds, {} duplicates, digest {:016x}",
        found.inputs,
        found.simulated as f64 / 1e6,
        found.duplicates,
        found.digest
    );
    text
}

fn many(args: &SimArgs, given: Option<Given>) -> Result<Verdict, Failure> {
    let jobs = args.jobs.or_else(|| std::thread::available_parallelism().ok());
    let bar = ProgressBar::new(args.seeds.end - args.seeds.start);
    bar.set_style(
        ProgressStyle::with_template("{bar:40} {pos}/{len} worlds, {per_sec}, {eta} left")
            .unwrap_or_else(|_| ProgressStyle::default_bar()),
    );
    let cancel = Cancel::when(crate::signal::flag()?);
    let options = Options { cancel: cancel.clone(), ..worlds(args, given) };
    let jobs = jobs.map_or(1, NonZeroUsize::get);
    let summary = run_seeds(args.seeds.clone(), jobs, &options, &|done| bar.set_position(done));
    bar.finish_and_clear();
    let interrupted = cancel.is_asked();
    if interrupted {
        eprintln!("interrupted after {} worlds", summary.seeds);
    }
    let kept = match summary.violations.first() {
        Some(violation) if !args.no_shrink && !interrupted => {
            scenario::keep(&plan_of(violation.seed, &options), &args.failures, &cancel)?
        }
        _ => None,
    };
    if cancel.is_asked() && !interrupted {
        eprintln!(
            "the shrinking of the first failure was interrupted: its case may be missing, or larger than need be"
        );
    }
    exit::show(args.json, &WithShrunk { summary: &summary, shrunk: kept.as_ref() }, || {
        let mut text = describe_summary(&summary);
        if args.table {
            let _ = write!(text, "\n\n{}", summary.looking.together.table());
        }
        if let Some(kept) = &kept {
            let _ = write!(text, "\n{kept}");
        }
        text
    })?;
    if args.gate
        && let Err(sentence) = summary.looking.check(summary.seeds, summary.excused)
    {
        eprintln!("not looking: {sentence}");
        return Ok(Verdict::Found);
    }
    Ok(Verdict::of(!summary.violations.is_empty()))
}

/// A summary as JSON, with the first failure after shrinking.
#[derive(Serialize)]
struct WithShrunk<'a> {
    #[serde(flatten)]
    summary: &'a Summary,
    #[serde(skip_serializing_if = "Option::is_none")]
    shrunk: Option<&'a scenario::Kept>,
}

/// The most violations shown to people.
const SHOWN: usize = 20;

fn describe_summary(summary: &Summary) -> String {
    let mut text = String::new();
    for violation in summary.violations.iter().take(SHOWN) {
        let _ = writeln!(
            text,
            "VIOLATION of {} at {:.3} s of seed {}: {}\n  again: {}",
            violation.property,
            violation.at as f64 / 1e6,
            violation.seed,
            violation.summary,
            violation.scenario
        );
    }
    if summary.violations.len() > SHOWN {
        let _ = writeln!(text, "… and {} more; --json has all of them", summary.violations.len() - SHOWN);
    }
    let _ = writeln!(text, "{:<34}{:>12}", "in how many worlds", "");
    for (mark, count) in &summary.marks {
        let _ = writeln!(text, "  {mark:<32}{count:>12}");
    }
    let looking = &summary.looking;
    let [tenth, hundredth, most] = looking.slowest_percent_of_bound;
    let _ = writeln!(
        text,
        "canary heard in {} of {} worlds; kinds of states added by each thousand worlds: {:?}; of the time allowed to come \
         right, the slowest tenth took {tenth} %, the slowest hundredth {hundredth} %, the slowest {most} %",
        looking.canaries_heard, looking.canaries, looking.new_states
    );
    for spot in &looking.blind_spots {
        let _ = writeln!(text, "blind spot: {} was never seen beside {}", spot.mark, spot.fault);
    }
    let _ = write!(
        text,
        "{} worlds, {} violations, {} excused; {} inputs and {:.0} simulated seconds in {:.1} s; digest {}",
        summary.seeds,
        summary.violations.len(),
        summary.excused,
        summary.inputs,
        summary.simulated_seconds,
        summary.wall_seconds,
        summary.digest
    );
    text
}

/// Writes a trace for every life: the life's inputs, with answers computed again.
fn write_traces<L: Ord + Copy>(path: &Path, inputs: &[(L, Input)]) -> Result<Vec<PathBuf>, Failure> {
    let mut lives: BTreeMap<L, Life> = BTreeMap::new();
    for (life, input) in inputs {
        lives.entry(*life).or_default().feed(input);
    }
    let mut files = Vec::new();
    for (n, mut life) in lives.into_values().enumerate() {
        life.recorder.close();
        let file = numbered(path, n);
        std::fs::write(&file, life.lines.text()).map_err(|error| {
            Failure::unusable(format!(
                "the trace file {} cannot be written: {error}; choose another path",
                file.display()
            ))
        })?;
        files.push(file);
    }
    Ok(files)
}

struct Life {
    engine: Engine,
    recorder: Recorder,
    lines: MemorySink,
}

impl Default for Life {
    fn default() -> Self {
        let lines = MemorySink::default();
        Self { engine: Engine::new(), recorder: Recorder::new(Some(Box::new(lines.clone())), None), lines }
    }
}

impl Life {
    fn feed(&mut self, input: &Input) {
        self.recorder.begin(input);
        let mut outputs = Vec::new();
        let wake_at = self.engine.feed(input.clone(), &mut |output| outputs.push(output));
        self.recorder.end(OutputDigest::of(&outputs, wake_at));
    }
}

/// `out.jsonl` becomes `out.3.jsonl`.
fn numbered(path: &Path, n: usize) -> PathBuf {
    match path.extension().and_then(|extension| extension.to_str()) {
        Some(extension) => path.with_extension(format!("{n}.{extension}")),
        None => path.with_extension(n.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_not_empty() {
        assert_eq!(parse_range("0..20000"), Ok(0..20_000));
        for text in ["5", "5..5", "7..3", "a..b", "0...3", "..3", "-1..3"] {
            assert!(parse_range(text).is_err(), "{text}");
        }
    }

    #[test]
    fn lives_are_numbered_before_the_extension() {
        assert_eq!(numbered(Path::new("a/out.jsonl"), 3), Path::new("a/out.3.jsonl"));
        assert_eq!(numbered(Path::new("out"), 0), Path::new("out.0"));
    }
}
