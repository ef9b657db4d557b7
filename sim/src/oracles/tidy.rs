//! `progress-durable`: a finished row is removed when no row or worker needs the row any more, not before, and does not
//! stay for ever.
//!
//! The rule holds only for tables whose rows may go after the read of their shards: the children have begun by then,
//! and no row of a parent is left. Rows removed by people, and rows made in their place, are not judged.

use super::fact::{Mark, Verb};
use super::{EVENTS, Fact, History, PerShard, Property, ROWS, Sees, ShardNo, Terms, Time, Verdict};
use leasehold_engine::policy::Finished;
use std::collections::BTreeSet;

/// Workers of lower rank wait for this multiple of the leader's delay, and then until a scan shows the row.
const DEPUTIES: u64 = 4;

#[derive(Clone, Debug)]
pub(super) struct Tidy {
    binding: bool,
    /// The longest stay of a finished row without need, in µs. Absent: for ever.
    patience: Option<u64>,
    /// The last time when a row changed the kind of its checkpoint, or was removed.
    since: PerShard<Time>,
    edited: BTreeSet<ShardNo>,
    /// The last removal of a row: during removals, the other rows wait their turn.
    removed_at: Time,
}

impl Tidy {
    pub(super) const SEES: Sees = Sees::all(ROWS | EVENTS).edits();

    pub(super) fn new(terms: &Terms) -> Self {
        let delay = terms.longest(|config| config.cleanup_delay());
        let kept = terms.least(|config| config.cleanup_delay().0) == 0 || terms.clocks_beyond;
        Self {
            binding: terms.config.policies().finished == Finished::WhenRead,
            patience: (!kept)
                .then_some(DEPUTIES * delay + 3 * terms.longest(|config| config.scan_interval())),
            since: PerShard::default(),
            edited: BTreeSet::new(),
            removed_at: 0,
        }
    }

    /// A child not begun.
    fn waiting(shard: ShardNo, history: &History) -> Option<ShardNo> {
        let begun = |child: &ShardNo| {
            let row = history.shard(*child).row;
            row.is_some_and(|row| !matches!(row.checkpoint, Mark::TrimHorizon | Mark::AtTimestamp))
        };
        history.shard(shard).children.iter().copied().find(|child| !begun(child))
    }

    pub(super) fn observe(&mut self, now: Time, fact: &Fact, history: &History, verdict: &mut Verdict) {
        match *fact {
            // A shard without a row by then did not exist at the beginning, or is not listed.
            Fact::Forgotten { shard } => drop(self.edited.insert(shard)),
            // The row may name a child that does not exist, and never begins. The row of the misread child names the
            // other parent, too.
            Fact::ChildrenMisread { shard } => {
                let children = history.shard(shard).children.iter().copied();
                self.edited.extend(children.chain([shard]));
            }
            Fact::RowChanged { shard, verb, after, .. } => {
                match verb {
                    None => drop(self.edited.insert(shard)),
                    Some(Verb::Delete) => self.removed_at = now,
                    Some(_) => {}
                }
                let removed = verb == Some(Verb::Delete) && self.binding && !self.is_touched(shard, history);
                if let Some(child) = Self::waiting(shard, history).filter(|_| removed) {
                    verdict.report(Property::ProgressDurable, now, || {
                        format!("the row of shard {shard} was removed, and its child {child} has not begun")
                    });
                }
                let known = history.shard(shard);
                let [before, after] = [known.before, after].map(|row| row.map(|row| row.checkpoint));
                // A row created as finished names no children, and workers remove only a row with known children.
                let never_read = before.is_none() && after == Some(Mark::End);
                let kind = |mark: Option<Mark>| {
                    mark.map(|mark| (mark.is_initial() && mark != Mark::Latest, mark == Mark::End))
                };
                if kind(before) != kind(after) {
                    *self.since.of(shard) = now;
                }
                if never_read {
                    self.edited.insert(shard);
                }
            }
            _ => {}
        }
    }

    /// Whether people changed this row, or a row next in the lineage.
    fn is_touched(&self, shard: ShardNo, history: &History) -> bool {
        let known = history.shard(shard);
        let parents = known.parents.iter().flatten();
        let mut family = parents.chain(&known.children).chain([&shard]);
        family.any(|shard| self.edited.contains(shard))
    }

