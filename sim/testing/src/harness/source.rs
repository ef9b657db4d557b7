//! The stream of a world.

use super::fault::Time;
use bytes::Bytes;
use leasehold::{Position, ShardId};
use leasehold_local_aws::kinesis::{
    ApiError, CreateStream, HashRange, Kinesis, KinesisConfig, NewRecord, SequenceNumber, ShardIndex, Stream,
    StreamId,
};
use std::sync::Arc;

/// The stream's name, and the application's.
pub const STREAM: &str = "chaos-stream";
pub const APPLICATION: &str = "chaos-application";

/// The wall clocks' time at the begin of a world.
const EPOCH_MS: i64 = 1_700_000_000_000;

/// How many shards may be open.
const MOST_SHARDS: usize = 8;

/// The wall clock.
pub fn wall_ms(now: Time) -> i64 {
    EPOCH_MS + i64::try_from(now).unwrap_or(i64::MAX - EPOCH_MS)
}

/// The number of a shard of ours.
pub fn index(shard: &ShardId) -> ShardIndex {
    ShardIndex::parse(shard.as_str()).unwrap_or(ShardIndex(u32::MAX))
}

/// The place of a record in its shard, from 1.
pub fn place(position: Position) -> Option<u64> {
    let number = SequenceNumber::from_words(position.sequence.words());
    number.parts().map(|parts| parts.position)
}

/// Kinesis, with one stream.
#[derive(Debug)]
pub struct Source {
    /// The service.
    pub kinesis: Kinesis,
    /// The stream.
    pub id: StreamId,
}

impl Source {
    /// A stream with `shards` shards.
    ///
    /// # Panics
    /// If the service refuses.
    pub fn new(config: KinesisConfig, shards: u32) -> Self {
        let mut kinesis = Kinesis::new(config);
        match kinesis.create_stream(EPOCH_MS, &CreateStream::provisioned(STREAM, shards)) {
            Ok(id) => Self { kinesis, id },
            Err(error) => panic!("expected the stream of a world to be created, but: {error}"),
        }
    }

    /// The present stream.
    ///
    /// # Panics
    /// If the stream was deleted; no world deletes it.
    pub fn truth(&mut self, now: Time) -> &Stream {
        self.kinesis.advance(wall_ms(now));
        match self.kinesis.stream(STREAM) {
            Some(stream) => stream,
            None => panic!("expected the stream of the world, found none"),
        }
    }

    /// Puts a record.
    ///
    /// # Errors
    /// If the service refuses the record.
    pub fn put(&mut self, now: Time, key: &Arc<str>, data: Bytes) -> Result<(), ApiError> {
        let record = NewRecord { data, partition_key: key.clone(), explicit_hash_key: None };
        self.kinesis.put_record(wall_ms(now), self.id, record, None).map(drop)
    }

    /// Begins to split an open shard in the middle. Returns the shard, unless a split is not possible now.
    pub fn split(&mut self, now: Time, pick: u64) -> Option<ShardIndex> {
        let open = self.open(now);
        let (shard, range) = *open.get(pick as usize % open.len().max(1))?;
        let middle = range.start + (range.end - range.start) / 2 + 1;
        let done = open.len() < MOST_SHARDS
            && self.kinesis.split_shard(wall_ms(now), self.id, shard, middle).is_ok();
        done.then_some(shard)
    }

    /// Begins to merge two open shards. Returns the first shard, unless a merge is not possible now.
    pub fn merge(&mut self, now: Time, pick: u64) -> Option<ShardIndex> {
        let open = self.open(now);
        let left = pick as usize % open.len().saturating_sub(1).max(1);
        let ((left, _), (right, _)) = (*open.get(left)?, *open.get(left + 1)?);
        let done = self.kinesis.merge_shards(wall_ms(now), self.id, left, right);
        done.is_ok().then_some(left)
    }

    fn open(&mut self, now: Time) -> Vec<(ShardIndex, HashRange)> {
        open(self.truth(now))
    }
}

/// The open shards, in the order of the hash space.
pub fn open(stream: &Stream) -> Vec<(ShardIndex, HashRange)> {
    let mut open: Vec<_> = stream
        .shards()
        .filter(|shard| shard.is_open())
        .map(|shard| (shard.index(), shard.hash_range()))
        .collect();
    open.sort_by_key(|(_, range)| range.start);
    open
}
