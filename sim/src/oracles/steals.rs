//! `fair-shares`: a worker steals no more at a time than it was told.
//!
//! A steal is a take of a lease that its owner renewed so lately that it cannot count as expired. Between two scans no more of
//! them are begun than `max_steals`; following an owner that renews its row meanwhile is no new one. Where leases are asked
//! for, none is stolen at all, but one that was promised for `hand_over_timeout`, and those of workers of another program, which
//! are not asked. Where names are unique, no lease of a process that has ended is stolen. One that was handed over, and not taken for a moment, is nobody's. Nothing is said of all that where a row named a
//! stranger, or a leader of another program assigned a lease; nor where leases are claimed, or go by turns.

use super::fact::{Ask, Owner, Row, Verb};
use super::former::Former;
use super::given::Given;
use super::{Fact, LifeNo, Property, ShardNo, Terms, Time, Verdict};
use leasehold_engine::policy::{Assign, Steal};
use std::collections::{BTreeMap, BTreeSet};

#[derive(Clone, Debug, Default)]
struct Robber {
    /// Begun since the last scan.
    now: BTreeSet<ShardNo>,
    /// When each of those under way was last asked for.
    asked: BTreeMap<ShardNo, Time>,
}

#[derive(Clone, Debug)]
pub(super) struct Steals {
    /// Absent: leases go by turns, or clocks say nothing.
    most: Option<usize>,
    /// The same beside workers of another program, which are not asked.
    most_beside_others: usize,
    /// Leases are asked for: how long a promised one is waited for, in µs.
    promised_for: Option<u64>,
    /// Since when rows say that they are to be handed over, and to whom.
    promised: BTreeMap<ShardNo, (Owner, Time)>,
    /// A row that was renewed within this time is its owner's, in µs.
    alive: u64,
    /// What is asked for again within this time was not given up meanwhile, in µs.
    pursuit: u64,
    given: Given,
    rows: BTreeMap<ShardNo, (Row, Time)>,
    /// The highest counters that the rows have had, and whether a hand has set the counter back since. Then a guard is perhaps that of an
    /// earlier row.
    highest: BTreeMap<ShardNo, (u64, bool)>,
    lives: BTreeMap<LifeNo, Robber>,
    former: Former,
}

