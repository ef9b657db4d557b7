//! Shard iterators: where a reader is, and until when the service remembers it.

use super::Kinesis;
use super::error::{ApiError, ApiResult};
use super::ids::{ShardIndex, StreamId, StreamRef};
use super::sequence::SequenceNumber;
use super::shard::Shard;
use super::stream::Stream;
use super::token::{Kind, Opener, Sealer};
use crate::constraint::refuse_if;

/// `ShardIteratorType` with its arguments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IteratorStart {
    /// The oldest record left after trimming.
    TrimHorizon,
    /// After the newest record.
    Latest,
    /// At this number.
    AtSequence(SequenceNumber),
    /// After this number.
    AfterSequence(SequenceNumber),
    /// The first record that arrived at this time or later.
    AtTimestamp(i64),
}

/// A position in a shard, compact. [`Kinesis::iterator_token`] is the text a client sees.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ShardIterator {
    /// This creation of the stream.
    pub stream: StreamId,
    /// The shard.
    pub shard: ShardIndex,
    /// The position of the next read.
    pub position: u64,
    /// When the iterator was given out.
    pub issued_ms: i64,
}

const ITERATORS_PER_SECOND: u32 = 5;

impl Kinesis {
    /// `GetShardIterator`.
    pub fn get_shard_iterator<'a>(
        &mut self, now_ms: i64, stream: impl Into<StreamRef<'a>>, shard: ShardIndex, start: IteratorStart,
    ) -> ApiResult<ShardIterator> {
        let limits = self.config().limits;
        let stream = self.found(now_ms, stream.into())?;
        let id = stream.id;
        stream.age_shard(now_ms, shard);
        let found = stream.readable(shard)?;
        let position = stream.position(now_ms, found, start)?;
        let admitted = |shard: &mut Shard| shard.iterators.take(now_ms, ITERATORS_PER_SECOND);
        refuse_if(limits && !stream.shard_mut(shard).is_none_or(admitted), || stream.throttled(shard))?;
        Ok(ShardIterator { stream: id, shard, position, issued_ms: now_ms })
    }

    /// The iterator as opaque text for clients.
    pub fn iterator_token(&self, iterator: &ShardIterator) -> String {
        let stream = self.stream_by_id(iterator.stream).ok();
        let (created_ms, name) = stream.map_or((0, ""), |stream| (stream.created_ms, stream.name()));
        Sealer::new(Kind::Iterator)
            .i64(iterator.issued_ms)
            .i64(created_ms)
            .u32(iterator.stream.0)
            .u32(iterator.shard.0)
            .u64(iterator.position)
            .text(name)
            .seal()
    }

    /// The inverse of [`iterator_token`](Self::iterator_token); refuses foreign texts.
    pub fn iterator_from_token(&self, token: &str) -> ApiResult<ShardIterator> {
        let (iterator, created_ms, name) =
            open(token).ok_or_else(|| ApiError::argument("Invalid ShardIterator."))?;
        // Tokens outlive a stream, and a restart of the service too.
        match self.stream_by_id(iterator.stream) {
            Ok(stream) if stream.created_ms == created_ms && stream.name() == name => Ok(iterator),
            _ => Err(ApiError::not_found(format!(
                "Shard {} in stream {name} under account {} does not exist",
                iterator.shard,
                self.config().account_id
            ))),
        }
    }
}

fn open(token: &str) -> Option<(ShardIterator, i64, String)> {
    let mut opener = Opener::new(Kind::Iterator, token)?;
    let issued_ms = opener.i64()?;
    let created_ms = opener.i64()?;
    let stream = StreamId(opener.u32()?);
    let shard = ShardIndex(opener.u32()?);
    let position = opener.u64()?;
    Some((ShardIterator { stream, shard, position, issued_ms }, created_ms, opener.text()?))
}

impl Stream {
    pub(super) fn position(&self, now_ms: i64, shard: &Shard, start: IteratorStart) -> ApiResult<u64> {
        match start {
            IteratorStart::TrimHorizon => Ok(shard.log.first()),
            IteratorStart::Latest => Ok(shard.log.next()),
            IteratorStart::AtTimestamp(ms) if ms > now_ms => Err(ApiError::argument(format!(
                "The timestampInMillis parameter cannot be greater than the currentTimestampInMillis. \
                 timestampInMillis: {ms}, currentTimestampInMillis: {now_ms}"
            ))),
            IteratorStart::AtTimestamp(ms) => Ok(shard.log.at_time(ms)),
            IteratorStart::AtSequence(number) => self.position_of(shard, number, false),
            IteratorStart::AfterSequence(number) => self.position_of(shard, number, true),
        }
    }

    /// The first position at (or after) a number. The number must be a possible number of this shard.
    fn position_of(&self, shard: &Shard, number: SequenceNumber, after: bool) -> ApiResult<u64> {
        let index = shard.index();
        let invalid = |why: &str| {
            ApiError::argument(format!(
                "StartingSequenceNumber {number} used in GetShardIterator on shard {index} in stream {} \
                 is invalid{why}.",
                self.title()
            ))
        };
        let Some(parts) = number.parts() else {
            return Err(invalid(""));
        };
        if parts.shard != index.0 {
            return Err(ApiError::argument(format!(
                "Invalid StartingSequenceNumber. It encodes {}, while it was used in a call to a shard with {index}",
                ShardIndex(parts.shard)
            )));
        }
        if parts.created_secs != shard.created_secs() {
            return Err(invalid(" because it did not come from this stream"));
        }
        let below = match shard.record(parts.position) {
            Some((exact, _)) => number > exact || (after && number == exact),
            None => after,
        };
        Ok(parts.position.saturating_add(u64::from(below)))
    }

    pub(crate) fn throttled(&self, shard: ShardIndex) -> ApiError {
        ApiError::throughput(format!("Rate exceeded for shard {shard} in stream {}.", self.title()))
    }
}
