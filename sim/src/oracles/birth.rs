//! `parents-first`: the creator of a child's lease believes in a parent's lease. A worker that puts back a removed row
//! believes in the shard's lease.
//!
//! After the belief's end, another worker may have ended the parent, processed the child and removed the child's row. A
//! second creation would have the child read again. The oracle judges only parents with an old unfinished row. A worker
//! with a hole in the hash space or an empty table knows such a row by then. Rows changed by people are not judged.

use super::fact::{Ask, Mark, Verb};
use super::{
    EVENTS, Fact, History, LifeNo, Property, REPORTS, REQUESTS, ROWS, Sees, ShardNo, Terms, Time, Verdict,
};
use leasehold_engine::policy::Finished;
use std::collections::{BTreeMap, BTreeSet};

#[derive(Clone, Debug, Default)]
pub(super) struct Birth {
    /// Elsewhere each listed shard has a row, and any worker may create the row.
    binding: bool,
    /// After this long, every worker knows a table's content, in µs.
    known: u64,
    /// The end of each belief, in true time.
    beliefs: BTreeMap<(LifeNo, ShardNo), Time>,
    /// Creations requested in this turn. The life reports its beliefs at the turn's end.
    asked: Vec<(LifeNo, ShardNo, Time, bool, bool)>,
    /// Creations requested without a belief in any parent, with a parent whose row is unfinished.
    suspects: BTreeMap<(LifeNo, ShardNo), ShardNo>,
    /// Creations requested without a belief in the shard itself.
    unsure: BTreeSet<(LifeNo, ShardNo)>,
}

impl Birth {
    pub(super) const SEES: Sees =
        Sees::ours(REPORTS | REQUESTS | ROWS | EVENTS).others(REPORTS | ROWS | EVENTS);

    pub(super) fn new(terms: &Terms) -> Self {
        let seen = terms.most(|config| config.scan_interval().times(5) + config.lease_duration().times(2));
        Self {
            binding: terms.config.policies().finished == Finished::WhenRead,
            known: terms.at_most(seen) + 5_000_000,
            ..Self::default()
        }
    }

    fn believes(&self, life: LifeNo, shard: ShardNo, at: Time) -> bool {
        let until = self.beliefs.get(&(life, shard));
        until.is_some_and(|&until| until >= at)
    }

    /// A parent of this shard with an unfinished row and without this life's belief in any parent.
    fn bereft_of(&self, life: LifeNo, shard: ShardNo, at: Time, history: &History) -> Option<ShardNo> {
        let parents = || history.shard(shard).parents.into_iter().flatten();
        if parents().any(|parent| self.believes(life, parent, at)) {
            return None;
        }
        parents().find(|&parent| {
            let known = history.shard(parent);
            !known.tampered && known.unfinished.is_some_and(|since| since + self.known <= at)
        })
    }

    pub(super) fn observe(&mut self, now: Time, fact: &Fact, history: &History, verdict: &mut Verdict) {
        if !self.binding {
            return;
        }
        match *fact {
            Fact::Holds { life, shard, until, .. } => drop(self.beliefs.insert((life, shard), until)),
            Fact::HoldsNoMore { life, shard } => drop(self.beliefs.remove(&(life, shard))),
            Fact::Died { life } | Fact::Stopped { life, .. } => {
                self.beliefs.retain(|(of, _), _| *of != life);
            }
            Fact::Asked { life, ask: Ask::Write(Verb::Create), about: Some(shard), .. } => {
                // The beliefs reported by now may be older or newer than this request. The request may rely on either.
                let bereft = self.bereft_of(life, shard, now, history).is_some();
                let unsure = !self.believes(life, shard, now);
                self.asked.push((life, shard, now, bereft, unsure));
            }
            Fact::Said { life } => {
                let asked = std::mem::take(&mut self.asked);
                for (_, shard, at, bereft, unsure) in asked.into_iter().filter(|(of, ..)| *of == life) {
                    match self.bereft_of(life, shard, at, history).filter(|_| bereft) {
                        Some(parent) => drop(self.suspects.insert((life, shard), parent)),
                        None => drop(self.suspects.remove(&(life, shard))),
                    }
                    match self.believes(life, shard, at) || !unsure {
                        true => self.unsure.remove(&(life, shard)),
                        false => self.unsure.insert((life, shard)),
                    };
                }
            }
            Fact::RowChanged { shard, by, verb, after, .. } => {
                let (Some(life), Some(Verb::Create)) = (by, verb) else {
                    return;
                };
                let suspect = self.suspects.remove(&(life, shard));
                let unsure = self.unsure.remove(&(life, shard));
                // A created row has no owner; a row put back has an owner.
                if after.is_some_and(|row| row.is_of(life)) {
                    if unsure {
                        verdict.report(Property::ParentsFirst, now, || {
                            format!("life {life} put back the row of shard {shard} without believing in it")
                        });
                    }
                    return;
                }
                let from_its_beginning = after.is_some_and(|row| row.checkpoint == Mark::TrimHorizon);
                if let Some(parent) = suspect.filter(|_| from_its_beginning) {
                    verdict.report(Property::ParentsFirst, now, || {
                        format!(
                            "life {life} created the lease of shard {shard} without believing in its parent {parent}, which is \
                             not finished"
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
    use super::super::testing::{asked, at_once, born, changed, count, created, held, row};
    use super::*;

    const DAY: Time = 86_400_000_000;

    fn judged(until: Option<Time>, parent_at: Time) -> usize {
        let holds = |until| held(0, 0, 0, false, until);
        let early = [(1, born(0, None)), (1, born(1, Some(0))), (parent_at, created(0, Mark::TrimHorizon))];
        let held = until.map(|until| (DAY, holds(until)));
        let late = [
            (DAY, asked(0, Ask::Write(Verb::Create), 1, 7, 0, 0)),
            (DAY, Fact::Said { life: 0 }),
            (DAY + 1, created(1, Mark::TrimHorizon)),
        ];
        count(Property::ParentsFirst, early.into_iter().chain(held).chain(late))
    }

    #[test]
    fn a_child_is_created_by_who_believes_in_its_parent() {
        assert_eq!(judged(Some(DAY), 1), 0);
        assert_eq!(judged(Some(DAY - 1), 1), 1);
        assert_eq!(judged(None, 1), 1);
    }

    #[test]
    fn a_row_is_put_back_by_who_believes_in_the_shard() {
        let judged = |until| {
            let holds = held(0, 0, 4, true, until);
            let put = |owner| {
                let row = row(owner, 5, Mark::TrimHorizon);
                changed(0, Some(0), Verb::Create, None, Some(row))
            };
            let facts = |owner| {
                [
                    holds.clone(),
                    asked(0, Ask::Write(Verb::Create), 0, 7, 0, 0),
                    Fact::Said { life: 0 },
                    put(owner),
                ]
            };
            // A shard whose own parent comes first is no child to create.
            let before = [born(1, None), born(0, Some(1)), created(1, Mark::TrimHorizon)];
            let found = |owner| {
                let before = at_once(&before);
                let history = before.into_iter().chain(facts(owner).map(|fact| (DAY, fact)));
                count(Property::ParentsFirst, history)
            };
            (found(Some(0)), found(None))
        };
        assert_eq!(judged(DAY), (0, 1));
        assert_eq!(judged(DAY - 1), (1, 1));
    }

    #[test]
    fn who_may_not_know_of_a_parent_is_not_judged() {
        assert_eq!(judged(None, DAY - 1), 0);
    }
}
