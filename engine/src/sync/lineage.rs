//! The family tree of the shards of one listing.

use crate::ids::{LeaseKey, ShardId};
use crate::position::Checkpoint;
use crate::shard::{HashRange, Shard, are_all_children};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// An index over a listing. Shards are numbered by their start, then by id: leases are created in this order.
#[derive(Debug)]
pub struct Lineage<'a> {
    shards: Vec<&'a Shard>,
    index: BTreeMap<&'a ShardId, usize>,
    parents: Vec<Vec<usize>>,
    children: Vec<Vec<usize>>,
    ancestors_first: Vec<usize>,
}

/// Why a listing cannot be used. Listings are eventually consistent: the next listing may well be good.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BadListing {
    /// It names no shard at all.
    Empty,
    /// A shard has children and is not closed: the listing mixes two moments.
    OpenParent {
        /// The open parent.
        parent: ShardId,
        /// A child of the parent.
        child: ShardId,
    },
    /// A shard began before its parent did: the listing mixes two streams.
    OlderThanParent {
        /// The parent.
        parent: ShardId,
        /// The child.
        child: ShardId,
    },
    /// A shard is its own ancestor.
    Cycle {
        /// A shard in the circle, or below the circle.
        shard: ShardId,
    },
    /// A shard's hash range ends before it starts.
    Reversed {
        /// The shard.
        shard: ShardId,
    },
    /// The shards open at one moment leave part of the hash space out.
    Gap {
        /// The lowest part left out.
        range: HashRange,
    },
    /// Two shards open at one moment take the same keys.
    Overlap {
        /// The first shard.
        first: ShardId,
        /// The second shard.
        second: ShardId,
    },
}

impl fmt::Display for BadListing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => f.write_str("expected at least one shard, found an empty listing"),
            Self::OpenParent { parent, child } => {
                write!(f, "expected {parent} to be closed, as {child} is its child, found it open")
            }
            Self::OlderThanParent { parent, child } => {
                write!(f, "expected {child} to begin after its parent {parent}, found that it began before")
            }
            Self::Cycle { shard } => {
                write!(f, "expected a family tree, found {shard} among its own ancestors")
            }
            Self::Reversed { shard } => {
                write!(f, "expected {shard} to cover a hash range, found its end before its start")
            }
            Self::Gap { range } => write!(
                f,
                "expected the shards of one moment to cover the whole hash space, found {} to {} left out",
                range.start, range.end
            ),
            Self::Overlap { first, second } => write!(
                f,
                "expected the shards of one moment to be apart, found {first} and {second} to overlap"
            ),
        }
    }
}

impl std::error::Error for BadListing {}

impl<'a> Lineage<'a> {
    /// Indexes a listing. If the listing names a shard twice (pages of different moments), the closed version stands:
    /// closing is final.
    pub fn new(listing: &'a [Shard]) -> Self {
        let mut shards: Vec<&Shard> = listing.iter().collect();
        shards.sort_by(|a, b| a.id.cmp(&b.id).then(a.is_open().cmp(&b.is_open())));
        shards.dedup_by(|a, b| a.id == b.id);
        shards.sort_by(|a, b| a.starting.cmp(&b.starting).then(a.id.cmp(&b.id)));
        let index: BTreeMap<_, _> = shards.iter().enumerate().map(|(n, shard)| (&shard.id, n)).collect();
        let mut children = vec![Vec::new(); shards.len()];
        let mut parents = Vec::with_capacity(shards.len());
        for (n, shard) in shards.iter().enumerate() {
            let mut listed: Vec<usize> = shard.parents().filter_map(|id| index.get(id).copied()).collect();
            listed.sort_unstable();
            listed.dedup();
            for parent in &listed {
                children[*parent].push(n);
            }
            parents.push(listed);
        }
        let ancestors_first = ancestors_first(&parents, &children);
        Self { shards, index, parents, children, ancestors_first }
    }

    /// The number of shards; shards are numbered from 0.
    pub fn len(&self) -> usize {
        self.shards.len()
    }

