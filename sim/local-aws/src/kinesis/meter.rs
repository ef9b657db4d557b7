//! Rate limits: how much of one second's allowance is used.

/// One limit's current second. A second begins with the first use after the one before has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Meter {
    began_ms: i64,
    count: u32,
    bytes: u64,
    blocked_until_ms: i64,
}

const SECOND: i64 = 1000;

impl Meter {
    pub(crate) const fn new() -> Self {
        Meter { began_ms: i64::MIN, count: 0, bytes: 0, blocked_until_ms: i64::MIN }
    }

    fn roll(&mut self, now_ms: i64) {
        if now_ms.saturating_sub(self.began_ms) >= SECOND || now_ms < self.began_ms {
            *self = Meter { began_ms: now_ms, count: 0, bytes: 0, ..*self };
        }
    }

    /// Whether one more use fits into `per_second`; counts the use if it fits.
    pub(crate) fn take(&mut self, now_ms: i64, per_second: u32) -> bool {
        self.roll(now_ms);
        let fits = self.count < per_second;
        self.count += u32::from(fits);
        fits
    }

    /// Whether a further write of `bytes` fits. One write alone always fits into an unused second.
    pub(crate) fn take_write(
        &mut self, now_ms: i64, bytes: u64, records_per_second: u32, bytes_per_second: u64,
    ) -> bool {
        self.roll(now_ms);
        let fits =
            self.count == 0 || (self.count < records_per_second && self.bytes + bytes <= bytes_per_second);
        if fits {
            self.count += 1;
            self.bytes += bytes;
        }
        fits
    }

    /// Whether a read may begin: fewer than `per_second` in this second, and earlier answers are paid for.
    pub(crate) fn take_read(&mut self, now_ms: i64, per_second: u32) -> bool {
        now_ms >= self.blocked_until_ms && self.take(now_ms, per_second)
    }

    /// Until when the bytes of earlier answers are being paid for.
    pub(crate) fn blocked_until_ms(&self) -> i64 {
        self.blocked_until_ms
    }

    /// Charges the bytes of an answer. An answer above one second's allowance costs whole seconds without reads: 10 MiB
    /// at 2 MiB/s block five seconds.
    pub(crate) fn charge_read(&mut self, bytes: u64, bytes_per_second: u64) {
        self.bytes += bytes;
        if self.bytes >= bytes_per_second {
            let seconds = i64::try_from(self.bytes.div_ceil(bytes_per_second)).unwrap_or(i64::MAX);
            self.blocked_until_ms = self.began_ms.saturating_add(seconds.saturating_mul(SECOND));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn five_a_second_and_no_more() {
        let mut meter = Meter::new();
        let allowed: Vec<bool> = (0..7).map(|i| meter.take(i * 10, 5)).collect();
        assert_eq!(allowed, [true, true, true, true, true, false, false]);
        assert!(!meter.take(999, 5));
        assert!(meter.take(1000, 5));
    }

    #[test]
    fn ten_mebibytes_read_block_five_seconds() {
        const MIB: u64 = 1 << 20;
        let mut meter = Meter::new();
        assert!(meter.take_read(0, 5));
        meter.charge_read(10 * MIB, 2 * MIB);
        assert!(!meter.take_read(4_999, 5));
        assert!(meter.take_read(5_000, 5));
        meter.charge_read(MIB, 2 * MIB);
        assert!(meter.take_read(5_001, 5));
    }

    #[test]
    fn a_write_above_the_allowance_needs_an_unused_second() {
        let mut meter = Meter::new();
        assert!(meter.take_write(0, 150, 1000, 100));
        assert!(!meter.take_write(1, 1, 1000, 100));
        assert!(meter.take_write(1000, 60, 1000, 100));
        assert!(!meter.take_write(1001, 41, 1000, 100));
        assert!(meter.take_write(1002, 40, 1000, 100));
    }

    #[test]
    fn a_clock_that_steps_back_begins_a_new_second() {
        let mut meter = Meter::new();
        assert!(meter.take(1_000_000, 1));
        assert!(!meter.take(1_000_001, 1));
        assert!(meter.take(5, 1));
    }
}
