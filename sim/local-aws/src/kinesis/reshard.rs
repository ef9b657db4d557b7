//! Splitting and merging shards, and scaling a stream by rounds of both.

use super::error::{ApiError, ApiResult};
use super::ids::{ShardIndex, StreamRef};
use super::scaling::{Open, Step, next_round};
use super::shard::HashRange;
use super::stream::Stream;
use super::{Kinesis, Op};
use crate::constraint::refuse_if;

/// The work of an update under way at its due time.
#[derive(Clone, Debug)]
pub(crate) enum Reshard {
    Nothing,
    Step(Step),
    ScaleTo(u32),
}

/// What `UpdateShardCount` answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShardCountUpdate {
    /// Open shards before.
    pub current: u32,
    /// Open shards when the update is complete.
    pub target: u32,
}

const MOST_SHARDS: u32 = 10_000;
const SCALINGS_PER_DAY: usize = 10;
const DAY_MS: i64 = 86_400_000;

impl Kinesis {
    /// `SplitShard`: `at` becomes the start of the second child.
    pub fn split_shard<'a>(
        &mut self, now_ms: i64, stream: impl Into<StreamRef<'a>>, shard: ShardIndex, at: u128,
    ) -> ApiResult<()> {
        self.rate(now_ms, Op::SplitShard)?;
        let id = self.find(now_ms, stream.into())?;
        let stream = self.stream_by_id(id)?;
        stream.require_provisioned("SplitShard")?;
        stream.require_active()?;
        let range = stream.open_range(shard)?;
        if at <= range.start.saturating_add(1) || at >= range.end {
            return Err(ApiError::argument(format!(
                "NewStartingHashKey {at} used in SplitShard() on shard {shard} in stream {} is not both greater \
                 than one plus the shard's StartingHashKey {} and less than the shard's EndingHashKey {}.",
                stream.title(),
                range.start,
                range.end
            )));
        }
        self.require_room(1)?;
        self.stream_mut(id)?.begin(now_ms, Reshard::Step(Step::Split { shard, at }));
        Ok(())
    }

    /// `MergeShards`: `right` has to begin where `left` ends.
    pub fn merge_shards<'a>(
        &mut self, now_ms: i64, stream: impl Into<StreamRef<'a>>, left: ShardIndex, right: ShardIndex,
    ) -> ApiResult<()> {
        self.rate(now_ms, Op::MergeShards)?;
        let stream = self.found(now_ms, stream.into())?;
        stream.require_provisioned("MergeShards")?;
        stream.require_active()?;
        let (first, second) = (stream.open_range(left)?, stream.open_range(right)?);
        if first.end.checked_add(1) != Some(second.start) {
            return Err(ApiError::argument(format!(
                "Shards {left} and {right} in stream {} are not an adjacent pair of shards eligible for merging",
                stream.title()
            )));
        }
        stream.begin(now_ms, Reshard::Step(Step::Merge { left, right }));
        Ok(())
    }

    /// `UpdateShardCount` with `UNIFORM_SCALING`.
    pub fn update_shard_count<'a>(
        &mut self, now_ms: i64, stream: impl Into<StreamRef<'a>>, target: u32,
    ) -> ApiResult<ShardCountUpdate> {
        self.rate(now_ms, Op::UpdateShardCount)?;
        let limits = self.config().limits;
        let id = self.find(now_ms, stream.into())?;
        let stream = self.stream_mut(id)?;
        stream.require_provisioned("UpdateShardCount")?;
        stream.require_active()?;
        let current = stream.open.len() as u32;
        stream.check_target(current, target)?;
        if limits {
            stream.scalings_ms.retain(|&at| at > now_ms.saturating_sub(DAY_MS));
            if stream.scalings_ms.len() >= SCALINGS_PER_DAY {
                return Err(ApiError::limit(format!(
                    "UpdateShardCount cannot be used on stream {} more than {SCALINGS_PER_DAY} times in a rolling 24-hour period.",
                    stream.name
                )));
            }
        }
        self.require_room(target.saturating_sub(current))?;
        let stream = self.stream_mut(id)?;
        if limits {
            stream.scalings_ms.push(now_ms);
        }
        stream.begin(now_ms, Reshard::ScaleTo(target));
        Ok(ShardCountUpdate { current, target })
    }
}

impl Stream {
    fn check_target(&self, current: u32, target: u32) -> ApiResult<()> {
        let refuse = |how: &str| {
            Err(ApiError::limit(format!(
                "UpdateShardCount cannot scale {how}. Current open shard count: {current}, target shard count: {target}."
            )))
        };
        refuse_if(target == 0, || ApiError::argument("The target shard count must be at least 1."))?;
        if target == current {
            return Err(ApiError::argument(format!(
                "The target shard count {target} of stream {} is equal to its current open shard count.",
                self.name
            )));
        }
        if target > current.saturating_mul(2) {
            return refuse("up over double your current open shard count");
        }
        if target < current.div_ceil(2) {
            return refuse("down below half your current open shard count");
        }
        if target > MOST_SHARDS {
            return refuse("a stream to more than 10000 shards");
        }
        Ok(())
    }

    /// The range of an open shard; a closed shard can be neither split nor merged.
    fn open_range(&self, index: ShardIndex) -> ApiResult<HashRange> {
        match self.shard(index) {
            Some(shard) if shard.is_open() => Ok(shard.hash_range()),
            Some(shard) if !shard.is_expired() => Err(ApiError::argument(format!(
                "Shard {index} in stream {} has already been merged or split, and thus is not eligible for \
                 merging or splitting.",
                self.title()
            ))),
            _ => {
                let message = format!("Could not find shard {index} in stream {}.", self.title());
                Err(ApiError::not_found(message))
            }
        }
    }

    /// Does the due work; returns the work left after it, if any.
    pub(crate) fn reshard(&mut self, at_ms: i64, work: Reshard) -> Option<Reshard> {
        match work {
            Reshard::Nothing => None,
            Reshard::Step(step) => {
                self.apply(at_ms, step);
                None
            }
            Reshard::ScaleTo(target) => {
                for step in next_round(&self.open_shards(), target) {
                    self.apply(at_ms, step);
                }
                let more = !next_round(&self.open_shards(), target).is_empty();
                more.then_some(Reshard::ScaleTo(target))
            }
        }
    }

    fn open_shards(&self) -> Vec<Open> {
        let ranges = self.open.values().filter_map(|&shard| Some((shard, self.shard(shard)?.hash_range())));
        ranges.map(|(shard, range)| Open { shard, range }).collect()
    }

    fn apply(&mut self, at_ms: i64, step: Step) {
        let range = |stream: &Stream, shard| stream.shard(shard).map(|shard| shard.hash_range());
        match step {
            Step::Split { shard, at } => {
                let Some(HashRange { start, end }) = range(self, shard) else {
                    return;
                };
                self.close_shard(at_ms, shard);
                self.add_shard(at_ms, HashRange { start, end: at - 1 }, Some(shard), None);
                self.add_shard(at_ms, HashRange { start: at, end }, Some(shard), None);
            }
            Step::Merge { left, right } => {
                let (Some(first), Some(second)) = (range(self, left), range(self, right)) else {
                    return;
                };
                self.close_shard(at_ms, left);
                self.close_shard(at_ms, right);
                let whole = HashRange { start: first.start, end: second.end };
                self.add_shard(at_ms, whole, Some(left), Some(right));
            }
        }
    }
}
