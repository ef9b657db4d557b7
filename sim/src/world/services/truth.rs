//! The true rows and shards, and the oracles' facts about their changes.

use super::Services;
use super::table::wall_ms;
use crate::faults::LossKind;
use crate::names::{self, shard_of};
use crate::oracles::fact::{Mark, Row, Verb};
use crate::oracles::{Fact, LifeNo, Property, ShardNo, Time};
use crate::peers;
use crate::streams::StreamNo;
use crate::swarm::Plan;
use crate::world::context::Context;
use crate::world::heap::What;
use crate::world::request::{Request, RowChange};
use leasehold_engine::config::InitialPosition;
use leasehold_engine::ids::LeaseKey;
use leasehold_engine::row::LeaseRow;
use leasehold_engine::time::Wall;
use leasehold_local_aws::kinesis::ShardIndex;

/// The truth about one lease.
#[derive(Clone, Debug, Default)]
pub(in crate::world) struct Lease {
    pub(super) row: Option<LeaseRow>,
    /// The time of the last growth of its counter.
    renewed: Time,
    pub(super) existed: bool,
}

/// The truth about one shard.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::world) struct Family {
    /// The shard exists. Where streams have different numbers of shards, some numbers belong to no shard.
    exists: bool,
    parents: [Option<ShardNo>; 2],
    closed: bool,
}

impl Lease {
    pub(in crate::world) fn row(&self) -> Option<&LeaseRow> {
        self.row.as_ref()
    }

    /// The time of the last growth of its counter.
    pub(in crate::world) fn renewed(&self) -> Time {
        self.renewed
    }

    /// Whether a row ever existed.
    pub(in crate::world) fn existed(&self) -> bool {
        self.existed
    }
}

impl Family {
    /// Whether the shard exists.
    pub(in crate::world) fn exists(&self) -> bool {
        self.exists
    }

    pub(in crate::world) fn parents(&self) -> impl Iterator<Item = ShardNo> + Clone {
        self.parents.into_iter().flatten()
    }

    pub(in crate::world) fn both(&self) -> [Option<ShardNo>; 2] {
        self.parents
    }

    pub(in crate::world) fn is_closed(&self) -> bool {
        self.closed
    }
}

/// The beginning of a shard's promised records, if its row says AT_TIMESTAMP without a time. The configuration of the
/// first worker to take the shard decides. In an upgrade with another time, the later time counts.
fn timestamp(plan: &Plan) -> Option<Wall> {
    let configs = [Some(&plan.config), plan.upgraded.as_ref()];
    let times = configs.into_iter().flatten().filter_map(|config| match config.initial_position() {
        InitialPosition::AtTimestamp(wall) => Some(wall),
        _ => None,
    });
    times.max()
}

