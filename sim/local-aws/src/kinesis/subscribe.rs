//! `SubscribeToShard` (enhanced fan-out): the service pushes events to a consumer, and the consumer asks for none.
//!
//! AWS does not document all of the behaviour. Here an idle shard brings an empty event every five seconds, an event has
//! at most 1 MiB of records, and a second call within five seconds is refused with `ResourceInUseException` rather than
//! with `LimitExceededException`.

use super::Kinesis;
use super::consumers::{Consumer, ConsumerStatus};
use super::error::{ApiError, ApiResult};
use super::ids::ShardIndex;
use super::iterator::{IteratorStart, ShardIterator};
use super::meter::Meter;
use super::read::{ChildShard, MOST_RECORDS, READ_BYTES_PER_SECOND, ReadRecord};
use super::sequence::SequenceNumber;
use super::shard::Shard;
use super::stream::Stream;
use std::sync::Arc;

/// The end of the subscriber's wait for the next event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Push {
    /// An event.
    Event(SubscribedEvent),
    /// No event is due before this moment, unless a record arrives or the shard closes.
    WaitUntil(i64),
    /// The subscription is over: its time is up, or the shard has ended.
    Over,
    /// The subscription ends with this exception.
    Failed(ApiError),
}

/// `SubscribeToShardEvent`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SubscribedEvent {
    /// In the order of their numbers; none if the event only says that the subscription lives.
    pub records: Vec<ReadRecord>,
    /// The next subscription begins after this number; none at the end of a closed shard.
    pub continuation: Option<SequenceNumber>,
    /// How far behind the tip the event ends; 0 at the tip.
    pub millis_behind_latest: i64,
    /// The children, only in the event that ends the shard.
    pub child_shards: Vec<ChildShard>,
}

/// A subscription in the hands of its subscriber. A drop ends the subscription, and the service needs no word of the end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Subscription {
    iterator: ShardIterator,
    consumer: Arc<str>,
    /// Unique in the stream.
    number: u64,
    began_ms: i64,
    /// When the last event came.
    told_ms: Option<i64>,
    rate: Meter,
    over: bool,
}

/// The last successful call of a consumer for a shard.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Subscribed {
    number: u64,
    since_ms: i64,
}

/// The time for which a new subscription keeps its place.
const SAFE_MS: i64 = 5_000;
/// The longest time without an event. Clients take a longer silence for a broken connection.
const BEAT_MS: i64 = 5_000;
const EVENT_BYTES: usize = 1 << 20;
const CALLS_PER_SECOND: u32 = 1;

impl Kinesis {
    /// `SubscribeToShard`. An earlier subscription of the consumer to the shard ends, if that subscription is five
    /// seconds old.
    pub fn subscribe_to_shard(
        &mut self, now_ms: i64, consumer_arn: &str, shard: ShardIndex, start: IteratorStart,
    ) -> ApiResult<Subscription> {
        let limits = self.config().limits;
        let (id, name) = self.find_consumer(now_ms, Some(consumer_arn), None)?;
        let stream = self.stream_mut(id)?;
        stream.age_shard(now_ms, shard);
        let found = stream.readable(shard)?;
        let position = stream.position(now_ms, found, start)?;
        let (title, number) = (stream.title(), stream.subscriptions);
        let in_use = |consumer: &Consumer, why: &str| {
            ApiError::in_use(format!(
                "Consumer {name} with creation timestamp {} under stream: {title} {why}",
                consumer.created_ms.div_euclid(1000)
            ))
        };
        let Some(consumer) = stream.consumers.get_mut(&name) else {
            return Err(stream.not_found());
        };
        if consumer.status != ConsumerStatus::Active {
            return Err(in_use(consumer, "is not in ACTIVE status."));
        }
        let held = consumer.holders.get(&shard);
        if held.is_some_and(|held| now_ms.saturating_sub(held.since_ms) < SAFE_MS) {
            let why = format!("has another active subscription to {shard}, less than {SAFE_MS} ms old.");
            return Err(in_use(consumer, &why));
        }
        let calls = consumer.calls.entry(shard).or_insert(Meter::new());
        if limits && !calls.take(now_ms, CALLS_PER_SECOND) {
            return Err(ApiError::limit(format!(
                "Rate exceeded for consumer {name} and shard {shard} in stream {title}."
            )));
        }
        consumer.holders.insert(shard, Subscribed { number, since_ms: now_ms });
        stream.subscriptions += 1;
        Ok(Subscription {
            iterator: ShardIterator { stream: id, shard, position, issued_ms: now_ms },
            consumer: name.into(),
            number,
            began_ms: now_ms,
            told_ms: None,
            rate: Meter::new(),
            over: false,
        })
    }

