//! `fair-shares`: a worker steals no more leases at a time than configured.
//!
//! A steal is a take of a lease with a renewal too recent for the lease to be expired. Between two scans a worker
//! begins no more than `max_steals` steals. Another attempt after the owner's renewal is no new steal. Where workers
//! request leases, only two kinds of leases are stolen: leases promised for `hand_over_timeout`, and leases of another
//! program's workers, since such workers receive no requests. Where names are unique, the take of an ended process's
//! lease is no steal. A lease handed over, and not accepted for a moment, is free. These rules end once a row has named
//! a stranger, or a leader of another program has assigned a lease. The rules do not hold where leases are claimed, or
//! go by turns.

use super::fact::{Ask, Owner, Verb};
use super::{
    EVENTS, Fact, History, LifeNo, Property, REPORTS, REQUESTS, ROWS, Sees, ShardNo, Terms, Time, Verdict,
};
use leasehold_engine::policy::{Assign, Steal};
use std::collections::{BTreeMap, BTreeSet};

#[derive(Clone, Debug, Default)]
struct Robber {
    /// Steals begun since the last scan.
    now: BTreeSet<ShardNo>,
    /// The last request of each steal under way.
    asked: BTreeMap<ShardNo, Time>,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Steals {
    /// The greatest number of steals at a time. Absent: leases go by turns, or clocks prove nothing.
    most: Option<usize>,
    /// The same number beside workers of another program, which receive no requests.
    most_beside_others: usize,
    /// The wait for a promised lease where workers request leases, in µs.
    promised_for: Option<u64>,
    /// Since when rows promise leases, with the next owners.
    promised: BTreeMap<ShardNo, (Owner, Time)>,
    /// A row renewed within this time belongs to its owner, in µs.
    alive: u64,
    /// A lease requested again within this time was not given up meanwhile, in µs.
    pursuit: u64,
    /// The highest counters of the rows, and whether an edit by hand has set the counter back since. A guard may then
    /// come from an earlier row.
    highest: BTreeMap<ShardNo, (u64, bool)>,
    lives: BTreeMap<LifeNo, Robber>,
}

impl Steals {
    pub(super) const SEES: Sees =
        Sees::ours(REPORTS | REQUESTS | ROWS | EVENTS).others(REPORTS | ROWS | EVENTS);

    pub(super) fn new(terms: &Terms) -> Self {
        let policies = &terms.config.policies();
        let counted = policies.assign == Assign::Count && !terms.clocks_beyond;
        let most = match policies.steal {
            Steal::Take => Some(terms.most(|config| config.max_steals()) as usize),
            Steal::Ask => Some(0),
            _ => None,
        };
        let promised_for = terms.least(|config| config.hand_over_timeout());
        Self {
            most: most.filter(|_| counted),
            most_beside_others: terms.most(|config| config.max_steals()) as usize,
            promised_for: (policies.steal == Steal::Ask).then(|| terms.at_least(promised_for)),
            alive: terms.least(|config| config.lease_duration().0) / 2,
            pursuit: 2 * terms.longest(|config| config.table_timeout() + config.retry_max()),
            ..Self::default()
        }
    }

    /// A worker of another program is present: its leases are stolen, as the worker does not hand over.
    pub(super) fn note_other(&mut self) {
        self.most = self.most.map(|most| most.max(self.most_beside_others));
    }

    /// After a pause, a worker repeats its earlier requests for leases.
    fn note_pause(&mut self, life: LifeNo, stood: Time) {
        if let Some(robber) = self.lives.get_mut(&life) {
            for at in robber.asked.values_mut() {
                *at += stood;
            }
        }
    }

