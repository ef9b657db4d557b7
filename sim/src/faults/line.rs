//! The lines over which records come to workers: their bytes a second, and proxies that hold answers back.
//!
//! A line stays narrow as long as the world lasts: all records must come right over a narrow line.

use super::AggregateFaults;
use crate::draws::Draws;
use serde::{Deserialize, Serialize};

/// The line of each worker. All answers with records on their way to a worker share its line evenly.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct LineFaults {
    /// The bytes of records a second; 0: the length of an answer takes no time.
    pub bytes_per_second: u64,
    /// A proxy passes an answer on when the whole answer has arrived: until then, the worker receives no byte of the
    /// answer.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub held: bool,
}

/// The traffic that the line of a world must be able to carry.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Traffic<'a> {
    /// Records in the stream at the beginning, the records of a put, and the time between puts, in µs.
    pub(crate) before: u64,
    pub(crate) burst: u64,
    pub(crate) every_us: u64,
    /// The size of a record, or of a part of an aggregated one, in bytes.
    pub(crate) bytes: u64,
    pub(crate) aggregates: &'a AggregateFaults,
    /// The length of the time with faults, in µs.
    pub(crate) length_us: u64,
    /// The most answers that share the line of a worker.
    pub(crate) answers: u64,
    /// The shortest wait for an answer, in µs.
    pub(crate) patience_us: u64,
}

/// The time in which all records put during the faults arrive, in seconds.
const BACKLOG_S: u64 = 30;
/// The largest record of a world.
const LARGEST: u64 = 1 << 15;

impl LineFaults {
    /// A third of the worlds has narrow lines.
    pub(crate) fn draw(draws: Draws, traffic: Traffic<'_>) -> Self {
        if draws.below("line", 0, 3) != 0 {
            return Self::default();
        }
        let held = draws.coin("line", 1);
        let least = traffic.least(held);
        Self { bytes_per_second: draws.magnitude("line", 2, least, least.saturating_mul(4)), held }
    }

    pub(crate) fn is_narrow(&self) -> bool {
        self.bytes_per_second > 0
    }

    /// The shortest time for this many bytes, in µs.
    pub(crate) fn takes(&self, bytes: u64) -> u64 {
        match self.bytes_per_second {
            0 => 0,
            rate => (u128::from(bytes) * 1_000_000).div_ceil(u128::from(rate)) as u64,
        }
    }
}

impl Traffic<'_> {
    /// The narrowest line over which all records come right: a line much wider than the producers' rate, on which a
    /// record for each shard arrives in time.
    fn least(&self, held: bool) -> u64 {
        let parts = match self.aggregates.is_on() {
            true => u64::from(self.aggregates.parts.max(1)),
            false => 1,
        };
        let record = (self.bytes * parts).min(LARGEST);
        let burst = record * self.burst;
        let puts = self.length_us / self.every_us.max(1) + 1;
        let total = record * self.before + burst * puts;
        let rate = burst * 1_000_000 / self.every_us.max(1);
        let each = match held {
            true => 4 * record * self.answers * 1_000_000 / self.patience_us.max(1),
            false => 0,
        };
        (8 * rate).max(total / BACKLOG_S).max(each).max(1_000)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_carries_more_than_puts_and_a_record_a_shard_in_time() {
        let aggregates = AggregateFaults::default();
        let traffic = |patience_us| Traffic {
            before: 300,
            burst: 10,
            every_us: 1_000_000,
            bytes: 1_000,
            aggregates: &aggregates,
            length_us: 60_000_000,
            answers: 8,
            patience_us,
        };
        assert_eq!(traffic(1_000_000).least(false), 80_000, "eight times what is put");
        assert_eq!(traffic(100_000).least(true), 320_000, "in a quarter of the time");
        let (mut narrow, mut held) = (0, 0);
        for seed in 0..300 {
            let line = LineFaults::draw(Draws::new(seed), traffic(1_000_000));
            narrow += u32::from(line.is_narrow());
            held += u32::from(line.held);
            assert!(line == LineFaults::default() || line.bytes_per_second >= 80_000, "{line:?}");
        }
        assert!((70..130).contains(&narrow) && (30..80).contains(&held), "{narrow} {held}");
    }

    #[test]
    fn bytes_take_their_time() {
        let line = LineFaults { bytes_per_second: 3, held: false };
        assert_eq!(line.takes(1), 333_334);
        assert_eq!(LineFaults::default().takes(u64::MAX), 0);
    }
}
