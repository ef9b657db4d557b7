//! What holds of every plan, and whether plans agree with KCL's own algorithm.

use super::*;
use crate::position::SequenceNumber;
use proptest::prelude::*;

/// KCL's algorithm as its documentation describes it, recursion and all.
struct Reference<'a> {
    shards: BTreeMap<&'a str, &'a Shard>,
    leased: BTreeSet<&'a str>,
    initial: InitialPosition,
    new: BTreeMap<&'a str, Checkpoint>,
    descendant: BTreeMap<&'a str, bool>,
    should_create: BTreeSet<&'a str>,
}

impl<'a> Reference<'a> {
    fn plan(
        leases: &'a Leases, listing: &'a [Shard], initial: InitialPosition,
    ) -> BTreeMap<&'a str, Checkpoint> {
        let mut this = Self {
            shards: listing.iter().map(|shard| (shard.id.as_str(), shard)).collect(),
            leased: leases.keys().map(LeaseKey::as_str).collect(),
            initial,
            new: BTreeMap::new(),
            descendant: BTreeMap::new(),
            should_create: BTreeSet::new(),
        };
        for shard in listing.iter().filter(|shard| shard.is_open()) {
            let id = shard.id.as_str();
            if !this.leased.contains(id) && !this.visit(id) {
                this.new.insert(id, sentinel(initial));
            }
        }
        this.new
    }

    fn visit(&mut self, id: &'a str) -> bool {
        if let Some(known) = self.descendant.get(id) {
            return *known;
        }
        let mut descendant = false;
        if let Some(shard) = self.shards.get(id).copied() {
            if self.leased.contains(id) {
                descendant = true;
            } else {
                let parents: Vec<&str> = shard
                    .parents()
                    .map(ShardId::as_str)
                    .filter(|parent| self.shards.contains_key(parent))
                    .collect();
                let mut descended = BTreeSet::new();
                for parent in &parents {
                    if self.visit(parent) || self.should_create.contains(parent) {
                        descendant = true;
                        descended.insert(*parent);
                    }
                }
                if descendant {
                    for parent in
                        parents.into_iter().filter(|parent| !self.leased.contains(parent)).collect::<Vec<_>>()
                    {
                        let within = descended.contains(parent);
                        if self.should_create.contains(parent) || !within {
                            self.new.entry(parent).or_insert(Checkpoint::AtTimestamp);
                        }
                        if let Some(checkpoint) = self.new.get_mut(parent) {
                            *checkpoint =
                                if within && !matches!(self.initial, InitialPosition::AtTimestamp(_)) {
                                    Checkpoint::TrimHorizon
                                } else {
                                    sentinel(self.initial)
                                };
                        }
                    }
                } else if self.initial != InitialPosition::Latest {
                    self.should_create.insert(id);
                }
            }
        }
        self.descendant.insert(id, descendant);
        descendant
    }
}

/// A stream's history: some first shards, then splits (an odd choice) and merges of neighbours (an even one).
fn grow(first: usize, choices: &[u16]) -> Vec<Shard> {
    let id = |n: usize| format!("shardId-{n:012}");
    let mut shards: Vec<Shard> = (0..first).map(|n| open(&id(n), &[])).collect();
    // The open shards, in the order of their (unspecified) hash ranges.
    let mut leaves: Vec<usize> = (0..first).collect();
    for (time, choice) in choices.iter().enumerate() {
        let starting = SequenceNumber::from(10 + time as u64);
        let at = usize::from(choice / 2) % leaves.len();
        let parents: Vec<usize> = if choice % 2 == 0 && at + 1 < leaves.len() {
            leaves.drain(at..at + 2).collect()
        } else {
            vec![leaves.remove(at)]
        };
        for parent in &parents {
            shards[*parent].ending = Some(starting);
        }
        let names: Vec<String> = parents.iter().map(|n| id(*n)).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        for _ in 0..if parents.len() == 1 { 2 } else { 1 } {
            let n = shards.len();
            let mut child = open(&id(n), &names);
            child.starting = starting;
            shards.push(child);
            leaves.insert(at, n);
        }
    }
    shards
}

fn checkpoints() -> impl Strategy<Value = Option<Checkpoint>> {
    prop_oneof![
        4 => Just(None),
        2 => Just(Some(Checkpoint::ShardEnd)),
        1 => Just(Some(middle())),
        1 => Just(Some(Checkpoint::TrimHorizon)),
        1 => Just(Some(Checkpoint::Latest)),
    ]
}

