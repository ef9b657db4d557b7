//! The election of the creator of leases in version 2: the first of all owners after a shuffle that every worker
//! repeats.

/// The leader is elected among the owners of leases; without owners, every worker leads.
pub(super) fn leads(owners: impl Iterator<Item = String>, me: &str) -> bool {
    let mut owners: Vec<String> = owners.collect();
    owners.sort();
    owners.dedup();
    let leader = shuffle(owners).into_iter().next();
    leader.is_none_or(|leader| leader == me)
}

/// Like `java.util.Collections.shuffle` with `new java.util.Random(1947)`.
fn shuffle(mut names: Vec<String>) -> Vec<String> {
    let mut random = Random::new(1947);
    for n in (2..=names.len()).rev() {
        names.swap(n - 1, random.below(n as u32) as usize);
    }
    names
}

/// `java.util.Random`.
struct Random(u64);

impl Random {
    const FACTOR: u64 = 0x5_DEEC_E66D;
    const MASK: u64 = (1 << 48) - 1;

    fn new(seed: u64) -> Self {
        Self((seed ^ Self::FACTOR) & Self::MASK)
    }

    fn bits31(&mut self) -> u32 {
        self.0 = self.0.wrapping_mul(Self::FACTOR).wrapping_add(0xB) & Self::MASK;
        (self.0 >> 17) as u32
    }

    fn below(&mut self, bound: u32) -> u32 {
        if bound.is_power_of_two() {
            return ((u64::from(bound) * u64::from(self.bits31())) >> 31) as u32;
        }
        loop {
            let bits = self.bits31();
            let drawn = bits % bound;
            // Beyond the last whole multiple of the bound, small numbers would come up too often.
            if bits - drawn + (bound - 1) <= i32::MAX as u32 {
                return drawn;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(count: usize) -> Vec<String> {
        (0..count).map(|n| format!("w{n:03}")).collect()
    }

    /// The results of a JVM.
    #[test]
    fn names_are_shuffled_as_java_does_it() {
        for (count, expected) in [
            (3, "w002 w000 w001"),
            (5, "w004 w000 w002 w001 w003"),
            (8, "w002 w003 w000 w006 w004 w007 w001 w005"),
            (10, "w008 w005 w001 w006 w009 w004 w002 w000 w007 w003"),
        ] {
            assert_eq!(shuffle(names(count)).join(" "), expected);
        }
        assert_eq!(shuffle(names(100))[..2], ["w095", "w033"]);
    }

    #[test]
    fn one_of_the_owners_leads_or_everybody() {
        let owners = || names(3).into_iter().chain(names(2));
        assert!(leads(owners(), "w002") && !leads(owners(), "w000"));
        assert!(leads(std::iter::empty(), "w007"));
    }
}
