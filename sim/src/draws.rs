//! Drawing a world. Each value is a pure function of the seed and of its purpose.

use leasehold_engine::internals::draw;

/// Draws of one world, keyed by purpose.
#[derive(Clone, Copy, Debug)]
pub struct Draws {
    seed: u64,
}

impl Draws {
    /// The draws of a seed.
    pub fn new(seed: u64) -> Self {
        Self { seed }
    }

    /// A uniform value below `bound`.
    pub fn below(self, purpose: &str, n: u64, bound: u64) -> u64 {
        self.roll(purpose, n).below(bound)
    }

    /// Heads or tails.
    pub fn coin(self, purpose: &str, n: u64) -> bool {
        self.below(purpose, n, 2) == 0
    }

    /// A uniform value of `low..=high`.
    pub fn between(self, purpose: &str, n: u64, low: u64, high: u64) -> u64 {
        self.roll(purpose, n).between(low, high)
    }

    /// A value of `low..=high`, every power of two as likely as any other.
    pub fn magnitude(self, purpose: &str, n: u64, low: u64, high: u64) -> u64 {
        self.roll(purpose, n).magnitude(low, high)
    }

    /// A short sequence of draws for one decision.
    pub fn roll(self, purpose: &str, n: u64) -> Roll {
        Roll(draw(self.seed, purpose, "", n))
    }
}

/// Several draws for one decision. The roll ends with the decision and shifts no later draw.
#[derive(Clone, Copy, Debug)]
pub struct Roll(u64);

impl Roll {
    /// The next 64 bits (SplitMix64).
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut value = self.0;
        value = (value ^ value >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        value = (value ^ value >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        value ^ value >> 31
    }

    /// A uniform value below `bound` (0 if `bound` is 0).
    pub fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.bits()) * u128::from(bound)) >> 64) as u64
    }

    /// A uniform value of `low..=high`.
    pub fn between(&mut self, low: u64, high: u64) -> u64 {
        low + self.below(high.saturating_sub(low).saturating_add(1))
    }

    /// Whether an event of this probability happens.
    pub fn happens(&mut self, per_mille: u32) -> bool {
        // Probability 0 draws, too: switching a fault off shifts no later draw.
        self.below(1000) < u64::from(per_mille)
    }

    /// A value of `low..=high`, every power of two as likely as any other.
    pub fn magnitude(&mut self, low: u64, high: u64) -> u64 {
        let low = low.max(1);
        let high = high.max(low);
        let power = self.between(u64::from(low.ilog2()), u64::from(high.ilog2()));
        let from = (1u64 << power).max(low);
        let to = (1u64 << power).saturating_mul(2).saturating_sub(1).min(high);
        self.between(from, to)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn magnitudes_stay_in_range_and_favour_no_power() {
        let draws = Draws::new(3);
        let mut small = 0;
        for n in 0..4_000 {
            let value = draws.magnitude("m", n, 1, 1_023);
            assert!((1..=1_023).contains(&value));
            small += u32::from(value < 32);
        }
        assert!((1_800..2_200).contains(&small), "{small} of 4000 below 2^5 of 2^10");
        assert_eq!(draws.magnitude("m", 0, 7, 7), 7);
        assert_eq!(draws.magnitude("m", 0, 0, 0), 1);
    }

    #[test]
    fn a_fault_that_never_happens_uses_its_draw_all_the_same() {
        let (mut on, mut off) = (Roll(9), Roll(9));
        let _ = (on.happens(1_000), off.happens(0));
        assert_eq!(on.bits(), off.bits());
    }
}
