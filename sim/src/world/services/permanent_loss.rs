//! The stream or the table is gone, or they do not belong together: after that, workers need only stop.

use super::Services;
use super::table::wall_ms;
use crate::faults::{LossKind, Trouble};
use crate::oracles::{Fact, ShardNo};
use crate::streams::StreamNo;
use crate::world::context::Context;
use crate::world::heap::What;
use leasehold_engine::position::{Checkpoint, Position};
use leasehold_engine::row::{Change, LeaseRow};
use leasehold_engine::shard::{HashKey, HashRange};

/// The time between the stream's deletion and the creation of another stream, in µs. Sequence numbers tell creations
/// apart by the second.
const GAP_US: u64 = 10_000_000;

impl Services {
    /// Performs the loss.
    pub(in crate::world) fn lose(&mut self, cx: &mut Context, kind: LossKind, pick: u32) {
        // The lost object may have changed a moment ago.
        self.observe_stream(cx);
        let now_ms = wall_ms(cx.now());
        let done = match kind {
            LossKind::StreamDeleted => self.delete_streams(now_ms),
            // Leases without progress would be right for any stream of this shape.
            LossKind::StreamRemade => self.has_progress() && self.delete_streams(now_ms),
            LossKind::TableDeleted => self.delete_table(cx),
            LossKind::TableOfAnother => self.plant_table(cx, pick),
            LossKind::RowsNameAnother => self.plant_named(cx, pick),
            LossKind::StrangeCheckpoints => self.plant_strange(cx),
            LossKind::AnotherFleet => self.neighbours_take(cx, pick),
            LossKind::TwoFleets => self.neighbours_fill(cx, pick),
        };
        if !done {
            return;
        }
        self.lost = Some(kind);
        cx.set_lost_for_good();
        cx.fact(Fact::LostForGood);
        cx.fault(kind.family(), None, None);
        cx.line(|| format!("from now on: {}", kind.family()));
        match kind {
            LossKind::StreamRemade => cx.push(cx.now() + GAP_US, What::Remake),
            LossKind::TableOfAnother
            | LossKind::RowsNameAnother
            | LossKind::AnotherFleet
            | LossKind::TwoFleets => cx.fact(Fact::Foreign),
            // Before its take of the lease, a worker cannot know the loss.
            LossKind::StrangeCheckpoints | LossKind::StreamDeleted | LossKind::TableDeleted => {}
        }
    }

    /// Deletes all remaining streams: a worker would continue with any other stream. A stream may have been deleted
    /// before.
    fn delete_streams(&mut self, now_ms: i64) -> bool {
        let mut done = false;
        for stream in self.source.streams().all() {
            done |= self.source.delete(now_ms, stream);
        }
        done
    }

    /// Another stream takes the name of each deleted stream.
    pub(in crate::world) fn remake_stream(&mut self, cx: &mut Context) {
        let now_ms = wall_ms(cx.now());
        let mut remade = true;
        for stream in self.source.streams().all() {
            let shards = self.known[stream as usize] as u32;
            remade &= self.source.remake(now_ms, stream, shards.clamp(1, 400));
        }
        if remade {
            cx.line(|| "another stream has the name of the deleted one".to_owned());
            cx.fact(Fact::Foreign);
        }
    }

    /// Deletes one stream of several for good.
    pub(in crate::world) fn delete_one_stream(&mut self, cx: &mut Context, trouble: &Trouble) {
        let stream = trouble.stream;
        self.observe_stream(cx);
        if cx.is_lost_for_good() || !self.source.delete(wall_ms(cx.now()), stream) {
            return;
        }
        cx.fault(trouble.family(), None, None);
        cx.line(|| format!("stream {stream} is deleted"));
        cx.fact(Fact::StreamGone { stream });
    }

    /// Whether records of each stream were read.
    fn has_progress(&self) -> bool {
        let streams = self.source.streams();
        let begun = |stream: StreamNo| {
            let mut rows = self.rows.iter().enumerate();
            rows.any(|(shard, lease)| {
                let row = lease.row.as_ref();
                streams.of(shard as ShardNo) == stream
                    && row.is_some_and(|row| matches!(row.checkpoint, Checkpoint::At(_)))
            })
        };
        streams.all().all(begun)
    }

    fn delete_table(&mut self, cx: &mut Context) -> bool {
        if !self.table.delete_by_hand_whole(cx.now()) {
            return false;
        }
        for shard in 0..self.rows.len() as ShardNo {
            let key = cx.names_mut().shard(shard).to_lease();
            self.row_written(cx, &key, None, None);
        }
        true
    }

    /// Fills a table before the first worker, with the rows of another stream.
    fn plant_table(&mut self, cx: &mut Context, pick: u32) -> bool {
        self.table.make_at_once(cx.now());
        let begun = Checkpoint::At(Position::of(1_000.into()));
        // Ranges say nothing in a format without ranges.
        let kind = match pick % 3 {
            1 if !self.table.holds_ranges() => 0,
            kind => kind,
        };
        for shard in 0..cx.plan().shards {
            let key = cx.names_mut().shard(shard).to_lease();
            let row = match kind {
                // Rows of an earlier stream.
                0 => LeaseRow::new(key.clone(), begun),
                // Rows of a stream with other ranges of its shards.
                1 => LeaseRow {
                    range: Some(HashRange {
                        start: HashKey(u128::from(shard)),
                        end: HashKey(u128::from(shard)),
                    }),
                    ..LeaseRow::new(key.clone(), Checkpoint::TrimHorizon)
                },
                // Rows of finished shards, though the shards are open.
                _ => LeaseRow::new(key.clone(), Checkpoint::ShardEnd),
            };
            self.table.change_by_hand(cx.now(), &Change::Create(Box::new(row)));
            self.row_written(cx, &key, None, None);
        }
        true
    }
}
