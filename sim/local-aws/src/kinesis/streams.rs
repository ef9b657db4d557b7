//! The life of streams: created, described, resized in time, switched in mode, deleted.

use super::error::{ApiError, ApiResult};
use super::ids::{StreamId, StreamRef, is_name};
use super::reshard::Reshard;
use super::stream::{Stream, StreamMode, StreamStatus};
use super::{Kinesis, Op};
use std::collections::BTreeMap;
use std::sync::Arc;

/// What `CreateStream` is asked.
#[derive(Clone, Debug)]
pub struct CreateStream {
    /// 1 to 128 letters, digits, `_`, `.` and `-`.
    pub name: Arc<str>,
    /// Shards of a provisioned stream; one on demand has 4.
    pub shards: Option<u32>,
    /// Who splits and merges.
    pub mode: StreamMode,
    /// At most 50.
    pub tags: BTreeMap<String, String>,
    /// The greatest record: 1 to 10 MiB.
    pub max_record_bytes: usize,
}

impl CreateStream {
    /// A provisioned stream.
    pub fn provisioned(name: &str, shards: u32) -> Self {
        let (name, mode) = (name.into(), StreamMode::Provisioned);
        CreateStream { name, shards: Some(shards), mode, tags: BTreeMap::new(), max_record_bytes: 1 << 20 }
    }
}

/// What `DescribeStreamSummary` answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StreamSummary {
    /// The creation of the stream.
    pub id: StreamId,
    /// Its name.
    pub name: Arc<str>,
    /// Its ARN.
    pub arn: String,
    /// Its state.
    pub status: StreamStatus,
    /// Its capacity mode.
    pub mode: StreamMode,
    /// How long records are kept.
    pub retention_hours: u32,
    /// When it was created.
    pub created_ms: i64,
    /// Shards that take records.
    pub open_shards: u32,
    /// Registered consumers.
    pub consumers: u32,
}

/// What `DescribeLimits` answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AccountLimits {
    /// Open shards the account may have.
    pub shard_limit: u32,
    /// The account's open shards in provisioned streams.
    pub open_shards: u32,
    /// The account's on-demand streams.
    pub on_demand_streams: u32,
    /// The account's limit of on-demand streams.
    pub on_demand_stream_limit: u32,
}

const ON_DEMAND_SHARDS: u32 = 4;
const ON_DEMAND_STREAMS: u32 = 50;
const CREATING_AT_ONCE: usize = 5;
const LEAST_RETENTION: u32 = 24;
const MOST_RETENTION: u32 = 8760;

impl Kinesis {
    /// `CreateStream`.
    pub fn create_stream(&mut self, now_ms: i64, request: &CreateStream) -> ApiResult<StreamId> {
        self.rate(now_ms, Op::CreateStream)?;
        self.advance(now_ms);
        let account = self.config().account_id.clone();
        if !is_name(&request.name) || request.name.len() > 128 {
            return Err(ApiError::validation(format!("Stream name '{}' is not valid.", request.name)));
        }
        if self.stream(&request.name).is_some() {
            let name = &request.name;
            return Err(ApiError::in_use(format!("Stream {name} under account {account} already exists.")));
        }
        let shards = match (request.mode, request.shards) {
            (StreamMode::OnDemand, None) => ON_DEMAND_SHARDS,
            (StreamMode::OnDemand, Some(_)) => {
                let message = "ShardCount must not be specified for an ON_DEMAND stream.";
                return Err(ApiError::validation(message));
            }
            (StreamMode::Provisioned, Some(shards)) if shards > 0 => shards,
            (StreamMode::Provisioned, _) => {
                let message = "ShardCount of at least 1 is required for a PROVISIONED stream.";
                return Err(ApiError::validation(message));
            }
        };
        if self.config().limits {
            let creating = self.streams().filter(|stream| stream.status() == StreamStatus::Creating).count();
            if creating >= CREATING_AT_ONCE {
                let message = format!("Account {account} has {creating} streams in state CREATING already.");
                return Err(ApiError::limit(message));
            }
        }
        match request.mode {
            StreamMode::Provisioned => self.require_room(shards)?,
            StreamMode::OnDemand if self.on_demand_streams() >= ON_DEMAND_STREAMS => {
                return Err(ApiError::limit(format!(
                    "Account {account} has {ON_DEMAND_STREAMS} on-demand streams already."
                )));
            }
            StreamMode::OnDemand => {}
        }
        super::tags::check(&request.tags, 0)?;
        let mut stream = self.new_stream(now_ms, request, shards);
        stream.settle(now_ms);
        Ok(self.add_stream(stream))
    }

    /// A stream with the next id, not yet part of the service.
    pub(crate) fn new_stream(&mut self, now_ms: i64, request: &CreateStream, shards: u32) -> Stream {
        self.created += 1;
        Stream::new(self.config.clone(), now_ms, StreamId(self.created), request, shards)
    }

    pub(crate) fn add_stream(&mut self, stream: Stream) -> StreamId {
        let id = stream.id;
        self.names.insert(stream.name.clone(), id);
        self.streams.insert(id, Arc::new(stream));
        id
    }

