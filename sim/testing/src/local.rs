//! The in-memory AWS in the test's own process, for the clients of the AWS SDK.

use aws_smithy_async::rt::sleep::{SharedAsyncSleep, TokioSleep};
use aws_types::SdkConfig;
use aws_types::region::Region;
use bytes::Bytes;
use leasehold::aws::dynamodb;
use leasehold::aws::kinesis;
use leasehold::aws::kinesis::config::{BehaviorVersion, Credentials, SharedCredentialsProvider};
use leasehold::{CompleteBuilder, Config, ReaderConfig, ShardId, Span, Worker};
use leasehold_local_aws::dynamo::DynamoConfig;
use leasehold_local_aws::http::{LocalOptions, Loopback, SharedAws, wall_clock};
use leasehold_local_aws::kinesis::{
    ApiError, CreateStream, HashRange, Kinesis, KinesisConfig, NewRecord, ShardIndex,
};

/// Kinesis and DynamoDB in memory, behind a port of 127.0.0.1 that was free.
///
/// Requests go through HTTP and the real SDK, and time is real: use this server for a few tests of the whole, with
/// `#[tokio::test]`. A drop ends the server and all its data. No request is throttled, and creations, splits and merges
/// take effect at once.
///
/// The methods that change the stream are the test's own hand: they act at once, without HTTP, and panic with a sentence if the
/// service refuses.
///
/// ```
/// use leasehold_testing::LocalAws;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// let aws = LocalAws::start().await;
/// aws.create_stream("orders", 2);
/// aws.put("orders", "order-7", "paid");
///
/// let (seen, mut sink) = tokio::sync::mpsc::unbounded_channel();
/// let worker = aws.consumer("orders", "billing").build().expect("all is there");
/// let control = worker.control();
/// let run = tokio::spawn(worker.run_fn(move |batch: leasehold::Batch| {
///     batch.into_iter().for_each(|record| seen.send(record.data).unwrap_or_default());
///     std::future::ready(Ok::<(), std::io::Error>(()))
/// }));
/// assert_eq!(sink.recv().await.as_deref(), Some(&b"paid"[..]));
/// control.shutdown();
/// run.await.expect("it does not panic").expect("it stops cleanly");
/// # }
/// ```
#[derive(Debug)]
pub struct LocalAws {
    server: Loopback,
}

impl LocalAws {
    /// Starts a server on the tokio runtime of the caller.
    ///
    /// # Panics
    /// If the process cannot listen on any port.
    pub async fn start() -> Self {
        Self::start_with(LocalOptions {
            kinesis: KinesisConfig::instant(),
            dynamo: DynamoConfig { create_ms: 0, backfill_ms: 0, delete_ms: 0, ..DynamoConfig::default() },
            ..LocalOptions::default()
        })
        .await
    }

    /// Like [`start`](LocalAws::start), with other limits and delays. `LocalOptions::default()` has AWS's limits and
    /// delays.
    ///
    /// # Panics
    /// If the process cannot listen on any port.
    pub async fn start_with(options: LocalOptions) -> Self {
        match Loopback::start(options).await {
            Ok(server) => Self { server },
            Err(error) => panic!("expected to be able to listen on a free port of 127.0.0.1, but: {error}"),
        }
    }

    /// The server's address, such as `http://127.0.0.1:40123`.
    pub fn endpoint_url(&self) -> &str {
        self.server.endpoint()
    }

    /// What every client of the AWS SDK can be made of: the endpoint, region `us-east-1` and some credentials.
    pub fn sdk_config(&self) -> SdkConfig {
        let credentials = Credentials::new("local", "local", None, None, "local");
        SdkConfig::builder()
            .behavior_version(BehaviorVersion::latest())
            .endpoint_url(self.endpoint_url())
            .region(Region::new("us-east-1"))
            .credentials_provider(SharedCredentialsProvider::new(credentials))
            .http_client(aws_smithy_http_client::Builder::new().build_http())
            .sleep_impl(SharedAsyncSleep::new(TokioSleep::new()))
            .build()
    }

    /// A client of Kinesis.
    pub fn kinesis(&self) -> kinesis::Client {
        kinesis::Client::new(&self.sdk_config())
    }

    /// A client of DynamoDB.
    pub fn dynamodb(&self) -> dynamodb::Client {
        dynamodb::Client::new(&self.sdk_config())
    }

    /// A worker of this stream and application, quick to start, to read and to notice a lost worker: leases last for 3
    /// s, the worker scans for leases every second, and reads shards every 250 ms.
    pub fn consumer(&self, stream: &str, application: &str) -> CompleteBuilder {
        Worker::builder()
            .kinesis(self.kinesis())
            .dynamodb(self.dynamodb())
            .stream(stream)
            .application(application)
            .config(hasten)
    }

    /// Creates a stream.
    ///
    /// # Panics
    /// If a stream of this name exists, or the name or number is invalid.
    #[track_caller]
    pub fn create_stream(&self, name: &str, shards: u32) {
        self.change("create", name, |kinesis, now_ms| {
            kinesis.create_stream(now_ms, &CreateStream::provisioned(name, shards))
        });
    }

