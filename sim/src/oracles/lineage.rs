//! `parents-first`: no record of a child is delivered before the durable end of every parent; an ended parent has its
//! children's leases.
//!
//! A parent whose lease was removed after its end counts as ended. A parent without a lease so far counts as ended if
//! no ancestor had a lease either: the parent ended before the application began. Below a leased ancestor, the parent
//! will still get a lease, unless the stream has forgotten the parent.
//!
//! `every-record-delivered` as well: a shard below a leased shard starts at its oldest record, whatever the initial
//! position is.

use super::fact::{Mark, Row, Verb, rewrites};
use super::{EVENTS, Fact, History, PerShard, Property, ROWS, Sees, ShardNo, Time, Verdict};
use std::collections::BTreeSet;

#[derive(Clone, Debug, Default)]
struct Shard {
    had_row: bool,
    /// The creation of its first lease, and the lease's start position.
    start: Option<(Time, Mark)>,
    ended: bool,
    /// Another program wrote the end.
    ended_by_others: bool,
    tampered: bool,
    /// Answers named wrong children, and a worker may believe the names: the leases come after correct listings.
    misread: bool,
    /// The row of this shard or of an ancestor was changed by hand.
    tainted: bool,
}

/// Leases created within this time may come from two workers' listings of the same beginning.
const SAME_FILL_US: Time = 5_000_000;

#[derive(Clone, Debug, Default)]
pub(super) struct Lineage {
    shards: PerShard<Shard>,
}

impl Lineage {
    pub(super) const SEES: Sees = Sees::all(ROWS | EVENTS);

    /// Whether a child has to wait for this shard.
    fn is_unfinished(&self, shard: ShardNo, history: &History) -> bool {
        let Some(state) = self.shards.get(shard as usize) else {
            return false;
        };
        let known = history.shard(shard);
        match known.row {
            _ if state.tampered => false,
            Some(row) => row.is_open(),
            None if state.had_row => !state.ended,
            None if known.forgotten => false,
            None => known.parents.into_iter().flatten().any(|parent| self.was_leased(parent, history)),
        }
    }

    fn was_leased(&self, shard: ShardNo, history: &History) -> bool {
        self.shards.get(shard as usize).is_some_and(|state| {
            let known = history.shard(shard);
            // A forgotten shard without a lease so far cannot be known: no path leads over the shard to its ancestors.
            let mut above = known.parents.into_iter().flatten();
            !state.tainted
                && (state.had_row
                    || (!known.forgotten && above.any(|parent| self.was_leased(parent, history))))
        })
    }

    /// A person changed the lease of this shard: below, leases may have been created without regard to this shard.
    fn taint(&mut self, shard: ShardNo, history: &History) {
        let mut open = vec![shard];
        while let Some(shard) = open.pop() {
            if !std::mem::replace(&mut self.shards.of(shard).tainted, true) {
                open.extend(&history.shard(shard).children);
            }
        }
    }

    /// Whether a worker with a later listing began below this shard at the tip, at the same time as another worker
    /// above. The first record of the application is then below this shard, and no worker reads this shard.
    fn filled_below(&self, shard: ShardNo, above_at: Time, history: &History) -> bool {
        let at_once = |at: Time| at.abs_diff(above_at) <= SAME_FILL_US;
        self.any_below(
            shard,
            history,
            |state| matches!(state.start, Some((at, Mark::Latest | Mark::AtTimestamp)) if at_once(at)),
        )
    }

    /// Whether a row below this shard was changed by hand. Rows of ended shards are removed, so only the rows below
    /// prove the ends. Without proof, the stream looks unread.
    fn tampered_below(&self, shard: ShardNo, history: &History) -> bool {
        self.any_below(shard, history, |state| state.tampered)
    }

    fn any_below(&self, shard: ShardNo, history: &History, is_it: impl Fn(&Shard) -> bool) -> bool {
        let mut seen = BTreeSet::new();
        let mut open = vec![shard];
        while let Some(shard) = open.pop() {
            let children = &history.shard(shard).children;
            if children.iter().any(|child| self.shards.get(*child as usize).is_some_and(&is_it)) {
                return true;
            }
            open.extend(children.iter().filter(|&&child| seen.insert(child)));
        }
        false
    }

