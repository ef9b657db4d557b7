//! `PutRecord` and `PutRecords`.

use super::Kinesis;
use super::error::{ApiError, ApiResult};
use super::ids::{ShardIndex, StreamId, StreamRef};
use super::log::StoredRecord;
use super::sequence::{SequenceNumber, seconds};
use super::stream::Stream;
use crate::constraint::beyond;
use crate::constraint::refuse_if;
use bytes::Bytes;
use md5::{Digest, Md5};
use std::sync::Arc;

/// A record to be written.
#[derive(Clone, Debug)]
pub struct NewRecord {
    /// The blob.
    pub data: Bytes,
    /// 1 to 256 characters; the key's MD5 picks the shard.
    pub partition_key: Arc<str>,
    /// Picks the shard instead.
    pub explicit_hash_key: Option<u128>,
}

/// Where a record went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Written {
    /// Its shard.
    pub shard: ShardIndex,
    /// Its number.
    pub sequence_number: SequenceNumber,
}

/// The answer of `PutRecords` for one record: a refusal does not stop later records.
pub type PutOutcome = Result<Written, ApiError>;

const MOST_RECORDS: usize = 500;
const MOST_BYTES: usize = 10 << 20;
const WRITES_PER_SECOND: u32 = 1000;
const WRITE_BYTES_PER_SECOND: u64 = 1 << 20;

/// Where a partition key falls.
pub(crate) fn hash_of(partition_key: &str) -> u128 {
    u128::from_be_bytes(Md5::digest(partition_key.as_bytes()).into())
}

impl Kinesis {
    /// `PutRecord`. `ordering` is `SequenceNumberForOrdering`: numbers grow anyway, so `ordering` is only checked.
    pub fn put_record<'a>(
        &mut self, now_ms: i64, stream: impl Into<StreamRef<'a>>, record: NewRecord,
        ordering: Option<SequenceNumber>,
    ) -> ApiResult<Written> {
        let id = self.find_writable(now_ms, stream.into())?;
        let stream = self.stream_mut(id)?;
        stream.check_size("data", &record)?;
        if let Some(number) = ordering
            && number.parts().is_none_or(|parts| parts.time_secs > seconds(now_ms))
        {
            return Err(ApiError::argument(format!(
                "ExclusiveMinimumSequenceNumber {number} used in PutRecord on stream {} is invalid.",
                stream.title()
            )));
        }
        stream.write(now_ms, record)
    }

    /// `PutRecords`: 1 to 500 records, 10 MiB together; one outcome for each, in their order.
    pub fn put_records<'a>(
        &mut self, now_ms: i64, stream: impl Into<StreamRef<'a>>, records: Vec<NewRecord>,
    ) -> ApiResult<Vec<PutOutcome>> {
        if let Some(bound) = beyond(records.len(), 1, MOST_RECORDS) {
            let shown = vec!["PutRecordsRequestEntry"; records.len()].join(", ");
            let place = format_args!("Value '[{shown}]' at 'records'");
            return Err(ApiError::unmet(place, format_args!("have length {bound}")));
        }
        let id = self.find_writable(now_ms, stream.into())?;
        let stream = self.stream_mut(id)?;
        for (index, record) in records.iter().enumerate() {
            stream.check_size(&format!("records.{}.member.data", index + 1), record)?;
        }
        let total: usize = records.iter().map(|record| record.data.len() + record.partition_key.len()).sum();
        refuse_if(total > MOST_BYTES, || ApiError::argument("Records size exceeds 10 MB limit"))?;
        Ok(records.into_iter().map(|record| stream.write(now_ms, record)).collect())
    }

    /// A stream that is being created or deleted takes no records.
    fn find_writable(&mut self, now_ms: i64, stream: StreamRef<'_>) -> ApiResult<StreamId> {
        let id = self.find(now_ms, stream)?;
        let stream = self.stream_by_id(id)?;
        if stream.is_ready() { Ok(id) } else { Err(stream.not_found()) }
    }
}

impl Stream {
    fn check_size(&self, field: &str, record: &NewRecord) -> ApiResult<()> {
        let most = self.max_record_bytes;
        if record.data.len() + record.partition_key.len() > most {
            let size = record.data.len();
            return Err(ApiError::unmet(
                format_args!("Value 'java.nio.HeapByteBuffer[pos=0 lim={size} cap={size}]' at '{field}'"),
                format_args!("have length less than or equal to {most}"),
            ));
        }
        Ok(())
    }

    fn write(&mut self, now_ms: i64, record: NewRecord) -> ApiResult<Written> {
        let NewRecord { data, partition_key, explicit_hash_key } = record;
        let hash_key = explicit_hash_key.unwrap_or_else(|| hash_of(&partition_key));
        let limits = self.config.limits;
        let encrypted = self.encryption_key.is_some();
        let index = self.shard_for(hash_key).ok_or_else(|| self.not_found())?;
        self.age_shard(now_ms, index);
        let Some(shard) = self.shard_mut(index).filter(|shard| shard.is_open()) else {
            return Err(self.not_found());
        };
        let record = StoredRecord { data, partition_key, hash_key, arrival_ms: now_ms, encrypted };
        let size = record.size() as u64;
        if limits && !shard.writes.take_write(now_ms, size, WRITES_PER_SECOND, WRITE_BYTES_PER_SECOND) {
            return Err(self.throttled(index));
        }
        Ok(Written { shard: index, sequence_number: shard.append(record) })
    }
}
