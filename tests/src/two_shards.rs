//! A stream of two shards on the AWS in memory, and workers of the stream in this process.

use crate::clients;
use crate::local::{Local, instant};
use crate::probe::Probe;
use crate::wait::{SOON, until_or};
use leasehold::aws::{dynamodb, kinesis};
use std::collections::BTreeSet;
use std::fmt;

/// The stream's shards, in the order of their hash keys.
pub const SHARDS: [&str; 2] = ["shardId-000000000000", "shardId-000000000001"];

/// A stream of two shards.
pub struct TwoShards {
    /// The server.
    pub local: Local,
    /// A client of it.
    pub kinesis: kinesis::Client,
    /// A client of it.
    pub dynamodb: dynamodb::Client,
    stream: &'static str,
    application: &'static str,
}

impl fmt::Debug for TwoShards {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TwoShards").field("stream", &self.stream).finish_non_exhaustive()
    }
}

impl TwoShards {
    /// Starts a server, with this stream. Workers are of this application.
    ///
    /// # Panics
    /// If that fails.
    pub async fn start(stream: &'static str, application: &'static str) -> Self {
        let local = Local::start(instant()).await;
        let kinesis = clients::kinesis(&local.endpoint);
        let dynamodb = clients::dynamodb(&local.endpoint);
        let create = kinesis.create_stream().stream_name(stream).shard_count(2);
        create.send().await.expect("a stream");
        Self { local, kinesis, dynamodb, stream, application }
    }

    /// Starts a worker.
    pub fn worker(&self) -> Probe {
        let (kinesis, dynamodb) = (self.kinesis.clone(), self.dynamodb.clone());
        Probe::start(kinesis, dynamodb, self.stream, self.application)
    }

    /// Puts a record into each half of the hash space; gives the sequence number of the first.
    ///
    /// # Panics
    /// If that fails.
    pub async fn put(&self, data: &str) -> String {
        let mut numbers = Vec::new();
        for hash_key in ["0".to_owned(), u128::MAX.to_string()] {
            let put = self.kinesis.put_record().stream_name(self.stream);
            let put = put.partition_key("k").explicit_hash_key(hash_key);
            let put = put.data(data.as_bytes().to_vec().into());
            numbers.push(put.send().await.expect("a record").sequence_number);
        }
        numbers.swap_remove(0)
    }
}

/// Waits until a worker has processed exactly these payloads of a shard, in this order.
///
/// # Panics
/// If the wait is long. The message has the payloads and the notices of the worker.
pub async fn becomes(probe: &Probe, shard: &str, expected: &[&str]) {
    waits(probe, shard, expected, |payloads| payloads).await;
}

/// The same for a worker that lost the lease of the shard: records after the last checkpoint come again, and count once.
///
/// # Panics
/// If the wait is long. The message has the payloads and the notices of the worker.
pub async fn becomes_after_a_loss(probe: &Probe, shard: &str, expected: &[&str]) {
    waits(probe, shard, expected, |mut payloads| {
        let mut known = BTreeSet::new();
        payloads.retain(|payload| known.insert(payload.clone()));
        payloads
    })
    .await;
}

async fn waits(probe: &Probe, shard: &str, expected: &[&str], counted: impl Fn(Vec<String>) -> Vec<String>) {
    let payloads = || -> Vec<String> {
        let seen = probe.seen();
        let records = seen.records.get(shard).map(Vec::as_slice).unwrap_or_default();
        records.iter().map(|(_, data)| data.clone()).collect()
    };
    let found = || format!("found {:?}; the worker told {:#?}", payloads(), probe.seen().notices);
    let what = format!("{expected:?} of {shard}");
    until_or(&what, SOON, || async { counted(payloads()) == expected }, found).await;
}
