//! `hand-over-completes`: a hand-over once begun reaches the promised owner, and costs no record twice.
//!
//! The old owner lets its handler finish, stores the checkpoint, closes the shard, and only then gives up the row. So
//! at the hand-over the checkpoint covers all records reported done under its ownership. The old owner hands no more
//! batches to its handler. A worker told to stop meanwhile may run out of time. After the faults, every hand-over must
//! end.

use super::fact::{Mark, Owner, Row, Verb, begins, owner};
use super::{EVENTS, Fact, History, LifeNo, Property, ROWS, Sees, ShardNo, Time, Verdict};
use std::collections::{BTreeMap, BTreeSet};

#[derive(Clone, Debug, Default)]
pub(super) struct HandOvers {
    /// The progress of each owner under its present ownership.
    done: BTreeMap<(ShardNo, LifeNo), u64>,
    /// Owners whose lease was handed over, and not taken again.
    gone: BTreeSet<(ShardNo, LifeNo)>,
}

impl HandOvers {
    pub(super) const SEES: Sees = Sees::ours(ROWS | EVENTS);

    pub(super) fn observe(&mut self, now: Time, fact: &Fact, history: &History, verdict: &mut Verdict) {
        match *fact {
            Fact::RowChanged { shard, verb, before, after, .. } => {
                if let (Some(Verb::HandOver | Verb::Release), Some(before)) = (verb, before) {
                    self.ended(now, shard, (before, after), history, verdict);
                }
                if let Some(Owner::Life(life)) = owner(after)
                    && begins(verb, before, after)
                {
                    // By a take, or by a lease handed back.
                    self.done.remove(&(shard, life));
                    self.gone.remove(&(shard, life));
                }
            }
            Fact::Processed { life, shard, through, .. } => {
                let done = self.done.entry((shard, life)).or_default();
                *done = through.max(*done);
            }
            Fact::Delivered { life, shard, first, .. }
                if self.gone.contains(&(shard, life)) && !history.shard(shard).edited =>
            {
                verdict.report(Property::HandOverCompletes, now, || {
                    format!("life {life} handed over shard {shard}, and gave record {first} of it to its handler after that")
                });
            }
            Fact::Died { life } | Fact::Stopped { life, .. } => {
                self.done.retain(|(_, of), _| *of != life);
                self.gone.retain(|(_, of)| *of != life);
            }
            _ => {}
        }
    }

    /// The old owner gave up a row during its hand-over.
    fn ended(
        &mut self, now: Time, shard: ShardNo, (before, after): (Row, Option<Row>), history: &History,
        verdict: &mut Verdict,
    ) {
        let (Some(next), Some(Owner::Life(life))) = (before.next, before.owner) else {
            return;
        };
        self.gone.insert((shard, life));
        let got = owner(after);
        if got != Some(next) {
            verdict.report(Property::HandOverCompletes, now, || {
                format!("life {life} was to hand shard {shard} over to {next:?}, and it went to {got:?}")
            });
        }
        let done = self.done.get(&(shard, life)).copied().unwrap_or(0);
        let durable = match before.checkpoint {
            Mark::At(record) => record,
            Mark::End => u64::MAX,
            Mark::AtTimestamp | Mark::TrimHorizon | Mark::Latest | Mark::Nowhere => 0,
        };
        if durable < done && !history.stopping.contains(&life) && !history.shard(shard).edited {
            let at = before.checkpoint;
            verdict.report(Property::HandOverCompletes, now, || {
                format!(
                    "life {life} handed shard {shard} over at {at:?}, and records up to {done} were reported done: they will \
                     be processed twice"
                )
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{changed, count, delivered, processed, row};
    use super::*;

    fn handing_over(counter: u64, checkpoint: Mark) -> Row {
        Row { next: Some(Owner::Life(1)), ..row(Some(0), counter, checkpoint) }
    }

    /// Life 0 takes the shard and processes ten records; then a hand-over to life 1 begins.
    fn begun() -> Vec<Fact> {
        let taken = row(Some(0), 1, Mark::TrimHorizon);
        let begun = handing_over(1, Mark::TrimHorizon);
        vec![
            changed(0, Some(0), Verb::Take, None, Some(taken)),
            delivered(0, 0, 1, 10),
            processed(0, 0, 10),
            changed(0, None, Verb::BeginHandOver, Some(taken), Some(begun)),
        ]
    }

    fn done(at: Mark, to: u32) -> Fact {
        let (before, after) = (handing_over(2, at), row(Some(to), 3, at));
        changed(0, Some(0), Verb::HandOver, Some(before), Some(after))
    }

    fn judged(more: impl IntoIterator<Item = Fact>) -> usize {
        let facts = begun().into_iter().chain(more).map(|fact| (1, fact));
        count(Property::HandOverCompletes, facts)
    }

    #[test]
    fn processed_records_are_durable_before_the_row_is_given_up() {
        assert_eq!(judged([done(Mark::At(10), 1), delivered(1, 0, 11, 12)]), 0);
        assert_eq!(judged([done(Mark::At(9), 1)]), 1);
        assert_eq!(judged([done(Mark::TrimHorizon, 1)]), 1);
        let stopping = Fact::ShutdownAsked { life: 0 };
        assert_eq!(judged([stopping, done(Mark::At(9), 1)]), 0, "there was no time for more");
    }

    #[test]
    fn it_goes_to_whom_it_was_promised() {
        assert_eq!(judged([done(Mark::At(10), 2)]), 1);
    }

    #[test]
    fn the_old_owner_is_done_with_it_unless_it_takes_it_again() {
        let again = |life| {
            let before = row(Some(1), 3, Mark::At(10));
            let after = row(Some(life), 4, Mark::At(10));
            changed(0, Some(life), Verb::Take, Some(before), Some(after))
        };
        let late = delivered(0, 0, 11, 12);
        assert_eq!(judged([done(Mark::At(10), 1), late.clone()]), 1);
        assert_eq!(judged([done(Mark::At(10), 1), again(1), late.clone()]), 1);
        assert_eq!(judged([done(Mark::At(10), 1), again(0), late]), 0);
    }
}
