//! Kinesis Data Streams in memory.
//!
//! [`Kinesis`] is a value: cloning is cheap, and the clone lives its own life. The value holds no clock; every call
//! takes the time as an argument. Slow changes (CREATING, UPDATING, DELETING, trimming by retention) take effect at
//! their own moment, whenever a caller looks. So a run does not depend on the number of looks.
//!
//! There are two ways to call. The typed operations ([`Kinesis::get_records`] and its kind) are for a simulator: they
//! format and parse no text. [`Kinesis::call`] speaks the JSON 1.1 protocol.

mod config;
mod consumers;
mod error;
mod ids;
mod iterator;
mod json;
mod list_shards;
mod list_streams;
mod log;
mod meter;
mod read;
mod reshard;
mod restore;
mod scaling;
mod sequence;
mod settings;
mod shard;
mod stream;
mod streams;
mod subscribe;
mod tags;
#[cfg(test)]
mod tests;
mod token;
mod write;

pub use config::{EndOfShard, KinesisConfig};
pub use consumers::{ConsumerPage, ConsumerStatus, ConsumerSummary};
pub use error::{ApiError, ApiResult};
pub use ids::{ShardIndex, StreamId, StreamRef, is_name as is_stream_name};
pub use iterator::{IteratorStart, ShardIterator};
pub use list_shards::{ListShards, ShardFilter, ShardPage};
pub use list_streams::StreamPage;
pub use log::StoredRecord;
pub use read::{ChildShard, ReadRecord, RecordsPage};
pub use reshard::ShardCountUpdate;
pub use restore::ShardPast;
pub use sequence::{NotASequenceNumber, SequenceNumber, SequenceParts};
pub use shard::{HashRange, Shard, ShardInfo};
pub use stream::{Stream, StreamMode, StreamStatus};
pub use streams::{AccountLimits, CreateStream, StreamSummary};
pub use subscribe::{Push, SubscribedEvent, Subscription};
pub use write::{NewRecord, PutOutcome, Written};

use ids::Arn;
use meter::Meter;
use std::collections::BTreeMap;
use std::sync::Arc;
use stream::stream_not_found;

/// The service for one account and region.
#[derive(Clone, Debug)]
pub struct Kinesis {
    config: Arc<KinesisConfig>,
    streams: BTreeMap<StreamId, Arc<Stream>>,
    names: BTreeMap<Arc<str>, StreamId>,
    created: u32,
    rates: [Meter; Op::COUNT],
}

/// Operations with a request rate of their own.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Op {
    CreateStream,
    DeleteStream,
    DescribeStream,
    DescribeStreamSummary,
    DescribeLimits,
    ListStreams,
    ListShards,
    SplitShard,
    MergeShards,
    UpdateShardCount,
}

impl Op {
    const COUNT: usize = 10;

    /// Transactions per second, as documented by AWS.
    fn per_second(self) -> u32 {
        match self {
            Op::DescribeLimits => 1,
            Op::CreateStream | Op::DeleteStream | Op::ListStreams | Op::SplitShard | Op::MergeShards => 5,
            Op::DescribeStream | Op::UpdateShardCount => 10,
            Op::DescribeStreamSummary => 20,
            Op::ListShards => 1000,
        }
    }
}

impl Kinesis {
    /// An account without streams.
    pub fn new(config: KinesisConfig) -> Self {
        Kinesis {
            config: Arc::new(config),
            streams: BTreeMap::new(),
            names: BTreeMap::new(),
            created: 0,
            rates: [Meter::new(); Op::COUNT],
        }
    }

    /// Its settings.
    pub fn config(&self) -> &KinesisConfig {
        &self.config
    }

    /// For how many milliseconds a `NextToken` is good from now on, those given before too.
    pub fn set_token_expiry(&mut self, millis: i64) {
        Arc::make_mut(&mut self.config).token_expiry_ms = millis;
    }

    /// For how many milliseconds new consumers are CREATING, and new subscriptions live.
    pub fn set_subscriptions(&mut self, creating_ms: i64, life_ms: i64) {
        let config = Arc::make_mut(&mut self.config);
        (config.consumer_ms, config.subscription_ms) = (creating_ms, life_ms);
    }

    /// Completes every due change and trims every record past retention. Operations do this for their own stream; call
    /// this before a look at the ground truth.
    pub fn advance(&mut self, now_ms: i64) {
        let ids: Vec<StreamId> = self.streams.keys().copied().collect();
        for id in ids {
            if self.settle(now_ms, id)
                && let Some(stream) = self.streams.get_mut(&id)
            {
                let cutoff = stream.cutoff_ms(now_ms);
                if stream.shards().any(|shard| shard.ages_at(cutoff)) {
                    Arc::make_mut(stream).age_all(now_ms);
                }
            }
        }
    }

    /// When the next change under way (not trimming) will complete.
    pub fn next_change_ms(&self) -> Option<i64> {
        self.streams.values().filter_map(|stream| stream.next_change_ms()).min()
    }

    /// Ground truth: the stream of this name, as of the last operation or [`advance`](Self::advance).
    pub fn stream(&self, name: &str) -> Option<&Stream> {
        self.names.get(name).and_then(|id| self.streams.get(id)).map(|stream| &**stream)
    }

    /// Ground truth: every stream, by name.
    pub fn streams(&self) -> impl Iterator<Item = &Stream> {
        self.names.values().filter_map(|id| self.streams.get(id)).map(|stream| &**stream)
    }

