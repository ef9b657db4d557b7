//! The stream port over the Kinesis client.

use super::bounded::Bounded;
use super::classify::classify;
use super::failures::Failures;
use super::heard::Heard;
use super::pool::Pool;
use super::sent::Sent;
use super::values::wall_to_sdk;
use super::words::garbled;
use super::{SdkSleep, SdkTime, no_retries, patience, timeouts};
use crate::aws::stream_ref::StreamRef;
use crate::ports::{Failure, Port};
use crate::record::Record;
use crate::runtime::{BoxFuture, Runtime};
use crate::store::{Answer, Cursor, Store};
use aws_sdk_kinesis::Client;
use aws_sdk_kinesis::config::StalledStreamProtectionConfig;
use aws_sdk_kinesis::types::{
    self, ShardFilterType, ShardIteratorType, StreamDescriptionSummary, StreamStatus,
};
use aws_smithy_types::timeout::TimeoutConfig;
use bytes::Bytes;
use leasehold_engine::config::Config;
use leasehold_engine::ids::{OpId, ShardId};
use leasehold_engine::input::{Cause, Outcome, Refusal, Reply, ShardPage, StreamState, Why};
use leasehold_engine::output::{IteratorFrom, ShardFilter, StreamOp};
use leasehold_engine::position::Position;
use leasehold_engine::shard::{ChildShard, HashRange, Shard};
use leasehold_engine::stream_id::StreamId;
use leasehold_engine::time::{Mono, Span, Wall};
use std::fmt;
use std::sync::Arc;

/// Reads one Kinesis stream. Clones are handles on the same.
#[derive(Clone)]
pub(crate) struct KinesisStream {
    pub(super) client: Client,
    _pool: Arc<Pool>,
    stream: Arc<str>,
    /// If present, requests name the stream by its ARN.
    arn: Option<Arc<str>>,
    /// Of a worker that reads several streams: what its shards' names begin with.
    id: Option<StreamId>,
    pub(super) store: Store,
    pub(super) failures: Failures,
    heard: Heard,
    /// How long the port waits for a silent answer to a read.
    patience: Span,
}

impl fmt::Debug for KinesisStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KinesisStream").field("stream", &self.stream).finish_non_exhaustive()
    }
}

impl KinesisStream {
    /// Reads the configured stream; what it fetches is kept in `store`.
    pub(crate) fn new(client: &Client, runtime: &Arc<dyn Runtime>, config: &Config, store: Store) -> Self {
        let (client, pool) = adapted(client, runtime, config);
        Self {
            client,
            _pool: pool,
            stream: Arc::from(config.stream()),
            arn: None,
            id: None,
            store,
            failures: Failures::default(),
            heard: Heard::new(runtime),
            patience: patience(config.stream_timeout()),
        }
    }

    /// Reads one of several streams, with this client; fetched records go to the same store.
    pub(crate) fn of(
        &self, stream: &StreamRef, client: &Client, runtime: &Arc<dyn Runtime>, config: &Config,
    ) -> Self {
        let (client, pool) = adapted(client, runtime, config);
        Self {
            client,
            _pool: pool,
            stream: Arc::from(stream.id().name()),
            arn: stream.arn.clone(),
            id: Some(stream.id().clone()),
            store: self.store.clone(),
            failures: self.failures.clone(),
            heard: self.heard.clone(),
            patience: self.patience,
        }
    }

    /// The name or the ARN of the stream, whichever is the name in requests.
    fn named(&self) -> (Option<String>, Option<String>) {
        match &self.arn {
            Some(arn) => (None, Some(arn.to_string())),
            None => (Some(self.stream.to_string()), None),
        }
    }

    /// The name of a shard within the worker.
    pub(super) fn shard(&self, id: &ShardId) -> ShardId {
        match &self.id {
            Some(stream) => stream.lease(id.as_str()).to_shard(),
            None => id.clone(),
        }
    }

