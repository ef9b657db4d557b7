//! Single wrong answers about shards: an iterator of another shard or of another place, children with wrong names,
//! wrong hash keys, a record with the number of an earlier record.
//!
//! Each worker gets one wrong answer about a shard, and one listing with wrong hash keys. The next answer is right. The
//! answer about children may be wrong once more, in the same way. Any answer may contain records with wrong numbers.

use super::{Chance, Deed, Setting, rate};
use crate::draws::{Draws, Roll};
use crate::named::named;
use leasehold_engine::input::{Outcome, Reply};
use leasehold_engine::shard::{ChildShard, HashKey, Shard};
use serde::{Deserialize, Serialize};

named! {
    /// The error of an answer.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
    pub enum Misread by pub(super) family {
        /// The iterator belongs to another shard of the stream.
        OtherIterator = "other-iterator",
        /// The iterator is at the tip of the shard instead of at the checkpoint.
        LaterIterator = "later-iterator",
        /// The first child of the shard has the name of a shard that is not in the stream.
        ChildMisnamed = "child-misnamed",
        /// The answer names the first child of the shard twice, and omits the other child.
        ChildTwice = "child-twice",
        /// The answer names the first child of the shard once more.
        ChildAgain = "child-again",
        /// The border between two open shards is moved.
        BorderMoved = "border-moved",
        /// A record in the middle of the answer has the number of a record before the requested place.
        NumberLow = "number-low",
    }
}

impl Misread {
    /// Whether the answer is about the children of a shard.
    pub(crate) fn is_of_children(self) -> bool {
        matches!(self, Misread::ChildMisnamed | Misread::ChildTwice | Misread::ChildAgain)
    }

    /// Makes a right answer wrong. An iterator is not an outcome: see the network.
    pub(crate) fn instead_of(self, outcome: &mut Outcome) {
        match (self, outcome) {
            (Misread::ChildMisnamed, Outcome::Applied(Reply::Records(answer))) => {
                if let Some(first) = answer.end.iter_mut().flatten().next() {
                    misname(first);
                }
            }
            (Misread::ChildTwice, Outcome::Applied(Reply::Records(answer))) => {
                if let Some([first, rest @ ..]) = answer.end.as_deref_mut() {
                    rest.fill(first.clone());
                }
            }
            (Misread::ChildAgain, Outcome::Applied(Reply::Records(answer))) => {
                let children = answer.end.iter_mut();
                children.for_each(|children| children.extend(children.first().cloned()));
            }
            (Misread::BorderMoved, Outcome::Applied(Reply::Shards(page))) => move_border(&mut page.shards),
            (Misread::NumberLow, Outcome::Applied(Reply::Records(answer))) => {
                answer.unordered = answer.count > 2
            }
            _ => {}
        }
    }
}

/// A bound for the number of a stream's shards, in hundreds.
const HUNDREDS: u32 = 9;
/// The most shards of a stream in a world: no shard has a greater number.
pub(crate) const MOST_SHARDS: u32 = HUNDREDS * 100;

/// Gives a child the name of a shard that is not in the stream.
fn misname(child: &mut ChildShard) {
    let name = child.id.as_str();
    let (front, last) = name.split_at(name.len() - 2);
    child.id = format!("{}{HUNDREDS}{last}", &front[..front.len() - 1]).as_str().into();
}

/// Moves the border between two open shards up, by a quarter of the upper shard.
fn move_border(shards: &mut [Shard]) {
    let open = |shard: &&Shard| shard.is_open();
    let lower = shards.iter().filter(open).map(|shard| shard.range.end).min();
    let Some(lower) = lower else { return };
    let Some(upper) = shards
        .iter()
        .filter(open)
        .find(|shard| Some(shard.range.start.0) == lower.0.checked_add(1))
        .map(|shard| shard.range)
    else {
        return;
    };
    let by = (upper.end.0 - upper.start.0) / 4;
    for shard in shards.iter_mut().filter(|shard| shard.is_open()) {
        if shard.range.end == lower {
            shard.range.end = HashKey(lower.0 + by);
        } else if shard.range == upper {
            shard.range.start = HashKey(upper.start.0 + by);
        }
    }
}