impl Services {
    /// The truth about a row may have changed.
    pub(in crate::world) fn row_written(
        &mut self, cx: &mut Context, key: &LeaseKey, verb: Option<Verb>, by: Option<LifeNo>,
    ) {
        let Some(shard) = names::shard_of(key) else { return };
        if cx.names_mut().shard(shard).as_str() != key.as_str() {
            return cx.report(Property::HashSpaceCovered, || {
                format!("a {verb:?} made the row {key}, which is of no shard of any stream of this world")
            });
        }
        let after = self.table.lease(key);
        let index = shard as usize;
        if self.rows.len() <= index {
            self.rows.resize_with(index + 1, Lease::default);
        }
        let from_record = match (timestamp(cx.plan()), &self.rows[index].row, &after) {
            (Some(wall), None, Some(row)) => self.first_at(cx, shard, row.began.unwrap_or(wall)),
            _ => 1,
        };
        if after.is_none() {
            // The attributes put by people went with the row.
            self.attributes.retain(|known| known != key);
        }
        let old = self.rows[index].row.take();
        self.check_description(cx, shard, by, verb, old.as_ref(), after.as_ref());
        mark_inside(cx, shard, after.as_ref());
        self.tell_name(cx, shard, (by, verb), [old.as_ref(), after.as_ref()]);
        let [before_row, after_row] = [&old, &after].map(|row| Some(self.seen(cx, shard, row.as_ref()?)));
        let lease = &mut self.rows[index];
        if after_row.map(|row| row.counter) != before_row.map(|row| row.counter) {
            lease.renewed = cx.now();
        }
        lease.existed |= after.is_some();
        lease.row = after;
        let owner = lease.row.as_ref().and_then(|row| row.actual_owner());
        cx.owned(shard, owner);
        self.observe_stream(cx);
        cx.fact(Fact::RowChanged { shard, by, verb, before: before_row, after: after_row, from_record });
        if verb == Some(Verb::Create) && by.is_some() {
            self.expect_neighbours(cx);
        }
        // Foreign programs renew by whole items, with the checkpoint in their memory.
        let moves = before_row.map(|row| row.checkpoint) != after_row.map(|row| row.checkpoint);
        if verb != Some(Verb::Renew) || moves {
            self.post_change(cx, shard, verb, before_row, after_row);
            let worker = by.map(|life| cx.names().worker(life));
            let by = || worker.map_or_else(|| "an operator".to_owned(), |worker| format!("w{worker}"));
            let verb = || match verb {
                Some(verb) => format!("{verb:?}").to_lowercase(),
                None if after_row.is_some() => "edits".to_owned(),
                None => "removes".to_owned(),
            };
            cx.line(|| match after_row {
                Some(row) => format!(
                    "{}: {} shard {shard}: {:?} counter {} {:?}",
                    by(),
                    verb(),
                    row.owner,
                    row.counter,
                    row.checkpoint
                ),
                None => format!("{}: {} shard {shard}", by(), verb()),
            });
        }
    }

    /// The first part at or after a time.
    pub(super) fn first_at(&self, cx: &Context, shard: ShardNo, wall: Wall) -> u64 {
        cx.names().parts().first(shard, self.source.first_at(shard, wall))
    }

    /// Posts the kind of a row's state after a change.
    fn post_change(
        &self, cx: &mut Context, shard: ShardNo, verb: Option<Verb>, before: Option<Row>, after: Option<Row>,
    ) {
        let family = self.shards.get(shard as usize).copied().unwrap_or_default();
        let unfinished = |parent: ShardNo| {
            let row = self.row(parent as usize);
            row.is_some_and(|row| !row.checkpoint.is_end())
        };
        cx.request(Request::NoteState(RowChange {
            shard,
            verb,
            rows: [before, after],
            closed: family.closed,
            parents: family.parents().count(),
            unfinished: family.parents().any(unfinished),
        }));
    }

    /// A row in the oracles' view. A shard without parents and without a checkpoint begins at the configured position
    /// in foreign programs, and the row does not name that position.
    fn seen(&self, cx: &Context, shard: ShardNo, row: &LeaseRow) -> Row {
        let mut row = cx.names().row(row);
        let family = self.shards.get(shard as usize);
        let latest = cx.plan().config.initial_position() == InitialPosition::Latest;
        let root = family.is_none_or(|family| family.parents == [None, None]);
        if latest && root && row.checkpoint == Mark::TrimHorizon && cx.plan().has_others() {
            row.checkpoint = Mark::Latest;
        }
        row
    }

    /// A write of a foreign program was executed.
    pub(in crate::world) fn item_written(&mut self, cx: &mut Context, request: &peers::Request, by: u32) {
        let (Some(verb), Some(key)) = (request.verb, request.lease(self.table.format)) else {
            return self.other_item_written(cx, request);
        };
        let is_new = shard_of(&key).is_some_and(|shard| self.row(shard as usize).is_none());
        let verb = if is_new && verb == Verb::Take { Verb::Create } else { verb };
        self.row_written(cx, &key, Some(verb), Some(by));
    }