    pub(super) fn observe(&mut self, now: Time, fact: &Fact, history: &History, verdict: &mut Verdict) {
        let Some(most) = self.most else { return };
        self.note_promise(now, fact);
        self.note_counter(fact);
        match *fact {
            Fact::Asked { life, ask: Ask::ScanPage, .. } => {
                if let Some(robber) = self.lives.get_mut(&life) {
                    robber.now.clear();
                }
            }
            Fact::Asked { life, ask: Ask::Write(Verb::Take), about: Some(shard), guard, .. } => {
                let truth = history.shard(shard);
                let Some(row) = truth.row else { return };
                let robber = self.lives.entry(life).or_default();
                // The steal began with its first request, even if the owner had just renewed the row.
                let goes_on = robber.asked.insert(shard, now);
                let owner = row.owner.filter(|owner| !history.former.has_ended(*owner));
                let of_others = matches!(owner, Some(Owner::Life(owner)) if owner != life);
                let patience = match history.given.has(shard) {
                    true => self.alive.min(history.given.least()),
                    false => self.alive,
                };
                let alive = now.saturating_sub(truth.counted) < patience;
                if !of_others || !alive || self.is_set_back(shard) || guard != Some(row.counter) {
                    return;
                }
                if row.next.is_some() && !self.is_too_early(now, shard) {
                    return;
                }
                let robber = self.lives.entry(life).or_default();
                if goes_on.is_some_and(|last| now < last + self.pursuit) {
                    return;
                }
                robber.now.insert(shard);
                let steals = robber.now.len();
                if steals > most {
                    verdict.report(Property::FairShares, now, || {
                        format!("life {life} steals {steals} leases at a time, {most} are allowed")
                    });
                }
            }
            Fact::Holds { life, shard, .. } => {
                if let Some(robber) = self.lives.get_mut(&life) {
                    robber.asked.remove(&shard);
                }
            }
            Fact::Resumed { life, stood } => self.note_pause(life, stood),
            Fact::Died { life } | Fact::Stopped { life, .. } => drop(self.lives.remove(&life)),
            _ => {}
        }
    }
}

impl Steals {
    fn note_counter(&mut self, fact: &Fact) {
        match *fact {
            Fact::RowChanged { shard, after: None, .. } => drop(self.highest.remove(&shard)),
            Fact::RowChanged { shard, after: Some(row), .. } => {
                let (highest, set_back) = self.highest.entry(shard).or_default();
                *set_back = row.counter < *highest || (*set_back && row.counter == *highest);
                *highest = row.counter.max(*highest);
            }
            _ => {}
        }
    }

    /// Whether an edit by hand set the row's counter back to a counter used before.
    fn is_set_back(&self, shard: ShardNo) -> bool {
        self.highest.get(&shard).is_some_and(|(_, set_back)| *set_back)
    }

    fn note_promise(&mut self, now: Time, fact: &Fact) {
        let Fact::RowChanged { shard, after: row, verb, .. } = *fact else {
            return;
        };
        let by_leader = verb == Some(Verb::BeginHandOver);
        let owners = [row.and_then(|row| row.owner), row.and_then(|row| row.next)];
        if self.promised_for.is_some() && (by_leader || owners.contains(&Some(Owner::Stranger))) {
            // Beside another program, leases are stolen.
            self.most = None;
        }
        let next = row.and_then(|row| row.next);
        match next {
            Some(next) if self.promised.get(&shard).is_some_and(|(known, _)| *known == next) => {}
            Some(next) => drop(self.promised.insert(shard, (next, now))),
            None => drop(self.promised.remove(&shard)),
        }
    }

    /// Whether a worker steals a lease during its hand-over before its owner had enough time.
    fn is_too_early(&self, now: Time, shard: ShardNo) -> bool {
        let promised = self.promised.get(&shard).zip(self.promised_for);
        promised.is_some_and(|((_, since), patience)| now < since + patience)
    }
}

#[cfg(test)]
mod tests {
    use super::super::fact::Mark;
    use super::super::testing::{asked, asked_at_large, changed, count, row};
    use super::*;

    const TAKE: Ask = Ask::Write(Verb::Take);

