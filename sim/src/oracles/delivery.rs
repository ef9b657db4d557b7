//! P1: nothing is skipped, and a checkpoint covers only what was reported done.
//!
//! A shard's records are numbered from 1 without gaps, so what has been processed is a prefix, and whatever is handed
//! over next must begin inside of it or right after it. What is not promised: records before the first checkpoint of a
//! shard begun at LATEST, those before the configured timestamp, and shards whose row a person has removed.

use super::fact::{Mark, Verb};
use super::{Fact, Property, ShardNo, Time, Verdict};

#[derive(Clone, Debug, Default)]
struct Progress {
    /// Everything up to here was reported done, or need not be.
    done: u64,
    /// Everything up to here was handed to some handler.
    delivered: u64,
    /// Everything up to here is gone from the stream.
    trimmed: u64,
    /// Once: records before the first durable position are not promised.
    loose: bool,
    tampered: bool,
    seen: bool,
    durable_end: bool,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Delivery {
    shards: Vec<Progress>,
    duplicates: u64,
}

impl Delivery {
    fn shard(&mut self, shard: ShardNo) -> &mut Progress {
        let index = shard as usize;
        if self.shards.len() <= index {
            self.shards.resize_with(index + 1, Progress::default);
        }
        &mut self.shards[index]
    }

    pub(super) fn processed(&self, shard: ShardNo) -> u64 {
        self.shards
            .get(shard as usize)
            .map_or(0, |progress| progress.done)
    }

    /// The record up to which a checkpoint must cover what was processed; what is gone needs none.
    pub(super) fn owed(&self, shard: ShardNo) -> u64 {
        let progress = self.shards.get(shard as usize);
        progress.map_or(0, |progress| {
            if progress.done > progress.trimmed {
                progress.done
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

    pub(super) fn observe(&mut self, now: Time, fact: &Fact, of_others: bool, verdict: &mut Verdict) {
        match *fact {
            Fact::RowChanged {
                shard,
                verb,
                before,
                after,
                from_record,
                ..
            } => {
                let progress = self.shard(shard);
                if verb.is_none()
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
                if before.is_some_and(|row| row.checkpoint == after.checkpoint) || progress.tampered {
                    return;
                }
                match after.checkpoint {
                    Mark::At(record) => {
                        progress.loose = false;
                        if record > progress.done {
                            let done = progress.done;
                            verdict.report(Property::P1, now, || {
                                format!(
                                    "the checkpoint of shard {shard} was set to record {record}, but only records up to {done} \
                                     were reported done"
                                )
                            });
                            if of_others {
                                // Their loss, not that of who reads on from there.
                                progress.done = record;
                            }
                        }
                    }
                    Mark::Nowhere => verdict.report(Property::P1, now, || {
                        format!(
                            "the checkpoint of shard {shard} was set to a position that no record of it has"
                        )
                    }),
                    Mark::End => progress.durable_end = true,
                    Mark::AtTimestamp | Mark::TrimHorizon | Mark::Latest => {}
                }
            }
            Fact::Trimmed { shard, before } => {
                let progress = self.shard(shard);
                progress.trimmed = progress.trimmed.max(before - 1);
                progress.done = progress.done.max(progress.trimmed);
            }
            Fact::Given { shard, through, .. } => self.shard(shard).done = through,
            Fact::Delivered {
                life,
                shard,
                first,
                last,
                ..
            } => {
                let progress = self.shard(shard);
                if first > progress.done + 1 && !progress.tampered {
                    if progress.loose {
                        progress.done = first - 1;
                    } else {
                        let done = progress.done;
                        verdict.report_of_anybody(Property::P1, now, || {
                            format!(
                                "life {life} was given records {first} to {last} of shard {shard}, but only those up to {done} \
                                 were processed before: the ones between were skipped"
                            )
                        });
                    }
                }
                let repeated = (progress.delivered + 1).min(last + 1).saturating_sub(first);
                progress.delivered = progress.delivered.max(last);
                self.duplicates += repeated;
            }
            Fact::Processed { shard, through, .. } => {
                let progress = self.shard(shard);
                progress.done = progress.done.max(through);
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::history::{changed, created, delivered, judge_only, processed, row};
    use super::*;

    fn checkpointed(record: u64) -> Fact {
        let before = row(Some(0), 1, Mark::TrimHorizon);
        changed(
            0,
            Some(0),
            Verb::Checkpoint,
            Some(before),
            Some(row(Some(0), 2, Mark::At(record))),
        )
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
        assert_eq!(judge_only(Property::P1, good.map(|fact| (1, fact))), []);
    }

    #[test]
    fn skipped_records_are_found() {
        let bad = [
            created(0, Mark::TrimHorizon),
            delivered(0, 0, 1, 10),
            processed(0, 0, 7),
            delivered(1, 0, 9, 12),
        ];
        assert_eq!(
            judge_only(Property::P1, bad.map(|fact| (1, fact))),
            [Property::P1]
        );
    }

    #[test]
    fn a_checkpoint_ahead_of_the_handler_is_found() {
        let bad = [
            created(0, Mark::TrimHorizon),
            delivered(0, 0, 1, 10),
            processed(0, 0, 7),
            checkpointed(8),
        ];
        assert_eq!(
            judge_only(Property::P1, bad.map(|fact| (1, fact))),
            [Property::P1]
        );
        let nowhere = changed(
            0,
            Some(0),
            Verb::Checkpoint,
            Some(row(Some(0), 1, Mark::At(1))),
            Some(row(Some(0), 2, Mark::Nowhere)),
        );
        assert_eq!(judge_only(Property::P1, [(1, nowhere)]), [Property::P1]);
    }

    #[test]
    fn what_was_processed_before_the_world_is_not_missed() {
        let given = Fact::Given {
            shard: 0,
            through: 10,
            ended: false,
        };
        let history = [created(0, Mark::At(10)), delivered(0, 0, 11, 12)];
        let told = [given].into_iter().chain(history.clone());
        assert_eq!(judge_only(Property::P1, told.map(|fact| (1, fact))), []);
        assert_eq!(judge_only(Property::P1, history.map(|fact| (1, fact))).len(), 2);
    }

    #[test]
    fn a_start_at_latest_is_loose_until_its_first_checkpoint() {
        let before = row(Some(0), 1, Mark::Latest);
        let checkpoint = changed(
            0,
            Some(0),
            Verb::Checkpoint,
            Some(before),
            Some(row(Some(0), 2, Mark::At(120))),
        );
        let start = [
            created(0, Mark::Latest),
            delivered(0, 0, 100, 105),
            delivered(1, 0, 111, 120),
            processed(1, 0, 120),
            checkpoint,
        ];
        assert_eq!(judge_only(Property::P1, start.clone().map(|fact| (1, fact))), []);
        let skipping = start.into_iter().chain([delivered(0, 0, 122, 130)]);
        assert_eq!(
            judge_only(Property::P1, skipping.map(|fact| (1, fact))),
            [Property::P1]
        );
    }
}