prop_compose! {
    /// A listing whose oldest closed shards are trimmed away, and leases for some of all its shards.
    fn worlds()(first in 1usize..5, choices in prop::collection::vec(0u16..200, 0..12), trimmed in 0usize..4)
        (held in prop::collection::vec(checkpoints(), 40), shards in Just(grow(first, &choices)), trimmed in Just(trimmed))
        -> (Vec<Shard>, Leases) {
        let leases = shards
            .iter()
            .zip(held)
            .filter_map(|(shard, held)| Some((shard.id.to_lease(), held?)))
            .collect();
        let mut gone = trimmed;
        let listed = shards
            .into_iter()
            .filter(|shard| {
                let goes = gone > 0 && !shard.is_open();
                gone -= usize::from(goes);
                !goes
            })
            .collect();
        (listed, leases)
    }
}

/// The same as [`brings_unlisted`], by looking at every shard for each lease.
fn brings_unlisted_by_search(leases: &Leases, unreadable: &BTreeSet<LeaseKey>, shards: &[Shard]) -> bool {
    leases.iter().any(|(lease, checkpoint)| {
        let listed = shards.iter().any(|shard| shard.id.as_str() == lease.as_str());
        let children =
            shards.iter().filter(|shard| shard.parents().any(|parent| parent.as_str() == lease.as_str()));
        let ids: BTreeSet<_> = children.clone().map(|child| &child.id).collect();
        let all_shown = ids.len() > 1 || children.clone().any(|child| child.parents().count() > 1);
        !checkpoint.is_end() && !listed && !unreadable.contains(lease) && !all_shown
    })
}

/// The same as [`open_at_start`] from the trim horizon, by looking at every shard for each parent.
fn oldest_by_search(shards: &[Shard]) -> BTreeSet<ShardId> {
    let listed = |id: &ShardId| shards.iter().any(|shard| shard.id == *id);
    let roots = shards.iter().filter(|shard| !shard.parents().any(listed));
    roots.map(|shard| shard.id.clone()).collect()
}

fn positions() -> impl Strategy<Value = InitialPosition> {
    prop::sample::select(ALL_POSITIONS.to_vec())
}

/// Shards without a lease, but with a leased descendant.
fn passed(leases: &Leases, shards: &[Shard]) -> BTreeSet<ShardId> {
    let unleased = shards.iter().filter(|shard| !leases.contains_key(shard.id.as_str()));
    unleased
        .filter(|shard| crate::sync::has_leased_descendant(leases, shards, &shard.id))
        .map(|shard| shard.id.clone())
        .collect()
}

/// The passed shards that were read, as the nearest leases below did not all begin where the application did.
fn read(leases: &Leases, shards: &[Shard]) -> BTreeSet<ShardId> {
    let reached = |from: &ShardId| {
        let mut stack = vec![from];
        let mut seen = BTreeSet::new();
        while let Some(id) = stack.pop() {
            for child in shards.iter().filter(|shard| shard.parents().any(|parent| parent == id)) {
                match leases.get(child.id.as_str()) {
                    Some(Checkpoint::Latest | Checkpoint::AtTimestamp) => {}
                    Some(_) => return true,
                    None if seen.insert(&child.id) => stack.push(&child.id),
                    None => {}
                }
            }
        }
        false
    };
    passed(leases, shards).into_iter().filter(reached).collect()
}

/// The open shards without a lease, and their ancestors up to the first lease.
fn needed(leases: &Leases, shards: &[Shard]) -> BTreeSet<ShardId> {
    let by_id: BTreeMap<&ShardId, &Shard> = shards.iter().map(|shard| (&shard.id, shard)).collect();
    let mut stack: Vec<&Shard> = shards.iter().filter(|shard| shard.is_open()).collect();
    let mut found = BTreeSet::new();
    while let Some(shard) = stack.pop() {
        if !leases.contains_key(shard.id.as_str()) && found.insert(shard.id.clone()) {
            stack.extend(shard.parents().filter_map(|parent| by_id.get(parent)));
        }
    }
    found
}

/// Whether no part of an open shard can stay unread for good: the shard has a lease, or a needed ancestor is unfinished
/// and will lead to the shard.
fn covered(id: &ShardId, shards: &BTreeMap<&str, &Shard>, leases: &Leases) -> bool {
    leases.contains_key(id.as_str())
        || shards.get(id.as_str()).is_some_and(|shard| {
            shard.parents().any(|parent| match leases.get(parent.as_str()) {
                Some(checkpoint) => !checkpoint.is_end(),
                None if !shards.contains_key(parent.as_str()) => {
                    let listing: Vec<Shard> = shards.values().copied().cloned().collect();
                    brings_unlisted(leases, &BTreeSet::new(), &listing)
                }
                None => covered(parent, shards, leases),
            })
        })
}

