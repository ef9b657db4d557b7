//! The leases missing from an empty table after its filling: the filling listing left out parents of its shards, and
//! the ancestors of these parents.

use super::Lineage;
use super::plan::{PlannedLease, planned, sentinel};
use crate::config::InitialPosition;
use crate::ids::{LeaseKey, ShardId};
use crate::shard::Shard;
use std::collections::{BTreeMap, BTreeSet};

/// The leases missing from the table because the filling listing left out shards. `filled`: the leases created from the
/// filling listing, each with the parents named by the listing. `leased`: whether a shard has a lease. Some parents are
/// missing from the filling listing and present in `shards`. Of these parents and their ancestors, the oldest are to be
/// read from where the application began. The worker that ends an oldest shard creates the leases of its children.
///
/// Where the application begins with the open shards, no wanted shard was left out.
pub(crate) fn left_out(
    filled: &BTreeMap<LeaseKey, Vec<ShardId>>, leased: impl Fn(&ShardId) -> bool, shards: &[Shard],
    initial: InitialPosition,
) -> Vec<PlannedLease> {
    if initial == InitialPosition::Latest {
        return Vec::new();
    }
    let lineage = Lineage::new(shards);
    let find = |id: &ShardId| lineage.find(id).map(|n| lineage.shard(n));
    let mut above: Vec<(&Shard, &ShardId)> = Vec::new();
    for (key, named) in filled {
        let Some(child) = find(&key.to_shard()) else {
            continue;
        };
        let unnamed = child.parents().filter(|parent| !named.contains(parent));
        above.extend(unnamed.filter_map(&find).map(|parent| (parent, &child.id)));
    }
    let (mut seen, mut create) = (BTreeSet::new(), BTreeMap::new());
    while let Some((shard, child)) = above.pop() {
        if leased(&shard.id) || !seen.insert(&shard.id) {
            continue;
        }
        let mut parents = shard.parents().filter_map(&find).peekable();
        if parents.peek().is_none() {
            let reason = format!(
                "the listing that filled the table did not show it, and a later listing shows it before {child}, whose lease that listing \
                 brought"
            );
            create.insert(&shard.id, planned(shard, sentinel(initial), reason));
        }
        above.extend(parents.map(|parent| (parent, child)));
    }
    create.into_values().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::position::Checkpoint;
    use crate::shard::HashRange;

    fn shard(id: &str, parents: &[&str]) -> Shard {
        crate::testkit::shard(id, parents.iter().copied(), HashRange::ALL, 1, None)
    }

    /// The leases created after a filling with leases of these shards, each with its named parents.
    fn creates(filled: &[(&str, &[&str])], also_leased: &[&str], initial: InitialPosition) -> Vec<String> {
        // The shard a was split into b and c; c and d were merged into e.
        let shards = [
            shard("a", &[]),
            shard("b", &["a"]),
            shard("c", &["a"]),
            shard("d", &["z"]),
            shard("e", &["c", "d"]),
        ];
        let named = |parents: &[&str]| parents.iter().map(|id| ShardId::from(*id)).collect();
        let map = filled.iter().map(|(id, parents)| (LeaseKey::from(*id), named(parents)));
        let leased = |id: &ShardId| {
            let filled = filled.iter().any(|(known, _)| *known == id.as_str());
            filled || also_leased.contains(&id.as_str())
        };
        let created = left_out(&map.collect(), leased, &shards, initial);
        let start = match initial {
            InitialPosition::TrimHorizon => Checkpoint::TrimHorizon,
            _ => Checkpoint::AtTimestamp,
        };
        assert!(created.iter().all(|planned| planned.row.checkpoint == start));
        created.iter().map(|planned| planned.row.key.to_string()).collect()
    }

    #[test]
    fn the_oldest_shards_come_before_those_of_unnamed_parents() {
        let horizon = InitialPosition::TrimHorizon;
        assert_eq!(creates(&[("b", &[]), ("e", &[])], &[], horizon), ["a", "d"]);
        assert_eq!(creates(&[("b", &[]), ("e", &[])], &["c"], horizon), ["a", "d"]);
        assert_eq!(creates(&[("e", &["c"])], &[], horizon), ["d"]);
        assert_eq!(creates(&[("e", &["c", "d"])], &[], horizon), [""; 0]);
        assert_eq!(
            creates(&[("a", &[]), ("d", &[])], &[], horizon),
            [""; 0],
            "it is the first, and z is forgotten"
        );
        assert_eq!(creates(&[("b", &[])], &["a"], horizon), [""; 0], "it has a lease by now");
        let since = InitialPosition::AtTimestamp(crate::time::Wall(5));
        assert_eq!(creates(&[("b", &[])], &[], since), ["a"]);
        assert_eq!(creates(&[("b", &[])], &[], InitialPosition::Latest), [""; 0]);
    }
}
