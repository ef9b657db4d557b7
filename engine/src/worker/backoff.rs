//! Pauses after failures.

use super::context::Context;
use crate::time::{Mono, Span};

/// Failures in a row of one thing that is tried again, and the moment before which it is not.
///
/// The pause before a retry doubles with every failure in a row, from `retry_min` to `retry_max`. A keyed draw spreads it over its
/// upper half, so that workers that failed together do not come back together.
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

    /// Waits until this moment, which is not counted as a failure.
    pub(super) fn wait_until(&mut self, at: Mono) {
        self.until = at;
    }

    /// Nothing is tried before this moment.
    pub(super) fn until(&self) -> Mono {
        self.until
    }

    /// Failures in a row.
    pub(super) fn failures(&self) -> u32 {
        self.failures
    }
}

/// The greatest pause, in µs, before the `failures`-th retry in a row. At least 2, so that half of it is a pause.
pub(super) fn doubled(least: Span, most: Span, failures: u32) -> u64 {
    let full = least.times(1 << failures.saturating_sub(1).min(20));
    full.min(most).0.max(2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_from_the_least_to_the_most() {
        let (least, most) = (Span(100), Span(1_000));
        let pauses: Vec<u64> = (1..=6).map(|failures| doubled(least, most, failures)).collect();
        assert_eq!(pauses, [100, 200, 400, 800, 1_000, 1_000]);
        assert_eq!(doubled(least, most, u32::MAX), 1_000);
        assert_eq!(doubled(Span::ZERO, Span::ZERO, 1), 2);
    }
}
