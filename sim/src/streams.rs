//! The streams of a world: one stream without an identifier, or several streams of one account. Each worker reads all
//! streams.
//!
//! In a world of several streams, a stream's name tells its place and the number of streams. So the key of a lease
//! alone tells the number of its shard. Shards of all streams are numbered together: with two streams, the first has
//! the even numbers and the second the odd numbers. In one stream, a shard's number is the number in its id. Shards of
//! different streams have the same ids, as at AWS.

use leasehold_engine::config::Config;
use leasehold_engine::ids::ShardId;
use leasehold_engine::stream_id::{StreamId, split_key};
use leasehold_local_aws::kinesis::ShardIndex;

/// A stream, by its place among the world's streams.
pub(crate) type StreamNo = u32;

/// A shard, by its number among all streams' shards.
type ShardNo = u32;

/// When all streams of a world were created, in seconds since 1970.
pub(crate) const CREATED_S: u64 = 1_699_999_940;

/// The account of the streams.
const ACCOUNT: &str = "111122223333";

/// The name of the stream in a world of one stream.
const ONLY: &str = "orders";

/// The start of stream names in a world of several streams.
const PREFIX: &str = "orders-";

/// The text between a stream's place and the number of streams.
const OF: &str = "-of-";

/// The greatest number of streams.
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
    /// Streams of this number.
    pub(crate) fn new(count: u32) -> Self {
        Self(count.max(1))
    }

    pub(crate) fn are_several(self) -> bool {
        self.0 > 1
    }

    /// Whether the number of streams is `count`.
    pub(crate) fn are(self, count: u32) -> bool {
        self.0 == count
    }

    /// All streams.
    pub(crate) fn all(self) -> std::ops::Range<StreamNo> {
        0..self.0
    }

    /// The name of a stream.
    pub(crate) fn name(self, stream: StreamNo) -> String {
        match self.are_several() {
            true => format!("{PREFIX}{stream}{OF}{}", self.0),
            false => ONLY.to_owned(),
        }
    }

    /// The identifier of a stream, in a world of several streams.
    pub(crate) fn id(self, stream: StreamNo) -> Option<StreamId> {
        let id = self.are_several().then(|| StreamId::new(ACCOUNT, &self.name(stream), CREATED_S));
        id?.ok()
    }

    /// The stream of a shard, and the shard's number in its stream.
    pub(crate) fn place(self, shard: ShardNo) -> (StreamNo, ShardIndex) {
        (shard % self.0, ShardIndex(shard / self.0))
    }

    /// The stream of a shard.
    pub(crate) fn of(self, shard: ShardNo) -> StreamNo {
        shard % self.0
    }

    /// The shard with this number in its stream.
    pub(crate) fn shard(self, stream: StreamNo, index: ShardIndex) -> ShardNo {
        index.0 * self.0 + stream
    }

    /// The engine's name of a shard, equal to the key of its lease.
    pub(crate) fn name_of(self, shard: ShardNo) -> ShardId {
        let (stream, index) = self.place(shard);
        match self.id(stream) {
            Some(id) => id.lease(&index.to_string()).to_shard(),
            None => ShardId::from(index.to_string()),
        }
    }

    /// The same configuration for workers of these streams.
    pub(crate) fn configured(self, config: Config) -> Config {
        let ids: Vec<StreamId> = self.all().filter_map(|stream| self.id(stream)).collect();
        match ids.is_empty() {
            true => config.with_stream(ONLY).with_streams(ids),
            false => config.with_stream("").with_streams(ids),
        }
    }
}

/// The place of the stream with this identifier, and the number of streams.
pub(crate) fn place_of(id: &str) -> Option<(StreamNo, u32)> {
    let name = id.split(':').nth(1)?;
    let (stream, count) = name.strip_prefix(PREFIX)?.split_once(OF)?;
    let (stream, count) = (stream.parse().ok()?, count.parse().ok()?);
    (stream < count).then_some((stream, count))
}

/// The number of the shard with this name in the engine, or with this lease key.
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
