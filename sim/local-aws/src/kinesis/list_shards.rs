//! `ListShards` and the shards of `DescribeStream`.

use super::error::{ApiError, ApiResult};
use super::ids::{ShardIndex, StreamId, StreamRef};
use super::shard::{Shard, ShardInfo};
use super::stream::Stream;
use super::token::{Kind, Opener, Sealer, invalid_token, of_other_stream};
use super::{Kinesis, Op};
use crate::constraint::refuse_if;

/// `ShardFilter`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum ShardFilter {
    /// The shards after this one.
    AfterShardId(ShardIndex),
    /// The shards open at the oldest possible arrival of a kept record.
    AtTrimHorizon,
    /// Every unexpired shard.
    #[default]
    FromTrimHorizon,
    /// The open shards.
    AtLatest,
    /// The shards open at this time.
    AtTimestamp(i64),
    /// The shards open at this time or later.
    FromTimestamp(i64),
}

/// What `ListShards` is asked.
#[derive(Clone, Copy, Debug, Default)]
pub struct ListShards<'a> {
    /// The stream; not together with `next_token`.
    pub stream: Option<StreamRef<'a>>,
    /// Goes on where an earlier answer ended.
    pub next_token: Option<&'a str>,
    /// At most this many; at most 1,000 in any case, as by default.
    pub max_results: Option<u32>,
    /// Leaves out this shard and all shards before.
    pub exclusive_start: Option<ShardIndex>,
    /// Which shards.
    pub filter: Option<ShardFilter>,
    /// Tells streams of the same name apart.
    pub created_ms: Option<i64>,
}

/// What `ListShards` answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShardPage {
    /// In the order of their numbers.
    pub shards: Vec<ShardInfo>,
    /// There is more; valid for five minutes.
    pub next_token: Option<String>,
}

const PAGE: u32 = 1000;

/// Where a listing goes on: what a `NextToken` holds.
struct Cursor {
    stream: StreamId,
    /// The first shard for the next page.
    from: u32,
    filter: ShardFilter,
}

impl Kinesis {
    /// `ListShards`.
    pub fn list_shards(&mut self, now_ms: i64, request: &ListShards<'_>) -> ApiResult<ShardPage> {
        self.rate(now_ms, Op::ListShards)?;
        let max = request.max_results.unwrap_or(PAGE).min(PAGE);
        if max == 0 {
            let place = "Value '0' at 'maxResults'";
            return Err(ApiError::unmet(place, "have value greater than or equal to 1"));
        }
        let cursor = match request.next_token {
            Some(token) => self.resume(now_ms, request, token)?,
            None => self.start(now_ms, request)?,
        };
        let stream = self.stream_mut(cursor.stream)?;
        stream.require_ready()?;
        stream.age_all(now_ms);
        let horizon_ms = stream.created_ms.max(stream.cutoff_ms(now_ms));
        let mut shards = Vec::new();
        let mut more_from = None;
        for shard in stream.shards().skip(cursor.from as usize).filter(|shard| !shard.is_expired()) {
            if !cursor.filter.admits(shard, horizon_ms) {
                continue;
            }
            if shards.len() == max as usize {
                more_from = Some(shard.index().0);
                break;
            }
            shards.push(shard.info());
        }
        let next_token = more_from.map(|from| Cursor { from, ..cursor }.seal(now_ms, stream));
        Ok(ShardPage { shards, next_token })
    }

    fn start(&mut self, now_ms: i64, request: &ListShards<'_>) -> ApiResult<Cursor> {
        let Some(stream) = request.stream else {
            return Err(ApiError::argument("Either NextToken or StreamName should be provided."));
        };
        let filter = request.filter.unwrap_or_default();
        if let ShardFilter::AtTimestamp(ms) | ShardFilter::FromTimestamp(ms) = filter
            && ms > now_ms
        {
            return Err(ApiError::argument(format!(
                "The timestampInMillis parameter cannot be greater than the currentTimestampInMillis. \
                 timestampInMillis: {ms}, currentTimestampInMillis: {now_ms}"
            )));
        }
        let after = match (filter, request.exclusive_start) {
            (ShardFilter::AfterShardId(_), Some(_)) => {
                return Err(ApiError::argument(
                    "ExclusiveStartShardId and a ShardFilter of type AFTER_SHARD_ID cannot be provided together.",
                ));
            }
            (ShardFilter::AfterShardId(shard), None) => Some(shard),
            (_, start) => start,
        };
        let id = self.find(now_ms, stream)?;
        let stream = self.stream_by_id(id)?;
        // Clients send the creation time back in whole seconds or in milliseconds.
        if request.created_ms.is_some_and(|ms| ms.div_euclid(1000) != stream.created_ms.div_euclid(1000)) {
            return Err(stream.not_found());
        }
        Ok(Cursor { stream: id, from: after.map_or(0, |shard| shard.0.saturating_add(1)), filter })
    }

