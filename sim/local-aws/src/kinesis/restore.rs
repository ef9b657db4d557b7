//! A stream with a long past, made from a description of this past.

use super::Kinesis;
use super::error::{ApiError, ApiResult};
use super::ids::{ShardIndex, StreamId};
use super::log::StoredRecord;
use super::shard::HashRange;
use super::stream::{Stream, StreamStatus};
use super::streams::CreateStream;
use bytes::Bytes;
use std::sync::Arc;

/// One shard of such a stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShardPast {
    /// The shard's parents, listed before the shard: none, one (split) or two (merge).
    pub parents: [Option<ShardIndex>; 2],
    /// The shard's hash keys.
    pub hash_range: HashRange,
    /// The time of its opening.
    pub opened_ms: i64,
    /// When it ceased to.
    pub closed_ms: Option<i64>,
    /// Closed so long ago that lists no longer show the shard, and its records are gone.
    pub expired: bool,
    /// The number of records, spread evenly over the shard's time.
    pub records: u32,
    /// The content of each record.
    pub data: Bytes,
}

impl Kinesis {
    /// Creates a provisioned stream at rest as of `now_ms`, with these shards in the order of their numbers. No client
    /// can do this.
    ///
    /// # Errors
    /// If a stream of this name exists, or a shard names a parent that is listed later or is not closed.
    pub fn restore_stream(
        &mut self, now_ms: i64, name: &str, created_ms: i64, shards: &[ShardPast],
    ) -> ApiResult<StreamId> {
        if self.stream(name).is_some() {
            return Err(ApiError::in_use(format!("Stream {name} exists already.")));
        }
        for (index, shard) in shards.iter().enumerate() {
            for parent in shard.parents.iter().flatten() {
                let before = shards[..index].get(parent.0 as usize);
                if before.is_none_or(|parent| parent.closed_ms.is_none()) {
                    return Err(ApiError::argument(format!(
                        "Shard {} has the parent {parent}, which is not a closed shard before it.",
                        ShardIndex(index as u32)
                    )));
                }
            }
        }
        let mut stream = self.new_stream(created_ms, &CreateStream::provisioned(name, 1), 1);
        stream.status = StreamStatus::Active;
        stream.shards.clear();
        stream.open.clear();
        for (index, past) in shards.iter().enumerate() {
            stream.restore_shard(now_ms, ShardIndex(index as u32), past);
        }
        Ok(self.add_stream(stream))
    }
}

impl Stream {
    fn restore_shard(&mut self, now_ms: i64, index: ShardIndex, past: &ShardPast) {
        let [parent, adjacent_parent] = past.parents;
        self.add_shard(past.opened_ms, past.hash_range, parent, adjacent_parent);
        let until_ms = past.closed_ms.unwrap_or(now_ms).max(past.opened_ms);
        let partition_key: Arc<str> = "key".into();
        if let Some(shard) = self.shard_mut(index) {
            for n in 0..i64::from(past.records) {
                shard.append(StoredRecord {
                    data: past.data.clone(),
                    partition_key: partition_key.clone(),
                    hash_key: past.hash_range.start,
                    arrival_ms: past.opened_ms + (until_ms - past.opened_ms) * n / i64::from(past.records),
                    encrypted: false,
                });
            }
        }
        if let Some(closed_ms) = past.closed_ms {
            self.close_shard(closed_ms, index);
        }
        if past.expired
            && let Some(shard) = self.shard_mut(index)
        {
            shard.expire();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{KinesisConfig, ListShards, ShardFilter};
    use super::*;

    fn past(
        parents: [Option<u32>; 2], range: (u128, u128), closed_ms: Option<i64>, expired: bool,
    ) -> ShardPast {
        ShardPast {
            parents: parents.map(|parent| parent.map(ShardIndex)),
            hash_range: HashRange { start: range.0, end: range.1 },
            opened_ms: 1_000,
            closed_ms,
            expired,
            records: 10,
            data: Bytes::from_static(b"x"),
        }
    }

    #[test]
    fn a_restored_stream_is_listed_and_read_as_if_it_had_been_there() {
        let half = 1 << 127;
        let shards = [
            past([None, None], (0, u128::MAX), Some(2_000), true),
            past([Some(0), None], (0, half - 1), Some(3_000), false),
            past([Some(0), None], (half, u128::MAX), Some(3_000), false),
            past([Some(1), Some(2)], (0, u128::MAX), None, false),
        ];
        let mut kinesis = Kinesis::new(KinesisConfig::default());
        let id = kinesis.restore_stream(9_000, "s", 500, &shards);
        assert!(id.is_ok());
        let request = ListShards {
            stream: Some("s".into()),
            filter: Some(ShardFilter::FromTrimHorizon),
            ..ListShards::default()
        };
        let listed = kinesis.list_shards(9_000, &request).map(|page| page.shards).unwrap_or_default();
        let ids: Vec<u32> = listed.iter().map(|info| info.shard.0).collect();
        assert_eq!(ids, [1, 2, 3], "the expired one is not listed");
        assert_eq!(listed[2].adjacent_parent, Some(ShardIndex(2)));
        let stream = kinesis.stream("s").expect("the stream");
        assert_eq!(stream.shard_for(half), Some(ShardIndex(3)));
        let counts: Vec<usize> = stream.shards().map(|shard| shard.records().count()).collect();
        assert_eq!(counts, [0, 10, 10, 10]);
        assert!(stream.shards().all(|shard| shard.next_position() == 11));
    }

    #[test]
    fn parents_stand_before_their_children_and_are_closed() {
        let open = past([None, None], (0, u128::MAX), None, false);
        let child = past([Some(0), None], (0, u128::MAX), None, false);
        for shards in [vec![child.clone()], vec![open, child]] {
            let mut kinesis = Kinesis::new(KinesisConfig::default());
            assert!(kinesis.restore_stream(9_000, "s", 500, &shards).is_err());
        }
    }
}
