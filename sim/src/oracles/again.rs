//! `every-record-delivered`: processed records are not processed again without need.
//!
//! Records come again after a crash or a theft, if no checkpoint covered the records. Within one ownership, no record
//! reported as processed comes again. An ownership begins at the checkpoint of the row taken. If a stranger to the
//! lease wrote the row, neither promise holds.

use super::fact::{Mark, Owner, Row, Verb, begins};
use super::{EVENTS, Fact, History, LifeNo, Property, ROWS, Sees, ShardNo, Time, Verdict};
use std::collections::{BTreeMap, BTreeSet};

#[derive(Clone, Copy, Debug, Default)]
struct Ownership {
    token: u64,
    /// All records up to here were processed.
    through: u64,
    /// All records up to here were processed by earlier owners.
    before: u64,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Again {
    owners: BTreeMap<(LifeNo, ShardNo), Ownership>,
    /// The record in each shard's row when an owner took the lease.
    taken: BTreeMap<(LifeNo, ShardNo), u64>,
    edited: BTreeSet<ShardNo>,
}

impl Again {
    pub(super) const SEES: Sees = Sees::ours(ROWS | EVENTS).others(ROWS);

    pub(super) fn observe(&mut self, now: Time, fact: &Fact, history: &History, verdict: &mut Verdict) {
        match *fact {
            Fact::RowChanged { shard, verb, before, after, .. } => {
                if history.trespass || verb.is_none_or(|verb| verb == Verb::Delete) {
                    self.edited.insert(shard);
                }
                if let Some(row @ Row { owner: Some(Owner::Life(life)), .. }) = after
                    && begins(verb, before, after)
                {
                    let record = match row.checkpoint {
                        Mark::At(record) => record,
                        _ => 0,
                    };
                    self.taken.insert((life, shard), record);
                }
            }
            Fact::OpenBegun { life, shard, token } => {
                let before = self.taken.get(&(life, shard)).copied().unwrap_or(0);
                let begun = Ownership { token, through: 0, before };
                self.owners.insert((life, shard), begun);
            }
            Fact::Processed { life, shard, token, through } => {
                if let Some(owner) = self.owners.get_mut(&(life, shard)).filter(|owner| owner.token == token)
                {
                    owner.through = through.max(owner.through);
                }
            }
            Fact::Delivered { life, shard, token, first, .. } => {
                let Some(owner) = self.owners.get(&(life, shard)).filter(|owner| owner.token == token) else {
                    return;
                };
                let (through, before) = (owner.through, owner.before);
                if first <= through {
                    verdict.report(Property::EveryRecordDelivered, now, || {
                        format!(
                            "life {life} gave record {first} of shard {shard} to its handler again, which had processed those up to \
                             {through} under the same token"
                        )
                    });
                } else if first <= before && !self.edited.contains(&shard) {
                    verdict.report(Property::EveryRecordDelivered, now, || {
                        format!(
                            "life {life} gave record {first} of shard {shard} to its handler, and the checkpoint it began at covers \
                             those up to {before}"
                        )
                    });
                }
            }
            Fact::Died { life } | Fact::Stopped { life, .. } => {
                self.owners.retain(|(of, _), _| *of != life);
                self.taken.retain(|(of, _), _| *of != life);
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{at_once, changed, count, delivered, opened, processed, row};
    use super::*;

    fn at(record: u64, verb: Verb) -> Fact {
        let row = |owner, record| Some(row(owner, record, Mark::At(record)));
        changed(0, Some(0), verb, row(Some(9), 0), row(Some(0), record))
    }

    fn judged(facts: impl IntoIterator<Item = Fact>) -> usize {
        count(Property::EveryRecordDelivered, at_once(facts))
    }

    #[test]
    fn an_ownership_begins_after_the_checkpoint() {
        let begin = |first| {
            let earlier = [processed(9, 0, 5), at(5, Verb::Take), opened(0, 0)];
            judged(earlier.into_iter().chain([delivered(0, 0, first, 9)]))
        };
        // The oracle of repeats reports the violation, too.
        assert_eq!((begin(6), begin(5), begin(1)), (0, 2, 2));
        let removed = changed(0, None, Verb::Delete, Some(row(None, 5, Mark::At(5))), None);
        let anew = [processed(9, 0, 5), removed, at(5, Verb::Take), opened(0, 0), delivered(0, 0, 1, 9)];
        assert_eq!(judged(anew), 0);
    }

    #[test]
    fn processed_records_do_not_come_again() {
        let again = |first| {
            judged([opened(0, 0), delivered(0, 0, 1, 9), processed(0, 0, 5), delivered(0, 0, first, 9)])
        };
        assert_eq!((again(6), again(5)), (0, 1));
        let anew = Fact::OpenBegun { life: 0, shard: 0, token: 2 };
        let later = Fact::Delivered {
            life: 0,
            shard: 0,
            token: 2,
            first: 1,
            last: 9,
            local: leasehold_engine::time::Mono(0),
            valid_until: leasehold_engine::time::Mono(1),
        };
        let twice = [opened(0, 0), delivered(0, 0, 1, 9), processed(0, 0, 5), anew, later];
        assert_eq!(judged(twice), 0, "no checkpoint covers it");
    }
}
