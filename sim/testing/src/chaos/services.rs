//! The lease table and the stream of a world, as workers reach them. They answer at once; the way to and from a worker
//! belongs to the world.

use crate::harness::{Source, Time, index, wall_ms};
use leasehold::engine::input::{Cause, ConsumerState, Outcome, Refusal, Reply, ShardPage, StreamState, Why};
use leasehold::engine::output::{IteratorFrom, ShardFilter as Filter, StreamOp};
use leasehold::engine::shard::{ChildShard, Shard};
use leasehold::internals::{Answer, Cursor};
use leasehold::{HashKey, HashRange, Position, Record, SequenceNumber, ShardId, Wall};
use leasehold_local_aws::kinesis::{
    self, ApiError, ConsumerStatus, ConsumerSummary, IteratorStart, ListShards, Push, ShardFilter,
    ShardIndex, ShardInfo, ShardIterator, StreamStatus, Subscription,
};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The part of a stream's answer that stays at the worker.
#[derive(Clone, Debug, Default)]
pub(crate) enum Carry {
    #[default]
    Nothing,
    Iterator(String),
    Records(Answer),
    Subscription(Subscription),
    /// No event is due yet.
    NotYet(Subscription),
}

/// The worker's part of an operation on the stream: the cursor under the command named by the operation.
#[derive(Clone, Debug)]
pub(crate) enum Held {
    Iterator(String),
    Subscription(Subscription),
}

impl Held {
    /// For the digest of the world. A subscription has no text: its number and place follow from the requests before.
    pub(crate) fn text(&self) -> &str {
        match self {
            Held::Iterator(text) => text,
            Held::Subscription(_) => "subscription",
        }
    }
}

