//! Processes that have ended, where names are unique: a worker that comes back takes at once what its former process had.

use super::fact::Owner;
use super::{Fact, LifeNo, Terms};
use std::collections::BTreeSet;

#[derive(Clone, Debug)]
pub(super) struct Former {
    unique_names: bool,
    ended: BTreeSet<LifeNo>,
}

impl Former {
    pub(super) fn new(terms: &Terms) -> Self {
        Self {
            unique_names: terms.config.unique_names(),
            ended: BTreeSet::new(),
        }
    }

    pub(super) fn observe(&mut self, fact: &Fact) {
        if let Fact::Died { life } = *fact {
            self.ended.insert(life);
        }
    }

    /// Whether a worker may know that this owner has ended.
    pub(super) fn has_ended(&self, owner: Owner) -> bool {
        matches!(owner, Owner::Life(life) if self.unique_names && self.ended.contains(&life))
    }
}
