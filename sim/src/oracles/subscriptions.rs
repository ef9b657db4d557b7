//! `requests-bounded`, for subscriptions: a worker calls for a subscription to a shard once a second at most, by its own clock; and one
//! event of a shard is awaited at a time, so that the service pushes no faster than the shard is processed.
//!
//! `shards-independent`, for subscriptions: no event is awaited for longer than 20 s, so that a lost subscription is noticed. Where every
//! worker may subscribe, a shard is not read by polling for ever: a worker that has subscribed to some shard calls for a subscription
//! again.

use super::fact::{Ask, How};
use super::{EVENTS, Fact, History, LifeNo, Property, REQUESTS, Sees, ShardNo, Terms, Time, Verdict};
use leasehold_engine::time::{Mono, Span};
use std::collections::{BTreeMap, BTreeSet};

/// The limit of the service.
const APART: Span = Span::from_secs(1);

/// The longest pause between two calls, the registration of a consumer, and the proof of an end.
const BACK_US: u64 = 150_000_000;
/// A worker gives a silent subscription up after this time.
const SILENCE: Span = Span::from_secs(20);
const SLACK_US: u64 = 1_000_000;
/// After a pause of this length between two reads, polling of a shard begins anew.
const RESTS_US: u64 = 30_000_000;

#[derive(Clone, Debug, Default)]
pub(super) struct Subscriptions {
    called: BTreeMap<(LifeNo, ShardNo), Mono>,
    /// The lives that have subscribed to some shard: their consumer was found.
    subscribers: BTreeSet<LifeNo>,
    /// Since when a shard is read by polling alone, and the last of these reads.
    polled: BTreeMap<(LifeNo, ShardNo), (Time, Time)>,
    /// Whether every worker may subscribe.
    all_may: bool,
    /// The op of the awaited event.
    awaited: BTreeMap<(LifeNo, ShardNo), u64>,
    /// Since when the event is awaited. Absent: the worker stood still meanwhile.
    since: BTreeMap<(LifeNo, u64), Time>,
    /// The longest wait for an event, in µs.
    silence: u64,
}

impl Subscriptions {
    pub(super) const SEES: Sees = Sees::ours(REQUESTS | EVENTS);

    pub(super) fn new(terms: &Terms) -> Self {
        let all_may = terms.least(|config| !config.reader().mode().is_polling());
        Self { all_may, silence: terms.at_most(SILENCE), ..Self::default() }
    }

    pub(super) fn observe(&mut self, now: Time, fact: &Fact, _: &History, verdict: &mut Verdict) {
        match *fact {
            Fact::Asked { life, ask: Ask::Subscribe, about: Some(shard), local, .. } => {
                // A new subscription takes the place of the former one.
                self.awaited.remove(&(life, shard));
                self.polled.remove(&(life, shard));
                let before = self.called.insert((life, shard), local);
                if before.is_some_and(|before| local.since(before) < APART) {
                    verdict.report(Property::RequestsBounded, now, || {
                        format!("life {life} calls for a subscription to shard {shard} twice within {APART}")
                    });
                }
            }
            Fact::Asked { life, ask: Ask::GetIterator, about: Some(shard), .. } => {
                self.awaited.remove(&(life, shard));
            }
            Fact::Asked { life, ask: Ask::NextEvent, about: Some(shard), op, .. } => {
                self.since.insert((life, op), now);
                if let Some(before) = self.awaited.insert((life, shard), op) {
                    verdict.report(Property::RequestsBounded, now, || {
                        format!("life {life} awaits two events of shard {shard}, ops {before} and {op}")
                    });
                }
            }
            // The next owner of this process waits for nothing of a former ownership.
            Fact::HoldsNoMore { life, shard } | Fact::OpenBegun { life, shard, .. } => {
                self.awaited.remove(&(life, shard));
                self.called.remove(&(life, shard));
                self.polled.remove(&(life, shard));
            }
            Fact::Answered { life, ask: Ask::NextEvent, about: Some(shard), op, .. } => {
                if self.awaited.get(&(life, shard)) == Some(&op) {
                    self.awaited.remove(&(life, shard));
                }
                let waited = self.since.remove(&(life, op)).map_or(0, |since| now - since);
                if waited > self.silence + SLACK_US {
                    verdict.report(Property::ShardsIndependent, now, || {
                        format!("life {life} has awaited an event of shard {shard} for {} ms", waited / 1_000)
                    });
                }
            }
            Fact::Answered { life, ask: Ask::Subscribe, how: How::Applied, .. } => {
                self.subscribers.insert(life);
            }
            Fact::Answered { life, ask: Ask::GetRecords, about: Some(shard), how: How::Applied, .. } => {
                self.polls(now, (life, shard), verdict);
            }
            // The worker stood still.
            Fact::Resumed { life, .. } => {
                self.polled.retain(|(of, _), _| *of != life);
                self.since.retain(|(of, _), _| *of != life);
            }
            Fact::Died { life } | Fact::Stopped { life, .. } => {
                self.subscribers.remove(&life);
                self.since.retain(|(of, _), _| *of != life);
                self.polled.retain(|(of, _), _| *of != life);
                self.called.retain(|(of, _), _| *of != life);
                self.awaited.retain(|(of, _), _| *of != life);
            }
            _ => {}
        }
    }

