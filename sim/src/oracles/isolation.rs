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
    held: bool,
}

/// The leases of one life.
#[derive(Clone, Debug, Default)]
struct Life {
    leases: BTreeMap<ShardNo, Attention>,
    /// Nothing can be overdue before.
    quiet_until: Time,
}

#[derive(Clone, Debug)]
pub(super) struct Isolation {
    bound: u64,
    lives: Vec<Life>,
}

const SLACK_US: u64 = 250_000;

impl Isolation {
    pub(super) fn new(terms: &Terms) -> Self {
        let pause = terms.most(|config| config.renew_interval + config.retry_max);
        Self {
            bound: terms.at_most(pause) + SLACK_US,
            lives: Vec::new(),
        }
    }

    fn life(&mut self, life: LifeNo) -> &mut Life {
        let index = life as usize;
        if self.lives.len() <= index {
            self.lives.resize_with(index + 1, Life::default);
        }
        &mut self.lives[index]
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
                let attention = self.life(life).leases.entry(shard).or_default();
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
                if let Some(attention) = self.life(life).leases.get_mut(&shard) {
                    attention.last = now;
                    attention.open.retain(|&open| open != op);
                }
            }
            Fact::Holds { life, shard, .. } => {
                let attention = self.life(life).leases.entry(shard).or_default();
                if !attention.held {
                    attention.held = true;
                    attention.last = now;
                }
            }
            Fact::HoldsNoMore { life, shard } => {
                if let Some(attention) = self.life(life).leases.get_mut(&shard) {
                    attention.held = false;
                }
            }
            Fact::Said { life } => self.compare(now, life, verdict),
            Fact::Resumed { life, .. } => {
                for attention in self.life(life).leases.values_mut() {
                    attention.last = now;
                }
            }
            Fact::Died { life } | Fact::Stopped { life, .. } => *self.life(life) = Life::default(),
            _ => {}
        }
    }

    /// Whatever happens to a lease only puts its deadline off, so nothing need be looked at before the earliest one.
    fn compare(&mut self, now: Time, life: LifeNo, verdict: &mut Verdict) {
        let bound = self.bound;
        let known = self.life(life);
        if now <= known.quiet_until {
            return;
        }
        known.quiet_until = now + bound;
        for (shard, attention) in &mut known.leases {
            if !attention.held || !attention.open.is_empty() {
                continue;
            }
            let idle = now.saturating_sub(attention.last);
            if idle > bound {
                attention.last = now;
                verdict.report(Property::P7, now, || {
                    format!(
                        "life {life} holds shard {shard} and let it alone for {} ms, {} ms are allowed",
                        idle / 1_000,
                        bound / 1_000
                    )
                });
            }
            known.quiet_until = known.quiet_until.min(attention.last + bound);
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
        [holds, Fact::Said { life: 0 }]
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
