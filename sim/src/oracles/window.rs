//! `double-processing-bounded`: the time during which two workers run handlers for one shard is measured, and bounded.
//!
//! A lapsed belief ends no handler by itself: the worker asks the handler to stop, and the handler takes its time. The
//! bound is the handler's time, plus the time of a deaf handler. A paused process runs no handler.
//!
//! If another program runs a handler without the lease, or wrote over the lease, the owner cannot know before its next
//! renewal. Such times are measured, and not bounded, until a worker takes the lease. After a row was written over, the
//! exception lasts as long as an earlier owner may believe in the lease. The exception also holds if another program
//! took the lease of a still renewing owner. The exception holds for a suspended worker, too, if its clocks do not show
//! the suspension.

use super::fact::{Owner, Verb};
use super::{EVENTS, Fact, History, LifeNo, PerShard, Property, ROWS, Sees, ShardNo, Terms, Time, Verdict};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// The measurements.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Windows {
    /// The number of times when two workers ran handlers for one shard at once.
    pub count: u64,
    /// The longest time, in µs.
    pub longest_us: u64,
}

#[derive(Clone, Copy, Debug)]
struct Run {
    life: LifeNo,
    token: u64,
    /// Since when another worker has been in the shard, too.
    met: Option<Time>,
    /// The worker is paused: its handler does not run.
    stands: bool,
    /// The run of another program, responsible for its acts beside the owner of the lease.
    of_others: bool,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Window {
    bound: Option<u64>,
    shards: PerShard<Vec<Run>>,
    /// Shards processed by other programs without a lease.
    trespassed: BTreeSet<ShardNo>,
    /// The last time when a stranger to the lease wrote over a row.
    written_over: BTreeMap<ShardNo, Time>,
    /// The last write of each row.
    written: PerShard<Time>,
    /// The longest belief of an owner in its lease, in µs.
    belief: u64,
    windows: Windows,
}

const SLACK_US: u64 = 50_000;

impl Window {
    pub(super) const SEES: Sees = Sees::all(ROWS | EVENTS);

    pub(super) fn new(terms: &Terms) -> Self {
        let binding = !terms.clocks_beyond && terms.least(|config| config.steal_cooldown());
        let bound = binding.then_some(terms.abort_us + terms.deaf_us + SLACK_US);
        Self { bound, belief: terms.longest(|config| config.lease_duration()), ..Self::default() }
    }

    pub(super) fn windows(&self) -> Windows {
        self.windows
    }

    fn end(
        &mut self, now: Time, shard: ShardNo, history: &History, verdict: &mut Verdict,
        over: impl Fn(&Run) -> bool,
    ) {
        let Some(runs) = self.shards.get_mut(shard as usize) else {
            return;
        };
        let Some(index) = runs.iter().position(over) else {
            return;
        };
        let ended = runs.remove(index);
        self.measure(now, shard, ended, history, verdict);
    }

    /// Measures a run's time beside another worker's run.
    fn measure(&mut self, now: Time, shard: ShardNo, run: Run, history: &History, verdict: &mut Verdict) {
        let Some(met) = run.met.filter(|_| !run.stands) else {
            return;
        };
        let length = now.saturating_sub(met);
        self.windows.count += 1;
        self.windows.longest_us = self.windows.longest_us.max(length);
        // A row made anew may look like a much older state.
        let excused = history.shard(shard).removed || (!run.of_others && self.trespassed.contains(&shard));
        let bound = self.bound.filter(|_| !excused);
        if bound.is_some_and(|bound| length > bound) {
            let life = run.life;
            verdict.report(Property::DoubleProcessingBounded, now, || {
                format!(
                    "a handler of life {life} ran for shard {shard} for {} ms after another worker's had begun",
                    length / 1_000
                )
            });
        }
    }

    /// Another program has written over a row of a different owner.
    fn written_over(&mut self, now: Time, shard: ShardNo) {
        self.trespassed.insert(shard);
        self.written_over.insert(shard, now);
    }

    /// `by_other`: the life of another program that wrote the row.
    fn row_changed(
        &mut self, now: Time, shard: ShardNo, verb: Option<Verb>, before: Option<Owner>,
        by_other: Option<LifeNo>,
    ) {
        let written = std::mem::replace(self.written.of(shard), now);
        if verb == Some(Verb::Take) {
            let over = self.written_over.get(&shard);
            if over.is_none_or(|at| now > at.saturating_add(self.belief)) {
                self.trespassed.remove(&shard);
            }
            let robs = by_other.is_some_and(|life| before.is_some_and(|owner| owner != Owner::Life(life)));
            if robs && now <= written.saturating_add(self.belief) {
                self.trespassed.insert(shard);
            }
        }
    }

    /// The runs of a life count from now on.
    fn goes_on(&mut self, now: Time, life: LifeNo) {
        for runs in self.shards.iter_mut() {
            let others = runs.iter().any(|run| run.life != life && !run.stands);
            for run in runs.iter_mut().filter(|run| run.life == life) {
                run.stands = false;
                run.met = others.then_some(now);
            }
        }
    }

