//! `requests-bounded`, for takes of an unchanged row: a worker repeats takes without effect after growing pauses.
//!
//! In any window of 20 s, counted from its first take, one life takes a lease no more than `R` + 8 times without a change
//! of the row, as far as answers are refusals or the results are unknown. `R` = 2·(log2(`retry_max/retry_min`) +
//! `W/retry_max`) + 4 allows for doubling pauses. `cost` allows more: it counts renewals of a lease, too.

use super::fact::{Ask, How, Verb};
use super::{EVENTS, Fact, History, LifeNo, Property, REQUESTS, ROWS, Sees, ShardNo, Terms, Time, Verdict};
use leasehold_engine::time::Span;
use std::collections::BTreeMap;

const WINDOW_US: u64 = 20_000_000;

#[derive(Clone, Copy, Debug)]
struct Takes {
    since: Time,
    number: u64,
}

#[derive(Clone, Debug)]
pub(super) struct Vain {
    allowed: u64,
    takes: BTreeMap<(LifeNo, ShardNo), Takes>,
}

impl Vain {
    pub(super) const SEES: Sees = Sees::ours(REQUESTS | ROWS | EVENTS).others(ROWS);

    pub(super) fn new(terms: &Terms) -> Self {
        let window = terms.at_most(Span(WINDOW_US)) + 1_000_000;
        let retries = terms.most(|config| {
            let (least, most) = (config.retry_min().0.max(1), config.retry_max().0.max(1));
            2 * (u64::from((most / least).max(1).ilog2()) + window / most + 1) + 4
        });
        Self { allowed: retries + 8, takes: BTreeMap::new() }
    }

    pub(super) fn observe(&mut self, now: Time, fact: &Fact, _: &History, verdict: &mut Verdict) {
        match *fact {
            Fact::RowChanged { shard, .. } => self.takes.retain(|(_, of), _| *of != shard),
            Fact::Died { life } | Fact::Stopped { life, .. } => self.takes.retain(|(of, _), _| *of != life),
            Fact::Answered {
                life,
                ask: Ask::Write(Verb::Take),
                about: Some(shard),
                how: How::Refused | How::Unknown,
                ..
            } => {
                let takes = self.takes.entry((life, shard)).or_insert(Takes { since: now, number: 0 });
                if now >= takes.since + WINDOW_US {
                    *takes = Takes { since: now, number: 0 };
                }
                takes.number += 1;
                if takes.number == self.allowed + 1 {
                    let (within, allowed) = ((now - takes.since) / 1_000, self.allowed);
                    verdict.report(Property::RequestsBounded, now, || {
                        format!(
                            "life {life} took shard {shard} {} times without effect within {within} ms, {allowed} are allowed in {} s",
                            allowed + 1,
                            WINDOW_US / 1_000_000
                        )
                    });
                }
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{answered, count, removed};
    use super::*;

    fn takes(every_us: u64, how: How, changes: bool) -> usize {
        let take = |n: u64| {
            let take = answered(0, Ask::Write(Verb::Take), 1, n, how);
            let change = changes.then(|| removed(1, None, None));
            change.into_iter().chain([take]).map(move |fact| (n * every_us, fact))
        };
        count(Property::RequestsBounded, (0..200).flat_map(take))
    }

    #[test]
    fn takes_without_effect_come_after_pauses_while_the_row_stays() {
        assert_eq!(takes(5_000_000, How::Unknown, false), 0);
        assert_eq!(takes(50_000, How::Unknown, false), 1);
        assert_eq!(takes(50_000, How::Refused, false), 1);
        assert_eq!(takes(50_000, How::Unknown, true), 0, "each take met another row");
        assert_eq!(takes(50_000, How::NotSent, false), 0, "the table sets the pace of throttled writes");
    }
}