    /// Another program creates no leases ahead of time.
    pub(super) fn observe(&mut self, now: Time, fact: &Fact, history: &History, verdict: &mut Verdict) {
        match *fact {
            Fact::ShardBorn { shard, parents } => {
                let above = parents.into_iter().flatten();
                let tainted = above.fold(false, |any, parent| any | self.shards.of(parent).tainted);
                self.shards.of(shard).tainted = tainted;
            }
            Fact::ChildrenMisread { shard } => self.shards.of(shard).misread = true,
            Fact::Given { shard, ended: true, .. } => {
                let state = self.shards.of(shard);
                (state.had_row, state.ended) = (true, true);
            }
            Fact::RowChanged { shard, by, verb, before, after, .. } => {
                let state = self.shards.of(shard);
                state.had_row |= after.is_some();
                if let Some(row) = after {
                    state.start.get_or_insert((now, row.checkpoint));
                }
                let began = state.start;
                if rewrites(verb, before, after) {
                    state.tampered = true;
                    self.taint(shard, history);
                    return;
                }
                let again = verb == Some(Verb::Create) && state.ended;
                if again && self.tampered_below(shard, history) {
                    self.shards.of(shard).tampered = true;
                }
                let state = self.shards.of(shard);
                // A program without knowledge of the end overwrote the end: a worker with knowledge of the end does not
                // wait.
                let undone = state.ended && after.is_some_and(Row::is_open);
                // Or a program without the lease wrote the end, and the owner goes on from its own checkpoint.
                state.tampered |= undone && (history.of_others || state.ended_by_others);
                let is_over = |row: Option<Row>| row.is_some_and(|row| !row.is_open());
                if !is_over(after) || is_over(before) || verb == Some(Verb::Create) {
                    return;
                }
                state.ended_by_others |= history.of_others;
                let misread = state.misread;
                let ended_before = std::mem::replace(&mut state.ended, true);
                let children = &history.shard(shard).children;
                if children.is_empty() && !ended_before {
                    verdict.report(Property::ParentsFirst, now, || {
                        format!("shard {shard} was marked as ended by {by:?} while it is open")
                    });
                }
                if history.of_others {
                    return;
                }
                for &child in children {
                    if let (Some((parent_at, _)), Some((child_at, Mark::Latest | Mark::AtTimestamp))) =
                        (began, self.shards.of(child).start)
                        && child_at > parent_at + SAME_FILL_US
                    {
                        verdict.report(Property::EveryRecordDelivered, now, || {
                            format!(
                                "shard {shard} was marked as ended, and the lease of its child {child} does not start at its \
                                 oldest record: what came before it was opened is lost"
                            )
                        });
                    }
                    let known = misread || self.shards.of(child).had_row || history.shard(child).forgotten;
                    if !known && !began.is_some_and(|(at, _)| self.filled_below(child, at, history)) {
                        verdict.report(Property::ParentsFirst, now, || {
                            format!("shard {shard} was marked as ended before its child {child} had a lease")
                        });
                    }
                }
            }
            Fact::Delivered { life, shard, first, .. } => {
                for parent in history.shard(shard).parents.into_iter().flatten() {
                    if self.is_unfinished(parent, history) {
                        verdict.report(Property::ParentsFirst, now, || {
                            format!(
                                "life {life} was given record {first} of shard {shard} before the end of its parent {parent} \
                                 was durable"
                            )
                        });
                    }
                }
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{
        at_once, beside, blank, born, changed, count, created, delivered, finished, found_alone, judge_only,
        removed, row,
    };
    use super::*;

    fn family() -> Vec<Fact> {
        let mut facts = vec![
            born(0, None),
            created(0, Mark::TrimHorizon),
            Fact::ShardClosed { shard: 0, records: 0, children: vec![1, 2] },
        ];
        facts.extend([1, 2].map(|shard| born(shard, Some(0))));
        facts
    }

    fn end() -> Fact {
        finished(0)
    }

    fn judged(more: impl IntoIterator<Item = Fact>) -> Vec<Property> {
        judge_only(Property::ParentsFirst, family().into_iter().chain(more).map(|fact| (1, fact)))
    }

    #[test]
    fn a_child_that_was_forgotten_needs_no_lease() {
        let one = created(1, Mark::TrimHorizon);
        assert_eq!(judged([one.clone(), end()]), [Property::ParentsFirst]);
        assert_eq!(judged([one, Fact::Forgotten { shard: 2 }, end()]), []);
    }

    #[test]
    fn a_child_between_two_beginnings_at_the_tip_needs_no_lease() {
        let grandchild = [Fact::ShardClosed { shard: 2, records: 0, children: vec![3] }, born(3, Some(2))];
        let close = [created(1, Mark::TrimHorizon), end()];
        let at = |start| {
            let history = grandchild.clone().into_iter().chain([created(3, start)]);
            judged(history.chain(close.clone()))
        };
        assert_eq!(at(Mark::Latest), []);
        assert_eq!(at(Mark::TrimHorizon), [Property::ParentsFirst]);
    }

    /// The row of the first shard is changed by hand. Below, a lease is made, but no lease for the shards between.
    #[test]
    fn below_a_changed_row_shards_without_a_lease_are_unknown() {
        let judged = |verb: Option<Verb>| {
            let between = [born(3, Some(1)), born(4, Some(3))];
            let change = removed(0, verb, Some(row(None, 0, Mark::TrimHorizon)));
            judged(between.into_iter().chain([
                created(1, Mark::TrimHorizon),
                change,
                created(4, Mark::Latest),
                delivered(0, 4, 1, 1),
            ]))
        };
        assert_eq!(judged(None), []);
        assert_eq!(judged(Some(Verb::Delete)), [Property::ParentsFirst]);
    }

    #[test]
    fn an_end_that_another_program_wrote_over_holds_nobody_up() {
        let judged = |of_others: bool| {
            let mut lineage = Lineage::default();
            let mut history = if of_others { beside(7) } else { blank() };
            let [ended, begun] = [row(None, 2, Mark::End), row(Some(7), 3, Mark::TrimHorizon)];
            let undo = changed(0, Some(7), Verb::Take, Some(ended), Some(begun));
            let children = [1, 2].map(|shard| created(shard, Mark::TrimHorizon));
            let then = [undo, delivered(0, 1, 1, 1)];
            let facts = family().into_iter().chain(children).chain([end()]).chain(then);
            found_alone(&mut history, at_once(facts), |at, fact, history, verdict| {
                lineage.observe(at, fact, history, verdict)
            })
        };
        assert_eq!([true, false].map(judged), [0, 1]);
    }

    /// The row of an ended shard was removed in time, and then the row with the proof of its end. The stream is begun
    /// again.
    #[test]
    fn a_parent_begun_again_by_a_hand_below_holds_nobody_up() {
        let judged = |verb: Option<Verb>| {
            let remove = |shard, verb| removed(shard, verb, Some(row(None, 2, Mark::End)));
            judged([
                created(1, Mark::TrimHorizon),
                created(2, Mark::TrimHorizon),
                end(),
                remove(0, Some(Verb::Delete)),
                remove(1, verb),
                created(0, Mark::AtTimestamp),
                delivered(0, 1, 1, 1),
            ])
        };
        assert_eq!(judged(None), []);
        assert_eq!(judged(Some(Verb::Delete)), [Property::ParentsFirst]);
    }

    #[test]
    fn a_child_that_starts_at_its_tip_is_found() {
        let close = [created(1, Mark::Latest), created(2, Mark::TrimHorizon), end()];
        let history = |later: Time| {
            let before = family().into_iter().map(|fact| (1, fact));
            before.chain(close.clone().map(|fact| (later, fact)))
        };
        assert_eq!(
            judge_only(Property::EveryRecordDelivered, history(10_000_000)),
            [Property::EveryRecordDelivered]
        );
        assert_eq!(judge_only(Property::EveryRecordDelivered, history(2)), []);
    }

    #[test]
    fn children_after_the_end_are_in_order() {
        let good =
            [created(1, Mark::TrimHorizon), created(2, Mark::TrimHorizon), end(), delivered(0, 1, 1, 1)];
        assert_eq!(judged(good), []);
    }

    #[test]
    fn a_child_before_its_parents_end_is_found() {
        assert_eq!(judged([created(1, Mark::TrimHorizon), delivered(0, 1, 1, 1)]), [Property::ParentsFirst]);
    }

    #[test]
    fn an_end_without_both_children_is_found() {
        assert_eq!(judged([created(1, Mark::TrimHorizon), end()]), [Property::ParentsFirst]);
    }

    #[test]
    fn an_end_of_an_open_shard_is_found() {
        let bad = [born(0, None), created(0, Mark::TrimHorizon), end()];
        assert_eq!(count(Property::ParentsFirst, at_once(bad)), 1);
    }

    #[test]
    fn a_merged_child_waits_for_the_parent_whose_turn_is_to_come() {
        let facts = [
            born(0, None),
            born(1, None),
            born(2, Some(0)),
            Fact::ShardBorn { shard: 3, parents: [Some(1), Some(2)] },
            created(0, Mark::TrimHorizon),
            created(1, Mark::End),
            created(3, Mark::TrimHorizon),
            delivered(0, 3, 1, 1),
        ];
        assert_eq!(count(Property::ParentsFirst, at_once(facts)), 1);
    }

    #[test]
    fn a_parent_that_was_never_leased_holds_nobody_up() {
        let facts = [born(0, None), born(1, Some(0)), created(1, Mark::Latest), delivered(0, 1, 1, 1)];
        assert_eq!(count(Property::ParentsFirst, at_once(facts)), 0);
    }
}
