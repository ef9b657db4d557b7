//! When a lease last moved.

use crate::input::Fetched;
use crate::time::{Mono, Span};

/// When a lease last moved.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Movement {
    /// When records were last processed, or when the shard was last seen without records to process.
    since: Mono,
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

    /// Whether the last answer had arrived at the tip.
    pub(super) fn is_at_tip(&self) -> bool {
        self.behind_ms == 0
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

    /// The standstill so far was wanted, and does not count.
    pub(super) fn count_from(&mut self, now: Mono) {
        self.since = now;
    }

    /// A notice reports the standstill. Returns the standstill's length.
    pub(super) fn told(&mut self, now: Mono) -> Span {
        self.told = now.since(self.since);
        self.told
    }

    /// The length of a standstill that is over, once, if a notice had reported the standstill.
    pub(super) fn take_back(&mut self) -> Option<Span> {
        self.back_after.take()
    }

    /// When a notice of the standstill is due.
    pub(super) fn due(&self, after: Span) -> Mono {
        let next = if self.told == Span::ZERO { after } else { self.told.times(2) };
        self.since + next
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testkit::no_records;

    fn answer(count: u32, behind_ms: u64) -> Fetched {
        Fetched { count, ..no_records(behind_ms) }
    }

    #[test]
    fn a_standstill_is_told_and_again_after_twice_the_time() {
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
    fn an_empty_answer_is_movement_only_at_the_tip_or_nearer_to_it() {
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
        assert!(movement.is_at_tip());
        movement.fetched(&answer(0, 5), 0, Mono(90));
        assert!(!movement.is_at_tip());
    }
}