impl Source {
    /// Executes an operation on the stream.
    pub(crate) fn stream(&mut self, now: Time, op: &StreamOp, held: Option<&Held>) -> (Outcome, Carry) {
        let result = match op {
            StreamOp::Describe => self.describe(now),
            StreamOp::ListShards { filter, .. } => self.list(now, *filter),
            StreamOp::GetIterator { shard, from } => self.iterator(now, shard, *from),
            StreamOp::GetRecords { shard, limit, .. } => {
                let iterator = held.and_then(|held| match held {
                    Held::Iterator(text) => self.read_iterator(text),
                    Held::Subscription(_) => None,
                });
                match iterator {
                    Some(iterator) => self.records(now, shard, iterator, *limit),
                    None => return (gone("an iterator that is kept"), Carry::Nothing),
                }
            }
            StreamOp::DescribeConsumer { stream, name } => self.describe_consumer(now, stream, name),
            StreamOp::RegisterConsumer { stream, name } => self.register_consumer(now, stream, name),
            StreamOp::Subscribe { shard, consumer, from } => self.subscribe(now, shard, consumer, *from),
            StreamOp::NextEvent { shard, .. } => match held {
                Some(Held::Subscription(subscription)) => {
                    Ok(self.next_event(now, shard, subscription.clone()))
                }
                _ => return (gone("a subscription that is kept"), Carry::Nothing),
            },
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
        let shard = index(shard);
        let iterator = self.kinesis.get_shard_iterator(wall_ms(now), self.id, shard, start(from))?;
        Ok((Outcome::Applied(Reply::Iterator), Carry::Iterator(write_iterator(iterator))))
    }

    fn records(
        &mut self, now: Time, shard: &ShardId, iterator: ShardIterator, limit: u32,
    ) -> Result<(Outcome, Carry), ApiError> {
        let page = self.kinesis.get_records(wall_ms(now), &iterator, Some(limit))?;
        let answer = Answer {
            records: page.records.into_iter().map(|read| record(shard, read)).collect(),
            behind_ms: u64::try_from(page.millis_behind_latest).unwrap_or(0),
            next: page.next.map(|next| Cursor::Iterator(write_iterator(next))),
            children: page.child_shards.into_iter().map(child).collect(),
            is_pushed: false,
        };
        // The worker itself reports the records after it has taken them in.
        Ok((Outcome::Applied(Reply::Done), Carry::Records(answer)))
    }

    fn describe_consumer(
        &mut self, now: Time, stream: &str, name: &str,
    ) -> Result<(Outcome, Carry), ApiError> {
        let found = self.kinesis.describe_consumer(wall_ms(now), None, Some((stream, name)))?;
        Ok(consumer(&found))
    }

    fn register_consumer(
        &mut self, now: Time, stream: &str, name: &str,
    ) -> Result<(Outcome, Carry), ApiError> {
        let made = self.kinesis.register_consumer(wall_ms(now), stream, name, BTreeMap::new())?;
        Ok(consumer(&made))
    }

    fn subscribe(
        &mut self, now: Time, shard: &ShardId, consumer: &str, from: IteratorFrom,
    ) -> Result<(Outcome, Carry), ApiError> {
        let shard = index(shard);
        let subscription = self.kinesis.subscribe_to_shard(wall_ms(now), consumer, shard, start(from))?;
        Ok((Outcome::Applied(Reply::Subscribed), Carry::Subscription(subscription)))
    }

    fn next_event(&mut self, now: Time, shard: &ShardId, mut subscription: Subscription) -> (Outcome, Carry) {
        match self.kinesis.push(wall_ms(now), &mut subscription) {
            Push::Event(event) => {
                let answer = Answer {
                    records: event.records.into_iter().map(|read| record(shard, read)).collect(),
                    behind_ms: u64::try_from(event.millis_behind_latest).unwrap_or(0),
                    next: event.continuation.map(|_| Cursor::Subscription(Arc::new(subscription))),
                    children: event.child_shards.into_iter().map(child).collect(),
                    is_pushed: true,
                };
                (Outcome::Applied(Reply::Done), Carry::Records(answer))
            }
            Push::WaitUntil(_) => (Outcome::Applied(Reply::Done), Carry::NotYet(subscription)),
            Push::Over => (refused(Why::Expired, "the subscription is over".to_owned()), Carry::Nothing),
            Push::Failed(error) => (failure(error), Carry::Nothing),
        }
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

fn start(from: IteratorFrom) -> IteratorStart {
    let number = |position: Position| kinesis::SequenceNumber::from_words(position.sequence.words());
    match from {
        IteratorFrom::TrimHorizon => IteratorStart::TrimHorizon,
        IteratorFrom::Latest => IteratorStart::Latest,
        IteratorFrom::AtTimestamp(wall) => IteratorStart::AtTimestamp(wall.0),
        IteratorFrom::At(position) => IteratorStart::AtSequence(number(position)),
        IteratorFrom::After(position) => IteratorStart::AfterSequence(number(position)),
    }
}

fn consumer(found: &ConsumerSummary) -> (Outcome, Carry) {
    let state =
        ConsumerState { arn: found.arn.as_str().into(), active: found.status == ConsumerStatus::Active };
    (Outcome::Applied(Reply::Consumer(state)), Carry::Nothing)
}

fn record(shard: &ShardId, read: kinesis::ReadRecord) -> Record {
    let position = Position::of(sequence(read.sequence_number));
    let mut record = Record::new(shard.clone(), position, read.partition_key, read.data);
    record.arrival = Some(Wall(read.arrival_ms));
    record
}

fn write_iterator(iterator: ShardIterator) -> String {
    format!("{}/{}/{}", iterator.shard.0, iterator.position, iterator.issued_ms)
}

fn sequence(number: kinesis::SequenceNumber) -> SequenceNumber {
    SequenceNumber::from_words(number.to_words())
}

fn name(shard: ShardIndex) -> ShardId {
    shard.to_string().into()
}

fn range(range: kinesis::HashRange) -> HashRange {
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

fn child(child: kinesis::ChildShard) -> ChildShard {
    ChildShard {
        id: name(child.shard),
        parents: child.parents.into_iter().map(name).collect(),
        range: range(child.hash_range),
    }
}

fn gone(what: &str) -> Outcome {
    refused(Why::Gone, format!("expected {what}, found nothing"))
}

fn refused(why: Why, detail: String) -> Outcome {
    Outcome::Refused(Refusal { why, current: None, detail })
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
    refused(why, error.message)
}
