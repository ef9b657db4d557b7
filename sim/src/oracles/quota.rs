//! `fair-shares`, the configured half: no worker takes more leases than `max_leases` allows.
//!
//! Judged is a worker after an attempt to take a lease, at its next report of held leases. Held leases and attempted
//! takes count. Leases received without a request do not count (a leader of another library may hand leases over).

use super::fact::{Ask, Mark, Owner, Row, Verb};
use super::{
    EVENTS, Fact, History, LifeNo, Property, REPORTS, REQUESTS, SHOWN, Sees, ShardNo, Terms, Time, Verdict,
};
use std::collections::{BTreeMap, BTreeSet};

#[derive(Clone, Debug, Default)]
struct Claims {
    held: BTreeSet<ShardNo>,
    /// Held leases without a request.
    given: BTreeSet<ShardNo>,
    /// Takes under way that may succeed, each with the owners shown before and the expected counter.
    tried: BTreeMap<ShardNo, (Owners, Option<u64>)>,
    /// The owners of each lease as last shown.
    shown: BTreeMap<ShardNo, Owners>,
    /// A take was tried since the last report of held leases.
    fresh: bool,
}

/// The owner of a lease, and the next owner in a hand-over.
type Owners = (Option<Owner>, Option<Owner>);

impl Claims {
    /// Gives up a take under way if the lease is shown with a third worker as owner or next owner, as released, or at
    /// its end.
    fn shown(&mut self, life: LifeNo, shard: ShardNo, row: Row) {
        let (me, owner, next) = (Some(Owner::Life(life)), row.owner, row.next);
        let others = |before: Owners, guard: Option<u64>| match owner {
            Some(_) => owner != me && next != me && before != (owner, next),
            None => before.0.is_some() && guard.is_some_and(|guard| guard < row.counter),
        };
        let tried = self.tried.get(&shard).copied();
        if row.checkpoint == Mark::End || tried.is_some_and(|(before, guard)| others(before, guard)) {
            self.tried.remove(&shard);
        }
        self.shown.insert(shard, (owner, next));
    }
}

#[derive(Clone, Debug)]
pub(super) struct Quota {
    /// The greatest number of leases; 0: no limit.
    most: u32,
    lives: BTreeMap<LifeNo, Claims>,
}

impl Quota {
    pub(super) const SEES: Sees =
        Sees::ours(REPORTS | REQUESTS | SHOWN | EVENTS).others(REPORTS | REQUESTS | EVENTS);

    pub(super) fn new(terms: &Terms) -> Self {
        Self { most: terms.most(|config| config.max_leases()), lives: BTreeMap::new() }
    }

    pub(super) fn observe(&mut self, now: Time, fact: &Fact, _: &History, verdict: &mut Verdict) {
        if self.most == 0 {
            return;
        }
        match *fact {
            Fact::Asked { life, ask: Ask::Write(Verb::Take), about: Some(shard), guard, .. } => {
                let claims = self.lives.entry(life).or_default();
                let owners = claims.shown.get(&shard).copied().unwrap_or_default();
                claims.fresh |= claims.tried.insert(shard, (owners, guard)).is_none();
            }
            Fact::Shown { life, shard, row, .. } => {
                self.lives.entry(life).or_default().shown(life, shard, row)
            }
            Fact::Answered { life, ask: Ask::Write(Verb::Take), about: Some(shard), .. } => {
                if let Some(claims) = self.lives.get_mut(&life) {
                    claims.tried.remove(&shard);
                }
            }
            Fact::Holds { life, shard, .. } => {
                let claims = self.lives.entry(life).or_default();
                if claims.held.insert(shard) && !claims.tried.contains_key(&shard) {
                    claims.given.insert(shard);
                }
            }
            Fact::HoldsNoMore { life, shard } => {
                if let Some(claims) = self.lives.get_mut(&life) {
                    claims.held.remove(&shard);
                    claims.given.remove(&shard);
                }
            }
            Fact::Said { life } => self.judge(now, life, verdict),
            Fact::Died { life } | Fact::Stopped { life, .. } => {
                self.lives.remove(&life);
            }
            _ => {}
        }
    }

