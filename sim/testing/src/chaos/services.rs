//! The lease table and the stream of a world, as workers reach them.

use super::fault::Time;
use bytes::Bytes;
use leasehold::engine::format::Kcl;
use leasehold::engine::input::{Cause, Outcome, Refusal, Reply, ShardPage, StreamState, Why};
use leasehold::engine::output::{IteratorFrom, ShardFilter as Filter, StreamOp, TableOp};
use leasehold::engine::shard::{ChildShard, Shard};
use leasehold::internals::Answer;
use leasehold::{HashKey, HashRange, LeaseKey, LeaseRow, Position, Record, SequenceNumber, ShardId, Wall};
use leasehold_engine::testkit::{Items, LeaseTable};
use leasehold_local_aws::kinesis::{
    ApiError, CreateStream, EndOfShard, IteratorStart, Kinesis, KinesisConfig, ListShards, NewRecord,
    ShardFilter, ShardIndex, ShardInfo, ShardIterator, Stream, StreamId, StreamStatus,
};
use std::sync::Arc;

/// The stream's name, and the application's.
pub(crate) const STREAM: &str = "chaos-stream";
pub(crate) const APPLICATION: &str = "chaos-application";

/// The wall clocks' time at the begin of a world.
const EPOCH_MS: i64 = 1_700_000_000_000;

/// The wall clock.
pub(crate) fn wall_ms(now: Time) -> i64 {
    EPOCH_MS + i64::try_from(now).unwrap_or(i64::MAX - EPOCH_MS)
}

/// The part of a stream's answer that stays at the worker.
#[derive(Clone, Debug, Default)]
pub(crate) enum Carry {
    #[default]
    Nothing,
    Iterator(String),
    Records(Answer),
}

/// The services. They answer at once; the way to and from a worker belongs to the world.
#[derive(Debug)]
pub(crate) struct Services {
    kinesis: Kinesis,
    id: StreamId,
    table: LeaseTable<Items<Kcl>>,
}

impl Services {
    /// A stream with `shards` shards, and no table. A split or merge takes `update_ms`.
    pub(crate) fn new(shards: u32, update_ms: Time) -> Result<Self, ApiError> {
        let mut kinesis = Kinesis::new(KinesisConfig {
            update_ms: i64::try_from(update_ms).unwrap_or(0),
            end_of_shard: EndOfShard::OwnAnswer,
            ..KinesisConfig::instant()
        });
        let id = kinesis.create_stream(EPOCH_MS, &CreateStream::provisioned(STREAM, shards))?;
        let mut table = LeaseTable::empty(Items(Kcl));
        table.rows = None;
        Ok(Self { kinesis, id, table })
    }

    /// Executes an operation on the lease table.
    pub(crate) fn table(&mut self, op: &TableOp) -> Outcome {
        self.table.execute(op)
    }

    /// The row of a lease, if any.
    pub(crate) fn row(&self, key: &LeaseKey) -> Option<LeaseRow> {
        self.table.read(key).and_then(|row| row.lease().cloned())
    }

    /// The present stream.
    pub(crate) fn truth(&mut self, now: Time) -> Option<&Stream> {
        self.kinesis.advance(wall_ms(now));
        self.kinesis.stream(STREAM)
    }

    /// Puts a record; returns its shard, and its place in the shard, from 1.
    pub(crate) fn put(&mut self, now: Time, key: &Arc<str>, data: Bytes) -> Option<(ShardIndex, u64)> {
        let record = NewRecord { data, partition_key: key.clone(), explicit_hash_key: None };
        let written = self.kinesis.put_record(wall_ms(now), self.id, record, None).ok()?;
        Some((written.shard, written.sequence_number.parts()?.position))
    }

    /// Begins to split an open shard in the middle. Returns the shard, unless a split is not possible now.
    pub(crate) fn split(&mut self, now: Time, pick: u64, most: usize) -> Option<ShardIndex> {
        let open = self.open(now);
        let (shard, range) = *open.get(pick as usize % open.len().max(1))?;
        let middle = range.start + (range.end - range.start) / 2 + 1;
        let done =
            open.len() < most && self.kinesis.split_shard(wall_ms(now), self.id, shard, middle).is_ok();
        done.then_some(shard)
    }

