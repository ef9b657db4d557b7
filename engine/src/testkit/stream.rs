//! A stream in memory: its shards, and a worker's reads of the shards.

use super::refused;
use crate::ids::{OpId, ShardId};
use crate::input::{ConsumerState, Fetched, Outcome, Reply, ShardPage, StreamState, Why};
use crate::output::{ConsumerOp, IteratorFrom, ShardFilter, StreamOp};
use crate::position::{Position, SequenceNumber};
use crate::shard::{ChildShard, HashKey, HashRange, Shard};
use crate::time::Wall;
use std::collections::BTreeMap;
use std::ops::Range;

/// The id of the shard with this number, as Kinesis spells it.
pub fn shard_id(n: u32) -> ShardId {
    ShardId::from(format!("shardId-{n:012}"))
}

/// A stream without delays and failures. A record is its sequence number; numbers grow over all shards, from 1.
#[derive(Clone, Debug, Default)]
pub struct Stream {
    /// When the stream was created; absent: the stream does not exist.
    pub created: Option<Wall>,
    /// The stream's ARN, as the service says it; empty: the service says no ARN, and rows name no stream.
    pub arn: String,
    /// The listed shards.
    pub shards: BTreeMap<ShardId, Shard>,
    /// The readable records of each shard.
    pub records: BTreeMap<ShardId, Vec<u64>>,
    /// When the next records arrive. An iterator at a time begins with the first record of this time or later.
    pub now: Wall,
    /// The last record of each time at which records arrived.
    arrived: BTreeMap<Wall, u64>,
    sequence: u64,
}

impl Stream {
    /// A stream of `shards` open shards, with numbers from 0 and parts of the hash space that are equally large. Without
    /// records.
    pub fn of(shards: u32) -> Self {
        let mut stream = Self { created: Some(Wall(1)), ..Self::default() };
        let step = u128::MAX / u128::from(shards.max(1));
        for n in 0..shards {
            let start = HashKey(step * u128::from(n));
            let end = match n + 1 == shards {
                true => HashKey::MAX,
                false => HashKey(step * u128::from(n + 1) - 1),
            };
            stream.add(n, None, None, HashRange { start, end });
        }
        stream
    }

    fn add(&mut self, n: u32, parent: Option<u32>, adjacent: Option<u32>, range: HashRange) {
        self.sequence += 1;
        let parents = parent.into_iter().chain(adjacent).map(shard_id);
        let shard = shard(shard_id(n), parents, range, self.sequence, None);
        self.insert(shard);
    }

    /// Lists one more shard, which has no records.
    pub fn insert(&mut self, shard: Shard) {
        self.records.insert(shard.id.clone(), Vec::new());
        self.shards.insert(shard.id.clone(), shard);
    }

    /// Appends `count` records to the shard with this number. Absent: the shard does not exist.
    #[must_use]
    pub fn put(&mut self, n: u32, count: u64) -> Option<()> {
        let records = self.records.get_mut(&shard_id(n))?;
        records.extend(self.sequence + 1..=self.sequence + count);
        self.sequence += count;
        self.arrived.insert(self.now, self.sequence);
        Some(())
    }

    fn close(&mut self, n: u32) -> Option<HashRange> {
        let shard = self.shards.get_mut(&shard_id(n))?;
        self.sequence += 1;
        shard.ending = Some(SequenceNumber::from(self.sequence));
        Some(shard.range)
    }

    /// Splits the shard with this number in the middle. Gives the numbers of its children; absent: the shard does not
    /// exist.
    #[must_use]
    pub fn split(&mut self, n: u32) -> Option<(u32, u32)> {
        let HashRange { start, end } = self.close(n)?;
        let next = self.shards.len() as u32;
        let middle = start.0 + (end.0 - start.0) / 2;
        let [low, high] = [(start.0, middle), (middle + 1, end.0)]
            .map(|(start, end)| HashRange { start: HashKey(start), end: HashKey(end) });
        self.add(next, Some(n), None, low);
        self.add(next + 1, Some(n), None, high);
        Some((next, next + 1))
    }

    /// Merges two shards, the lower one first. Gives the number of their child; absent: one of the two does not exist.
    #[must_use]
    pub fn merge(&mut self, a: u32, b: u32) -> Option<u32> {
        let (low, high) = (self.close(a)?, self.close(b)?);
        let next = self.shards.len() as u32;
        let range = HashRange { start: low.start, end: high.end };
        self.add(next, Some(a), Some(b), range);
        Some(next)
    }

    /// The children of a shard, as named by the last answer to a read of the shard.
    pub fn children(&self, shard: &ShardId) -> Vec<ChildShard> {
        let children = self.shards.values().filter(|child| child.parents().any(|parent| parent == shard));
        children
            .map(|child| ChildShard {
                id: child.id.clone(),
                parents: child.parents().cloned().collect(),
                range: child.range,
            })
            .collect()
    }

    /// Whether the shard with this id is listed and takes no more records.
    pub fn is_closed(&self, shard: &ShardId) -> bool {
        self.shards.get(shard).is_some_and(|shard| !shard.is_open())
    }

    /// The shards of a listing. Shards have no times: the shards of the trim horizon, and of any time, are those without a
    /// parent.
    pub fn listed(&self, filter: ShardFilter) -> impl Iterator<Item = &Shard> {
        self.shards.values().filter(move |shard| match filter {
            ShardFilter::All => true,
            ShardFilter::AtLatest => shard.is_open(),
            ShardFilter::AtTrimHorizon | ShardFilter::AtTimestamp(_) => shard.parent.is_none(),
        })
    }