    /// Puts a record and returns the record's shard.
    ///
    /// # Panics
    /// If the stream does not exist, or the key or the record is longer than the stream allows.
    #[track_caller]
    pub fn put(&self, stream: &str, partition_key: &str, data: impl Into<Bytes>) -> ShardId {
        let record =
            NewRecord { data: data.into(), partition_key: partition_key.into(), explicit_hash_key: None };
        let written = self
            .change("write to", stream, |kinesis, now_ms| kinesis.put_record(now_ms, stream, record, None));
        written.shard.to_string().into()
    }

    /// The open shards, in the order of the hash space.
    ///
    /// # Panics
    /// If the stream does not exist.
    #[track_caller]
    pub fn open_shards(&self, stream: &str) -> Vec<ShardId> {
        let name = |(shard, _): &(ShardIndex, HashRange)| shard.to_string().into();
        self.open(stream).iter().map(name).collect()
    }

    #[track_caller]
    fn open(&self, stream: &str) -> Vec<(ShardIndex, HashRange)> {
        let mut aws = self.server.aws().lock();
        aws.kinesis.advance(wall_clock()());
        let Some(found) = aws.kinesis.stream(stream) else {
            panic!("expected a stream {stream:?}, found none; call create_stream first");
        };
        crate::harness::open(found)
    }

    /// Splits a shard in the middle. Gives its children.
    ///
    /// # Panics
    /// If the stream has no open shard of this name.
    #[track_caller]
    pub fn split(&self, stream: &str, shard: impl Into<ShardId>) -> [ShardId; 2] {
        let shard = index(&shard.into());
        let before = self.open(stream);
        let Some((_, range)) = before.iter().find(|(open, _)| *open == shard) else {
            panic!("expected {shard} to be an open shard of stream {stream:?}; see open_shards");
        };
        let middle = range.start + (range.end - range.start) / 2 + 1;
        self.change("split a shard of", stream, |kinesis, now_ms| {
            kinesis.split_shard(now_ms, stream, shard, middle)
        });
        match self.children(stream, shard)[..] {
            [first, second] => [first, second].map(|child| child.to_string().into()),
            ref other => panic!("expected a split to be done at once, found {} children", other.len()),
        }
    }

    /// Merges two adjacent shards, of which the first has the lower hash keys. Gives their child.
    ///
    /// # Panics
    /// If they are not two open shards side by side.
    #[track_caller]
    pub fn merge(&self, stream: &str, left: impl Into<ShardId>, right: impl Into<ShardId>) -> ShardId {
        let (left, right) = (index(&left.into()), index(&right.into()));
        self.change("merge shards of", stream, |kinesis, now_ms| {
            kinesis.merge_shards(now_ms, stream, left, right)
        });
        match self.children(stream, left)[..] {
            [child] => child.to_string().into(),
            ref other => panic!("expected a merge to be done at once, found {} children", other.len()),
        }
    }

    fn children(&self, stream: &str, shard: ShardIndex) -> Vec<ShardIndex> {
        let mut aws = self.server.aws().lock();
        aws.kinesis.advance(wall_clock()());
        let shard = aws.kinesis.stream(stream).and_then(|stream| stream.shard(shard));
        shard.map_or_else(Vec::new, |shard| shard.children().to_vec())
    }

    /// The services themselves, for looking and meddling while they are served.
    pub fn services(&self) -> &SharedAws {
        self.server.aws()
    }

    #[track_caller]
    fn change<T>(
        &self, what: &str, stream: &str, change: impl FnOnce(&mut Kinesis, i64) -> Result<T, ApiError>,
    ) -> T {
        let done = change(&mut self.server.aws().lock().kinesis, wall_clock()());
        match done {
            Ok(done) => done,
            Err(error) => panic!("expected to be able to {what} stream {stream:?}, but: {error}"),
        }
    }
}

#[track_caller]
fn index(shard: &ShardId) -> ShardIndex {
    match ShardIndex::parse(shard.as_str()) {
        Some(index) => index,
        None => panic!("expected the name of a shard, such as shardId-000000000000, found {shard}"),
    }
}

fn hasten(config: Config) -> Config {
    let reader = ReaderConfig::default().with_idle_interval(Span::from_millis(250));
    config
        .with_lease_duration(Span::from_secs(3))
        .with_renew_interval(Span::from_millis(900))
        .with_scan_interval(Span::from_secs(1))
        .with_table_timeout(Span::from_secs(1))
        .with_stream_lag(Span::from_secs(1))
        .with_stream_timeout(Span::from_secs(5))
        .with_retry_max(Span::from_secs(1))
        .with_checkpoint_interval(Span::from_secs(1))
        .with_audit_confidence(2)
        .with_bootstrap_delay(Span::from_millis(100))
        .with_shutdown_timeout(Span::from_secs(8))
        .with_reader(reader)
}
