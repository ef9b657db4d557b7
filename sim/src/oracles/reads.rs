//! `requests-bounded`, towards the stream: a worker has no more than `max_reads` reads of shards under way, each on a
//! connection of its own.

use super::fact::Ask;
use super::{EVENTS, Fact, History, LifeNo, Property, REQUESTS, Sees, Terms, Time, Verdict};
use std::collections::BTreeMap;

#[derive(Clone, Debug)]
pub(super) struct Reads {
    most: u32,
    under_way: BTreeMap<LifeNo, u32>,
}

impl Reads {
    pub(super) const SEES: Sees = Sees::ours(REQUESTS | EVENTS);

    pub(super) fn new(terms: &Terms) -> Self {
        Self { most: terms.most(|config| config.max_reads()), under_way: BTreeMap::new() }
    }

    pub(super) fn observe(&mut self, now: Time, fact: &Fact, _: &History, verdict: &mut Verdict) {
        let is_read = |ask| matches!(ask, Ask::GetRecords | Ask::GetIterator);
        match *fact {
            Fact::Asked { life, ask, .. } if is_read(ask) => {
                let under_way = self.under_way.entry(life).or_default();
                *under_way += 1;
                let (under_way, most) = (*under_way, self.most);
                if under_way > most {
                    verdict.report(Property::RequestsBounded, now, || {
                        format!("life {life} has {under_way} reads of shards under way; it may have {most}")
                    });
                }
            }
            Fact::Answered { life, ask, .. } if is_read(ask) => {
                if let Some(under_way) = self.under_way.get_mut(&life) {
                    *under_way = under_way.saturating_sub(1);
                }
            }
            Fact::Died { life } | Fact::Stopped { life, .. } => drop(self.under_way.remove(&life)),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::fact::{How, Verb};
    use super::super::testing::{answered, asked, at_once, config, count_under};
    use super::*;

    #[test]
    fn reads_under_way_are_counted_for_each_life() {
        let found = |facts: &[Fact]| {
            let terms = Terms::plain(config().with_max_reads(2));
            let facts = at_once(facts);
            count_under(&terms, Property::RequestsBounded, facts)
        };
        let ask = |life, op| asked(life, Ask::GetRecords, 0, op, 0, 0);
        let iterator = asked(0, Ask::GetIterator, 1, 2, 0, 0);
        assert_eq!(found(&[ask(0, 1), iterator.clone(), ask(1, 1)]), 0);
        assert_eq!(found(&[ask(0, 1), iterator.clone(), ask(0, 3)]), 1);
        let answer = answered(0, Ask::GetRecords, 0, 1, How::NotSent);
        assert_eq!(found(&[ask(0, 1), iterator.clone(), answer, ask(0, 3)]), 0);
        let write = asked(0, Ask::Write(Verb::Renew), 0, 3, 1, 2);
        assert_eq!(found(&[ask(0, 1), iterator.clone(), write]), 0);
        let died = Fact::Died { life: 0 };
        assert_eq!(found(&[ask(0, 1), iterator, died, ask(0, 1)]), 0);
    }
}