    /// Carries out an operation of the worker that reads by `reading`. A listing has one page. The stream has every consumer. A
    /// subscription is over when its reader has caught up.
    pub fn execute(&self, reading: &mut Reading, op_id: OpId, op: &StreamOp) -> Outcome {
        let Some(created) = self.created else {
            return refused(Why::NotFound, None);
        };
        match op {
            StreamOp::Describe => Outcome::Applied(Reply::Stream(StreamState {
                readable: true,
                created,
                arn: self.arn.as_str().into(),
            })),
            StreamOp::ListShards { filter, .. } => Outcome::Applied(Reply::Shards(ShardPage {
                shards: self.listed(*filter).cloned().collect(),
                more: false,
            })),
            StreamOp::GetIterator { shard, from } => match self.records.get(shard) {
                None => refused(Why::NotFound, None),
                Some(records) => {
                    reading.iterators.insert(op_id, self.start(records, *from));
                    Outcome::Applied(Reply::Iterator)
                }
            },
            StreamOp::GetRecords { shard, via, limit } => {
                self.get_records(reading, op_id, shard, *via, *limit)
            }
            StreamOp::RegisterConsumer { .. } => refused(Why::InUse, None),
            StreamOp::DescribeConsumer { stream, name } => {
                let arn = format!("{stream}/consumer/{name}:1").into();
                Outcome::Applied(Reply::Consumer(ConsumerState { arn, active: true }))
            }
            StreamOp::Subscribe { shard, from, .. } => match self.records.get(shard) {
                None => refused(Why::NotFound, None),
                Some(records) => {
                    reading.iterators.insert(op_id, self.start(records, *from));
                    Outcome::Applied(Reply::Subscribed)
                }
            },
            StreamOp::NextEvent { shard, via } => {
                match self.get_records(reading, op_id, shard, *via, EVENT_RECORDS) {
                    Outcome::Applied(Reply::Records(answer)) if answer.count == 0 && answer.end.is_none() => {
                        refused(Why::Expired, None)
                    }
                    answer => answer,
                }
            }
        }
    }

    /// The number of records before the place where an iterator starts.
    fn start(&self, records: &[u64], from: IteratorFrom) -> usize {
        match from {
            IteratorFrom::TrimHorizon => 0,
            IteratorFrom::AtTimestamp(time) => {
                let earlier = self.arrived.range(..time).next_back();
                records.partition_point(|record| *record <= earlier.map_or(0, |(_, last)| *last))
            }
            IteratorFrom::Latest => records.len(),
            IteratorFrom::At(position) => records.partition_point(|record| *record < number(position)),
            IteratorFrom::After(position) => records.partition_point(|record| *record <= number(position)),
        }
    }

    fn get_records(
        &self, reading: &mut Reading, op_id: OpId, shard: &ShardId, via: OpId, limit: u32,
    ) -> Outcome {
        let Some(start) = reading.iterators.get(&via).copied() else {
            return refused(Why::Gone, None);
        };
        let Some(records) = self.records.get(shard) else {
            return refused(Why::NotFound, None);
        };
        let end = records.len().min(start.saturating_add(limit as usize));
        let fetched = records.get(start..end).unwrap_or_default();
        let position = |record: &u64| Position::of(SequenceNumber::from(*record));
        let at_tip = end == records.len();
        let answer = Fetched {
            count: fetched.len() as u32,
            bytes: fetched.len() as u64 * BYTES_PER_RECORD,
            first: fetched.first().map(position),
            last: fetched.last().map(position),
            end: (at_tip && self.is_closed(shard)).then(|| self.children(shard)),
            ..no_records(if at_tip { 0 } else { 1000 })
        };
        reading.iterators.insert(op_id, end);
        reading.batches.insert(op_id, (shard.clone(), start..end));
        Outcome::Applied(Reply::Records(answer))
    }
}

const BYTES_PER_RECORD: u64 = 100;
/// The most records of an event.
const EVENT_RECORDS: u32 = 1_000;

/// The record at a position.
fn number(position: Position) -> u64 {
    let [_, _, number] = position.sequence.words();
    number
}

/// The reading of one worker: iterators and batches, by the commands that fetched them, and the processed records.
#[derive(Clone, Debug, Default)]
pub struct Reading {
    /// The processed records, in this order. Some records may appear twice.
    pub processed: BTreeMap<ShardId, Vec<u64>>,
    iterators: BTreeMap<OpId, usize>,
    batches: BTreeMap<OpId, (ShardId, Range<usize>)>,
}

impl Reading {
    /// Carries out an operation on the application, whose handlers process every batch at once.
    pub fn execute(&mut self, stream: &Stream, op: &ConsumerOp) -> Outcome {
        let ConsumerOp::Deliver { batch, after, .. } = op else {
            return Outcome::Applied(Reply::Done);
        };
        let Some((shard, batch)) = self.batches.remove(batch) else {
            return refused(Why::Gone, None);
        };
        let records = stream.records.get(&shard).and_then(|records| records.get(batch));
        let after = after.map_or(0, number);
        let left = records.unwrap_or_default().iter().filter(|record| **record > after);
        self.processed.entry(shard).or_default().extend(left);
        Outcome::Applied(Reply::Processed)
    }
}

/// A shard with these parents, and with the sequence numbers from `first` to `last`. Without `last`, the shard is open.
pub fn shard<P: Into<ShardId>>(
    id: impl Into<ShardId>, parents: impl IntoIterator<Item = P>, range: HashRange, first: u64,
    last: Option<u64>,
) -> Shard {
    let mut parents = parents.into_iter().map(Into::into);
    Shard {
        id: id.into(),
        parent: parents.next(),
        adjacent_parent: parents.next(),
        range,
        starting: first.into(),
        ending: last.map(Into::into),
    }
}

/// The answer to a read without records.
pub fn no_records(behind_ms: u64) -> Fetched {
    Fetched { behind_ms, ..Fetched::default() }
}
