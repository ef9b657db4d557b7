//! Noticing leases that are held and do not move.
//!
//! A shard that is owned, behind and not moving is the failure that nobody sees: the lease is renewed, no error is logged
//! twice. So the time since anything was processed, or there was nothing to process, is kept for every held lease, and what
//! the lease waits for is said when that time is long, and again whenever it has doubled.

use super::Core;
use super::stage::Stage;
use super::tenure::{AppFlight, Tenure};
use crate::ids::ShardId;
use crate::input::Fetched;
use crate::mutant::Mutant;
use crate::notice::{Notice, Stall};
use crate::time::{Mono, Span};

/// When a lease last moved.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Movement {
    /// Something was processed, or it was seen that there was nothing to process.
    pub(crate) since: Mono,
    /// How long that was ago when it was last told; 0: it was not.
    told: Span,
    /// It moved after it was told that it did not: for so long.
    back_after: Option<Span>,
    /// How far behind the tip the last answer was, in ms.
    behind_ms: u64,
}

impl Movement {
    pub(crate) fn new(now: Mono) -> Self {
        Self {
            since: now,
            told: Span::ZERO,
            back_after: None,
            behind_ms: u64::MAX,
        }
    }

    pub(crate) fn moved(&mut self, now: Mono) {
        if self.told > Span::ZERO {
            self.back_after = Some(now.since(self.since));
            self.told = Span::ZERO;
        }
        self.since = now;
    }

    /// Whether it was told that it does not move, and it has not moved since.
    pub(crate) fn is_stalled(&self) -> bool {
        self.told > Span::ZERO
    }

    /// A read was answered, and so many batches wait. Without any, coming nearer to the tip is movement, and so is being
    /// there.
    pub(crate) fn fetched(&mut self, answer: &Fetched, waiting: usize, now: Mono) {
        let nearer = answer.behind_ms == 0 || answer.behind_ms < self.behind_ms;
        self.behind_ms = answer.behind_ms;
        if answer.count == 0 && waiting == 0 && nearer {
            self.moved(now);
        }
    }

    /// When it is to be told that nothing moves.
    fn due(&self, after: Span) -> Mono {
        let next = if self.told == Span::ZERO {
            after
        } else {
            self.told.times(2)
        };
        self.since + next
    }
}

impl Core {
    /// When a lease counts as stalled if nothing moves until then.
    pub(crate) fn stall_at(&self, tenure: &Tenure) -> Mono {
        let after = self.ctx.config.stall_after;
        if after == Span::ZERO || tenure.lost || self.stopping().is_some() {
            return Mono::NEVER;
        }
        tenure.movement.due(after)
    }

    /// Says that a lease does not move, or that it does again.
    pub(crate) fn stall_step(&mut self, ix: u32, tenure: &mut Tenure) {
        if let Some(after) = tenure.movement.back_after.take() {
            let lease = self.key(ix);
            self.ctx.tell(Notice::Moving { lease, after });
        }
        let now = self.ctx.now;
        if now < self.stall_at(tenure) {
            return;
        }
        let idle = now.since(tenure.movement.since);
        tenure.movement.told = idle;
        if self.ctx.planted.is(Mutant::StallUnnoticed) {
            return;
        }
        let (lease, why) = (self.key(ix), self.why_stalled(tenure));
        self.ctx.tell(Notice::Stalled { lease, idle, why });
    }

    /// Those that nobody can read to their end count first.
    fn which_parents(&self, parents: &[ShardId]) -> Stall {
        let broken = |parent: &&ShardId| self.scan.broken.contains(parent.as_str());
        let unreadable: Vec<ShardId> = parents.iter().filter(broken).cloned().collect();
        match unreadable.is_empty() {
            true => Stall::Parents(parents.to_vec()),
            false => Stall::UnreadableParents(unreadable),
        }
    }

    fn why_stalled(&self, tenure: &Tenure) -> Stall {
        let now = self.ctx.now;
        let attempt = tenure.attempts;
        match (tenure.stage, tenure.app) {
            (Stage::Waiting, _) if now < tenure.open_after => Stall::Settling,
            (Stage::Waiting, _) if !tenure.believes(now) => Stall::Fenced,
            (Stage::Waiting, _) if !tenure.parents.is_empty() => self.which_parents(&tenure.parents),
            (Stage::Waiting, _) if tenure.open_failures > 0 => Stall::OpenFails {
                attempts: tenure.open_failures,
            },
            (Stage::Waiting | Stage::Opening, _) => Stall::Opening,
            (_, Some((_, AppFlight::Deliver { .. }))) => Stall::Handler { attempt },
            (_, Some((_, AppFlight::Open))) => Stall::Opening,
            (_, Some((_, AppFlight::Close))) => Stall::Closing,
            (Stage::Running, None) if !tenure.believes(now) => Stall::Fenced,
            (Stage::Running, None) if tenure.missing => Stall::Missing,
            (Stage::Running, None) => {
                let reader = tenure.reader.as_ref();
                match reader.map_or(0, |reader| reader.failures()) {
                    _ if reader.is_some_and(|reader| reader.front().is_some()) => {
                        Stall::HandlerFails { attempts: attempt }
                    }
                    _ if reader.is_some_and(|reader| reader.finished().is_some()) => Stall::Missing,
                    0 => Stall::ReadsEmpty,
                    failures => Stall::ReadsFail { failures },
                }
            }
            (Stage::Ending, None) if !tenure.heirs.is_empty() => Stall::CoParents(tenure.co_parents.clone()),
            (Stage::Ending, None) if tenure.children_left > 0 => Stall::Children {
                left: tenure.children_left,
            },
            (Stage::Ending | Stage::Draining(_) | Stage::Closing(_) | Stage::Closed(_), None) => {
                Stall::Writing
            }
        }
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
        assert_eq!(
            (movement.due(Span(50)), movement.back_after),
            (Mono(300), Some(Span(150)))
        );
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
