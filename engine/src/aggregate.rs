//! Aggregated records of the Kinesis Producer Library (KPL): which of their parts a shard hands over.
//!
//! A producer packs many small records into one aggregated record. The producer's map of shards names the shard for all
//! their hash keys. After a split the map is outdated for a while. The aggregated record then goes to one child, and
//! holds parts of the other child, too. The producer's next step decides which parts may be dropped without a loss:
//!
//! | producer | counts as stored | sends again |
//! |---|---|---|
//! | a KPL since August 2024 | the parts that belong to the shard that took the record | the other parts, to the right shards |
//! | an older KPL | nothing | all parts |
//! | one that does not look at the shard of the answer | all parts | nothing |
//!
//! So the parts of this shard must be handed over, whatever the producer. The other parts come again from every KPL.
//!
//! The bytes of a record are the adapter's: this module sees hash keys only.

use crate::shard::{HashKey, HashRange};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// The treatment of an aggregated record with parts of another shard.
///
/// While the hash keys of a shard are unknown, no part counts as a part of another shard, and all parts are handed
/// over. The hash keys are known when two answers agree: listings with the shard, or a listing and the last answer of a
/// parent. A shard with aggregated records has the shards listed until then, which takes a second or two.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Misplaced {
    /// Hand over the parts of this shard, and drop all other parts. No part sent by a KPL is lost: since August 2024 a
    /// KPL sends the other parts again, to their shards; an older KPL sends all parts again, so the parts of this shard
    /// come twice. A producer that ignores the shard in the answer sends nothing again: choose [`Misplaced::Keep`] for
    /// such a producer. An event tells of the dropped parts, at most once a minute and shard.
    #[default]
    Drop,
    /// Drop the whole aggregated record, as KCL does. **Records are lost with a KPL since August 2024**: a KPL since
    /// then counts the parts of this shard as stored, and does not send them again. With an older KPL no part is lost,
    /// and none comes twice. An event tells of the dropped records, at most once a minute and shard.
    DropWhole,
    /// Hand over all parts. Nothing is lost, whatever the producer. With a KPL, parts come twice.
    Keep,
    /// Hand over the parts of this shard, and give each other part to the dead-letter sink, with 0 attempts. The sink
    /// has all these parts before the batch is handed over. If the sink fails, the batch is tried again after a pause,
    /// like a batch whose handler failed, until the sink takes the parts: no record is blamed for the failing sink,
    /// whatever the failure policy. A part may be given to the sink more than once. With a KPL, parts come twice.
    ///
    /// It needs a dead-letter sink.
    DeadLetter,
}

/// The names of all choices, as options spell them.
const NAMES: [(&str, Misplaced); 4] = [
    ("drop", Misplaced::Drop),
    ("drop-whole", Misplaced::DropWhole),
    ("keep", Misplaced::Keep),
    ("dead-letter", Misplaced::DeadLetter),
];

impl fmt::Display for Misplaced {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = NAMES.iter().find(|(_, known)| known == self);
        f.write_str(name.map_or("", |(name, _)| name))
    }
}

impl FromStr for Misplaced {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let known = NAMES.iter().find(|(name, _)| *name == text);
        known
            .map(|(_, misplaced)| *misplaced)
            .ok_or_else(|| "expected drop, drop-whole, keep or dead-letter".to_owned())
    }
}

/// The parts of one aggregated record, sorted by destination.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sorted<T> {
    /// The parts handed over, in their order.
    pub ours: Vec<T>,
    /// The dead letters, in their order.
    pub others: Vec<T>,
    /// How many are dropped.
    pub dropped: u64,
}

