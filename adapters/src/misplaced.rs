//! Aggregated records with parts of other shards: warnings about dropped parts, and the parts kept as dead letters.

use crate::metrics::{self, Meter};
use crate::record::Record;
use leasehold_engine::aggregate::Misplaced;
use leasehold_engine::ids::ShardId;
use leasehold_engine::position::Position;
use leasehold_engine::time::{Mono, Span};
use std::sync::atomic::{AtomicUsize, Ordering};

/// The least time between two warnings about one shard.
const EVERY: Span = Span::from_secs(60);

/// Aggregated records of which parts were dropped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Count {
    /// How many.
    pub(crate) records: u64,
    /// How many of their parts are handed over.
    pub(crate) handed_over: u64,
    /// How many of their parts were dropped.
    pub(crate) dropped: u64,
}

impl Count {
    /// Counts one more record, with this number of parts handed over and dropped.
    pub(crate) fn add(&mut self, handed_over: u64, dropped: u64) {
        self.records += 1;
        self.handed_over = self.handed_over.saturating_add(handed_over);
        self.dropped = self.dropped.saturating_add(dropped);
    }
}

/// The dropped parts of one shard since the last warning.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Untold {
    told_at: Option<Mono>,
    /// The first one.
    position: Option<Position>,
    count: Count,
}

impl Untold {
    /// Counts an aggregated record, with the number of its parts handed over and dropped.
    pub(crate) fn add(&mut self, position: Position, handed_over: u64, dropped: u64) {
        self.position = self.position.or(Some(position));
        self.count.add(handed_over, dropped);
    }

    /// What is to be told now. `all`: nothing will follow.
    fn take(&mut self, now: Mono, all: bool) -> Option<(Position, Count)> {
        let due = self.told_at.is_none_or(|at| now.since(at) >= EVERY);
        let position = self.position.filter(|_| due || all)?;
        let told = (position, self.count);
        *self = Self { told_at: Some(now), ..Self::default() };
        Some(told)
    }

    /// Tells what is to be told now. `all`: nothing will follow.
    pub(crate) fn tell(&mut self, misplaced: Misplaced, shard: &ShardId, now: Mono, all: bool) {
        if let Some((position, count)) = self.take(now, all) {
            let Count { records, handed_over, dropped } = count;
            tracing::warn!(
                %shard, %position, records, handed_over, dropped,
                "{}", sentence(misplaced, shard, position, count)
            );
        }
    }
}

/// Sets the counters to the totals.
pub(crate) fn show_misplaced(meter: &Meter, count: Count) {
    meter.count_to(&metrics::MISPLACED, [], count.records);
    for (result, parts) in [("handed-over", count.handed_over), ("dropped", count.dropped)] {
        meter.count_to(&metrics::MISPLACED_PARTS, [result.into()], parts);
    }
}

/// The warning: the loss, its meaning, and the remedy.
fn sentence(misplaced: Misplaced, shard: &ShardId, position: Position, count: Count) -> String {
    let Count { records, handed_over, dropped } = count;
    match misplaced {
        Misplaced::DropWhole => format!(
            "dropped {records} aggregated records of {shard}, the first at {position}, with {dropped} parts: some part of each belongs \
             to another shard. A Kinesis Producer Library since August 2024 does not send the parts again that belong to {shard}: they \
             are lost. Choose `Misplaced::Drop` (`drop`), unless every producer is older"
        ),
        _ => format!(
            "dropped {dropped} parts of {records} aggregated records of {shard}, the first at {position}, since they belong to other \
             shards; {handed_over} parts of these records belong to {shard} and are kept. A Kinesis Producer Library sends the dropped \
             parts again; if the producer is another one and does not, choose `Misplaced::Keep` (`keep`)"
        ),
    }
}

/// The parts of a batch that belong to other shards, in order, for the dead-letter sink.
#[derive(Debug, Default)]
pub(crate) struct Outside {
    parts: Vec<Record>,
    /// The number of parts stored in the sink, from the first part on.
    stored: AtomicUsize,
}

impl Outside {
    pub(crate) fn new(parts: Vec<Record>) -> Self {
        Self { parts, stored: AtomicUsize::new(0) }
    }

    /// The first part not yet in the sink. Parts up to `after` were stored before `after` was processed.
    pub(crate) fn next(&self, after: Option<Position>) -> Option<&Record> {
        let stored = self.stored.load(Ordering::Relaxed);
        let over = self.parts.partition_point(|part| Some(part.position) <= after);
        self.stored.fetch_max(over, Ordering::Relaxed);
        self.parts.get(stored.max(over))
    }

    /// The sink has stored the part given by [`next`](Self::next).
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

    fn counted(records: u64, handed_over: u64, dropped: u64) -> Count {
        Count { records, handed_over, dropped }
    }

    #[test]
    fn the_first_is_told_at_once_and_more_together_a_minute_later() {
        let mut untold = Untold::default();
        assert_eq!(untold.take(Mono(5), true), None);
        untold.add(at(1), 1, 3);
        assert_eq!(untold.take(Mono(5), false), Some((at(1), counted(1, 1, 3))));
        untold.add(at(2), 2, 4);
        untold.add(at(7), 0, 5);
        let minute = Mono(5) + EVERY;
        assert_eq!(untold.take(Mono(minute.0 - 1), false), None);
        assert_eq!(untold.take(minute, false), Some((at(2), counted(2, 2, 9))));
        untold.add(at(9), 1, 1);
        assert_eq!(untold.take(minute, false), None);
        assert_eq!(untold.take(minute, true), Some((at(9), counted(1, 1, 1))));
    }

    #[test]
    fn a_line_says_what_was_dropped_and_claims_only_possible_loss() {
        let told = |misplaced| sentence(misplaced, &"s".into(), at(7), counted(2, 3, 5));
        let parts = told(Misplaced::Drop);
        assert!(parts.contains("dropped 5 parts of 2 aggregated records of s, the first at 7"));
        assert!(parts.contains("3 parts of these records belong to s and are kept"));
        assert!(!parts.contains("lost"), "{parts}");
        let whole = told(Misplaced::DropWhole);
        assert!(whole.contains("dropped 2 aggregated records of s, the first at 7, with 5 parts"));
        assert!(whole.contains("are lost"), "{whole}");
    }
}