    async fn describe(self) -> Outcome {
        let sent = self.failures.request();
        let (name, arn) = self.named();
        let answer = self
            .client
            .describe_stream_summary()
            .set_stream_name(name)
            .set_stream_arn(arn)
            .customize()
            .interceptor(sent.clone())
            .send()
            .await;
        let answer = match answer {
            Ok(answer) => answer,
            Err(error) => return classify(&error, &sent),
        };
        let Some(summary) = answer.stream_description_summary() else {
            return garbled(&sent, "a stream summary", "none");
        };
        Outcome::Applied(Reply::Stream(state_from_sdk(summary)))
    }

    async fn list_shards(self, id: OpId, filter: ShardFilter, after: Option<OpId>) -> Outcome {
        let (name, arn) = self.named();
        let request = match after {
            None => self
                .client
                .list_shards()
                .set_stream_name(name)
                .set_stream_arn(arn)
                .set_shard_filter(filter_to_sdk(filter)),
            // A token stands for the stream and the filter, and may not be given together with them.
            Some(op) => match self.store.page(op) {
                Some(token) => self.client.list_shards().next_token(token),
                None => return gone(format!("the page token of {op}")),
            },
        };
        let sent = self.failures.request();
        let answer = match request.customize().interceptor(sent.clone()).send().await {
            Ok(answer) => answer,
            Err(error) => return classify(&error, &sent),
        };
        let mut shards = Vec::with_capacity(answer.shards().len());
        for shard in answer.shards() {
            match shard_from_sdk(shard) {
                Ok(shard) => {
                    self.store.learn_range(&self.shard(&shard.id), shard.range, id);
                    shards.push(shard);
                }
                Err(found) => return garbled(&sent, "a shard with its ranges", found),
            }
        }
        let more = answer.next_token.is_some();
        if let Some(token) = answer.next_token {
            self.store.keep_page(id, token);
        }
        Outcome::Applied(Reply::Shards(ShardPage { shards, more }))
    }

    async fn get_iterator(self, id: OpId, shard: ShardId, from: IteratorFrom) -> Outcome {
        let (name, arn) = self.named();
        let request = self
            .client
            .get_shard_iterator()
            .set_stream_name(name)
            .set_stream_arn(arn)
            .shard_id(shard.as_str());
        let request = match from {
            IteratorFrom::TrimHorizon => request.shard_iterator_type(ShardIteratorType::TrimHorizon),
            IteratorFrom::Latest => request.shard_iterator_type(ShardIteratorType::Latest),
            IteratorFrom::AtTimestamp(at) => {
                request.shard_iterator_type(ShardIteratorType::AtTimestamp).timestamp(wall_to_sdk(at))
            }
            IteratorFrom::At(position) => request
                .shard_iterator_type(ShardIteratorType::AtSequenceNumber)
                .starting_sequence_number(position.sequence.to_string()),
            IteratorFrom::After(position) => request
                .shard_iterator_type(ShardIteratorType::AfterSequenceNumber)
                .starting_sequence_number(position.sequence.to_string()),
        };
        let sent = self.failures.request();
        match request.customize().interceptor(sent.clone()).send().await {
            Err(error) => of_another_stream(classify(&error, &sent)),
            Ok(answer) => match answer.shard_iterator {
                Some(iterator) => {
                    self.store.keep_cursor(&self.shard(&shard), id, Cursor::Iterator(iterator));
                    Outcome::Applied(Reply::Iterator)
                }
                None => garbled(&sent, "a shard iterator", "none"),
            },
        }
    }

    async fn get_records(self, id: OpId, shard: ShardId, via: OpId, limit: u32) -> Outcome {
        let Some(iterator) = self.store.iterator(via) else {
            return gone(format!("the iterator of {via}"));
        };
        let shard = self.shard(&shard);
        let ear = self.heard.of(id);
        let sent = self.failures.request().heard_by(&ear);
        let call = self
            .client
            .get_records()
            .set_stream_arn(self.named().1)
            .shard_iterator(iterator)
            .limit(i32::try_from(limit).unwrap_or(i32::MAX))
            .customize()
            .interceptor(sent.clone())
            .config_override(unlimited())
            .send();
        let answer = match ear.while_heard(self.patience, call).await {
            Some(Ok(answer)) => answer,
            Some(Err(error)) => return classify(&error, &sent),
            None => return silent(&sent, self.patience),
        };
        let next = answer.next_shard_iterator.map(Cursor::Iterator);
        let children = answer.child_shards.unwrap_or_default();
        let brought = (answer.records, answer.millis_behind_latest, children);
        self.take_in(id, &sent, &shard, brought, next, false)
    }

