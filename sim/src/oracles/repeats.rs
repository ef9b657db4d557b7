//! `every-record-delivered`: in fleets of several programs, too, nothing is repeated without a crash or a steal.
//!
//! The next owner of a shard, ours or a program of others, is handed nothing again that
//!
//! * a checkpoint in the row covers; the end of the shard covers all of it;
//! * its owner had processed when it let go of the lease by a release, a hand-over or an end. Of one that is told to stop, what it wrote counts:
//!   it may run out of time.
//!
//! These excuse a repetition, and nothing else does:
//!
//! | excuse | why |
//! |---|---|
//! | a crash | what was processed since the last checkpoint is in nobody's row |
//! | a steal, or the take of an expired lease | the former owner did not let go: its row says less than it did |
//! | the next owner read the row before that | a program of others begins where the row was when it read the row |
//! | another program, or a person, wrote an older checkpoint back | from then on the row's word counts |
//! | a person removed a row, or the table or the stream was lost | leases begin anew |
//! | a person put an open shard at its end after the next owner had read the row | the take is of the row that was read: the counter is the same |
//!
//! `parents-first` as well: after a child has begun, nobody reads its finished parent again.

mod parent_rows;

use super::fact::{Mark, Owner, Row, Verb};
use super::{Fact, LifeNo, Property, ShardNo, Terms, Time, Verdict};
use parent_rows::ParentRows;
use std::collections::{BTreeMap, BTreeSet};

/// What the end of a shard covers.
const ALL: u64 = u64::MAX;

#[derive(Clone, Debug, Default)]
struct Shard {
    parents: [Option<ShardNo>; 2],
    /// Nobody need process anything up to here again.
    covered: u64,
}

/// One ownership.
#[derive(Clone, Copy, Debug, Default)]
struct Ownership {
    token: u64,
    /// What was covered when it read where to begin.
    floor: u64,
}

#[derive(Clone, Debug)]
pub(super) struct Repeats {
    parent_rows: ParentRows,
    shards: Vec<Shard>,
    /// What was covered when a life read the row last, or when the row became its own.
    seen: BTreeMap<(LifeNo, ShardNo), u64>,
    owners: BTreeMap<(LifeNo, ShardNo), Ownership>,
    /// How far each owner has processed.
    processed: BTreeMap<(LifeNo, ShardNo), u64>,
    stopping: BTreeSet<LifeNo>,
    /// Workers of other programs whose two readers of a shard take turns: one reader wrote an older checkpoint over a newer one.
    wrote_back: BTreeSet<(LifeNo, ShardNo)>,
    /// Shards that a person put at their ends: what was covered before, and who was shown the end.
    ended_by_hand: BTreeMap<ShardNo, (u64, BTreeSet<LifeNo>)>,
    /// Somebody was handed records of a child of these.
    passed: BTreeSet<ShardNo>,
    /// Leases begin anew, and nobody knows from where.
    lost: bool,
}

fn covers(row: Row) -> u64 {
    match row.checkpoint {
        Mark::At(record) => record,
        Mark::End => ALL,
        Mark::AtTimestamp | Mark::TrimHorizon | Mark::Latest | Mark::Nowhere => 0,
    }
}

