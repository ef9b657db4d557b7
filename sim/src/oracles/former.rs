//! Ended processes, where names are unique: a returning worker takes the leases of its former process at once.

use super::fact::Owner;
use super::{Fact, LifeNo, Terms};
use leasehold_engine::config::Config;
use std::collections::{BTreeMap, BTreeSet};

#[derive(Clone, Debug, Default)]
pub(super) struct Former {
    unique_names: bool,
    /// By worker: the process running now, or the last process.
    last: BTreeMap<u32, LifeNo>,
    ended: BTreeSet<LifeNo>,
}

impl Former {
    pub(super) fn new(terms: &Terms) -> Self {
        Self { unique_names: terms.most(Config::unique_names), last: BTreeMap::new(), ended: BTreeSet::new() }
    }

    pub(super) fn observe(&mut self, fact: &Fact) {
        if let Fact::Booted { life, worker } = *fact {
            self.ended.extend(self.last.insert(worker, life));
        }
    }

    /// Whether a worker may know the end of this owner.
    pub(super) fn has_ended(&self, owner: Owner) -> bool {
        matches!(owner, Owner::Life(life) if self.unique_names && self.ended.contains(&life))
    }
}