    /// Keeps what a read has brought.
    pub(super) fn take_in(
        &self, id: OpId, sent: &Sent, shard: &ShardId,
        (records, behind_ms, children): (Vec<types::Record>, Option<i64>, Vec<types::ChildShard>),
        next: Option<Cursor>, is_pushed: bool,
    ) -> Outcome {
        let records: Result<Vec<Record>, String> =
            records.into_iter().map(|record| record_from_sdk(shard, record)).collect();
        let children: Result<Vec<ChildShard>, String> = children.into_iter().map(child_from_sdk).collect();
        let (records, children) = match (records, children) {
            (Ok(records), Ok(children)) => (records, children),
            (Err(found), _) => return garbled(sent, "a record with a sequence number", found),
            (_, Err(found)) => return garbled(sent, "a child shard with its range", found),
        };
        let behind_ms = behind_ms.and_then(|behind| u64::try_from(behind).ok()).unwrap_or_default();
        let answer = Answer { records, behind_ms, next, children, is_pushed };
        Outcome::Applied(Reply::Records(self.store.take_in(shard, id, answer)))
    }
}

/// A client without a time limit for arriving answers.
fn unlimited() -> aws_sdk_kinesis::config::Builder {
    let timeouts =
        TimeoutConfig::builder().disable_operation_timeout().disable_operation_attempt_timeout().build();
    aws_sdk_kinesis::Config::builder().timeout_config(timeouts)
}

/// The outcome of a read with a silent answer.
fn silent(sent: &Sent, patience: Span) -> Outcome {
    sent.failed(format!("nothing of the answer came for {patience}, or it did not come to its end"));
    match sent.is_sent() {
        true => Outcome::Unknown(Cause::Timeout),
        false => Outcome::NotSent(Cause::Timeout),
    }
}

/// The client of a port: with the worker's clock, and without retries.
fn adapted(client: &Client, runtime: &Arc<dyn Runtime>, config: &Config) -> (Client, Arc<Pool>) {
    let pool = Pool::new();
    let sdk = client
        .config()
        .to_builder()
        .retry_config(no_retries())
        // An answer is waited for as `stream_timeout` says.
        .stalled_stream_protection(StalledStreamProtectionConfig::disabled())
        .timeout_config(timeouts(config.stream_timeout(), &pool))
        .sleep_impl(SdkSleep(runtime.clone()))
        .time_source(SdkTime(runtime.clone()))
        .interceptor(Bounded)
        .build();
    (Client::from_conf(sdk), Arc::new(pool))
}

impl Port<StreamOp> for KinesisStream {
    fn execute(&self, id: OpId, op: StreamOp) -> BoxFuture<'static, Outcome> {
        let mut this = self.clone();
        this.failures = self.failures.of(id);
        match op {
            StreamOp::Describe => Box::pin(this.describe()),
            StreamOp::ListShards { filter, after } => Box::pin(this.list_shards(id, filter, after)),
            StreamOp::GetIterator { shard, from } => Box::pin(this.get_iterator(id, shard, from)),
            StreamOp::GetRecords { shard, via, limit } => Box::pin(this.get_records(id, shard, via, limit)),
            StreamOp::DescribeConsumer { stream, name } => Box::pin(this.describe_consumer(stream, name)),
            StreamOp::RegisterConsumer { stream, name } => Box::pin(this.register_consumer(stream, name)),
            StreamOp::Subscribe { shard, consumer, from } => {
                Box::pin(this.subscribe(id, shard, consumer, from))
            }
            StreamOp::NextEvent { shard, via } => Box::pin(this.next_event(id, shard, via)),
        }
    }

    fn forget(&self, id: OpId) {
        self.store.forget(id);
        self.failures.take(id);
    }

    fn heard(&self, id: OpId) -> Option<Mono> {
        self.heard.last(id)
    }

    fn failure(&self, id: OpId) -> Option<Failure> {
        self.failures.take(id)
    }
}

