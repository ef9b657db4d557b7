//! Tags, consumers, monitoring and encryption.

use super::args::Args;
use super::{Stream, rules, seconds};
use crate::kinesis::Kinesis;
use crate::kinesis::consumers::ConsumerSummary;
use crate::kinesis::error::ApiResult;
use crate::kinesis::tags::Tagged;
use serde_json::{Value, json};

/// The two ways to name a consumer.
struct Consumer {
    arn: Option<String>,
    stream_arn: Option<String>,
    name: Option<String>,
}

impl Consumer {
    fn read(args: &mut Args) -> ApiResult<Self> {
        Ok(Consumer {
            arn: args.text("ConsumerARN", &rules::CONSUMER_ARN)?,
            stream_arn: args.text("StreamARN", &rules::STREAM_ARN)?,
            name: args.text("ConsumerName", &rules::NAME)?,
        })
    }

    fn by_name(&self) -> Option<(&str, &str)> {
        self.stream_arn.as_deref().zip(self.name.as_deref())
    }
}

impl Kinesis {
    pub(super) fn call_add_tags_to_stream(&mut self, now_ms: i64, mut args: Args) -> ApiResult<Value> {
        let stream = Stream::read(&mut args)?;
        let tags = args.required_tags()?;
        args.finish()?;
        self.add_tags(now_ms, &Tagged::Stream(stream.required()?), tags)?;
        Ok(Value::Null)
    }

    pub(super) fn call_remove_tags_from_stream(&mut self, now_ms: i64, mut args: Args) -> ApiResult<Value> {
        let stream = Stream::read(&mut args)?;
        let keys = args.texts("TagKeys", (1, 50), &rules::TAG_KEY)?;
        args.finish()?;
        self.remove_tags(now_ms, &Tagged::Stream(stream.required()?), &keys)?;
        Ok(Value::Null)
    }

    pub(super) fn call_list_tags_for_stream(&mut self, now_ms: i64, mut args: Args) -> ApiResult<Value> {
        let stream = Stream::read(&mut args)?;
        let start = args.text("ExclusiveStartTagKey", &rules::TAG_KEY)?;
        let limit = args.count("Limit", 50)?.unwrap_or(50) as usize;
        args.finish()?;
        let tags = self.tags_mut(now_ms, &Tagged::Stream(stream.required()?))?;
        let mut rest = tags.iter().filter(|(key, _)| start.as_ref().is_none_or(|start| *key > start));
        let page: Vec<Value> = rest.by_ref().take(limit).map(tag_json).collect();
        Ok(json!({ "Tags": page, "HasMoreTags": rest.next().is_some() }))
    }

    pub(super) fn call_tag_resource(&mut self, now_ms: i64, mut args: Args) -> ApiResult<Value> {
        let arn = args.required_text("ResourceARN", &rules::RESOURCE_ARN)?;
        let tags = args.required_tags()?;
        args.finish()?;
        self.add_tags(now_ms, &Tagged::Arn(&arn), tags)?;
        Ok(Value::Null)
    }

    pub(super) fn call_untag_resource(&mut self, now_ms: i64, mut args: Args) -> ApiResult<Value> {
        let arn = args.required_text("ResourceARN", &rules::RESOURCE_ARN)?;
        let keys = args.texts("TagKeys", (1, 50), &rules::TAG_KEY)?;
        args.finish()?;
        self.remove_tags(now_ms, &Tagged::Arn(&arn), &keys)?;
        Ok(Value::Null)
    }

    pub(super) fn call_list_tags_for_resource(&mut self, now_ms: i64, mut args: Args) -> ApiResult<Value> {
        let arn = args.required_text("ResourceARN", &rules::RESOURCE_ARN)?;
        args.finish()?;
        let tags = self.tags_mut(now_ms, &Tagged::Arn(&arn))?;
        Ok(json!({ "Tags": tags.iter().map(tag_json).collect::<Vec<_>>() }))
    }

    pub(super) fn call_register_consumer(&mut self, now_ms: i64, mut args: Args) -> ApiResult<Value> {
        let stream_arn = args.required_text("StreamARN", &rules::STREAM_ARN)?;
        let name = args.required_text("ConsumerName", &rules::NAME)?;
        let tags = args.tags()?.unwrap_or_default();
        args.finish()?;
        let consumer = self.register_consumer(now_ms, &stream_arn, &name, tags)?;
        Ok(json!({ "Consumer": consumer_json(&consumer) }))
    }

    pub(super) fn call_describe_consumer(&mut self, now_ms: i64, mut args: Args) -> ApiResult<Value> {
        let asked = Consumer::read(&mut args)?;
        args.finish()?;
        let consumer = self.describe_consumer(now_ms, asked.arn.as_deref(), asked.by_name())?;
        let mut description = consumer_json(&consumer);
        description["StreamARN"] = json!(consumer.stream_arn);
        Ok(json!({ "ConsumerDescription": description }))
    }

    pub(super) fn call_deregister_consumer(&mut self, now_ms: i64, mut args: Args) -> ApiResult<Value> {
        let asked = Consumer::read(&mut args)?;
        args.finish()?;
        self.deregister_consumer(now_ms, asked.arn.as_deref(), asked.by_name())?;
        Ok(Value::Null)
    }

    pub(super) fn call_list_consumers(&mut self, now_ms: i64, mut args: Args) -> ApiResult<Value> {
        let stream_arn = args.required_text("StreamARN", &rules::STREAM_ARN)?;
        let next_token = args.text("NextToken", &rules::TOKEN)?;
        let max_results = args.count("MaxResults", 10_000)?;
        args.time_ms("StreamCreationTimestamp")?;
        args.finish()?;
        let page = self.list_consumers(now_ms, &stream_arn, next_token.as_deref(), max_results)?;
        let mut answer = json!({ "Consumers": page.consumers.iter().map(consumer_json).collect::<Vec<_>>() });
        if let Some(token) = page.next_token {
            answer["NextToken"] = json!(token);
        }
        Ok(answer)
    }

    pub(super) fn call_change_metrics(
        &mut self, now_ms: i64, mut args: Args, enable: bool,
    ) -> ApiResult<Value> {
        let stream = Stream::read(&mut args)?;
        let metrics = args.texts("ShardLevelMetrics", (1, 7), &rules::METRIC)?;
        args.finish()?;
        let change = self.change_metrics(now_ms, stream.required()?, &metrics, enable)?;
        Ok(json!({
            "StreamName": change.name,
            "StreamARN": change.arn,
            "CurrentShardLevelMetrics": change.before,
            "DesiredShardLevelMetrics": change.after,
        }))
    }

    pub(super) fn call_change_encryption(
        &mut self, now_ms: i64, mut args: Args, start: bool,
    ) -> ApiResult<Value> {
        let stream = Stream::read(&mut args)?;
        args.required_text("EncryptionType", &rules::ENCRYPTION)?;
        let key = args.required_text("KeyId", &rules::KEY_ID)?;
        args.finish()?;
        self.change_encryption(now_ms, stream.required()?, start.then_some(key))?;
        Ok(Value::Null)
    }
}

fn tag_json((key, value): (&String, &String)) -> Value {
    json!({ "Key": key, "Value": value })
}

fn consumer_json(consumer: &ConsumerSummary) -> Value {
    json!({
        "ConsumerName": consumer.name,
        "ConsumerARN": consumer.arn,
        "ConsumerStatus": consumer.status.as_str(),
        "ConsumerCreationTimestamp": seconds(consumer.created_ms),
    })
}
