//! `view-matches-table`: a worker's reported view of a held lease is a state once held by the row under its name.

use super::fact::{Mark, Owner, Row};
use super::{Fact, History, PerShard, Property, REPORTS, ROWS, Sees, ShardNo, Time, Verdict};
use std::collections::VecDeque;

/// The number of remembered states of a row. A worker further behind is not judged.
const DEPTH: usize = 32;

#[derive(Clone, Debug, Default)]
pub(super) struct View {
    past: PerShard<VecDeque<Row>>,
}

impl View {
    pub(super) const SEES: Sees = Sees::all(REPORTS | ROWS);

    pub(super) fn observe(&mut self, now: Time, fact: &Fact, history: &History, verdict: &mut Verdict) {
        match *fact {
            Fact::RowChanged { shard, after: Some(row), .. } => {
                let past = self.past.of(shard);
                if past.len() == DEPTH {
                    past.pop_front();
                }
                past.push_back(row);
            }
            Fact::Holds { life, shard, counter, checkpoint, .. } => {
                if history.shard(shard).tampered {
                    return;
                }
                let past = self.past.of(shard);
                let owner = Some(Owner::Life(life));
                let mut known = past.iter().rev().filter(|row| row.counter == counter);
                let Some(first) = known.next() else {
                    let newest = past.back().map(|row| row.counter);
                    if newest.is_none_or(|newest| counter > newest) {
                        verdict.report(Property::ViewMatchesTable, now, || {
                            format!("life {life} says that shard {shard} is at counter {counter}, the row never was: {newest:?}")
                        });
                    }
                    return;
                };
                let matches = |row: &Row| row.owner == owner && row.checkpoint == checkpoint;
                if !matches(first) && !known.any(matches) {
                    let found = *first;
                    verdict.report(Property::ViewMatchesTable, now, || {
                        mismatch(life, shard, counter, checkpoint, found)
                    });
                }
            }
            _ => {}
        }
    }
}

fn mismatch(life: u32, shard: ShardNo, counter: u64, checkpoint: Mark, found: Row) -> String {
    format!(
        "life {life} says that it holds shard {shard} at counter {counter} and checkpoint {checkpoint:?}, but the row then had \
         checkpoint {:?} and owner {:?}",
        found.checkpoint, found.owner
    )
}

#[cfg(test)]
mod tests {
    use super::super::fact::Verb;
    use super::super::testing::{at_once, changed, count, row};
    use super::*;

    fn holds(counter: u64, checkpoint: Mark) -> Fact {
        Fact::Holds { life: 0, shard: 0, counter, checkpoint, open: false, until: 9 }
    }

    fn p12(held: Fact) -> usize {
        let taken = changed(0, Some(0), Verb::Take, None, Some(row(Some(0), 3, Mark::TrimHorizon)));
        let renewed = changed(0, Some(0), Verb::Renew, None, Some(row(Some(0), 4, Mark::TrimHorizon)));
        let lost = changed(0, Some(1), Verb::Take, None, Some(row(Some(1), 5, Mark::TrimHorizon)));
        count(Property::ViewMatchesTable, at_once([taken, renewed, lost, held]))
    }

    #[test]
    fn an_older_state_of_ours_is_fine() {
        assert_eq!(p12(holds(4, Mark::TrimHorizon)), 0);
        assert_eq!(p12(holds(3, Mark::TrimHorizon)), 0);
    }

    #[test]
    fn a_state_that_never_was_is_found() {
        assert_eq!(p12(holds(6, Mark::TrimHorizon)), 1, "a counter nobody wrote");
        assert_eq!(p12(holds(4, Mark::At(1))), 1, "a checkpoint that is not durable");
        assert_eq!(p12(holds(5, Mark::TrimHorizon)), 1, "another owner's state");
    }
}
