//! Faults of foreign programs (workers of other libraries) that take part when our workers end, release or hand over a
//! lease.
//!
//! A worker lets go of a lease, and just then a foreign program stops or starts. The turns then move, or one more lease
//! becomes free: the row written by our worker tells the next owner where to begin. And a foreign program stands still
//! between its read of a row and its use of the row.

use super::{Chance, Deed};
use crate::draws::{Draws, Roll};
use crate::span::micros;
use serde::{Deserialize, Serialize};

/// The faults of foreign programs beside our workers.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PeerFaults {
    /// A foreign program stops and starts again, soon after a worker of ours lets go of a lease; in one of a thousand
    /// times.
    pub other_moves: u32,
    /// The longest time until the program starts again, in µs.
    #[serde(rename = "gap", with = "micros")]
    pub gap_us: u64,
    /// A foreign program stands still after its read of a row; in one of a thousand times.
    pub other_dawdles: u32,
    /// The longest standstill, in µs.
    #[serde(rename = "dawdle", with = "micros")]
    pub dawdle_us: u64,
    /// Chance faults of requests and batches, and outages, do not hit foreign programs. Faults of subscriptions do.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub spared: bool,
}

impl PeerFaults {
    /// Draws the family for a world with foreign programs beside our workers. `lease_us`: the length of a lease, in µs.
    pub(crate) fn draw(draws: Draws, lease_us: u64) -> Self {
        let on = |part: u64| draws.coin("peers", part);
        Self {
            other_moves: if on(0) { draws.magnitude("peers", 1, 50, 1_000) as u32 } else { 0 },
            gap_us: draws.magnitude("peers", 2, 10_000, lease_us.max(10_000)),
            other_dawdles: if on(3) { draws.magnitude("peers", 4, 1, 50) as u32 } else { 0 },
            dawdle_us: draws.magnitude("peers", 5, 10_000, (lease_us / 10).max(10_000)),
            spared: true,
        }
    }

    /// The fault drawn when a worker of ours lets go of a lease.
    fn of_ours(&self, deed: Deed, roll: &mut Roll) -> Option<Chance> {
        let happens = roll.happens(self.other_moves);
        let chance = Chance::OtherMoves {
            after_us: roll.below(self.gap_us.max(1)),
            gap_us: roll.magnitude(10_000, self.gap_us.max(10_000)),
            pick: roll.below(1 << 16) as u32,
        };
        (happens && matches!(deed, Deed::End | Deed::Release | Deed::HandOver)).then_some(chance)
    }

    /// The fault drawn when a foreign program reads a row.
    fn of_theirs(&self, deed: Deed, roll: &mut Roll) -> Option<Chance> {
        let happens = roll.happens(self.other_dawdles);
        let for_us = roll.magnitude(1_000, self.dawdle_us.max(1_000));
        (happens && deed == Deed::Read).then_some(Chance::OtherDawdles { for_us })
    }

    /// The fault drawn for a request of our worker, or of a foreign program.
    pub(crate) fn chance(&self, deed: Deed, ours: bool, roll: &mut Roll) -> Option<Chance> {
        match ours {
            true => self.of_ours(deed, roll),
            false => self.of_theirs(deed, roll),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ours_and_theirs_meet_where_a_lease_is_let_go_of() {
        let faults = PeerFaults {
            other_moves: 1_000,
            gap_us: 20_000,
            other_dawdles: 1_000,
            dawdle_us: 20_000,
            spared: true,
        };
        let chance = |deed, ours| faults.chance(deed, ours, &mut Draws::new(7).roll("peers", 1));
        for deed in [Deed::End, Deed::Release, Deed::HandOver] {
            assert!(matches!(chance(deed, true), Some(Chance::OtherMoves { gap_us: 10_000..=20_000, .. })));
            assert_eq!(chance(deed, false), None);
        }
        assert!(matches!(chance(Deed::Read, false), Some(Chance::OtherDawdles { for_us: 1_000..=20_000 })));
        assert_eq!((chance(Deed::Read, true), chance(Deed::Renew, true)), (None, None));
    }

    #[test]
    fn each_part_is_on_in_about_half_of_the_mixed_worlds() {
        let drawn: Vec<_> = (0..400).map(|seed| PeerFaults::draw(Draws::new(seed), 5_000_000)).collect();
        for of in [|faults: &PeerFaults| faults.other_moves, |faults: &PeerFaults| faults.other_dawdles] {
            let on = drawn.iter().filter(|faults| of(faults) > 0).count();
            assert!((150..250).contains(&on), "{on} of 400");
        }
    }
}