    /// Whether the listing has no shards.
    pub fn is_empty(&self) -> bool {
        self.shards.is_empty()
    }

    /// The `n`-th shard.
    pub fn shard(&self, n: usize) -> &'a Shard {
        self.shards[n]
    }

    /// All shards, by their start, then by id.
    pub fn shards(&self) -> impl Iterator<Item = &'a Shard> + '_ {
        self.shards.iter().copied()
    }

    /// The number of a shard, if listed.
    pub fn find(&self, id: &ShardId) -> Option<usize> {
        self.index.get(id).copied()
    }

    /// The listed parents of the `n`-th shard: none, one, or two after a merge.
    pub fn parents(&self, n: usize) -> &[usize] {
        &self.parents[n]
    }

    /// The listed children of the `n`-th shard.
    pub fn children(&self, n: usize) -> &[usize] {
        &self.children[n]
    }

    /// The numbers of all shards outside a circle and not below a circle, each after all of its listed ancestors.
    pub fn ancestors_first(&self) -> &[usize] {
        &self.ancestors_first
    }

    /// Whether Kinesis could have meant this listing: not empty, no child of an open shard, no circle.
    pub fn check(&self) -> Result<(), BadListing> {
        if self.is_empty() {
            return Err(BadListing::Empty);
        }
        for (parent, children) in self.shards.iter().zip(&self.children) {
            if let (true, Some(child)) = (parent.is_open(), children.first()) {
                return Err(BadListing::OpenParent {
                    parent: parent.id.clone(),
                    child: self.shards[*child].id.clone(),
                });
            }
        }
        if self.ancestors_first.len() < self.len() {
            let mut sound = vec![false; self.len()];
            for n in &self.ancestors_first {
                sound[*n] = true;
            }
            if let Some(n) = sound.iter().position(|sound| !sound) {
                return Err(BadListing::Cycle { shard: self.shards[n].id.clone() });
            }
        }
        Ok(())
    }

    /// Whether all shards of a stream may have been in this state at one moment: no contradiction within a shard, no
    /// child older than its parent, and the open shards cover the hash space exactly. No conclusion follows from any
    /// other listing.
    pub fn check_all(&self) -> Result<(), BadListing> {
        self.check()?;
        for (n, parents) in self.parents.iter().enumerate() {
            let child = self.shards[n];
            let older = parents.iter().map(|parent| self.shards[*parent]);
            if let Some(parent) = older.clone().find(|parent| child.starting < parent.starting) {
                return Err(BadListing::OlderThanParent {
                    parent: parent.id.clone(),
                    child: child.id.clone(),
                });
            }
        }
        let open = self.shards.iter().copied().filter(|shard| shard.is_open());
        coverage(open.collect())
    }

    /// Whether the shards cover the hash space exactly, like the shards open at one moment.
    pub fn check_coverage(&self) -> Result<(), BadListing> {
        coverage(self.shards.clone())
    }
}

fn coverage(mut by_range: Vec<&Shard>) -> Result<(), BadListing> {
    by_range.sort_by_key(|shard| shard.range);
    for shard in &by_range {
        if shard.range.end < shard.range.start {
            return Err(BadListing::Reversed { shard: shard.id.clone() });
        }
    }
    if let Some(range) = super::first_hole(by_range.iter().map(|shard| shard.range)) {
        return Err(BadListing::Gap { range });
    }
    for pair in by_range.windows(2) {
        if pair[1].range.start <= pair[0].range.end {
            return Err(BadListing::Overlap { first: pair[0].id.clone(), second: pair[1].id.clone() });
        }
    }
    Ok(())
}

