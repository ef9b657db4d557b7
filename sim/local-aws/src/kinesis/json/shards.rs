//! Shards listed, split, merged and scaled.

use super::args::Args;
use super::{Stream, rules};
use crate::constraint::refuse_if;
use crate::kinesis::Kinesis;
use crate::kinesis::error::{ApiError, ApiResult};
use crate::kinesis::list_shards::{ListShards, ShardFilter};
use crate::kinesis::shard::{HashRange, ShardInfo};
use serde_json::{Value, json};

/// `ShardFilter` as it came.
struct Filter {
    kind: String,
    shard: Option<String>,
    timestamp_ms: Option<i64>,
}

impl Kinesis {
    pub(super) fn call_list_shards(&mut self, now_ms: i64, mut args: Args) -> ApiResult<Value> {
        let stream = Stream::read(&mut args)?;
        let next_token = args.text("NextToken", &rules::TOKEN)?;
        let start = args.text("ExclusiveStartShardId", &rules::NAME)?;
        let max_results = args.count("MaxResults", 10_000)?;
        let created_ms = args.time_ms("StreamCreationTimestamp")?;
        let filter = args.structure("ShardFilter", |args| {
            Ok(Filter {
                kind: args.required_text("Type", &rules::FILTER_TYPE)?,
                shard: args.text("ShardId", &rules::NAME)?,
                timestamp_ms: args.time_ms("Timestamp")?,
            })
        })?;
        args.finish()?;
        let exclusive_start = start.map(|name| self.shard_named(&name, &stream)).transpose()?;
        let filter = filter.map(|filter| self.filter(filter, &stream)).transpose()?;
        let page = self.list_shards(
            now_ms,
            &ListShards {
                stream: stream.given(),
                next_token: next_token.as_deref(),
                max_results,
                exclusive_start,
                filter,
                created_ms,
            },
        )?;
        let shards: Vec<Value> = page.shards.iter().map(shard_json).collect();
        Ok(match page.next_token {
            Some(token) => json!({ "Shards": shards, "NextToken": token }),
            None => json!({ "Shards": shards }),
        })
    }

    fn filter(&self, filter: Filter, stream: &Stream) -> ApiResult<ShardFilter> {
        let Filter { kind, shard, timestamp_ms } = filter;
        let needs = |what: &str| {
            ApiError::argument(format!("{what} must be provided for a ShardFilter of type {kind}."))
        };
        let refuses = |what: &str| {
            ApiError::argument(format!("{what} must not be provided for a ShardFilter of type {kind}."))
        };
        let by_time = matches!(kind.as_str(), "AT_TIMESTAMP" | "FROM_TIMESTAMP");
        refuse_if(shard.is_some() && kind != "AFTER_SHARD_ID", || refuses("ShardId"))?;
        refuse_if(timestamp_ms.is_some() && !by_time, || refuses("Timestamp"))?;
        Ok(match kind.as_str() {
            "AFTER_SHARD_ID" => {
                let name = shard.ok_or_else(|| needs("ShardId"))?;
                ShardFilter::AfterShardId(self.shard_named(&name, stream)?)
            }
            "AT_TIMESTAMP" => ShardFilter::AtTimestamp(timestamp_ms.ok_or_else(|| needs("Timestamp"))?),
            "FROM_TIMESTAMP" => ShardFilter::FromTimestamp(timestamp_ms.ok_or_else(|| needs("Timestamp"))?),
            "AT_TRIM_HORIZON" => ShardFilter::AtTrimHorizon,
            "AT_LATEST" => ShardFilter::AtLatest,
            _ => ShardFilter::FromTrimHorizon,
        })
    }

    pub(super) fn call_split_shard(&mut self, now_ms: i64, mut args: Args) -> ApiResult<Value> {
        let stream = Stream::read(&mut args)?;
        let shard = args.required_text("ShardToSplit", &rules::NAME)?;
        let at = args.required_text("NewStartingHashKey", &rules::HASH_KEY)?;
        args.finish()?;
        let target = stream.required()?;
        let shard = self.shard_named(&shard, &stream)?;
        // Numbers above 2^128-1 are outside of every shard; the refusal is the same.
        let at = at.parse().unwrap_or(u128::MAX);
        self.split_shard(now_ms, target, shard, at)?;
        Ok(Value::Null)
    }

    pub(super) fn call_merge_shards(&mut self, now_ms: i64, mut args: Args) -> ApiResult<Value> {
        let stream = Stream::read(&mut args)?;
        let left = args.required_text("ShardToMerge", &rules::NAME)?;
        let right = args.required_text("AdjacentShardToMerge", &rules::NAME)?;
        args.finish()?;
        let target = stream.required()?;
        let (left, right) = (self.shard_named(&left, &stream)?, self.shard_named(&right, &stream)?);
        self.merge_shards(now_ms, target, left, right)?;
        Ok(Value::Null)
    }

    pub(super) fn call_update_shard_count(&mut self, now_ms: i64, mut args: Args) -> ApiResult<Value> {
        let stream = Stream::read(&mut args)?;
        let target = args.required_integer("TargetShardCount", 1, i64::from(i32::MAX))?;
        args.required_text("ScalingType", &rules::SCALING)?;
        args.finish()?;
        let id = self.find(now_ms, stream.required()?)?;
        let (name, arn) = self.stream_by_id(id).map(|stream| (stream.name().to_owned(), stream.arn()))?;
        let update = self.update_shard_count(now_ms, id, u32::try_from(target).unwrap_or(u32::MAX))?;
        Ok(json!({
            "StreamName": name,
            "StreamARN": arn,
            "CurrentShardCount": update.current,
            "TargetShardCount": update.target,
        }))
    }
}

pub(super) fn range_json(range: HashRange) -> Value {
    json!({ "StartingHashKey": range.start.to_string(), "EndingHashKey": range.end.to_string() })
}

pub(super) fn shard_json(shard: &ShardInfo) -> Value {
    let mut value = json!({
        "ShardId": shard.shard.to_string(),
        "HashKeyRange": range_json(shard.hash_range),
        "SequenceNumberRange": { "StartingSequenceNumber": shard.starting_sequence.to_string() },
    });
    if let Some(ending) = shard.ending_sequence {
        value["SequenceNumberRange"]["EndingSequenceNumber"] = json!(ending.to_string());
    }
    if let Some(parent) = shard.parent {
        value["ParentShardId"] = json!(parent.to_string());
    }
    if let Some(parent) = shard.adjacent_parent {
        value["AdjacentParentShardId"] = json!(parent.to_string());
    }
    value
}
