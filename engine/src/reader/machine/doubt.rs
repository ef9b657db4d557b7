//! Answers that are not taken at their word: one that seems to be of another shard, and one that claims an end.

use super::Reader;
use crate::input::Fetched;
use crate::reader::{Ctx, Event};
use crate::shard::{ChildShard, of_another_shard};

/// An answer that seems to be of another shard is taken when so many answers in a row do.
const FOREIGN_ANSWERS: u32 = 3;

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

    /// Whether an answer without an iterator proves the end of the shard. An answer that names the children, and is not behind, proves the
    /// end. Any other answer claims the end: a second answer in a row must claim it, from a new iterator after the last record, and bring no
    /// record.
    pub(super) fn proves_end(&mut self, answer: &Fetched) -> bool {
        let names_children = answer.end.as_ref().is_some_and(|children| !children.is_empty());
        let proved = match names_children && answer.behind_ms == 0 {
            true => true,
            false => answer.count == 0 && self.end_claimed,
        };
        self.end_claimed = !proved;
        proved
    }
}

/// Whether an answer names children, and each child names its parents without this shard.
fn names_children_of_another(answer: &Fetched, shard: &str) -> bool {
    let children = answer.end.as_deref().unwrap_or_default();
    let of_another = |child: &ChildShard| {
        !child.parents.is_empty() && child.parents.iter().all(|parent| parent.as_str() != shard)
    };
    !children.is_empty() && children.iter().all(of_another)
}