    fn judge(&mut self, now: Time, life: LifeNo, verdict: &mut Verdict) {
        let Some(claims) = self.lives.get_mut(&life) else {
            return;
        };
        if !std::mem::take(&mut claims.fresh) {
            return;
        }
        let tried: BTreeSet<ShardNo> = claims.tried.keys().copied().collect();
        let wanted = claims.held.union(&tried).count();
        let (given, most) = (claims.given.len(), self.most as usize);
        if wanted > most + given {
            verdict.report(Property::FairShares, now, || {
                format!(
                    "life {life} holds {:?} and takes {:?}: {wanted} leases, {given} of which it was given; it was told to take no \
                     more than {most}",
                    claims.held, tried
                )
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::fact::How;
    use super::super::testing::{self, answered, asked, at_once, config, count_under, held, row, shown};
    use super::*;

    const TAKE: Ask = Ask::Write(Verb::Take);

    fn holds(shard: ShardNo) -> Fact {
        held(0, shard, 1, false, 1)
    }

    fn found(most: u32, facts: Vec<Fact>) -> usize {
        let terms = Terms::plain(config().with_max_leases(most));
        count_under(&terms, Property::FairShares, at_once(facts))
    }

    /// Takes one lease after another.
    fn takes(shards: std::ops::Range<u32>) -> Vec<Fact> {
        let each = |shard| {
            let op = u64::from(shard) + 1;
            [
                asked(0, TAKE, shard, op, 1, 0),
                Fact::Said { life: 0 },
                holds(shard),
                answered(0, TAKE, shard, op, How::Applied),
                Fact::Said { life: 0 },
            ]
        };
        shards.flat_map(each).collect()
    }

    #[test]
    fn one_too_many_is_found_and_as_many_as_allowed_are_not() {
        assert_eq!(found(2, takes(0..2)), 0);
        assert_eq!(found(2, takes(0..3)), 1);
        assert_eq!(found(0, takes(0..9)), 0);
    }

    #[test]
    fn a_take_under_way_counts_until_its_answer() {
        let two = vec![asked(0, TAKE, 0, 1, 1, 0), asked(0, TAKE, 1, 2, 1, 0), Fact::Said { life: 0 }];
        assert_eq!(found(1, two), 1);
        let one_refused = vec![
            asked(0, TAKE, 0, 1, 1, 0),
            Fact::Said { life: 0 },
            answered(0, TAKE, 0, 1, How::Refused),
            asked(0, TAKE, 1, 2, 1, 0),
            Fact::Said { life: 0 },
        ];
        assert_eq!(found(1, one_refused), 0);
    }

    #[test]
    fn a_take_of_what_a_third_worker_has_does_not_count_any_more() {
        let shown = |shard, owner| shown(0, shard, row(owner, 1, Mark::TrimHorizon));
        let then = |owner| {
            vec![
                shown(0, Some(1)),
                asked(0, TAKE, 0, 1, 1, 0),
                Fact::Said { life: 0 },
                shown(0, owner),
                asked(0, TAKE, 1, 2, 1, 0),
                Fact::Said { life: 0 },
            ]
        };
        assert_eq!(found(1, then(Some(2))), 0);
        assert_eq!(found(1, then(Some(1))), 1);
        assert_eq!(found(1, then(None)), 1);
        let handed_over = |next| {
            let row = super::super::fact::Row { next, ..row(Some(1), 1, Mark::TrimHorizon) };
            let mut facts = then(Some(1));
            facts[3] = testing::shown(0, 0, row);
            facts
        };
        assert_eq!(found(1, handed_over(Some(Owner::Life(2)))), 0);
        assert_eq!(found(1, handed_over(Some(Owner::Life(0)))), 1);
    }

    #[test]
    fn given_leases_are_excused_and_released_ones_do_not_count() {
        let given = [vec![holds(7)], takes(0..1)].concat();
        assert_eq!(found(1, given), 0);
        let moved = [takes(0..1), vec![Fact::HoldsNoMore { life: 0, shard: 0 }], takes(1..2)].concat();
        assert_eq!(found(1, moved), 0);
    }
}
