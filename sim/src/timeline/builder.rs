//! Makes a timeline from events.

use super::layout::{Stays, lay_out_stream};
use super::picture::{Bar, BarKind, Lane, LaneNo, Mark, MarkKind, Shard, ShardIx, Span, SpanKind, Timeline};
use super::words;
use crate::oracles::{Time, Violation};
use std::collections::BTreeMap;

/// A page with more marks than this is slow to load. Checkpoints are left out first.
pub const MOST_MARKS: usize = 60_000;

/// Makes a timeline from events, in the order of time.
#[derive(Clone, Debug, Default)]
pub struct Builder {
    lanes: Vec<String>,
    shards: Vec<Shard>,
    lane_of: BTreeMap<String, LaneNo>,
    shard_of: BTreeMap<String, ShardIx>,
    spans: Vec<Span>,
    bars: Vec<Bar>,
    marks: Vec<Mark>,
    violations: Vec<Violation>,
    up: BTreeMap<LaneNo, (Time, String)>,
    owners: BTreeMap<ShardIx, (LaneNo, Time, String)>,
    under_way: BTreeMap<(LaneNo, ShardIx, BarKind), (Time, String)>,
}

impl Builder {
    /// The lane of a worker, new if need be.
    pub fn worker(&mut self, name: &str) -> LaneNo {
        if let Some(lane) = self.lane_of.get(name) {
            return *lane;
        }
        let lane = self.lanes.len() as LaneNo;
        self.lanes.push(name.to_owned());
        self.lane_of.insert(name.to_owned(), lane);
        lane
    }

    /// A shard by its whole name, new if need be.
    pub fn shard(&mut self, name: &str) -> ShardIx {
        if let Some(shard) = self.shard_of.get(name) {
            return *shard;
        }
        let shard = self.shards.len() as ShardIx;
        self.shards.push(Shard {
            name: words::shorten(name),
            number: words::number(name).unwrap_or(shard),
            row: 0,
            born: None,
            closed: None,
            parents: Vec::new(),
        });
        self.shard_of.insert(name.to_owned(), shard);
        shard
    }

    /// A worker's displayed name.
    pub fn name(&self, worker: LaneNo) -> &str {
        self.lanes.get(worker as usize).map_or("?", String::as_str)
    }

    /// Renames a worker after its true name is known.
    pub fn rename(&mut self, worker: LaneNo, name: &str) {
        if let Some(lane) = self.lanes.get_mut(worker as usize) {
            name.clone_into(lane);
        }
    }

    /// The violations so far.
    pub fn violations(&self) -> &[Violation] {
        &self.violations
    }

    /// A shard began to exist.
    pub fn born(&mut self, at: Time, shard: ShardIx, parents: Vec<ShardIx>) {
        if let Some(shard) = self.shards.get_mut(shard as usize) {
            shard.born = Some(at);
            shard.parents = parents;
        }
    }

    /// A shard takes no more records.
    pub fn closed(&mut self, at: Time, shard: ShardIx) {
        if let Some(shard) = self.shards.get_mut(shard as usize) {
            shard.closed = Some(at);
        }
    }

    /// A worker starts.
    pub fn up(&mut self, at: Time, worker: LaneNo, text: String) {
        self.down(at, worker);
        self.up.insert(worker, (at, text));
    }

    /// A worker's life ends, and its processing with it.
    pub fn down(&mut self, at: Time, worker: LaneNo) {
        if let Some((from, text)) = self.up.remove(&worker) {
            let kind = SpanKind::Up;
            self.spans.push(Span { worker, from, to: at, kind, text });
        }
        let ends = |key: &(LaneNo, ShardIx, BarKind)| key.0 == worker;
        let ended: Vec<_> = self.under_way.keys().copied().filter(ends).collect();
        for (worker, shard, kind) in ended {
            self.end(at, worker, shard, kind, None);
        }
    }

    /// A worker was paused.
    pub fn paused(&mut self, from: Time, to: Time, worker: LaneNo, text: String) {
        let kind = SpanKind::Paused;
        self.spans.push(Span { worker, from, to, kind, text });
    }

    /// The row of a shard names another owner from now on, or no owner.
    pub fn owner(&mut self, at: Time, shard: ShardIx, owner: Option<(LaneNo, String)>) {
        if let Some((worker, from, text)) = self.owners.remove(&shard) {
            let (to, row, kind) = (at, 0, BarKind::Owned);
            self.bars.push(Bar { worker, shard, row, from, to, kind, text });
        }
        if let Some((worker, text)) = owner {
            self.owners.insert(shard, (worker, at, text));
        }
    }

