//! Aggregated records of which some part belongs to another shard: telling of those that were dropped, and keeping the parts that
//! are dead letters.

use crate::record::Record;
use leasehold_engine::ids::ShardId;
use leasehold_engine::position::Position;
use leasehold_engine::time::{Mono, Span};
use std::sync::atomic::{AtomicUsize, Ordering};

/// A shard is told of no more often than this.
const EVERY: Span = Span::from_secs(60);

/// What was dropped of one shard and not told yet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Untold {
    told_at: Option<Mono>,
    /// The first one.
    position: Option<Position>,
    records: u64,
    parts: u64,
}

impl Untold {
    /// An aggregated record of so many parts was dropped.
    pub(crate) fn add(&mut self, position: Position, parts: u64) {
        self.position = self.position.or(Some(position));
        self.records += 1;
        self.parts = self.parts.saturating_add(parts);
    }

    /// What is to be told now. `all`: nothing will follow.
    fn take(&mut self, now: Mono, all: bool) -> Option<(Position, u64, u64)> {
        let due = self.told_at.is_none_or(|at| now.since(at) >= EVERY);
        let position = self.position.filter(|_| due || all)?;
        let told = (position, self.records, self.parts);
        *self = Self {
            told_at: Some(now),
            ..Self::default()
        };
        Some(told)
    }

    /// Tells what is to be told now. `all`: nothing will follow.
    pub(crate) fn tell(&mut self, shard: &ShardId, now: Mono, all: bool) {
        if let Some((position, records, parts)) = self.take(now, all) {
            tracing::warn!(
                %shard, %position, records, parts,
                "dropped {records} aggregated records of {shard}, the first at {position}, with {parts} parts: some part of each belongs \
                 to another shard. The KPL sends their records again; if the producer is another one, choose `Misplaced::Keep`"
            );
        }
    }
}

/// The parts of a batch that belong to other shards, in order, for the dead-letter sink.
#[derive(Debug, Default)]
pub(crate) struct Outside {
    parts: Vec<Record>,
    /// The sink has so many of them, from the first on.
    stored: AtomicUsize,
}

impl Outside {
    pub(crate) fn new(parts: Vec<Record>) -> Self {
        Self {
            parts,
            stored: AtomicUsize::new(0),
        }
    }

    /// The first one that the sink does not have. Those up to `after` were stored before that was processed.
    pub(crate) fn next(&self, after: Option<Position>) -> Option<&Record> {
        let stored = self.stored.load(Ordering::Relaxed);
        let over = self.parts.partition_point(|part| Some(part.position) <= after);
        self.stored.fetch_max(over, Ordering::Relaxed);
        self.parts.get(stored.max(over))
    }

    /// The sink has the one that [`next`](Self::next) gave.
    pub(crate) fn stored_next(&self) {
        self.stored.fetch_add(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(n: u64) -> Position {
        Position::of(n.into())
    }

    #[test]
    fn the_first_is_told_at_once_and_further_ones_together_a_minute_later_or_at_the_end() {
        let mut untold = Untold::default();
        assert_eq!(untold.take(Mono(5), true), None);
        untold.add(at(1), 3);
        assert_eq!(untold.take(Mono(5), false), Some((at(1), 1, 3)));
        untold.add(at(2), 4);
        untold.add(at(7), 5);
        let minute = Mono(5) + EVERY;
        assert_eq!(untold.take(Mono(minute.0 - 1), false), None);
        assert_eq!(untold.take(minute, false), Some((at(2), 2, 9)));
        untold.add(at(9), 1);
        assert_eq!(untold.take(minute, false), None);
        assert_eq!(untold.take(minute, true), Some((at(9), 1, 1)));
    }
}
