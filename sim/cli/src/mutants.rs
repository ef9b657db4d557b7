//! `leasehold mutants`: the catalogue of deliberate bugs.

use crate::copy::{hand_over, prepare};
use crate::exit::{self, Failure, Verdict};
use crate::scenario;
use crate::text::counted;
use clap::Args;
use leasehold_sim::deliberate::{Bug, HAS_BUGS};
use leasehold_sim::hunt::{Begin, Hunt, hunt};
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Put deliberate bugs into the sources, and see whether the oracles catch them, one at a time.
///
/// The bugs are edits of the sources, described in `sim/mutants/`. The command writes all edits into a copy of the
/// workspace, `target/deliberate-bugs`, each behind a switch. The program built from the copy (a minute or two for the
/// first build) tries the bugs. The command needs a checkout and Cargo.
///
/// A rare bug shows in one world of many thousands, and is tried only by its name with `--only`.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  leasehold mutants --jobs 2\n  leasehold mutants --only no-parent-wait --json"
)]
pub(super) struct MutantsArgs {
    /// This bug only.
    #[arg(long, value_name = "ID", value_parser = Bug::named)]
    only: Option<Bug>,
    /// Give up on a bug after this many worlds.
    #[arg(long, value_name = "N", default_value_t = 2_000)]
    seeds: u64,
    /// Hunt from the first world on, to count the worlds until the bug shows. Without this flag, a hunt begins with a
    /// world known to show the bug.
    #[arg(long)]
    count_worlds: bool,
    /// The number of bugs tried at the same time; by default one for every processor.
    #[arg(long, value_name = "J")]
    jobs: Option<NonZeroUsize>,
    /// Do not shrink the cases.
    #[arg(long)]
    no_shrink: bool,
    /// Write the shrunk cases into this folder.
    #[arg(long, value_name = "FOLDER", conflicts_with = "no_shrink")]
    keep: Option<PathBuf>,
    /// A JSON object for every bug, each on its own line.
    #[arg(long)]
    json: bool,
    /// Write the copy only, and print the build command.
    #[arg(long, exclusive = true)]
    prepare: bool,
}

pub(super) fn run(args: &MutantsArgs) -> Result<Verdict, Failure> {
    match (HAS_BUGS, args.prepare) {
        (true, true) => {
            return Err(Failure::unusable(
                "expected a program without the deliberate bugs, which writes them into a copy of its sources, found one that has them",
            ));
        }
        (true, false) => {}
        (false, true) => return only_prepare(),
        (false, false) => return hand_over(),
    }
    // A rare bug needs many thousand worlds: only its name starts a hunt.
    let (rare, bugs): (Vec<Bug>, Vec<Bug>) = match args.only {
        Some(only) => (Vec::new(), vec![only]),
        None => (Bug::all().map_err(Failure::unusable)?.into_iter()).partition(|bug| bug.is_rare()),
    };
    let jobs = args.jobs.or_else(|| std::thread::available_parallelism().ok());
    let begin = match args.count_worlds {
        true => Begin::First,
        false => Begin::Known,
    };
    let next = AtomicUsize::new(0);
    let hunts: Vec<(Bug, OnceLock<Hunt>)> = bugs.into_iter().map(|bug| (bug, OnceLock::new())).collect();
    std::thread::scope(|scope| {
        for _ in 0..jobs.map_or(1, NonZeroUsize::get) {
            scope.spawn(|| {
                while let Some((bug, hunted)) = hunts.get(next.fetch_add(1, Ordering::Relaxed)) {
                    hunted.get_or_init(|| hunt(*bug, begin, args.seeds, !args.no_shrink));
                }
            });
        }
    });
    let hunts: Vec<Hunt> = hunts.into_iter().filter_map(|(_, hunted)| hunted.into_inner()).collect();
    if let Some(folder) = &args.keep {
        for hunt in &hunts {
            if let Some(case) = &hunt.case {
                scenario::write(case, hunt.id, folder)?;
            }
        }
    }
    if args.json {
        for hunt in &hunts {
            let line = serde_json::to_string(hunt).map_err(|error| {
                Failure::under_way(format!("the results cannot be written as JSON: {error}"))
            })?;
            exit::print(&line)?;
        }
    } else {
        exit::print(&table(&hunts, &rare))?;
    }
    Ok(Verdict::of(hunts.iter().any(|hunt| !hunt.killed)))
}

fn only_prepare() -> Result<Verdict, Failure> {
    let prepared = prepare()?;
    let build = prepared.build();
    let words: Vec<_> = std::iter::once(build.get_program())
        .chain(build.get_args())
        .map(|word| word.to_string_lossy())
        .collect();
    exit::print(&format!(
        "{}: written, {} files of it anew\nbuild it:  {}\nthen run:  {}",
        prepared.folder.display(),
        prepared.changed,
        words.join(" "),
        prepared.program().display()
    ))?;
    Ok(Verdict::Fine)
}

/// The Markdown table of `sim/docs/deliberate-bugs.md`. Rows of rare bugs say that no hunt took place.
fn table(hunts: &[Hunt], rare: &[Bug]) -> String {
    let hunted = hunts.iter().map(|hunt| (hunt.id, row(hunt)));
    let not_hunted = rare.iter().map(|bug| (bug.id(), rare_row(*bug)));
    let mut rows: Vec<(&str, String)> = hunted.chain(not_hunted).collect();
    rows.sort_unstable();
    let mut text =
        "| bug | what it does wrong | caught by | worlds | shrunk to |\n|---|---|---|---|---|".to_owned();
    for (_, row) in rows {
        text.push_str(&row);
    }
    let mut worlds: Vec<u64> = hunts.iter().map(|hunt| hunt.seeds_to_kill).collect();
    worlds.sort_unstable();
    let killed = hunts.iter().filter(|hunt| hunt.killed).count();
    let seconds: f64 = hunts.iter().map(|hunt| hunt.seconds).sum();
    text.push_str(&format!(
        "\n\n{killed} of {} caught; the median after {} worlds, the last after {}; {seconds:.1} s of one core in all",
        hunts.len(),
        worlds.get(worlds.len() / 2).copied().unwrap_or(0),
        worlds.last().copied().unwrap_or(0),
    ));
    text
}

fn row(hunt: &Hunt) -> String {
    let caught = match hunt.property {
        Some(property) => format!("`{property}`"),
        None => format!("**nothing meant for it** ({:?})", hunt.strays),
    };
    let small = hunt.shrunk.map_or_else(
        || "–".to_owned(),
        |size| {
            format!(
                "{}, {}, {}",
                counted(size.workers.into(), "worker"),
                counted(size.shards.into(), "shard"),
                counted(size.events, "event")
            )
        },
    );
    format!("\n| `{}` | {} | {caught} | {} | {small} |", hunt.id, hunt.description, hunt.seeds_to_kill)
}

fn rare_row(bug: Bug) -> String {
    let meant: Vec<String> = bug.properties().iter().map(|property| format!("`{property}`")).collect();
    format!("\n| `{}` | {} | {} | rare, so not hunted | – |", bug.id(), bug.about(), meant.join(", "))
}
