//! `calls-end`: with `handler_timeout`, a handler's call is told to stop at the limit, and no call is told before.
//!
//! The end of the call is the handler's own affair: a handler that blocks its thread ends the call when the thread is
//! free again. A paused worker tells no handler to stop, and the worker's clock may stand meanwhile.

use super::{EVENTS, Fact, History, LifeNo, Property, Sees, ShardNo, Terms, Time, Verdict};
use leasehold_engine::time::Span;
use std::collections::BTreeMap;

#[derive(Clone, Copy, Debug)]
struct Call {
    began: Time,
    /// The first time at which the worker could notice the call's length.
    seen: Time,
    /// The call was told to stop.
    told: bool,
    stands: bool,
}

#[derive(Clone, Debug)]
pub(super) struct Calls {
    /// The limits of a call in true time, in µs: the earliest and the latest time for the stop. Absent: some worker has
    /// no limit.
    limits: Option<(u64, u64)>,
    running: BTreeMap<(LifeNo, ShardNo), Call>,
    /// The last time when a life's handlers ran again, after their runtime was blocked.
    unblocked: BTreeMap<LifeNo, Time>,
}

/// Events at a deadline take a moment.
const SLACK_US: u64 = 250_000;

impl Calls {
    pub(super) const SEES: Sees = Sees::ours(EVENTS);

    pub(super) fn new(terms: &Terms) -> Self {
        let least = terms.least(|config| config.handler_timeout());
        let most = terms.most(|config| config.handler_timeout());
        let limits = (least > Span::ZERO).then(|| {
            // A clock shows whole microseconds.
            let at_least = terms.at_least(least).saturating_sub(2);
            (at_least, terms.at_most(most) + SLACK_US)
        });
        Self { limits, running: BTreeMap::new(), unblocked: BTreeMap::new() }
    }

    fn of_life(&mut self, life: LifeNo) -> impl Iterator<Item = &mut Call> {
        let of = (life, 0)..=(life, ShardNo::MAX);
        self.running.range_mut(of).map(|(_, call)| call)
    }

    pub(super) fn observe(&mut self, now: Time, fact: &Fact, _: &History, verdict: &mut Verdict) {
        let Some((least, _)) = self.limits else { return };
        match *fact {
            Fact::Delivered { life, shard, .. } => {
                let call = Call { began: now, seen: now, told: false, stands: false };
                self.running.insert((life, shard), call);
            }
            Fact::TimedOut { life, shard, .. } => {
                // The opening of a shard, a record set aside and a flush have limits, too.
                let Some(call) = self.running.get_mut(&(life, shard)) else {
                    return;
                };
                call.told = true;
                let took = now - call.began;
                // A call requested from a blocked runtime begins late, and counts from the request.
                let was_blocked = self.unblocked.get(&life).is_some_and(|at| at + least > now);
                if took < least && !was_blocked {
                    verdict.report(Property::CallsEnd, now, || {
                        format!(
                            "life {life} told the handler of shard {shard} after {} ms that it took too long, {} ms are allowed",
                            took / 1_000,
                            least / 1_000
                        )
                    });
                }
            }
            Fact::Aborted { life, shard, .. } => {
                if let Some(call) = self.running.get_mut(&(life, shard)) {
                    call.told = true;
                }
            }
            Fact::HandlerEnded { life, shard, .. } => {
                self.judge(now, life, shard, verdict);
                self.running.remove(&(life, shard));
            }
            Fact::Unblocked { life } => drop(self.unblocked.insert(life, now)),
            Fact::Paused { life } => self.of_life(life).for_each(|call| call.stands = true),
            Fact::Resumed { life, .. } => self.of_life(life).for_each(|call| {
                (call.seen, call.stands) = (now, false);
            }),
            Fact::Died { life } | Fact::Stopped { life, .. } => self.running.retain(|(of, _), _| *of != life),
            _ => {}
        }
    }

