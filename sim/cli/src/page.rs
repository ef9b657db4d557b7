//! Writes pages and diagrams of worlds and traces to files.

use crate::exit::Failure;
use leasehold::internals::ReplayReport;
use leasehold_sim::run::WorldReport;
use leasehold_sim::timeline::picture::Timeline;
use leasehold_sim::timeline::trace::TraceTimeline;
use leasehold_sim::timeline::{html, mermaid, world};
use std::path::Path;

/// The timeline of a replayed trace, with the name of its file as the title.
pub(super) fn of_trace(mut timeline: TraceTimeline, report: &ReplayReport, file: &Path) -> Timeline {
    if let Some(divergence) = &report.divergence {
        let input = divergence.input;
        timeline.diverged(format!("from input {input} on, the engine answers otherwise than recorded"));
    }
    let name = file.file_name().unwrap_or(file.as_os_str());
    timeline.finish(name.to_string_lossy().into_owned())
}

/// Writes a timeline as a page.
pub(super) fn write_page(out: &Path, timeline: &Timeline) -> Result<(), Failure> {
    write(out, &html::page(timeline))
}

/// Writes the requested files of a recorded world.
pub(super) fn write_world(
    report: &WorldReport, page: Option<&Path>, diagram: Option<&Path>,
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