    /// Begins to merge two open shards. Returns the first shard, unless a merge is not possible now.
    pub(crate) fn merge(&mut self, now: Time, pick: u64) -> Option<ShardIndex> {
        let open = self.open(now);
        let left = pick as usize % open.len().saturating_sub(1).max(1);
        let ((left, _), (right, _)) = (*open.get(left)?, *open.get(left + 1)?);
        let done = self.kinesis.merge_shards(wall_ms(now), self.id, left, right);
        done.is_ok().then_some(left)
    }

    fn open(&mut self, now: Time) -> Vec<(ShardIndex, leasehold_local_aws::kinesis::HashRange)> {
        let mut open: Vec<_> = match self.truth(now) {
            Some(stream) => stream.shards().filter(|shard| shard.is_open()).collect(),
            None => Vec::new(),
        };
        open.sort_by_key(|shard| shard.hash_range().start);
        open.iter().map(|shard| (shard.index(), shard.hash_range())).collect()
    }

    /// Executes an operation on the stream. `iterator` is the worker's iterator under the command named by the
    /// operation.
    pub(crate) fn stream(&mut self, now: Time, op: &StreamOp, iterator: Option<&str>) -> (Outcome, Carry) {
        let result = match op {
            StreamOp::Describe => self.describe(now),
            StreamOp::ListShards { filter, .. } => self.list(now, *filter),
            StreamOp::GetIterator { shard, from } => self.iterator(now, shard, *from),
            StreamOp::GetRecords { shard, limit, .. } => {
                match iterator.and_then(|text| self.read_iterator(text)) {
                    Some(iterator) => self.records(now, shard, iterator, *limit),
                    None => return (gone("an iterator that is kept"), Carry::Nothing),
                }
            }
        };
        result.unwrap_or_else(|error| (failure(error), Carry::Nothing))
    }

    fn describe(&mut self, now: Time) -> Result<(Outcome, Carry), ApiError> {
        let summary = self.kinesis.describe_stream_summary(wall_ms(now), self.id)?;
        let state = StreamState {
            readable: matches!(summary.status, StreamStatus::Active | StreamStatus::Updating),
            created: Wall(summary.created_ms),
            arn: summary.arn.into(),
        };
        Ok((Outcome::Applied(Reply::Stream(state)), Carry::Nothing))
    }

    /// All shards: worlds are too small for a second page.
    fn list(&mut self, now: Time, filter: Filter) -> Result<(Outcome, Carry), ApiError> {
        let request = ListShards {
            stream: Some(self.id.into()),
            filter: Some(match filter {
                Filter::All => ShardFilter::FromTrimHorizon,
                Filter::AtTrimHorizon => ShardFilter::AtTrimHorizon,
                Filter::AtLatest => ShardFilter::AtLatest,
                Filter::AtTimestamp(wall) => ShardFilter::AtTimestamp(wall.0),
            }),
            ..ListShards::default()
        };
        let page = self.kinesis.list_shards(wall_ms(now), &request)?;
        let shards = page.shards.into_iter().map(shard).collect();
        let page = ShardPage { shards, more: false };
        Ok((Outcome::Applied(Reply::Shards(page)), Carry::Nothing))
    }

    fn iterator(
        &mut self, now: Time, shard: &ShardId, from: IteratorFrom,
    ) -> Result<(Outcome, Carry), ApiError> {
        let number = |position: Position| {
            leasehold_local_aws::kinesis::SequenceNumber::from_words(position.sequence.words())
        };
        let start = match from {
            IteratorFrom::TrimHorizon => IteratorStart::TrimHorizon,
            IteratorFrom::Latest => IteratorStart::Latest,
            IteratorFrom::AtTimestamp(wall) => IteratorStart::AtTimestamp(wall.0),
            IteratorFrom::At(position) => IteratorStart::AtSequence(number(position)),
            IteratorFrom::After(position) => IteratorStart::AfterSequence(number(position)),
        };
        let shard = index(shard);
        let iterator = self.kinesis.get_shard_iterator(wall_ms(now), self.id, shard, start)?;
        Ok((Outcome::Applied(Reply::Iterator), Carry::Iterator(write_iterator(iterator))))
    }