    /// The owner in the row of a shard.
    pub fn owner_of(&self, shard: ShardIx) -> Option<LaneNo> {
        self.owners.get(&shard).map(|(worker, ..)| *worker)
    }

    /// A bar within a worker's lane begins.
    pub fn begin(&mut self, at: Time, worker: LaneNo, shard: ShardIx, kind: BarKind, text: String) {
        self.end(at, worker, shard, kind, None);
        self.under_way.insert((worker, shard, kind), (at, text));
    }

    /// A bar ends, if the bar ever began. `text` replaces the text of the beginning.
    pub fn end(&mut self, at: Time, worker: LaneNo, shard: ShardIx, kind: BarKind, text: Option<String>) {
        if let Some((from, said)) = self.under_way.remove(&(worker, shard, kind)) {
            let (to, row, text) = (at, 0, text.unwrap_or(said));
            self.bars.push(Bar { worker, shard, row, from, to, kind, text });
        }
    }

    /// Adds a mark.
    pub fn mark(
        &mut self, at: Time, kind: MarkKind, worker: Option<LaneNo>, shard: Option<ShardIx>, text: String,
    ) {
        let row = None;
        self.marks.push(Mark { at, kind, worker, shard, row, text });
    }

    /// Adds a violation.
    pub fn violation(&mut self, violation: Violation) {
        let text = format!("{}: {}", violation.property, violation.summary);
        self.mark(violation.at, MarkKind::Violation, None, None, text);
        self.violations.push(violation);
    }

    /// The finished timeline. Title, subtitle and verdict are left for the caller.
    pub fn finish(mut self, end: Time) -> Timeline {
        for worker in 0..self.lanes.len() as LaneNo {
            self.down(end, worker);
        }
        for shard in 0..self.shards.len() as ShardIx {
            self.owner(end, shard, None);
        }
        let stays = Stays::of(&self.bars, self.lanes.len());
        for bar in &mut self.bars {
            bar.row = stays.row(bar.worker, bar.shard, bar.from).unwrap_or(0);
        }
        self.bars.sort_by_key(|bar| (bar.worker, bar.row, bar.kind, bar.from));
        self.marks.sort_by_key(|mark| mark.at);
        for mark in &mut self.marks {
            if let (Some(worker), Some(shard)) = (mark.worker, mark.shard) {
                mark.row = stays.row(worker, shard, mark.at);
            }
        }
        let left_out = thin(&mut self.marks);
        let stream_rows = lay_out_stream(&mut self.shards, end);
        let lanes = self.lanes.into_iter().zip(stays.heights);
        Timeline {
            title: String::new(),
            subtitle: String::new(),
            verdict: String::new(),
            end,
            epoch_ms: None,
            workers: lanes.map(|(name, rows)| Lane { name, rows }).collect(),
            shards: self.shards,
            stream_rows,
            spans: self.spans,
            bars: self.bars,
            marks: self.marks,
            violations: self.violations,
            left_out,
        }
    }
}

