//! Whether rows say of their shards what is so: the next to read them has nothing else to go by.

use super::Services;
use crate::faults::Misread;
use crate::names;
use crate::oracles::fact::Verb;
use crate::oracles::{Fact, LifeNo, Property, ShardNo};
use crate::world::context::Context;
use leasehold_engine::format::Format;
use leasehold_engine::row::LeaseRow;
use std::collections::BTreeSet;

/// What answers to our workers got wrong.
#[derive(Debug, Default)]
pub(super) struct Misreadings {
    /// A listing showed hash keys that are not so.
    border: bool,
    /// The children of these shards were named wrongly.
    children: BTreeSet<ShardNo>,
}

impl Services {
    /// Compares what one of our workers wrote of a shard's place in the stream with the stream. Only where rows hold all of it.
    pub(super) fn check_description(
        &mut self,
        cx: &mut Context,
        shard: ShardNo,
        by: Option<LifeNo>,
        verb: Option<Verb>,
        before: Option<&LeaseRow>,
        after: Option<&LeaseRow>,
    ) {
        let (Some(life), Some(verb), Some(row)) = (by, verb, after) else {
            return;
        };
        if cx.plan().format != Format::Kcl || cx.is_lost_for_good() {
            return;
        }
        let wrong = match verb {
            // Later listings correct rows that one answer got wrong: see the end of the world.
            Verb::Create if !self.misread.border => self.wrong_range(shard, row),
            Verb::End if !self.misread.children.contains(&shard) => self.wrong_children(shard, row),
            Verb::Take | Verb::Checkpoint => wrong_switches(verb, before, row),
            _ => None,
        };
        if let Some(wrong) = wrong {
            cx.report(Property::HashSpaceCovered, || {
                format!("by a {verb:?} of life {life}, the row of shard {shard} has {wrong}")
            });
        }
    }

    /// An answer to one of our workers is wrong.
    pub(in crate::world) fn note_misread(&mut self, cx: &mut Context, what: Misread, about: Option<ShardNo>) {
        match (what, about) {
            (Misread::BorderMoved, _) => self.misread.border = true,
            (Misread::ChildMisnamed | Misread::ChildTwice, Some(shard)) => {
                self.misread.children.insert(shard);
                cx.fact(Fact::ChildrenMisread { shard });
            }
            _ => {}
        }
    }

    /// Whether an answer named wrong children of some shard.
    pub(in crate::world) fn has_misnamed(&self) -> bool {
        !self.misread.children.is_empty()
    }

    /// An unfinished lease whose row has other hash keys than its shard, though the row names its stream.
    pub(in crate::world) fn misdescribed(&self) -> Option<(ShardNo, String)> {
        let rows = self.rows.iter().enumerate();
        rows.filter_map(|(shard, lease)| Some((shard as ShardNo, lease.row()?)))
            .filter(|(_, row)| !row.checkpoint.is_end() && row.stream.is_some() && row.range.is_some())
            .find_map(|(shard, row)| Some((shard, self.wrong_range(shard, row)?)))
    }

    fn wrong_range(&self, shard: ShardNo, row: &LeaseRow) -> Option<String> {
        let truth = self.source.shard(shard)?.hash_range();
        let found = row.range.map(|range| (range.start.0, range.end.0));
        (found != Some((truth.start, truth.end))).then(|| {
            format!(
                "the hash range {found:?}, expected {:?}",
                (truth.start, truth.end)
            )
        })
    }

    fn wrong_children(&self, shard: ShardNo, row: &LeaseRow) -> Option<String> {
        let streams = self.source.streams();
        let (stream, _) = streams.place(shard);
        let truth = self.source.shard(shard)?.children().iter();
        let truth: Vec<ShardNo> = truth.map(|child| streams.shard(stream, *child)).collect();
        let named = |number| {
            row.children
                .iter()
                .any(|child| names::number(child.as_str()) == Some(number))
        };
        // What the stream has forgotten nobody can name.
        let forgotten =
            self.source.is_forgotten(shard) || truth.iter().any(|child| self.source.is_forgotten(*child));
        let all = truth.iter().all(|child| named(*child)) || forgotten;
        let more = row.children.len() > truth.len();
        (!all || more).then(|| format!("the children {:?}, expected {truth:?}", row.children))
    }
}

/// How often a lease changed hands since its last checkpoint.
fn wrong_switches(verb: Verb, before: Option<&LeaseRow>, row: &LeaseRow) -> Option<String> {
    let expected = match verb {
        Verb::Take => {
            let before = before?;
            let changes = before.owner.is_some() && before.owner != row.owner;
            before.switches + u64::from(changes)
        }
        _ => 0,
    };
    (row.switches != expected).then(|| {
        format!(
            "{} changes of owner since its last checkpoint, expected {expected}",
            row.switches
        )
    })
}
