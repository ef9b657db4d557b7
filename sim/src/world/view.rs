//! What workers say they hold: told to the oracles as it changes, so that an input that changes nothing costs little.

use super::World;
use crate::names;
use crate::oracles::fact::Mark;
use crate::oracles::{Fact, LifeNo, ShardNo};
use leasehold_engine::Held;
use leasehold_engine::ids::{LeaseIx, LeaseKey};
use leasehold_engine::position::Checkpoint;
use leasehold_engine::time::Mono;

/// What one life said last.
#[derive(Clone, Debug, Default)]
pub(super) struct Said {
    life: LifeNo,
    /// By the numbers that the engine gives its leases.
    claims: Vec<Option<Claim>>,
    /// Memory for what may have changed.
    touched: Vec<LeaseIx>,
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
        self.lease == *held.lease
            && self.counter == held.counter
            && self.valid_until == held.valid_until
            && self.open == held.open
            && self.checkpoint == held.checkpoint
    }
}

impl Said {
    /// The life, and the shards it said it holds.
    pub(super) fn held(&self) -> (LifeNo, impl Iterator<Item = ShardNo>) {
        (
            self.life,
            self.claims.iter().flatten().filter_map(|claim| claim.shard),
        )
    }
}

impl World {
    /// What the worker says it holds, for the oracles to compare.
    pub(super) fn compare_view(&mut self, w: usize) {
        let worker = &mut self.workers[w];
        let (Some(engine), life) = (&mut worker.engine, worker.life) else {
            return;
        };
        if self.said.len() <= w {
            self.said.resize_with(w + 1, Said::default);
        }
        let said = &mut self.said[w];
        if said.life != life {
            said.claims.clear();
            said.life = life;
        }
        let mut touched = std::mem::take(&mut said.touched);
        engine.touched(&mut touched);
        touched.sort_unstable();
        touched.dedup();
        touched.retain(|&lease| {
            let at = lease.index();
            if said.claims.len() <= at {
                said.claims.resize_with(at + 1, || None);
            }
            let held = engine.held_in(lease);
            let before = &mut said.claims[at];
            if let (Some(claim), Some(held)) = (&before, &held)
                && claim.repeats(held)
            {
                return false;
            }
            let other = |claim: &Claim| held.as_ref().is_none_or(|held| claim.lease != *held.lease);
            if let Some(shard) = before.take_if(|claim| other(claim)).and_then(|claim| claim.shard) {
                self.cx.observe(&Fact::HoldsNoMore { life, shard });
            }
            *before = held.as_ref().map(Claim::new);
            before.is_some()
        });
        for claim in touched
            .drain(..)
            .filter_map(|lease| said.claims[lease.index()].as_ref())
        {
            let Some(shard) = claim.shard else { continue };
            let fact = Fact::Holds {
                life,
                shard,
                counter: claim.counter,
                checkpoint: Mark::of(claim.checkpoint, names::record_of),
                open: claim.open,
                until: worker.clock.when(claim.valid_until),
            };
            self.cx.observe(&fact);
        }
        said.touched = touched;
        // The engine says itself what it touched; now and then, all it holds is compared.
        #[cfg(debug_assertions)]
        if self.inputs.is_multiple_of(61) {
            let claims = || said.claims.iter().flatten();
            assert!(
                engine.held().count() == claims().count()
                    && engine
                        .held()
                        .all(|held| claims().any(|claim| claim.repeats(&held))),
                "a lease is held otherwise than before, and was not touched"
            );
        }
        self.cx.observe(&Fact::Said { life });
    }
}
