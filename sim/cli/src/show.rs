//! `leasehold show`: a trace as a page to look at.

use crate::exit::{self, Failure, Verdict};
use crate::page::{describe_divergence, title_of, write_page};
use crate::replay::replay_file;
use clap::Args;
use leasehold_sim::timeline::picture::Timeline;
use leasehold_sim::timeline::trace::TraceTimeline;
use std::path::{Path, PathBuf};

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
    let timeline = timeline_of(&args.file)?;
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

/// The timeline of a file, whatever kind of file it is. A trace without an end is shown as far as it goes.
fn timeline_of(file: &Path) -> Result<Timeline, Failure> {
    let mut timeline = TraceTimeline::default();
    let replayed = replay_file(file, true, |_, input, outputs| timeline.add(input, outputs))?;
    if let Some(divergence) = &replayed.report.divergence {
        timeline.diverged(describe_divergence(divergence));
    }
    Ok(timeline.finish(title_of(file)))
}
