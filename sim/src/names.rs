//! Names as small numbers. A shard has the number in its name; lives of workers are numbered by their start.

use crate::oracles::fact::{Mark, Owner, Row};
use crate::oracles::{LifeNo, ShardNo};
use crate::parts::Parts;
pub(crate) use crate::parts::record_of;
use crate::streams::{self, Streams};
use leasehold_engine::ids::{LeaseKey, ShardId, WorkerId};
use leasehold_engine::position::{Checkpoint, SequenceNumber};
use leasehold_engine::row::LeaseRow;
use leasehold_local_aws::kinesis::{SequenceNumber as FakeSequence, ShardIndex};
use std::collections::BTreeMap;

/// Both ways between names and numbers.
#[derive(Clone, Debug, Default)]
pub(crate) struct Names {
    streams: Streams,
    /// By the number in the shard's id.
    ids: Vec<ShardId>,
    /// By the number of the shard, in worlds of several streams.
    shards: Vec<ShardId>,
    owners: BTreeMap<WorkerId, LifeNo>,
    /// The worker of every life.
    lives: Vec<u16>,
    parts: Parts,
}

impl Names {
    /// The names of a world of these streams.
    pub(crate) fn of(streams: Streams) -> Self {
        Self { streams, ..Self::default() }
    }

    /// The streams of the world.
    pub(crate) fn streams(&self) -> Streams {
        self.streams
    }

    /// The id of a shard in its stream.
    pub(crate) fn id(&mut self, index: ShardIndex) -> &ShardId {
        while self.ids.len() <= index.0 as usize {
            let name = ShardIndex(self.ids.len() as u32).to_string();
            self.ids.push(ShardId::from(name));
        }
        &self.ids[index.0 as usize]
    }

    /// The engine's name of a shard.
    pub(crate) fn shard(&mut self, shard: ShardNo) -> &ShardId {
        if !self.streams.are_several() {
            return self.id(ShardIndex(shard));
        }
        while self.shards.len() <= shard as usize {
            self.shards.push(self.streams.name_of(self.shards.len() as ShardNo));
        }
        &self.shards[shard as usize]
    }

    pub(crate) fn begin_life(&mut self, worker: u16, name: &WorkerId) -> LifeNo {
        let life = self.lives.len() as LifeNo;
        self.lives.push(worker);
        self.owners.insert(name.clone(), life);
        life
    }

    pub(crate) fn owner(&self, owner: &WorkerId) -> Owner {
        self.owners.get(owner).map_or(Owner::Stranger, |&life| Owner::Life(life))
    }

    /// The worker of a life.
    pub(crate) fn worker(&self, life: LifeNo) -> usize {
        usize::from(self.lives[life as usize])
    }

    /// The name of a life's worker.
    pub(crate) fn name(&self, life: LifeNo) -> Option<&WorkerId> {
        let mut owners = self.owners.iter();
        owners.find_map(|(name, &of)| (of == life).then_some(name))
    }

    /// The parts of the shards' records.
    pub(crate) fn parts(&self) -> &Parts {
        &self.parts
    }

    pub(crate) fn parts_mut(&mut self) -> &mut Parts {
        &mut self.parts
    }

    /// A row in the form needed by oracles.
    pub(crate) fn row(&self, row: &LeaseRow) -> Row {
        Row {
            owner: row.actual_owner().map(|owner| self.owner(owner)),
            next: row.handing_over.as_ref().and(row.owner.as_ref()).map(|next| self.owner(next)),
            counter: row.counter,
            checkpoint: self.mark(shard_of(&row.key), row.checkpoint),
        }
    }
}

impl Names {
    /// A checkpoint in the form needed by oracles.
    pub(crate) fn mark(&self, shard: Option<ShardNo>, checkpoint: Checkpoint) -> Mark {
        Mark::of(checkpoint, |position| match shard {
            Some(shard) => self.parts.at(shard, position),
            None => record_of(position),
        })
    }
}

/// The number of a lease's shard, if the key is a key of this world.
pub(crate) fn shard_of(key: &LeaseKey) -> Option<ShardNo> {
    number(key.as_str())
}

/// The number of the shard with this name in the engine.
pub(crate) fn number(name: &str) -> Option<ShardNo> {
    streams::number(name)
}

/// The fake's number in the engine's terms.
pub(crate) fn sequence(number: FakeSequence) -> SequenceNumber {
    SequenceNumber::from_words(number.to_words())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shard_names_are_numbers() {
        assert_eq!(Names::default().shard(12).as_str(), "shardId-000000000012");
        let mut names = Names::of(Streams::new(2));
        assert_eq!(names.id(ShardIndex(1)).as_str(), "shardId-000000000001");
        let shard = names.shard(5).clone();
        assert_eq!(number(shard.as_str()), Some(5));
    }

    #[test]
    fn a_life_has_the_name_it_began_with() {
        let (mut names, name) = (Names::default(), WorkerId::from("w0-1"));
        let life = names.begin_life(0, &name);
        assert_eq!((names.name(life), names.name(life + 1)), (Some(&name), None));
    }
}
