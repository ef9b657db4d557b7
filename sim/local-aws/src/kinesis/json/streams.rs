//! Streams created, described, listed, changed and deleted.

use super::args::Args;
use super::shards::shard_json;
use super::{Stream, rules, seconds};
use crate::kinesis::error::{ApiError, ApiResult};
use crate::kinesis::stream::{Stream as Found, StreamMode, StreamStatus};
use crate::kinesis::streams::{CreateStream, StreamSummary};
use crate::kinesis::{Kinesis, Op};
use serde_json::{Value, json};

const DESCRIBE_PAGE: u32 = 100;

impl Kinesis {
    pub(super) fn call_create_stream(&mut self, now_ms: i64, mut args: Args) -> ApiResult<Value> {
        let name = args.required_text("StreamName", &rules::NAME)?.into();
        let shards = args.count("ShardCount", 100_000)?;
        let mode = args.structure("StreamModeDetails", mode)?.unwrap_or(StreamMode::Provisioned);
        let tags = args.tags()?.unwrap_or_default();
        let kib = args.integer("MaxRecordSizeInKiB", 1024, 10_240)?.unwrap_or(1024);
        args.finish()?;
        let max_record_bytes = usize::try_from(kib).unwrap_or(1024) * 1024;

        self.create_stream(now_ms, &CreateStream { name, shards, mode, tags, max_record_bytes })?;
        Ok(Value::Null)
    }

    pub(super) fn call_delete_stream(&mut self, now_ms: i64, mut args: Args) -> ApiResult<Value> {
        let stream = Stream::read(&mut args)?;
        let enforce = args.flag("EnforceConsumerDeletion")?;
        args.finish()?;
        self.delete_stream(now_ms, stream.required()?, enforce)?;
        Ok(Value::Null)
    }

    pub(super) fn call_describe_stream(&mut self, now_ms: i64, mut args: Args) -> ApiResult<Value> {
        let stream = Stream::read(&mut args)?;
        let limit = args.count("Limit", 10_000)?.unwrap_or(DESCRIBE_PAGE).min(DESCRIBE_PAGE);
        let start = args.text("ExclusiveStartShardId", &rules::NAME)?;
        args.finish()?;
        self.rate(now_ms, Op::DescribeStream)?;
        let from = start.map(|name| self.shard_named(&name, &stream)).transpose()?;
        let id = self.find(now_ms, stream.required()?)?;
        let stream = self.stream_mut(id)?;
        stream.age_all(now_ms);
        let skip = from.map_or(0, |shard| shard.0 as usize + 1);
        let listed = if stream.status() == StreamStatus::Creating { usize::MAX } else { skip };
        let mut rest = stream.shards().skip(listed).filter(|shard| !shard.is_expired());
        let shards: Vec<Value> =
            rest.by_ref().take(limit as usize).map(|shard| shard_json(&shard.info())).collect();
        let more = rest.next().is_some();
        let mut description = description(stream);
        description["Shards"] = json!(shards);
        description["HasMoreShards"] = json!(more);
        Ok(json!({ "StreamDescription": description }))
    }

    pub(super) fn call_describe_stream_summary(&mut self, now_ms: i64, mut args: Args) -> ApiResult<Value> {
        let stream = Stream::read(&mut args)?;
        args.finish()?;
        let summary = self.describe_stream_summary(now_ms, stream.required()?)?;
        let stream = self.stream_by_id(summary.id)?;
        let mut description = description(stream);
        description["OpenShardCount"] = json!(summary.open_shards);
        description["ConsumerCount"] = json!(summary.consumers);
        description["MaxRecordSizeInKiB"] = json!(stream.max_record_bytes / 1024);
        Ok(json!({ "StreamDescriptionSummary": description }))
    }

    pub(super) fn call_describe_limits(&mut self, now_ms: i64, args: Args) -> ApiResult<Value> {
        args.finish()?;
        let limits = self.describe_limits(now_ms)?;
        Ok(json!({
            "ShardLimit": limits.shard_limit,
            "OpenShardCount": limits.open_shards,
            "OnDemandStreamCount": limits.on_demand_streams,
            "OnDemandStreamCountLimit": limits.on_demand_stream_limit,
        }))
    }

    pub(super) fn call_list_streams(&mut self, now_ms: i64, mut args: Args) -> ApiResult<Value> {
        let start = args.text("ExclusiveStartStreamName", &rules::NAME)?;
        let next_token = args.text("NextToken", &rules::TOKEN)?;
        let limit = args.count("Limit", 10_000)?;
        args.finish()?;
        let page = self.list_streams(now_ms, start.as_deref(), next_token.as_deref(), limit)?;
        let names: Vec<&str> = page.streams.iter().map(|stream| &*stream.name).collect();
        let summaries: Vec<Value> = page.streams.iter().map(summary_json).collect();
        let mut answer = json!({
            "StreamNames": names,
            "HasMoreStreams": page.next_token.is_some(),
            "StreamSummaries": summaries,
        });
        if let Some(token) = page.next_token {
            answer["NextToken"] = json!(token);
        }
        Ok(answer)
    }

    pub(super) fn call_change_retention(
        &mut self, now_ms: i64, mut args: Args, increase: bool,
    ) -> ApiResult<Value> {
        let stream = Stream::read(&mut args)?;
        let hours = args.required_integer("RetentionPeriodHours", i64::MIN, i64::MAX)?;
        args.finish()?;
        self.change_retention(now_ms, stream.required()?, hours, increase)?;
        Ok(Value::Null)
    }

    pub(super) fn call_update_stream_mode(&mut self, now_ms: i64, mut args: Args) -> ApiResult<Value> {
        let arn = Some(args.required_text("StreamARN", &rules::STREAM_ARN)?);
        let mode = args.structure("StreamModeDetails", mode)?;
        args.finish()?;
        let mode = mode.ok_or_else(|| ApiError::unmet("Value null at 'streamModeDetails'", "not be null"))?;
        let stream = Stream { name: None, arn };
        self.update_stream_mode(now_ms, stream.required()?, mode)?;
        Ok(Value::Null)
    }

    pub(super) fn call_update_max_record_size(&mut self, now_ms: i64, mut args: Args) -> ApiResult<Value> {
        let stream = Stream::read(&mut args)?;
        let kib = args.required_integer("MaxRecordSizeInKiB", 1024, 10_240)?;
        args.finish()?;
        self.update_max_record_size(now_ms, stream.required()?, u32::try_from(kib).unwrap_or(1024))?;
        Ok(Value::Null)
    }
}

fn mode(args: &mut Args) -> ApiResult<StreamMode> {
    let mode = args.required_text("StreamMode", &rules::MODE)?;
    Ok(if mode == "ON_DEMAND" { StreamMode::OnDemand } else { StreamMode::Provisioned })
}

/// The common part of both descriptions of a stream.
fn description(stream: &Found) -> Value {
    let mut description = summary_json(&stream.summary());
    description["RetentionPeriodHours"] = json!(stream.retention_hours());
    description["EnhancedMonitoring"] = json!([{ "ShardLevelMetrics": stream.metrics }]);
    description["EncryptionType"] = json!("NONE");
    if let Some(key) = &stream.encryption_key {
        description["EncryptionType"] = json!("KMS");
        description["KeyId"] = json!(key);
    }
    description
}

fn summary_json(stream: &StreamSummary) -> Value {
    json!({
        "StreamName": &*stream.name,
        "StreamARN": stream.arn,
        "StreamStatus": stream.status.as_str(),
        "StreamModeDetails": { "StreamMode": stream.mode.as_str() },
        "StreamCreationTimestamp": seconds(stream.created_ms),
    })
}
