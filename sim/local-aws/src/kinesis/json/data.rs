//! Records in and out.

use super::args::Args;
use super::{Stream, rules, seconds};
use crate::kinesis::Kinesis;
use crate::kinesis::error::{ApiError, ApiResult};
use crate::kinesis::iterator::IteratorStart;
use crate::kinesis::read::{ChildShard, MOST_RECORDS, ReadRecord};
use crate::kinesis::sequence::SequenceNumber;
use crate::kinesis::write::{NewRecord, Written};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

const MOST_DATA: usize = 10 << 20;

/// A record and the text of its explicit hash key. The hash key is checked last.
struct Put {
    record: NewRecord,
    hash_key: Option<String>,
}

impl Put {
    fn read(args: &mut Args) -> ApiResult<Self> {
        let data = args.required_blob("Data", MOST_DATA)?;
        let partition_key = args.required_text("PartitionKey", &rules::PARTITION_KEY)?.into();
        let hash_key = args.text("ExplicitHashKey", &rules::HASH_KEY)?;
        Ok(Put { record: NewRecord { data, partition_key, explicit_hash_key: None }, hash_key })
    }

    fn record(self) -> ApiResult<NewRecord> {
        let explicit_hash_key = self.hash_key.map(|text| {
            text.parse().map_err(|_| {
                ApiError::argument(format!(
                    "Invalid ExplicitHashKey. ExplicitHashKey must be in the range: [0, 2^128-1]. Specified value was {text}"
                ))
            })
        });
        Ok(NewRecord { explicit_hash_key: explicit_hash_key.transpose()?, ..self.record })
    }
}

impl Kinesis {
    pub(super) fn call_put_record(&mut self, now_ms: i64, mut args: Args) -> ApiResult<Value> {
        let stream = Stream::read(&mut args)?;
        let put = Put::read(&mut args)?;
        let ordering = args.text("SequenceNumberForOrdering", &rules::SEQUENCE)?;
        args.finish()?;
        let target = stream.required()?;
        let ordering = ordering.map(|text| {
            text.parse::<SequenceNumber>().map_err(|_| {
                ApiError::argument(format!(
                    "ExclusiveMinimumSequenceNumber {text} used in PutRecord on stream {} is invalid.",
                    self.title(&stream)
                ))
            })
        });
        let ordering = ordering.transpose()?;
        let written = self.put_record(now_ms, target, put.record()?, ordering)?;
        Ok(self.with_encryption(now_ms, &stream, written_json(&written)))
    }

    pub(super) fn call_put_records(&mut self, now_ms: i64, mut args: Args) -> ApiResult<Value> {
        let stream = Stream::read(&mut args)?;
        let puts = args.structures("Records", (1, 500), Put::read)?;
        args.finish()?;
        let target = stream.required()?;
        let records = puts.into_iter().map(Put::record).collect::<ApiResult<Vec<_>>>()?;
        let outcomes = self.put_records(now_ms, target, records)?;
        let failed = outcomes.iter().filter(|outcome| outcome.is_err()).count();
        let entries: Vec<Value> = outcomes
            .iter()
            .map(|outcome| match outcome {
                Ok(written) => written_json(written),
                Err(error) => json!({ "ErrorCode": error.code, "ErrorMessage": error.message }),
            })
            .collect();
        let answer = json!({ "FailedRecordCount": failed, "Records": entries });
        Ok(self.with_encryption(now_ms, &stream, answer))
    }

    fn with_encryption(&mut self, now_ms: i64, stream: &Stream, mut answer: Value) -> Value {
        let id = stream.required().and_then(|stream| self.find(now_ms, stream));
        if id.and_then(|id| self.stream_by_id(id)).is_ok_and(|stream| stream.encryption_key.is_some()) {
            answer["EncryptionType"] = json!("KMS");
        }
        answer
    }

    pub(super) fn call_get_shard_iterator(&mut self, now_ms: i64, mut args: Args) -> ApiResult<Value> {
        let stream = Stream::read(&mut args)?;
        let shard = args.required_text("ShardId", &rules::NAME)?;
        let kind = args.required_text("ShardIteratorType", &rules::ITERATOR_TYPE)?;
        let number = args.text("StartingSequenceNumber", &rules::SEQUENCE)?;
        let timestamp_ms = args.time_ms("Timestamp")?;
        args.finish()?;
        let target = stream.required()?;
        let index = self.shard_named(&shard, &stream)?;
        let start = self.iterator_start(&kind, &shard, &stream, number, timestamp_ms)?;
        let iterator = self.get_shard_iterator(now_ms, target, index, start)?;
        Ok(json!({ "ShardIterator": self.iterator_token(&iterator) }))
    }