    /// Plans another look at the moment of the stream's next change.
    pub(super) fn plan_stream_change(&mut self, cx: &mut Context) {
        if let Some(due_ms) = self.source.next_change_ms() {
            let at = ((due_ms - wall_ms(0)).max(0) as u64) * 1_000;
            // An entry beyond the end of the script has no effect; every event of the stream looks anyway.
            cx.push(at.max(cx.now()), What::Script { entry: u32::MAX });
        }
    }

    /// Tells the oracles the changes of the shards.
    pub(in crate::world) fn observe_stream(&mut self, cx: &mut Context) {
        // The records of another stream of the same name were not to be read.
        if let Some(LossKind::StreamDeleted | LossKind::StreamRemade) = self.lost {
            return;
        }
        let now_ms = wall_ms(cx.now());
        let due = self.source.next_change_ms().is_some_and(|due| due <= now_ms);
        if due {
            self.source.advance(now_ms);
            self.plan_stream_change(cx);
        }
        for stream in self.source.streams().all() {
            self.observe_one(cx, stream);
        }
    }

    /// Tells the oracles the changes of one stream's shards.
    fn observe_one(&mut self, cx: &mut Context, of: StreamNo) {
        let streams = self.source.streams();
        let Some(stream) = self.source.truth(of) else {
            return;
        };
        let known = &mut self.known[of as usize];
        if *known == stream.shards().len() {
            return;
        }
        let number = |index: ShardIndex| streams.shard(of, index);
        let mut facts = Vec::new();
        for shard in stream.shards().skip(*known) {
            let mut parents = shard.parents().map(number);
            let parents = [parents.next(), parents.next()];
            let shard = number(shard.index());
            if self.shards.len() <= shard as usize {
                self.shards.resize_with(shard as usize + 1, Family::default);
            }
            self.shards[shard as usize] = Family { exists: true, parents, closed: false };
            facts.push(Fact::ShardBorn { shard, parents });
        }
        *known = stream.shards().len();
        for shard in stream.shards().filter(|shard| !shard.is_open()) {
            let known = &mut self.shards[number(shard.index()) as usize];
            if !known.closed {
                known.closed = true;
                facts.push(Fact::ShardClosed {
                    shard: number(shard.index()),
                    records: cx.names().parts().last(number(shard.index()), shard.next_position() - 1),
                    children: shard.children().iter().copied().map(number).collect(),
                });
            }
        }
        for fact in facts {
            cx.fact(fact);
        }
    }
}

/// Counts a checkpoint within an aggregated record.
fn mark_inside(cx: &mut Context, shard: ShardNo, row: Option<&LeaseRow>) {
    let position = row.and_then(|row| row.checkpoint.position());
    if position.is_some_and(|position| cx.names().parts().is_inside(shard, position)) {
        cx.mark("checkpoint-in-aggregate");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::Options;
    use crate::swarm::Plan;
    use leasehold_engine::position::Checkpoint;
    use leasehold_engine::row::Change;

    /// The test has no worker: the services need none.
    #[test]
    fn a_row_that_is_written_is_known_and_its_change_is_posted() {
        let plan = Plan::draw(3).without_faults();
        let mut services = Services::new(&plan);
        let mut cx = Context::new(plan, &Options::default());
        services.set_up(&mut cx);
        assert!(!services.shards().is_empty(), "the shards are known");
        services.table.make_at_once(cx.now());
        let key: LeaseKey = "shardId-000000000000".into();
        let row = LeaseRow::new(key.clone(), Checkpoint::TrimHorizon);
        let create = Change::Create(Box::new(row));
        assert!(services.table.change_by_hand(cx.now(), &create));
        assert!(services.row(0).is_none(), "nothing is known of a row that nobody told of");
        services.row_written(&mut cx, &key, Some(Verb::Create), None);
        assert!(services.row(0).is_some_and(|row| row.owner.is_none()));
        let Some(Request::NoteState(change)) = cx.next_request() else {
            panic!("expected the change to be posted");
        };
        assert_eq!((change.shard, change.verb), (0, Some(Verb::Create)));
        assert!(change.rows[0].is_none() && change.rows[1].is_some());
        assert!(cx.next_request().is_none());
    }
}