    fn resume(&mut self, now_ms: i64, request: &ListShards<'_>, token: &str) -> ApiResult<Cursor> {
        let together = |what: &str| {
            Err(ApiError::argument(format!("NextToken and {what} cannot be provided together.")))
        };
        match request {
            ListShards { stream: Some(StreamRef::Name(_) | StreamRef::Both { .. }), .. } => {
                return together("StreamName");
            }
            ListShards { exclusive_start: Some(_), .. } => return together("ExclusiveStartShardId"),
            ListShards { created_ms: Some(_), .. } => return together("StreamCreationTimestamp"),
            ListShards { filter: Some(_), .. } => return together("ShardFilter"),
            _ => {}
        }
        let (issued_ms, created_ms, cursor) = Cursor::open(token).ok_or_else(invalid_token)?;
        self.refuse_expired(now_ms, issued_ms)?;
        let id = self.find(now_ms, StreamRef::Id(cursor.stream))?;
        refuse_if(self.stream_by_id(id)?.created_ms != created_ms, invalid_token)?;
        if let Some(stream) = request.stream
            && self.find(now_ms, stream)? != id
        {
            return Err(of_other_stream());
        }
        Ok(cursor)
    }
}

impl ShardFilter {
    fn admits(self, shard: &Shard, horizon_ms: i64) -> bool {
        let open_after = |ms: i64| shard.closed_ms().is_none_or(|closed| closed >= ms);
        let open_at = |ms: i64| shard.opened_ms() <= ms && open_after(ms);
        match self {
            // The cursor applies these two filters.
            ShardFilter::AfterShardId(_) | ShardFilter::FromTrimHorizon => true,
            ShardFilter::AtLatest => shard.is_open(),
            ShardFilter::AtTrimHorizon => open_at(horizon_ms),
            ShardFilter::AtTimestamp(ms) => open_at(ms.max(horizon_ms)),
            ShardFilter::FromTimestamp(ms) => open_after(ms.max(horizon_ms)),
        }
    }
}

impl Cursor {
    fn seal(&self, now_ms: i64, stream: &Stream) -> String {
        let (kind, value) = match self.filter {
            ShardFilter::AfterShardId(shard) => (0, i64::from(shard.0)),
            ShardFilter::AtTrimHorizon => (1, 0),
            ShardFilter::FromTrimHorizon => (2, 0),
            ShardFilter::AtLatest => (3, 0),
            ShardFilter::AtTimestamp(ms) => (4, ms),
            ShardFilter::FromTimestamp(ms) => (5, ms),
        };
        let sealer = Sealer::new(Kind::Shards).i64(now_ms).i64(stream.created_ms).u32(self.stream.0);
        sealer.u32(self.from).u8(kind).i64(value).seal()
    }

    fn open(token: &str) -> Option<(i64, i64, Cursor)> {
        let mut opener = Opener::new(Kind::Shards, token)?;
        let (issued_ms, created_ms) = (opener.i64()?, opener.i64()?);
        let (stream, from) = (StreamId(opener.u32()?), opener.u32()?);
        let filter = match (opener.u8()?, opener.i64()?) {
            (0, shard) => ShardFilter::AfterShardId(ShardIndex(u32::try_from(shard).ok()?)),
            (1, _) => ShardFilter::AtTrimHorizon,
            (2, _) => ShardFilter::FromTrimHorizon,
            (3, _) => ShardFilter::AtLatest,
            (4, ms) => ShardFilter::AtTimestamp(ms),
            (5, ms) => ShardFilter::FromTimestamp(ms),
            _ => return None,
        };
        Some((issued_ms, created_ms, Cursor { stream, from, filter }))
    }
}
