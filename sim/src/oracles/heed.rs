//! `double-processing-bounded`: a worker without a belief in a lease tells its handler to stop, at once.
//!
//! The worker cannot bound the handler's later acts, but must tell the handler to stop. Another worker's start does not
//! matter: the start may come at any moment. A paused process tells no handler to stop.

use super::{EVENTS, Fact, History, LifeNo, Property, REPORTS, Sees, ShardNo, Terms, Time, Verdict};
use std::collections::BTreeMap;

#[derive(Clone, Copy, Debug, Default)]
struct Belief {
    /// The end of the belief, past or future.
    until: Time,
    /// The running handler, by its token.
    handling: Option<u64>,
    /// The handler was told to stop.
    told: bool,
}

#[derive(Clone, Debug)]
pub(super) struct Heed {
    binding: bool,
    beliefs: BTreeMap<(LifeNo, ShardNo), Belief>,
}

const SLACK_US: u64 = 50_000;

impl Heed {
    pub(super) const SEES: Sees = Sees::all(REPORTS | EVENTS);

    pub(super) fn new(terms: &Terms) -> Self {
        Self { binding: !terms.clocks_beyond, beliefs: BTreeMap::new() }
    }

    fn of_life(&mut self, life: LifeNo) -> impl Iterator<Item = &mut Belief> {
        let of = (life, 0)..=(life, ShardNo::MAX);
        self.beliefs.range_mut(of).map(|(_, belief)| belief)
    }

    pub(super) fn observe(&mut self, now: Time, fact: &Fact, _: &History, verdict: &mut Verdict) {
        match *fact {
            Fact::Holds { life, shard, until, .. } => {
                self.beliefs.entry((life, shard)).or_default().until = until
            }
            Fact::HoldsNoMore { life, shard } => {
                if let Some(belief) = self.beliefs.get_mut(&(life, shard)) {
                    belief.until = belief.until.min(now);
                }
            }
            Fact::Delivered { life, shard, token, .. } => {
                if let Some(belief) = self.beliefs.get_mut(&(life, shard)) {
                    belief.handling = Some(token);
                    belief.told = false;
                }
            }
            Fact::Aborted { life, shard, .. } => {
                if let Some(belief) = self.beliefs.get_mut(&(life, shard)) {
                    belief.told = true;
                }
            }
            Fact::HandlerEnded { life, shard, token } => {
                let Some(belief) = self.beliefs.get_mut(&(life, shard)) else {
                    return;
                };
                let ran = belief.handling.take() == Some(token);
                let late = now.saturating_sub(belief.until);
                if ran && !belief.told && self.binding && late > SLACK_US {
                    verdict.report(Property::DoubleProcessingBounded, now, || {
                        format!(
                            "a handler of life {life} ran for shard {shard} for {} ms after the belief in its lease had ended, and was not told to stop",
                            late / 1_000
                        )
                    });
                }
            }
            // Facts hidden before the clocks were right count from then on.
            Fact::Resumed { life, .. } | Fact::ClockRight { life } => {
                for belief in self.of_life(life) {
                    belief.until = belief.until.max(now);
                }
            }
            Fact::Died { life } | Fact::Stopped { life, .. } => self.beliefs.retain(|(of, _), _| *of != life),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{self, count, delivered, held, judge_under};
    use super::*;

    const SECOND: u64 = 1_000_000;

    fn history(then: Vec<(u64, Fact)>) -> Vec<(u64, Fact)> {
        let holds = held(0, 0, 1, true, 5 * SECOND);
        let mut facts = vec![(0, holds), (SECOND, delivered(0, 0, 1, 1))];
        facts.extend(then);
        facts
    }

    fn judged(then: Vec<(u64, Fact)>) -> usize {
        count(Property::DoubleProcessingBounded, history(then))
    }

    fn ended(at: u64) -> (u64, Fact) {
        (at, testing::ended(0, 0))
    }

    fn aborted(at: u64) -> (u64, Fact) {
        let aborted = Fact::Aborted { life: 0, shard: 0, token: 1 };
        (at, aborted)
    }

    fn lost(at: u64) -> (u64, Fact) {
        (at, Fact::HoldsNoMore { life: 0, shard: 0 })
    }

    #[test]
    fn a_handler_is_told_when_the_belief_ends() {
        assert_eq!(judged(vec![ended(4 * SECOND)]), 0, "done before");
        assert_eq!(judged(vec![aborted(5 * SECOND), ended(9 * SECOND)]), 0, "told");
        assert_eq!(judged(vec![ended(9 * SECOND)]), 1, "it ran out");
        assert_eq!(judged(vec![lost(2 * SECOND), ended(4 * SECOND)]), 1, "it was lost");
        let told = vec![lost(2 * SECOND), aborted(2 * SECOND), ended(4 * SECOND)];
        assert_eq!(judged(told), 0);
    }

    #[test]
    fn who_stood_still_or_has_a_bad_clock_is_excused() {
        let resumed = Fact::Resumed { life: 0, stood: 4 * SECOND };
        assert_eq!(judged(vec![(9 * SECOND, resumed), ended(9 * SECOND)]), 0);
        let terms = Terms { clocks_beyond: true, ..Terms::plain(testing::config()) };
        let found = judge_under(&terms, history(vec![ended(9 * SECOND)]));
        assert!(!found.contains(&Property::DoubleProcessingBounded));
    }
}
