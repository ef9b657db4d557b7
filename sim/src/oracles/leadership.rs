//! `one-leader`: after quiet at most one worker begins to list shards (the liveness phase requires one). A worker told
//! to stop takes no lease. Further pages do not count: a listing of a thousand shards may take longer than the quiet.

use super::fact::{Ask, Verb};
use super::{Fact, History, LifeNo, Property, REQUESTS, Sees, Time, Verdict};
use std::collections::BTreeMap;

#[derive(Clone, Debug, Default)]
pub(super) struct Leadership {
    listed: BTreeMap<LifeNo, Time>,
}

impl Leadership {
    pub(super) const SEES: Sees = Sees::all(REQUESTS);

    pub(super) fn listers(&self, since: Time) -> impl Iterator<Item = LifeNo> {
        self.listed.iter().filter(move |(_, at)| **at >= since).map(|(life, _)| *life)
    }

    pub(super) fn observe(&mut self, now: Time, fact: &Fact, history: &History, verdict: &mut Verdict) {
        match *fact {
            Fact::Asked { life, ask: Ask::ListShards, .. } => {
                self.listed.insert(life, now);
            }
            Fact::Asked { life, ask: Ask::Write(Verb::Take), about, .. }
                if history.told_to_stop.contains(&life) =>
            {
                verdict.report(Property::OneLeader, now, || {
                    format!("life {life} was told to stop, and tried to take shard {about:?} after that")
                });
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{asked, asked_at_large, at_once, blank, count};
    use super::*;

    #[test]
    fn taking_after_a_shutdown_is_found() {
        let take = asked(0, Ask::Write(Verb::Take), 3, 1, 0, 0);
        let p11 = |facts: Vec<Fact>| count(Property::OneLeader, at_once(facts));
        assert_eq!(p11(vec![take.clone(), Fact::ShutdownAsked { life: 0 }]), 0);
        assert_eq!(p11(vec![Fact::ShutdownAsked { life: 0 }, take.clone()]), 1);
        assert_eq!(p11(vec![Fact::ShutdownAsked { life: 1 }, take]), 0);
    }

    #[test]
    fn listers_are_those_who_listed_lately() {
        let mut leadership = Leadership::default();
        let (first, more) = (Ask::ListShards, Ask::ListMore);
        for (at, life, ask) in [(1, 0, first), (5, 1, first), (7, 0, more), (9, 2, first)] {
            let listed = asked_at_large(life, ask, at);
            leadership.observe(at, &listed, &blank(), &mut Verdict::default());
        }
        assert_eq!(leadership.listers(5).collect::<Vec<_>>(), [1, 2]);
    }
}
