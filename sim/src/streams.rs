//! The streams of a world: one that has no identifier, or several of one account, whose workers read them all.
//!
//! The name of a stream of several says which one of how many it is, so that the key of a lease alone tells the number of its shard.
//! Shards of all streams are numbered together: those of the first of two streams have the even numbers, those of the second the
//! odd ones. In one stream, the number of a shard is the one in its id. Streams have shards of the same ids, as they do at AWS.

use leasehold_engine::config::Config;
use leasehold_engine::ids::ShardId;
use leasehold_engine::stream_id::{StreamId, split_key};
use leasehold_local_aws::kinesis::ShardIndex;

/// A stream, by its place among those of its world.
pub(crate) type StreamNo = u32;

/// A shard, by its number among those of all streams.
type ShardNo = u32;

/// When all streams of a world were created, in seconds since 1970.
pub(crate) const CREATED_S: u64 = 1_699_999_940;

/// Whose streams they are.
const ACCOUNT: &str = "111122223333";

/// The name of the stream of a world that has one.
const ONLY: &str = "orders";

/// What names begin with where there are several.
const PREFIX: &str = "orders-";

/// What stands between the place of a stream and how many there are.
const OF: &str = "-of-";

/// How many streams there may be.
pub(crate) const MOST: u32 = 8;

/// The streams of a world.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Streams(u32);

impl Default for Streams {
    fn default() -> Self {
        Self(1)
    }
}

impl Streams {
    /// So many.
    pub(crate) fn new(count: u32) -> Self {
        Self(count.max(1))
    }

    pub(crate) fn are_several(self) -> bool {
        self.0 > 1
    }

    /// Whether there are so many.
    pub(crate) fn are(self, count: u32) -> bool {
        self.0 == count
    }

    /// All of them.
    pub(crate) fn all(self) -> std::ops::Range<StreamNo> {
        0..self.0
    }

    /// What a stream is called.
    pub(crate) fn name(self, stream: StreamNo) -> String {
        match self.are_several() {
            true => format!("{PREFIX}{stream}{OF}{}", self.0),
            false => ONLY.to_owned(),
        }
    }

    /// The identifier of a stream, where there are several.
    pub(crate) fn id(self, stream: StreamNo) -> Option<StreamId> {
        let id = self.are_several().then(|| StreamId::new(ACCOUNT, &self.name(stream), CREATED_S));
        id?.ok()
    }

    /// The stream of a shard, and the number that the shard has there.
    pub(crate) fn place(self, shard: ShardNo) -> (StreamNo, ShardIndex) {
        (shard % self.0, ShardIndex(shard / self.0))
    }

    /// The stream of a shard.
    pub(crate) fn of(self, shard: ShardNo) -> StreamNo {
        shard % self.0
    }

    /// The shard that has this number in its stream.
    pub(crate) fn shard(self, stream: StreamNo, index: ShardIndex) -> ShardNo {
        index.0 * self.0 + stream
    }

    /// What the engine calls a shard, which is also the key of its lease.
    pub(crate) fn name_of(self, shard: ShardNo) -> ShardId {
        let (stream, index) = self.place(shard);
        match self.id(stream) {
            Some(id) => id.lease(&index.to_string()).to_shard(),
            None => ShardId::from(index.to_string()),
        }
    }

    /// The same configuration for workers that read these streams.
    pub(crate) fn configured(self, config: Config) -> Config {
        let ids: Vec<StreamId> = self.all().filter_map(|stream| self.id(stream)).collect();
        match ids.is_empty() {
            true => config.with_stream(ONLY).with_streams(ids),
            false => config.with_stream("").with_streams(ids),
        }
    }
}

/// The place of the stream of this identifier, and how many there are.
pub(crate) fn place_of(id: &str) -> Option<(StreamNo, u32)> {
    let name = id.split(':').nth(1)?;
    let (stream, count) = name.strip_prefix(PREFIX)?.split_once(OF)?;
    let (stream, count) = (stream.parse().ok()?, count.parse().ok()?);
    (stream < count).then_some((stream, count))
}

/// The number of the shard that has this name within the engine, or whose lease has this key.
pub(crate) fn number(name: &str) -> Option<ShardNo> {
    if let Some(digits) = name.strip_prefix("shardId-") {
        return index(digits);
    }
    let (id, shard) = split_key(name)?;
    let (stream, count) = place_of(id)?;
    let index = index(shard.strip_prefix("shardId-")?)?;
    index.checked_mul(count)?.checked_add(stream)
}

/// The number in the id of a shard.
fn index(digits: &str) -> Option<u32> {
    if digits.len() != 12 {
        return None;
    }
    digits.bytes().try_fold(0u32, |sum, digit| match digit {
        b'0'..=b'9' => sum.checked_mul(10)?.checked_add(u32::from(digit - b'0')),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shard_of_several_streams_is_told_by_the_key_of_its_lease() {
        let two = Streams::new(2);
        for shard in 0..20 {
            assert_eq!(number(two.name_of(shard).as_str()), Some(shard));
            let (stream, index) = two.place(shard);
            assert_eq!((two.shard(stream, index), two.of(shard)), (shard, stream));
        }
        assert_eq!(two.name_of(5).as_str(), "111122223333:orders-1-of-2:1699999940:shardId-000000000002");
        for other in ["1:orders:2:shardId-000000000000", "1:orders-2-of-2:2:shardId-000000000000"] {
            assert_eq!(number(other), None, "{other}");
        }
    }

    #[test]
    fn where_there_is_one_stream_a_shard_has_the_number_in_its_id() {
        let one = Streams::default();
        assert_eq!(one.name_of(12).as_str(), "shardId-000000000012");
        assert_eq!((one.name(0), one.id(0)), ("orders".to_owned(), None));
        assert_eq!(number("shardId-000000000012"), Some(12));
        for other in ["shardId-12", "shardId-00000000001x", "worker-1", ""] {
            assert_eq!(number(other), None, "{other}");
        }
        assert_eq!(one.configured(Config::default()).stream(), "orders");
    }
}