    /// The subscriber has room for an event.
    pub fn push(&mut self, now_ms: i64, subscription: &mut Subscription) -> Push {
        if subscription.over {
            return Push::Over;
        }
        let push = self.due(now_ms, subscription).unwrap_or_else(Push::Failed);
        subscription.over = match &push {
            Push::Event(event) => event.continuation.is_none(),
            Push::WaitUntil(_) => false,
            Push::Over | Push::Failed(_) => true,
        };
        push
    }

    fn due(&mut self, now_ms: i64, subscription: &mut Subscription) -> ApiResult<Push> {
        let config = self.config();
        let (limits, life_ms, end_of_shard) = (config.limits, config.subscription_ms, config.end_of_shard);
        let iterator = subscription.iterator;
        let id = self.find(now_ms, iterator.stream.into())?;
        if self.needs_aging(now_ms, &iterator) {
            self.stream_mut(id)?.age_shard(now_ms, iterator.shard);
        }
        let stream = self.stream_by_id(id)?;
        subscription.require_place(now_ms, stream)?;
        let over_ms = subscription.began_ms.saturating_add(life_ms);
        if now_ms >= over_ms {
            return Ok(Push::Over);
        }
        if limits && subscription.rate.blocked_until_ms() > now_ms {
            return Ok(Push::WaitUntil(subscription.rate.blocked_until_ms().min(over_ms)));
        }
        let shard = stream.readable(iterator.shard)?;
        let most = (MOST_RECORDS, EVENT_BYTES);
        let (page, bytes) = stream.page(now_ms, shard, &iterator, most, end_of_shard);
        let beat_ms = subscription.told_ms.map_or(now_ms, |told| told.saturating_add(BEAT_MS));
        if page.records.is_empty() && page.next.is_some() && now_ms < beat_ms {
            return Ok(Push::WaitUntil(beat_ms.min(over_ms)));
        }
        subscription.told_ms = Some(now_ms);
        if limits {
            // A use begins a new second.
            subscription.rate.take(now_ms, u32::MAX);
            subscription.rate.charge_read(bytes as u64, READ_BYTES_PER_SECOND);
        }
        if let Some(next) = page.next {
            subscription.iterator = next;
        }
        Ok(Push::Event(SubscribedEvent {
            continuation: page.next.map(|next| shard.number_before(next.position)),
            records: page.records,
            millis_behind_latest: page.millis_behind_latest,
            child_shards: page.child_shards,
        }))
    }
}

impl Subscription {
    /// The shard.
    pub fn shard(&self) -> ShardIndex {
        self.iterator.shard
    }

    /// Refuses a subscription without its consumer, or with its place taken by a later subscription.
    fn require_place(&self, now_ms: i64, stream: &Stream) -> ApiResult<()> {
        let consumer = stream.consumer(&self.consumer)?;
        if !consumer.is_active(now_ms) {
            return Err(stream.no_such_consumer(&self.consumer));
        }
        let shard = self.iterator.shard;
        match consumer.holders.get(&shard) {
            Some(holder) if holder.number == self.number => Ok(()),
            Some(_) => Err(ApiError::in_use(format!(
                "Another active subscription exists for this consumer: {}, shard {shard}.",
                self.consumer
            ))),
            // A consumer of this name was registered anew.
            None => Err(stream.no_such_consumer(&self.consumer)),
        }
    }
}

impl Shard {
    /// A number from which reading goes on at `position`, by `AFTER_SEQUENCE_NUMBER`: the number of the record before,
    /// or, where no record is, a number that no record has.
    fn number_before(&self, position: u64) -> SequenceNumber {
        let before = position.saturating_sub(1);
        self.record(before).map_or_else(|| self.number_without_record(before), |(number, _)| number)
    }
}

impl Consumer {
    fn is_active(&self, now_ms: i64) -> bool {
        match self.status {
            ConsumerStatus::Active => true,
            ConsumerStatus::Creating => self.until_ms <= now_ms,
            ConsumerStatus::Deleting => false,
        }
    }
}
