//! Where one is in a shard: sequence numbers, positions and checkpoints. All are `Copy`.

use serde::de::{self, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;
use std::str::FromStr;

/// A Kinesis sequence number: an unsigned decimal of up to 186 bits, kept in 192.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SequenceNumber([u64; 3]);

/// Why a text is no sequence number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadSequenceNumber {
    found: String,
}

impl fmt::Display for BadSequenceNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "expected a sequence number (1 to 58 decimal digits, below 2^192), found {:?}", self.found)
    }
}

impl std::error::Error for BadSequenceNumber {}

impl SequenceNumber {
    /// From big-endian 64-bit words.
    pub const fn from_words(words: [u64; 3]) -> Self {
        Self(words)
    }

    /// The big-endian 64-bit words.
    pub const fn words(self) -> [u64; 3] {
        self.0
    }
}

impl SequenceNumber {
    /// The number of the shard of this sequence number, if its digits are laid out as in AWS: a version in the lowest
    /// four bits, and the shard above it, whose lowest bits stand once more near the top.
    pub(crate) fn shard_in_digits(self) -> Option<u32> {
        const VERSION: u64 = 2;
        const MARKER: u64 = 2;
        let [high, _, low] = self.0;
        let shard = (low >> 4) as u32;
        let sound =
            low & 0xf == VERSION && high >> 56 == MARKER && high >> 16 & 0xf == u64::from(shard & 0xf);
        sound.then_some(shard)
    }
}

impl From<u64> for SequenceNumber {
    fn from(value: u64) -> Self {
        Self([0, 0, value])
    }
}

impl FromStr for SequenceNumber {
    type Err = BadSequenceNumber;

    fn from_str(text: &str) -> Result<Self, BadSequenceNumber> {
        let bad = || BadSequenceNumber { found: text.chars().take(80).collect() };
        if text.is_empty() || text.len() > 58 || !text.bytes().all(|b| b.is_ascii_digit()) {
            return Err(bad());
        }
        let mut words = [0u64; 3];
        // Nineteen digits at a time fit a word.
        for chunk in text.as_bytes().chunks(19) {
            let mut value = 0u64;
            let mut scale = 1u64;
            for digit in chunk {
                value = value * 10 + u64::from(digit - b'0');
                scale *= 10;
            }
            let mut carry = u128::from(value);
            for word in words.iter_mut().rev() {
                let wide = u128::from(*word) * u128::from(scale) + carry;
                *word = wide as u64;
                carry = wide >> 64;
            }
            if carry != 0 {
                return Err(bad());
            }
        }
        Ok(Self(words))
    }
}

/// Four words of nineteen digits: more than the longest sequence number has.
type Digits = [[u8; 19]; 4];

impl SequenceNumber {
    /// The decimal digits, without leading zeros.
    fn digits(self, buffer: &mut Digits) -> &str {
        /// The greatest power of ten in a word.
        const SCALE: u64 = 10_000_000_000_000_000_000;
        let mut words = self.0;
        let mut first = buffer.len();
        while first == buffer.len() || words != [0; 3] {
            let mut rest = 0u64;
            for word in &mut words {
                // A quotient of one word, as the rest is below the scale. Most are of words: no division of 128 bits.
                let part = if rest == 0 {
                    *word / SCALE
                } else {
                    ((u128::from(rest) << 64 | u128::from(*word)) / u128::from(SCALE)) as u64
                };
                rest = word.wrapping_sub(part.wrapping_mul(SCALE));
                *word = part;
            }
            first -= 1;
            for digit in buffer[first].iter_mut().rev() {
                *digit = b'0' + (rest % 10) as u8;
                rest /= 10;
            }
        }
        let text = buffer[first..].as_flattened();
        let zeros = text.iter().take_while(|digit| **digit == b'0').count();
        std::str::from_utf8(&text[zeros.min(text.len() - 1)..]).unwrap_or("0")
    }
}

impl fmt::Display for SequenceNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.digits(&mut Digits::default()))
    }
}

impl fmt::Debug for SequenceNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

// Text, since JSON readers elsewhere have no numbers of this size; words where no person reads the number.
impl Serialize for SequenceNumber {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if serializer.is_human_readable() {
            serializer.serialize_str(self.digits(&mut Digits::default()))
        } else {
            self.0.serialize(serializer)
        }
    }
}

impl<'de> Deserialize<'de> for SequenceNumber {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Text;
        impl Visitor<'_> for Text {
            type Value = SequenceNumber;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a sequence number as decimal text")
            }
            fn visit_str<E: de::Error>(self, text: &str) -> Result<SequenceNumber, E> {
                text.parse().map_err(E::custom)
            }
        }
        if deserializer.is_human_readable() {
            deserializer.deserialize_str(Text)
        } else {
            Deserialize::deserialize(deserializer).map(SequenceNumber)
        }
    }
}

/// A place in a shard: a Kinesis record, and a part of an aggregated record (KPL).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Position {
    /// The record's sequence number.
    #[serde(rename = "s")]
    pub sequence: SequenceNumber,
    /// The part of an aggregated record, from 0; 0 for a plain record.
    #[serde(rename = "u", default, skip_serializing_if = "is_zero")]
    pub sub: u64,
}

fn is_zero(value: &u64) -> bool {
    *value == 0
}

impl Position {
    /// The position of a whole record as a checkpoint names it.
    pub const fn of(sequence: SequenceNumber) -> Self {
        Self { sequence, sub: 0 }
    }
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.sub == 0 {
            write!(f, "{}", self.sequence)
        } else {
            write!(f, "{}.{}", self.sequence, self.sub)
        }
    }
}

/// How far a shard has been processed, as its lease row says.
///
/// The order of KCL for Java 3.5 (`ExtendedSequenceNumber`): the three initial positions sort before every number, and
/// the end of the shard after.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Checkpoint {
    /// No checkpoint yet; start at the configured time.
    AtTimestamp,
    /// No checkpoint yet; start at the oldest record.
    TrimHorizon,
    /// No checkpoint yet; start with the records that arrive from now on.
    Latest,
    /// Everything up to and including this position.
    At(Position),
    /// The whole shard.
    ShardEnd,
}

impl Checkpoint {
    /// Whether the shard is done.
    pub fn is_end(self) -> bool {
        self == Checkpoint::ShardEnd
    }

    /// The position, unless it is a sentinel.
    pub fn position(self) -> Option<Position> {
        match self {
            Checkpoint::At(position) => Some(position),
            _ => None,
        }
    }

    /// Whether a record at `position` is already covered by this checkpoint.
    pub fn covers(self, position: Position) -> bool {
        match self {
            Checkpoint::At(done) => position <= done,
            Checkpoint::ShardEnd => true,
            _ => false,
        }
    }
}

impl fmt::Display for Checkpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Checkpoint::AtTimestamp => f.write_str("AT_TIMESTAMP"),
            Checkpoint::TrimHorizon => f.write_str("TRIM_HORIZON"),
            Checkpoint::Latest => f.write_str("LATEST"),
            Checkpoint::At(position) => position.fmt(f),
            Checkpoint::ShardEnd => f.write_str("SHARD_END"),
        }
    }
}

#[cfg(test)]
mod tests;
