//! Connections of one port's own; see the [parent](super).

use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// The numbers in use. Numbers are used again: HTTP clients then keep no more pools than the greatest number of ports
/// at one time.
static TAKEN: Mutex<BTreeSet<u32>> = Mutex::new(BTreeSet::new());

/// A number unique among all living pools.
#[derive(Debug)]
pub(super) struct Pool(u32);

fn taken() -> MutexGuard<'static, BTreeSet<u32>> {
    TAKEN.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Pool {
    pub(super) fn new() -> Self {
        let mut taken = taken();
        let free = (1..=u32::MAX).find(|n| !taken.contains(n)).unwrap_or(u32::MAX);
        taken.insert(free);
        Self(free)
    }

    /// A difference between a timeout of this pool, the timeouts of other pools, and timeouts in round numbers.
    pub(super) fn distinction(&self) -> Duration {
        Duration::from_nanos(self.0.into())
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        taken().remove(&self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_that_live_are_alike() {
        let pools: Vec<Pool> = (0..20).map(|_| Pool::new()).collect();
        let numbers: BTreeSet<Duration> = pools.iter().map(Pool::distinction).collect();
        assert_eq!(numbers.len(), 20);
        assert!(numbers.iter().all(|n| *n > Duration::ZERO && *n < Duration::from_millis(1)));
        let last = pools.last().map(Pool::distinction);
        drop(pools);
        let again: Vec<Pool> = (0..20).map(|_| Pool::new()).collect();
        assert!(
            again.iter().map(Pool::distinction).max() <= last.map(|last| last * 2),
            "numbers are used again"
        );
    }
}
