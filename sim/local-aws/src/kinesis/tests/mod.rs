//! The fake as seen by its clients.

mod limits;
mod lineage;
mod listing;
mod properties;
mod protocol;
mod reading;
mod resources;
mod subscribing;
mod writing;

use super::*;
use bytes::Bytes;
use serde_json::{Value, json};

/// A moment in 2026, for sequence numbers like today's.
const T0: i64 = 1_770_000_000_000;
const HOUR: i64 = 3_600_000;

fn instant() -> Kinesis {
    Kinesis::new(KinesisConfig::instant())
}

/// An active stream `s` in a service without delays and limits.
fn with_stream(shards: u32) -> (Kinesis, StreamId) {
    let mut kinesis = instant();
    let id = kinesis.create_stream(T0, &CreateStream::provisioned("s", shards)).unwrap();
    (kinesis, id)
}

/// A stream `s` in a service of these settings, in creation for as long as they say.
fn with_settings(config: KinesisConfig, shards: u32) -> Kinesis {
    let mut kinesis = Kinesis::new(config);
    kinesis.create_stream(T0, &CreateStream::provisioned("s", shards)).unwrap();
    kinesis
}

/// The question for the shards of `s`.
fn of_s() -> ListShards<'static> {
    ListShards { stream: Some(StreamRef::Name("s")), ..ListShards::default() }
}

/// The question for the page after a token.
fn after(token: &str) -> ListShards<'_> {
    ListShards { next_token: Some(token), ..ListShards::default() }
}

fn record(key: &str, data: &[u8]) -> NewRecord {
    NewRecord { data: Bytes::copy_from_slice(data), partition_key: key.into(), explicit_hash_key: None }
}

fn at_hash(hash_key: u128) -> NewRecord {
    NewRecord { explicit_hash_key: Some(hash_key), ..record("k", b"x") }
}

fn put(kinesis: &mut Kinesis, now_ms: i64, hash_key: u128) -> Written {
    kinesis.put_record(now_ms, "s", at_hash(hash_key), None).unwrap()
}

fn iterator(kinesis: &mut Kinesis, now_ms: i64, shard: u32, start: IteratorStart) -> ShardIterator {
    kinesis.get_shard_iterator(now_ms, "s", ShardIndex(shard), start).unwrap()
}

fn read(kinesis: &mut Kinesis, now_ms: i64, shard: u32, start: IteratorStart) -> RecordsPage {
    let iterator = iterator(kinesis, now_ms, shard, start);
    kinesis.get_records(now_ms, &iterator, None).unwrap()
}

fn code<T: std::fmt::Debug>(result: ApiResult<T>) -> &'static str {
    result.unwrap_err().code
}

fn numbers(page: &RecordsPage) -> Vec<SequenceNumber> {
    page.records.iter().map(|record| record.sequence_number).collect()
}

fn indices(shards: &[ShardInfo]) -> Vec<u32> {
    shards.iter().map(|shard| shard.shard.0).collect()
}
