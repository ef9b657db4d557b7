//! `blocked-let-go`: a worker whose handlers block every thread of their runtime releases its leases within a bound,
//! and wants no other lease until the handlers run. No worker does so earlier, or for any other cause: one slow shard
//! is no reason.
//!
//! The bound: `give_up_after`, doubled for each earlier time in the same life, and the looks at the runtime. From then
//! on the worker renews, takes and requests no lease. A stolen lease is kept for a lease duration at most, since its
//! former owner may believe in the lease. Requests sent before may still bring a lease. Reads of the shards by other
//! workers are judged after the faults: some workers never run a handler again.

use super::fact::{Ask, How, Verb};
use super::{EVENTS, Fact, History, LifeNo, Property, REQUESTS, Sees, ShardNo, Terms, Time, Verdict};
use leasehold_engine::time::Span;
use std::collections::{BTreeMap, BTreeSet};

#[derive(Clone, Copy, Debug, Default)]
struct Life {
    /// Since when no handler can run; and the earliest time when the worker could notice.
    blocked: Option<(Time, Time)>,
    /// The number of earlier blocks.
    before: u32,
    /// The worker was told to stop, and releases all leases at its own pace.
    stopping: bool,
}

#[derive(Clone, Debug)]
pub(super) struct Standstill {
    /// In true time, in µs: the least and the greatest time of kept leases at the first block; and the time for work
    /// begun before. Absent: some worker keeps its leases.
    limits: Option<(u64, u64, u64)>,
    lives: BTreeMap<LifeNo, Life>,
    /// Leases with a failed last request: the worker repeats the request, whatever its purpose.
    troubled: BTreeSet<(LifeNo, ShardNo)>,
}

/// A blocked runtime is noticed after half a lease, and after this time at most; then again and again, a fifth of the
/// time apart.
const PATIENCE: Span = Span::from_secs(5);
/// Events at a deadline take a moment.
const SLACK_US: u64 = 250_000;

impl Standstill {
    pub(super) const SEES: Sees = Sees::ours(REQUESTS | EVENTS);

    pub(super) fn new(terms: &Terms) -> Self {
        let least = terms.least(|config| config.give_up_after());
        let most = terms.most(|config| config.give_up_after());
        let lease = terms.most(|config| config.lease_duration());
        let looks = PATIENCE.min(lease.per(2)).times(2);
        let requests = terms.most(|config| config.table_timeout()).times(3);
        let limits = (least > Span::ZERO).then(|| {
            let kept = terms.at_least(least).saturating_sub(2);
            let after = terms.at_most(looks) + terms.at_most(lease) + terms.at_most(requests) + SLACK_US;
            (kept, terms.at_most(most), after)
        });
        Self { limits, lives: BTreeMap::new(), troubled: BTreeSet::new() }
    }

    pub(super) fn observe(&mut self, now: Time, fact: &Fact, _: &History, verdict: &mut Verdict) {
        match *fact {
            Fact::Blocked { life } => self.lives.entry(life).or_default().blocked = Some((now, now)),
            Fact::Unblocked { life } => {
                let life = self.lives.entry(life).or_default();
                life.blocked = None;
                life.before += 1;
            }
            // A paused worker noticed no block.
            Fact::Resumed { life, .. } => {
                if let Some((_, noticed)) = &mut self.lives.entry(life).or_default().blocked {
                    *noticed = now;
                }
            }
            Fact::ShutdownAsked { life } | Fact::GivesUp { life } => {
                self.lives.entry(life).or_default().stopping = true;
            }
            Fact::Died { life } | Fact::Stopped { life, .. } => drop(self.lives.remove(&life)),
            Fact::LetsGo { life } => self.judge_early(now, life, verdict),
            Fact::Answered { life, ask: Ask::Write(_) | Ask::Read, about: Some(shard), how, .. } => {
                match how {
                    How::Applied => self.troubled.remove(&(life, shard)),
                    _ => self.troubled.insert((life, shard)),
                };
            }
            Fact::Asked {
                life,
                ask: Ask::Write(verb @ (Verb::Renew | Verb::Take | Verb::Claim)),
                about: Some(shard),
                ..
            } => self.judge_late(now, life, (verb, shard), verdict),
            _ => {}
        }
    }

