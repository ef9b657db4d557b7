//! The reason why a held lease does not move.

use super::Processing;
use super::application::AppCommand;
use super::reading;
use super::stage::Stage;
use crate::ids::ShardId;
use crate::notice::Stall;
use crate::time::Mono;
use crate::worker::lease::lane::Lane;
use crate::worker::lease::ownership::Ownership;
use crate::worker::lease_table::LeaseTable;

/// Why a held lease does not move, however short the time.
pub(in crate::worker::lease) fn why(
    processing: &Processing, own: &Ownership, lane: &Lane, now: Mono, leases: &LeaseTable,
) -> Stall {
    let stage = &processing.stage;
    let attempt = stage.reading().map_or(0, |reading| reading.attempts());
    match (stage, processing.app.command()) {
        (Stage::Waiting(_), _) if now < own.open_after() => Stall::Settling,
        (Stage::Waiting(_), _) if !lane.believes(now) => Stall::Fenced,
        (Stage::Waiting(waiting), _) if !waiting.parents().is_empty() => {
            which_parents(leases, waiting.parents())
        }
        (Stage::Waiting(waiting), _) if waiting.failures() > 0 => {
            Stall::OpenFails { attempts: waiting.failures() }
        }
        (Stage::Waiting(_) | Stage::Opening { .. }, _) => Stall::Opening,
        (_, Some(AppCommand::Deliver { .. })) => Stall::Handler { attempt },
        (_, Some(AppCommand::SetAside { poison, .. })) => {
            let why = stage.reading().and_then(reading::why_failing);
            why.unwrap_or(Stall::SettingAside { position: poison.at, failures: 0 })
        }
        (_, Some(AppCommand::Flush(_))) => stage.reading().map_or(Stall::Closing, reading::why_flushed),
        (_, Some(AppCommand::Open)) => Stall::Opening,
        (_, Some(AppCommand::Close)) => Stall::Closing,
        (Stage::Running(_), None) if !lane.believes(now) => Stall::Fenced,
        (Stage::Running(reading), None) if processing.missing => reading::why_missing(reading),
        (Stage::Running(_), None) if processing.paused => Stall::Paused,
        (Stage::Running(_), None) if processing.share.waits() => Stall::WaitsToRead,
        (Stage::Running(reading), None) => reading::why(reading),
        (Stage::Ending(ending), None) => ending.why().unwrap_or(Stall::Writing),
        (Stage::Draining { reading: Some(reading), .. }, None) if reading.keeps_batches() => {
            reading::why_kept(reading)
        }
        (Stage::Draining { .. } | Stage::Closing(_) | Stage::Closed(_), None) => Stall::Writing,
    }
}

/// Unreadable parents count first.
fn which_parents(leases: &LeaseTable, parents: &[ShardId]) -> Stall {
    let broken = |parent: &&ShardId| leases.scans().unreadable().contains(parent.as_str());
    let unreadable: Vec<ShardId> = parents.iter().filter(broken).cloned().collect();
    match unreadable.is_empty() {
        true => Stall::Parents(parents.to_vec()),
        false => Stall::UnreadableParents(unreadable),
    }
}
