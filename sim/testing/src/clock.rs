//! A clock moved by a test.

use leasehold::runtime::{BoxFuture, Runtime, Sleep, Task};
use leasehold::{Mono, Span, Wall};
use std::sync::atomic::{AtomicU64, Ordering};

/// Time stands still until the test moves the clock. The clock serves fences: fences only read the time.
#[derive(Debug, Default)]
pub(crate) struct StillClock(AtomicU64);

impl StillClock {
    pub(crate) fn advance(&self, by: Span) {
        self.0.fetch_add(by.0, Ordering::Relaxed);
    }
}

impl Runtime for StillClock {
    fn now(&self) -> Mono {
        Mono(self.0.load(Ordering::Relaxed))
    }

    fn wall(&self) -> Wall {
        Wall(i64::try_from(self.now().0 / 1_000).unwrap_or(i64::MAX))
    }

    fn sleep_until(&self, _: Mono) -> Sleep {
        Box::pin(std::future::pending())
    }

    fn spawn(&self, _: BoxFuture<'static, ()>) -> Task {
        Task::new(|| {})
    }

    fn entropy(&self) -> u64 {
        0
    }
}
