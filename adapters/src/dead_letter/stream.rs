//! A dead-letter sink that puts records into another stream.

use super::{DeadLetter, Letter};
use crate::aws::bounded::Bounded;
use aws_sdk_kinesis::Client;
use aws_sdk_kinesis::error::SdkError;
use aws_sdk_kinesis::operation::put_record::PutRecordError;
use aws_sdk_kinesis::primitives::Blob;

/// Puts records that a handler cannot process into another Kinesis stream (`PutRecord`), with the same payload,
/// partition key and, if known, explicit hash key. A part of an aggregated record becomes a separate record.
///
/// The record's origin and error are only in the event of the setting aside. The client needs the permission
/// `kinesis:PutRecord` for that stream. The client's retries stay on.
#[derive(Clone, Debug)]
pub struct DeadLetterStream {
    client: Client,
    stream: String,
}

impl DeadLetterStream {
    /// A sink that puts records into the stream of this name. Name a stream not read by the worker: otherwise a
    /// record set aside is read again.
    pub fn new(client: Client, stream: impl Into<String>) -> Self {
        Self { client, stream: stream.into() }
    }
}

impl DeadLetter for DeadLetterStream {
    type Error = SdkError<PutRecordError>;

    async fn store(&self, letter: Letter) -> Result<(), Self::Error> {
        let record = letter.record;
        let put = self.client.put_record();
        put.stream_name(&self.stream)
            .partition_key(&*record.partition_key)
            .set_explicit_hash_key(record.explicit_hash_key.map(|key| key.0.to_string()))
            .data(Blob::new(record.data.to_vec()))
            .customize()
            .interceptor(Bounded)
            .send()
            .await
            .map(drop)
    }
}
