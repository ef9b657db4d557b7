//! The part of the hash space not covered by any unfinished lease.

use crate::shard::{HashKey, HashRange};

/// The lowest part of the hash space that none of the ranges covers, if any.
///
/// Right for ranges that overlap in any way, as a parent and its children do. (KCL for Java 3.5 looks only at the end
/// of the range with the last start, and so reports false holes.)
pub(crate) fn first_hole(ranges: impl Iterator<Item = HashRange>) -> Option<HashRange> {
    Gaps::new(ranges).next()
}

/// Every part of the hash space not covered by any range, in order; adjacent parts are one.
pub fn holes(ranges: impl Iterator<Item = HashRange>) -> Vec<HashRange> {
    Gaps::new(ranges).collect()
}

struct Gaps {
    ranges: std::vec::IntoIter<HashRange>,
    /// The lowest key not known to be covered; absent once the highest is.
    next: Option<u128>,
}

impl Gaps {
    fn new(ranges: impl Iterator<Item = HashRange>) -> Self {
        let mut ranges: Vec<_> = ranges.collect();
        ranges.sort_unstable();
        Self { ranges: ranges.into_iter(), next: Some(0) }
    }
}

impl Iterator for Gaps {
    type Item = HashRange;

    fn next(&mut self) -> Option<HashRange> {
        while let Some(next) = self.next {
            let Some(range) = self.ranges.next() else {
                self.next = None;
                return Some(HashRange { start: HashKey(next), end: HashKey::MAX });
            };
            if range.end.0 < next || range.end < range.start {
                continue;
            }
            self.next = range.end.0.checked_add(1);
            if range.start.0 > next {
                return Some(HashRange { start: HashKey(next), end: HashKey(range.start.0 - 1) });
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn range(start: u128, end: u128) -> HashRange {
        HashRange { start: HashKey(start), end: HashKey(end) }
    }

    #[test]
    fn the_whole_space_and_none_of_it() {
        assert_eq!(holes([].into_iter()), [HashRange::ALL]);
        assert_eq!(holes([HashRange::ALL].into_iter()), []);
        assert_eq!(holes([range(0, 0), range(1, u128::MAX)].into_iter()), []);
        assert_eq!(holes([range(1, u128::MAX - 1)].into_iter()), [range(0, 0), range(u128::MAX, u128::MAX)]);
    }

    #[test]
    fn a_parent_that_covers_everything_hides_no_end() {
        let overlapping = [HashRange::ALL, range(5, 9), range(0, 4)];
        assert_eq!(first_hole(overlapping.into_iter()), None);
    }

    #[test]
    fn a_range_turned_round_covers_nothing() {
        assert_eq!(first_hole([range(9, 5), range(u128::MAX, 0)].into_iter()), Some(HashRange::ALL));
    }

    proptest! {
        /// The 64 keys of a small space stand for equal parts of the whole.
        #[test]
        fn agrees_with_looking_at_every_key(pairs in prop::collection::vec((0u128..64, 0u128..64), 0..8)) {
            const STEP: u128 = 1 << 122;
            let ranges: Vec<_> = pairs
                .iter()
                .map(|(a, b)| (*a.min(b), *a.max(b)))
                .map(|(a, b)| range(a * STEP, b * STEP + (STEP - 1)))
                .collect();
            let free: Vec<bool> = (0..64)
                .map(|cell| !ranges.iter().any(|r| r.start.0 <= cell * STEP && cell * STEP <= r.end.0))
                .collect();
            let mut expected = Vec::new();
            let mut cell = 0;
            while cell < 64 {
                let length = free[cell..].iter().take_while(|free| **free).count();
                if length > 0 {
                    let end = (cell + length - 1) as u128;
                    expected.push(range(cell as u128 * STEP, end * STEP + (STEP - 1)));
                }
                cell += length + 1;
            }
            prop_assert_eq!(first_hole(ranges.iter().copied()), expected.first().copied());
            prop_assert_eq!(holes(ranges.into_iter()), expected);
        }
    }
}