/// What is above a shard, as far as the listing tells.
fn above(id: &ShardId, shards: &[Shard]) -> BTreeSet<ShardId> {
    let mut found = BTreeSet::new();
    let mut stack = vec![id.clone()];
    while let Some(id) = stack.pop() {
        let shard = shards.iter().find(|shard| shard.id == id);
        for parent in shard.into_iter().flat_map(Shard::parents) {
            if found.insert(parent.clone()) {
                stack.push(parent.clone());
            }
        }
    }
    found
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    /// What an unfinished lease leads to is not begun at LATEST: the records before that would be lost. This holds of half-filled
    /// tables, too.
    #[test]
    fn no_open_shard_begins_at_latest_below_an_unfinished_ancestor((shards, leases) in worlds()) {
        for lease in plan(&leases, &shards, LATEST, false).unwrap().create {
            let id = lease.row.key.to_shard();
            let open = shards.iter().any(|shard| shard.id == id && shard.is_open());
            if open && lease.row.checkpoint == Checkpoint::Latest {
                for above in above(&id, &shards) {
                    let held = leases.get(above.as_str());
                    prop_assert!(held.is_none_or(|held| held.is_end()), "{id} begins at LATEST below {above}");
                }
            }
        }
    }

    #[test]
    fn agrees_with_the_original_where_nothing_is_to_be_bettered((shards, leases) in worlds(), initial in positions()) {
        let listed: BTreeSet<&str> = shards.iter().map(|shard| shard.id.as_str()).collect();
        let leases: Leases = leases.into_iter().filter(|(key, _)| listed.contains(key.as_str())).collect();
        // Where the original would read records again, our plan is better.
        if !needed(&leases, &shards).is_disjoint(&passed(&leases, &shards)) {
            return Ok(());
        }
        let expected: BTreeMap<String, Checkpoint> =
            Reference::plan(&leases, &shards, initial).into_iter().map(|(id, at)| (id.to_string(), at)).collect();
        let plan = plan(&leases, &shards, initial, false).unwrap();
        // A filled hole has an ended parent; no lease created by the original has a leased parent.
        let (holes, same): (Vec<_>, Vec<_>) = plan
            .create
            .iter()
            .partition(|lease| lease.row.parents.iter().any(|parent| leases.contains_key(parent.as_str())));
        let same: BTreeMap<String, Checkpoint> =
            same.into_iter().map(|lease| (lease.row.key.to_string(), lease.row.checkpoint)).collect();
        prop_assert_eq!(same, expected);
        if !leases.values().any(|checkpoint| checkpoint.is_end()) {
            prop_assert!(holes.is_empty());
        }
    }

    #[test]
    fn indices_agree_with_searches((shards, leases) in worlds(), unreadable in 0usize..40) {
        let unreadable = leases.keys().skip(unreadable).take(1).cloned().collect();
        prop_assert_eq!(
            brings_unlisted(&leases, &unreadable, &shards),
            brings_unlisted_by_search(&leases, &unreadable, &shards)
        );
        let oldest = open_at_start(&Lineage::new(&shards), TRIM);
        let oldest: BTreeSet<_> = oldest.into_iter().map(|shard| shard.id).collect();
        prop_assert_eq!(oldest, oldest_by_search(&shards));
    }

    #[test]
    fn invariants_of_every_plan((shards, mut leases) in worlds(), initial in positions()) {
        let by_id: BTreeMap<&str, &Shard> = shards.iter().map(|shard| (shard.id.as_str(), shard)).collect();
        let (passed, read) = (passed(&leases, &shards), read(&leases, &shards));
        let plan = plan(&leases, &shards, initial, false).unwrap();
        for lease in &plan.create {
            prop_assert!(!passed.contains(&lease.row.key.to_shard()), "{:?} was read before", lease);
        }
        let order: Vec<_> = plan
            .create
            .iter()
            .map(|lease| (by_id[lease.row.key.as_str()].starting, lease.row.key.clone()))
            .collect();
        prop_assert!(order.is_sorted());
        for lease in &plan.create {
            for parent in &lease.row.parents {
                let held = leases.get(parent.as_str());
                prop_assert!(held.is_none_or(|checkpoint| checkpoint.is_end()), "{:?} below unfinished", lease);
            }
            let below = lease
                .row
                .parents
                .iter()
                .any(|parent| leases.contains_key(parent.as_str()) || read.contains(parent));
            let open = by_id[lease.row.key.as_str()].is_open();
            let below = below || open && above(&lease.row.key.to_shard(), &shards).iter().any(|id| leases.contains_key(id.as_str()));
            let start = if below { Checkpoint::TrimHorizon } else { sentinel(initial) };
            prop_assert_eq!(lease.row.checkpoint, start);
        }
        for lease in plan.create {
            prop_assert_eq!(leases.insert(lease.row.key, lease.row.checkpoint), None);
        }
        for shard in shards.iter().filter(|shard| shard.is_open()) {
            prop_assert!(covered(&shard.id, &by_id, &leases), "{} is a hole", shard.id);
        }
        // Nothing more is missing once the plan has been carried out.
        prop_assert_eq!(planned_for(&leases, &shards, initial), []);
    }
}
