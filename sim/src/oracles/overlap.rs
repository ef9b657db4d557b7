//! P14: no two workers believe at the same time that they may process a shard.
//!
//! A belief is a lease held, open to the application and not yet lapsed on its holder's clock. With clocks within the
//! promised rate error no two overlap, whatever the delays: the timing rule. Without the settling of stolen leases a
//! thief begins at once, and only expired leases are covered.

use super::{Fact, LifeNo, Property, ShardNo, Terms, Time, Verdict};

#[derive(Clone, Copy, Debug)]
struct Belief {
    life: LifeNo,
    until: Time,
    round: u64,
}

#[derive(Clone, Debug)]
pub(super) struct Overlap {
    binding: bool,
    shards: Vec<Vec<Belief>>,
    rounds: Vec<u64>,
}

impl Overlap {
    pub(super) fn new(terms: &Terms) -> Self {
        let binding = !terms.clocks_beyond && terms.config.settle_stolen;
        Self {
            binding,
            shards: Vec::new(),
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
            Fact::Holds {
                life,
                shard,
                open,
                until,
                ..
            } => self.believe(now, life, shard, open, until, verdict),
            Fact::HoldsNoMore { life } => *self.round(life) += 1,
            // Twice, so that what was said in the last round is forgotten too.
            Fact::Died { life } | Fact::Stopped { life, .. } => *self.round(life) += 2,
            _ => {}
        }
    }

    fn believe(
        &mut self,
        now: Time,
        life: LifeNo,
        shard: ShardNo,
        open: bool,
        until: Time,
        verdict: &mut Verdict,
    ) {
        let round = *self.round(life);
        let index = shard as usize;
        if self.shards.len() <= index {
            self.shards.resize_with(index + 1, Vec::new);
        }
        let rounds = &self.rounds;
        let beliefs = &mut self.shards[index];
        beliefs.retain(|belief| {
            let current = belief.round + 1 >= rounds.get(belief.life as usize).copied().unwrap_or(1);
            current && belief.until > now && belief.life != life
        });
        if !open || until <= now {
            return;
        }
        if self.binding
            && let Some(other) = beliefs.first()
        {
            let (other, other_until) = (other.life, other.until);
            verdict.report(Property::P14, now, || {
                format!(
                    "lives {other} and {life} both believe in shard {shard}: the one for {} ms more, the other for {} ms",
                    (other_until - now) / 1_000,
                    (until - now) / 1_000
                )
            });
        }
        beliefs.push(Belief { life, until, round });
    }
}

#[cfg(test)]
mod tests {
    use super::super::fact::Mark;
    use super::super::history::{config, judge, judge_under};
    use super::*;

    fn holds(at: u64, life: u32, open: bool, until: u64) -> [(u64, Fact); 2] {
        let fact = Fact::Holds {
            life,
            shard: 0,
            counter: 0,
            checkpoint: Mark::TrimHorizon,
            open,
            until,
        };
        [(at, fact), (at, Fact::HoldsNoMore { life })]
    }

    fn p14(facts: impl IntoIterator<Item = (u64, Fact)>) -> usize {
        judge(facts)
            .into_iter()
            .filter(|&found| found == Property::P14)
            .count()
    }

    #[test]
    fn one_after_the_other_is_fine() {
        assert_eq!(
            p14(holds(1, 0, true, 10).into_iter().chain(holds(10, 1, true, 20))),
            0
        );
        assert_eq!(
            p14(holds(1, 0, true, 10).into_iter().chain(holds(5, 1, false, 20))),
            0
        );
        let gone = [(3, Fact::Died { life: 0 })];
        assert_eq!(
            p14(holds(1, 0, true, 10)
                .into_iter()
                .chain(gone)
                .chain(holds(5, 1, true, 20))),
            0
        );
        let dropped = [(3, Fact::HoldsNoMore { life: 0 })];
        assert_eq!(
            p14(holds(1, 0, true, 10)
                .into_iter()
                .chain(dropped)
                .chain(holds(5, 1, true, 20))),
            0
        );
    }

    #[test]
    fn two_at_a_time_are_found_unless_clocks_are_worse_than_promised() {
        let both = || holds(1, 0, true, 10).into_iter().chain(holds(9, 1, true, 20));
        assert_eq!(p14(both()), 1);
        let terms = Terms {
            clocks_beyond: true,
            ..Terms::plain(config())
        };
        assert!(!judge_under(&terms, both()).contains(&Property::P14));
    }
}
