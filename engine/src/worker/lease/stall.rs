//! Noticing leases that are held and do not move.
//!
//! A shard that is owned, behind and not moving is a failure easily overlooked: the lease is renewed, and no error is
//! logged twice. So every held lease keeps the time since records were last processed, or since no record was left to
//! process. When that time is long, a notice names the reason, and repeats whenever the time has doubled.

use super::held::{AppCommand, HeldLease};
use super::stage::{Reading, Stage};
use crate::ids::{LeaseIx, ShardId};
use crate::input::Fetched;
use crate::notice::{Notice, Stall};
use crate::time::{Mono, Span};
use crate::worker::context::Context;
use crate::worker::lease_table::LeaseTable;

/// When a lease last moved.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Movement {
    /// When records were last processed, or when the shard was last seen without records to process.
    pub(super) since: Mono,
    /// How long the standstill had lasted at the last notice. 0: no notice was given.
    told: Span,
    /// The lease moved after a notice of its standstill: the length of the standstill.
    back_after: Option<Span>,
    /// How far behind the tip the last answer was, in ms.
    behind_ms: u64,
}

impl Movement {
    pub(super) fn new(now: Mono) -> Self {
        Self { since: now, told: Span::ZERO, back_after: None, behind_ms: u64::MAX }
    }

    pub(super) fn moved(&mut self, now: Mono) {
        if self.told > Span::ZERO {
            self.back_after = Some(now.since(self.since));
            self.told = Span::ZERO;
        }
        self.since = now;
    }

    /// Whether a notice reported a standstill, and the lease has not moved since.
    pub(super) fn is_stalled(&self) -> bool {
        self.told > Span::ZERO
    }

    /// Takes note of the answer of a read, while `waiting` batches wait. Without a waiting batch, coming nearer to the
    /// tip is movement, and so is arriving at the tip.
    pub(super) fn fetched(&mut self, answer: &Fetched, waiting: usize, now: Mono) {
        let nearer = answer.behind_ms == 0 || answer.behind_ms < self.behind_ms;
        self.behind_ms = answer.behind_ms;
        if answer.count == 0 && waiting == 0 && nearer {
            self.moved(now);
        }
    }

    /// When a notice of the standstill is due.
    fn due(&self, after: Span) -> Mono {
        let next = if self.told == Span::ZERO { after } else { self.told.times(2) };
        self.since + next
    }
}

impl HeldLease {
    /// When the lease counts as stalled if nothing moves until then.
    pub(super) fn stall_at(&self, cx: &Context) -> Mono {
        let after = cx.config().stall_after;
        let stops = cx.phase().stopping().is_some();
        if after == Span::ZERO || self.is_lost() || stops || self.rests() {
            return Mono::NEVER;
        }
        self.movement.due(after)
    }

    /// Reports the lease's standstill, or its next movement.
    pub(super) fn stall_step(&mut self, cx: &mut Context, leases: &LeaseTable) {
        if let Some(after) = self.movement.back_after.take() {
            let lease = self.own.lease();
            cx.notify(Notice::Moving { lease, after });
        }
        let now = cx.now();
        if now < self.stall_at(cx) {
            return;
        }
        let idle = now.since(self.movement.since);
        self.movement.told = idle;
        let (lease, why) = (self.own.lease(), self.why_stalled(now, leases));
        cx.notify(Notice::Stalled { lease, idle, why, said: None });
    }

    pub(super) fn why_stalled(&self, now: Mono, leases: &LeaseTable) -> Stall {
        let attempt = self.stage.reading().map_or(0, |reading| reading.failure.attempts());
        match (&self.stage, self.app) {
            (Stage::Waiting(_), _) if now < self.own.open_after() => Stall::Settling,
            (Stage::Waiting(_), _) if !self.believes(now) => Stall::Fenced,
            (Stage::Waiting(waiting), _) if !waiting.parents.is_empty() => {
                which_parents(leases, &waiting.parents)
            }
            (Stage::Waiting(waiting), _) if waiting.failures > 0 => {
                Stall::OpenFails { attempts: waiting.failures }
            }
            (Stage::Waiting(_) | Stage::Opening { .. }, _) => Stall::Opening,
            (_, Some((_, AppCommand::Deliver { .. }))) => Stall::Handler { attempt },
            (_, Some((_, AppCommand::SetAside { poison, .. }))) => {
                let why = self.stage.reading().and_then(|reading| reading.failure.why());
                why.unwrap_or(Stall::SettingAside { position: poison.at, failures: 0 })
            }
            (_, Some((_, AppCommand::Flush(_)))) => self.stage.reading().map_or(Stall::Closing, why_flushed),
            (_, Some((_, AppCommand::Open))) => Stall::Opening,
            (_, Some((_, AppCommand::Close))) => Stall::Closing,
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

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(count: u32, behind_ms: u64) -> Fetched {
        Fetched {
            count,
            bytes: 0,
            first: None,
            last: None,
            behind_ms,
            end: None,
            range_unproven: false,
            unordered: false,
        }
    }

    #[test]
    fn it_is_told_when_nothing_moved_and_again_when_that_time_has_doubled() {
        let mut movement = Movement::new(Mono(100));
        assert_eq!(movement.due(Span(50)), Mono(150));
        assert!(!movement.is_stalled());
        movement.told = Span(50);
        assert_eq!(movement.due(Span(50)), Mono(200));
        assert!(movement.is_stalled());
        movement.told = Span(100);
        assert_eq!(movement.due(Span(50)), Mono(300));
        movement.moved(Mono(250));
        assert_eq!((movement.due(Span(50)), movement.back_after), (Mono(300), Some(Span(150))));
        assert!(!movement.is_stalled());
    }

    #[test]
    fn being_at_the_tip_or_coming_nearer_is_movement_but_an_empty_answer_is_not() {
        let mut movement = Movement::new(Mono(0));
        let mut since = |count, behind, waiting, now| {
            movement.fetched(&answer(count, behind), waiting, Mono(now));
            movement.since.0
        };
        assert_eq!(since(0, 900, 0, 10), 10);
        assert_eq!(since(0, 900, 0, 20), 10);
        assert_eq!(since(0, 800, 0, 30), 30);
        assert_eq!(since(0, 850, 0, 40), 30);
        assert_eq!(since(0, 0, 1, 50), 30, "something waits");
        assert_eq!(since(0, 0, 0, 60), 60);
        assert_eq!(since(0, 0, 0, 70), 70);
        assert_eq!(since(5, 0, 1, 80), 70, "fetched is not processed");
    }
}
