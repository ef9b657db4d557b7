//! Requests of one kind of a worker. Each request follows the answer to the request before.

use super::super::Time;
use super::super::fact::{Ask, How};
use super::bounds::Bounds;

/// Requests of one kind, one after the other.
#[derive(Clone, Debug, Default)]
pub(super) struct Lane {
    /// The last request, answer, or end of a pause.
    pub(super) last: Time,
    pub(super) open: Vec<u64>,
    /// Whether its requests are due at all.
    pub(super) used: bool,
    /// Requests in a row without success.
    pub(super) failures: u32,
}

impl Lane {
    /// The latest time for the next regular request.
    pub(super) fn due(&self, every: u64, bounds: &Bounds) -> Time {
        match self.used && self.open.is_empty() {
            true => self.last.saturating_add(every.max(bounds.pause(self.failures))),
            false => Time::MAX,
        }
    }

    pub(super) fn asked(&mut self, now: Time, op: u64) {
        self.last = now;
        self.open.push(op);
    }

    pub(super) fn answered(&mut self, now: Time, op: u64, ask: Ask, how: How) {
        self.last = now;
        self.open.retain(|&open| open != op);
        match how {
            // A readable row need not be writable.
            How::Applied if ask == Ask::Read => {}
            How::Applied => self.failures = 0,
            _ => self.failures = self.failures.saturating_add(1),
        }
    }
}
