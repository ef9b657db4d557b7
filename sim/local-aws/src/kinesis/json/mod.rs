//! The JSON 1.1 protocol: [`Kinesis::call`].

mod args;
mod data;
mod resources;
mod rules;
mod shards;
mod streams;

use super::Kinesis;
use super::error::{ApiError, ApiResult};
use super::ids::{ShardIndex, StreamRef};
use args::Args;
use serde_json::{Value, json};

impl Kinesis {
    /// One request of the JSON protocol: `operation` is the part after the dot in `X-Amz-Target`. Blobs are base64,
    /// times are seconds since the epoch. An operation without an answer returns null; the service then sends an empty
    /// body.
    pub fn call(&mut self, now_ms: i64, operation: &str, body: Value) -> ApiResult<Value> {
        let mut args = Args::new(body)?;
        if args.flag("DryRun")? {
            return self.dry_run(now_ms, operation, args);
        }
        self.dispatch(now_ms, operation, args)
    }

    /// Runs the operation on a copy, and tells whether the operation would have succeeded.
    fn dry_run(&self, now_ms: i64, operation: &str, args: Args) -> ApiResult<Value> {
        self.clone().dispatch(now_ms, operation, args)?;
        Err(ApiError::client(
            "DryRunOperationException",
            "Request would have succeeded, but DryRun flag is set.",
        ))
    }

    fn dispatch(&mut self, now_ms: i64, operation: &str, args: Args) -> ApiResult<Value> {
        match operation {
            "PutRecord" => self.call_put_record(now_ms, args),
            "PutRecords" => self.call_put_records(now_ms, args),
            "GetShardIterator" => self.call_get_shard_iterator(now_ms, args),
            "GetRecords" => self.call_get_records(now_ms, args),
            "SubscribeToShard" => Err(ApiError::argument(
                "SubscribeToShard is not offered by this server yet; read the shard with GetRecords.",
            )),

            "ListShards" => self.call_list_shards(now_ms, args),
            "SplitShard" => self.call_split_shard(now_ms, args),
            "MergeShards" => self.call_merge_shards(now_ms, args),
            "UpdateShardCount" => self.call_update_shard_count(now_ms, args),

            "CreateStream" => self.call_create_stream(now_ms, args),
            "DeleteStream" => self.call_delete_stream(now_ms, args),
            "DescribeStream" => self.call_describe_stream(now_ms, args),
            "DescribeStreamSummary" => self.call_describe_stream_summary(now_ms, args),
            "DescribeLimits" => self.call_describe_limits(now_ms, args),
            "ListStreams" => self.call_list_streams(now_ms, args),
            "IncreaseStreamRetentionPeriod" => self.call_change_retention(now_ms, args, true),
            "DecreaseStreamRetentionPeriod" => self.call_change_retention(now_ms, args, false),
            "UpdateStreamMode" => self.call_update_stream_mode(now_ms, args),
            "UpdateMaxRecordSize" => self.call_update_max_record_size(now_ms, args),

            "AddTagsToStream" => self.call_add_tags_to_stream(now_ms, args),
            "RemoveTagsFromStream" => self.call_remove_tags_from_stream(now_ms, args),
            "ListTagsForStream" => self.call_list_tags_for_stream(now_ms, args),
            "TagResource" => self.call_tag_resource(now_ms, args),
            "UntagResource" => self.call_untag_resource(now_ms, args),
            "ListTagsForResource" => self.call_list_tags_for_resource(now_ms, args),
            "RegisterStreamConsumer" => self.call_register_consumer(now_ms, args),
            "DescribeStreamConsumer" => self.call_describe_consumer(now_ms, args),
            "DeregisterStreamConsumer" => self.call_deregister_consumer(now_ms, args),
            "ListStreamConsumers" => self.call_list_consumers(now_ms, args),
            "EnableEnhancedMonitoring" => self.call_change_metrics(now_ms, args, true),
            "DisableEnhancedMonitoring" => self.call_change_metrics(now_ms, args, false),
            "StartStreamEncryption" => self.call_change_encryption(now_ms, args, true),
            "StopStreamEncryption" => self.call_change_encryption(now_ms, args, false),
            "DescribeAccountSettings" => {
                Ok(json!({ "MinimumThroughputBillingCommitment": { "Status": "DISABLED" } }))
            }

            unknown => Err(ApiError::client(
                "UnknownOperationException",
                format!("Operation {unknown} is not known or not offered by this server."),
            )),
        }
    }

    /// A shard's name, read like the service reads names: an unreadable name is an unknown shard.
    fn shard_named(&self, name: &str, stream: &Stream) -> ApiResult<ShardIndex> {
        ShardIndex::parse(name).ok_or_else(|| {
            ApiError::not_found(format!(
                "Could not find shard {name} in stream {} under account {}.",
                stream.shown(),
                self.config().account_id
            ))
        })
    }
}

/// The stream of a request: `StreamName`, `StreamARN`, or both.
struct Stream {
    name: Option<String>,
    arn: Option<String>,
}

impl Stream {
    fn read(args: &mut Args) -> ApiResult<Self> {
        Ok(Stream {
            name: args.text("StreamName", &rules::NAME)?,
            arn: args.text("StreamARN", &rules::STREAM_ARN)?,
        })
    }

    fn given(&self) -> Option<StreamRef<'_>> {
        match (self.name.as_deref(), self.arn.as_deref()) {
            (Some(name), Some(arn)) => Some(StreamRef::Both { name, arn }),
            (Some(name), None) => Some(StreamRef::Name(name)),
            (None, Some(arn)) => Some(StreamRef::Arn(arn)),
            (None, None) => None,
        }
    }

    fn required(&self) -> ApiResult<StreamRef<'_>> {
        self.given().ok_or_else(|| ApiError::argument("Either StreamName or StreamARN should be provided."))
    }

    /// For messages.
    fn shown(&self) -> &str {
        self.name.as_deref().or(self.arn.as_deref()).unwrap_or_default()
    }
}

/// A time in the wire's form: seconds, with milliseconds as a fraction.
fn seconds(ms: i64) -> Value {
    if ms % 1000 == 0 { json!(ms / 1000) } else { json!(ms as f64 / 1000.0) }
}
