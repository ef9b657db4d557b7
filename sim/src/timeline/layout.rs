//! The places of bars. Bars of one lane never overlap, and touching bars of one shard share a row.

use super::picture::{Bar, LaneNo, Shard, ShardIx};
use crate::oracles::Time;
use std::collections::BTreeMap;

/// A bar's beginning, end and row.
type Placed = (Time, Time, u32);

/// The rows of one lane: the end of the last bar in each row.
#[derive(Clone, Debug, Default)]
struct Rows(Vec<Time>);

impl Rows {
    /// A row free from a time on: the `wanted` row if possible, else the highest.
    fn take(&mut self, from: Time, to: Time, wanted: Option<u32>) -> u32 {
        let is_free = |row: &u32| self.0.get(*row as usize).is_some_and(|until| *until <= from);
        let free = wanted.filter(is_free).or_else(|| (0..self.0.len() as u32).find(is_free));
        let row = free.unwrap_or(self.0.len() as u32);
        match self.0.get_mut(row as usize) {
            Some(until) => *until = to,
            None => self.0.push(to),
        }
        row
    }
}

/// The place of each shard in each lane over time. Touching bars of one shard share a row.
#[derive(Debug)]
pub(super) struct Stays {
    /// From, to and row, in the order of time.
    by_shard: BTreeMap<(LaneNo, ShardIx), Vec<Placed>>,
    /// The rows of every lane.
    pub heights: Vec<u32>,
}

impl Stays {
    pub(super) fn of(bars: &[Bar], lanes: usize) -> Self {
        let mut by_shard: BTreeMap<(LaneNo, ShardIx), Vec<Placed>> = BTreeMap::new();
        let mut order: Vec<&Bar> = bars.iter().collect();
        order.sort_by_key(|bar| bar.from);
        for bar in order {
            let stays = by_shard.entry((bar.worker, bar.shard)).or_default();
            match stays.last_mut() {
                Some((_, until, _)) if bar.from <= *until => *until = bar.to.max(*until),
                _ => stays.push((bar.from, bar.to, 0)),
            }
        }
        let mut all: Vec<(Time, ShardIx, LaneNo, usize)> = Vec::new();
        for ((worker, shard), stays) in &by_shard {
            all.extend((0..stays.len()).map(|n| (stays[n].0, *shard, *worker, n)));
        }
        all.sort_unstable();
        let mut rows = vec![Rows::default(); lanes];
        for (_, shard, worker, n) in all {
            let Some(stays) = by_shard.get_mut(&(worker, shard)) else {
                continue;
            };
            let before = n.checked_sub(1).map(|n| stays[n].2);
            let (from, to, _) = stays[n];
            if let Some(rows) = rows.get_mut(worker as usize) {
                stays[n].2 = rows.take(from, to, before);
            }
        }
        let heights = rows.iter().map(|rows| rows.0.len() as u32).collect();
        Self { by_shard, heights }
    }

    pub(super) fn row(&self, worker: LaneNo, shard: ShardIx, at: Time) -> Option<u32> {
        let stays = self.by_shard.get(&(worker, shard))?;
        let after = stays.partition_point(|(from, ..)| *from <= at);
        let (_, to, row) = stays.get(after.checked_sub(1)?)?;
        (at <= *to).then_some(*row)
    }
}

/// Gives each shard a row in the lane of the stream. Returns the number of rows.
pub(super) fn lay_out_stream(shards: &mut [Shard], end: Time) -> u32 {
    let mut order: Vec<usize> = (0..shards.len()).filter(|n| shards[*n].born.is_some()).collect();
    order.sort_by_key(|n| shards[*n].born);
    let mut rows = Rows::default();
    for n in order {
        // A child follows its parent if the parent's row is free.
        let wanted = shards[n].parents.first().map(|parent| shards[*parent as usize].row);
        let to = shards[n].closed.unwrap_or(end);
        shards[n].row = rows.take(shards[n].born.unwrap_or(0), to, wanted);
    }
    rows.0.len() as u32
}