fn filter_to_sdk(filter: ShardFilter) -> Option<types::ShardFilter> {
    let builder = types::ShardFilter::builder();
    let builder = match filter {
        // `All` equals no filter, and servers without filters understand a request without a filter.
        ShardFilter::All => return None,
        ShardFilter::AtTrimHorizon => builder.r#type(ShardFilterType::AtTrimHorizon),
        ShardFilter::AtLatest => builder.r#type(ShardFilterType::AtLatest),
        ShardFilter::AtTimestamp(at) => {
            builder.r#type(ShardFilterType::AtTimestamp).timestamp(wall_to_sdk(at))
        }
    };
    builder.build().ok()
}

fn range_from_sdk(range: Option<&types::HashKeyRange>) -> Result<HashRange, String> {
    let range = range.ok_or("no hash key range")?;
    let parse = |text: &str| text.parse().map_err(|_| format!("hash key {text:?}"));
    let range = HashRange { start: parse(range.starting_hash_key())?, end: parse(range.ending_hash_key())? };
    if range.start > range.end {
        return Err(format!("a hash key range from {} to {}", range.start, range.end));
    }
    Ok(range)
}

/// The state of a stream, by a description.
pub(super) fn state_from_sdk(summary: &StreamDescriptionSummary) -> StreamState {
    StreamState {
        readable: matches!(summary.stream_status(), StreamStatus::Active | StreamStatus::Updating),
        created: Wall(summary.stream_creation_timestamp().to_millis().unwrap_or_default()),
        // The answer has the ARN, also if the request has the name. Some emulators know the name alone.
        arn: match summary.stream_arn() {
            "" => summary.stream_name().into(),
            arn => arn.into(),
        },
    }
}

pub(super) fn shard_from_sdk(shard: &types::Shard) -> Result<Shard, String> {
    let numbers = shard.sequence_number_range().ok_or("no sequence number range")?;
    let parse = |text: &str| text.parse().map_err(|error| format!("{error}"));
    Ok(Shard {
        id: shard.shard_id().into(),
        parent: shard.parent_shard_id().map(ShardId::from),
        adjacent_parent: shard.adjacent_parent_shard_id().map(ShardId::from),
        range: range_from_sdk(shard.hash_key_range())?,
        starting: parse(numbers.starting_sequence_number())?,
        ending: numbers.ending_sequence_number().map(parse).transpose()?,
    })
}

fn child_from_sdk(child: types::ChildShard) -> Result<ChildShard, String> {
    let range = range_from_sdk(child.hash_key_range())?;
    Ok(ChildShard {
        id: child.shard_id.into(),
        parents: child.parent_shards.into_iter().map(ShardId::from).collect(),
        range,
    })
}

fn record_from_sdk(shard: &ShardId, record: types::Record) -> Result<Record, String> {
    let sequence = record.sequence_number.parse().map_err(|error| format!("{error}"))?;
    Ok(Record {
        shard: shard.clone(),
        position: Position::of(sequence),
        partition_key: record.partition_key.unwrap_or_default().into(),
        explicit_hash_key: None,
        data: Bytes::from(record.data.into_inner()),
        arrival: record.approximate_arrival_timestamp.and_then(|at| at.to_millis().ok()).map(Wall),
        aggregated: false,
    })
}

/// Kinesis' words about a sequence number of another stream, or of an earlier stream of this name; some emulators say
/// the same. About the number of another shard of this stream, Kinesis names that shard.
const OF_ANOTHER_STREAM: &str = "did not come from this stream";

/// A refusal to read from a sequence number, with a separate reason if the service names the other stream.
pub(super) fn of_another_stream(outcome: Outcome) -> Outcome {
    match outcome {
        Outcome::Refused(refusal)
            if refusal.why == Why::Invalid && refusal.detail.contains(OF_ANOTHER_STREAM) =>
        {
            Outcome::Refused(Refusal { why: Why::OfAnotherStream, ..refusal })
        }
        other => other,
    }
}

pub(super) fn gone(what: String) -> Outcome {
    Outcome::Refused(Refusal {
        why: Why::Gone,
        current: None,
        detail: format!("expected {what} to be kept, found nothing"),
    })
}
