//! The reason why a held lease does not move.

use super::application::AppCommand;
use super::held::HeldLease;
use super::stage::{Reading, Stage};
use crate::ids::{LeaseIx, ShardId};
use crate::notice::Stall;
use crate::time::Mono;
use crate::worker::context::Context;
use crate::worker::lease_table::LeaseTable;

impl HeldLease {
    pub(super) fn why_stalled(&self, now: Mono, leases: &LeaseTable) -> Stall {
        let attempt = self.stage.reading().map_or(0, |reading| reading.failure.attempts());
        match (&self.stage, self.app.command()) {
            (Stage::Waiting(_), _) if now < self.own.open_after() => Stall::Settling,
            (Stage::Waiting(_), _) if !self.believes(now) => Stall::Fenced,
            (Stage::Waiting(waiting), _) if !waiting.parents.is_empty() => {
                which_parents(leases, &waiting.parents)
            }
            (Stage::Waiting(waiting), _) if waiting.failures > 0 => {
                Stall::OpenFails { attempts: waiting.failures }
            }
            (Stage::Waiting(_) | Stage::Opening { .. }, _) => Stall::Opening,
            (_, Some(AppCommand::Deliver { .. })) => Stall::Handler { attempt },
            (_, Some(AppCommand::SetAside { poison, .. })) => {
                let why = self.stage.reading().and_then(|reading| reading.failure.why());
                why.unwrap_or(Stall::SettingAside { position: poison.at, failures: 0 })
            }
            (_, Some(AppCommand::Flush(_))) => self.stage.reading().map_or(Stall::Closing, why_flushed),
            (_, Some(AppCommand::Open)) => Stall::Opening,
            (_, Some(AppCommand::Close)) => Stall::Closing,
            (Stage::Running(_), None) if !self.believes(now) => Stall::Fenced,
            (Stage::Running(reading), None) if self.missing => why_missing(reading),
            (Stage::Running(_), None) if self.paused => Stall::Paused,
            (Stage::Running(_), None) if self.share.waits() => Stall::WaitsToRead,
            (Stage::Running(reading), None) => why_not_read(reading),
            (Stage::Ending(ending), None) if !ending.pending_children.is_empty() => {
                Stall::CoParents(ending.unresolved_parents.clone())
            }
            (Stage::Ending(ending), None) if ending.children_left > 0 => {
                Stall::Children { left: ending.children_left }
            }
            (Stage::Draining { .. }, None) if self.stage.reading().is_some_and(keeps) => {
                why_kept(self.stage.reading())
            }
            (Stage::Ending(_) | Stage::Draining { .. } | Stage::Closing(_) | Stage::Closed(_), None) => {
                Stall::Writing
            }
        }
    }
}

/// The reason for which a held lease waits, however short the wait. `None`: the lease waits for new records, or is not
/// held.
pub(in crate::worker) fn waits_for(cx: &Context, leases: &LeaseTable, ix: LeaseIx) -> Option<Stall> {
    let held = leases.get(ix)?.held().filter(|held| !held.is_lost())?;
    let why = held.why_stalled(cx.now(), leases);
    (why != Stall::ReadsEmpty).then_some(why)
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

fn keeps(reading: &Reading) -> bool {
    reading.reader.kept_batches() > 0
}

fn why_flushed(reading: &Reading) -> Stall {
    match reading.awaits_permission() {
        true => Stall::EndUnconfirmed { failures: reading.failure.attempts() },
        false => why_kept(Some(reading)),
    }
}

fn why_kept(reading: Option<&Reading>) -> Stall {
    let kept = reading.map_or(0, |reading| reading.reader.kept_batches());
    Stall::Kept { batches: u32::try_from(kept).unwrap_or(u32::MAX) }
}

fn why_missing(reading: &Reading) -> Stall {
    match reading.is_doubted() {
        true => Stall::Unproven { listings: reading.gone.answers(), against: reading.against.clone() },
        false if reading.denied.times > 0 => Stall::EndDenied { times: reading.denied.times },
        false => Stall::Missing,
    }
}

fn why_not_read(reading: &Reading) -> Stall {
    let reader = &reading.reader;
    if let Some(why) = reading.failure.why() {
        return why;
    }
    if reading.awaits_permission() {
        return why_flushed(reading);
    }
    if keeps(reading) && reading.failure.attempts() == 0 {
        return why_kept(Some(reading));
    }
    if reader.front().is_some() {
        return Stall::HandlerFails { attempts: reading.failure.attempts() };
    }
    match (reader.finished(), reader.failures()) {
        (Some(_), _) => why_missing(reading),
        (None, _) if reading.is_doubted() => why_missing(reading),
        (None, 0) if reading.denied.times > 0 => why_missing(reading),
        (None, 0) if reader.is_end_claimed() => Stall::EndClaimed,
        (None, 0) if reader.doubts() => Stall::Doubted,
        (None, 0) => Stall::ReadsEmpty,
        (None, failures) => Stall::ReadsFail { failures },
    }
}
