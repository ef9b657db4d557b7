//! The stream or the table is gone, or they do not belong together: after that, workers need only stop.

use super::World;
use super::heap::What;
use super::table::wall_ms;
use crate::faults::LossKind;
use crate::oracles::{Fact, Property, ShardNo};
use leasehold_engine::position::{Checkpoint, Position};
use leasehold_engine::row::{Change, LeaseRow};
use leasehold_engine::shard::{HashKey, HashRange};

/// How long there is no stream before there is another one, in µs. Sequence numbers tell creations apart by the second.
const GAP_US: u64 = 10_000_000;

impl World {
    /// Takes it away.
    pub(super) fn lose(&mut self, kind: LossKind, pick: u32) {
        // What is about to be gone may have changed a moment ago.
        self.observe_stream();
        let now_ms = wall_ms(self.cx.now());
        let done = match kind {
            LossKind::StreamDeleted => self.source.delete(now_ms),
            // Leases that nobody has begun with would be right for any stream of this shape.
            LossKind::StreamRemade => self.has_progress() && self.source.delete(now_ms),
            LossKind::TableDeleted => self.delete_table(),
            LossKind::TableOfAnother => self.plant_table(pick),
        };
        if !done {
            return;
        }
        self.lost_for_good = Some(kind);
        self.cx.set_lost_for_good();
        self.cx.fact(Fact::LostForGood);
        self.cx.fault(kind.family(), None, None);
        self.cx.line(|| format!("from now on: {}", kind.family()));
        match kind {
            LossKind::StreamRemade => self.cx.push(self.cx.now() + GAP_US, What::Remake),
            LossKind::TableOfAnother => self.cx.fact(Fact::Foreign),
            LossKind::StreamDeleted | LossKind::TableDeleted => {}
        }
    }

    /// Another stream takes the name of the deleted one.
    pub(super) fn remake_stream(&mut self) {
        let shards = self.shards.len() as u32;
        if self.source.remake(wall_ms(self.cx.now()), shards.clamp(1, 400)) {
            self.cx
                .line(|| "another stream has the name of the deleted one".to_owned());
            self.cx.fact(Fact::Foreign);
        }
    }

    fn has_progress(&self) -> bool {
        let rows = self.rows.iter().filter_map(|lease| lease.row.as_ref());
        let mut checkpoints = rows.map(|row| row.checkpoint);
        checkpoints.any(|checkpoint| matches!(checkpoint, Checkpoint::At(_)))
    }

    fn delete_table(&mut self) -> bool {
        if !self.table.delete_by_hand_whole(self.cx.now()) {
            return false;
        }
        for shard in 0..self.rows.len() as ShardNo {
            let key = self.cx.names_mut().shard(shard).to_lease();
            self.row_written(&key, None, None);
        }
        true
    }

    /// Fills a table before any worker is there, as one of another stream would be.
    fn plant_table(&mut self, pick: u32) -> bool {
        self.table.make_at_once(self.cx.now());
        let begun = Checkpoint::At(Position::of(1_000.into()));
        // Ranges say nothing in a format that does not hold them.
        let kind = match pick % 3 {
            1 if !self.table.holds_ranges() => 0,
            kind => kind,
        };
        for shard in 0..self.cx.plan().shards {
            let key = self.cx.names_mut().shard(shard).to_lease();
            let row = match kind {
                // Of an earlier stream.
                0 => LeaseRow::new(key.clone(), begun),
                // Of a stream whose shards have other ranges.
                1 => LeaseRow {
                    range: Some(HashRange {
                        start: HashKey(u128::from(shard)),
                        end: HashKey(u128::from(shard)),
                    }),
                    ..LeaseRow::new(key.clone(), Checkpoint::TrimHorizon)
                },
                // Finished, though the shards are open.
                _ => LeaseRow::new(key.clone(), Checkpoint::ShardEnd),
            };
            self.table
                .change_by_hand(self.cx.now(), &Change::Create(Box::new(row)));
            self.row_written(&key, None, None);
        }
        true
    }

    /// The first worker that goes on as if nothing had happened.
    pub(super) fn goes_on(&self) -> Option<(Property, String)> {
        let kind = self.lost_for_good?;
        let property = match kind {
            LossKind::StreamDeleted | LossKind::TableDeleted => Property::StallsReported,
            LossKind::StreamRemade | LossKind::TableOfAnother => Property::ForeignTablesRefused,
        };
        let goes_on = |worker: &super::Worker| worker.core && worker.lives();
        let w = self.workers.iter().position(goes_on)?;
        Some((property, format!("w{w} goes on, with {}", kind.family())))
    }
}
