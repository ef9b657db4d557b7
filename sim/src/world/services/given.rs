//! A world that begins with an existing stream and an existing table.

use super::Services;
use super::table::{LeaseTable, wall_ms};
use super::truth::Lease;
use crate::draws::Draws;
use crate::names::{number, sequence};
use crate::oracles::fact::Verb;
use crate::oracles::{Fact, ShardNo};
use crate::start::{GivenRow, GivenShard, ShardState, Start, generations, set_checkpoint};
use crate::swarm::{EPOCH_MS, STREAM_AGE_MS};
use crate::world::context::Context;
use bytes::Bytes;
use leasehold_engine::ids::LeaseKey;
use leasehold_engine::position::{Checkpoint, Position};
use leasehold_engine::row::RowRead;
use leasehold_local_aws::kinesis::{HashRange, SequenceNumber, SequenceParts, ShardIndex, ShardPast};
use std::sync::Arc;

/// The least age of a generation of shards, in ms: their numbers begin with the second of their creation.
const GENERATION_MS: i64 = 2_000;

/// The past of the shards, and its beginning: at the trim horizon, at the close of the trimmed shards. Each generation
/// opens when the generation before closes; every shard has records.
pub(super) fn past(start: &Start, draws: Draws, data: &Bytes) -> (i64, Vec<ShardPast>) {
    let generations = generations(&start.shards);
    let count = i64::from(generations.iter().max().copied().unwrap_or(0)) + 1;
    let step_ms = (STREAM_AGE_MS / count).max(GENERATION_MS);
    let created_ms = EPOCH_MS - step_ms * count;
    let began_ms = |n: usize| created_ms + i64::from(generations[n]) * step_ms;
    let mut closed_ms = vec![None; start.shards.len()];
    for (n, shard) in start.shards.iter().enumerate() {
        for parent in &shard.parents {
            closed_ms[*parent as usize] = Some(began_ms(n));
        }
    }
    let past = |(n, shard): (usize, &GivenShard)| {
        let (opened_ms, closed_ms) = match shard.state {
            ShardState::Open => (began_ms(n), None),
            ShardState::Closed => (began_ms(n), closed_ms[n]),
            ShardState::Trimmed => (created_ms - GENERATION_MS, Some(created_ms)),
        };
        let mut parents = shard.parents.iter().map(|parent| ShardIndex(*parent));
        ShardPast {
            parents: [parents.next(), parents.next()],
            hash_range: HashRange { start: shard.range.start.0, end: shard.range.end.0 },
            opened_ms,
            closed_ms,
            expired: shard.state == ShardState::Trimmed,
            records: draws.between("given-records", n as u64, 2, 40) as u32,
            data: data.clone(),
        }
    };
    (created_ms, start.shards.iter().enumerate().map(past).collect())
}

impl Services {
    /// Puts the rows of the beginning, and tells the oracles the past.
    pub(super) fn put_given(&mut self, cx: &mut Context) {
        let Some(start) = cx.plan().start.clone() else {
            return;
        };
        if !self.table.is_usable(cx.now()) {
            self.table.create_before(cx.plan().faults.table.create_ms);
        }
        self.rows.resize_with(start.shards.len(), Lease::default);
        let mut leases = vec![None; start.shards.len()];
        for row in &start.rows {
            if let (Some(shard), RowRead::Lease(lease)) =
                (number(row.key(cx.plan().format)), self.table.format.decode(&row.item))
            {
                leases[shard as usize] = Some((lease.checkpoint.is_end(), row.through));
            }
        }
        for (n, (passed, lease)) in start
            .passed(cx.plan().format, cx.plan().config.initial_position())
            .into_iter()
            .zip(leases)
            .enumerate()
        {
            let records = self.source.records(n as ShardNo);
            let trimmed = start.shards[n].state == ShardState::Trimmed;
            let (through, ended) = match lease {
                Some((true, _)) => (records, true),
                Some((false, _)) if trimmed => (records, true),
                Some((false, Some(through))) => (record(records, through), false),
                Some((false, None)) => continue,
                None if passed || trimmed => {
                    self.rows[n].existed = true;
                    (records, passed && !trimmed)
                }
                None => continue,
            };
            let shard = n as ShardNo;
            cx.fact(Fact::Given { shard, through, ended });
        }
        for row in &start.rows {
            self.put_row(cx, row);
        }
    }

    fn put_row(&mut self, cx: &mut Context, row: &GivenRow) {
        let key = LeaseKey::from(row.key(cx.plan().format));
        let mut item = row.item.clone();
        if let (Some(shard), Some(through)) = (number(key.as_str()), row.through) {
            let record = record(self.source.records(shard), through);
            if let (RowRead::Lease(row), Some(number)) =
                (self.table.format.decode(&item), self.given_number(shard, record))
            {
                let checkpoint = Checkpoint::At(Position::of(number));
                set_checkpoint(cx.plan().format, &mut item, &row, checkpoint);
            }
        }
        let put = self.table.put_by_hand(cx.now(), &item);
        assert!(put, "a given row was refused: {key}");
        if self.table.lease(&key).is_some() {
            self.row_written(cx, &key, Some(Verb::Create), None);
        } else {
            self.strangers.push((key, Arc::new(item)));
        }
    }

    /// The number of a record, even of a trimmed record.
    fn given_number(
        &self, shard: ShardNo, record: u64,
    ) -> Option<leasehold_engine::position::SequenceNumber> {
        if let Some(position) = self.source.position(shard, record) {
            return Some(position.sequence);
        }
        let info = self.source.shard(shard).map(|shard| shard.info());
        let parts = info.and_then(|info| info.starting_sequence.parts());
        parts.map(|parts| sequence(SequenceNumber::new(SequenceParts { position: record, ..parts })))
    }
}

impl LeaseTable {
    /// Creates the table before the beginning of the world.
    fn create_before(&mut self, create_ms: i64) {
        let created = self.create(wall_ms(0) - create_ms - 1);
        assert!(created.is_ok() && self.is_usable(0), "the table is there: {created:?}");
    }
}

/// The record at this many thousandths of a shard: never before the first record.
fn record(records: u64, through: u32) -> u64 {
    (records * u64::from(through) / 1_000).max(1)
}
