//! Which shards were open at a time, as their sequence numbers tell.
//!
//! A worker fills an empty table from the answer of ListShards for its initial position; for a timestamp, the service
//! finds the open shards. A file with the whole list holds no times except in the sequence numbers: a shard's first
//! number holds the second of the shard's creation.

use leasehold_engine::internals::sync::Lineage;
use leasehold_engine::shard::Shard;
use leasehold_engine::time::Wall;
use leasehold_local_aws::kinesis::SequenceNumber;

/// The shards open at a time.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct OpenAt {
    pub shards: Vec<Shard>,
    /// The number of shards with a listed parent and a number without a time. These shards count as opened later, to
    /// keep their parents in the plan.
    pub untold: usize,
}

/// The listed shards open at a time. The choice begins no shard too early, and leaves out no hash keys.
///
/// Numbers tell whole seconds. In the second of a reshard, and in the next second, the parents still count as open: a
/// read from the time on gives their later records, and the children follow. A shard without a listed parent counts as
/// open from the beginning: the service, too, takes a time before its oldest record for the time of the oldest record.
pub(super) fn open_at(listing: &[Shard], time: Wall) -> OpenAt {
    let lineage = Lineage::new(listing);
    let mut untold = 0;
    let opened: Vec<i64> = (0..lineage.len())
        .map(|n| {
            let known = created_ms(lineage.shard(n));
            untold += usize::from(known.is_none() && !lineage.parents(n).is_empty());
            known.unwrap_or(i64::MAX)
        })
        .collect();
    // All children of a shard begin at once, when it ends.
    let closed = |n: usize| lineage.children(n).iter().map(|child| opened[*child]).max();
    let begun = |n: usize| lineage.parents(n).iter().filter_map(|p| closed(*p)).max();
    let shards = (0..lineage.len())
        .filter(|n| begun(*n).is_none_or(|at| at <= time.0))
        .filter(|n| closed(*n).is_none_or(|at| at > time.0))
        .map(|n| lineage.shard(n).clone())
        .collect();
    OpenAt { shards, untold }
}

/// The first moment, in ms since 1970, at which a shard was certainly open.
fn created_ms(shard: &Shard) -> Option<i64> {
    let parts = SequenceNumber::from_words(shard.starting.words()).parts()?;
    i64::try_from(parts.created_secs).ok()?.checked_add(1)?.checked_mul(1_000)
}

#[cfg(test)]
mod tests {
    use super::*;
    use leasehold_engine::ids::ShardId;
    use leasehold_engine::position;
    use leasehold_engine::shard::{HashKey, HashRange};
    use leasehold_local_aws::kinesis::{
        CreateStream, Kinesis, KinesisConfig, ListShards, ShardFilter, ShardIndex, ShardInfo, StreamRef,
    };
    use proptest::prelude::*;
    use std::collections::{BTreeMap, BTreeSet};

    const T0: i64 = 1_770_000_000_000;

    fn list(kinesis: &mut Kinesis, now: i64, filter: ShardFilter) -> Vec<Shard> {
        let request =
            ListShards { stream: Some(StreamRef::Name("s")), filter: Some(filter), ..ListShards::default() };
        let page = kinesis.list_shards(now, &request).unwrap();
        page.shards.into_iter().map(shard).collect()
    }

    fn shard(info: ShardInfo) -> Shard {
        let id = |shard: ShardIndex| ShardId::from(shard.to_string().as_str());
        let sequence = |number: SequenceNumber| position::SequenceNumber::from_words(number.to_words());
        Shard {
            id: id(info.shard),
            parent: info.parent.map(id),
            adjacent_parent: info.adjacent_parent.map(id),
            range: HashRange { start: HashKey(info.hash_range.start), end: HashKey(info.hash_range.end) },
            starting: sequence(info.starting_sequence),
            ending: info.ending_sequence.map(sequence),
        }
    }

    /// A stream that is split and merged at any open shard, with pauses (in ms) between.
    fn reshard(steps: &[(i64, usize, bool)]) -> (Kinesis, i64, Vec<i64>) {
        let mut kinesis = Kinesis::new(KinesisConfig::instant());
        kinesis.create_stream(T0, &CreateStream::provisioned("s", 2)).unwrap();
        let (mut now, mut times) = (T0, Vec::new());
        for (pause, at, split) in steps {
            now += pause;
            let mut open = list(&mut kinesis, now, ShardFilter::AtLatest);
            open.sort_by_key(|shard| shard.range);
            let index = |n: usize| ShardIndex(open[n].id.as_str()["shardId-".len()..].parse().unwrap());
            let at = at % open.len();
            let done = if *split {
                let HashRange { start, end } = open[at].range;
                let middle = start.0 + (end.0 - start.0) / 2 + 1;
                kinesis.split_shard(now, "s", index(at), middle)
            } else if at + 1 < open.len() {
                kinesis.merge_shards(now, "s", index(at), index(at + 1))
            } else {
                continue;
            };
            done.unwrap();
            times.push(now);
        }
        (kinesis, now + 10_000, times)
    }

    fn ids(shards: &[Shard]) -> BTreeSet<&str> {
        shards.iter().map(|shard| shard.id.as_str()).collect()
    }

    /// Whether a shard is in `from` or descends from a shard in `from`.
    fn is_reached(id: &str, from: &BTreeSet<&str>, all: &BTreeMap<&str, &Shard>) -> bool {
        let above = || all[id].parents().any(|parent| is_reached(parent.as_str(), from, all));
        from.contains(id) || above()
    }

    proptest! {
        #[test]
        fn it_is_what_the_service_says_or_begins_a_little_earlier(
            steps in prop::collection::vec((1i64..9_000, 0usize..9, any::<bool>()), 0..9),
            since in -5_000i64..60_000,
        ) {
            let (mut kinesis, now, times) = reshard(&steps);
            let time = (T0 + since).min(now);
            let all = list(&mut kinesis, now, ShardFilter::FromTrimHorizon);
            let open = open_at(&all, Wall(time));
            prop_assert_eq!(open.untold, 0);
            prop_assert_eq!(Lineage::new(&open.shards).check_coverage(), Ok(()));
            let truth = list(&mut kinesis, now, ShardFilter::AtTimestamp(time));
            let by_id = all.iter().map(|shard| (shard.id.as_str(), shard)).collect();
            for shard in &truth {
                prop_assert!(is_reached(shard.id.as_str(), &ids(&open.shards), &by_id), "{} is not read", shard.id);
            }
            // After two reshards within a second, a shard's numbers are ahead of the clock.
            let hurried = times.windows(2).any(|pair| pair[1] - pair[0] < 1_000) || times.first().is_some_and(|at| at - T0 < 1_000);
            let near = times.iter().any(|at| (0..=2_000).contains(&(time - at)));
            if !hurried && !near {
                prop_assert_eq!(ids(&open.shards), ids(&truth));
            }
        }
    }
}