    /// A missing stop is found only by a look.
    pub(super) fn look(&mut self, now: Time, verdict: &mut Verdict) {
        let running: Vec<_> = self.running.keys().copied().collect();
        for (life, shard) in running {
            self.judge(now, life, shard, verdict);
        }
    }

    fn judge(&mut self, now: Time, life: LifeNo, shard: ShardNo, verdict: &mut Verdict) {
        let Some((_, most)) = self.limits else { return };
        let known = self.running.get_mut(&(life, shard));
        let Some(call) = known.filter(|call| !call.told && !call.stands && now - call.seen > most) else {
            return;
        };
        call.told = true;
        let took = now - call.began;
        verdict.report(Property::CallsEnd, now, || {
            format!(
                "the handler of shard {shard} at life {life} took {} ms and was not told to stop, {} ms are allowed",
                took / 1_000,
                most / 1_000
            )
        });
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{self, config, count_under, delivered, judge_under};
    use super::*;

    const SECOND: Time = 1_000_000;

    /// The number of violations of a call with a limit of ten seconds, in a shard of life 0, with these facts after the
    /// call's beginning.
    fn judged(then: &[(Time, Fact)]) -> usize {
        let terms = Terms::plain(config().with_handler_timeout(Span::from_secs(10)));
        let mut facts = vec![(SECOND, delivered(0, 1, 1, 5))];
        facts.extend(then.iter().cloned());
        facts.push((60 * SECOND, Fact::Said { life: 0 }));
        count_under(&terms, Property::CallsEnd, facts)
    }

    #[test]
    fn a_call_asked_of_a_blocked_runtime_counts_from_its_request() {
        assert_eq!(judged(&[told(5), ended(6)]), 1, "too early");
        let runs = |second| (second * SECOND, Fact::Unblocked { life: 0 });
        assert_eq!(judged(&[runs(1), told(5), ended(6)]), 0);
    }

    fn told(second: Time) -> (Time, Fact) {
        let (life, shard, token) = (0, 1, 1);
        (second * SECOND, Fact::TimedOut { life, shard, token })
    }

    fn ended(second: Time) -> (Time, Fact) {
        (second * SECOND, testing::ended(0, 1))
    }

    #[test]
    fn a_call_is_told_when_its_time_is_over_and_not_before() {
        assert_eq!(judged(&[ended(5)]), 0);
        assert_eq!(judged(&[told(11), ended(40)]), 0, "it need not listen");
        assert_eq!(judged(&[]), 1, "it was never told");
        assert_eq!(judged(&[ended(20)]), 1, "it was not told in time");
        assert_eq!(judged(&[told(5), ended(6)]), 1, "it had more time");
        let (life, shard, token) = (0, 1, 1);
        let aborted = Fact::Aborted { life, shard, token };
        assert_eq!(judged(&[(5 * SECOND, aborted)]), 0, "it was told for another reason");
    }

    #[test]
    fn who_stands_still_tells_nothing_and_tells_it_when_it_goes_on() {
        let (stands, stood) = (Fact::Paused { life: 0 }, 40 * SECOND);
        let goes_on = |second: Time| (second * SECOND, Fact::Resumed { life: 0, stood });
        assert_eq!(judged(&[(5 * SECOND, stands.clone()), goes_on(45), told(45)]), 0);
        assert_eq!(judged(&[(5 * SECOND, stands.clone()), goes_on(55)]), 0);
        assert_eq!(judged(&[(5 * SECOND, stands), goes_on(30)]), 1);
        assert_eq!(judged(&[(5 * SECOND, Fact::Died { life: 0 })]), 0);
    }

    #[test]
    fn without_a_limit_a_call_takes_as_long_as_it_likes() {
        let facts = vec![(1, delivered(0, 1, 1, 5)), (90 * SECOND, Fact::Said { life: 0 })];
        let found = judge_under(&Terms::plain(config()), facts);
        assert!(!found.contains(&Property::CallsEnd), "{found:?}");
    }
}