impl Repeats {
    pub(super) fn new(terms: &Terms) -> Self {
        Self {
            parent_rows: ParentRows::new(terms),
            shards: Vec::new(),
            seen: BTreeMap::new(),
            owners: BTreeMap::new(),
            processed: BTreeMap::new(),
            stopping: BTreeSet::new(),
            wrote_back: BTreeSet::new(),
            ended_by_hand: BTreeMap::new(),
            passed: BTreeSet::new(),
            lost: false,
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
        self.parent_rows.observe(now, fact, of_others, verdict);
        match *fact {
            Fact::ShardBorn { shard, parents } => self.shard(shard).parents = parents,
            Fact::RowChanged {
                shard,
                by,
                verb,
                before,
                after,
                ..
            } => self.row_changed(
                shard,
                by.filter(|_| verb.is_some()),
                of_others,
                before,
                after,
                verb,
            ),
            // Where it begins is decided by what the row says now.
            Fact::Looked { life, shard } => {
                let covered = self.shard(shard).covered;
                self.seen.insert((life, shard), covered);
            }
            Fact::Shown { life, shard, row, .. } if row.checkpoint == Mark::End => {
                if let Some((_, shown)) = self.ended_by_hand.get_mut(&shard) {
                    shown.insert(life);
                }
            }
            Fact::OpenBegun { life, shard, token } => {
                let floor = self.seen.get(&(life, shard)).copied().unwrap_or(0);
                self.owners.insert((life, shard), Ownership { token, floor });
                self.processed.remove(&(life, shard));
            }
            Fact::Processed {
                life, shard, through, ..
            } => {
                let done = self.processed.entry((life, shard)).or_default();
                *done = through.max(*done);
            }
            Fact::Delivered {
                life,
                shard,
                token,
                first,
                ..
            } => {
                self.delivered(now, (life, shard, token), first, verdict);
                let parents = self.shard(shard).parents;
                self.passed.extend(parents.into_iter().flatten());
            }
            Fact::Died { life } | Fact::Stopped { life, .. } => {
                self.seen.retain(|(of, _), _| *of != life);
                self.owners.retain(|(of, _), _| *of != life);
                self.processed.retain(|(of, _), _| *of != life);
                self.wrote_back.retain(|(of, _)| *of != life);
            }
            Fact::ShutdownAsked { life } | Fact::GivesUp { life } => drop(self.stopping.insert(life)),
            Fact::LostForGood | Fact::Foreign => self.lost = true,
            _ => {}
        }
    }

    /// `by`: absent for a person.
    fn row_changed(
        &mut self,
        shard: ShardNo,
        by: Option<LifeNo>,
        of_others: bool,
        before: Option<Row>,
        after: Option<Row>,
        verb: Option<Verb>,
    ) {
        let owner = |row: Option<Row>| row.and_then(|row| row.owner);
        let goes_back = before.map_or(0, covers) > after.map_or(0, covers) && after.is_some();
        if let Some(life) = by.filter(|_| goes_back && of_others) {
            self.wrote_back.insert((life, shard));
        }
        let done = by
            .filter(|life| !self.stopping.contains(life) && !self.wrote_back.contains(&(*life, shard)))
            .and_then(|life| self.processed.get(&(life, shard)).copied());
        let Some(row) = after else {
            // What was finished stays so without its row.
            self.lost |= before.is_some_and(|row| row.checkpoint != Mark::End) || by.is_none();
            return;
        };
        let state = self.shard(shard);
        let (was, is) = (before.map_or(0, covers), covers(row));
        let covered_before = state.covered;
        if is < was && (of_others || by.is_none()) {
            state.covered = is;
        }
        state.covered = state.covered.max(is);
        // It lets go: nobody takes the lease from it.
        let lets_go =
            by.is_some_and(|life| owner(before) == Some(Owner::Life(life))) && owner(after) != owner(before);
        if let Some(done) = done.filter(|_| lets_go) {
            state.covered = state.covered.max(done);
        }
        let covered = state.covered;
        self.note_end_by_hand(shard, by, (was, is), covered_before);
        let becomes = match owner(after) {
            Some(Owner::Life(life)) if owner(before) != owner(after) || verb == Some(Verb::Take) => {
                Some(life)
            }
            _ => None,
        };
        if let Some(life) = becomes {
            // What it processed under an earlier ownership was taken from it, or let go of, then.
            self.processed.remove(&(life, shard));
            self.wrote_back.remove(&(life, shard));
        }
        if let Some(life) = becomes.filter(|life| !of_others || by != Some(*life)) {
            // From an owner that did not let go, no more is had than the row says.
            let robbed = owner(before).is_some() && by == Some(life) && owner(before) != owner(after);
            let unknown = self.ended_by_hand.get(&shard);
            let unknown = unknown.filter(|(_, shown)| by == Some(life) && !shown.contains(&life));
            let seen = unknown.map_or(if robbed { is } else { covered }, |(before, _)| *before);
            self.seen.insert((life, shard), seen);
        }
    }

    /// A person puts a shard at its end. The counter stays as it is, so a take of a worker that has read the row before is applied all the same.
    fn note_end_by_hand(&mut self, shard: ShardNo, by: Option<LifeNo>, (was, is): (u64, u64), covered: u64) {
        if is != ALL {
            self.ended_by_hand.remove(&shard);
        } else if was != ALL && by.is_none() {
            self.ended_by_hand.insert(shard, (covered, BTreeSet::new()));
        }
    }

    fn delivered(
        &mut self,
        now: Time,
        (life, shard, token): (LifeNo, ShardNo, u64),
        first: u64,
        verdict: &mut Verdict,
    ) {
        let owner = self
            .owners
            .get(&(life, shard))
            .filter(|owner| owner.token == token);
        let Some(floor) = owner
            .map(|owner| owner.floor)
            .filter(|floor| first <= *floor && !self.lost)
        else {
            return;
        };
        if floor == ALL {
            let (property, when) = match self.passed.contains(&shard) {
                true => (Property::ParentsFirst, "after a child had begun"),
                false => (Property::EveryRecordDelivered, "again"),
            };
            return verdict.report_of_anybody(property, now, || {
                format!(
                    "life {life} was given record {first} of shard {shard} {when}, and the row that it had read said that the \
                     shard was processed to its end"
                )
            });
        }
        verdict.report_of_anybody(Property::EveryRecordDelivered, now, || {
            format!(
                "life {life} was given record {first} of shard {shard}, and nobody had crashed or was robbed: when it read where to \
                 begin, those up to {floor} were processed, and the lease was let go of in good order or its checkpoint covered them"
            )
        });
    }
}

#[cfg(test)]
mod tests {
    use super::super::history::{changed, config, delivered, processed, row};
    use super::*;

