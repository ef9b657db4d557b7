//! Time as data: the engine owns no clock, it is told the time with every input.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::ops::{Add, AddAssign, Sub};

/// A moment of the worker's monotonic clock, in microseconds since an arbitrary start.
///
/// Every deadline is a `Mono`. A `Mono` has no meaning outside its process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Mono(pub u64);

/// A moment of the wall clock, in milliseconds since the Unix epoch. Stored and shown, never used for a deadline. Only
/// its lead over the monotonic clock counts: a growing lead tells of a suspended machine.
///
/// `Display` spells it as RFC 3339, in UTC: `2025-01-31T12:00:00.25Z`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Wall(pub i64);

/// A length of time in microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Span(pub u64);

impl Mono {
    /// A moment that is never reached.
    pub const NEVER: Mono = Mono(u64::MAX);

    /// How long ago `earlier` was; zero for a later moment.
    pub fn since(self, earlier: Mono) -> Span {
        Span(self.0.saturating_sub(earlier.0))
    }

    /// A time as a clock can show it. `NEVER` is the deadline of no event; were `NEVER` now, every deadline would be
    /// due for ever.
    pub(crate) fn reached(self) -> Mono {
        self.min(Mono::NEVER - Span(1))
    }
}

impl Span {
    /// No time at all.
    pub const ZERO: Span = Span(0);

    pub(crate) const fn is_zero(&self) -> bool {
        self.0 == 0
    }

    /// A span of whole seconds.
    pub const fn from_secs(secs: u64) -> Span {
        Span(secs.saturating_mul(1_000_000))
    }

    /// A span of whole milliseconds.
    pub const fn from_millis(millis: u64) -> Span {
        Span(millis.saturating_mul(1_000))
    }

    /// Whole milliseconds, rounded down.
    pub const fn as_millis(self) -> u64 {
        self.0 / 1_000
    }

    /// This span taken `n` times, saturating.
    pub const fn times(self, n: u64) -> Span {
        Span(self.0.saturating_mul(n))
    }

    /// The greatest pause before the `failures`-th retry in a row: twice as long as the pause before, and `most` at most. At least
    /// 2 µs, so that half of the result is a pause.
    pub(crate) fn doubled(self, failures: u32, most: Span) -> Span {
        let full = self.times(1 << failures.saturating_sub(1).min(20));
        Span(full.min(most).0.max(2))
    }

    /// This span divided into `n` parts (`n` of zero counts as one).
    pub const fn per(self, n: u64) -> Span {
        Span(self.0 / if n == 0 { 1 } else { n })
    }

    /// `numerator / denominator` of this span, without overflow.
    pub const fn scaled(self, numerator: u64, denominator: u64) -> Span {
        let wide =
            self.0 as u128 * numerator as u128 / if denominator == 0 { 1 } else { denominator } as u128;
        Span(if wide > u64::MAX as u128 { u64::MAX } else { wide as u64 })
    }
}

impl Add<Span> for Mono {
    type Output = Mono;
    fn add(self, span: Span) -> Mono {
        Mono(self.0.saturating_add(span.0))
    }
}

impl AddAssign<Span> for Mono {
    fn add_assign(&mut self, span: Span) {
        *self = *self + span;
    }
}

impl Sub<Span> for Mono {
    type Output = Mono;
    fn sub(self, span: Span) -> Mono {
        Mono(self.0.saturating_sub(span.0))
    }
}

impl Add for Span {
    type Output = Span;
    fn add(self, other: Span) -> Span {
        Span(self.0.saturating_add(other.0))
    }
}

impl From<std::time::Duration> for Span {
    fn from(duration: std::time::Duration) -> Span {
        Span(u64::try_from(duration.as_micros()).unwrap_or(u64::MAX))
    }
}

impl From<Span> for std::time::Duration {
    fn from(span: Span) -> Self {
        std::time::Duration::from_micros(span.0)
    }
}

impl fmt::Display for Mono {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:03}s", self.0 / 1_000_000, self.0 / 1_000 % 1_000)
    }
}

impl fmt::Display for Wall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        crate::calendar::write_rfc3339(f, self.0)
    }
}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0 < 1_000_000 {
            write!(f, "{}ms", self.0 / 1_000)
        } else {
            write!(f, "{}.{:03}s", self.0 / 1_000_000, self.0 / 1_000 % 1_000)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn nothing_overflows() {
        assert_eq!(Mono::NEVER + Span(1), Mono::NEVER);
        assert_eq!(Mono(5) - Span(7), Mono(0));
        assert_eq!(Mono(5).since(Mono(7)), Span::ZERO);
        assert_eq!(Span(u64::MAX) + Span(1), Span(u64::MAX));
        assert_eq!(Span::from_secs(u64::MAX), Span(u64::MAX));
        assert_eq!(Span(u64::MAX).times(2), Span(u64::MAX));
        assert_eq!(Span(u64::MAX).scaled(3, 2), Span(u64::MAX));
        assert_eq!(Span::from(Duration::MAX), Span(u64::MAX));
    }

    #[test]
    fn parts_are_exact_and_rounded_down() {
        assert_eq!(Span::from_secs(10).per(3), Span(3_333_333));
        assert_eq!(Span(7).per(0), Span(7));
        assert_eq!(Span(u64::MAX).scaled(u64::MAX, u64::MAX), Span(u64::MAX));
        assert_eq!(Span(10).scaled(999_900, 1_000_100), Span(9));
        assert_eq!(Span(10).scaled(1, 0), Span(10));
        assert_eq!(Span::from_millis(1_500).as_millis(), 1_500);
        assert_eq!(Duration::from(Span(1_500)), Duration::from_micros(1_500));
    }

    #[test]
    fn pauses_double_from_the_least_to_the_most() {
        let (least, most) = (Span(100), Span(1_000));
        let pauses: Vec<u64> = (1..=6).map(|failures| least.doubled(failures, most).0).collect();
        assert_eq!(pauses, [100, 200, 400, 800, 1_000, 1_000]);
        assert_eq!(least.doubled(u32::MAX, most), most);
        assert_eq!(Span::ZERO.doubled(1, Span::ZERO), Span(2));
    }

    #[test]
    fn times_of_the_wall_clock_are_shown_as_rfc_3339_spells_them() {
        for (millis, text) in [
            (0, "1970-01-01T00:00:00Z"),
            (1, "1970-01-01T00:00:00.001Z"),
            (10, "1970-01-01T00:00:00.01Z"),
            (100, "1970-01-01T00:00:00.1Z"),
            (1_738_324_800_250, "2025-01-31T12:00:00.25Z"),
            (951_868_799_999, "2000-02-29T23:59:59.999Z"),
            (-1, "1969-12-31T23:59:59.999Z"),
            (-62_135_596_800_000, "0001-01-01T00:00:00Z"),
            (253_402_300_800_000, "10000-01-01T00:00:00Z"),
            (i64::MAX, "292278994-08-17T07:12:55.807Z"),
            (i64::MIN, "-292275055-05-16T16:47:04.192Z"),
        ] {
            assert_eq!(Wall(millis).to_string(), text, "{millis}");
        }
    }

    #[test]
    fn moments_are_shown_in_seconds() {
        assert_eq!(Mono(61_002_999).to_string(), "61.002s");
        assert_eq!(Span(999_999).to_string(), "999ms");
        assert_eq!(Span(1_050_000).to_string(), "1.050s");
    }
}
