//! Values drawn from a seed: each value is a function of the seed and of the decision's name, so a new draw shifts no
//! other.

use leasehold_engine::internals::draw;

/// The draws of one world.
#[derive(Clone, Copy, Debug)]
pub struct Draws(u64);

impl Draws {
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// 64 bits.
    pub fn bits(self, what: &str, n: u64) -> u64 {
        draw(self.0, what, "chaos", n)
    }

    /// A uniform value of `low..=high`.
    pub fn between(self, what: &str, n: u64, low: u64, high: u64) -> u64 {
        let range = u128::from(high - low) + 1;
        low + ((u128::from(self.bits(what, n)) * range) >> 64) as u64
    }

    /// A value of `low..=high`, every power of two as likely as any other. `low` is at least 1.
    pub fn magnitude(self, what: &str, n: u64, low: u64, high: u64) -> u64 {
        let powers = (high / low).ilog2();
        let power = self.between(what, 2 * n, 0, u64::from(powers));
        let from = low << power;
        self.between(what, 2 * n + 1, from, (2 * from - 1).min(high))
    }

    /// True in `percent` of a hundred cases.
    pub fn percent(self, what: &str, n: u64, percent: u64) -> bool {
        self.between(what, n, 0, 99) < percent
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_stay_within_their_bounds_and_reach_them() {
        let draws = Draws::new(7);
        let all: Vec<u64> = (0..200).map(|n| draws.between("a", n, 3, 6)).collect();
        assert!((3..=6).all(|value| all.contains(&value)));
        assert!(all.iter().all(|value| (3..=6).contains(value)));
        let all: Vec<u64> = (0..2_000).map(|n| draws.magnitude("b", n, 1, 700)).collect();
        assert!(all.iter().all(|value| (1..=700).contains(value)));
        assert!(all.contains(&1) && all.iter().any(|value| *value > 600));
        assert_ne!(draws.bits("a", 0), draws.bits("b", 0));
    }
}
