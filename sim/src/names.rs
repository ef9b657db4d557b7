//! Names in small numbers: shards by the number in their name, lives of workers by the order of their beginning.

use crate::oracles::fact::{Mark, Owner, Row};
use crate::oracles::{LifeNo, ShardNo};
use leasehold_engine::ids::{LeaseKey, ShardId, WorkerId};
use leasehold_engine::position::{Position, SequenceNumber};
use leasehold_engine::row::LeaseRow;
use leasehold_local_aws::kinesis::{SequenceNumber as FakeSequence, ShardIndex};
use std::collections::BTreeMap;

/// Both ways between names and numbers.
#[derive(Clone, Debug, Default)]
pub(crate) struct Names {
    shards: Vec<ShardId>,
    owners: BTreeMap<WorkerId, LifeNo>,
    /// The worker of every life.
    lives: Vec<u16>,
}

impl Names {
    pub(crate) fn shard(&mut self, shard: ShardNo) -> &ShardId {
        while self.shards.len() <= shard as usize {
            let name = ShardIndex(self.shards.len() as u32).to_string();
            self.shards.push(ShardId::from(name));
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
        self.owners
            .get(owner)
            .map_or(Owner::Stranger, |&life| Owner::Life(life))
    }

    /// The worker of a life.
    pub(crate) fn worker(&self, life: LifeNo) -> usize {
        usize::from(self.lives[life as usize])
    }

    /// What a life is called.
    pub(crate) fn name(&self, life: LifeNo) -> Option<&WorkerId> {
        let mut owners = self.owners.iter();
        owners.find_map(|(name, &of)| (of == life).then_some(name))
    }

    /// A row as oracles see it.
    pub(crate) fn row(&self, row: &LeaseRow) -> Row {
        Row {
            owner: row.actual_owner().map(|owner| self.owner(owner)),
            next: row
                .handing_over
                .as_ref()
                .and(row.owner.as_ref())
                .map(|next| self.owner(next)),
            counter: row.counter,
            checkpoint: Mark::of(row.checkpoint, record_of),
        }
    }
}

/// The number of the shard whose lease this is, if it is one of ours.
pub(crate) fn shard_of(key: &LeaseKey) -> Option<ShardNo> {
    number(key.as_str())
}

pub(crate) fn number(name: &str) -> Option<ShardNo> {
    let digits = name.strip_prefix("shardId-")?;
    if digits.len() != 12 {
        return None;
    }
    digits.bytes().try_fold(0u32, |sum, digit| match digit {
        b'0'..=b'9' => sum.checked_mul(10)?.checked_add(u32::from(digit - b'0')),
        _ => None,
    })
}

/// The place of a record in its shard, from 1.
pub(crate) fn record_of(position: Position) -> Option<u64> {
    FakeSequence::from_words(position.sequence.words())
        .parts()
        .map(|parts| parts.position)
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
        assert_eq!(number("shardId-000000000012"), Some(12));
        for other in ["shardId-12", "shardId-00000000001x", "worker-1", ""] {
            assert_eq!(number(other), None, "{other}");
        }
        assert_eq!(Names::default().shard(12).as_str(), "shardId-000000000012");
    }

    #[test]
    fn a_life_has_the_name_it_began_with() {
        let (mut names, name) = (Names::default(), WorkerId::from("w0-1"));
        let life = names.begin_life(0, &name);
        assert_eq!((names.name(life), names.name(life + 1)), (Some(&name), None));
    }
}
