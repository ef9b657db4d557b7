//! Pauses after failures.

use super::context::Context;
use crate::time::{Mono, Span};

/// Failures in a row of one retried action, and the moment before which no retry is made.
///
/// The pause before a retry doubles with every failure in a row, from `retry_min` to `retry_max`. A keyed draw spreads
/// the pause over its upper half, so that workers with failures at the same time retry at different times.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Backoff {
    failures: u32,
    until: Mono,
}

impl Backoff {
    /// Counts a failure. Returns the pause, which begins now.
    pub(super) fn failed(&mut self, cx: &Context, what: &str, subject: &str) -> Span {
        self.failures = self.failures.saturating_add(1);
        let pause = cx.pause(what, subject, self.failures);
        self.until = cx.now() + pause;
        pause
    }

    /// Forgets the failures, and the pause with them.
    pub(super) fn succeeded(&mut self) {
        *self = Self::default();
    }

    /// Forgets the failures, but not the pause.
    pub(super) fn answered(&mut self) {
        self.failures = 0;
    }

    /// Waits until this moment, without counting a failure.
    pub(super) fn wait_until(&mut self, at: Mono) {
        self.until = at;
    }

    /// The earliest moment of the next try.
    pub(super) fn until(&self) -> Mono {
        self.until
    }

    /// Failures in a row.
    pub(super) fn failures(&self) -> u32 {
        self.failures
    }
}
