//! `hash-space-covered`: once shard sync is quiet, leases cover the whole hash space.
//!
//! Each open shard has a lease, or an ancestor has an unfinished lease: the ancestor's end will create the missing
//! leases.

use super::ShardNo;
use super::fact::Mark;

/// One shard and its lease.
#[derive(Clone, Debug)]
pub struct Coverage {
    /// The shard.
    pub shard: ShardNo,
    /// Its parents.
    pub parents: [Option<ShardNo>; 2],
    /// Whether the shard takes records.
    pub open: bool,
    /// The checkpoint in its lease's row, if the lease has a row.
    pub lease: Option<Mark>,
}

/// The first open shard without a lease over its keys. `shards` are in the order of their numbers, without gaps.
pub fn uncovered(shards: &[Coverage]) -> Option<ShardNo> {
    // Parents come before children, so one pass suffices to find unfinished leases on the shard or above.
    let mut covered = vec![false; shards.len()];
    for (index, shard) in shards.iter().enumerate() {
        covered[index] = match shard.lease {
            Some(mark) => mark != Mark::End,
            None => {
                let mut parents = shard.parents.into_iter().flatten().peekable();
                parents.peek().is_some() && parents.any(|parent| covered.get(parent as usize) == Some(&true))
            }
        };
    }
    shards.iter().zip(covered).find(|(shard, covered)| shard.open && !covered).map(|(shard, _)| shard.shard)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shard(shard: u32, parents: [Option<u32>; 2], open: bool, lease: Option<Mark>) -> Coverage {
        Coverage { shard, parents, open, lease }
    }

    #[test]
    fn a_lease_of_an_unfinished_ancestor_covers() {
        let split = |lease| {
            [
                shard(0, [None, None], false, lease),
                shard(1, [Some(0), None], true, None),
                shard(2, [Some(0), None], true, Some(Mark::TrimHorizon)),
            ]
        };
        assert_eq!(uncovered(&split(Some(Mark::At(3)))), None);
        assert_eq!(uncovered(&split(Some(Mark::End))), Some(1));
        assert_eq!(uncovered(&split(None)), Some(1));
    }

    #[test]
    fn an_open_shard_that_is_said_to_have_ended_is_a_hole() {
        assert_eq!(uncovered(&[shard(0, [None, None], true, Some(Mark::End))]), Some(0));
        assert_eq!(uncovered(&[]), None);
    }
}