    /// Judges rows not yet removed, after all has been well since `since`.
    pub(super) fn look_at_end(&self, now: Time, since: Time, history: &History, verdict: &mut Verdict) {
        let Some(patience) = self.patience.filter(|_| self.binding) else {
            return;
        };
        for (shard, known) in history.shards() {
            let ended = known.row.is_some_and(|row| !row.is_open());
            let finished = ended && !known.children.is_empty();
            if !finished || self.is_touched(shard, history) || Self::waiting(shard, history).is_some() {
                continue;
            }
            let parents = known.parents.iter().flatten();
            if parents.clone().any(|parent| history.shard(*parent).row.is_some()) {
                continue;
            }
            let family = parents.chain(&known.children).chain([&shard]);
            let free = family.filter_map(|shard| self.since.get(*shard as usize)).max();
            let free = free.copied().unwrap_or(0);
            let free = free.max(since).max(self.removed_at);
            if now > free + patience {
                verdict.report(Property::ProgressDurable, now, || {
                    format!(
                        "the row of shard {shard} was needed no more {} s ago, and is still there; {} s are allowed",
                        (now - free) / 1_000_000,
                        patience / 1_000_000
                    )
                });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{
        at_once, blank, born, changed, config, created, finished, judge_under, row, show_alone,
    };
    use super::*;
    use leasehold_engine::time::Span;

    fn terms() -> Terms {
        Terms::plain(config().with_cleanup_delay(Span::from_secs(60)))
    }

    /// Shard 0 was split into 1 and 2, and read to its end.
    fn split() -> Vec<(u64, Fact)> {
        let closed = Fact::ShardClosed { shard: 0, records: 0, children: vec![1, 2] };
        let facts = [
            born(0, None),
            born(1, Some(0)),
            born(2, Some(0)),
            closed,
            created(0, Mark::TrimHorizon),
            created(1, Mark::TrimHorizon),
            created(2, Mark::TrimHorizon),
            finished(0),
        ];
        at_once(facts).collect()
    }

    fn begins(shard: ShardNo) -> (u64, Fact) {
        let row = |mark| Some(row(Some(0), 1, mark));
        let to = row(Mark::Latest);
        (2, changed(shard, Some(0), Verb::Checkpoint, row(Mark::TrimHorizon), to))
    }

    fn removed(verb: Option<Verb>) -> (u64, Fact) {
        let before = Some(row(None, 2, Mark::End));
        (3, Fact::RowChanged { shard: 0, by: Some(0), verb, before, after: None, from_record: 1 })
    }

    fn judged(then: Vec<(u64, Fact)>) -> bool {
        judge_under(&terms(), split().into_iter().chain(then)).contains(&Property::ProgressDurable)
    }

    #[test]
    fn a_row_goes_when_all_children_have_begun() {
        assert!(!judged(vec![begins(1), begins(2), removed(Some(Verb::Delete))]));
        assert!(judged(vec![begins(1), removed(Some(Verb::Delete))]));
        assert!(!judged(vec![begins(1), removed(None)]), "by hand");
    }

    const DAY: u64 = 86_400_000_000;

    /// Whether a row stays for too long: the world ends at `now`.
    fn stays(then: Vec<(u64, Fact)>, now: u64) -> bool {
        let (mut tidy, mut verdict, mut history) = (Tidy::new(&terms()), Verdict::default(), blank());
        let facts = split().into_iter().chain(then);
        show_alone(&mut history, facts, |at, fact, history| tidy.observe(at, fact, history, &mut verdict));
        tidy.look_at_end(now, 0, &history, &mut verdict);
        !verdict.violations().is_empty()
    }

    /// Of many rows, some are removed first.
    #[test]
    fn a_row_may_wait_for_its_turn_to_go() {
        let other = (DAY, changed(7, Some(0), Verb::Delete, Some(row(None, 2, Mark::End)), None));
        let facts = vec![begins(1), begins(2), other];
        assert!(!stays(facts.clone(), DAY + 1));
        assert!(stays(facts, 2 * DAY));
    }

    #[test]
    fn a_row_that_names_a_wrong_child_may_stay() {
        let misread = (3, Fact::ChildrenMisread { shard: 0 });
        assert!(!stays(vec![begins(1), begins(2), misread], DAY));
    }

    #[test]
    fn a_row_that_nobody_needs_does_not_stay() {
        assert!(stays(vec![begins(1), begins(2)], DAY));
        assert!(!stays(vec![begins(1), begins(2)], 60_000_000), "not yet");
        assert!(!stays(vec![begins(1)], DAY), "needed");
        assert!(!stays(vec![begins(1), begins(2), removed(Some(Verb::Delete))], DAY));
    }
}