    /// Judges the release of a worker's leases.
    fn judge_early(&self, now: Time, no: LifeNo, verdict: &mut Verdict) {
        let since = self.lives.get(&no).and_then(|life| life.blocked);
        let so_far = since.map(|(since, _)| now - since);
        let kept = self.limits.map_or(0, |(kept, ..)| kept);
        if so_far.is_some_and(|so_far| so_far >= kept) {
            return;
        }
        verdict.report(Property::BlockedLetGo, now, || match so_far {
            None => format!("life {no} lets go of its leases, and its handlers can run"),
            Some(so_far) => format!(
                "life {no} lets go of its leases after {} ms in which no handler could run, {} ms are to be waited for",
                so_far / 1_000,
                kept / 1_000
            ),
        });
    }

    fn judge_late(&mut self, now: Time, no: LifeNo, (verb, shard): (Verb, ShardNo), verdict: &mut Verdict) {
        let Some((_, first, after)) = self.limits else {
            return;
        };
        let troubled = self.troubled.contains(&(no, shard));
        let Some(life) = self.lives.get_mut(&no).filter(|_| !troubled) else {
            return;
        };
        let Some((_, noticed)) = life.blocked.filter(|_| !life.stopping) else {
            return;
        };
        let bound = (first << life.before.min(7)) + after;
        let so_far = now - noticed;
        if so_far <= bound {
            return;
        }
        // One report is enough.
        life.blocked = Some((now, now));
        verdict.report(Property::BlockedLetGo, now, || {
            format!(
                "life {no} asks for a write to the lease of shard {shard} ({verb:?}) although no handler of its could run for {} ms, \
                 {} ms are allowed",
                so_far / 1_000,
                bound / 1_000
            )
        });
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{answered, asked, config, count_under};
    use super::*;

    const SECOND: Time = 1_000_000;

    /// The number of violations if no handler of life 0 can run from the first second on, and leases are kept for
    /// twenty seconds.
    fn judged(then: &[(Time, Fact)]) -> usize {
        let terms = Terms::plain(config().with_give_up_after(Span::from_secs(20)));
        let mut facts = vec![(SECOND, Fact::Blocked { life: 0 })];
        facts.extend(then.iter().cloned());
        count_under(&terms, Property::BlockedLetGo, facts)
    }

    fn write(second: Time, verb: Verb) -> (Time, Fact) {
        let at = second * SECOND;
        (at, asked(0, Ask::Write(verb), 3, at, 1, at))
    }

    fn lets_go(second: Time) -> (Time, Fact) {
        (second * SECOND, Fact::LetsGo { life: 0 })
    }

    #[test]
    fn leases_are_let_go_of_within_the_bound_and_none_is_taken() {
        assert_eq!(judged(&[write(15, Verb::Renew), lets_go(22)]), 0);
        assert_eq!(judged(&[lets_go(22), write(30, Verb::Renew)]), 0, "it was stolen before");
        for verb in [Verb::Renew, Verb::Take, Verb::Claim] {
            assert_eq!(judged(&[write(100, verb), write(101, verb)]), 1, "{verb:?}");
        }
        let fails = answered(0, Ask::Write(Verb::Renew), 3, 1, How::Unknown);
        let again = [(99 * SECOND, fails), write(100, Verb::Renew)];
        assert_eq!(judged(&again), 0, "it is made again");
        for verb in [Verb::Release, Verb::HandOver, Verb::Checkpoint] {
            assert_eq!(judged(&[write(100, verb)]), 0, "{verb:?}");
        }
        let runs = (30 * SECOND, Fact::Unblocked { life: 0 });
        assert_eq!(judged(&[lets_go(22), runs.clone(), write(100, Verb::Take)]), 0);
        let again = (40 * SECOND, Fact::Blocked { life: 0 });
        let [twice, late] = [write(95, Verb::Renew), write(130, Verb::Renew)];
        assert_eq!(judged(&[runs.clone(), again.clone(), twice]), 0, "it waits for twice as long");
        assert_eq!(judged(&[runs, again, late]), 1);
    }

    #[test]
    fn nothing_else_is_a_reason_to_let_go_and_not_so_soon() {
        assert_eq!(judged(&[lets_go(15)]), 1);
        let runs = (5 * SECOND, Fact::Unblocked { life: 0 });
        assert_eq!(judged(&[runs, lets_go(60)]), 1);
    }

    #[test]
    fn who_stood_still_or_stops_is_excused() {
        let stood = 90 * SECOND;
        let goes_on = (95 * SECOND, Fact::Resumed { life: 0, stood });
        assert_eq!(judged(&[goes_on, write(100, Verb::Renew)]), 0);
        let stops = (5 * SECOND, Fact::ShutdownAsked { life: 0 });
        assert_eq!(judged(&[stops, write(100, Verb::Renew)]), 0);
        let dies = (5 * SECOND, Fact::Died { life: 0 });
        assert_eq!(judged(&[dies, write(100, Verb::Renew)]), 0);
    }
}
