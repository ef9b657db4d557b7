//! The JSON 1.1 protocol: [`Kinesis::call`].

mod args;
mod data;
mod resources;
mod rules;
mod shards;
mod streams;
mod subscribe;

use super::Kinesis;
use super::error::{ApiError, ApiResult};
use super::ids::{ShardIndex, StreamRef};
use args::Args;
use serde_json::{Value, json};

type Call = fn(&mut Kinesis, i64, Args) -> ApiResult<Value>;

/// Every operation by its name.
pub(super) const OPERATIONS: [(&str, Call); 34] = [
    ("PutRecord", Kinesis::call_put_record),
    ("PutRecords", Kinesis::call_put_records),
    ("GetShardIterator", Kinesis::call_get_shard_iterator),
    ("GetRecords", Kinesis::call_get_records),
    ("SubscribeToShard", |_, _, _| {
        let message =
            "SubscribeToShard is answered by a stream of events, and this caller takes a single answer.";
        Err(ApiError::argument(message))
    }),
    ("ListShards", Kinesis::call_list_shards),
    ("SplitShard", Kinesis::call_split_shard),
    ("MergeShards", Kinesis::call_merge_shards),
    ("UpdateShardCount", Kinesis::call_update_shard_count),
    ("CreateStream", Kinesis::call_create_stream),
    ("DeleteStream", Kinesis::call_delete_stream),
    ("DescribeStream", Kinesis::call_describe_stream),
    ("DescribeStreamSummary", Kinesis::call_describe_stream_summary),
    ("DescribeLimits", Kinesis::call_describe_limits),
    ("ListStreams", Kinesis::call_list_streams),
    ("IncreaseStreamRetentionPeriod", |kinesis, now, args| kinesis.call_change_retention(now, args, true)),
    ("DecreaseStreamRetentionPeriod", |kinesis, now, args| kinesis.call_change_retention(now, args, false)),
    ("UpdateStreamMode", Kinesis::call_update_stream_mode),
    ("UpdateMaxRecordSize", Kinesis::call_update_max_record_size),
    ("AddTagsToStream", Kinesis::call_add_tags_to_stream),
    ("RemoveTagsFromStream", Kinesis::call_remove_tags_from_stream),
    ("ListTagsForStream", Kinesis::call_list_tags_for_stream),
    ("TagResource", Kinesis::call_tag_resource),
    ("UntagResource", Kinesis::call_untag_resource),
    ("ListTagsForResource", Kinesis::call_list_tags_for_resource),
    ("RegisterStreamConsumer", Kinesis::call_register_consumer),
    ("DescribeStreamConsumer", Kinesis::call_describe_consumer),
    ("DeregisterStreamConsumer", Kinesis::call_deregister_consumer),
    ("ListStreamConsumers", Kinesis::call_list_consumers),
    ("EnableEnhancedMonitoring", |kinesis, now, args| kinesis.call_change_metrics(now, args, true)),
    ("DisableEnhancedMonitoring", |kinesis, now, args| kinesis.call_change_metrics(now, args, false)),
    ("StartStreamEncryption", |kinesis, now, args| kinesis.call_change_encryption(now, args, true)),
    ("StopStreamEncryption", |kinesis, now, args| kinesis.call_change_encryption(now, args, false)),
    ("DescribeAccountSettings", |_, _, _| {
        Ok(json!({ "MinimumThroughputBillingCommitment": { "Status": "DISABLED" } }))
    }),
];

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
        Err(ApiError::dry_run())
    }

    fn dispatch(&mut self, now_ms: i64, operation: &str, args: Args) -> ApiResult<Value> {
        match OPERATIONS.iter().find(|(name, _)| *name == operation) {
            Some((_, call)) => call(self, now_ms, args),
            None => Err(ApiError::client(
                "UnknownOperationException",
                format!("Operation {operation} is not known or not offered by this server."),
            )),
        }
    }

    /// The stream of a request and its account, for messages.
    fn title(&self, stream: &Stream) -> String {
        let named = stream.name.as_deref().or(stream.arn.as_deref()).unwrap_or_default();
        format!("{named} under account {}", self.config().account_id)
    }

    /// A shard's name, read like the service reads names: an unreadable name is an unknown shard.
    fn shard_named(&self, name: &str, stream: &Stream) -> ApiResult<ShardIndex> {
        ShardIndex::parse(name).ok_or_else(|| {
            ApiError::not_found(format!("Could not find shard {name} in stream {}.", self.title(stream)))
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
}

/// A time in the wire's form: seconds, with milliseconds as a fraction.
fn seconds(ms: i64) -> Value {
    if ms % 1000 == 0 { json!(ms / 1000) } else { json!(ms as f64 / 1000.0) }
}
