//! Whether rows describe their shards truly: the next reader of a row has no other source.

use super::Services;
use crate::faults::Misread;
use crate::names;
use crate::oracles::fact::Verb;
use crate::oracles::{Fact, LifeNo, Property, ShardNo};
use crate::world::context::Context;
use leasehold_engine::format::Format;
use leasehold_engine::row::LeaseRow;
use std::collections::BTreeMap;

/// Errors in answers to our workers.
#[derive(Debug, Default)]
pub(super) struct Misreadings {
    /// A listing showed wrong hash keys.
    border: bool,
    /// The number of answers with a wrong name for a child, by shard.
    misnamed: BTreeMap<ShardNo, u32>,
    /// Some answer named the children of a shard wrongly.
    children: bool,
}

impl Misreadings {
    /// Whether a worker may believe a wrong name of the shard's child, after this many answers.
    fn is_misnamed(&self, shard: ShardNo) -> bool {
        self.misnamed.get(&shard).is_some_and(|&answers| answers >= 2)
    }
}

impl Services {
    /// Compares our worker's description of a shard in its row with the stream. Only in a format whose rows hold the
    /// whole description.
    pub(super) fn check_description(
        &mut self, cx: &mut Context, shard: ShardNo, by: Option<LifeNo>, verb: Option<Verb>,
        before: Option<&LeaseRow>, after: Option<&LeaseRow>,
    ) {
        let (Some(life), Some(verb), Some(row)) = (by, verb, after) else {
            return;
        };
        if cx.plan().format != Format::Kcl || cx.is_lost_for_good() {
            return;
        }
        let wrong = match verb {
            // Later listings correct rows with an error from one answer: see the end of the world.
            Verb::Create if !self.misread.border => self.wrong_range(shard, row),
            Verb::End if !self.misread.is_misnamed(shard) => self.wrong_children(shard, row),
            Verb::Take | Verb::Checkpoint => wrong_switches(verb, before, row),
            _ => None,
        };
        if let Some(wrong) = wrong {
            cx.report(Property::HashSpaceCovered, || {
                format!("by a {verb:?} of life {life}, the row of shard {shard} has {wrong}")
            });
        }
    }

    /// Notes a wrong answer to one of our workers.
    pub(in crate::world) fn note_misread(&mut self, cx: &mut Context, what: Misread, about: Option<ShardNo>) {
        self.misread.children |= what.is_of_children();
        match (what, about) {
            (Misread::BorderMoved, _) => self.misread.border = true,
            (Misread::ChildMisnamed, Some(shard)) => {
                *self.misread.misnamed.entry(shard).or_default() += 1;
                if self.misread.is_misnamed(shard) {
                    cx.fact(Fact::ChildrenMisread { shard });
                }
            }
            _ => {}
        }
    }

    /// Whether an answer showed wrong hash keys of some shard.
    pub(in crate::world) fn has_moved_border(&self) -> bool {
        self.misread.border
    }

    /// Whether an answer named wrong children of some shard.
    pub(in crate::world) fn has_misnamed(&self) -> bool {
        self.misread.children
    }

    /// An unfinished lease with wrong hash keys in its row, though the row names its stream.
    pub(in crate::world) fn misdescribed(&self) -> Option<(ShardNo, String)> {
        let rows = self.rows.iter().enumerate();
        rows.filter_map(|(shard, lease)| Some((shard as ShardNo, lease.row()?)))
            .filter(|(_, row)| !row.checkpoint.is_end() && row.stream.is_some() && row.range.is_some())
            .find_map(|(shard, row)| Some((shard, self.wrong_range(shard, row)?)))
    }

    /// Whether this shard's row is the last to name its stream, while some row of the stream has wrong hash keys.
    /// Without the name, a starting worker would take such a row for a row of another stream.
    pub(super) fn is_last_to_name(&self, shard: ShardNo) -> bool {
        let streams = self.source.streams();
        let rows = self.rows.iter().enumerate();
        let rows = rows.filter_map(|(shard, lease)| Some((shard as ShardNo, lease.row()?)));
        let mut rows = rows.filter(|(other, _)| streams.of(*other) == streams.of(shard));
        let others_name = rows.clone().any(|(other, row)| other != shard && row.stream.is_some());
        !others_name && rows.any(|(shard, row)| row.range.is_some() && self.wrong_range(shard, row).is_some())
    }

