//! Shards that are held and not all processed: told to the oracles now and then, since absence makes no fact.

use super::World;
use crate::oracles::fact::Owner;
use crate::oracles::{Fact, ShardNo};

impl World {
    /// Tells which shards are behind.
    pub(super) fn look_for_the_slow(&mut self) {
        if self.cx.is_lost_for_good() {
            return;
        }
        let mut slow = Vec::new();
        for (worker, said) in self.workers.iter().zip(&self.said) {
            let (life, held) = said.held();
            // One that knows it must stop, or stands still, has nothing to report.
            if !worker.lives() || worker.paused.is_some() || worker.fatal.is_some() || worker.life != life {
                continue;
            }
            let behind = held.filter(|&shard| self.is_behind(shard));
            slow.extend(behind.map(|shard| (life, shard)));
        }
        for (life, shard) in slow {
            if self.renewer_of(shard) == Some(Owner::Life(life)) {
                self.cx.observe(&Fact::Behind { life, shard });
            }
        }
    }

    /// Whether something is left to be done with a shard.
    fn is_behind(&self, shard: ShardNo) -> bool {
        let closed = self
            .services
            .shards()
            .get(shard as usize)
            .is_some_and(|family| family.is_closed());
        let ended = || {
            let row = self.services.row(shard as usize);
            row.is_some_and(|row| row.checkpoint.is_end())
        };
        !self.cx.oracles().is_complete(shard, self.services.records(shard)) || (closed && !ended())
    }

    fn renewer_of(&self, shard: ShardNo) -> Option<Owner> {
        let owner = self.services.row(shard as usize)?.actual_owner()?;
        Some(self.cx.names().owner(owner))
    }
}
