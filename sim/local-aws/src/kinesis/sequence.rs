//! Sequence numbers: 56 decimal digits that grow along a shard and its descendants.
//!
//! The number has AWS's layout: from the top, a marker, the second of the shard's creation, four bits of the shard's
//! index, the position in the shard, the second of arrival, the shard's index, and a version. A child is created in a
//! later second than its parents, so that all its numbers are above its parents' numbers.

use crate::constraint::refuse_if;
use std::fmt;
use std::str::FromStr;

/// The greatest position. The end of a closed shard has this position.
pub(super) const END_POSITION: u64 = i64::MAX as u64;

/// The service's own bound on seconds in a sequence number.
const MAX_SECONDS: u64 = 16_025_174_999;
const VERSION: u64 = 2;
const MARKER: u64 = 2;
const TEN_19: u128 = 10_000_000_000_000_000_000;

/// A sequence number, compact and ordered; prints in AWS's form.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SequenceNumber([u64; 3]);

/// The parts of a sequence number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SequenceParts {
    /// The second of the shard's creation.
    pub created_secs: u64,
    /// The position in the shard: 0 at its start, then 1, 2, 3 ...
    pub position: u64,
    /// The second of the record's arrival.
    pub time_secs: u64,
    /// The shard's index.
    pub shard: u32,
}

impl SequenceNumber {
    /// Builds the number from its parts; seconds out of range become the nearest in range.
    pub fn new(parts: SequenceParts) -> Self {
        let mut words = [0; 3];
        place(&mut words, 0, VERSION);
        place(&mut words, 4, u64::from(parts.shard));
        place(&mut words, 36, parts.time_secs.min(MAX_SECONDS));
        place(&mut words, 80, parts.position.min(END_POSITION));
        place(&mut words, 144, u64::from(parts.shard & 0xf));
        place(&mut words, 148, parts.created_secs.min(MAX_SECONDS));
        place(&mut words, 184, MARKER);
        SequenceNumber(words)
    }

    /// Takes the number apart, if the service could have made it.
    pub fn parts(self) -> Option<SequenceParts> {
        let field = |at, bits| take(&self.0, at, bits);
        let parts = SequenceParts {
            created_secs: field(148, 36),
            position: field(80, 64),
            time_secs: field(36, 36),
            shard: field(4, 32) as u32,
        };
        let sound = field(184, 8) == MARKER
            && field(0, 4) == VERSION
            && field(144, 4) == u64::from(parts.shard & 0xf)
            && parts.position <= END_POSITION
            && parts.created_secs <= MAX_SECONDS;
        sound.then_some(parts)
    }

    /// The number as three words, the most significant first.
    pub fn to_words(self) -> [u64; 3] {
        self.0
    }

    /// The inverse of [`to_words`](Self::to_words).
    pub fn from_words(words: [u64; 3]) -> Self {
        SequenceNumber(words)
    }
}

/// Whole seconds of a time in milliseconds, within what a sequence number can hold.
pub(crate) fn seconds(ms: i64) -> u64 {
    u64::try_from(ms / 1000).unwrap_or(0).min(MAX_SECONDS)
}

fn place(words: &mut [u64; 3], at: usize, value: u64) {
    let wide = u128::from(value) << (at % 64);
    let word = 2 - at / 64;
    words[word] |= wide as u64;
    if word > 0 {
        words[word - 1] |= (wide >> 64) as u64;
    }
}

fn take(words: &[u64; 3], at: usize, bits: u32) -> u64 {
    let word = 2 - at / 64;
    let above = if word > 0 { words[word - 1] } else { 0 };
    let wide = (u128::from(above) << 64 | u128::from(words[word])) >> (at % 64);
    (wide & ((1u128 << bits) - 1)) as u64
}

impl fmt::Display for SequenceNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Four groups of 19 digits hold any 192 bits.
        let mut words = self.0;
        let mut groups = [0u64; 4];
        for group in groups.iter_mut().rev() {
            let mut rest = 0u128;
            for word in &mut words {
                let wide = rest << 64 | u128::from(*word);
                *word = (wide / TEN_19) as u64;
                rest = wide % TEN_19;
            }
            *group = rest as u64;
        }
        let lead = groups.iter().position(|&g| g != 0).unwrap_or(3);
        write!(f, "{}", groups[lead])?;
        groups[lead + 1..].iter().try_for_each(|group| write!(f, "{group:019}"))
    }
}

impl fmt::Debug for SequenceNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SequenceNumber({self})")
    }
}

/// The text is no sequence number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotASequenceNumber;

impl FromStr for SequenceNumber {
    type Err = NotASequenceNumber;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        refuse_if(text.is_empty(), || NotASequenceNumber)?;
        let mut words = [0u64; 3];
        for byte in text.bytes() {
            refuse_if(!byte.is_ascii_digit(), || NotASequenceNumber)?;
            let mut carry = u128::from(byte - b'0');
            for word in words.iter_mut().rev() {
                let wide = u128::from(*word) * 10 + carry;
                *word = wide as u64;
                carry = wide >> 64;
            }
            refuse_if(carry != 0, || NotASequenceNumber)?;
        }
        Ok(SequenceNumber(words))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn parts(created_secs: u64, position: u64, time_secs: u64, shard: u32) -> SequenceParts {
        SequenceParts { created_secs, position, time_secs, shard }
    }

    #[test]
    fn a_number_seen_in_production_is_read_and_printed_unchanged() {
        let text = "49546986683135544286507457936321625675700192471156785154";
        let number: SequenceNumber = text.parse().unwrap();
        let parts = number.parts().unwrap();
        assert_eq!(number.to_string(), text);
        assert_eq!(parts.shard, 0);
        assert_eq!(SequenceNumber::new(parts).to_string(), text);
    }

    #[test]
    fn it_has_fifty_six_digits_and_the_usual_beginning() {
        let text = SequenceNumber::new(parts(1_700_000_000, 1, 1_700_000_001, 7)).to_string();
        assert_eq!(text.len(), 56);
        assert!(text.starts_with("496"), "{text}");
    }

    #[test]
    fn foreign_numbers_have_no_parts() {
        for text in
            ["0", "1", "340282366920938463463374607431768211456", "99999999999999999999999999999999999999"]
        {
            assert_eq!(text.parse::<SequenceNumber>().unwrap().parts(), None, "{text}");
        }
        for text in ["", "x", "-1", "1e3", &"9".repeat(60)] {
            assert_eq!(text.parse::<SequenceNumber>(), Err(NotASequenceNumber), "{text}");
        }
    }

    proptest! {
        #[test]
        fn parts_round_trip(created in 0..MAX_SECONDS, position in 0..=END_POSITION, time in 0..MAX_SECONDS, shard: u32) {
            let parts = parts(created, position, time, shard);
            prop_assert_eq!(SequenceNumber::new(parts).parts(), Some(parts));
        }

        #[test]
        fn text_round_trips_and_keeps_the_order(a: [u64; 3], b: [u64; 3]) {
            let (a, b) = (SequenceNumber(a), SequenceNumber(b));
            let (x, y) = (a.to_string(), b.to_string());
            prop_assert_eq!(x.parse(), Ok(a));
            prop_assert_eq!(a.cmp(&b), (x.len(), &x).cmp(&(y.len(), &y)));
        }
    }
}
