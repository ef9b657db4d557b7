//! Randomness without a generator: a draw is a pure function of the seed and of the draw's subject.
//!
//! So a new draw shifts no other draw, and a replay needs no state but the seed.

/// A uniform 64-bit value for the `n`-th draw of `purpose` about `subject`.
pub fn draw(seed: u64, purpose: &str, subject: &str, n: u64) -> u64 {
    let mut hash = mix(seed ^ 0x9e37_79b9_7f4a_7c15);
    for text in [purpose, subject] {
        for byte in text.bytes() {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
        hash = mix(hash ^ 0xff);
    }
    mix(hash ^ n)
}

/// A draw in `0..bound` (0 if `bound` is 0). The bias of at most `bound / 2^64` does not matter here.
pub fn draw_below(seed: u64, purpose: &str, subject: &str, n: u64, bound: u64) -> u64 {
    ((u128::from(draw(seed, purpose, subject, n)) * u128::from(bound)) >> 64) as u64
}

/// The finaliser of SplitMix64 (Steele, Lea, Flood 2014): a bijection that spreads every bit.
fn mix(mut value: u64) -> u64 {
    value = (value ^ value >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    value = (value ^ value >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ value >> 31
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn draws_differ_by_every_part_of_their_key_and_repeat() {
        let base = draw(1, "take", "shard", 0);
        assert_eq!(base, draw(1, "take", "shard", 0));
        for other in [
            draw(2, "take", "shard", 0),
            draw(1, "steal", "shard", 0),
            draw(1, "take", "shardb", 0),
            draw(1, "takes", "hard", 0),
            draw(1, "take", "shard", 1),
        ] {
            assert_ne!(base, other);
        }
    }

    #[test]
    fn bounded_draws_cover_their_range_evenly() {
        let mut seen = [0u32; 10];
        for n in 0..10_000 {
            seen[draw_below(7, "p", "s", n, 10) as usize] += 1;
        }
        assert!(seen.iter().all(|count| (850..1150).contains(count)), "{seen:?}");
        assert_eq!(draw_below(7, "p", "s", 0, 0), 0);
    }
}
