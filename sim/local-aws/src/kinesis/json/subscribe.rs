//! `SubscribeToShard` in the JSON protocol: a request, and then events.

use super::args::Args;
use super::data::{child_json, record_json};
use super::{Stream, rules};
use crate::kinesis::Kinesis;
use crate::kinesis::error::{ApiError, ApiResult};
use crate::kinesis::subscribe::{SubscribedEvent, Subscription};
use serde_json::{Value, json};

impl Kinesis {
    /// The request of a subscription. [`push`](Kinesis::push) gives its events, and [`SubscribedEvent::to_json`] the
    /// form of an event.
    pub fn call_subscribe(&mut self, now_ms: i64, body: Value) -> ApiResult<Subscription> {
        let mut args = Args::new(body)?;
        if args.flag("DryRun")? {
            self.clone().subscribe_with(now_ms, args)?;
            return Err(ApiError::dry_run());
        }
        self.subscribe_with(now_ms, args)
    }

    fn subscribe_with(&mut self, now_ms: i64, mut args: Args) -> ApiResult<Subscription> {
        let arn = args.required_text("ConsumerARN", &rules::CONSUMER_ARN)?;
        let shard = args.required_text("ShardId", &rules::NAME)?;
        args.text("StreamId", &rules::NAME)?;
        let place = args.structure("StartingPosition", |args| {
            let kind = args.required_text("Type", &rules::ITERATOR_TYPE)?;
            Ok((kind, args.text("SequenceNumber", &rules::SEQUENCE)?, args.time_ms("Timestamp")?))
        })?;
        let (kind, number, timestamp_ms) = args.required("StartingPosition", place);
        args.finish()?;
        let stream = Stream { name: None, arn: Some(arn) };
        let index = self.shard_named(&shard, &stream)?;
        let start = self.iterator_start(&kind, &shard, &stream, number, timestamp_ms)?;
        self.subscribe_to_shard(now_ms, stream.arn.as_deref().unwrap_or_default(), index, start)
    }
}

impl SubscribedEvent {
    /// The event as on the wire.
    pub fn to_json(&self) -> Value {
        let mut value = json!({
            "Records": self.records.iter().map(record_json).collect::<Vec<_>>(),
            "MillisBehindLatest": self.millis_behind_latest,
        });
        match self.continuation {
            Some(number) => value["ContinuationSequenceNumber"] = json!(number.to_string()),
            None => value["ChildShards"] = self.child_shards.iter().map(child_json).collect(),
        }
        value
    }
}
