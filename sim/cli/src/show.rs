//! `leasehold show`: a trace as a page to look at.

use crate::exit::{self, Failure, Verdict};
use crate::page::{of_trace, write_page};
use crate::replay::replay_file;
use clap::Args;
use leasehold_sim::timeline::trace::TraceTimeline;
use std::path::PathBuf;

/// Show a trace as a timeline: the worker's leases and progress, and every event around the worker.
///
/// The page is one file and needs no network. It zooms, filters, and has all events as text.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  leasehold show worker-1.jsonl --html worker-1.html")]
pub(super) struct ShowArgs {
    /// The trace: a file, or a folder of `consume --trace-dir`.
    file: PathBuf,
    /// Where the page is written to.
    #[arg(long, value_name = "OUT")]
    html: PathBuf,
}

pub(super) fn run(args: &ShowArgs) -> Result<Verdict, Failure> {
    let mut timeline = TraceTimeline::default();
    // A trace without an end is shown as far as it goes.
    let replayed = replay_file(&args.file, true, |_, input, outputs| timeline.add(input, outputs))?;
    let timeline = of_trace(timeline, &replayed.report, &args.file);
    write_page(&args.html, &timeline)?;
    exit::print(&format!(
        "wrote {}: {} workers, {} shards, {} events",
        args.html.display(),
        timeline.workers.len(),
        timeline.shards.len(),
        timeline.marks.len()
    ))?;
    Ok(Verdict::of(!timeline.violations.is_empty()))
}
