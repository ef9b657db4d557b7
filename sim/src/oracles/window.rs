//! P18: the time during which two workers run handlers for one shard is measured, and bounded.
//!
//! A belief that lapsed ends no handler by itself: it is asked to stop, and takes its time. The bound is that time, plus
//! what a handler that does not listen takes. A process that stands still runs nothing.

use super::{Fact, LifeNo, Property, ShardNo, Terms, Time, Verdict};
use serde::Serialize;
use std::collections::BTreeSet;

/// What was measured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Windows {
    /// How often two workers ran handlers for one shard at the same time.
    pub count: u64,
    /// For how long at most, in µs.
    pub longest_us: u64,
}

#[derive(Clone, Copy, Debug)]
struct Run {
    life: LifeNo,
    token: u64,
    /// Since when another worker has been at the shard as well.
    met: Option<Time>,
    /// Its worker stands still: nothing runs.
    stands: bool,
}

#[derive(Clone, Debug)]
pub(super) struct Window {
    bound: Option<u64>,
    shards: Vec<Vec<Run>>,
    /// Their rows were removed by a person, and may look as they did long before.
    removed: BTreeSet<ShardNo>,
    windows: Windows,
}

const SLACK_US: u64 = 50_000;

impl Window {
    pub(super) fn new(terms: &Terms) -> Self {
        let binding = !terms.clocks_beyond && terms.least(|config| config.settle_stolen);
        let bound = binding.then_some(terms.abort_us + terms.deaf_us + SLACK_US);
        Self {
            bound,
            shards: Vec::new(),
            removed: BTreeSet::new(),
            windows: Windows::default(),
        }
    }

    pub(super) fn windows(&self) -> Windows {
        self.windows
    }

    fn end(&mut self, now: Time, shard: ShardNo, verdict: &mut Verdict, over: impl Fn(&Run) -> bool) {
        let Some(runs) = self.shards.get_mut(shard as usize) else {
            return;
        };
        let Some(index) = runs.iter().position(over) else {
            return;
        };
        let ended = runs.remove(index);
        self.measure(now, shard, ended, verdict);
    }

    /// For how long this run was not the only worker's.
    fn measure(&mut self, now: Time, shard: ShardNo, run: Run, verdict: &mut Verdict) {
        let Some(met) = run.met.filter(|_| !run.stands) else {
            return;
        };
        let length = now.saturating_sub(met);
        self.windows.count += 1;
        self.windows.longest_us = self.windows.longest_us.max(length);
        let bound = self.bound.filter(|_| !self.removed.contains(&shard));
        if bound.is_some_and(|bound| length > bound) {
            let life = run.life;
            verdict.report(Property::P18, now, || {
                format!(
                    "a handler of life {life} ran for shard {shard} for {} ms after another worker's had begun",
                    length / 1_000
                )
            });
        }
    }

    pub(super) fn observe(&mut self, now: Time, fact: &Fact, verdict: &mut Verdict) {
        match *fact {
            Fact::Delivered {
                life, shard, token, ..
            } => {
                let index = shard as usize;
                if self.shards.len() <= index {
                    self.shards.resize_with(index + 1, Vec::new);
                }
                let runs = &mut self.shards[index];
                for other in runs.iter_mut().filter(|run| run.life != life) {
                    other.met.get_or_insert(now);
                }
                runs.push(Run {
                    life,
                    token,
                    met: None,
                    stands: false,
                });
            }
            Fact::HandlerEnded { life, shard, token } => {
                self.end(now, shard, verdict, |run| run.life == life && run.token == token);
            }
            Fact::Died { life } => {
                for shard in 0..self.shards.len() as ShardNo {
                    self.end(now, shard, verdict, |run| run.life == life);
                }
            }
            Fact::RowChanged {
                shard,
                verb: None,
                after: None,
                ..
            } => {
                self.removed.insert(shard);
            }
            Fact::Paused { life } => {
                for shard in 0..self.shards.len() {
                    let Some(run) = self.shards[shard].iter_mut().find(|run| run.life == life) else {
                        continue;
                    };
                    let stopped = *run;
                    run.stands = true;
                    self.measure(now, shard as ShardNo, stopped, verdict);
                }
            }
            Fact::Resumed { life, .. } => {
                for runs in &mut self.shards {
                    let others = runs.iter().any(|run| run.life != life && !run.stands);
                    for run in runs.iter_mut().filter(|run| run.life == life) {
                        run.stands = false;
                        run.met = others.then_some(now);
                    }
                }
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::history::{config, delivered};
    use super::*;

    fn measure(facts: &[(u64, Fact)]) -> (Windows, usize) {
        let mut window = Window::new(&Terms {
            abort_us: 100_000,
            ..Terms::plain(config())
        });
        let mut verdict = Verdict::default();
        for (at, fact) in facts {
            window.observe(*at, fact, &mut verdict);
        }
        (window.windows(), verdict.violations().len())
    }

    fn ended(life: u32) -> Fact {
        Fact::HandlerEnded {
            life,
            shard: 0,
            token: 1,
        }
    }

    #[test]
    fn the_window_is_measured_and_bounded() {
        let (windows, found) = measure(&[
            (0, delivered(0, 0, 1, 1)),
            (500, ended(0)),
            (600, delivered(1, 0, 1, 1)),
        ]);
        assert_eq!((windows.count, found), (0, 0));
        let (windows, found) = measure(&[
            (0, delivered(0, 0, 1, 1)),
            (500, delivered(1, 0, 1, 1)),
            (90_500, ended(0)),
        ]);
        assert_eq!((windows.longest_us, found), (90_000, 0));
        let (_, found) = measure(&[
            (0, delivered(0, 0, 1, 1)),
            (500, delivered(1, 0, 1, 1)),
            (900_500, ended(0)),
        ]);
        assert_eq!(found, 1);
    }

    #[test]
    fn a_process_that_stands_still_runs_nothing() {
        let resumed = Fact::Resumed {
            life: 0,
            stood: 800_000,
        };
        let (windows, found) = measure(&[
            (0, delivered(0, 0, 1, 1)),
            (500, delivered(1, 0, 1, 1)),
            (900_000, resumed),
            (900_500, ended(0)),
        ]);
        assert_eq!((windows.longest_us, found), (500, 0));
    }
}
