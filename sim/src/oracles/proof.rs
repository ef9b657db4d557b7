//! `final-acts-proven`: a worker ends a lease only with support from the truth of the stream, whatever the answers
//! were: the shard is closed and wholly processed, or the stream has forgotten the shard.
//!
//! `leases-owned` judges the causes for a worker's stop, or for the end of its reads of a stream.

use super::delivery::Delivery;
use super::fact::{Mark, rewrites};
use super::{Fact, Property, ShardNo, Time, Verdict};
use std::collections::{BTreeMap, BTreeSet};

/// The true state of shards.
#[derive(Clone, Debug, Default)]
pub(super) struct Proof {
    /// Closed shards, each with its number of records.
    closed: BTreeMap<ShardNo, u64>,
    /// Shards no longer known to the stream.
    forgotten: BTreeSet<ShardNo>,
    /// Shards with a row changed by people, or without known facts.
    excused: BTreeSet<ShardNo>,
    /// The stream is gone, or another stream has its name.
    lost_for_good: bool,
}

impl Proof {
    pub(super) fn observe(&mut self, now: Time, fact: &Fact, delivery: &Delivery, verdict: &mut Verdict) {
        match *fact {
            Fact::ShardClosed { shard, records, .. } => drop(self.closed.insert(shard, records)),
            Fact::Forgotten { shard } => drop(self.forgotten.insert(shard)),
            Fact::Given { shard, .. } => drop(self.excused.insert(shard)),
            Fact::LostForGood | Fact::Foreign | Fact::StreamGone { .. } => self.lost_for_good = true,
            Fact::RowChanged { shard, by, verb, before, after: Some(after), .. } => {
                if rewrites(verb, before, Some(after)) {
                    self.excused.insert(shard);
                }
                let is_new = before.is_none_or(|row| row.checkpoint != Mark::End);
                let Some(life) = by.filter(|_| after.checkpoint == Mark::End && is_new) else {
                    return;
                };
                if self.lost_for_good || self.forgotten.contains(&shard) || self.excused.contains(&shard) {
                    return;
                }
                let done = delivery.processed(shard);
                let wrong = match self.closed.get(&shard) {
                    None => "which is open".to_owned(),
                    Some(records) if !delivery.is_complete(shard, *records) => {
                        format!("of whose {records} records {done} were processed")
                    }
                    Some(_) => return,
                };
                verdict.report(Property::FinalActsProven, now, || {
                    format!("life {life} ended the lease of shard {shard}, {wrong}, and the stream has not forgotten the shard")
                });
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::fact::Verb;
    use super::super::history::{changed, judge, row};
    use super::*;

    const CLOSED: Fact = Fact::ShardClosed { shard: 0, records: 5, children: Vec::new() };

    fn created() -> Fact {
        changed(0, Some(0), Verb::Create, None, Some(row(Some(0), 1, Mark::TrimHorizon)))
    }

    fn ends() -> Fact {
        let before = row(Some(0), 1, Mark::TrimHorizon);
        changed(0, Some(0), Verb::End, Some(before), Some(row(None, 2, Mark::End)))
    }

    fn processed() -> Fact {
        Fact::Processed { life: 0, shard: 0, token: 1, through: 5 }
    }

    fn judged(facts: Vec<Fact>) -> usize {
        let found = judge(facts.into_iter().map(|fact| (1, fact)));
        found.into_iter().filter(|found| *found == Property::FinalActsProven).count()
    }

    #[test]
    fn a_shard_that_is_open_or_was_not_read_to_its_end_is_not_ended() {
        assert_eq!(judged(vec![created(), ends()]), 1);
        assert_eq!(judged(vec![created(), CLOSED, ends()]), 1);
        assert_eq!(judged(vec![created(), processed(), ends()]), 1);
        assert_eq!(judged(vec![created(), CLOSED, processed(), ends()]), 0);
    }

    #[test]
    fn a_shard_that_the_stream_has_forgotten_is_ended() {
        assert_eq!(judged(vec![created(), CLOSED, Fact::Forgotten { shard: 0 }, ends()]), 0);
        assert_eq!(judged(vec![Fact::LostForGood, created(), ends()]), 0);
    }
}