    /// `DeleteStream`. A stream with consumers is only deleted when that is asked for.
    pub fn delete_stream<'a>(
        &mut self, now_ms: i64, stream: impl Into<StreamRef<'a>>, enforce_consumer_deletion: bool,
    ) -> ApiResult<()> {
        self.rate(now_ms, Op::DeleteStream)?;
        let delete_ms = self.config().delete_ms;
        let id = self.find(now_ms, stream.into())?;
        let stream = self.stream_mut(id)?;
        stream.require_ready()?;
        stream.settle_consumers(now_ms);
        if !stream.consumers.is_empty() && !enforce_consumer_deletion {
            return Err(ApiError::in_use(format!(
                "Stream {} has consumers. Deregister them, or set EnforceConsumerDeletion.",
                stream.title()
            )));
        }
        stream.enter(StreamStatus::Deleting, now_ms.saturating_add(delete_ms));
        self.settle(now_ms, id);
        Ok(())
    }

    /// `DescribeStreamSummary`.
    pub fn describe_stream_summary<'a>(
        &mut self, now_ms: i64, stream: impl Into<StreamRef<'a>>,
    ) -> ApiResult<StreamSummary> {
        self.rate(now_ms, Op::DescribeStreamSummary)?;
        let stream = self.found(now_ms, stream.into())?;
        stream.settle_consumers(now_ms);
        Ok(stream.summary())
    }

    /// `DescribeLimits`.
    pub fn describe_limits(&mut self, now_ms: i64) -> ApiResult<AccountLimits> {
        self.rate(now_ms, Op::DescribeLimits)?;
        self.advance(now_ms);
        Ok(AccountLimits {
            shard_limit: self.config().shard_limit,
            open_shards: self.open_provisioned_shards(),
            on_demand_streams: self.on_demand_streams(),
            on_demand_stream_limit: ON_DEMAND_STREAMS,
        })
    }

    fn on_demand_streams(&self) -> u32 {
        self.streams().filter(|stream| stream.mode == StreamMode::OnDemand).count() as u32
    }

    /// `IncreaseStreamRetentionPeriod`. Records trimmed before stay trimmed.
    pub fn increase_retention<'a>(
        &mut self, now_ms: i64, stream: impl Into<StreamRef<'a>>, hours: i64,
    ) -> ApiResult<()> {
        self.change_retention(now_ms, stream.into(), hours, true)
    }

    /// `DecreaseStreamRetentionPeriod`.
    pub fn decrease_retention<'a>(
        &mut self, now_ms: i64, stream: impl Into<StreamRef<'a>>, hours: i64,
    ) -> ApiResult<()> {
        self.change_retention(now_ms, stream.into(), hours, false)
    }

    pub(super) fn change_retention(
        &mut self, now_ms: i64, stream: StreamRef<'_>, hours: i64, increase: bool,
    ) -> ApiResult<()> {
        let stream = self.found(now_ms, stream)?;
        let old = stream.retention_hours;
        let Some(new) = u32::try_from(hours).ok().filter(|&hours| hours >= LEAST_RETENTION) else {
            return Err(ApiError::argument(format!(
                "Minimum allowed retention period is {LEAST_RETENTION} hours. Requested retention period ({hours} hours) is too short."
            )));
        };
        if new > MOST_RETENTION {
            return Err(ApiError::argument(format!(
                "Maximum allowed retention period is {MOST_RETENTION} hours. Requested retention period ({hours} hours) is too long."
            )));
        }
        if (increase && new < old) || (!increase && new > old) {
            let (than, other) = if increase { ("shorter", "Decrease") } else { ("longer", "Increase") };
            return Err(ApiError::argument(format!(
                "Requested retention period ({hours} hours) for stream {} can not be {than} than existing retention period \
                 ({old} hours). Use {other}RetentionPeriod API.",
                stream.name
            )));
        }
        stream.require_active()?;
        stream.age_all(now_ms);
        stream.retention_hours = new;
        stream.age_all(now_ms);
        stream.begin(now_ms, Reshard::Nothing);
        Ok(())
    }

    /// `UpdateStreamMode`.
    pub fn update_stream_mode<'a>(
        &mut self, now_ms: i64, stream: impl Into<StreamRef<'a>>, mode: StreamMode,
    ) -> ApiResult<()> {
        let stream = self.found_active(now_ms, stream.into())?;
        let (id, open) = (stream.id, stream.open.len() as u32);
        if mode == StreamMode::Provisioned && stream.mode != mode {
            self.require_room(open)?;
        }
        let stream = self.stream_mut(id)?;
        stream.mode = mode;
        stream.begin(now_ms, Reshard::Nothing);
        Ok(())
    }

    /// `UpdateMaxRecordSize`, in KiB.
    pub fn update_max_record_size<'a>(
        &mut self, now_ms: i64, stream: impl Into<StreamRef<'a>>, kib: u32,
    ) -> ApiResult<()> {
        let stream = self.found_active(now_ms, stream.into())?;
        stream.max_record_bytes = kib.clamp(1024, 10_240) as usize * 1024;
        stream.begin(now_ms, Reshard::Nothing);
        Ok(())
    }
}

impl Stream {
    /// What `DescribeStreamSummary` answers.
    pub fn summary(&self) -> StreamSummary {
        StreamSummary {
            id: self.id,
            name: self.name.clone(),
            arn: self.arn(),
            status: self.status(),
            mode: self.mode,
            retention_hours: self.retention_hours,
            created_ms: self.created_ms,
            open_shards: if self.status() == StreamStatus::Creating { 0 } else { self.open.len() as u32 },
            consumers: self.consumers.len() as u32,
        }
    }
}
