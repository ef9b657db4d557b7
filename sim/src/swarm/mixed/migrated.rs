//! Drawing worlds with a table migrated from another format. A row of each finished shard says so, and no program of
//! the new table has seen a finished shard.

use crate::draws::Draws;
use crate::start::{GivenRow, GivenShard, ShardState, Start};
use crate::swarm::EPOCH_MS;
use leasehold_engine::format::{Format, LeaseFormat};
use leasehold_engine::ids::LeaseKey;
use leasehold_engine::internals::copied;
use leasehold_engine::position::{Checkpoint, Position};
use leasehold_engine::row::{Change, LeaseRow};
use leasehold_engine::shard::{HashKey, HashRange};
use leasehold_engine::table::Action;
use leasehold_engine::time::Wall;

/// The greatest number of first shards in a migrated stream.
const MOST: u64 = 6;

/// Parts of the hash space, as equal as possible.
fn parts(of: HashRange, many: u64) -> impl Iterator<Item = HashRange> {
    let width = (of.end.0 - of.start.0) / u128::from(many);
    (0..many).map(move |n| HashRange {
        start: HashKey(of.start.0 + width * u128::from(n) + u128::from(n > 0)),
        end: match n + 1 == many {
            true => of.end,
            false => HashKey(of.start.0 + width * u128::from(n + 1)),
        },
    })
}

/// The row of a shard as created by a migration.
fn row(format: Format, shard: usize, checkpoint: Checkpoint) -> GivenRow {
    let key = LeaseKey::from(format!("shardId-{shard:012}"));
    let create = Change::Create(Box::new(copied(&LeaseRow::new(key.clone(), checkpoint), Wall(EPOCH_MS))));
    let item = match format.encode(&create).action {
        Action::Put(item) => item,
        // A creation puts an item.
        _ => format.key(&key),
    };
    let is_at = matches!(checkpoint, Checkpoint::At(_));
    GivenRow { item, through: is_at.then_some(500) }
}

/// Some shards were split, and are finished. Some of the rest were begun.
pub(super) fn migrated(draws: Draws, format: Format) -> Start {
    let (mut shards, mut rows) = (Vec::new(), Vec::new());
    let mut open = Vec::new();
    for (n, range) in parts(HashRange::ALL, draws.between("migrated", 0, 1, MOST)).enumerate() {
        let is_split = n == 0 || draws.coin("migrated-split", n as u64);
        shards.push(GivenShard {
            name: format!("shard {n}"),
            parents: Vec::new(),
            range,
            state: if is_split { ShardState::Closed } else { ShardState::Open },
        });
        match is_split {
            true => {
                rows.push(row(format, n, Checkpoint::ShardEnd));
                open.push((n as u32, range));
            }
            false => rows.push(row(format, n, begun(draws, n))),
        }
    }
    for (parent, range) in open {
        for range in parts(range, 2) {
            let n = shards.len();
            shards.push(GivenShard {
                name: format!("shard {n}"),
                parents: vec![parent],
                range,
                state: ShardState::Open,
            });
            rows.push(row(format, n, begun(draws, n)));
        }
    }
    Start { shards, rows }
}

/// The checkpoint of an open shard.
fn begun(draws: Draws, shard: usize) -> Checkpoint {
    match draws.coin("migrated-begun", shard as u64) {
        true => Checkpoint::At(Position::of(1.into())),
        false => Checkpoint::TrimHorizon,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_migrated_table_can_be_begun_with_and_has_finished_rows() {
        for seed in 0..200 {
            let start = migrated(Draws::new(seed), Format::Kinsumer);
            assert_eq!(start.check(Format::Kinsumer), Ok(()), "seed {seed}");
            assert_eq!(start.rows.len(), start.shards.len());
            let finished = start.rows.iter().filter(|row| row.item.contains_key("Finished"));
            assert!(finished.count() > 0, "seed {seed}");
        }
    }
}
