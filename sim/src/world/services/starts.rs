//! The beginnings of shards without a checkpoint: the truth that `start-kept` compares with the service's places.

use super::Services;
use super::table::wall_ms;
use crate::names::shard_of;
use crate::oracles::fact::Verb;
use crate::oracles::{Fact, LifeNo, ShardNo};
use crate::swarm::EPOCH_MS;
use crate::world::context::Context;
use leasehold_engine::config::InitialPosition;
use leasehold_engine::ids::LeaseKey;
use leasehold_engine::output::IteratorFrom;
use leasehold_engine::position::Checkpoint;
use leasehold_engine::time::Wall;
use std::collections::BTreeMap;

/// The margin between a writer's clock and its earlier moment in a row at LATEST, in ms.
const MARGIN_MS: i64 = 1_000;

/// The time from which arriving records of a shard must be read, in ms since the Unix epoch. It begins with the row's
/// creation, or with the first take if the row's creator knows no moments. A clock ahead at the write of the moment is
/// excused.
#[derive(Clone, Debug, Default)]
pub(super) struct Starts {
    since: BTreeMap<ShardNo, i64>,
    /// The creation or first take of the row, regardless of the moment in the row.
    born: BTreeMap<ShardNo, i64>,
    /// The first moment in the row, or the time of its write, if its writer's clock was ahead.
    told: BTreeMap<ShardNo, i64>,
    /// The last life with a place to begin.
    by: BTreeMap<ShardNo, LifeNo>,
}

/// The largest possible error of a wall clock in this world, in ms.
fn most_off(cx: &Context) -> i64 {
    let faults = &cx.plan().faults;
    if faults.clock.steps.iter().any(|step| step.freeze) {
        return i64::MAX;
    }
    let of_worker = |worker: u32| -> u64 {
        let steps = faults.clock.steps.iter().filter(|step| step.worker == worker);
        let suspensions = faults.suspension.suspensions.iter();
        let suspensions = suspensions.filter(|suspension| suspension.worker == worker);
        let stepped = steps.map(|step| step.by_ms.unsigned_abs());
        stepped.chain(suspensions.map(|suspension| suspension.us / 1_000)).sum()
    };
    let most = (0..cx.plan().workers).map(of_worker).max();
    i64::try_from(most.unwrap_or(0)).unwrap_or(i64::MAX)
}

impl Services {
    /// One of our workers has written a row.
    pub(in crate::world) fn note_start(&mut self, cx: &Context, key: &LeaseKey, verb: Verb) {
        let Some(shard) = shard_of(key) else { return };
        let Some(row) = self.row(shard as usize).filter(|row| row.checkpoint == Checkpoint::Latest) else {
            return;
        };
        let now = wall_ms(cx.now());
        let began = row.began;
        if let Some(began) = began {
            self.starts.told.entry(shard).or_insert(began.0.min(now));
        }
        let since = match began {
            Some(began) => Some(now.max(began.0.saturating_add(MARGIN_MS))),
            None if cx.plan().faults.start.bare_rows => (verb == Verb::Take).then_some(now),
            None => matches!(verb, Verb::Create | Verb::Take).then_some(now),
        };
        if let Some(since) = since {
            self.starts.since.entry(shard).or_insert(since);
            self.starts.born.entry(shard).or_insert(now);
        }
    }

    /// The service has given a worker a place to read from: this record. The oracles receive a fact if the worker
    /// begins there.
    pub(in crate::world) fn note_place(
        &mut self, cx: &mut Context, life: LifeNo, shard: ShardNo, asked: IteratorFrom, from: u64,
    ) {
        if !matches!(asked, IteratorFrom::Latest | IteratorFrom::AtTimestamp(_)) || cx.is_lost_for_good() {
            return;
        }
        let Some(row) = self.row(shard as usize) else {
            return;
        };
        let (due, floor, born) = match (row.checkpoint, cx.plan().config.initial_position()) {
            (Checkpoint::Latest, _) => {
                let since = self.starts.since.get(&shard).copied();
                let told = self.starts.told.get(&shard).copied().unwrap_or(EPOCH_MS);
                let floor = told.saturating_sub(MARGIN_MS).saturating_sub(most_off(cx));
                let born = self.starts.born.get(&shard).copied();
                let now = wall_ms(cx.now());
                (since.unwrap_or(now), floor, born.unwrap_or(now))
            }
            (Checkpoint::AtTimestamp, InitialPosition::AtTimestamp(time)) => {
                let time = row.began.unwrap_or(time).0;
                (time, time, time)
            }
            _ => return,
        };
        if self.starts.by.insert(shard, life).is_some_and(|before| before != life) {
            cx.mark("begun-again");
        }
        let [due, floor, born] = [due, floor, born].map(|at| self.first_at(cx, shard, Wall(at)));
        let from = cx.names().parts().first(shard, from);
        cx.fact(Fact::Placed { life, shard, from, due, floor, born });
    }
}
