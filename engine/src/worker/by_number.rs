//! A map by the numbers of operations.

use std::hash::{BuildHasherDefault, Hasher};

/// Spreads numbers, but keeps sixteen consecutive numbers together: commands issued together are answered together, and
/// share cache lines. No code iterates over the map, and order never shows.
#[derive(Clone, Copy, Default)]
pub(super) struct NumberHasher(u64);

impl Hasher for NumberHasher {
    fn finish(&self) -> u64 {
        self.0
    }
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u64(u64::from(*byte));
        }
    }
    fn write_u64(&mut self, value: u64) {
        let spread = (self.0 ^ value >> 4).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(26);
        self.0 = spread << 4 | value & 15;
    }
}

#[expect(
    clippy::disallowed_types,
    reason = "its hasher is fixed, and its entries are sorted where they are iterated over"
)]
pub(super) type ByNumber<T> = std::collections::HashMap<u64, T, BuildHasherDefault<NumberHasher>>;
