//! What befalls programs of others that have a part in what ours end, release or hand over.
//!
//! Ours lets go of a lease, and just then a program of others goes or comes, so that the turns move, or the lease is one more to be
//! had: the next owner is told where to begin by the row that ours wrote. And a program of others stands still between its read of a
//! row and what it does with the row.

use super::{Chance, Deed};
use crate::draws::{Draws, Roll};
use crate::span::micros;
use serde::{Deserialize, Serialize};

/// What befalls programs of others beside ours.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PeerFaults {
    /// One of them is told to stop, and started again, soon after ours lets go of a lease; in one of a thousand times.
    pub other_moves: u32,
    /// It is started again after so long at most, in µs.
    #[serde(rename = "gap", with = "micros")]
    pub gap_us: u64,
    /// One of them stands still when the table has shown it a row; in one of a thousand times.
    pub other_dawdles: u32,
    /// For so long at most, in µs.
    #[serde(rename = "dawdle", with = "micros")]
    pub dawdle_us: u64,
    /// What chance does to requests and batches, and outages, pass programs of others by.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub spared: bool,
}

impl PeerFaults {
    /// Draws the family for a world in which programs of others stand beside ours. A lease lasts so long, in µs.
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

    /// What chance does when ours lets go of a lease.
    fn of_ours(&self, deed: Deed, roll: &mut Roll) -> Option<Chance> {
        let happens = roll.happens(self.other_moves);
        let chance = Chance::OtherMoves {
            after_us: roll.below(self.gap_us.max(1)),
            gap_us: roll.magnitude(10_000, self.gap_us.max(10_000)),
            pick: roll.below(1 << 16) as u32,
        };
        (happens && matches!(deed, Deed::End | Deed::Release | Deed::HandOver)).then_some(chance)
    }

    /// What chance does when a program of others reads a row.
    fn of_theirs(&self, deed: Deed, roll: &mut Roll) -> Option<Chance> {
        let happens = roll.happens(self.other_dawdles);
        let for_us = roll.magnitude(1_000, self.dawdle_us.max(1_000));
        (happens && deed == Deed::Read).then_some(Chance::OtherDawdles { for_us })
    }

    /// What chance does to a request of ours, or of a program of others.
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