    fn wrong_range(&self, shard: ShardNo, row: &LeaseRow) -> Option<String> {
        let truth = self.source.shard(shard)?.hash_range();
        let found = row.range.map(|range| (range.start.0, range.end.0));
        (found != Some((truth.start, truth.end)))
            .then(|| format!("the hash range {found:?}, expected {:?}", (truth.start, truth.end)))
    }

    fn wrong_children(&self, shard: ShardNo, row: &LeaseRow) -> Option<String> {
        let streams = self.source.streams();
        let (stream, _) = streams.place(shard);
        let truth = self.source.shard(shard)?.children().iter();
        let truth: Vec<ShardNo> = truth.map(|child| streams.shard(stream, *child)).collect();
        let named = |number| row.children.iter().any(|child| names::number(child.as_str()) == Some(number));
        // No worker can name children forgotten by the stream.
        let forgotten =
            self.source.is_forgotten(shard) || truth.iter().any(|child| self.source.is_forgotten(*child));
        let all = truth.iter().all(|child| named(*child)) || forgotten;
        let more = row.children.len() > truth.len();
        (!all || more).then(|| format!("the children {:?}, expected {truth:?}", row.children))
    }
}

/// Checks the number of a lease's changes of hands since its last checkpoint.
fn wrong_switches(verb: Verb, before: Option<&LeaseRow>, row: &LeaseRow) -> Option<String> {
    let expected = match verb {
        Verb::Take => {
            let before = before?;
            let changes = before.owner.is_some() && before.owner != row.owner;
            before.switches + u64::from(changes)
        }
        _ => 0,
    };
    (row.switches != expected)
        .then(|| format!("{} changes of owner since its last checkpoint, expected {expected}", row.switches))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::Options;
    use crate::swarm::Plan;
    use leasehold_engine::ids::LeaseKey;
    use leasehold_engine::position::Checkpoint;
    use leasehold_engine::row::Change;
    use leasehold_engine::shard::{HashKey, HashRange};
    use leasehold_engine::stream_identity::StreamIdentity;
    use leasehold_engine::time::Wall;

    /// Whether the row of shard 0 is the last to name the stream, in a table with these rows: the shard, whether its
    /// hash keys are wrong, and whether it has a name.
    fn is_last(rows: &[(ShardNo, bool, bool)]) -> bool {
        let mut plan = Plan::draw(3).without_faults();
        (plan.format, plan.shards, plan.streams) = (Format::Kcl, 2, 1);
        let mut services = Services::new(&plan);
        let mut cx = Context::new(plan, &Options::default());
        services.set_up(&mut cx);
        services.table.make_at_once(cx.now());
        for &(shard, wrong, named) in rows {
            let truth = services.source.shard(shard).map(|shard| shard.hash_range());
            let range = truth.map(|range| HashRange {
                start: HashKey(range.start),
                end: HashKey(range.end - u128::from(wrong)),
            });
            let key: LeaseKey = cx.names_mut().shard(shard).to_lease();
            let stream = StreamIdentity::new("arn:aws:kinesis:us-east-1:1:stream/orders", Wall(1_000));
            let row = LeaseRow {
                range,
                stream: stream.filter(|_| named),
                ..LeaseRow::new(key.clone(), Checkpoint::TrimHorizon)
            };
            let create = Change::Create(Box::new(row));
            assert!(services.table.change_by_hand(cx.now(), &create));
            services.row_written(&mut cx, &key, None, None);
        }
        services.is_last_to_name(0)
    }

    #[test]
    fn the_last_row_with_the_streams_name_matters_with_wrong_keys() {
        assert!(is_last(&[(0, true, true)]), "its own");
        assert!(is_last(&[(0, true, true), (1, false, false)]));
        assert!(is_last(&[(0, false, true), (1, true, false)]), "those of another row");
        assert!(!is_last(&[(0, true, true), (1, false, true)]), "another row names it");
        assert!(!is_last(&[(0, false, true), (1, false, false)]), "all rows fit");
    }
}