/// Leaves out checkpoints first, then other marks but violations, until the marks are few enough. Returns the number of
/// marks left out.
fn thin(marks: &mut Vec<Mark>) -> u64 {
    let all = marks.len();
    if all <= MOST_MARKS {
        return 0;
    }
    let is_checkpoint = |mark: &Mark| mark.kind == MarkKind::Checkpoint;
    let checkpoints = marks.iter().filter(|mark| is_checkpoint(mark)).count();
    let room = MOST_MARKS.saturating_sub(all - checkpoints);
    let every = checkpoints.checked_div(room).map_or(usize::MAX, |every| every + 1);
    let (mut seen, mut others) = (0usize, 0usize);
    marks.retain(|mark| {
        if is_checkpoint(mark) {
            seen += 1;
            return every != usize::MAX && seen % every == 0;
        }
        others += 1;
        others <= MOST_MARKS || mark.kind == MarkKind::Violation
    });
    (all - marks.len()) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(timeline: &Timeline) -> Vec<(ShardIx, u32, BarKind)> {
        timeline.bars.iter().map(|bar| (bar.shard, bar.row, bar.kind)).collect()
    }

    fn two_shards() -> (Builder, LaneNo, ShardIx, ShardIx) {
        let mut builder = Builder::default();
        let worker = builder.worker("w0");
        let (one, other) = (builder.shard("shardId-000000000001"), builder.shard("other"));
        (builder, worker, one, other)
    }

    #[test]
    fn bars_at_the_same_time_lie_in_rows_of_their_own() {
        let (mut builder, worker, one, other) = two_shards();
        builder.owner(10, one, Some((worker, String::new())));
        builder.begin(12, worker, one, BarKind::Processing, String::new());
        builder.owner(20, other, Some((worker, String::new())));
        builder.owner(30, one, None);
        // Processing goes on although the row names no owner: the bar's row is not free yet.
        builder.end(40, worker, one, BarKind::Processing, None);
        let timeline = builder.finish(100);
        assert_eq!(
            rows(&timeline),
            [(one, 0, BarKind::Owned), (one, 0, BarKind::Processing), (other, 1, BarKind::Owned)]
        );
        assert_eq!(timeline.workers[0].rows, 2);
        assert_eq!(timeline.bars[2].to, 100);
    }

    #[test]
    fn a_row_is_used_again_and_a_shard_comes_back_to_its_own() {
        let (mut builder, worker, one, other) = two_shards();
        let mine = || Some((worker, String::new()));
        builder.owner(0, other, mine());
        builder.owner(1, one, mine());
        builder.owner(10, other, None);
        builder.owner(20, one, None);
        builder.owner(30, one, mine());
        let timeline = builder.finish(40);
        let of_one = |bar: &&Bar| bar.shard == one;
        let rows: Vec<u32> = timeline.bars.iter().filter(of_one).map(|bar| bar.row).collect();
        assert_eq!(rows, [1, 1]);
    }

    #[test]
    fn a_death_ends_what_is_processed_but_not_what_the_row_says() {
        let (mut builder, worker, one, _) = two_shards();
        builder.up(0, worker, String::new());
        builder.owner(1, one, Some((worker, String::new())));
        builder.begin(2, worker, one, BarKind::Processing, String::new());
        builder.down(5, worker);
        let timeline = builder.finish(9);
        let ends: Vec<Time> = timeline.bars.iter().map(|bar| bar.to).collect();
        assert_eq!(ends, [9, 5]);
        assert_eq!((timeline.spans[0].from, timeline.spans[0].to), (0, 5));
    }

    #[test]
    fn a_mark_lies_on_the_bar_of_its_shard_if_there_is_one_then() {
        let (mut builder, worker, one, other) = two_shards();
        builder.owner(10, other, Some((worker, String::new())));
        builder.owner(10, one, Some((worker, String::new())));
        builder.owner(20, one, None);
        for at in [5, 15, 25] {
            builder.mark(at, MarkKind::Checkpoint, Some(worker), Some(other), String::new());
            builder.mark(at, MarkKind::Checkpoint, Some(worker), Some(one), String::new());
        }
        let timeline = builder.finish(30);
        let rows: Vec<Option<u32>> = timeline.marks.iter().map(|mark| mark.row).collect();
        assert_eq!(rows, [None, None, Some(1), Some(0), Some(1), None]);
    }

    #[test]
    fn children_follow_their_parent_in_the_lane_of_the_stream() {
        let (mut builder, _, one, other) = two_shards();
        let (left, right) = (builder.shard("left"), builder.shard("right"));
        builder.born(0, one, Vec::new());
        builder.born(0, other, Vec::new());
        builder.closed(10, other);
        builder.born(10, left, vec![other]);
        builder.born(10, right, vec![other]);
        let timeline = builder.finish(30);
        let rows: Vec<u32> = timeline.shards.iter().map(|shard| shard.row).collect();
        assert_eq!((rows, timeline.stream_rows), (vec![0, 1, 1, 2], 3));
    }

    #[test]
    fn too_many_checkpoints_are_thinned_out_and_nothing_else() {
        let (mut builder, worker, one, _) = two_shards();
        for at in 0..(MOST_MARKS as u64 + 5_000) {
            builder.mark(at, MarkKind::Checkpoint, Some(worker), Some(one), String::new());
        }
        for at in 0..100 {
            builder.mark(at, MarkKind::Fault, None, None, String::new());
        }
        let timeline = builder.finish(100);
        let faults = timeline.marks.iter().filter(|mark| mark.kind == MarkKind::Fault);
        assert_eq!(faults.count(), 100);
        assert!(timeline.marks.len() <= MOST_MARKS);
        assert_eq!(timeline.left_out + timeline.marks.len() as u64, MOST_MARKS as u64 + 5_100);
    }
}