    fn records(
        &mut self, now: Time, shard: &ShardId, iterator: ShardIterator, limit: u32,
    ) -> Result<(Outcome, Carry), ApiError> {
        let page = self.kinesis.get_records(wall_ms(now), &iterator, Some(limit))?;
        let record = |read: leasehold_local_aws::kinesis::ReadRecord| {
            let position = Position::of(sequence(read.sequence_number));
            let mut record = Record::new(shard.clone(), position, read.partition_key, read.data);
            record.arrival = Some(Wall(read.arrival_ms));
            record
        };
        let answer = Answer {
            records: page.records.into_iter().map(record).collect(),
            behind_ms: u64::try_from(page.millis_behind_latest).unwrap_or(0),
            next: page.next.map(write_iterator),
            children: page.child_shards.into_iter().map(child).collect(),
        };
        // The worker itself reports the records after it has taken them in.
        Ok((Outcome::Applied(Reply::Done), Carry::Records(answer)))
    }

    fn read_iterator(&self, text: &str) -> Option<ShardIterator> {
        let mut parts = text.split('/');
        Some(ShardIterator {
            stream: self.id,
            shard: ShardIndex(parts.next()?.parse().ok()?),
            position: parts.next()?.parse().ok()?,
            issued_ms: parts.next()?.parse().ok()?,
        })
    }
}

fn write_iterator(iterator: ShardIterator) -> String {
    format!("{}/{}/{}", iterator.shard.0, iterator.position, iterator.issued_ms)
}

/// The number of a shard of ours.
pub(crate) fn index(shard: &ShardId) -> ShardIndex {
    ShardIndex::parse(shard.as_str()).unwrap_or(ShardIndex(u32::MAX))
}

/// The place of a record in its shard, from 1.
pub(crate) fn place(position: Position) -> Option<u64> {
    let number = leasehold_local_aws::kinesis::SequenceNumber::from_words(position.sequence.words());
    number.parts().map(|parts| parts.position)
}

fn sequence(number: leasehold_local_aws::kinesis::SequenceNumber) -> SequenceNumber {
    SequenceNumber::from_words(number.to_words())
}

fn name(shard: ShardIndex) -> ShardId {
    shard.to_string().into()
}

fn range(range: leasehold_local_aws::kinesis::HashRange) -> HashRange {
    HashRange { start: HashKey(range.start), end: HashKey(range.end) }
}

fn shard(info: ShardInfo) -> Shard {
    Shard {
        id: name(info.shard),
        parent: info.parent.map(name),
        adjacent_parent: info.adjacent_parent.map(name),
        range: range(info.hash_range),
        starting: sequence(info.starting_sequence),
        ending: info.ending_sequence.map(sequence),
    }
}

fn child(child: leasehold_local_aws::kinesis::ChildShard) -> ChildShard {
    ChildShard {
        id: name(child.shard),
        parents: child.parents.into_iter().map(name).collect(),
        range: range(child.hash_range),
    }
}

fn gone(what: &str) -> Outcome {
    Outcome::Refused(Refusal {
        why: Why::Gone,
        current: None,
        detail: format!("expected {what}, found nothing"),
    })
}

fn failure(error: ApiError) -> Outcome {
    let why = match error.code {
        "ResourceNotFoundException" => Why::NotFound,
        "ResourceInUseException" => Why::InUse,
        "ExpiredIteratorException" | "ExpiredNextTokenException" => Why::Expired,
        "ProvisionedThroughputExceededException" | "LimitExceededException" => {
            return Outcome::NotSent(Cause::Throttled);
        }
        _ => Why::Invalid,
    };
    Outcome::Refused(Refusal { why, current: None, detail: error.message })
}
