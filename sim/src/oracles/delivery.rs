//! `every-record-delivered`: no record is skipped, and a checkpoint covers only records reported done.
//!
//! A shard's records are numbered from 1 without gaps, so the processed records are a prefix. Each batch must begin
//! inside the prefix or right after its end. Not promised are records before the shard's start place (`start-kept`
//! judges the place), and shards with a row removed by a person.

use super::fact::{Mark, Row, Verb, rewrites};
use super::{EVENTS, Fact, History, LifeNo, PerShard, Property, ROWS, Sees, ShardNo, Time, Verdict};
use std::collections::BTreeMap;

#[derive(Clone, Debug, Default)]
struct Progress {
    /// All records up to here were reported done, or need not be processed.
    done: u64,
    /// All records up to here were handed to some handler.
    delivered: u64,
    /// Lives whose handler keeps records beyond the done records, with the last record kept.
    kept: BTreeMap<LifeNo, u64>,
    /// All records up to here are gone from the stream.
    trimmed: u64,
    /// At LATEST, before a worker of ours has a place. Records before the first place, or before the first durable
    /// position, are not promised.
    loose: bool,
    tampered: bool,
    seen: bool,
    durable_end: bool,
    /// Another program wrote over its own newer checkpoint with a checkpoint of this record. The program reads on from
    /// its memory. Until its next checkpoint, or until the lease changes hands, the row shows only the older record.
    rewound: Option<u64>,
}

impl Progress {
    fn note_rewinding(&mut self, before: Option<Row>, after: Row, of_others: bool) {
        let Some(before) = before else { return };
        let stays = before.owner == after.owner;
        if of_others && stays && after.checkpoint < before.checkpoint {
            self.rewound = match after.checkpoint {
                Mark::At(record) => Some(record),
                mark => mark.is_initial().then_some(0),
            };
        } else if !stays || after.checkpoint != before.checkpoint {
            self.rewound = None;
        }
    }
}

#[derive(Clone, Debug, Default)]
pub(super) struct Delivery {
    shards: PerShard<Progress>,
    duplicates: u64,
}

impl Delivery {
    pub(super) const SEES: Sees = Sees::all(ROWS | EVENTS);

    pub(super) fn processed(&self, shard: ShardNo) -> u64 {
        self.shards.get(shard as usize).map_or(0, |progress| progress.done)
    }

    /// The record to be covered by a checkpoint after processing; records gone from the stream need no checkpoint.
    pub(super) fn owed(&self, shard: ShardNo) -> u64 {
        let progress = self.shards.get(shard as usize);
        progress.map_or(0, |progress| {
            if progress.done > progress.trimmed {
                progress.rewound.unwrap_or(u64::MAX).min(progress.done)
            } else {
                0
            }
        })
    }

    pub(super) fn is_complete(&self, shard: ShardNo, records: u64) -> bool {
        self.shards.get(shard as usize).is_some_and(|progress| {
            progress.done >= records || progress.tampered || (progress.loose && progress.seen)
        })
    }

    pub(super) fn duplicates(&self) -> u64 {
        self.duplicates
    }