impl Misplaced {
    /// Sorts the parts of an aggregated record, read from a shard with the hash keys of `range`, if known. The hash key
    /// of a part is asked for only if the result depends on it.
    pub fn sort<T>(
        self, parts: Vec<T>, range: Option<HashRange>, hash_key: impl Fn(&T) -> HashKey,
    ) -> Sorted<T> {
        let mut sorted = Sorted { ours: parts, others: Vec::new(), dropped: 0 };
        let Some(range) = range.filter(|_| self != Misplaced::Keep) else {
            return sorted;
        };
        let belongs = |part: &T| range.contains(hash_key(part));
        match self {
            Misplaced::Keep => {}
            Misplaced::DropWhole if sorted.ours.iter().all(belongs) => {}
            Misplaced::DropWhole => {
                sorted.dropped = sorted.ours.len() as u64;
                sorted.ours.clear();
            }
            Misplaced::Drop => {
                let count = sorted.ours.len();
                sorted.ours.retain(belongs);
                sorted.dropped = (count - sorted.ours.len()) as u64;
            }
            Misplaced::DeadLetter => {
                (sorted.ours, sorted.others) = sorted.ours.into_iter().partition(belongs);
            }
        }
        sorted
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const RANGE: HashRange = HashRange { start: HashKey(10), end: HashKey(20) };

    fn sort(misplaced: Misplaced, parts: &[u128]) -> (Vec<u128>, Vec<u128>, u64) {
        let sorted = misplaced.sort(parts.to_vec(), Some(RANGE), |key| HashKey(*key));
        (sorted.ours, sorted.others, sorted.dropped)
    }

    #[test]
    fn each_choice_says_where_the_parts_of_other_shards_go() {
        let mixed = [10, 9, 15, 21, 20];
        let ours = vec![10, 15, 20];
        assert_eq!(sort(Misplaced::Drop, &mixed), (ours.clone(), vec![], 2));
        assert_eq!(sort(Misplaced::DropWhole, &mixed), (vec![], vec![], 5));
        assert_eq!(sort(Misplaced::Keep, &mixed), (mixed.to_vec(), vec![], 0));
        assert_eq!(sort(Misplaced::DeadLetter, &mixed), (ours, vec![9, 21], 0));
    }

    #[test]
    fn the_shards_own_parts_are_handed_over_by_every_choice() {
        for (_, misplaced) in NAMES {
            assert_eq!(sort(misplaced, &[10, 20, 11]), (vec![10, 20, 11], vec![], 0), "{misplaced}");
            assert_eq!(sort(misplaced, &[]), (vec![], vec![], 0), "{misplaced}");
        }
    }

    #[test]
    fn without_a_range_no_part_is_another_shards_and_no_key_is_read() {
        for (_, misplaced) in NAMES {
            let sorted = misplaced.sort(vec![1, 2], None, |_| panic!("no key is needed"));
            assert_eq!((sorted.ours, sorted.dropped), (vec![1, 2], 0), "{misplaced}");
        }
    }

    #[test]
    fn a_choice_is_read_as_it_is_shown() {
        for (name, misplaced) in NAMES {
            assert_eq!((name.parse(), misplaced.to_string().as_str()), (Ok(misplaced), name));
        }
        assert!("dorp".parse::<Misplaced>().is_err_and(|error| error.contains("drop-whole")));
        assert_eq!(Misplaced::default(), Misplaced::Drop);
    }

    /// What is left to do of each part: nothing, a second time, or for good.
    #[derive(Clone, Copy)]
    enum Kpl {
        Since2024,
        Older,
    }

    proptest! {
        /// Both kinds of KPL send again, to the right shards, all parts not counted as stored. So each part is handed
        /// over at least once, by the shards before and after.
        #[test]
        fn the_default_loses_nothing_of_either_kpl(keys in proptest::collection::vec(0u128..40, 1..12), older: bool) {
            let kpl = if older { Kpl::Older } else { Kpl::Since2024 };
            let handed = Misplaced::Drop.sort(keys.clone(), Some(RANGE), |key| HashKey(*key)).ours;
            for key in keys {
                let again = match kpl {
                    Kpl::Since2024 => !RANGE.contains(HashKey(key)),
                    Kpl::Older => true,
                };
                prop_assert!(again || handed.contains(&key), "{}", key);
            }
        }
    }
}
