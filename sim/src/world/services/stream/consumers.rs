//! Consumers of a stream, and their subscriptions.

use super::spelled::failure;
use super::{Carry, ReadOn, Source, start};
use crate::faults::FanOutFaults;
use crate::names::Names;
use crate::oracles::{ShardNo, Time};
use crate::streams::StreamNo;
use crate::swarm::EPOCH_MS;
use crate::world::services::table::wall_ms;
use leasehold_engine::input::{ConsumerState, Outcome, Refusal, Reply, Why};
use leasehold_engine::output::IteratorFrom;
use leasehold_local_aws::kinesis::{
    ApiResult, ConsumerStatus, ConsumerSummary, IteratorStart, Push, ShardIndex, Subscription,
};
use std::collections::BTreeMap;

/// What becomes of the wait for an event.
#[derive(Debug)]
pub(crate) enum Pushed {
    /// It is over.
    Over(Outcome, Carry),
    /// No event is due before this time, unless the shard changes.
    Waits(Time),
}

/// The consumers of the streams, and their subscriptions.
pub(crate) struct Consumers<'a>(&'a mut Source);

impl Source {
    pub(crate) fn consumers(&mut self) -> Consumers<'_> {
        Consumers(self)
    }
}

impl Consumers<'_> {
    pub(crate) fn describe(&mut self, now: Time, stream: &str, name: &str) -> (Outcome, Carry) {
        consumer(self.0.kinesis.describe_consumer(wall_ms(now), None, Some((stream, name))))
    }

    pub(crate) fn register(&mut self, now: Time, stream: &str, name: &str) -> (Outcome, Carry) {
        consumer(self.0.kinesis.register_consumer(wall_ms(now), stream, name, BTreeMap::new()))
    }

    pub(crate) fn subscribe(
        &mut self, now: Time, shard: ShardNo, consumer: &str, from: IteratorFrom,
    ) -> (Outcome, Carry) {
        let (_, index) = self.0.streams.place(shard);
        match self.0.kinesis.subscribe_to_shard(wall_ms(now), consumer, index, start(from)) {
            Ok(subscription) => {
                (Outcome::Applied(Reply::Subscribed), Carry::Subscription(shard, Box::new(subscription)))
            }
            Err(error) => (failure(error), Carry::Nothing),
        }
    }

    /// New consumers and subscriptions behave so from now on.
    pub(crate) fn fan_out(&mut self, faults: &FanOutFaults) {
        self.0.kinesis.set_subscriptions(faults.creating_ms, faults.life_ms);
    }

    /// A stranger takes the place of a consumer's subscriber at a shard. Whether the stranger got the place.
    pub(crate) fn steal(&mut self, now: Time, name: &str, pick: u32) -> bool {
        let now_ms = wall_ms(now);
        let stream = pick % self.0.ids.len() as u32;
        let Some(shards) = self.0.truth(stream).map(|stream| stream.shards().count()) else {
            return false;
        };
        let shard = ShardIndex(pick / self.0.ids.len() as u32 % shards.max(1) as u32);
        let Some(arn) = self.consumer_of(now_ms, stream, name).map(|found| found.arn) else {
            return false;
        };
        self.0.kinesis.subscribe_to_shard(now_ms, &arn, shard, IteratorStart::Latest).is_ok()
    }

    /// An operator deregisters a consumer of all streams. Whether one was there.
    pub(crate) fn deregister(&mut self, now: Time, name: &str) -> bool {
        let now_ms = wall_ms(now);
        let mut any = false;
        for stream in 0..self.0.ids.len() as StreamNo {
            if let Some(found) = self.consumer_of(now_ms, stream, name) {
                any |= self.0.kinesis.deregister_consumer(now_ms, Some(&found.arn), None).is_ok();
            }
        }
        any
    }

    fn consumer_of(&mut self, now_ms: i64, stream: StreamNo, name: &str) -> Option<ConsumerSummary> {
        let summary =
            self.0.kinesis.describe_stream_summary(now_ms, self.0.name(stream).to_owned().as_str()).ok()?;
        self.0.kinesis.describe_consumer(now_ms, None, Some((&summary.arn, name))).ok()
    }

    /// The subscriber has room for an event.
    pub(crate) fn push(
        &mut self, now: Time, shard: ShardNo, subscription: &mut Subscription, names: &mut Names,
    ) -> Pushed {
        let (outcome, carry) = match self.0.kinesis.push(wall_ms(now), subscription) {
            Push::WaitUntil(at_ms) => {
                let at = u64::try_from(at_ms.saturating_sub(EPOCH_MS)).unwrap_or(0);
                return Pushed::Waits(at.saturating_mul(1_000).max(now + 1));
            }
            Push::Event(event) => {
                let next = event.continuation.map(|_| ReadOn::Subscription(Box::new(subscription.clone())));
                let brought = (&*event.records, event.millis_behind_latest, event.child_shards);
                self.0.brought((shard, true), brought, next, names)
            }
            Push::Over => {
                let detail = "The subscription is over.".to_owned();
                (Outcome::Refused(Refusal { why: Why::Expired, current: None, detail }), Carry::Nothing)
            }
            Push::Failed(error) => (failure(error), Carry::Nothing),
        };
        Pushed::Over(outcome, carry)
    }
}

fn consumer(found: ApiResult<ConsumerSummary>) -> (Outcome, Carry) {
    let outcome = match found {
        Ok(found) => Outcome::Applied(Reply::Consumer(ConsumerState {
            arn: found.arn.into(),
            active: found.status == ConsumerStatus::Active,
        })),
        Err(error) => failure(error),
    };
    (outcome, Carry::Nothing)
}