    pub(super) fn observe(&mut self, now: Time, fact: &Fact, history: &History, verdict: &mut Verdict) {
        match *fact {
            Fact::RowChanged { shard, verb, before, after, from_record, .. } => {
                let progress = self.shards.of(shard);
                if rewrites(verb, before, after)
                    || (verb == Some(Verb::Delete) && before.is_some_and(|row| row.checkpoint != Mark::End))
                {
                    progress.tampered = true;
                }
                let Some(after) = after else { return };
                if before.is_none() && !progress.seen {
                    progress.seen = true;
                    progress.loose = after.checkpoint == Mark::Latest;
                    if after.checkpoint == Mark::AtTimestamp {
                        progress.done = progress.done.max(from_record.saturating_sub(1));
                    }
                }
                progress.note_rewinding(before, after, history.of_others);
                if before.is_some_and(|row| row.checkpoint == after.checkpoint) || progress.tampered {
                    return;
                }
                match after.checkpoint {
                    Mark::At(record) => {
                        progress.loose = false;
                        if record > progress.done {
                            let done = progress.done;
                            verdict.report(Property::EveryRecordDelivered, now, || {
                                format!(
                                    "the checkpoint of shard {shard} was set to record {record}, but only records up to {done} \
                                     were reported done"
                                )
                            });
                            if history.of_others {
                                // The loss counts against the other program, not against the next reader.
                                progress.done = record;
                            }
                        }
                    }
                    Mark::Nowhere => verdict.report(Property::EveryRecordDelivered, now, || {
                        format!(
                            "the checkpoint of shard {shard} was set to a position that no record of it has"
                        )
                    }),
                    Mark::End => progress.durable_end = true,
                    Mark::AtTimestamp | Mark::TrimHorizon | Mark::Latest => {}
                }
            }
            Fact::Placed { shard, from, born, .. } if !history.of_others => {
                let progress = self.shards.of(shard);
                if std::mem::take(&mut progress.loose) {
                    // No owner is promised records older than the row.
                    progress.done = progress.done.max(from.max(born) - 1);
                }
            }
            Fact::Trimmed { shard, before } => {
                let progress = self.shards.of(shard);
                progress.trimmed = progress.trimmed.max(before - 1);
                progress.done = progress.done.max(progress.trimmed);
            }
            Fact::Given { shard, through, .. } => self.shards.of(shard).done = through,
            Fact::Delivered { life, shard, first, last, .. } => {
                let progress = self.shards.of(shard);
                let kept = progress.kept.get(&life).copied().unwrap_or(0);
                if first > progress.done.max(kept) + 1 && !progress.tampered {
                    if progress.loose {
                        progress.done = first - 1;
                    } else {
                        let done = progress.done.max(kept);
                        verdict.report_of_anybody(Property::EveryRecordDelivered, now, || {
                            format!(
                                "life {life} was given records {first} to {last} of shard {shard}, but only those up to {done} \
                                 were processed or kept before: the ones between were skipped"
                            )
                        });
                    }
                }
                let repeated = (progress.delivered + 1).min(last + 1).saturating_sub(first);
                progress.delivered = progress.delivered.max(last);
                self.duplicates += repeated;
            }
            Fact::Kept { life, shard, first, last, .. } => {
                let progress = self.shards.of(shard);
                let kept = progress.kept.get(&life).copied().unwrap_or(0);
                // The hand-over of the batch already reported the gap.
                if first <= progress.done.max(kept) + 1 {
                    progress.kept.insert(life, last.max(kept));
                }
            }
            Fact::GivenBack { life, shard, .. }
            | Fact::OpenBegun { life, shard, .. }
            | Fact::Closed { life, shard, .. } => drop(self.shards.of(shard).kept.remove(&life)),
            Fact::Processed { shard, through, .. } => {
                let progress = self.shards.of(shard);
                progress.done = progress.done.max(through);
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{self, at_once, changed, count, created, delivered, processed, row};
    use super::*;
    use std::borrow::Borrow;

    fn checkpointed(record: u64) -> Fact {
        let before = row(Some(0), 1, Mark::TrimHorizon);
        changed(0, Some(0), Verb::Checkpoint, Some(before), Some(row(Some(0), 2, Mark::At(record))))
    }

    fn judged<F: Borrow<Fact>>(facts: impl IntoIterator<Item = F>) -> usize {
        count(Property::EveryRecordDelivered, at_once(facts))
    }

    #[test]
    fn a_prefix_may_be_delivered_again_and_checkpointed() {
        let good = [
            created(0, Mark::TrimHorizon),
            delivered(0, 0, 1, 10),
            processed(0, 0, 10),
            checkpointed(10),
            delivered(1, 0, 5, 12),
        ];
        assert_eq!(judged(good), 0);
    }

    #[test]
    fn skipped_records_are_found() {
        let bad = [
            created(0, Mark::TrimHorizon),
            delivered(0, 0, 1, 10),
            processed(0, 0, 7),
            delivered(1, 0, 9, 12),
        ];
        assert_eq!(judged(bad), 1);
    }

    #[test]
    fn a_checkpoint_ahead_of_the_handler_is_found() {
        let bad =
            [created(0, Mark::TrimHorizon), delivered(0, 0, 1, 10), processed(0, 0, 7), checkpointed(8)];
        assert_eq!(judged(bad), 1);
        let nowhere = changed(
            0,
            Some(0),
            Verb::Checkpoint,
            Some(row(Some(0), 1, Mark::At(1))),
            Some(row(Some(0), 2, Mark::Nowhere)),
        );
        assert_eq!(judged([nowhere]), 1);
    }

    #[test]
    fn records_processed_before_the_world_are_not_missed() {
        let given = Fact::Given { shard: 0, through: 10, ended: false };
        let history = [created(0, Mark::At(10)), delivered(0, 0, 11, 12)];
        let told = [given].into_iter().chain(history.clone());
        assert_eq!(judged(told), 0);
        assert_eq!(judged(history), 2);
    }

    #[test]
    fn a_start_of_others_at_latest_is_loose_until_a_checkpoint() {
        let before = row(Some(0), 1, Mark::Latest);
        let checkpoint =
            changed(0, Some(0), Verb::Checkpoint, Some(before), Some(row(Some(0), 2, Mark::At(120))));
        let start = [
            created(0, Mark::Latest),
            delivered(0, 0, 100, 105),
            delivered(1, 0, 111, 120),
            processed(1, 0, 120),
            checkpoint,
        ];
        assert_eq!(judged(&start), 0);
        let skipping = start.into_iter().chain([delivered(0, 0, 122, 130)]);
        assert_eq!(judged(skipping), 1);
    }

    #[test]
    fn a_start_at_latest_is_loose_until_the_service_gives_a_place() {
        let placed = |life| Fact::Placed { life, shard: 0, from: 100, due: 100, floor: 1, born: 100 };
        let good = [created(0, Mark::Latest), placed(0), placed(1), delivered(1, 0, 100, 105)];
        assert_eq!(judged(good), 0);
        let bad = [created(0, Mark::Latest), placed(0), placed(1), delivered(1, 0, 105, 110)];
        assert_eq!(judged(bad), 1);
    }

    /// The owed record after these facts.
    fn owed_after(facts: &[(Fact, bool)]) -> u64 {
        let (mut delivery, mut verdict) = (Delivery::default(), Verdict::default());
        for (fact, of_others) in facts {
            delivery.observe(1, fact, &testing::of_others(*of_others), &mut verdict);
        }
        delivery.owed(0)
    }

    /// The newer checkpoint is durable once the other program, or the lease's next owner, checkpoints anew.
    #[test]
    fn a_checkpoint_written_back_by_its_program_is_not_missed() {
        let written = |owner, counter, before, after, verb| {
            let (before, after) =
                (row(Some(0), counter, Mark::At(before)), row(Some(owner), counter + 1, Mark::At(after)));
            changed(0, Some(owner), verb, Some(before), Some(after))
        };
        let read = [
            (created(0, Mark::TrimHorizon), true),
            (processed(0, 0, 10), true),
            (written(0, 1, 0, 10, Verb::Checkpoint), true),
        ];
        let rewinds = |of_others| (written(0, 2, 10, 7, Verb::Renew), of_others);
        let after = |more: &[(Fact, bool)]| owed_after(&[&read[..], more].concat());
        assert_eq!(after(&[]), 10);
        assert_eq!(after(&[rewinds(true)]), 7);
        assert_eq!(after(&[rewinds(false)]), 10, "ours may not");
        let renewed = (written(0, 3, 7, 7, Verb::Renew), true);
        assert_eq!(after(&[rewinds(true), renewed.clone()]), 7);
        let taken = (written(1, 3, 7, 7, Verb::Take), false);
        assert_eq!(after(&[rewinds(true), taken]), 10);
        let again = (written(0, 3, 7, 9, Verb::Checkpoint), true);
        assert_eq!(after(&[rewinds(true), renewed, again]), 10);
    }
}
