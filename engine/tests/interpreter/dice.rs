//! Choices drawn from bytes. When the bytes run out, every choice is the first option.

use leasehold_engine::ids::OpId;

pub struct Dice<'a> {
    bytes: &'a [u8],
}

impl<'a> Dice<'a> {
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { bytes }
    }

    pub fn byte(&mut self) -> u8 {
        match self.bytes {
            [] => 0,
            [first, rest @ ..] => {
                self.bytes = rest;
                *first
            }
        }
    }

    /// A number below `bound`, which is not zero.
    pub fn below(&mut self, bound: usize) -> usize {
        usize::from(self.byte()) % bound
    }

    /// True once in `n` times; false when the bytes have run out.
    pub fn one_in(&mut self, n: usize) -> bool {
        self.below(n) == n - 1
    }

    pub fn pick<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.below(choices.len())]
    }

    /// A number, small or at some edge.
    pub fn number(&mut self) -> u64 {
        let byte = self.byte();
        match byte {
            0..128 => u64::from(byte % 32),
            128..160 => u64::from(byte) << 16,
            160..192 => u64::MAX - u64::from(byte % 4),
            192..224 => i64::MAX as u64 + u64::from(byte % 4),
            224.. => u64::from(byte) << (byte % 56),
        }
    }

    pub fn op(&mut self) -> OpId {
        OpId { life: 1 + u64::from(self.one_in(8)), n: self.number() }
    }
}
