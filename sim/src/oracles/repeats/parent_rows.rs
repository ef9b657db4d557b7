//! `parents-first`: a program of others that looks at the row of a parent before it begins a child is told by our row to wait.
//!
//! In the tables of vmware-go-kcl, a row without a checkpoint is that of a shard which is long gone: children are begun at once. A row that
//! one of ours created or took says that there is no checkpoint yet. Only the first parent is looked at, and only rows of ours are
//! judged.

use super::super::fact::{Mark, Verb};
use super::super::{Fact, LifeNo, Property, ShardNo, Terms, Time, Verdict};
use leasehold_engine::policy::Steal;
use std::collections::BTreeMap;

#[derive(Clone, Copy, Debug, Default)]
struct Shard {
    parent: Option<ShardNo>,
    /// There is a row, and it does not say the end.
    unfinished: bool,
    /// One of ours created or took it, and nobody else has written it since.
    ours: bool,
}

#[derive(Clone, Debug)]
pub(super) struct ParentRows {
    /// Whether programs of others look at rows of parents so.
    binding: bool,
    shards: Vec<Shard>,
    /// Whether a program was told to wait when it looked at a row last.
    told: BTreeMap<(LifeNo, ShardNo), bool>,
}

impl ParentRows {
    pub(super) fn new(terms: &Terms) -> Self {
        Self {
            binding: terms.config.policies().steal == Steal::Claim,
            shards: Vec::new(),
            told: BTreeMap::new(),
        }
    }

    fn shard(&mut self, shard: ShardNo) -> &mut Shard {
        let index = shard as usize;
        if self.shards.len() <= index {
            self.shards.resize_with(index + 1, Shard::default);
        }
        &mut self.shards[index]
    }

    /// `of_others`: by a program that others wrote.
    pub(super) fn observe(&mut self, now: Time, fact: &Fact, of_others: bool, verdict: &mut Verdict) {
        if !self.binding {
            return;
        }
        match *fact {
            Fact::ShardBorn { shard, parents } => self.shard(shard).parent = parents[0],
            Fact::RowChanged { shard, by, verb, after, .. } => {
                let state = self.shard(shard);
                state.unfinished = after.is_some_and(|row| row.checkpoint != Mark::End);
                let by_ours = by.is_some() && !of_others;
                let says = matches!(verb, Some(Verb::Create | Verb::Take));
                state.ours = by_ours && (says || state.ours) && after.is_some();
            }
            Fact::Looked { life, shard } => {
                let state = *self.shard(shard);
                self.told.insert((life, shard), state.ours && state.unfinished);
            }
            Fact::OpenBegun { life, shard, .. } if of_others => {
                let Some(parent) = self.shard(shard).parent else {
                    return;
                };
                let told = self.told.get(&(life, parent)).copied().unwrap_or(false);
                if told && self.shard(parent).unfinished {
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
    use super::super::super::history::{changed, config, row};
    use super::*;
    use leasehold_engine::format::{Format, LeaseFormat};

    /// Life 0 is ours, life 1 is a program of others; shard 1 comes from shard 0.
    fn judged(facts: impl IntoIterator<Item = Fact>) -> usize {
        let config = config().with_policies(Format::VmwareGoKcl.policies());
        let (mut rows, mut verdict) = (ParentRows::new(&Terms::plain(config)), Verdict::default());
        let child = Fact::ShardBorn { shard: 1, parents: [Some(0), None] };
        for fact in [child].into_iter().chain(facts) {
            rows.observe(1, &fact, fact.life() == Some(1), &mut verdict);
        }
        verdict.violations().len()
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
