//! One stream: its shards, its settings, and the changes under way.

use super::config::KinesisConfig;
use super::consumers::Consumer;
use super::error::{ApiError, ApiResult};
use super::ids::{ShardIndex, StreamId};
use super::reshard::Reshard;
use super::sequence::seconds;
use super::shard::{HashRange, Shard};
use super::streams::CreateStream;
use std::collections::BTreeMap;
use std::sync::Arc;

/// `StreamStatus`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StreamStatus {
    /// Being created: no shards yet.
    Creating,
    /// At rest.
    Active,
    /// A change is under way; reads and writes go on.
    Updating,
    /// Being deleted.
    Deleting,
}

impl StreamStatus {
    /// As on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            StreamStatus::Creating => "CREATING",
            StreamStatus::Active => "ACTIVE",
            StreamStatus::Updating => "UPDATING",
            StreamStatus::Deleting => "DELETING",
        }
    }
}

/// `StreamMode`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StreamMode {
    /// The owner splits and merges.
    Provisioned,
    /// The service does.
    OnDemand,
}

impl StreamMode {
    /// As on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            StreamMode::Provisioned => "PROVISIONED",
            StreamMode::OnDemand => "ON_DEMAND",
        }
    }
}

/// A stream with all its shards.
#[derive(Clone, Debug)]
pub struct Stream {
    pub(crate) config: Arc<KinesisConfig>,
    pub(crate) id: StreamId,
    pub(crate) name: Arc<str>,
    pub(crate) created_ms: i64,
    pub(crate) status: StreamStatus,
    /// The end of a status other than ACTIVE.
    until_ms: i64,
    /// The work at the end of UPDATING.
    work: Reshard,
    pub(crate) mode: StreamMode,
    pub(crate) retention_hours: u32,
    /// All records before this moment were forgotten early.
    pub(crate) horizon_ms: i64,
    pub(crate) max_record_bytes: usize,
    pub(crate) shards: Vec<Arc<Shard>>,
    /// The open shards by where their hash range starts.
    pub(crate) open: BTreeMap<u128, ShardIndex>,
    pub(crate) tags: BTreeMap<String, String>,
    pub(crate) consumers: BTreeMap<String, Consumer>,
    /// Counts subscriptions of all consumers.
    pub(crate) subscriptions: u64,
    pub(crate) metrics: Vec<&'static str>,
    pub(crate) encryption_key: Option<String>,
    /// When the shard count was last updated, oldest first.
    pub(crate) scalings_ms: Vec<i64>,
}

const HOUR_MS: i64 = 3_600_000;

impl Stream {
    pub(crate) fn new(
        config: Arc<KinesisConfig>, now_ms: i64, id: StreamId, request: &CreateStream, shards: u32,
    ) -> Self {
        let mut stream = Stream {
            status: StreamStatus::Creating,
            until_ms: now_ms.saturating_add(config.create_ms),
            work: Reshard::Nothing,
            config,
            id,
            name: request.name.clone(),
            created_ms: now_ms,
            mode: request.mode,
            retention_hours: 24,
            horizon_ms: i64::MIN,
            max_record_bytes: request.max_record_bytes.clamp(1 << 20, 10 << 20),
            shards: Vec::new(),
            open: BTreeMap::new(),
            tags: request.tags.clone(),
            consumers: BTreeMap::new(),
            subscriptions: 0,
            metrics: Vec::new(),
            encryption_key: None,
            scalings_ms: Vec::new(),
        };
        let count = u128::from(shards.max(1));
        // The service rounds the width down and gives the rest to the last shard.
        let width = if count == 1 {
            u128::MAX
        } else {
            (u128::MAX / count) + u128::from(u128::MAX % count == count - 1)
        };
        for index in 0..count {
            let start = width * index;
            let end = if index == count - 1 { u128::MAX } else { start + (width - 1) };
            stream.add_shard(now_ms, HashRange { start, end }, None, None);
        }
        stream
    }

