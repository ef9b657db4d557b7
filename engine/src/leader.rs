//! Who leads: an order of the workers that everybody computes alike from the same lease table.
//!
//! The leader is chosen as in KCL for Java (`DeterministicShuffleShardSyncLeaderDecider`), so that a mixed fleet
//! agrees: the owners, sorted as Java sorts strings, then shuffled as `Collections.shuffle` does with `new
//! Random(1947)`.

use crate::ids::WorkerId;

const SEED: u64 = 1947;

/// All distinct owners, the leader first.
pub(crate) fn order<'a>(owners: impl IntoIterator<Item = &'a WorkerId>) -> Vec<WorkerId> {
    let mut owners: Vec<&WorkerId> = owners.into_iter().collect();
    // UTF-16 code units: they sort characters beyond U+FFFF before U+E000 to U+FFFF, unlike UTF-8.
    owners.sort_by(|a, b| a.as_str().encode_utf16().cmp(b.as_str().encode_utf16()));
    owners.dedup();
    let mut random = JavaRandom::new(SEED);
    for i in (1..owners.len()).rev() {
        owners.swap(i, random.below(i as u32 + 1) as usize);
    }
    owners.into_iter().cloned().collect()
}

/// Our place in this order: 0 leads. Absent if we own no lease.
pub(crate) fn rank<'a>(owners: impl IntoIterator<Item = &'a WorkerId>, me: &WorkerId) -> Option<u32> {
    order(owners).iter().position(|owner| owner == me).map(|place| place as u32)
}

/// The generator that `java.util.Random` specifies.
struct JavaRandom(u64);

impl JavaRandom {
    const MULTIPLIER: u64 = 0x5_DEEC_E66D;
    const MASK: u64 = (1 << 48) - 1;

    fn new(seed: u64) -> Self {
        Self((seed ^ Self::MULTIPLIER) & Self::MASK)
    }

    /// The next 31 bits (`next(31)`).
    fn next(&mut self) -> u32 {
        self.0 = self.0.wrapping_mul(Self::MULTIPLIER).wrapping_add(0xB) & Self::MASK;
        (self.0 >> 17) as u32
    }

    /// `nextInt(bound)`, for a bound from 1 to 2^31 - 1.
    fn below(&mut self, bound: u32) -> u32 {
        let mut bits = self.next();
        if bound.is_power_of_two() {
            return ((u64::from(bound) * u64::from(bits)) >> 31) as u32;
        }
        loop {
            let value = bits % bound;
            // Java's check for an overflow of its signed integers: the check keeps the values evenly spread.
            if bits - value + (bound - 1) < 1 << 31 {
                return value;
            }
            bits = self.next();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    fn fleet(n: usize) -> Vec<WorkerId> {
        (0..n).map(|n| WorkerId::from(format!("w{n:03}"))).collect()
    }

    /// The shuffles of a JVM.
    #[test]
    fn the_shuffle_is_javas() {
        let vectors: [(usize, &[usize]); 10] = [
            (1, &[0]),
            (2, &[0, 1]),
            (3, &[2, 0, 1]),
            (4, &[3, 0, 1, 2]),
            (5, &[4, 0, 2, 1, 3]),
            (6, &[2, 3, 5, 4, 0, 1]),
            (8, &[2, 3, 0, 6, 4, 7, 1, 5]),
            (10, &[8, 5, 1, 6, 9, 4, 2, 0, 7, 3]),
            (16, &[11, 3, 9, 2, 0, 6, 12, 5, 7, 1]),
            (100, &[95, 33, 83, 68, 3, 24, 72, 87, 10, 77]),
        ];
        for (n, expected) in vectors {
            let workers = fleet(n);
            let shuffled = order(workers.iter().rev());
            let start: Vec<_> = expected.iter().map(|n| workers[*n].clone()).collect();
            assert_eq!(shuffled[..expected.len()], start, "of {n}");
            assert_eq!(shuffled.iter().collect::<BTreeSet<_>>().len(), n);
            for (place, worker) in shuffled.iter().enumerate() {
                assert_eq!(rank(&workers, worker), Some(place as u32));
            }
        }
    }

    #[test]
    fn owners_count_once_and_strangers_not_at_all() {
        let workers = fleet(5);
        assert_eq!(order(workers.iter().chain(&workers)), order(&workers));
        assert_eq!(rank(&workers, &"stranger".into()), None);
        assert_eq!(order([]), []);
    }

    #[test]
    fn names_sort_as_java_sorts_them() {
        // In UTF-8 the first is below the second, in UTF-16 (D83D DE00 against FFFD) above it.
        let names = [WorkerId::from("\u{FFFD}"), WorkerId::from("\u{1F600}")];
        assert!(names[0] < names[1]);
        // The shuffle leaves two in their order.
        assert_eq!(order(&names), [names[1].clone(), names[0].clone()]);
    }

    /// The first values of `new Random(42).nextInt(10)`.
    #[test]
    fn bounded_draws_are_javas() {
        let mut random = JavaRandom::new(42);
        let drawn: Vec<u32> = (0..10).map(|_| random.below(10)).collect();
        assert_eq!(drawn, [0, 3, 8, 4, 0, 5, 5, 8, 9, 3]);
    }
    /// Draws that would favour small values are left out: with these bounds, many draws are left out.
    #[test]
    fn draws_of_wide_bounds_are_javas() {
        let drawn = |bound| {
            let mut random = JavaRandom::new(42);
            [0; 4].map(|_| random.below(bound))
        };
        // A power of two is scaled, never left out.
        assert_eq!(drawn(1 << 30), [781215565, 58696381, 733605624, 51474442]);
        assert_eq!(drawn((1 << 30) + 1), [117392763, 102948884, 662969970, 595021505]);
        // Three times this bound is 2^31 + 1: the last draw of the third round is the first overflow.
        assert_eq!(drawn(715827883), [117392763, 102948884, 662969970, 595021505]);
        assert_eq!(drawn((1 << 31) - 1), [1562431130, 117392763, 1467211248, 102948884]);
    }
}
