//! Enhanced fan-out, the default of KCL: the application's consumer, and the subscriptions to shards.
//!
//! A subscription brings one event at a time. A subscription at its end is renewed at once; after a failure, the next look at the
//! worker's consumers begins a new subscription after the last processed record. The SDK never repeats the call, and gives
//! a silent connection up; also a connection that is silent because the application is slow.

use super::super::sdk::{Batch, Failure, op};
use super::consumer::Consumer;
use super::{TICK_US, Worker};
use leasehold_engine::ids::OpId;
use leasehold_engine::input::ConsumerState;
use leasehold_engine::output::{IteratorFrom, StreamOp};
use std::sync::Arc;

/// The most looks for an ACTIVE consumer.
const LOOKS: u32 = 10;

/// The SDK gives up a connection without a word for this time.
const READ_TIMEOUT_US: u64 = 10_000_000;

/// The subscription to a shard, if one is open.
pub(super) struct Subscription {
    /// The ARN of the stream's consumer.
    arn: Arc<str>,
    /// The request that brought the subscription or the last event.
    via: Option<OpId>,
    /// The time of the call or of the last event.
    heard_us: u64,
}

impl Subscription {
    pub(super) fn new(arn: Arc<str>) -> Self {
        Self { arn, via: None, heard_us: 0 }
    }
}

impl Worker {
    /// The ARN of the application's consumer, for all shards and until the end of the process. A missing consumer is
    /// registered; no worker deregisters a consumer.
    pub(super) async fn find_stream_consumer(&self) -> Result<Arc<str>, Failure> {
        let stream = self.kinesis.stream_arn().await?;
        let (of, name) = (stream.clone(), self.settings.application.clone());
        match self.described(&stream).await {
            Err(Failure::NotFound) => {
                match self.kinesis.consumer_of(StreamOp::RegisterConsumer { stream: of, name }).await {
                    // Another worker was first.
                    Ok(_) | Err(Failure::InUse) => {}
                    Err(failure) => return Err(failure),
                }
            }
            found => drop(found?),
        }
        for _ in 0..LOOKS {
            let consumer = self.described(&stream).await?;
            if consumer.active {
                return Ok(consumer.arn);
            }
            self.host.sleep(TICK_US).await;
        }
        Err(Failure::Other)
    }

    async fn described(&self, stream: &Arc<str>) -> Result<ConsumerState, Failure> {
        let (stream, name) = (stream.clone(), self.settings.application.clone());
        self.kinesis.consumer_of(StreamOp::DescribeConsumer { stream, name }).await
    }

    /// The next event of the subscription, or of a new subscription from this place.
    pub(super) async fn next_event(
        &self, consumer: &Consumer, subscription: &mut Subscription, from: IteratorFrom,
    ) -> Result<Batch, Failure> {
        let shard = &consumer.shard;
        let via = match subscription.via.take() {
            Some(via) => via,
            None => {
                subscription.heard_us = self.host.mono_us();
                let arn = subscription.arn.clone();
                let call = StreamOp::Subscribe { shard: shard.clone(), consumer: arn, from };
                let is_over = || consumer.is_to_end();
                op(self.kinesis.attempt(call, READ_TIMEOUT_US, is_over).await?.n)
            }
        };
        let waited_us = self.host.mono_us() - subscription.heard_us;
        let event = StreamOp::NextEvent { shard: shard.clone(), via };
        let left_us = READ_TIMEOUT_US.saturating_sub(waited_us);
        let batch = Batch::of(self.kinesis.attempt(event, left_us, || consumer.is_to_end()).await?)?;
        if batch.fetched.end.as_ref().is_some_and(Vec::is_empty) {
            // An end without children is refused as an invalid event.
            return Err(Failure::Other);
        }
        (subscription.via, subscription.heard_us) = (Some(batch.op), self.host.mono_us());
        Ok(batch)
    }
}

#[cfg(test)]
mod tests {
    use crate::run::{Options, run_plan};
    use crate::scenario::Scenario;

    /// Whether each of these marks occurs in a scenario.
    fn occur(text: &str, marks: &[&str]) {
        let scenario: Scenario = text.parse().expect("expected a scenario");
        let found = run_plan(scenario.plan, &Options::default()).expect("expected no panic");
        assert!(found.violations.is_empty(), "{:?}", found.violations);
        for expected in marks {
            assert!(found.marks.iter().any(|mark| mark == *expected), "no {expected}");
        }
    }

    #[test]
    fn leases_go_both_ways_between_subscribers() {
        occur(
            include_str!("../../../scenarios/mixed-kcl-3-subscribes.toml"),
            &["subscribed-after-other", "other-after-subscribed", "other-split-pushed", "other-merge-pushed"],
        );
    }

    #[test]
    fn leases_go_both_ways_beside_polling_workers() {
        occur(
            include_str!("../../../scenarios/mixed-kcl-2-subscribes.toml"),
            &[
                "polled-after-other",
                "other-after-polled",
                "other-split-pushed",
                "other-merge-pushed",
                "place-taken",
                "subscription-broken",
                "subscription-over",
                "subscription-silent",
            ],
        );
    }
}
