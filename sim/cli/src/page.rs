//! Writes pages and diagrams of worlds and traces to files.

use crate::exit::Failure;
use leasehold::internals::Divergence;
use leasehold_sim::run::WorldReport;
use leasehold_sim::timeline::picture::Timeline;
use leasehold_sim::timeline::{html, mermaid, world};
use std::path::Path;

/// The title of a file's page.
pub(super) fn title_of(file: &Path) -> String {
    let name = file.file_name().unwrap_or(file.as_os_str());
    name.to_string_lossy().into_owned()
}

/// The page's sentence about a trace with another answer of the engine.
pub(super) fn describe_divergence(divergence: &Divergence) -> String {
    format!("from input {} on, the engine answers otherwise than recorded", divergence.input)
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
