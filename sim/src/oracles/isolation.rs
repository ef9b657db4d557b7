//! P7: the slow or hung write of one lease does not delay another's renewal.
//!
//! While a worker holds a lease and has nothing under way for it, the next write or read of it must come within a
//! renewal interval, or the greatest pause after a failure: whatever happens to other leases.

use super::{Fact, LifeNo, Property, ShardNo, Terms, Time, Verdict};
use std::collections::BTreeMap;

#[derive(Clone, Debug, Default)]
struct Attention {
    last: Time,
    open: Vec<u64>,
    round: u64,
}

#[derive(Clone, Debug)]
pub(super) struct Isolation {
    bound: u64,
    leases: BTreeMap<(LifeNo, ShardNo), Attention>,
    rounds: Vec<u64>,
}

const SLACK_US: u64 = 250_000;

impl Isolation {
    pub(super) fn new(terms: &Terms) -> Self {
        let config = &terms.config;
        let pause = config.renew_interval + config.retry_max;
        Self {
            bound: terms.at_most(pause) + SLACK_US,
            leases: BTreeMap::new(),
            rounds: Vec::new(),
        }
    }

    fn round(&mut self, life: LifeNo) -> &mut u64 {
        let index = life as usize;
        if self.rounds.len() <= index {
            self.rounds.resize(index + 1, 1);
        }
        &mut self.rounds[index]
    }

    pub(super) fn observe(&mut self, now: Time, fact: &Fact, verdict: &mut Verdict) {
        match *fact {
            Fact::Asked {
                life,
                about: Some(shard),
                op,
                ask,
                ..
            } if is_of_lease(ask) => {
                let attention = self.leases.entry((life, shard)).or_default();
                attention.last = now;
                attention.open.push(op);
            }
            Fact::Answered {
                life,
                about: Some(shard),
                op,
                ask,
                ..
            } if is_of_lease(ask) => {
                if let Some(attention) = self.leases.get_mut(&(life, shard)) {
                    attention.last = now;
                    attention.open.retain(|&open| open != op);
                }
            }
            Fact::Holds { life, shard, .. } => {
                let round = *self.round(life);
                let bound = self.bound;
                let attention = self.leases.entry((life, shard)).or_default();
                if attention.round + 1 < round {
                    // Held again after it was not.
                    attention.last = now;
                }
                attention.round = round;
                let idle = now.saturating_sub(attention.last);
                if attention.open.is_empty() && idle > bound {
                    attention.last = now;
                    verdict.report(Property::P7, now, || {
                        format!(
                            "life {life} holds shard {shard} and let it alone for {} ms, {} ms are allowed",
                            idle / 1_000,
                            bound / 1_000
                        )
                    });
                }
            }
            Fact::HoldsNoMore { life } => *self.round(life) += 1,
            Fact::Resumed { life, .. } => {
                for (_, attention) in self.leases.range_mut((life, 0)..=(life, ShardNo::MAX)) {
                    attention.last = now;
                }
            }
            Fact::Died { life } | Fact::Stopped { life, .. } => {
                let keys: Vec<_> = self
                    .leases
                    .range((life, 0)..=(life, ShardNo::MAX))
                    .map(|(key, _)| *key)
                    .collect();
                for key in keys {
                    self.leases.remove(&key);
                }
            }
            _ => {}
        }
    }
}

fn is_of_lease(ask: super::fact::Ask) -> bool {
    matches!(ask, super::fact::Ask::Write(_) | super::fact::Ask::Read)
}

#[cfg(test)]
mod tests {
    use super::super::fact::{Ask, How, Mark, Verb};
    use super::super::history::{answered, asked, judge};
    use super::*;

    const RENEW: Ask = Ask::Write(Verb::Renew);

    fn holds(shard: u32) -> [Fact; 2] {
        let holds = Fact::Holds {
            life: 0,
            shard,
            counter: 1,
            checkpoint: Mark::TrimHorizon,
            open: false,
            until: u64::MAX,
        };
        [holds, Fact::HoldsNoMore { life: 0 }]
    }

    fn judged(facts: Vec<(u64, Fact)>) -> usize {
        judge(facts)
            .into_iter()
            .filter(|&found| found == Property::P7)
            .count()
    }

    fn history(renewed: bool) -> Vec<(u64, Fact)> {
        let mut facts = Vec::new();
        for second in 0..20u64 {
            let at = second * 1_000_000;
            if renewed && second % 3 == 0 {
                facts.push((at, asked(0, RENEW, 7, second, 1, at)));
                facts.push((at, answered(0, RENEW, 7, second, How::Applied)));
            }
            facts.extend(holds(7).map(|fact| (at, fact)));
        }
        facts
    }

    #[test]
    fn a_lease_renewed_in_time_is_fine_and_a_forgotten_one_is_found() {
        assert_eq!(judged(history(true)), 0);
        assert!(judged(history(false)) > 0);
    }

    #[test]
    fn a_lease_whose_own_write_hangs_is_excused() {
        let mut facts = vec![(0, asked(0, RENEW, 7, 1, 1, 0))];
        facts.extend(history(false));
        assert_eq!(judged(facts), 0);
    }
}