    fn renewed(shard: u32, at: u64, counter: u64) -> (u64, Fact) {
        let row = |counter| Some(row(Some(1), counter, Mark::TrimHorizon));
        (at, changed(shard, Some(1), Verb::Renew, row(counter - 1), row(counter)))
    }

    fn steal(shard: u32, at: u64, counter: u64) -> (u64, Fact) {
        (at, asked(0, TAKE, shard, at, counter, at))
    }

    fn scan(at: u64) -> (u64, Fact) {
        let fact = asked_at_large(0, Ask::ScanPage, at);
        (at, fact)
    }

    fn judged(facts: Vec<(u64, Fact)>) -> usize {
        let rows = (0..9).map(|shard| renewed(shard, 0, 5));
        count(Property::FairShares, rows.chain(facts))
    }

    #[test]
    fn so_many_may_be_stolen_and_no_more() {
        let most = super::super::testing::config().max_steals();
        let steals = |count: u32| (0..count).map(|shard| steal(shard, 10, 5)).collect();
        assert_eq!(judged(steals(most)), 0);
        assert_eq!(judged(steals(most + 1)), 1);
    }

    #[test]
    fn another_scan_allows_for_more_and_following_is_no_new_steal() {
        let most = super::super::testing::config().max_steals();
        let first = (0..most).map(|shard| steal(shard, 10, 5));
        let chase = [renewed(0, 20, 6), scan(21), steal(0, 22, 6)];
        let more = (most..2 * most).map(|shard| steal(shard, 30, 5));
        assert_eq!(judged(first.chain(chase).chain(more).collect()), 0);
    }

    #[test]
    fn a_steal_begun_before_a_scan_is_not_new_after_it() {
        let most = super::super::testing::config().max_steals();
        let late = steal(most, 10, 4);
        let more = (0..most).map(|shard| steal(shard, 30, 5));
        let facts = [late, scan(20)].into_iter().chain(more).chain([steal(most, 40, 5)]);
        assert_eq!(judged(facts.collect()), 0);
    }

    #[test]
    fn a_steal_begun_before_a_pause_is_not_new_after_it() {
        let most = super::super::testing::config().max_steals();
        let stood = 600_000_000;
        let resumed = |stood| (stood, Fact::Resumed { life: 0, stood });
        let after = |goes_on: Option<(u64, Fact)>| {
            let renewals = (0..=most).map(|shard| renewed(shard, stood, 6));
            let more = (0..=most).map(|shard| steal(shard, stood + 20, 6));
            let facts = [steal(most, 10, 4)].into_iter().chain(goes_on).chain(renewals);
            judged(facts.chain([scan(stood + 10)]).chain(more).collect())
        };
        assert_eq!(after(Some(resumed(stood))), 0);
        assert_eq!(after(None), 1);
    }

    #[test]
    fn a_take_decided_before_a_counter_was_set_back_is_no_steal() {
        let most = super::super::testing::config().max_steals();
        let owned = |counter| Some(row(Some(1), counter, Mark::TrimHorizon));
        let edit = |at: u64, from, to| (at, changed(most, None, Verb::Renew, owned(from), owned(to)));
        let steals =
            |counter| (0..=most).map(move |shard| steal(shard, 10, if shard == most { counter } else { 5 }));
        assert_eq!(judged([edit(5, 5, 0)].into_iter().chain(steals(0)).collect()), 0);
        // A worker with this counter from before the edit takes the row for unchanged.
        let again = [edit(5, 5, 0), edit(6, 0, 5)];
        assert_eq!(judged(again.into_iter().chain(steals(5)).collect()), 0);
        let goes_on = [edit(5, 5, 0), edit(6, 0, 6)];
        assert_eq!(judged(goes_on.into_iter().chain(steals(6)).collect()), 1);
    }

    #[test]
    fn an_unrenewed_lease_is_not_stolen() {
        let hour = 3_600_000_000;
        assert_eq!(judged((0..9).map(|shard| steal(shard, hour, 5)).collect()), 0);
    }
}