/// Kahn's algorithm: no recursion, so a long lineage needs no stack.
fn ancestors_first(parents: &[Vec<usize>], children: &[Vec<usize>]) -> Vec<usize> {
    let mut missing: Vec<usize> = parents.iter().map(Vec::len).collect();
    let mut order: Vec<usize> = (0..parents.len()).filter(|n| missing[*n] == 0).collect();
    let mut done = 0;
    while let Some(n) = order.get(done).copied() {
        done += 1;
        for child in &children[n] {
            missing[*child] -= 1;
            if missing[*child] == 0 {
                order.push(*child);
            }
        }
    }
    order
}

/// Whether a descendant of `shard` has a lease: then `shard` itself has been read to its end before, even if its own
/// lease is gone.
pub(crate) fn has_leased_descendant(
    leases: &BTreeMap<LeaseKey, Checkpoint>, shards: &[Shard], shard: &ShardId,
) -> bool {
    let mut children: BTreeMap<&str, Vec<&ShardId>> = BTreeMap::new();
    for child in shards {
        for parent in child.parents() {
            children.entry(parent.as_str()).or_default().push(&child.id);
        }
    }
    let mut seen = BTreeSet::new();
    let mut open = vec![shard];
    while let Some(id) = open.pop() {
        for child in children.get(id.as_str()).into_iter().flatten() {
            if leases.contains_key(child.as_str()) {
                return true;
            }
            if seen.insert(child.as_str()) {
                open.push(child);
            }
        }
    }
    false
}

/// Whether a lease for the unleased `shard` will be created: at the end of a parent, or by the audit, to which its keys
/// are a hole as long as its children have no leases. Only an unlisted shard has no records left to read.
pub(crate) fn will_come(shards: &[Shard], shard: &ShardId) -> bool {
    shards.iter().any(|listed| listed.id == *shard)
}

/// Whether a listing shows all children of a closed shard: the one shard after a merge, or the two shards after a
/// split.
///
/// Looks at every shard of the listing. [`Children`] answers for many shards.
pub(crate) fn shows_all_children(shards: &[Shard], shard: &ShardId) -> bool {
    let names = |child: &&Shard| child.parents().any(|parent| parent == shard);
    Children::of(shards.iter().filter(names)).all_shown(shard.as_str())
}

/// The children named by a listing for each shard, also for unlisted shards.
#[derive(Debug)]
pub(crate) struct Children<'a> {
    /// Of a shard: each child, and the number of parents named by the child.
    named: BTreeMap<&'a str, BTreeMap<&'a ShardId, usize>>,
}

impl<'a> Children<'a> {
    /// Indexes a listing, in a time linear in its length.
    pub(crate) fn of(shards: impl IntoIterator<Item = &'a Shard>) -> Self {
        let mut named: BTreeMap<&str, BTreeMap<&ShardId, usize>> = BTreeMap::new();
        for child in shards {
            let parents = child.parents().count();
            for parent in child.parents() {
                named.entry(parent.as_str()).or_default().insert(&child.id, parents);
            }
        }
        Self { named }
    }

