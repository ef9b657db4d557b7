//! `exclusive-ownership`: no two workers believe at the same time that they may process a shard.
//!
//! A belief is a held lease, open to the application and not yet lapsed on its holder's clock. With clocks within the
//! promised rate error no two beliefs overlap, whatever the delays: the timing rule. Without the settling of stolen
//! leases a thief begins at once, and the rule covers only expired leases. A row removed by a person counts from 0
//! again, and may look like a much older state: its shard is not judged any more.
//!
//! Another program's write over a foreign row can make the row look like a much older state, too. The believing owner
//! may lose the lease at once, and its belief may run out beside the next belief, but is never renewed. Such tables
//! allow no better bound.
//!
//! A worker with a stopped clock, and with a wall clock that hides the stop, cannot know the end of its belief. After
//! the clocks are right, its beliefs are compared.

use super::{
    EVENTS, Fact, History, LifeNo, PerShard, Property, REPORTS, ROWS, Sees, ShardNo, Terms, Time, Verdict,
};

#[derive(Clone, Copy, Debug)]
struct Belief {
    life: LifeNo,
    until: Time,
    /// The application may process the shard. Otherwise the lease is held only.
    open: bool,
    /// Another program wrote over the belief's row since. A write from before may be answered later, and the belief
    /// then ends here at the latest.
    robbed: Option<Time>,
}

#[derive(Clone, Debug)]
pub(super) struct Overlap {
    binding: bool,
    /// The time for which a write renews a belief, in µs of true time.
    renewed_for: u64,
    shards: PerShard<Vec<Belief>>,
}

impl Overlap {
    pub(super) const SEES: Sees = Sees::all(REPORTS | ROWS | EVENTS);

    pub(super) fn new(terms: &Terms) -> Self {
        let binding = !terms.clocks_beyond && terms.least(|config| config.steal_cooldown());
        Self {
            binding,
            renewed_for: terms.longest(|config| config.lease_duration()),
            shards: PerShard::default(),
        }
    }

    pub(super) fn observe(&mut self, now: Time, fact: &Fact, history: &History, verdict: &mut Verdict) {
        match *fact {
            Fact::Holds { life, shard, open, until, .. } => {
                self.believe(now, (life, shard), open, until, history, verdict)
            }
            Fact::HoldsNoMore { life, shard } => {
                if let Some(beliefs) = self.shards.get_mut(shard as usize) {
                    beliefs.retain(|belief| belief.life != life);
                }
            }
            Fact::RowChanged { shard, .. } if history.robs => self.trespassed(now, shard),
            Fact::ClockRight { life } => self.compare_all(now, life, history, verdict),
            Fact::Died { life } | Fact::Stopped { life, .. } => {
                for beliefs in self.shards.iter_mut() {
                    beliefs.retain(|belief| belief.life != life);
                }
            }
            _ => {}
        }
    }

    /// Another program has written over a row of a different owner.
    fn trespassed(&mut self, now: Time, shard: ShardNo) {
        let last = now + self.renewed_for;
        for belief in self.shards.get_mut(shard as usize).into_iter().flatten() {
            belief.robbed = Some(belief.until.max(last));
        }
    }

    /// The clocks of a life are right again.
    fn compare_all(&mut self, now: Time, life: LifeNo, history: &History, verdict: &mut Verdict) {
        for shard in 0..self.shards.len() {
            let known = self.shards[shard].iter().find(|belief| belief.life == life);
            if let Some(Belief { until, robbed: None, open: true, .. }) = known.copied() {
                self.believe(now, (life, shard as ShardNo), true, until, history, verdict);
            }
        }
    }

