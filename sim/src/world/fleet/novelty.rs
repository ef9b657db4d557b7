//! Kinds of states: a lease and its surroundings at a change of its row, without names and numbers.
//!
//! The new kinds in a further thousand worlds tell whether more worlds are worth their time.

use super::Fleet;
use super::worker::Worker;
use crate::oracles::fact::{Mark, Owner};
use crate::world::context::Context;
use crate::world::request::RowChange;

impl Fleet {
    /// Records the kind of a row's state after a change.
    pub(in crate::world) fn note_state(&self, cx: &mut Context, change: &RowChange) {
        let mut kind = 0u32;
        let mut add = |value: u32, of: u32| kind = kind * of + value.min(of - 1);
        add(change.verb.map_or(9, |verb| verb as u32), 10);
        for row in change.rows {
            let Some(row) = row else {
                add(0, 25);
                continue;
            };
            let owner = match row.owner {
                None => 0,
                Some(Owner::Stranger) => 1,
                Some(Owner::Life(life)) => self.condition(cx, life),
            };
            let checkpoint = match row.checkpoint {
                Mark::AtTimestamp | Mark::TrimHorizon | Mark::Latest => 0,
                Mark::At(_) => 1,
                Mark::Nowhere => 2,
                Mark::End => 3,
            };
            add(1 + owner * 4 + checkpoint, 25);
        }
        add(u32::from(change.closed), 2);
        add(change.parents as u32, 3);
        add(u32::from(change.unfinished), 2);
        let open = |worker: &Worker| worker.has_open(change.shard);
        add(self.workers.iter().filter(|worker| open(worker)).count() as u32, 3);
        add(u32::from(cx.is_healed()), 2);
        cx.state(kind);
    }

    /// 2: gone, 3: stands still, 4: stops, 5: well.
    fn condition(&self, cx: &Context, life: u32) -> u32 {
        let worker = &self.workers[cx.names().worker(life)];
        match () {
            () if !worker.lives() || worker.life != life => 2,
            () if worker.paused.is_some() => 3,
            () if worker.stopping => 4,
            () => 5,
        }
    }
}
