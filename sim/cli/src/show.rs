//! `leasehold show`: what happened, as a page to look at.

use crate::exit::{self, Failure, Verdict};
use crate::replay::replay_file;
use leasehold_sim::run::WorldReport;
use leasehold_sim::show::timeline::Timeline;
use leasehold_sim::show::trace::TraceTimeline;
use leasehold_sim::show::{html, mermaid, world};
use clap::Args;
use leasehold::internals::Divergence;
use std::path::{Path, PathBuf};

/// Show a trace as a timeline: what the worker held and processed, and everything that happened to it.
///
/// The page is one file, without anything from a network. It zooms, filters, and has all events as text.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  leasehold show worker-1.jsonl --html worker-1.html")]
pub(super) struct ShowArgs {
    /// The trace.
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
    Ok(if timeline.violations.is_empty() {
        Verdict::Fine
    } else {
        Verdict::Found
    })
}

/// The timeline of a file, whatever kind of file it is. A trace without an end is shown as far as it goes.
fn timeline_of(file: &Path) -> Result<Timeline, Failure> {
    let mut timeline = TraceTimeline::default();
    let report = replay_file(file, true, |_, input, outputs| timeline.add(input, outputs))?;
    if let Some(divergence) = &report.divergence {
        timeline.diverged(describe_divergence(divergence));
    }
    Ok(timeline.finish(title_of(file)))
}

/// What a page of a file is called.
pub(super) fn title_of(file: &Path) -> String {
    let name = file.file_name().unwrap_or(file.as_os_str());
    name.to_string_lossy().into_owned()
}

pub(super) fn describe_divergence(divergence: &Divergence) -> String {
    format!(
        "from input {} on, the engine answers otherwise than recorded",
        divergence.input
    )
}

pub(super) fn write_page(out: &Path, timeline: &Timeline) -> Result<(), Failure> {
    write(out, &html::page(timeline))
}

/// Writes what is asked for of a world that was recorded.
pub(super) fn write_world(
    report: &WorldReport,
    page: Option<&Path>,
    diagram: Option<&Path>,
) -> Result<(), Failure> {
    if let Some(out) = page {
        write_page(out, &world::timeline(report))?;
        eprintln!("wrote {}", out.display());
    }
    if let Some(out) = diagram {
        let text = mermaid::diagram(&report.found.recording, &report.found.violations)
            .map_err(|error| Failure::unusable(format!("{}: {error}", out.display())))?;
        write(out, &text)?;
        eprintln!("wrote {}", out.display());
    }
    Ok(())
}

fn write(out: &Path, text: &str) -> Result<(), Failure> {
    std::fs::write(out, text).map_err(|error| {
        Failure::unusable(format!(
            "expected to be able to write {}, but {error}; choose another path",
            out.display()
        ))
    })
}