    fn polls(&mut self, now: Time, (life, shard): (LifeNo, ShardNo), verdict: &mut Verdict) {
        let (since, last) = self.polled.entry((life, shard)).or_insert((now, now));
        if now - std::mem::replace(last, now) > RESTS_US {
            // The shard was not read at all meanwhile.
            *since = now;
        }
        let polled = now - *since;
        if self.all_may && polled > BACK_US && self.subscribers.contains(&life) {
            *since = now;
            verdict.report(Property::ShardsIndependent, now, || {
                format!(
                    "life {life} has read shard {shard} by polling alone for {} s, and has not called for a subscription",
                    polled / 1_000_000
                )
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{answered, asked, at_once, config, count, count_under};
    use super::*;
    use leasehold_engine::config::ReadMode;

    fn found(facts: &[Fact]) -> usize {
        count(Property::RequestsBounded, at_once(facts))
    }

    #[test]
    fn one_event_is_awaited_at_a_time() {
        let event = |op| asked(0, Ask::NextEvent, 0, op, 0, 0);
        let came = |op| answered(0, Ask::NextEvent, 0, op, How::Applied);
        assert_eq!(found(&[event(1), came(1), event(2)]), 0);
        assert_eq!(found(&[event(1), event(2)]), 1);
        assert_eq!(found(&[event(1), Fact::Died { life: 0 }, event(2)]), 0);
    }

    #[test]
    fn polling_for_ever_is_found_where_all_may_subscribe() {
        let found = |mode, again: bool| {
            let reader = config().reader().clone().with_mode(mode);
            let terms = Terms::plain(config().with_reader(reader));
            let polled = |at| (at, answered(0, Ask::GetRecords, 0, 2, How::Applied));
            let facts = [
                (1, asked(0, Ask::Subscribe, 7, 1, 0, 0)),
                (2, answered(0, Ask::Subscribe, 7, 1, How::Applied)),
            ];
            let reads = (1..=8).map(|n| polled(n * 20_000_000));
            let mut facts: Vec<_> = facts.into_iter().chain(reads).collect();
            if again {
                facts.push((165_000_000, asked(0, Ask::Subscribe, 0, 3, 0, 165_000_000)));
            }
            facts.push(polled(175_000_000));
            count_under(&terms, Property::ShardsIndependent, facts)
        };
        assert_eq!(found(ReadMode::Auto, false), 1);
        assert_eq!(found(ReadMode::Auto, true), 0);
        assert_eq!(found(ReadMode::Polling, false), 0);
    }

    #[test]
    fn a_silent_subscription_is_given_up() {
        let waits = |us, resumed: bool| {
            let mut facts = vec![(1, asked(0, Ask::NextEvent, 0, 1, 0, 0))];
            facts.extend(resumed.then_some((2, Fact::Resumed { life: 0, stood: 1 })));
            facts.push((us, answered(0, Ask::NextEvent, 0, 1, How::Unknown)));
            count(Property::ShardsIndependent, facts)
        };
        assert_eq!((waits(20_500_000, false), waits(23_000_000, false), waits(60_000_000, true)), (0, 1, 0));
    }

    #[test]
    fn calls_are_a_second_apart() {
        let call = |local| asked(0, Ask::Subscribe, 0, 1, 0, local);
        assert_eq!(found(&[call(0), call(1_000_000)]), 0);
        assert_eq!(found(&[call(0), call(999_999)]), 1);
    }
}
