//! Leases handed over by their owners and not yet accepted by the next owners: these leases are free.

use super::fact::{Owner, Row, Verb};
use super::{Fact, ShardNo, Terms};
use leasehold_engine::policy::Steal;
use leasehold_engine::time::Span;
use std::collections::{BTreeMap, BTreeSet};

/// A next owner looks at the row four times a second. The pause counts twice, plus the time of a request.
const LOOKS: Span = Span::from_millis(500);

#[derive(Clone, Debug, Default)]
pub(super) struct Given {
    /// Whether the row of a lease without a taker names the next owner: rows of KCL do, with or without requests
    /// between workers.
    says: bool,
    /// The next owner named by a row before the hand-over.
    asked: BTreeMap<ShardNo, Owner>,
    given: BTreeSet<ShardNo>,
    /// The rows of leases handed over and not taken at that moment, each by its owner and its counter. A page of a long
    /// scan may show such a row after the lease has been taken and handed over once more.
    rows: BTreeSet<(ShardNo, Owner, u64)>,
    /// The patience with a next owner, in µs of true time: from below and from above.
    least: u64,
    most: u64,
}

impl Given {
    pub(super) fn new(terms: &Terms) -> Self {
        let patience = |config: &leasehold_engine::config::Config| {
            (LOOKS + config.table_timeout().per(4)).min(config.lease_duration())
        };
        Self {
            says: terms.config.policies().steal != Steal::Claim,
            asked: BTreeMap::new(),
            given: BTreeSet::new(),
            rows: BTreeSet::new(),
            least: terms.shortest(patience),
            most: terms.longest(patience),
        }
    }

    pub(super) fn observe(&mut self, fact: &Fact) {
        let Fact::RowChanged { shard, verb, before, after, .. } = *fact else {
            return;
        };
        // Hash keys or the name of the stream are written beside the owner's facts.
        let said = |row: Row| (row.owner, row.next, row.counter);
        if before.map(said) == after.map(said) {
            return;
        }
        if after.is_none() {
            // A row made anew counts from the beginning.
            self.rows.retain(|(removed, ..)| *removed != shard);
        }
        let owner = after.filter(|row| row.next.is_none()).and_then(|row| row.owner);
        match verb {
            // The former owner goes on, and stores its progress.
            Some(Verb::Renew | Verb::Checkpoint) if after.is_some_and(|row| row.next.is_some()) => {}
            Some(Verb::HandOver | Verb::Release) if owner.is_some() => {
                if self.asked.remove(&shard) == owner {
                    self.given.insert(shard);
                    self.rows.extend(owner.zip(after).map(|(owner, row)| (shard, owner, row.counter)));
                }
            }
            // The next owner requests the lease, or an operator does so for the next owner.
            _ => {
                self.given.remove(&shard);
                match after.and_then(|row| row.next).filter(|_| self.says) {
                    Some(next) => drop(self.asked.insert(shard, next)),
                    None => drop(self.asked.remove(&shard)),
                }
            }
        }
    }

    /// Whether the lease was handed over, and not accepted since.
    pub(super) fn has(&self, shard: ShardNo) -> bool {
        self.given.contains(&shard)
    }

    /// Whether a worker with this row in view must count the lease as handed over and not accepted. A person or a
    /// leader may have named another next owner meanwhile. Such an edit keeps the counter, and the first next owner has
    /// still not accepted the lease.
    pub(super) fn is(&self, shard: ShardNo, row: Row) -> bool {
        row.owner.is_some_and(|owner| self.rows.contains(&(shard, owner, row.counter)))
    }

    /// The patience with the next owner, from below.
    pub(super) fn least(&self) -> u64 {
        self.least
    }

    /// The patience with the next owner, from above.
    pub(super) fn most(&self) -> u64 {
        self.most
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::oracles::fact::Mark;
    use crate::oracles::testing::{changed, row};

    #[test]
    fn a_given_lease_stays_given_though_another_next_owner_is_named() {
        let owned = |owner, counter| row(Some(owner), counter, Mark::TrimHorizon);
        let mut given = Given::new(&Terms::plain(crate::swarm::named(true)));
        let claimed = Row { next: Some(Owner::Life(1)), ..owned(0, 3) };
        let (handed, named) = (owned(1, 4), Row { next: Some(Owner::Life(2)), ..owned(1, 4) });
        given.observe(&changed(0, Some(1), Verb::Claim, Some(owned(0, 3)), Some(claimed)));
        assert!(!given.is(0, claimed));
        given.observe(&changed(0, Some(0), Verb::HandOver, Some(claimed), Some(handed)));
        assert!(given.is(0, handed));
        given.observe(&changed(0, None, Verb::BeginHandOver, Some(handed), Some(named)));
        assert!(given.is(0, named) && !given.has(0));
        let taken = owned(1, 5);
        given.observe(&changed(0, Some(1), Verb::Take, Some(named), Some(taken)));
        assert!(!given.is(0, taken), "the next owner has taken it");
        let (asked, again) = (Row { next: Some(Owner::Life(2)), ..taken }, owned(2, 7));
        given.observe(&changed(0, Some(2), Verb::Claim, Some(taken), Some(asked)));
        given.observe(&changed(0, Some(1), Verb::HandOver, Some(asked), Some(again)));
        assert!(given.is(0, handed) && given.is(0, again), "a page may be older than the second hand-over");
    }
}