    /// Life 0 is ours, life 1 is a program of others.
    fn judged(facts: impl IntoIterator<Item = Fact>) -> Vec<Property> {
        let (mut repeats, mut verdict) = (Repeats::new(&Terms::plain(config())), Verdict::default());
        for fact in facts {
            repeats.observe(1, &fact, fact.life() == Some(1), &mut verdict);
        }
        verdict.violations().iter().map(|found| found.property).collect()
    }

    fn opened(life: u32) -> Fact {
        let (shard, token) = (0, 1);
        Fact::OpenBegun { life, shard, token }
    }

    fn looked() -> Fact {
        Fact::Looked { life: 1, shard: 0 }
    }

    /// A write of life `by`, from one row to the next.
    fn written(by: u32, verb: Verb, before: (Option<u32>, Mark), after: (Option<u32>, Mark)) -> Fact {
        let [before, after] = [before, after].map(|(owner, mark)| Some(row(owner, 1, mark)));
        changed(0, Some(by), verb, before, after)
    }

    /// Ours takes the shard and processes ten records of it; five are in the row.
    fn begun() -> Vec<Fact> {
        let start = Mark::TrimHorizon;
        vec![
            written(0, Verb::Take, (None, start), (Some(0), start)),
            opened(0),
            delivered(0, 0, 1, 10),
            processed(0, 0, 10),
            written(0, Verb::Checkpoint, (Some(0), start), (Some(0), Mark::At(5))),
        ]
    }

    fn theirs_from(before: Option<u32>, mark: Mark, first: u64) -> Vec<Fact> {
        let take = written(1, Verb::Take, (before, mark), (Some(1), mark));
        vec![looked(), take, opened(1), delivered(1, 0, first, 12)]
    }

    fn after(more: impl IntoIterator<Item = Fact>) -> Vec<Property> {
        judged(begun().into_iter().chain(more))
    }

    #[test]
    fn what_ours_let_go_of_in_good_order_is_not_read_again() {
        let release = |at| written(0, Verb::Release, (Some(0), Mark::At(5)), (None, Mark::At(at)));
        let then = |at, first| {
            after(
                [release(at)]
                    .into_iter()
                    .chain(theirs_from(None, Mark::At(at), first)),
            )
        };
        assert_eq!(then(10, 11), []);
        assert_eq!(then(10, 10), [Property::EveryRecordDelivered]);
        assert_eq!(then(5, 6), [Property::EveryRecordDelivered], "let go of unsaved");
        let stopping = [Fact::ShutdownAsked { life: 0 }, release(5)];
        let hurried = after(stopping.into_iter().chain(theirs_from(None, Mark::At(5), 6)));
        assert_eq!(hurried, [], "there was no time for more");
    }

    #[test]
    fn what_was_stolen_or_left_by_a_crash_comes_again() {
        assert_eq!(after(theirs_from(Some(0), Mark::At(5), 6)), []);
        assert_eq!(
            after(theirs_from(Some(0), Mark::At(5), 5)),
            [Property::EveryRecordDelivered],
            "the checkpoint covers it"
        );
        let crash = [Fact::Died { life: 0 }];
        assert_eq!(
            after(crash.into_iter().chain(theirs_from(Some(0), Mark::At(5), 6))),
            []
        );
    }

