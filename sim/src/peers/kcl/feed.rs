//! The two ways to read a shard: by polling, and by subscription.

use super::super::sdk::{Batch, Failure};
use super::Worker;
use super::consumer::Consumer;
use super::fan_out::Subscription;
use leasehold_engine::ids::OpId;
use leasehold_engine::output::IteratorFrom;

/// A shard's records on their way to the consumer.
pub(super) enum ShardFeed {
    /// The present iterator.
    Polling(Option<OpId>),
    Subscription(Subscription),
}

impl Worker {
    pub(super) fn feed(&self) -> ShardFeed {
        match &*self.stream_consumer.borrow() {
            Some(arn) => ShardFeed::Subscription(Subscription::new(arn.clone())),
            None => ShardFeed::Polling(None),
        }
    }

    /// The next records of a shard, from this place if the feed is new or broken.
    pub(super) async fn read(
        &self, consumer: &Consumer, feed: &mut ShardFeed, from: IteratorFrom,
    ) -> Result<Batch, Failure> {
        match feed {
            ShardFeed::Polling(iterator) => self.poll(consumer, iterator, from).await,
            ShardFeed::Subscription(subscription) => self.next_event(consumer, subscription, from).await,
        }
    }

    /// The time of the next read, in µs. `asked_us`: the time of the last read.
    pub(super) fn next_read_us(&self, feed: &ShardFeed, asked_us: u64, failure: Option<Failure>) -> u64 {
        match (feed, failure) {
            (ShardFeed::Polling(_), _) => asked_us + self.settings.idle_us,
            // A subscription at its end is renewed at once.
            (ShardFeed::Subscription(_), None | Some(Failure::Expired)) => asked_us,
            // The worker's next look at its consumers.
            (ShardFeed::Subscription(_), Some(_)) => {
                self.host.mono_us() + self.host.below("health-check", super::TICK_US)
            }
        }
    }

    /// Reads from the present iterator, or from a new iterator.
    async fn poll(
        &self, consumer: &Consumer, iterator: &mut Option<OpId>, from: IteratorFrom,
    ) -> Result<Batch, Failure> {
        let at = match *iterator {
            Some(at) => at,
            None => self.kinesis.iterator(&consumer.shard, from).await?,
        };
        let read = self.kinesis.records(&consumer.shard, at, self.settings.max_records).await;
        *iterator = match &read {
            Ok(batch) => Some(batch.op),
            Err(Failure::Expired) => None,
            Err(_) => Some(at),
        };
        read
    }
}
