//! How a stream comes to have a given number of equal shards: rounds of splits, then rounds of merges.

use super::ids::ShardIndex;
use super::shard::HashRange;
use std::collections::BTreeSet;

/// One change of the lineage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    Split { shard: ShardIndex, at: u128 },
    Merge { left: ShardIndex, right: ShardIndex },
}

/// An open shard.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Open {
    pub shard: ShardIndex,
    pub range: HashRange,
}

/// The next steps, at most one for a shard; empty when the stream has its target. `open` is in the order of hash keys
/// and covers all of them.
pub(crate) fn next_round(open: &[Open], target: u32) -> Vec<Step> {
    let bounds = boundaries(open, target);
    let splits: Vec<Step> = open
        .iter()
        .filter_map(|&Open { shard, range }| {
            let inside: Vec<u128> =
                bounds.range(range.start..=range.end).copied().filter(|&b| b > range.start).collect();
            inside.get(inside.len() / 2).map(|&at| Step::Split { shard, at })
        })
        .collect();
    if !splits.is_empty() {
        return splits;
    }
    let mut merges = Vec::new();
    let mut at = 0;
    while let Some([left, right]) = open.get(at..at + 2) {
        let join = right.range.start != 0 && !bounds.contains(&right.range.start);
        if join {
            merges.push(Step::Merge { left: left.shard, right: right.shard });
        }
        at += if join { 2 } else { 1 };
    }
    merges
}

/// The intended beginnings of shards, without 0. The present beginning of a shard stays, but for rounding: otherwise
/// doubling three shards would first cut slivers of one key.
fn boundaries(open: &[Open], target: u32) -> BTreeSet<u128> {
    let starts: BTreeSet<u128> =
        open.iter().map(|open| open.range.start).filter(|&start| start != 0).collect();
    let tolerance = (open.len() as u128).max(u128::from(target));
    let count = u128::from(target.max(1));
    let (mut width, mut rest) = (u128::MAX / count, u128::MAX % count + 1);
    if rest == count {
        (width, rest) = (width.wrapping_add(1), 0);
    }
    (1..count)
        .map(|i| i * width + i * rest / count)
        .map(|ideal| {
            let near = starts.range(ideal.saturating_sub(tolerance)..=ideal.saturating_add(tolerance));
            near.copied().min_by_key(|start| start.abs_diff(ideal)).unwrap_or(ideal)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn even(count: u128) -> Vec<Open> {
        let width = u128::MAX / count;
        let end = |i| {
            if i == count - 1 { u128::MAX } else { width * (i + 1) - 1 }
        };
        (0..count)
            .map(|i| Open { shard: ShardIndex(i as u32), range: HashRange { start: width * i, end: end(i) } })
            .collect()
    }

    #[test]
    fn doubling_splits_each_shard_once() {
        for count in 1..50u32 {
            let round = next_round(&even(u128::from(count)), count * 2);
            assert_eq!(round.len(), count as usize);
            assert!(round.iter().all(|step| matches!(step, Step::Split { .. })));
        }
    }

    #[test]
    fn halving_merges_pairs() {
        for count in 1..50u32 {
            let round = next_round(&even(u128::from(count) * 2), count);
            assert_eq!(round.len(), count as usize);
            assert!(
                round.iter().all(|step| matches!(step, Step::Merge { left, right } if right.0 == left.0 + 1))
            );
        }
    }

    #[test]
    fn a_stream_that_has_its_shards_is_left_alone() {
        for count in 1..50u32 {
            assert_eq!(next_round(&even(u128::from(count)), count), []);
        }
    }
}
