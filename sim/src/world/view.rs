//! What workers say they hold: told to the oracles as it changes, so that an input that changes nothing costs little.

use super::{World, names};
use crate::oracles::fact::Mark;
use crate::oracles::{Fact, LifeNo, ShardNo};
use leasehold_engine::Held;
use leasehold_engine::ids::LeaseKey;
use leasehold_engine::position::Checkpoint;
use leasehold_engine::time::Mono;

/// What one life said last.
#[derive(Clone, Debug, Default)]
pub(super) struct Said {
    life: LifeNo,
    claims: Vec<Claim>,
}

#[derive(Clone, Debug)]
struct Claim {
    lease: LeaseKey,
    /// None for a lease that is not of a shard of ours.
    shard: Option<ShardNo>,
    counter: u64,
    checkpoint: Checkpoint,
    valid_until: Mono,
    open: bool,
}

impl Claim {
    fn new(held: &Held<'_>) -> Self {
        Self {
            lease: held.lease.clone(),
            shard: names::shard_of(held.lease),
            counter: held.counter,
            checkpoint: held.checkpoint,
            valid_until: held.valid_until,
            open: held.open,
        }
    }

    /// Whether it says the same of its lease.
    fn repeats(&self, held: &Held<'_>) -> bool {
        self.counter == held.counter
            && self.valid_until == held.valid_until
            && self.open == held.open
            && self.checkpoint == held.checkpoint
    }

    fn is_of(&self, lease: &LeaseKey) -> bool {
        // Almost always the very same text.
        std::ptr::eq(self.lease.as_str(), lease.as_str()) || self.lease == *lease
    }
}

impl Said {
    /// The life, and the shards it said it holds.
    pub(super) fn held(&self) -> (LifeNo, impl Iterator<Item = ShardNo>) {
        (self.life, self.claims.iter().filter_map(|claim| claim.shard))
    }
}

impl World {
    /// What the worker says it holds, for the oracles to compare.
    pub(super) fn compare_view(&mut self, w: usize) {
        let worker = &self.workers[w];
        let (Some(engine), life) = (&worker.engine, worker.life) else {
            return;
        };
        let now = self.now;
        if self.said.len() <= w {
            self.said.resize_with(w + 1, Said::default);
        }
        let said = &mut self.said[w];
        if said.life != life {
            said.claims.clear();
            said.life = life;
        }
        let mut at = 0;
        let mut changed = Vec::new();
        for held in engine.held() {
            // Almost always it stands where it stood last time.
            match (at..said.claims.len()).find(|&place| said.claims[place].is_of(held.lease)) {
                Some(place) if place == at => {}
                Some(place) => said.claims.swap(at, place),
                None => {
                    said.claims.insert(at, Claim::new(&held));
                    changed.push(at);
                }
            }
            if !said.claims[at].repeats(&held) {
                said.claims[at] = Claim::new(&held);
                changed.push(at);
            }
            at += 1;
        }
        for shard in said.claims.drain(at..).filter_map(|claim| claim.shard) {
            self.oracles.observe(now, &Fact::HoldsNoMore { life, shard });
        }
        for claim in changed.into_iter().map(|at| &said.claims[at]) {
            let Some(shard) = claim.shard else { continue };
            let fact = Fact::Holds {
                life,
                shard,
                counter: claim.counter,
                checkpoint: Mark::of(claim.checkpoint, names::record_of),
                open: claim.open,
                until: worker.clock.when(claim.valid_until),
            };
            self.oracles.observe(now, &fact);
        }
        self.oracles.observe(now, &Fact::Said { life });
    }
}