    /// The place that a type names, with a number or a time.
    pub(super) fn iterator_start(
        &self, kind: &str, shard: &str, stream: &Stream, number: Option<String>, timestamp_ms: Option<i64>,
    ) -> ApiResult<IteratorStart> {
        let must = |also: &str| {
            Err(ApiError::argument(format!(
                "Must either specify (1) AT_SEQUENCE_NUMBER or AFTER_SEQUENCE_NUMBER and StartingSequenceNumber or (2) \
                 TRIM_HORIZON or LATEST and no StartingSequenceNumber. Request specified {kind} and {also}."
            )))
        };
        let by_number = matches!(kind, "AT_SEQUENCE_NUMBER" | "AFTER_SEQUENCE_NUMBER");
        let Some(text) = number else {
            return match (kind, timestamp_ms) {
                ("TRIM_HORIZON", _) => Ok(IteratorStart::TrimHorizon),
                ("LATEST", _) => Ok(IteratorStart::Latest),
                ("AT_TIMESTAMP", Some(ms)) => Ok(IteratorStart::AtTimestamp(ms)),
                ("AT_TIMESTAMP", None) => Err(ApiError::argument(
                    "Must specify timestampInMillis parameter for iterator of type AT_TIMESTAMP. Current request has no \
                     timestamp parameter.",
                )),
                _ => must("no StartingSequenceNumber"),
            };
        };
        if !by_number {
            return must("also a StartingSequenceNumber");
        }
        let number = text.parse::<SequenceNumber>().map_err(|_| {
            ApiError::argument(format!(
                "StartingSequenceNumber {text} used in GetShardIterator on shard {shard} in stream {} is \
                 invalid.",
                self.title(stream)
            ))
        })?;
        let after = kind == "AFTER_SEQUENCE_NUMBER";
        Ok(if after { IteratorStart::AfterSequence(number) } else { IteratorStart::AtSequence(number) })
    }

    pub(super) fn call_get_records(&mut self, now_ms: i64, mut args: Args) -> ApiResult<Value> {
        let token = args.required_text("ShardIterator", &rules::ITERATOR)?;
        let limit = args.count("Limit", MOST_RECORDS)?;
        let arn = args.text("StreamARN", &rules::STREAM_ARN)?;
        args.finish()?;
        let iterator = self.iterator_from_token(&token)?;
        if let Some(arn) = arn {
            let named = Stream { name: None, arn: Some(arn) };
            if self.find(now_ms, named.required()?)? != iterator.stream {
                let message = "StreamARN and ShardIterator do not belong to the same stream.";
                return Err(ApiError::argument(message));
            }
        }
        let page = self.get_records(now_ms, &iterator, limit)?;
        let mut answer = json!({ "MillisBehindLatest": page.millis_behind_latest });
        answer["Records"] = page.records.iter().map(record_json).collect();
        if let Some(next) = &page.next {
            answer["NextShardIterator"] = json!(self.iterator_token(next));
        }
        if !page.child_shards.is_empty() {
            answer["ChildShards"] = page.child_shards.iter().map(child_json).collect();
        }
        Ok(answer)
    }
}

fn written_json(written: &Written) -> Value {
    json!({ "ShardId": written.shard.to_string(), "SequenceNumber": written.sequence_number.to_string() })
}

pub(super) fn record_json(record: &ReadRecord) -> Value {
    let mut value = json!({
        "SequenceNumber": record.sequence_number.to_string(),
        "ApproximateArrivalTimestamp": seconds(record.arrival_ms),
        "Data": STANDARD.encode(&record.data),
        "PartitionKey": &*record.partition_key,
    });
    if record.encrypted {
        value["EncryptionType"] = json!("KMS");
    }
    value
}

pub(super) fn child_json(child: &ChildShard) -> Value {
    json!({
        "ShardId": child.shard.to_string(),
        "ParentShards": child.parents.iter().map(|parent| parent.to_string()).collect::<Vec<_>>(),
        "HashKeyRange": super::shards::range_json(child.hash_range),
    })
}
