//! Whether a worker works, lets go, or is done; and the result of a stop.

use crate::ids::LeaseKey;
use crate::notice::{Left, StopSummary};
use crate::output::EndReason;
use crate::time::{Mono, Span};

/// Whether a worker works, lets go, or is done.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Phase {
    Running,
    Stopping(Stopping),
    Stopped,
}

/// A worker lets go of everything.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Stopping {
    reason: EndReason,
    deadline: Mono,
    /// How far it has run out of time: 0, 1 (forced) or 2 (out of patience).
    urgency: u8,
    /// The table is gone: nothing can be given up or saved.
    table_gone: bool,
    /// Leases that were given up.
    released: u32,
    /// Handlers that were stopped before they had finished.
    aborted: u32,
}

impl Stopping {
    pub(super) fn new(reason: EndReason, deadline: Mono, table_gone: bool) -> Self {
        Self { reason, deadline, urgency: 0, table_gone, released: 0, aborted: 0 }
    }

    #[cfg(test)]
    pub(super) fn deadline(&self) -> Mono {
        self.deadline
    }

    /// It is to end sooner. A later moment changes nothing.
    pub(super) fn hasten(&mut self, deadline: Mono) {
        self.deadline = self.deadline.min(deadline);
    }

    pub(super) fn set_table_gone(&mut self) {
        self.table_gone = true;
    }

    /// Takes note that time runs out, as far as `urgency` tells. Returns whether this is news: then all leases are
    /// looked at again.
    ///
    /// A worker that stood still past the moment of this notice gets the time planned after the notice.
    pub(super) fn escalate(&mut self, urgency: u8, now: Mono, timeout: Span) -> bool {
        debug_assert!(urgency <= 2, "a stop runs out of time in two steps");
        if urgency <= self.urgency {
            return false;
        }
        let left = timeout.times(2 - u64::from(self.urgency.min(1)));
        self.deadline = self.deadline.max(now + left);
        self.urgency += 1;
        true
    }

    /// The next moment of a change by time alone.
    pub(super) fn wake_at(&self, now: Mono, timeout: Span) -> Mono {
        let moments = [self.deadline - timeout.times(2), self.deadline - timeout, self.deadline];
        moments.into_iter().find(|at| *at > now).unwrap_or(self.deadline)
    }
}

impl Phase {
    /// Why everything is let go of, if it is.
    pub(super) fn stopping(&self) -> Option<EndReason> {
        match self {
            Phase::Stopping(stopping) => Some(stopping.reason),
            _ => None,
        }
    }

    /// Whether the worker stops because its table is gone.
    pub(super) fn table_gone(&self) -> bool {
        matches!(self, Phase::Stopping(stopping) if stopping.table_gone)
    }

    /// Whether a stop ends within this time.
    pub(super) fn ends_within(&self, span: Span, now: Mono) -> bool {
        matches!(self, Phase::Stopping(stopping) if now >= stopping.deadline - span)
    }

    /// A lease was given up.
    pub(super) fn count_released(&mut self) {
        if let Phase::Stopping(stopping) = self {
            stopping.released += 1;
        }
    }

    /// A handler is stopped before it has finished.
    pub(super) fn count_aborted(&mut self) {
        if let Phase::Stopping(stopping) = self {
            stopping.aborted += 1;
        }
    }

    /// The summary of a stop that left these leases behind.
    pub(super) fn summary<'a>(
        &self, left: impl Iterator<Item = (&'a LeaseKey, Left)>, lease_duration: Span,
    ) -> StopSummary {
        let (released, aborted) = match self {
            Phase::Stopping(stopping) => (stopping.released, stopping.aborted),
            Phase::Running | Phase::Stopped => (0, 0),
        };
        let mut summary = StopSummary { released, aborted, lease_duration, ..StopSummary::default() };
        for (key, why) in left {
            summary.left += 1;
            if summary.named.len() < StopSummary::MOST {
                summary.named.push((key.clone(), why));
            }
        }
        summary
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_worker_that_stood_still_gets_the_time_that_was_to_follow() {
        let timeout = Span::from_secs(2);
        let at = |seconds| Mono(0) + Span::from_secs(seconds);
        let mut stopping = Stopping::new(EndReason::Shutdown, at(30), false);
        assert_eq!(stopping.wake_at(at(0), timeout), at(26));
        assert!(!stopping.escalate(0, at(20), timeout));
        assert!(stopping.escalate(1, at(26), timeout));
        assert_eq!(stopping.deadline(), at(30), "it was in time");
        assert!(!stopping.escalate(1, at(27), timeout));
        assert!(stopping.escalate(2, at(50), timeout));
        assert_eq!(stopping.deadline(), at(52));
    }

    #[test]
    fn a_short_stop_still_has_the_time_of_its_last_writes() {
        let timeout = Span::from_secs(2);
        let at = |seconds| Mono(0) + Span::from_secs(seconds);
        let mut stopping = Stopping::new(EndReason::Shutdown, at(30), false);
        stopping.hasten(at(40));
        assert_eq!(stopping.deadline(), at(30), "later is no news");
        stopping.hasten(at(10));
        assert!(stopping.escalate(2, at(10), timeout));
        assert_eq!(stopping.deadline(), at(14));
    }

    #[test]
    fn it_is_counted_only_while_stopping() {
        let mut phase = Phase::Running;
        phase.count_released();
        assert_eq!(phase.summary(std::iter::empty(), Span(1)).released, 0);
        phase = Phase::Stopping(Stopping::new(EndReason::Shutdown, Mono(9), false));
        phase.count_released();
        phase.count_aborted();
        let summary = phase.summary(std::iter::empty(), Span(1));
        assert_eq!((summary.released, summary.aborted, summary.left), (1, 1, 0));
    }
}
