//! `one-leader`: after quiet at most one worker begins to list shards (the liveness phase requires one). A worker told
//! to stop takes no lease. Further pages do not count: a listing of a thousand shards may take longer than the quiet. Nor
//! does the listing of a worker that has read an aggregated record, and needs the hash keys of the shard for its parts.

use super::fact::{Ask, Verb};
use super::{Fact, History, LifeNo, Property, READS, REQUESTS, Sees, Time, Verdict};
use std::collections::{BTreeMap, BTreeSet};

#[derive(Clone, Debug, Default)]
pub(super) struct Leadership {
    listed: BTreeMap<LifeNo, Time>,
    /// The lives that need hash keys, and have not listed shards since.
    need_keys: BTreeSet<LifeNo>,
}

impl Leadership {
    pub(super) const SEES: Sees = Sees::all(REQUESTS | READS);

    pub(super) fn listers(&self, since: Time) -> impl Iterator<Item = LifeNo> {
        self.listed.iter().filter(move |(_, at)| **at >= since).map(|(life, _)| *life)
    }

    pub(super) fn observe(&mut self, now: Time, fact: &Fact, history: &History, verdict: &mut Verdict) {
        match *fact {
            Fact::RangeUnproven { life, .. } => {
                self.need_keys.insert(life);
            }
            Fact::Asked { life, ask: Ask::ListShards, .. } if !self.need_keys.remove(&life) => {
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
        for (at, life) in [(11, 3), (12, 4)] {
            let needs = Fact::RangeUnproven { life, shard: 0 };
            leadership.observe(at, &needs, &blank(), &mut Verdict::default());
        }
        for (at, life) in [(13, 3), (14, 4), (15, 4)] {
            let listed = asked_at_large(life, first, at);
            leadership.observe(at, &listed, &blank(), &mut Verdict::default());
        }
        assert_eq!(
            leadership.listers(5).collect::<Vec<_>>(),
            [1, 2, 4],
            "the second listing of life 4 has no reason"
        );
    }
}