/// The rate of wrong answers, in one of a thousand requests.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct MisreadFaults {
    /// The rate for iterators and for answers with records; ends of shards and listings have five times this rate.
    #[serde(skip_serializing_if = "super::is_plain")]
    pub wrong: u32,
}

impl MisreadFaults {
    pub(super) fn draw(draws: Draws, _: Setting) -> Self {
        Self { wrong: rate(draws, "misread", 100) }
    }

    /// Whether a record of an answer has the number of an earlier record.
    pub(crate) fn lowers_number(&self, roll: &mut Roll) -> bool {
        roll.happens(self.wrong)
    }

    /// The fault drawn for a request.
    pub(crate) fn chance(&self, deed: Deed, roll: &mut Roll) -> Option<Chance> {
        let per_mille = match deed {
            Deed::Iterator => self.wrong,
            // Few reads reach the end of a shard.
            Deed::Fetch | Deed::List => self.wrong.saturating_mul(5).min(1_000),
            _ => 0,
        };
        if !roll.happens(per_mille) {
            return None;
        }
        let what = match (deed, roll.below(2)) {
            (Deed::Iterator, 0) => Misread::OtherIterator,
            (Deed::Iterator, _) => Misread::LaterIterator,
            (Deed::List, _) => Misread::BorderMoved,
            (_, 0) => Misread::ChildMisnamed,
            _ if roll.happens(333) => Misread::ChildAgain,
            _ => Misread::ChildTwice,
        };
        Some(Chance::Misread { what })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use leasehold_engine::input::Fetched;
    use leasehold_engine::shard::HashRange;

    fn range(start: u128, end: u128) -> HashRange {
        HashRange { start: HashKey(start), end: HashKey(end) }
    }

    #[test]
    fn the_border_moves_and_the_open_shards_still_cover_everything() {
        let shard = |id: &str, range, open: bool| Shard {
            id: id.into(),
            parent: None,
            adjacent_parent: None,
            range,
            starting: 1.into(),
            ending: (!open).then(|| 2.into()),
        };
        let mut shards = [
            shard("c", range(0, 99), false),
            shard("a", range(0, 9), true),
            shard("b", range(10, 29), true),
            shard("d", range(30, u128::MAX), true),
        ];
        move_border(&mut shards);
        let ranges = shards.map(|shard| shard.range);
        assert_eq!(ranges, [range(0, 99), range(0, 13), range(14, 29), range(30, u128::MAX)]);
    }

    #[test]
    fn a_child_is_named_twice_in_place_of_or_beside_the_other() {
        let child = |id: &str| ChildShard { id: id.into(), parents: vec![], range: HashRange::ALL };
        let named = |misread: Misread, ids: &[&str]| {
            let mut outcome = Outcome::Applied(Reply::Records(Fetched {
                end: Some(ids.iter().map(|id| child(id)).collect()),
                ..Fetched::default()
            }));
            misread.instead_of(&mut outcome);
            let Outcome::Applied(Reply::Records(answer)) = outcome else {
                panic!("an answer stays an answer")
            };
            let named = answer.end.into_iter().flatten();
            named.map(|child| child.id.to_string()).collect::<Vec<_>>()
        };
        assert_eq!(named(Misread::ChildTwice, &["a", "b"]), ["a", "a"]);
        assert_eq!(named(Misread::ChildAgain, &["a", "b"]), ["a", "b", "a"]);
        assert_eq!(named(Misread::ChildAgain, &[]), [""; 0]);
    }

    #[test]
    fn a_low_number_between_two_others_is_not_in_order() {
        let is_unordered = |count: u32| {
            let answer = Fetched { count, bytes: 9, ..Fetched::default() };
            let mut outcome = Outcome::Applied(Reply::Records(answer));
            Misread::NumberLow.instead_of(&mut outcome);
            matches!(outcome, Outcome::Applied(Reply::Records(answer)) if answer.unordered)
        };
        assert_eq!([0, 1, 2, 3, 9].map(is_unordered), [false, false, false, true, true]);
    }

    #[test]
    fn a_misnamed_child_keeps_the_form_of_its_name() {
        let mut child =
            ChildShard { id: "shardId-000000000012".into(), parents: vec![], range: HashRange::ALL };
        misname(&mut child);
        assert_eq!(child.id.as_str(), "shardId-000000000912");
    }
}
