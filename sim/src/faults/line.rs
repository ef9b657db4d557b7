//! The lines over which records come to workers: how many bytes a second, and whether a proxy holds answers back.
//!
//! A line is narrow for as long as the world lasts: all must come right over it.

use super::AggregateFaults;
use crate::draws::Draws;
use serde::{Deserialize, Serialize};

/// The line of each worker. All answers with records that are on their way to a worker share its line evenly.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct LineFaults {
    /// So many bytes of records come in a second; 0: the length of an answer takes no time.
    pub bytes_per_second: u64,
    /// A proxy passes an answer on when the whole answer has come: until then, the worker receives no byte of the answer.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub held: bool,
}

/// What the line of a world must be able to carry.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Traffic<'a> {
    /// Records there at the beginning, and how many are put at a time, so often, in µs.
    pub(crate) before: u64,
    pub(crate) burst: u64,
    pub(crate) every_us: u64,
    /// The size of a record, or of a part of an aggregated one, in bytes.
    pub(crate) bytes: u64,
    pub(crate) aggregates: &'a AggregateFaults,
    /// For how long there are faults, in µs.
    pub(crate) length_us: u64,
    /// No more answers than this share the line of a worker.
    pub(crate) answers: u64,
    /// How long an answer is waited for at least, in µs.
    pub(crate) patience_us: u64,
}

/// All that was put while there were faults comes within so many seconds.
const BACKLOG_S: u64 = 30;
/// The largest record of a world.
const LARGEST: u64 = 1 << 15;

impl LineFaults {
    /// In a third of the worlds, the line is narrow.
    pub(crate) fn draw(draws: Draws, traffic: Traffic<'_>) -> Self {
        if draws.below("line", 0, 3) != 0 {
            return Self::default();
        }
        let held = draws.coin("line", 1);
        let least = traffic.least(held);
        Self { bytes_per_second: draws.magnitude("line", 2, least, least.saturating_mul(4)), held }
    }

    pub(crate) fn is_none(&self) -> bool {
        *self == Self::default()
    }

    pub(crate) fn is_narrow(&self) -> bool {
        self.bytes_per_second > 0
    }

    /// How long so many bytes take at least, in µs.
    pub(crate) fn takes(&self, bytes: u64) -> u64 {
        match self.bytes_per_second {
            0 => 0,
            rate => (u128::from(bytes) * 1_000_000).div_ceil(u128::from(rate)) as u64,
        }
    }
}

impl Traffic<'_> {
    /// The narrowest line over which all comes right: it carries much more than is put, and a record for each shard in time.
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
    fn a_line_carries_more_than_is_put_and_a_record_for_each_shard_in_time() {
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
            assert!(line.is_none() || line.bytes_per_second >= 80_000, "{line:?}");
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
