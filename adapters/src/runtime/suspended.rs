//! For how long the machine was suspended, as far as the system tells.

use leasehold_engine::time::Span;
use std::sync::atomic::{AtomicU64, Ordering};

/// The suspended time of the machine since the creation of this value.
#[derive(Debug)]
pub(super) struct Suspended {
    /// What the system said then, in µs.
    before: u64,
    /// The most that it said since.
    most: AtomicU64,
}

impl Default for Suspended {
    fn default() -> Self {
        let before = total();
        Self { before, most: AtomicU64::new(before) }
    }
}

impl Suspended {
    /// It never shrinks.
    pub(super) fn so_far(&self) -> Span {
        self.reached(total())
    }

    fn reached(&self, now: u64) -> Span {
        let most = self.most.fetch_max(now, Ordering::Relaxed).max(now);
        Span(most.saturating_sub(self.before))
    }
}

/// The suspended time of the machine since its start, in µs. Linux stops `CLOCK_MONOTONIC` in a suspension, and
/// `CLOCK_BOOTTIME` goes on. `CLOCK_BOOTTIME` is read first: the difference is never too great.
#[cfg(any(target_os = "linux", target_os = "android"))]
fn total() -> u64 {
    use rustix::time::{ClockId, clock_gettime};
    let awake_and_not = micros(clock_gettime(ClockId::Boottime));
    let awake = micros(clock_gettime(ClockId::Monotonic));
    awake_and_not.saturating_sub(awake)
}

#[cfg(any(target_os = "linux", target_os = "android"))]
fn micros(time: rustix::time::Timespec) -> u64 {
    let (seconds, nanos) =
        (u64::try_from(time.tv_sec).unwrap_or(0), u64::try_from(time.tv_nsec).unwrap_or(0));
    seconds.saturating_mul(1_000_000).saturating_add(nanos / 1_000)
}

/// Nothing that this program may call tells.
#[cfg(not(any(target_os = "linux", target_os = "android")))]
fn total() -> u64 {
    0
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    /// The first number of `/proc/uptime` is `CLOCK_BOOTTIME`, in hundredths of a second.
    fn uptime_us() -> u64 {
        let text = std::fs::read_to_string("/proc/uptime").unwrap();
        let seconds: f64 = text.split(' ').next().unwrap().parse().unwrap();
        (seconds * 1e6) as u64
    }

    #[test]
    fn the_clock_that_counts_suspensions_is_read() {
        use rustix::time::{ClockId, clock_gettime};
        let before = uptime_us();
        let boot = micros(clock_gettime(ClockId::Boottime));
        let together = micros(clock_gettime(ClockId::Monotonic)) + total();
        let after = uptime_us() + 10_000;
        assert!((before..=after).contains(&boot), "{before} <= {boot} <= {after}: the clock of /proc/uptime");
        // In a container with a time namespace both clocks have offsets, and the difference of the two is what counts.
        assert!(together + 1_000_000 > boot && together <= boot + 1_000_000, "{together} is {boot}");
    }

    #[test]
    fn it_begins_with_nothing_and_never_shrinks() {
        let suspended = Suspended::default();
        assert!(suspended.so_far() < Span::from_secs(1), "nothing has suspended this machine");
        let at = |more| suspended.reached(suspended.before + more);
        let told = [0, 5_000_000, 4_999_990, 5_000_010, 0].map(|more| at(more).0);
        let floor = |told: u64, more| told >= more && told < more + 1_000_000;
        assert!(told.is_sorted() && floor(told[1], 5_000_000), "{told:?}");
        assert!(floor(told[4], 5_000_010), "{told:?}");
    }
}