impl Steals {
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
            promised: BTreeMap::new(),
            alive: terms.least(|config| config.lease_duration().0) / 2,
            pursuit: 2 * terms.at_most(terms.most(|config| config.table_timeout() + config.retry_max())),
            given: Given::new(terms),
            rows: BTreeMap::new(),
            highest: BTreeMap::new(),
            lives: BTreeMap::new(),
            former: Former::new(terms),
        }
    }

    /// A worker of another program is there: what it has is stolen, as it does not hand over.
    pub(super) fn note_other(&mut self) {
        self.most = self.most.map(|most| most.max(self.most_beside_others));
    }

    fn note_row(&mut self, now: Time, shard: ShardNo, before: Option<Row>, after: Option<Row>) {
        match (before, after) {
            (_, None) => drop(self.rows.remove(&shard)),
            (Some(before), Some(row)) if before.counter == row.counter => {
                if let Some(known) = self.rows.get_mut(&shard) {
                    known.0 = row;
                }
            }
            (_, Some(row)) => drop(self.rows.insert(shard, (row, now))),
        }
    }

    /// A worker that stood still asks again for the leases that it asked for before.
    fn note_pause(&mut self, life: LifeNo, stood: Time) {
        if let Some(robber) = self.lives.get_mut(&life) {
            for at in robber.asked.values_mut() {
                *at += stood;
            }
        }
    }

    pub(super) fn observe(&mut self, now: Time, fact: &Fact, verdict: &mut Verdict) {
        let Some(most) = self.most else { return };
        self.note_promise(now, fact);
        self.given.observe(fact);
        self.former.observe(fact);
        self.note_counter(fact);
        match *fact {
            Fact::RowChanged { shard, before, after, .. } => self.note_row(now, shard, before, after),
            Fact::Asked { life, ask: Ask::ScanPage, .. } => {
                if let Some(robber) = self.lives.get_mut(&life) {
                    robber.now.clear();
                }
            }
            Fact::Asked { life, ask: Ask::Write(Verb::Take), about: Some(shard), guard, .. } => {
                let Some((row, since)) = self.rows.get(&shard) else {
                    return;
                };
                let robber = self.lives.entry(life).or_default();
                // Begun when it was first asked for, even if the owner had just renewed the row.
                let goes_on = robber.asked.insert(shard, now);
                let owner = row.owner.filter(|owner| !self.former.has_ended(*owner));
                let of_others = matches!(owner, Some(Owner::Life(owner)) if owner != life);
                let patience = match self.given.has(shard) {
                    true => self.alive.min(self.given.least()),
                    false => self.alive,
                };
                let alive = now.saturating_sub(*since) < patience;
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

    /// Whether a hand set the counter of a row back, and the row has had the counter of now before.
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

    /// Whether a lease that is being handed over is stolen before its owner had the time to do so.
    fn is_too_early(&self, now: Time, shard: ShardNo) -> bool {
        let promised = self.promised.get(&shard).zip(self.promised_for);
        promised.is_some_and(|((_, since), patience)| now < since + patience)
    }
}

#[cfg(test)]
mod tests {
    use super::super::fact::Mark;
    use super::super::history::{asked, changed, judge_only, row};
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
        let fact = Fact::Asked {
            life: 0,
            ask: Ask::ScanPage,
            about: None,
            op: at,
            guard: None,
            leaves: None,
            local: leasehold_engine::time::Mono(at),
        };
        (at, fact)
    }

    fn judged(facts: Vec<(u64, Fact)>) -> usize {
        let rows = (0..9).map(|shard| renewed(shard, 0, 5));
        judge_only(Property::FairShares, rows.chain(facts)).len()
    }

    #[test]
    fn so_many_may_be_stolen_and_no_more() {
        let most = super::super::history::config().max_steals();
        let steals = |count: u32| (0..count).map(|shard| steal(shard, 10, 5)).collect();
        assert_eq!(judged(steals(most)), 0);
        assert_eq!(judged(steals(most + 1)), 1);
    }

    #[test]
    fn another_scan_allows_for_more_and_following_is_no_new_steal() {
        let most = super::super::history::config().max_steals();
        let first = (0..most).map(|shard| steal(shard, 10, 5));
        let chase = [renewed(0, 20, 6), scan(21), steal(0, 22, 6)];
        let more = (most..2 * most).map(|shard| steal(shard, 30, 5));
        assert_eq!(judged(first.chain(chase).chain(more).collect()), 0);
    }

    #[test]
    fn what_was_begun_before_a_scan_is_no_new_steal_after_it() {
        let most = super::super::history::config().max_steals();
        let late = steal(most, 10, 4);
        let more = (0..most).map(|shard| steal(shard, 30, 5));
        let facts = [late, scan(20)].into_iter().chain(more).chain([steal(most, 40, 5)]);
        assert_eq!(judged(facts.collect()), 0);
    }

    #[test]
    fn what_was_begun_before_a_pause_is_no_new_steal_after_it() {
        let most = super::super::history::config().max_steals();
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
    fn what_was_decided_on_before_a_counter_was_set_back_is_no_steal() {
        let most = super::super::history::config().max_steals();
        let owned = |counter| Some(row(Some(1), counter, Mark::TrimHorizon));
        let edit = |at: u64, from, to| (at, changed(most, None, Verb::Renew, owned(from), owned(to)));
        let steals =
            |counter| (0..=most).map(move |shard| steal(shard, 10, if shard == most { counter } else { 5 }));
        assert_eq!(judged([edit(5, 5, 0)].into_iter().chain(steals(0)).collect()), 0);
        // Who saw this counter before the edit takes the row for unchanged.
        let again = [edit(5, 5, 0), edit(6, 0, 5)];
        assert_eq!(judged(again.into_iter().chain(steals(5)).collect()), 0);
        let goes_on = [edit(5, 5, 0), edit(6, 0, 6)];
        assert_eq!(judged(goes_on.into_iter().chain(steals(6)).collect()), 1);
    }

    #[test]
    fn what_nobody_renews_is_not_stolen() {
        let hour = 3_600_000_000;
        assert_eq!(judged((0..9).map(|shard| steal(shard, hour, 5)).collect()), 0);
    }
}