    /// Whether the listing shows all children of this closed shard: the one shard after a merge, or the two shards
    /// after a split.
    pub(crate) fn all_shown(&self, shard: &str) -> bool {
        let named = self.named.get(shard).into_iter().flatten();
        are_all_children(named.map(|(&child, &parents)| (child, parents)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shard::HashKey;

    fn shard(id: &str, parents: &[&str], open: bool, range: (u128, u128)) -> Shard {
        let range = HashRange { start: HashKey(range.0), end: HashKey(range.1) };
        crate::testkit::shard(id, parents.iter().copied(), range, 1, (!open).then_some(2))
    }

    const ALL: (u128, u128) = (0, u128::MAX);

    #[test]
    fn two_halves_or_the_one_merged_are_all_children() {
        let shows = |listing: &[Shard]| shows_all_children(listing, &"a".into());
        let half = |id| shard(id, &["a"], true, ALL);
        assert!(!shows(&[shard("a", &[], false, ALL)]));
        assert!(!shows(&[half("b")]));
        // Pages of different moments name a shard twice.
        assert!(!shows(&[half("b"), half("b")]));
        assert!(shows(&[half("b"), half("c")]));
        assert!(shows(&[shard("b", &["x", "a"], true, ALL)]));
    }

    #[test]
    fn relations_are_those_listed() {
        let listing = [
            shard("c", &["a", "b"], true, ALL),
            shard("a", &["gone"], false, ALL),
            shard("b", &[], false, ALL),
            shard("c", &["a", "b"], true, ALL),
        ];
        let lineage = Lineage::new(&listing);
        assert_eq!(lineage.check(), Ok(()));
        assert_eq!(lineage.len(), 3);
        let n = |id: &str| lineage.find(&id.into()).unwrap();
        assert_eq!(lineage.parents(n("c")), [n("a"), n("b")]);
        assert!(lineage.parents(n("a")).is_empty());
        assert_eq!(lineage.children(n("b")), [n("c")]);
        assert_eq!(lineage.ancestors_first().last(), Some(&n("c")));
        assert_eq!(lineage.find(&"gone".into()), None);
    }

    #[test]
    fn a_closed_description_beats_an_open_one_of_another_page() {
        for order in [[true, false], [false, true]] {
            let listing = order.map(|open| shard("a", &[], open, ALL));
            assert!(!Lineage::new(&listing).shard(0).is_open());
        }
    }

    #[test]
    fn impossible_listings_are_refused() {
        assert_eq!(Lineage::new(&[]).check(), Err(BadListing::Empty));
        let open = [shard("a", &[], true, ALL), shard("b", &["a"], true, ALL)];
        assert_eq!(
            Lineage::new(&open).check().unwrap_err().to_string(),
            "expected a to be closed, as b is its child, found it open"
        );
        let circle = [shard("a", &["b"], false, ALL), shard("b", &["a"], false, ALL)];
        assert_eq!(Lineage::new(&circle).check(), Err(BadListing::Cycle { shard: "a".into() }));
        let own = [shard("a", &["a"], false, ALL)];
        assert_eq!(Lineage::new(&own).check(), Err(BadListing::Cycle { shard: "a".into() }));
    }

    #[test]
    fn a_whole_listing_is_covered_by_its_open_shards() {
        let parent = shard("a", &[], false, ALL);
        let child =
            |starting: u64, range| Shard { starting: starting.into(), ..shard("b", &["a"], true, range) };
        let check = |listing: &[Shard]| Lineage::new(listing).check_all();
        assert_eq!(check(&[parent.clone(), child(1, ALL)]), Ok(()));
        assert!(matches!(check(&[]), Err(BadListing::Empty)));
        assert!(matches!(
            check(std::slice::from_ref(&parent)),
            Err(BadListing::Gap { range: HashRange::ALL })
        ));
        let half = child(1, (0, 9));
        assert!(
            matches!(check(&[parent.clone(), half]), Err(BadListing::Gap { range }) if range.start.0 == 10)
        );
        assert_eq!(
            check(&[parent, child(0, ALL)]).unwrap_err().to_string(),
            "expected b to begin after its parent a, found that it began before"
        );
    }

    #[test]
    fn coverage_is_exact() {
        let at = |ranges: &[(u128, u128)]| {
            let listing: Vec<_> = ranges
                .iter()
                .enumerate()
                .map(|(n, range)| shard(&n.to_string(), &[], true, *range))
                .collect();
            Lineage::new(&listing).check_coverage()
        };
        assert_eq!(at(&[ALL]), Ok(()));
        assert_eq!(at(&[(8, u128::MAX), (7, 7), (0, 6)]), Ok(()));
        assert!(
            matches!(at(&[(0, 6), (8, u128::MAX)]), Err(BadListing::Gap { range }) if range.start.0 == 7)
        );
        assert!(matches!(at(&[(0, u128::MAX - 1)]), Err(BadListing::Gap { .. })));
        assert!(matches!(at(&[ALL, (0, 7)]), Err(BadListing::Overlap { .. })));
        assert!(matches!(at(&[ALL, (8, 7)]), Err(BadListing::Reversed { .. })));
    }
}
