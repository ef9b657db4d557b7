//! Answers that the reader doubts: an answer about another shard, and an answer that claims the end of the shard.

use super::Reader;
use crate::input::Fetched;
use crate::reader::{Ctx, Event};
use crate::shard::{ChildShard, of_another_shard};
use crate::time::{Mono, Span};

/// The reader takes an answer that names another shard if so many answers in a row name another shard.
const FOREIGN_ANSWERS: u32 = 3;

/// Answers claim the end of the shard, and prove nothing yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct EndClaim {
    /// When the first of these answers came.
    since: Mono,
    /// No command before this moment.
    pub(super) again_at: Mono,
}

impl Reader {
    /// An answer of another shard: the iterator, or the answer, is not of this shard. Nothing of the answer is taken, and a new iterator is
    /// asked for. Absent: nothing speaks against the answer, or so many answers in a row seemed to be of another shard that they must be
    /// this shard's.
    pub(super) fn refuse_foreign(&mut self, answer: &Fetched, ctx: &Ctx<'_>) -> Option<Event> {
        let positions = [answer.first, answer.last].into_iter().flatten();
        let number = of_another_shard(ctx.subject, positions.map(|position| position.sequence));
        if number.is_none() && !names_children_of_another(answer, ctx.subject) {
            if answer.count > 0 {
                self.foreign = 0;
            }
            return None;
        }
        self.foreign = self.foreign.saturating_add(1);
        if self.foreign >= FOREIGN_ANSWERS {
            return None;
        }
        self.cursor = None;
        self.failures = 0;
        Some(Event::Foreign {
            of: number.map(|(_, of)| of),
        })
    }

    /// Whether an answer without an iterator proves the end of the shard. One answer proves no end: a second answer, from a new iterator after
    /// the last record, must claim the end and bring no record. An answer without children is a weak claim: between the first claim and a weak
    /// second claim, `stream_lag` passes.
    pub(super) fn judge_end(&mut self, now: Mono, answer: &Fetched, ctx: &Ctx<'_>) -> Verdict {
        let names_children = answer.end.as_ref().is_some_and(|children| !children.is_empty());
        let apart = match names_children {
            true => Span::ZERO,
            false => ctx.stream_lag,
        };
        let earlier = self.end_claim.filter(|_| answer.count == 0);
        if earlier.is_some_and(|claim| now.since(claim.since) >= apart) {
            self.end_claim = None;
            return Verdict::Proved;
        }
        let since = earlier.map_or(now, |claim| claim.since);
        let again_at = since + apart;
        self.end_claim = Some(EndClaim { since, again_at });
        match again_at > now {
            true => Verdict::Weak(again_at.since(now)),
            false => Verdict::Claimed,
        }
    }
}

/// What follows from an answer that claims the end.
pub(super) enum Verdict {
    /// The shard has ended.
    Proved,
    /// A second answer is asked for at once.
    Claimed,
    /// A second answer is asked for after this pause.
    Weak(Span),
}

/// Whether an answer names children, and each child names its parents without this shard.
fn names_children_of_another(answer: &Fetched, shard: &str) -> bool {
    let children = answer.end.as_deref().unwrap_or_default();
    let of_another = |child: &ChildShard| {
        !child.parents.is_empty() && child.parents.iter().all(|parent| parent.as_str() != shard)
    };
    !children.is_empty() && children.iter().all(of_another)
}