    fn believe(
        &mut self, now: Time, (life, shard): (LifeNo, ShardNo), open: bool, until: Time, history: &History,
        verdict: &mut Verdict,
    ) {
        let beliefs = self.shards.of(shard);
        let before = beliefs.iter().find(|belief| belief.life == life);
        let robbed = before.and_then(|before| before.robbed).filter(|last| until <= *last);
        beliefs.retain(|belief| belief.until > now && belief.life != life);
        if until <= now {
            return;
        }
        if self.binding
            && open
            && robbed.is_none()
            && !history.shard(shard).removed
            && !history.adrift.contains(&life)
            && let Some(other) = beliefs.iter().find(|belief| {
                belief.open && belief.robbed.is_none() && !history.adrift.contains(&belief.life)
            })
        {
            let (other, other_until) = (other.life, other.until);
            verdict.report(Property::ExclusiveOwnership, now, || {
                format!(
                    "lives {other} and {life} both believe in shard {shard}: the one for {} ms more, the other for {} ms",
                    (other_until - now) / 1_000,
                    (until - now) / 1_000
                )
            });
        }
        beliefs.push(Belief { life, until, open, robbed });
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{blank, config, count, held, judge_under};
    use super::*;

    fn holds(at: u64, life: u32, open: bool, until: u64) -> [(u64, Fact); 1] {
        let fact = held(life, 0, 0, open, until);
        [(at, fact)]
    }

    fn p14(facts: impl IntoIterator<Item = (u64, Fact)>) -> usize {
        count(Property::ExclusiveOwnership, facts)
    }

    /// The number of violations if a stranger perhaps writes over the row, between these facts.
    fn written_over(
        before: impl IntoIterator<Item = (u64, Fact)>, is_written: bool,
        after: impl IntoIterator<Item = (u64, Fact)>,
    ) -> usize {
        let (mut overlap, mut verdict) = (Overlap::new(&Terms::plain(config())), Verdict::default());
        for (at, fact) in before {
            overlap.observe(at, &fact, &blank(), &mut verdict);
        }
        if is_written {
            overlap.trespassed(2, 0);
        }
        for (at, fact) in after {
            overlap.observe(at, &fact, &blank(), &mut verdict);
        }
        verdict.violations().len()
    }

    /// Lives 0 and 1 believe. Before life 1's belief, a stranger writes over the row.
    fn trespass(then: impl IntoIterator<Item = (u64, Fact)>) -> usize {
        written_over(holds(1, 0, true, 10), true, holds(5, 1, true, 20).into_iter().chain(then))
    }

    #[test]
    fn who_was_written_over_may_run_out_and_is_never_renewed() {
        assert_eq!(trespass([]), 0);
        assert_eq!(trespass(holds(6, 0, true, 10)), 0);
        let written_before = 2 + Overlap::new(&Terms::plain(config())).renewed_for;
        assert_eq!(trespass(holds(6, 0, true, written_before)), 0);
        assert_eq!(trespass(holds(6, 0, true, written_before + 1)), 1);
        // Later beliefs are not excused.
        assert_eq!(trespass(holds(12, 2, true, 30)), 1);
    }

    #[test]
    fn a_holder_robbed_by_a_write_may_begin_later_and_run_out() {
        let begin = || holds(3, 0, true, 10).into_iter().chain(holds(5, 1, true, 20));
        let found = |is_written| written_over(holds(1, 0, false, 10), is_written, begin());
        assert_eq!((found(true), found(false)), (0, 1));
    }

    #[test]
    fn one_after_the_other_is_fine() {
        assert_eq!(p14(holds(1, 0, true, 10).into_iter().chain(holds(10, 1, true, 20))), 0);
        assert_eq!(p14(holds(1, 0, true, 10).into_iter().chain(holds(5, 1, false, 20))), 0);
        let gone = [(3, Fact::Died { life: 0 })];
        assert_eq!(p14(holds(1, 0, true, 10).into_iter().chain(gone).chain(holds(5, 1, true, 20))), 0);
        let dropped = [(3, Fact::HoldsNoMore { life: 0, shard: 0 })];
        assert_eq!(p14(holds(1, 0, true, 10).into_iter().chain(dropped).chain(holds(5, 1, true, 20))), 0);
    }

    #[test]
    fn who_is_adrift_is_judged_when_its_clocks_show_the_time() {
        let stands = [(2, Fact::ClockStands { life: 0 })];
        let right = |at| [(at, Fact::ClockRight { life: 0 })];
        let late = || {
            let first = holds(1, 0, true, 10).into_iter().chain(stands.clone());
            first.chain(holds(30, 1, true, 60)).chain(holds(35, 0, true, 50))
        };
        assert_eq!(p14(late()), 0, "it cannot know");
        assert_eq!(p14(late().chain(right(40))), 1, "it believes on");
        let ends = holds(39, 0, true, 20);
        assert_eq!(p14(late().chain(ends).chain(right(40))), 0, "it believes no more");
        assert_eq!(p14(late().chain(right(50))), 0, "it is over by then");
    }

    #[test]
    fn two_beliefs_at_a_time_are_found_under_promised_clocks() {
        let both = || holds(1, 0, true, 10).into_iter().chain(holds(9, 1, true, 20));
        assert_eq!(p14(both()), 1);
        let terms = Terms { clocks_beyond: true, ..Terms::plain(config()) };
        assert!(!judge_under(&terms, both()).contains(&Property::ExclusiveOwnership));
    }
}
