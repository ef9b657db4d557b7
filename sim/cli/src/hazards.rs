//! `leasehold sim --hazards`: hazards of other libraries, and the behaviour of Leasehold's workers in the same worlds.

use crate::exit::{self, Failure, Verdict};
use leasehold_sim::hazards::{HAZARDS, Shown, table};

/// Runs every hazard and prints the table.
pub(super) fn run(as_json: bool) -> Result<Verdict, Failure> {
    let shown: Result<Vec<Shown>, String> = HAZARDS.iter().map(|hazard| hazard.show()).collect();
    let shown = shown.map_err(Failure::under_way)?;
    exit::show(as_json, &shown, || table(&shown))?;
    let wrong: Vec<_> = shown.iter().filter(|shown| shown.wrong.is_some()).collect();
    for hazard in &wrong {
        eprintln!("{}: {}", hazard.id, hazard.wrong.as_deref().unwrap_or_default());
    }
    Ok(Verdict::of(!wrong.is_empty()))
}
