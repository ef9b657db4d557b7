//! Shards as Kinesis lists them, and the part of the hash space each covers.

use crate::ids::ShardId;
use crate::position::SequenceNumber;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;

/// A point of the 128-bit hash space that partition keys map to.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HashKey(pub u128);

/// The number in a shard's name, such as 12 of `shardId-000000000012`, with or without the stream's identifier before
/// the name.
pub(crate) fn index_in_name(name: &str) -> Option<u32> {
    let digits = name.rsplit_once("shardId-")?.1;
    let good = digits.len() == 12 && digits.bytes().all(|byte| byte.is_ascii_digit());
    good.then(|| digits.parse().ok()).flatten()
}

/// The number of the shard of this name, and a different shard number in one of the sequence numbers, if any. Names and
/// sequence numbers in other forms than those of AWS are ignored.
pub fn of_another_shard(
    shard: &str, numbers: impl IntoIterator<Item = SequenceNumber>,
) -> Option<(u32, u32)> {
    let own = index_in_name(shard)?;
    let mut named = numbers.into_iter().filter_map(SequenceNumber::shard_in_digits);
    named.find(|of| *of != own).map(|of| (own, of))
}

impl HashKey {
    /// The highest point.
    pub const MAX: HashKey = HashKey(u128::MAX);
}

impl fmt::Display for HashKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Debug for HashKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl std::str::FromStr for HashKey {
    type Err = std::num::ParseIntError;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        // Nineteen digits at a time fit a word; this is several times as fast as one digit at a time.
        if (1..=39).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit()) {
            const SCALE: u128 = 10_000_000_000_000_000_000;
            let word =
                |digits: &[u8]| digits.iter().fold(0u64, |word, digit| word * 10 + u64::from(digit - b'0'));
            // Only the first chunk may be shorter, and no digits stand before the first chunk.
            let key =
                text.as_bytes().rchunks(19).rev().try_fold(0u128, |key, chunk| {
                    key.checked_mul(SCALE)?.checked_add(u128::from(word(chunk)))
                });
            if let Some(key) = key {
                return Ok(HashKey(key));
            }
        }
        text.parse().map(HashKey)
    }
}

// Text, since JSON readers elsewhere have no 128-bit numbers; words where no person reads the key.
impl Serialize for HashKey {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if serializer.is_human_readable() {
            serializer.collect_str(self)
        } else {
            [(self.0 >> 64) as u64, self.0 as u64].serialize(serializer)
        }
    }
}

impl<'de> Deserialize<'de> for HashKey {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        if !deserializer.is_human_readable() {
            let [high, low] = <[u64; 2]>::deserialize(deserializer)?;
            return Ok(HashKey(u128::from(high) << 64 | u128::from(low)));
        }
        let text = <std::borrow::Cow<'de, str>>::deserialize(deserializer)?;
        text.parse().map_err(|_| serde::de::Error::custom("expected a hash key as decimal text below 2^128"))
    }
}

/// A range of the hash space, both ends inclusive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct HashRange {
    /// The first key.
    pub start: HashKey,
    /// The last key; never below `start`.
    pub end: HashKey,
}

impl HashRange {
    /// All hash keys.
    pub const ALL: HashRange = HashRange { start: HashKey(0), end: HashKey::MAX };

    /// Whether a key is in it.
    pub fn contains(self, key: HashKey) -> bool {
        self.start <= key && key <= self.end
    }

    /// Whether some key is in both.
    pub fn overlaps(self, other: HashRange) -> bool {
        self.start <= other.end && other.start <= self.end
    }
}

/// One shard, as ListShards describes it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Shard {
    /// The shard's id.
    pub id: ShardId,
    /// The shard before a split, or the first of the two shards before a merge. The stream may have trimmed the parent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<ShardId>,
    /// The second shard it was merged from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub adjacent_parent: Option<ShardId>,
    /// The shard's hash keys.
    pub range: HashRange,
    /// Where the shard begins.
    pub starting: SequenceNumber,
    /// Where the shard ended; absent while the shard is open.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ending: Option<SequenceNumber>,
}

impl Shard {
    /// Whether the shard still takes records.
    pub fn is_open(&self) -> bool {
        self.ending.is_none()
    }

    /// The one or two parents of the shard, as far as the listing names parents.
    pub fn parents(&self) -> impl Iterator<Item = &ShardId> {
        self.parent.iter().chain(self.adjacent_parent.iter())
    }
}

/// A child shard, as the last GetRecords answer of its parent names it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ChildShard {
    /// The child's id.
    pub id: ShardId,
    /// All parents of the child: one after a split, two after a merge.
    pub parents: Vec<ShardId>,
    /// The child's hash keys.
    pub range: HashRange,
}

/// Whether these are all children of a closed shard: the two shards after a split, or the one shard after a merge. Each
/// child comes with the number of its parents. A child may come twice.
pub(crate) fn are_all_children<'a>(named: impl IntoIterator<Item = (&'a ShardId, usize)>) -> bool {
    let mut first = None;
    named.into_iter().any(|(child, parents)| parents > 1 || *first.get_or_insert(child) != child)
}

/// Whether an answer names all children of the shard that has ended. Such an answer may name a child twice.
pub(crate) fn names_all(children: &[ChildShard]) -> bool {
    are_all_children(children.iter().map(|child| (&child.id, child.parents.len())))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn hash_keys_are_read_as_the_numbers_they_are() {
        let most = u128::MAX.to_string();
        for text in ["0", "007", "+5", "9999999999999999999", "10000000000000000000", &most] {
            assert_eq!(text.parse(), Ok(HashKey(text.parse::<u128>().unwrap())), "{text}");
        }
        let leading = format!("0{most}");
        assert_eq!(leading.parse(), Ok(HashKey::MAX));
        for text in ["", "-1", "1 ", "x", "340282366920938463463374607431768211456"] {
            let expected = text.parse::<u128>().unwrap_err();
            assert_eq!(text.parse::<HashKey>(), Err(expected), "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn hash_keys_come_back_from_text_and_from_words(key: u128) {
            let key = HashKey(key);
            let text = serde_json::to_string(&key).unwrap();
            prop_assert_eq!(&text, &format!("\"{key}\""));
            prop_assert_eq!(serde_json::from_str::<HashKey>(&text).unwrap(), key);

            let mut words = Vec::new();
            ciborium::into_writer(&key, &mut words).unwrap();
            prop_assert!(words.len() <= 19, "{words:?} is no two words");
            prop_assert_eq!(ciborium::from_reader::<HashKey, _>(words.as_slice()).unwrap(), key);
        }
    }
}
