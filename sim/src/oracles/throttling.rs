//! Lives slowed by a throttling lease table: the requests about leases wait for each other, and the life takes no lease
//! of another life.
//!
//! Many refusals within a second make a life slow (`engine/src/worker/table_pace.rs`). Here, requests not sent for
//! another reason count as refusals, too. So a fast life may count as slow for a while.

use super::fact::{Ask, How};
use super::{Fact, LifeNo, Time};
use std::collections::{BTreeMap, VecDeque};

/// The refusals that make a life slow.
const MANY: usize = 8;
/// The time within which the refusals come, by any clock, in µs.
const SECOND_US: u64 = 1_300_000;
/// The time after the last refusal in which the life counts as slow, in µs.
const SLOW_US: u64 = 20_000_000;

#[derive(Clone, Debug, Default)]
struct Refusals {
    last: VecDeque<Time>,
    until: Time,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Throttling {
    lives: BTreeMap<LifeNo, Refusals>,
}

impl Throttling {
    pub(super) fn observe(&mut self, now: Time, fact: &Fact) {
        match *fact {
            Fact::Answered { life, ask: Ask::Write(_) | Ask::Read, how: How::NotSent, .. } => {
                self.lives.entry(life).or_default().add(now)
            }
            // By the life's own clock, perhaps no time has passed.
            Fact::Resumed { life, stood } => {
                if let Some(refusals) = self.lives.get_mut(&life).filter(|refusals| refusals.until > 0) {
                    refusals.until += stood;
                }
            }
            Fact::Died { life } | Fact::Stopped { life, .. } => drop(self.lives.remove(&life)),
            _ => {}
        }
    }

    pub(super) fn slows(&self, now: Time, life: LifeNo) -> bool {
        self.lives.get(&life).is_some_and(|life| now < life.until)
    }
}

impl Refusals {
    fn add(&mut self, now: Time) {
        self.last.push_back(now);
        if self.last.len() > MANY {
            self.last.pop_front();
        }
        let many = self.last.len() == MANY && self.last.front().is_some_and(|first| now - first <= SECOND_US);
        if many || now < self.until {
            self.until = now + SLOW_US;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_refusals_make_a_life_slow_and_any_refusal_keeps_it_so() {
        let mut refusals = Refusals::default();
        for at in 0..20 {
            refusals.add(at * SECOND_US / 4);
            assert_eq!(refusals.until, 0, "a few in a second");
        }
        let now = 100_000_000;
        (0..MANY as u64).for_each(|n| refusals.add(now + n));
        assert!(refusals.until > now + SLOW_US);
        let later = refusals.until - 1;
        refusals.add(later);
        assert_eq!(refusals.until, later + SLOW_US);
        refusals.add(later + 2 * SLOW_US);
        assert_eq!(refusals.until, later + SLOW_US, "it is over");
    }
}