    pub(super) fn observe(&mut self, now: Time, fact: &Fact, history: &History, verdict: &mut Verdict) {
        match *fact {
            Fact::Delivered { life, shard, token, .. } => {
                let of_others = history.of_others;
                let owner = history.shard(shard).row.and_then(|row| row.owner);
                if of_others && owner != Some(Owner::Life(life)) {
                    self.trespassed.insert(shard);
                }
                let runs = self.shards.of(shard);
                let adrift = history.adrift.contains(&life);
                for other in runs.iter_mut().filter(|run| run.life != life && !adrift) {
                    other.met.get_or_insert(now);
                }
                runs.push(Run { life, token, met: None, stands: adrift, of_others });
            }
            Fact::HandlerEnded { life, shard, token } => {
                self.end(now, shard, history, verdict, |run| run.life == life && run.token == token);
            }
            Fact::Died { life } => {
                for shard in 0..self.shards.len() as ShardNo {
                    self.end(now, shard, history, verdict, |run| run.life == life);
                }
            }
            Fact::RowChanged { shard, verb, by, .. } => {
                if history.robs {
                    self.written_over(now, shard);
                }
                let by_other = by.filter(|_| history.of_others);
                let before = history.shard(shard).before.and_then(|row| row.owner);
                self.row_changed(now, shard, verb, before, by_other);
            }
            Fact::Paused { life } => {
                for shard in 0..self.shards.len() {
                    let Some(run) = self.shards[shard].iter_mut().find(|run| run.life == life) else {
                        continue;
                    };
                    let stopped = *run;
                    run.stands = true;
                    self.measure(now, shard as ShardNo, stopped, history, verdict);
                }
            }
            Fact::Resumed { life, .. } if !history.adrift.contains(&life) => self.goes_on(now, life),
            Fact::ClockRight { life } => self.goes_on(now, life),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::fact::Mark;
    use super::super::testing::{self, beside, blank, changed, config, delivered, found_alone, row};
    use super::*;

    /// A life of another program.
    const OTHER: LifeNo = 9;

    fn measure(facts: &[(u64, Fact)]) -> (Windows, usize) {
        let mut window = Window::new(&Terms { abort_us: 100_000, ..Terms::plain(config()) });
        let found = found_alone(&mut beside(OTHER), facts.iter().cloned(), |at, fact, history, verdict| {
            window.observe(at, fact, history, verdict)
        });
        (window.windows(), found)
    }

    fn ended(life: u32) -> Fact {
        testing::ended(life, 0)
    }

    #[test]
    fn the_window_is_measured_and_bounded() {
        let (windows, found) =
            measure(&[(0, delivered(0, 0, 1, 1)), (500, ended(0)), (600, delivered(1, 0, 1, 1))]);
        assert_eq!((windows.count, found), (0, 0));
        let (windows, found) =
            measure(&[(0, delivered(0, 0, 1, 1)), (500, delivered(1, 0, 1, 1)), (90_500, ended(0))]);
        assert_eq!((windows.longest_us, found), (90_000, 0));
        let (_, found) =
            measure(&[(0, delivered(0, 0, 1, 1)), (500, delivered(1, 0, 1, 1)), (900_500, ended(0))]);
        assert_eq!(found, 1);
    }

    #[test]
    fn a_process_that_stands_still_runs_nothing() {
        let resumed = Fact::Resumed { life: 0, stood: 800_000 };
        let (windows, found) = measure(&[
            (0, delivered(0, 0, 1, 1)),
            (500, delivered(1, 0, 1, 1)),
            (900_000, resumed),
            (900_500, ended(0)),
        ]);
        assert_eq!((windows.longest_us, found), (500, 0));
    }

    #[test]
    fn an_owner_whose_row_was_given_away_is_excused_for_a_while() {
        let owned = |owner: Option<LifeNo>| owner.map(|owner| row(Some(owner), 1, Mark::TrimHorizon));
        let belief = 2 * config().lease_duration().0;
        for (taken, blamed) in [(10, 0), (10 + belief, 1)] {
            let mut window = Window::new(&Terms { abort_us: 100_000, ..Terms::plain(config()) });
            window.written_over(5, 0);
            let take = changed(0, Some(1), Verb::Take, owned(None), owned(Some(1)));
            let facts = [
                (6, delivered(0, 0, 1, 1)),
                (taken, take),
                (taken + 1, delivered(1, 0, 1, 1)),
                (taken + 900_000, ended(0)),
            ];
            let found = found_alone(&mut blank(), facts, |at, fact, history, verdict| {
                window.observe(at, fact, history, verdict)
            });
            assert_eq!(found, blamed, "taken at {taken}");
        }
    }

    #[test]
    fn beside_a_program_without_the_lease_nobody_is_to_blame() {
        let owned = |owner| Some(row(Some(owner), 1, Mark::TrimHorizon));
        let take = |from, to| changed(0, Some(to), Verb::Take, owned(from), owned(to));
        let meets = |other: LifeNo| {
            [(10, delivered(0, 0, 1, 1)), (500, delivered(other, 0, 1, 1)), (900_500, ended(0))]
        };
        let judged = |facts: Vec<(u64, Fact)>| measure(&facts);
        let (windows, found) = judged([(5, take(OTHER, 0))].into_iter().chain(meets(OTHER)).collect());
        assert_eq!((windows.longest_us, found), (900_000, 0));
        let owns = [(5, take(0, OTHER))];
        assert_eq!(judged(owns.into_iter().chain(meets(OTHER)).collect()).1, 1);
        let without = [(1, delivered(OTHER, 0, 1, 1)), (2, ended(OTHER)), (5, take(1, 0))];
        assert_eq!(judged(without.into_iter().chain(meets(1)).collect()).1, 1);
        let beside_ours = vec![
            (5, take(OTHER, 0)),
            (10, delivered(OTHER, 0, 1, 1)),
            (500, delivered(0, 0, 1, 1)),
            (900_500, ended(OTHER)),
        ];
        assert_eq!(judged(beside_ours).1, 1, "it answers for its own run");
    }
}