    /// Which creation this is.
    pub fn id(&self) -> StreamId {
        self.id
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its ARN.
    pub fn arn(&self) -> String {
        let KinesisConfig { region, account_id, .. } = &*self.config;
        format!("arn:aws:kinesis:{region}:{account_id}:stream/{}", self.name)
    }

    /// `StreamCreationTimestamp`.
    pub fn created_ms(&self) -> i64 {
        self.created_ms
    }

    /// Its state, as of the last request or [`advance`](super::Kinesis::advance).
    pub fn status(&self) -> StreamStatus {
        self.status
    }

    /// Its capacity mode.
    pub fn mode(&self) -> StreamMode {
        self.mode
    }

    /// How long records are kept.
    pub fn retention_hours(&self) -> u32 {
        self.retention_hours
    }

    /// All shards ever created, even expired shards, in the order of creation.
    pub fn shards(&self) -> impl ExactSizeIterator<Item = &Shard> {
        self.shards.iter().map(|shard| &**shard)
    }

    /// One shard, expired or not.
    pub fn shard(&self, index: ShardIndex) -> Option<&Shard> {
        self.shards.get(index.0 as usize).map(|shard| &**shard)
    }

    /// The open shard for this hash key.
    pub fn shard_for(&self, hash_key: u128) -> Option<ShardIndex> {
        self.open.range(..=hash_key).next_back().map(|(_, &index)| index)
    }

    pub(crate) fn shard_mut(&mut self, index: ShardIndex) -> Option<&mut Shard> {
        self.shards.get_mut(index.0 as usize).map(Arc::make_mut)
    }

    /// When the next change under way completes.
    pub(crate) fn next_change_ms(&self) -> Option<i64> {
        (self.status != StreamStatus::Active).then_some(self.until_ms)
    }

    /// Whether the deletion is complete.
    pub(crate) fn is_gone(&self, now_ms: i64) -> bool {
        self.status == StreamStatus::Deleting && self.until_ms <= now_ms
    }

    /// Completes due changes, each at its own time: the time of a look does not matter.
    pub(crate) fn settle(&mut self, now_ms: i64) {
        while let Some(due_ms) = self.next_change_ms().filter(|&due| due <= now_ms) {
            if self.status == StreamStatus::Deleting {
                return;
            }
            self.status = StreamStatus::Active;
            let work = std::mem::replace(&mut self.work, Reshard::Nothing);
            if let Some(work) = self.reshard(due_ms, work) {
                // A round never takes no time, or a plan of many rounds would end within one.
                self.enter(StreamStatus::Updating, due_ms.saturating_add(self.config.update_ms.max(1)));
                self.work = work;
            }
        }
    }

    pub(crate) fn begin(&mut self, now_ms: i64, work: Reshard) {
        self.enter(StreamStatus::Updating, now_ms.saturating_add(self.config.update_ms));
        self.work = work;
        self.settle(now_ms);
    }

    /// A status other than ACTIVE, until a moment.
    pub(crate) fn enter(&mut self, status: StreamStatus, until_ms: i64) {
        (self.status, self.until_ms) = (status, until_ms);
    }

    /// Records with an earlier arrival are gone.
    pub(crate) fn cutoff_ms(&self, now_ms: i64) -> i64 {
        let retained = now_ms.saturating_sub(i64::from(self.retention_hours) * HOUR_MS);
        retained.max(self.horizon_ms)
    }

    /// Brings one shard up to date; most calls change nothing.
    pub(crate) fn age_shard(&mut self, now_ms: i64, index: ShardIndex) {
        let cutoff = self.cutoff_ms(now_ms);
        if self.shard(index).is_some_and(|shard| shard.ages_at(cutoff))
            && let Some(shard) = self.shard_mut(index)
        {
            shard.age(cutoff);
        }
    }

    pub(crate) fn age_all(&mut self, now_ms: i64) {
        let cutoff = self.cutoff_ms(now_ms);
        for shard in &mut self.shards {
            if shard.ages_at(cutoff) {
                Arc::make_mut(shard).age(cutoff);
            }
        }
    }

    pub(crate) fn add_shard(
        &mut self, at_ms: i64, hash_range: HashRange, parent: Option<ShardIndex>,
        adjacent_parent: Option<ShardIndex>,
    ) {
        let index = ShardIndex(self.shards.len() as u32);
        let above_parents = parent.into_iter().chain(adjacent_parent).filter_map(|parent| {
            let parent = self.shard_mut(parent)?;
            parent.children.push(index);
            Some(parent.created_secs() + 1)
        });
        let created_secs = above_parents.fold(seconds(at_ms), u64::max);
        let shard = Shard::new(index, [parent, adjacent_parent], hash_range, created_secs, at_ms);
        self.shards.push(Arc::new(shard));
        self.open.insert(hash_range.start, index);
    }

    pub(crate) fn close_shard(&mut self, at_ms: i64, index: ShardIndex) {
        if let Some(shard) = self.shard_mut(index) {
            shard.close(at_ms);
            let start = shard.hash_range().start;
            self.open.remove(&start);
        }
    }

    pub(crate) fn is_ready(&self) -> bool {
        matches!(self.status, StreamStatus::Active | StreamStatus::Updating)
    }

    pub(crate) fn require_active(&self) -> ApiResult<()> {
        if self.status == StreamStatus::Active { Ok(()) } else { Err(self.not_active()) }
    }

    /// Refuses a stream that is being created or deleted.
    pub(crate) fn require_ready(&self) -> ApiResult<()> {
        if self.is_ready() { Ok(()) } else { Err(self.not_active()) }
    }

    fn not_active(&self) -> ApiError {
        let status = self.status().as_str();
        ApiError::in_use(format!("Stream {} not ACTIVE, instead in state {status}", self.title()))
    }

    pub(crate) fn require_provisioned(&self, operation: &str) -> ApiResult<()> {
        match self.mode {
            StreamMode::Provisioned => Ok(()),
            StreamMode::OnDemand => Err(ApiError::validation(format!(
                "{operation} is not supported for stream {} because it is in the ON_DEMAND capacity mode.",
                self.title()
            ))),
        }
    }

    /// The stream and its account, for messages.
    pub(crate) fn title(&self) -> String {
        format!("{} under account {}", self.name, self.config.account_id)
    }

    pub(crate) fn not_found(&self) -> ApiError {
        stream_not_found(&self.config, &self.name)
    }

    /// A shard that clients can read.
    pub(crate) fn readable(&self, index: ShardIndex) -> ApiResult<&Shard> {
        let known = self.shard(index).filter(|shard| !shard.is_expired());
        known.filter(|_| self.status() != StreamStatus::Creating).ok_or_else(|| self.no_such_shard(index))
    }

    pub(crate) fn no_such_shard(&self, shard: impl std::fmt::Display) -> ApiError {
        ApiError::not_found(format!("Shard {shard} in stream {} does not exist", self.title()))
    }
}

pub(crate) fn stream_not_found(config: &KinesisConfig, name: &str) -> ApiError {
    ApiError::not_found(format!("Stream {name} under account {} not found.", config.account_id))
}
