//! Whether a listing can be as young as a shard missing from the listing.
//!
//! A stream forgets closed shards in the order of their closing, and numbers its shards in the order of their begin. So
//! a listing that lacks a shard and shows an older shard is behind: the stream has not forgotten the shard.

use crate::ids::ShardId;
use crate::row::LeaseRow;
use crate::shard::{HashRange, Shard};
use std::collections::BTreeMap;

/// A shard missing from a listing, as far as its row knows the shard.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Unlisted<'a> {
    pub id: &'a str,
    /// Empty: the shard has no parents, or its parents are unknown.
    pub parents: &'a [ShardId],
    /// Absent: the range is unknown.
    pub range: Option<HashRange>,
}

impl<'a> Unlisted<'a> {
    /// The shard of a row.
    pub(crate) fn of(row: &'a LeaseRow) -> Self {
        Self { id: row.key.as_str(), parents: &row.parents, range: row.range }
    }
}

/// The shard whose place in a listing shows that the listing is behind, or that the missing shard is not forgotten.
pub(crate) fn stands_against(ours: Unlisted<'_>, shards: &[Shard]) -> Option<ShardId> {
    let listed: BTreeMap<&str, &Shard> = shards.iter().map(|shard| (shard.id.as_str(), shard)).collect();
    // What is below a forgotten shard is younger.
    let newest = listed.keys().next_back();
    if let Some(shard) = newest.and_then(|id| listed.get(id)).filter(|shard| is_older(shard, ours)) {
        return Some(shard.id.clone());
    }
    // A person or a program wrote a parent into the row that is no older than the shard: nothing follows from it.
    let possible = |parent: &ShardId| parent.as_str().len() != ours.id.len() || parent.as_str() < ours.id;
    let parent = ours.parents.iter().find(|parent| listed.contains_key(parent.as_str()) && possible(parent));
    // Two shards open at one moment never take the same keys: an older and still open shard is above ours.
    let above = |shard: &&Shard| {
        let overlaps = ours.range.is_some_and(|range| range.overlaps(shard.range));
        shard.is_open() && overlaps && is_older(shard, ours)
    };
    // A shard ended when its children began. A shard ended before the begin of ours is forgotten before ours.
    let ended_before = |shard: &Shard| {
        let parents = || shard.parents().filter_map(|parent| listed.get(parent.as_str()));
        is_older(shard, ours).then(|| parents().next().map(|parent| parent.id.clone()))
    };
    parent
        .cloned()
        .or_else(|| shards.iter().find(above).map(|shard| shard.id.clone()))
        .or_else(|| shards.iter().find_map(|shard| ended_before(shard).flatten()))
}

/// Whether a shard began before ours, by its number. Names in another form tell nothing.
fn is_older(shard: &Shard, ours: Unlisted<'_>) -> bool {
    shard.id.as_str().len() == ours.id.len() && shard.id.as_str() < ours.id
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shard::HashKey;

    const ALL: HashRange = HashRange::ALL;

    fn lower() -> HashRange {
        HashRange { start: HashKey(0), end: HashKey(9) }
    }

    fn upper() -> HashRange {
        HashRange { start: HashKey(10), end: HashKey::MAX }
    }

    fn shard(id: &str, parent: Option<&str>, open: bool, range: HashRange) -> Shard {
        crate::testkit::shard(id, parent, range, 1, (!open).then_some(2))
    }

    fn against(id: &str, parents: &[&str], range: Option<HashRange>, shards: &[Shard]) -> Option<String> {
        let parents: Vec<ShardId> = parents.iter().map(|id| (*id).into()).collect();
        let ours = Unlisted { id, parents: &parents, range };
        stands_against(ours, shards).map(|id| id.to_string())
    }

    #[test]
    fn a_listing_from_before_a_split_contradicts_its_childrens_end() {
        let before = [shard("s0", None, true, ALL)];
        for parents in [&["s0"][..], &[]] {
            for range in [Some(lower()), None] {
                assert_eq!(against("s1", parents, range, &before), Some("s0".to_owned()));
            }
        }
    }

    #[test]
    fn a_listed_parent_contradicts_the_end_of_a_missing_child() {
        let listing = [
            shard("s0", None, false, ALL),
            shard("s2", Some("s0"), true, upper()),
            shard("s3", Some("s1"), true, lower()),
        ];
        assert_eq!(against("s1", &["s0"], Some(lower()), &listing), Some("s0".to_owned()));
    }

    #[test]
    fn a_shard_that_ended_before_ours_began_is_forgotten_first() {
        // s0 was split into s1 and s2; later s4, which is ours, came from s2.
        let listing = [
            shard("s0", None, false, ALL),
            shard("s1", Some("s0"), true, lower()),
            shard("s5", Some("s4"), true, upper()),
        ];
        assert_eq!(against("s4", &[], Some(upper()), &listing), Some("s0".to_owned()));
    }

    #[test]
    fn a_parent_no_older_than_its_child_contradicts_nothing() {
        let listing = [shard("s5", None, true, ALL)];
        for (parent, against) in [("s2", None), ("s5", None), ("s7", None)] {
            let parents = [ShardId::from(parent)];
            let ours = Unlisted { id: "s4", parents: &parents, range: None };
            assert_eq!(stands_against(ours, &listing), against, "{parent}");
        }
        let older = [shard("s2", None, false, ALL), shard("s5", None, true, ALL)];
        let parents = [ShardId::from("s2")];
        let ours = Unlisted { id: "s4", parents: &parents, range: None };
        assert_eq!(stands_against(ours, &older), Some("s2".into()));
    }

    #[test]
    fn nothing_contradicts_the_end_of_a_shard_of_descendants() {
        let listing = [
            shard("s1", None, true, lower()),
            shard("s3", Some("s2"), false, upper()),
            shard("s4", Some("s3"), true, upper()),
        ];
        assert_eq!(against("s2", &["s0"], Some(upper()), &listing), None);
        assert_eq!(against("s2", &[], None, &listing), None);
        let closed_late = [shard("s0", None, false, lower()), shard("s6", Some("s0"), true, ALL)];
        assert_eq!(against("s2", &[], Some(upper()), &closed_late), None, "it was closed after ours began");
        let other_names = [shard("an-older-name", None, true, ALL)];
        assert_eq!(against("s2", &[], Some(upper()), &other_names), None);
    }
}
