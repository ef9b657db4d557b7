//! `foreign-tables-refused`: a worker refuses a table of another stream, or of an earlier stream with the same name.
//! The worker takes no lease whose row names another stream. Rows taken and created by the worker name the stream read.
//! If the last description differs from the stream of the worker's start, the worker takes no lease of the stream: the
//! shards may belong to a stream made anew.

use super::fact::{Ask, Verb, Whose};
use super::{EVENTS, Fact, History, LifeNo, Property, REQUESTS, ROWS, Sees, Time, Verdict};
use std::collections::BTreeSet;

#[derive(Clone, Debug, Default)]
pub(super) struct Identity {
    /// The table belongs to another stream.
    foreign: bool,
    /// Lives begun since.
    must_refuse: BTreeSet<LifeNo>,
}

impl Identity {
    pub(super) const SEES: Sees = Sees::ours(REQUESTS | ROWS | EVENTS).others(ROWS | EVENTS);

    pub(super) fn observe(&mut self, now: Time, fact: &Fact, history: &History, verdict: &mut Verdict) {
        match *fact {
            Fact::Foreign => self.foreign = true,
            Fact::Booted { life, .. } if self.foreign => {
                self.must_refuse.insert(life);
            }
            Fact::Asked {
                life,
                ask: Ask::Write(verb @ (Verb::Take | Verb::Claim)),
                about: Some(shard),
                ..
            } if history.denials.has(life, history.streams.of(shard)) => {
                verdict.report(Property::ForeignTablesRefused, now, || {
                    format!("life {life} asked for a {verb:?} of shard {shard}, and was told that its stream is gone or another one")
                });
            }
            Fact::Named {
                life,
                shard,
                before: Whose::Another,
                ..
            } => verdict.report(Property::ForeignTablesRefused, now, || {
                format!("life {life} took the lease of shard {shard}, whose row named another stream")
            }),
            Fact::Named {
                life, shard, after, ..
            } if after != Whose::This => verdict.report(Property::ForeignTablesRefused, now, || {
                format!(
                    "life {life} took or made the row of shard {shard}, which names {after:?} as its stream"
                )
            }),
            Fact::RowChanged {
                by: Some(life),
                shard,
                verb: Some(verb),
                ..
            } if self.must_refuse.contains(&life) => {
                verdict.report(Property::ForeignTablesRefused, now, || {
                    format!(
                        "life {life} made a {verb:?} of shard {shard} in a table that is of another stream"
                    )
                })
            }
            Fact::Delivered { life, shard, .. } if self.must_refuse.contains(&life) => {
                verdict.report(Property::ForeignTablesRefused, now, || {
                    format!(
                        "life {life} was given records of shard {shard} under a lease that is of another stream"
                    )
                });
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::fact::Mark;
    use super::super::testing::{asked, at_once, changed, count, delivered, row};
    use super::*;

    fn judged(facts: Vec<Fact>) -> usize {
        count(Property::ForeignTablesRefused, at_once(facts))
    }

    #[test]
    fn a_taken_row_names_this_stream_and_named_no_other_before() {
        let named = |before, after| {
            let (life, shard) = (0, 0);
            judged(vec![Fact::Named { life, shard, before, after }])
        };
        for before in [Whose::Nobody, Whose::This] {
            assert_eq!(named(before, Whose::This), 0);
            assert_eq!(named(before, Whose::Nobody), 1);
            assert_eq!(named(before, Whose::Another), 1);
        }
        assert_eq!(named(Whose::Another, Whose::This), 1);
    }

    #[test]
    fn a_worker_told_of_another_stream_takes_nothing_until_its_own() {
        let (life, stream) = (0, 0);
        let told = |right| Fact::Described { life, stream, right };
        let take = || asked(0, Ask::Write(Verb::Take), 0, 1, 0, 0);
        assert_eq!(judged(vec![told(true), take()]), 0);
        assert_eq!(judged(vec![told(true), told(false), take()]), 1);
        assert_eq!(judged(vec![told(true), told(false), told(true), take()]), 0);
        assert_eq!(judged(vec![told(false), take()]), 0, "it has not found its stream");
    }

    #[test]
    fn a_worker_that_begins_in_a_foreign_table_leaves_it_alone() {
        let boot = Fact::Booted { life: 0, worker: 0 };
        let before = row(None, 1, Mark::At(5));
        let take = changed(0, Some(0), Verb::Take, Some(before), Some(row(Some(0), 2, Mark::At(5))));
        assert_eq!(judged(vec![Fact::Foreign, boot.clone(), take.clone()]), 1);
        assert_eq!(judged(vec![Fact::Foreign, boot.clone(), delivered(0, 0, 6, 7)]), 1);
        assert_eq!(judged(vec![Fact::Foreign, boot.clone()]), 0);
        assert_eq!(judged(vec![boot.clone(), take.clone()]), 0);
        assert_eq!(judged(vec![boot, Fact::Foreign, take]), 0, "what it began before, it may end");
    }
}
