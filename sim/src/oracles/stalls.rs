//! `stalls-reported`: a held shard that is behind and does not move is noticed in bounded time.
//!
//! A worker may take twice the configured time: the end of a shard, invisible from outside, counts as movement.

use super::{EVENTS, Fact, History, LifeNo, Property, READS, Sees, ShardNo, Terms, Time, Verdict};
use leasehold_engine::time::Span;
use std::collections::{BTreeMap, BTreeSet};

/// The longest time between two looks, and the moment for events at a deadline.
const SLACK_US: u64 = 3_000_000;
/// A shorter wait for an event of an idle shard is ordinary.
const EVENT_PAUSE: Span = Span::from_secs(6);

#[derive(Clone, Copy, Debug)]
struct Behind {
    since: Time,
    /// The last look that found the shard behind.
    seen: Time,
    reported: bool,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Stalls {
    /// The latest time for a report, in us.
    bound_us: Time,
    behind: BTreeMap<(LifeNo, ShardNo), Behind>,
    noticed: BTreeSet<(LifeNo, ShardNo)>,
    /// Shards paused by the application.
    paused: BTreeSet<(LifeNo, ShardNo)>,
    /// The last record of each shard handed over.
    given: BTreeMap<(LifeNo, ShardNo), u64>,
}

impl Stalls {
    pub(super) const SEES: Sees = Sees::all(READS | EVENTS);

    pub(super) fn new(terms: &Terms) -> Self {
        let (least, most) =
            (terms.least(|config| config.stall_after()), terms.most(|config| config.stall_after()));
        let subscribes = terms.most(|config| !config.reader().mode().is_polling());
        let ordinary = if subscribes { EVENT_PAUSE } else { Span::ZERO };
        let bound_us = match least {
            Span::ZERO => Time::MAX,
            _ => terms.at_most(most.times(2).max(ordinary)) + SLACK_US,
        };
        Self { bound_us, ..Self::default() }
    }

    fn moves(&mut self, life: LifeNo, shard: ShardNo) {
        self.behind.remove(&(life, shard));
    }

    pub(super) fn observe(&mut self, now: Time, fact: &Fact, history: &History, verdict: &mut Verdict) {
        match *fact {
            Fact::Behind { life, shard } if self.paused.contains(&(life, shard)) => {}
            Fact::Behind { life, shard } if !history.told_to_stop.contains(&life) => {
                let noticed = self.noticed.contains(&(life, shard));
                let behind = self.behind.entry((life, shard)).or_insert(Behind {
                    since: now,
                    seen: now,
                    reported: false,
                });
                behind.seen = now;
                let since = behind.since;
                if !noticed && !behind.reported && now - since > self.bound_us {
                    behind.reported = true;
                    verdict.report(Property::StallsReported, now, || {
                        format!(
                            "life {life} has held shard {shard} for {} ms without moving it, and has not said so",
                            (now - since) / 1_000
                        )
                    });
                }
            }
            Fact::Stalled { life, shard } => {
                self.noticed.insert((life, shard));
            }
            Fact::Moving { life, shard } => {
                self.noticed.remove(&(life, shard));
                self.moves(life, shard);
            }
            Fact::Processed { life, shard, .. } | Fact::OpenDone { life, shard, .. } => {
                self.noticed.remove(&(life, shard));
                self.moves(life, shard);
            }
            // A further batch proves that the handler finished the batch before, though the handler may keep an earlier
            // batch.
            Fact::Delivered { life, shard, last, .. } => {
                let before = self.given.insert((life, shard), last);
                if before.is_some_and(|before| before < last) {
                    self.moves(life, shard);
                }
            }
            // A report from before a shard's close holds on while its lease cannot be released.
            Fact::Closed { life, shard, .. } | Fact::ResumeAsked { life, shard } => {
                self.paused.remove(&(life, shard));
                self.moves(life, shard);
            }
            Fact::PauseAsked { life, shard } => {
                self.paused.insert((life, shard));
            }
            Fact::Paused { life } | Fact::Resumed { life, .. } => {
                self.behind.retain(|(of, _), _| *of != life);
            }
            Fact::Died { life } | Fact::Stopped { life, .. } => {
                self.behind.retain(|(of, _), _| *of != life);
                self.noticed.retain(|(of, _)| *of != life);
                self.paused.retain(|(of, _)| *of != life);
                self.given.retain(|(of, _), _| *of != life);
            }
            _ => {}
        }
    }

    /// A shard not found behind at this time is not behind.
    pub(super) fn look(&mut self, now: Time) {
        self.behind.retain(|_, behind| behind.seen == now);
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{config, count_under, processed};
    use super::*;

    const SECOND: Time = 1_000_000;

    /// The number of violations if shard 1 is behind for a minute, with these facts besides.
    fn minute(others: &[(Time, Fact)]) -> usize {
        let terms = Terms::plain(config().with_stall_after(Span::from_secs(10)));
        let behind = Fact::Behind { life: 0, shard: 1 };
        let mut facts: Vec<(Time, Fact)> = (0..60).map(|n| (n * SECOND, behind.clone())).collect();
        facts.extend(others.iter().cloned());
        facts.sort_by_key(|(at, _)| *at);
        count_under(&terms, Property::StallsReported, facts)
    }

    #[test]
    fn a_shard_that_stands_still_must_be_reported() {
        assert_eq!(minute(&[]), 1);
        let stalled = Fact::Stalled { life: 0, shard: 1 };
        assert_eq!(minute(&[(20 * SECOND, stalled.clone())]), 0);
        assert_eq!(minute(&[(50 * SECOND, stalled)]), 1, "too late");
        let other = Fact::Stalled { life: 0, shard: 2 };
        assert_eq!(minute(&[(20 * SECOND, other)]), 1, "of another shard");
    }

    #[test]
    fn a_moving_shard_need_not_be_reported() {
        let moves: Vec<_> = (1..6).map(|n| (n * 10 * SECOND, processed(0, 1, n))).collect();
        assert_eq!(minute(&moves), 0);
        let stood = Fact::Resumed { life: 0, stood: 1 };
        assert_eq!(
            minute(&[
                (10 * SECOND, stood.clone()),
                (20 * SECOND, stood.clone()),
                (40 * SECOND, stood.clone())
            ]),
            0
        );
        assert_eq!(minute(&[(15 * SECOND, stood)]), 1, "it stands still afterwards as well");
        assert_eq!(minute(&[(5 * SECOND, Fact::ShutdownAsked { life: 0 })]), 0);
    }

    #[test]
    fn a_paused_shard_may_go_unreported_and_a_resumed_one_may_not() {
        let (life, shard) = (0, 1);
        let pause = (5 * SECOND, Fact::PauseAsked { life, shard });
        let resume = |at| (at, Fact::ResumeAsked { life, shard });
        assert_eq!(minute(std::slice::from_ref(&pause)), 0);
        assert_eq!(minute(&[pause.clone(), resume(50 * SECOND)]), 0);
        assert_eq!(minute(&[pause, resume(10 * SECOND)]), 1);
        assert_eq!(minute(&[(5 * SECOND, Fact::PauseAsked { life, shard: 2 })]), 1);
    }
}
