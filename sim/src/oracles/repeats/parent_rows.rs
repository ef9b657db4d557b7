//! `parents-first`: our row tells another program to wait. The other program looks at the row of a parent before the
//! start of a child.
//!
//! In the tables of vmware-go-kcl, a row without a checkpoint belongs to a long gone shard: children are begun at once.
//! A row created or taken by our worker has a mark for the missing checkpoint. Other programs look only at the first
//! parent, and only rows of ours are judged.

use super::super::fact::{Mark, Verb};
use super::super::{Fact, History, LifeNo, PerShard, Property, ShardNo, Terms, Time, Verdict};
use leasehold_engine::policy::Steal;
use std::collections::BTreeMap;

#[derive(Clone, Copy, Debug, Default)]
struct Shard {
    /// The row exists, without the end.
    unfinished: bool,
    /// Our worker created or took the row, and no other program has written the row since.
    ours: bool,
}

#[derive(Clone, Debug, Default)]
pub(super) struct ParentRows {
    /// Whether other programs look at rows of parents.
    binding: bool,
    shards: PerShard<Shard>,
    /// Whether the last look at a row told a program to wait.
    told: BTreeMap<(LifeNo, ShardNo), bool>,
}

impl ParentRows {
    pub(super) fn new(terms: &Terms) -> Self {
        Self {
            binding: terms.config.policies().steal == Steal::Claim,
            shards: PerShard::default(),
            told: BTreeMap::new(),
        }
    }

    pub(super) fn observe(&mut self, now: Time, fact: &Fact, history: &History, verdict: &mut Verdict) {
        if !self.binding {
            return;
        }
        match *fact {
            Fact::RowChanged { shard, by, verb, after, .. } => {
                let state = self.shards.of(shard);
                state.unfinished = after.is_some_and(|row| row.checkpoint != Mark::End);
                let by_ours = by.is_some() && !history.of_others;
                let says = matches!(verb, Some(Verb::Create | Verb::Take));
                state.ours = by_ours && (says || state.ours) && after.is_some();
            }
            Fact::Looked { life, shard } => {
                let state = *self.shards.of(shard);
                self.told.insert((life, shard), state.ours && state.unfinished);
            }
            Fact::OpenBegun { life, shard, .. } if history.of_others => {
                let Some(parent) = history.shard(shard).parents[0] else {
                    return;
                };
                let told = self.told.get(&(life, parent)).copied().unwrap_or(false);
                if told && self.shards.of(parent).unfinished {
                    verdict.report_of_anybody(Property::ParentsFirst, now, || {
                        format!(
                            "life {life} began shard {shard}, and our row of its parent {parent}, which it had looked at, did not tell it \
                             to wait"
                        )
                    });
                }
            }
            Fact::Died { life } | Fact::Stopped { life, .. } => self.told.retain(|(of, _), _| *of != life),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::testing::{at_once, beside, born, changed, config, found_alone, row};
    use super::*;
    use leasehold_engine::format::{Format, LeaseFormat};

    /// Life 0 is ours, life 1 is of another program; shard 1 comes from shard 0.
    fn judged(facts: impl IntoIterator<Item = Fact>) -> usize {
        let config = config().with_policies(Format::VmwareGoKcl.policies());
        let mut rows = ParentRows::new(&Terms::plain(config));
        let facts = at_once([born(1, Some(0))].into_iter().chain(facts));
        found_alone(&mut beside(1), facts, |at, fact, history, verdict| {
            rows.observe(at, fact, history, verdict)
        })
    }

    fn written(by: u32, verb: Verb, mark: Mark) -> Fact {
        changed(0, Some(by), verb, None, Some(row(Some(by), 1, mark)))
    }

    fn begins() -> [Fact; 2] {
        let look = Fact::Looked { life: 1, shard: 0 };
        let (life, shard, token) = (1, 1, 1);
        [look, Fact::OpenBegun { life, shard, token }]
    }

    #[test]
    fn who_looked_at_a_row_of_ours_waits() {
        let after = |by, verb, mark| judged([written(by, verb, mark)].into_iter().chain(begins()));
        assert_eq!(after(0, Verb::Take, Mark::TrimHorizon), 1);
        assert_eq!(after(0, Verb::Create, Mark::At(7)), 1);
        assert_eq!(after(0, Verb::End, Mark::End), 0);
        assert_eq!(after(1, Verb::Take, Mark::TrimHorizon), 0, "its own row does not say so");
        assert_eq!(after(0, Verb::Renew, Mark::TrimHorizon), 0, "a renewal adds nothing to a row of theirs");
        assert_eq!(judged(begins()), 0, "there was no row");
    }

    #[test]
    fn who_looked_before_cannot_know() {
        let [look, begin] = begins();
        assert_eq!(judged([look, written(0, Verb::Create, Mark::TrimHorizon), begin]), 0);
    }
}
