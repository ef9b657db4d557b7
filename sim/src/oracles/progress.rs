//! `progress-durable`: durable checkpoints never go back, across owners, re-creation and clean-up; creating never overwrites; the end
//! of a shard is final.

use super::fact::{Mark, Verb, rewrites};
use super::{Fact, History, PerShard, Property, ROWS, Sees, Time, Verdict};

#[derive(Clone, Debug, Default)]
struct Durable {
    highest: Option<Mark>,
    /// A person removed the row, and its facts are forgotten.
    tampered: bool,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Progress {
    shards: PerShard<Durable>,
    /// A person has removed some row: its lineage may be read again from the remaining leases.
    removed: bool,
}

impl Progress {
    pub(super) const SEES: Sees = Sees::all(ROWS);

    pub(super) fn observe(&mut self, now: Time, fact: &Fact, history: &History, verdict: &mut Verdict) {
        let Fact::RowChanged { shard, by, verb, before, after, .. } = *fact else {
            return;
        };
        self.removed |= verb.is_none() && after.is_none();
        let removed = self.removed;
        let durable = self.shards.of(shard);
        if rewrites(verb, before, after) || (removed && verb == Some(Verb::Create) && before.is_none()) {
            durable.tampered = true;
            durable.highest = None;
        }
        if verb == Some(Verb::Create) && before.is_some() {
            verdict.report(Property::ProgressDurable, now, || {
                format!("the row of shard {shard} was overwritten by a create of {by:?}")
            });
        }
        if verb == Some(Verb::Delete)
            && let Some(row) = before
            && row.checkpoint != Mark::End
        {
            verdict.report(Property::ProgressDurable, now, || {
                format!(
                    "the row of shard {shard} was deleted by {by:?} at {:?}, before its end",
                    row.checkpoint
                )
            });
        }
        let Some(row) = after else { return };
        let stays = before.is_some_and(|before| before.checkpoint == row.checkpoint);
        let back = match durable.highest {
            _ if stays => false,
            // The three ways to begin are equal here. Only a return to the beginning counts.
            Some(highest) if highest.is_initial() => false,
            Some(highest) => row.checkpoint < highest,
            None => false,
        };
        if back && !durable.tampered {
            let highest = durable.highest;
            verdict.report(Property::ProgressDurable, now, || {
                format!(
                    "the checkpoint of shard {shard} went back from {highest:?} to {:?} ({verb:?} by {by:?})",
                    row.checkpoint
                )
            });
        }
        // The violation is reported once, for the responsible worker: the next write begins from the new checkpoint.
        // The owner has not seen a trespasser's progress either, and renews over the progress.
        let ahead = history.trespass && durable.highest.is_some_and(|highest| row.checkpoint > highest);
        if !stays && !ahead {
            durable.highest = Some(row.checkpoint);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{self, at_once, blank, changed, created, judge_only, row};
    use super::*;

    fn to(before: Mark, after: Mark) -> Fact {
        changed(0, Some(0), Verb::Renew, Some(row(Some(0), 1, before)), Some(row(Some(0), 2, after)))
    }

    #[test]
    fn a_trespassers_progress_binds_nobody() {
        let (mut progress, mut verdict) = (Progress::default(), Verdict::default());
        let mut tell = |trespass: bool, before: Mark, after: Mark| {
            let history = History { trespass, ..blank() };
            progress.observe(1, &to(before, after), &history, &mut verdict);
            verdict.violations().len()
        };
        assert_eq!(tell(false, Mark::TrimHorizon, Mark::At(5)), 0);
        assert_eq!(tell(true, Mark::At(5), Mark::At(8)), 0);
        assert_eq!(tell(false, Mark::At(8), Mark::At(8)), 0, "a renewal over it");
        assert_eq!(tell(false, Mark::At(8), Mark::At(6)), 0, "the owner is that far");
        assert_eq!(tell(false, Mark::At(6), Mark::At(4)), 1, "the owner returns");
        assert_eq!(tell(true, Mark::At(4), Mark::At(3)), 2, "a trespasser returns");
    }

    fn removed(before: Mark, verb: Option<Verb>) -> Fact {
        testing::removed(0, verb, Some(row(None, 1, before)))
    }

    fn judged(facts: &[Fact]) -> Vec<Property> {
        judge_only(Property::ProgressDurable, at_once(facts))
    }

    #[test]
    fn going_forward_is_fine() {
        let end = [
            created(0, Mark::Latest),
            to(Mark::Latest, Mark::At(5)),
            to(Mark::At(5), Mark::At(9)),
            to(Mark::At(9), Mark::End),
        ];
        assert_eq!(judged(&end), []);
    }

    #[test]
    fn going_back_is_found_in_every_way() {
        let at = [created(0, Mark::TrimHorizon), to(Mark::TrimHorizon, Mark::At(5))];
        let cases = [
            to(Mark::At(5), Mark::At(4)),
            to(Mark::At(5), Mark::TrimHorizon),
            changed(
                0,
                Some(1),
                Verb::Create,
                Some(row(None, 1, Mark::At(5))),
                Some(row(None, 0, Mark::At(5))),
            ),
            removed(Mark::At(5), Some(Verb::Delete)),
        ];
        for bad in cases {
            assert_eq!(
                judged(&[at[0].clone(), at[1].clone(), bad.clone()]),
                [Property::ProgressDurable],
                "{bad:?}"
            );
        }
    }

    #[test]
    fn a_finished_lease_may_be_removed_but_not_come_back() {
        let mut facts = vec![
            created(0, Mark::TrimHorizon),
            to(Mark::TrimHorizon, Mark::End),
            removed(Mark::End, Some(Verb::Delete)),
        ];
        assert_eq!(judged(&facts), []);
        facts.push(created(0, Mark::TrimHorizon));
        assert_eq!(judged(&facts), [Property::ProgressDurable]);
    }

    #[test]
    fn a_row_removed_by_a_person_may_begin_again() {
        let facts = [
            created(0, Mark::TrimHorizon),
            to(Mark::TrimHorizon, Mark::At(5)),
            removed(Mark::At(5), None),
            created(0, Mark::TrimHorizon),
        ];
        assert_eq!(judged(&facts), []);
    }
}
