//! `start-kept`: the start place of a shard is decided once, and no owner begins after the place.
//!
//! At LATEST and at a timestamp the checkpoint contains no start place. The service knows the truth: the record at the
//! place returned to a worker. The first place returned is the start of the shard. Records since the row's moment, or
//! since the first take of the lease, come after the place. Until the first checkpoint, no place of another owner, and
//! no later place of the same owner, lies behind the first place. Records from before the row's creation or first take
//! belong to no owner. The margin of a later owner may show such records, and the place of the first owner comes after
//! such records. The lead of a writer's clock at the moment is excused.
//!
//! A place is not too early, either. Records older than the timestamp, or older than the application, are not handed
//! over, with the margin and the error of its clocks deducted.

use super::fact::{Mark, Verb, rewrites};
use super::{EVENTS, Fact, History, Property, ROWS, Sees, ShardNo, Time, Verdict};
use std::collections::BTreeMap;

#[derive(Clone, Copy, Debug, Default)]
struct Begun {
    /// The record at the first place.
    from: Option<u64>,
    /// A checkpoint gives the shard's place, or a person changed the row: the start place counts no more.
    moved: bool,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Start {
    shards: BTreeMap<ShardNo, Begun>,
}

impl Start {
    pub(super) const SEES: Sees = Sees::ours(ROWS | EVENTS).others(ROWS);

    pub(super) fn observe(&mut self, now: Time, fact: &Fact, _: &History, verdict: &mut Verdict) {
        match *fact {
            Fact::RowChanged { shard, verb, before, after, .. } => {
                let moves =
                    after.is_some_and(|row| !matches!(row.checkpoint, Mark::Latest | Mark::AtTimestamp));
                let by_hand = rewrites(verb, before, after) || verb == Some(Verb::Delete);
                self.shards.entry(shard).or_default().moved |= moves || by_hand;
            }
            Fact::Trimmed { shard, before } => {
                let from = &mut self.shards.entry(shard).or_default().from;
                *from = from.map(|from| from.max(before));
            }
            Fact::Placed { life, shard, from, due, floor, born } => {
                let begun = self.shards.entry(shard).or_default();
                if begun.moved {
                    return;
                }
                let first = *begun.from.get_or_insert(from);
                if from > first && from > born {
                    verdict.report(Property::StartKept, now, || {
                        format!(
                            "shard {shard} was begun at record {first}, and life {life} begins at record {from} although there is no \
                             checkpoint: those between were skipped"
                        )
                    });
                } else if from > due {
                    verdict.report(Property::StartKept, now, || {
                        format!(
                            "life {life} begins shard {shard} at record {from}, but what arrived since the application began there is \
                             from record {due} on"
                        )
                    });
                }
                if from < floor {
                    verdict.report(Property::StartKept, now, || {
                        format!(
                            "life {life} begins shard {shard} at record {from}, which had arrived long before the start: expected record \
                             {floor} or a later one"
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
    use super::super::testing::{at_once, changed, count, created, row};
    use super::*;

    fn placed(life: u32, from: u64) -> Fact {
        Fact::Placed { life, shard: 0, from, due: 10, floor: 5, born: 0 }
    }

    fn judged(facts: &[Fact]) -> usize {
        count(Property::StartKept, at_once(facts))
    }

    #[test]
    fn every_owner_begins_where_the_first_one_did_or_before() {
        let good = [created(0, Mark::Latest), placed(0, 9), placed(0, 9), placed(1, 9), placed(2, 7)];
        assert_eq!(judged(&good), 0);
        let bad = [created(0, Mark::Latest), placed(0, 9), placed(1, 10)];
        assert_eq!(judged(&bad), 1);
        let same = [created(0, Mark::AtTimestamp), placed(0, 9), placed(0, 10)];
        assert_eq!(judged(&same), 1, "an iterator that is lost is no reason");
    }

    #[test]
    fn records_from_before_the_row_are_nobodys() {
        let placed = |life, from, born| Fact::Placed { life, shard: 0, from, due: 10, floor: 5, born };
        let good = [created(0, Mark::Latest), placed(1, 7, 9), placed(0, 9, 9)];
        assert_eq!(judged(&good), 0);
        let bad = [created(0, Mark::Latest), placed(1, 7, 9), placed(0, 10, 9)];
        assert_eq!(judged(&bad), 1);
    }

    #[test]
    fn the_first_owner_begins_shortly_before_the_arrivals() {
        assert_eq!(judged(&[created(0, Mark::Latest), placed(0, 10)]), 0);
        assert_eq!(judged(&[created(0, Mark::Latest), placed(0, 11)]), 1);
        assert_eq!(judged(&[created(0, Mark::Latest), placed(0, 5)]), 0);
        assert_eq!(judged(&[created(0, Mark::Latest), placed(0, 4)]), 1);
    }

    #[test]
    fn a_checkpoint_an_edit_and_a_trim_move_the_beginning() {
        let start = [created(0, Mark::Latest), placed(0, 6)];
        let latest = row(Some(0), 1, Mark::Latest);
        let at = row(Some(0), 2, Mark::At(8));
        let saved = changed(0, Some(0), Verb::Checkpoint, Some(latest), Some(at));
        let removed = changed(0, None, Verb::Delete, Some(latest), None);
        let trimmed = Fact::Trimmed { shard: 0, before: 9 };
        for fact in [saved, removed, trimmed] {
            let history = [&start[..], &[fact, placed(1, 9)]].concat();
            assert_eq!(judged(&history), 0);
        }
    }
}