    #[test]
    fn an_end_that_a_person_writes_counts_for_those_who_were_shown_it() {
        let release = written(0, Verb::Release, (Some(0), Mark::At(5)), (None, Mark::At(10)));
        let [before, after] = [Mark::At(10), Mark::End].map(|mark| Some(row(None, 1, mark)));
        let edit = changed(0, None, Verb::Checkpoint, before, after);
        let shown = |mark| Fact::Shown {
            life: 2,
            shard: 0,
            row: row(None, 1, mark),
            scanned: true,
        };
        let ours_from = |shown: Option<Fact>, first| {
            let take = written(2, Verb::Take, (None, Mark::End), (Some(2), Mark::End));
            let then = [take, opened(2), delivered(2, 0, first, 12)];
            let before = [release.clone(), edit.clone()].into_iter().chain(shown);
            judged(begun().into_iter().chain(before).chain(then))
        };
        assert_eq!(ours_from(None, 11), []);
        assert_eq!(ours_from(Some(shown(Mark::At(10))), 11), []);
        let again = [Property::EveryRecordDelivered];
        assert_eq!(
            ours_from(None, 10),
            again,
            "the row that it had read covered this"
        );
        assert_eq!(ours_from(Some(shown(Mark::End)), 11), again);
    }

    fn end() -> Fact {
        written(0, Verb::End, (Some(0), Mark::At(5)), (None, Mark::End))
    }

    #[test]
    fn what_ours_ended_is_not_read_again() {
        assert_eq!(
            after([end()].into_iter().chain(theirs_from(None, Mark::End, 6))),
            [Property::EveryRecordDelivered]
        );
        let child = Fact::ShardBorn {
            shard: 1,
            parents: [Some(0), None],
        };
        let begun = [child, end(), delivered(0, 1, 1, 1)];
        assert_eq!(
            after(begun.into_iter().chain(theirs_from(None, Mark::End, 11))),
            [Property::ParentsFirst]
        );
        let only_taken = theirs_from(None, Mark::End, 6).into_iter().take(3);
        assert_eq!(after([end()].into_iter().chain(only_taken)), []);
    }

    #[test]
    fn who_read_the_row_before_cannot_know() {
        let late = [looked(), end()];
        let back = written(1, Verb::Take, (None, Mark::End), (Some(1), Mark::At(5)));
        let more = [back, opened(1), delivered(1, 0, 6, 12)];
        assert_eq!(after(late.into_iter().chain(more.clone())), []);
        // What is written back is what the row says from then on.
        let again = [written(
            1,
            Verb::Release,
            (Some(1), Mark::At(5)),
            (None, Mark::At(5)),
        )];
        let ours = [
            written(0, Verb::Take, (None, Mark::At(5)), (Some(0), Mark::At(5))),
            opened(0),
            delivered(0, 0, 6, 12),
        ];
        let history = [looked(), end()].into_iter().chain(more).chain(again).chain(ours);
        assert_eq!(after(history), []);
    }

    #[test]
    fn what_theirs_let_go_of_ours_does_not_read_again() {
        let start = Mark::TrimHorizon;
        let theirs = [
            looked(),
            written(1, Verb::Create, (None, start), (Some(1), start)),
            opened(1),
            delivered(1, 0, 1, 10),
            processed(1, 0, 10),
        ];
        let ours = |owner, mark, first| {
            let take = written(0, Verb::Take, (owner, mark), (Some(0), mark));
            [take, opened(0), delivered(0, 0, first, 12)]
        };
        let release = written(1, Verb::Release, (Some(1), start), (None, Mark::At(10)));
        let let_go =
            |first| {
                judged(theirs.clone().into_iter().chain([release.clone()]).chain(ours(
                    None,
                    Mark::At(10),
                    first,
                )))
            };
        assert_eq!(let_go(11), []);
        assert_eq!(let_go(10), [Property::EveryRecordDelivered]);
        let robbed = judged(theirs.into_iter().chain(ours(Some(1), start, 1)));
        assert_eq!(robbed, []);
    }

    #[test]
    fn after_a_person_removed_a_row_nothing_is_asked() {
        let removed = Fact::RowChanged {
            shard: 0,
            by: None,
            verb: None,
            before: Some(row(Some(0), 1, Mark::At(5))),
            after: None,
            from_record: 1,
        };
        assert_eq!(
            after(
                [removed]
                    .into_iter()
                    .chain(theirs_from(None, Mark::TrimHorizon, 1))
            ),
            []
        );
    }
}
