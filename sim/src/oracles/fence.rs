//! `exclusive-ownership`: a fence is never valid after another worker has begun.
//!
//! A handler checks its fence right before a side effect, at any moment. The check may come first after a suspension of
//! the machine, before the worker has looked at a clock. A suspension shown by no clock cannot be known: no promise
//! holds until the wall clock shows the time of the monotonic clock's stop. From then on the promise holds again.

use super::fact::Owner;
use super::{EVENTS, Fact, History, LifeNo, Property, ROWS, Sees, ShardNo, Terms, Time, Verdict};
use std::collections::{BTreeMap, BTreeSet};

#[derive(Clone, Debug)]
pub(super) struct Fences {
    binding: bool,
    /// The last life to begin each shard, and when.
    begun: BTreeMap<ShardNo, (LifeNo, u64, Time)>,
    /// Shards with a row removed by a person, or written over by another program.
    spoiled: BTreeSet<ShardNo>,
}

impl Fences {
    pub(super) const SEES: Sees = Sees::all(ROWS | EVENTS);

    pub(super) fn new(terms: &Terms) -> Self {
        Self {
            binding: !terms.clocks_beyond && terms.least(|config| config.steal_cooldown()),
            begun: BTreeMap::new(),
            spoiled: BTreeSet::new(),
        }
    }

    /// Another program has no fences, and does not wait for other workers' fences.
    pub(super) fn observe(&mut self, now: Time, fact: &Fact, history: &History, verdict: &mut Verdict) {
        match *fact {
            // A call held up by a runtime begins late. The row may name another life then, and the named life goes on.
            Fact::OpenBegun { life, shard, .. }
                if history.of_others || names_another(history, shard, life) => {}
            Fact::OpenBegun { life, shard, token } => {
                self.begun.insert(shard, (life, token, now));
            }
            Fact::RowChanged { shard, verb, after, .. }
                if history.robs || verb.is_none() && after.is_none() =>
            {
                self.spoiled.insert(shard);
            }
            Fact::FenceAsked { life, shard, token, valid: true, adrift: false }
                if self.binding && !self.spoiled.contains(&shard) =>
            {
                if let Some(&(next, theirs, at)) = self.begun.get(&shard)
                    && next != life
                    && theirs > token
                {
                    verdict.report(Property::ExclusiveOwnership, now, || {
                        format!(
                            "life {life} has a valid fence for shard {shard} with token {token}, and life {next} began {} ms ago \
                             with token {theirs}",
                            (now - at) / 1_000
                        )
                    });
                }
            }
            _ => {}
        }
    }
}

/// Whether the row names a life of ours other than this life.
fn names_another(history: &History, shard: ShardNo, life: LifeNo) -> bool {
    let owner = history.shard(shard).row.and_then(|row| row.owner);
    matches!(owner, Some(Owner::Life(named)) if named != life)
}

#[cfg(test)]
mod tests {
    use super::super::fact::{Mark, Verb};
    use super::super::testing::{changed, config, judge_under, row};
    use super::*;

    fn begins(life: LifeNo, token: u64) -> Fact {
        Fact::OpenBegun { life, shard: 0, token }
    }

    fn asks(valid: bool, adrift: bool) -> Fact {
        Fact::FenceAsked { life: 0, shard: 0, token: 1, valid, adrift }
    }

    fn judged(terms: &Terms, facts: &[Fact]) -> bool {
        let facts = facts.iter().cloned().enumerate();
        let found = judge_under(terms, facts.map(|(at, fact)| (at as u64, fact)));
        found.contains(&Property::ExclusiveOwnership)
    }

    #[test]
    fn a_fence_is_valid_until_another_worker_begins() {
        let terms = Terms::plain(config());
        assert!(!judged(&terms, &[begins(0, 1), asks(true, false)]));
        assert!(!judged(&terms, &[begins(0, 1), begins(1, 5), asks(false, false)]));
        assert!(judged(&terms, &[begins(0, 1), begins(1, 5), asks(true, false)]));
        assert!(
            !judged(&terms, &[begins(1, 1), begins(0, 5), asks(true, false)]),
            "the last one to begin has it"
        );
    }

    #[test]
    fn who_begins_when_the_row_names_another_life_ends_no_belief() {
        let terms = Terms::plain(config());
        let names = |life| changed(0, None, Verb::Take, None, Some(row(Some(life), 5, Mark::TrimHorizon)));
        let late = |named| [begins(0, 1), names(named), begins(1, 5), asks(true, false)];
        assert!(!judged(&terms, &late(0)));
        assert!(judged(&terms, &late(1)));
    }

    /// A life opens the shard in the moment of a steal. The thief waits, and the owner before the life has ended.
    #[test]
    fn a_life_that_began_with_an_older_token_ends_no_belief() {
        let terms = Terms::plain(config());
        let names = changed(0, None, Verb::Take, None, Some(row(Some(2), 9, Mark::TrimHorizon)));
        let asks = Fact::FenceAsked { life: 0, shard: 0, token: 7, valid: true, adrift: false };
        assert!(!judged(&terms, &[begins(1, 5), names, begins(0, 7), asks.clone()]));
        assert!(judged(&terms, &[begins(0, 7), begins(1, 9), asks]));
    }

    #[test]
    fn a_time_that_no_clock_shows_is_not_promised() {
        let terms = Terms::plain(config());
        assert!(!judged(&terms, &[begins(0, 1), begins(1, 5), asks(true, true)]));
        let beyond = Terms { clocks_beyond: true, ..Terms::plain(config()) };
        assert!(!judged(&beyond, &[begins(0, 1), begins(1, 5), asks(true, false)]));
    }
}