    /// Trims a shard below `position` at once, read or not. No client can do this.
    pub fn trim(&mut self, stream: StreamId, shard: ShardIndex, position: u64) {
        if let Ok(stream) = self.stream_mut(stream)
            && let Some(shard) = stream.shard_mut(shard)
        {
            shard.log.trim_to(position);
        }
    }

    /// Forgets all records older than `before_ms` at once, like records past retention. No client can do this. The trim
    /// horizon never goes back.
    pub fn forget_before(&mut self, stream: StreamId, before_ms: i64) {
        if let Ok(stream) = self.stream_mut(stream) {
            stream.horizon_ms = stream.horizon_ms.max(before_ms);
            stream.age_all(before_ms);
        }
    }

    /// The stream a request means, brought up to date.
    pub(crate) fn find(&mut self, now_ms: i64, stream: StreamRef<'_>) -> ApiResult<StreamId> {
        let name = match stream {
            StreamRef::Id(id) if self.settle(now_ms, id) => return Ok(id),
            StreamRef::Id(id) => return Err(no_such_id(&self.config, id)),
            StreamRef::Name(name) => name,
            StreamRef::Arn(arn) => self.name_in(arn)?,
            StreamRef::Both { name, arn } if self.name_in(arn)? == name => name,
            StreamRef::Both { name, arn } => {
                return Err(ApiError::argument(format!(
                    "StreamName {name} and StreamARN {arn} do not name the same stream."
                )));
            }
        };
        match self.names.get(name).copied() {
            Some(id) if self.settle(now_ms, id) => Ok(id),
            _ => Err(stream_not_found(&self.config, name)),
        }
    }

    /// As [`find`](Self::find), with the stream itself.
    pub(crate) fn found(&mut self, now_ms: i64, stream: StreamRef<'_>) -> ApiResult<&mut Stream> {
        let id = self.find(now_ms, stream)?;
        self.stream_mut(id)
    }

    /// The stream a request means, at rest and thus open to a change.
    pub(crate) fn found_active(&mut self, now_ms: i64, stream: StreamRef<'_>) -> ApiResult<&mut Stream> {
        let stream = self.found(now_ms, stream)?;
        stream.require_active()?;
        Ok(stream)
    }

    /// The stream's name in an ARN of this account and region.
    fn name_in<'a>(&self, arn: &'a str) -> ApiResult<&'a str> {
        let Some(parts) = Arn::parse(arn) else {
            return Err(ApiError::argument(format!("StreamARN {arn} is not a valid stream ARN.")));
        };
        if parts.account != &*self.config.account_id || parts.region != &*self.config.region {
            return Err(ApiError::not_found(format!(
                "Stream {} under account {} in region {} not found.",
                parts.stream, parts.account, parts.region
            )));
        }
        Ok(parts.stream)
    }

    /// Completes due changes of one stream; returns whether the stream still exists.
    fn settle(&mut self, now_ms: i64, id: StreamId) -> bool {
        let Some(stream) = self.streams.get_mut(&id) else {
            return false;
        };
        if stream.is_gone(now_ms) {
            let name = stream.name.clone();
            self.streams.remove(&id);
            self.names.remove(&name);
            return false;
        }
        if stream.next_change_ms().is_some_and(|due| due <= now_ms) {
            Arc::make_mut(stream).settle(now_ms);
        }
        true
    }

    pub(crate) fn stream_by_id(&self, id: StreamId) -> ApiResult<&Stream> {
        self.streams.get(&id).map(|stream| &**stream).ok_or_else(|| no_such_id(&self.config, id))
    }

    pub(crate) fn stream_mut(&mut self, id: StreamId) -> ApiResult<&mut Stream> {
        self.streams.get_mut(&id).map(Arc::make_mut).ok_or_else(|| no_such_id(&self.config, id))
    }

    pub(crate) fn rate(&mut self, now_ms: i64, op: Op) -> ApiResult<()> {
        if self.config.limits && !self.rates[op as usize].take(now_ms, op.per_second()) {
            return Err(ApiError::limit(format!(
                "Rate exceeded for account {}: {op:?} allows {} requests per second.",
                self.config.account_id,
                op.per_second()
            )));
        }
        Ok(())
    }

    /// Whether the account may have `more` open shards in provisioned streams.
    pub(crate) fn require_room(&self, more: u32) -> ApiResult<()> {
        let open = self.open_provisioned_shards();
        let limit = self.config.shard_limit;
        if more > 0 && open.saturating_add(more) > limit {
            return Err(ApiError::limit(format!(
                "This request would exceed the shard limit for the account {} in {}. Current shard count for the account: \
                 {open}. Limit: {limit}. Number of additional shards that would have resulted from this request: {more}. \
                 Refer to the AWS Service Limits page (http://docs.aws.amazon.com/general/latest/gr/aws_service_limits.html) \
                 for current limits and how to request higher limits.",
                self.config.account_id, self.config.region
            )));
        }
        Ok(())
    }

    pub(crate) fn open_provisioned_shards(&self) -> u32 {
        let provisioned = self.streams.values().filter(|stream| stream.mode == StreamMode::Provisioned);
        provisioned.map(|stream| stream.open.len() as u32).fold(0, u32::saturating_add)
    }
}

fn no_such_id(config: &KinesisConfig, id: StreamId) -> ApiError {
    stream_not_found(config, &format!("#{}", id.0))
}
