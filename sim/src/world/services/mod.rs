//! The services and the truth about them: the lease table, the stream, the rows, the shards.
//!
//! | file | what it does |
//! |---|---|
//! | [`table`], [`members`], [`items`] | the lease table and the tables beside it, over the in-memory DynamoDB |
//! | [`stream`] | the stream, over the in-memory Kinesis |
//! | [`truth`] | the true rows, and the oracles' facts about changes |
//! | [`given`] | a stream and a table from before the world's beginning |
//! | [`producer`], [`packer`], [`by_hand`], [`permanent_loss`] | changes of stream and table by producers and operators |
//! | [`spoiled`] | rows put by people at no place in their shards, and an operator's later repair |
//! | [`fleet_rows`] | the leader of a fleet, and the workers that report their life |
//! | [`neighbours`] | rows of another stream, and a fleet of that stream |
//! | [`described`] | whether rows describe their shards truly |

mod by_hand;
mod described;
mod fleet_rows;
mod fleet_tables;
mod given;
mod items;
mod members;
mod neighbours;
mod owner_index;
mod packer;
mod permanent_loss;
mod producer;
mod spoiled;
mod starts;
pub(crate) mod stream;
pub(crate) mod table;
mod truth;

pub(super) use producer::reshard_kind;

use super::context::Context;
use crate::draws::{Draws, Roll};
use crate::faults::LossKind;
use crate::names::Names;
use crate::oracles::fact::Owner;
use crate::oracles::{Coverage, LifeNo, ShardNo, Time};
use crate::peers::{Program, Request};
use crate::streams::StreamNo;
use crate::swarm::Plan;
use leasehold_engine::format::LeaseFormat;
use leasehold_engine::ids::{LeaseKey, ShardId, WorkerId};
use leasehold_engine::input::Outcome;
use leasehold_engine::output::TableOp;
use leasehold_engine::position::Position;
use leasehold_engine::row::{LeaseRow, RowRead};
use leasehold_engine::table::Item;
use leasehold_local_aws::kinesis::ApiError;
use packer::Packer;
use std::collections::BTreeSet;
use std::sync::Arc;
use stream::{Carry, Source};
use table::{LeaseTable, Reading, wall_ms};
use truth::{Family, Lease};

/// The lease table, the stream, and the truth beyond the workers' knowledge.
#[derive(Debug)]
pub(super) struct Services {
    table: LeaseTable,
    source: Source,
    rows: Vec<Lease>,
    /// Shards known to the oracles.
    shards: Vec<Family>,
    /// The number of known shards of each stream.
    known: Vec<usize>,
    /// The number of puts.
    puts: u64,
    packer: Packer,
    /// Items touched by people only, in their original state.
    strangers: Vec<(LeaseKey, Arc<Item>)>,
    /// Leases with unknown attributes put by people.
    attributes: Vec<LeaseKey>,
    /// Leases put by people at no place in their shards.
    spoiled: Vec<LeaseKey>,
    /// The beginnings of shards without a checkpoint.
    starts: starts::Starts,
    /// The permanent loss, if any.
    lost: Option<LossKind>,
    misread: described::Misreadings,
    /// The life with the lock of a fleet's leader.
    leader: Option<LifeNo>,
}

impl Services {
    /// # Panics
    /// If the in-memory Kinesis refuses a stream of the plan: a fault of the swarm.
    pub(super) fn new(plan: &Plan) -> Self {
        // The engine assumes listings no further behind than a scan interval.
        let mut stream_faults = plan.faults.stream.clone();
        stream_faults.list_lag_ms = stream_faults
            .list_lag_ms
            .min(plan.least(|config| config.scan_interval()).as_millis() as i64 * 3 / 4);
        let mut source = match &plan.start {
            Some(start) => Source::given(start, Draws::new(plan.seed), &plan.load, &stream_faults),
            None => Source::new(plan.streams(), plan.shards, &plan.load, &stream_faults),
        }
        .unwrap_or_else(|error: ApiError| panic!("a planned stream was refused: {error}"));
        source.consumers().fan_out(&plan.faults.fan_out);
        Self {
            table: LeaseTable::new(plan.format, &plan.faults).with_owner_index(plan.fleet.owner_index),
            source,
            rows: Vec::new(),
            shards: Vec::new(),
            known: vec![0; plan.streams().all().len()],
            puts: 0,
            packer: Packer::default(),
            strangers: Vec::new(),
            attributes: Vec::new(),
            spoiled: Vec::new(),
            starts: starts::Starts::default(),
            lost: None,
            misread: described::Misreadings::default(),
            leader: None,
        }
    }

    /// Sets up the state before the first moment.
    pub(super) fn set_up(&mut self, cx: &mut Context) {
        for n in 0..cx.plan().load.before {
            let age_ms = cx.draws().below("before-age", u64::from(n), 50_000) as i64;
            self.put_at(cx, wall_ms(0) - age_ms.max(1));
        }
        // Kinsumer's workers expect existing tables.
        if cx.plan().fleet.programs.contains(&Program::Kinsumer) {
            self.table.make_at_once(cx.now());
            self.table.make_sides_at_once(cx.now());
        }
        if cx.plan().fleet.tables_beside {
            self.table.make_fleet_tables_at_once(cx.now());
        }
        self.observe_stream(cx);
        self.put_given(cx);
        if let Some(loss) = cx.plan().faults.permanent_loss.clone()
            && loss.kind.is_given()
            && cx.plan().start.is_none()
        {
            self.lose(cx, loss.kind, loss.pick);
        }
    }

    /// The end of the faults: the services tell the truth from now on.
    pub(super) fn heal(&mut self, cx: &mut Context) {
        self.source.advance(wall_ms(cx.now()));
        self.observe_stream(cx);
        self.source.heal();
    }

    /// A stranger takes a place, under each consumer of the subscribers.
    pub(super) fn steal_place(&mut self, cx: &mut Context, pick: u32) {
        self.observe_stream(cx);
        let (now, plan) = (cx.now(), cx.plan());
        let of_others = (plan.fleet.fan_out > 0).then(|| plan.config.table());
        let mut any = false;
        // Under one consumer, the second theft is refused.
        for name in std::iter::once(plan.config.consumer()).chain(of_others) {
            any |= self.source.consumers().steal(now, name, pick);
        }
        if any {
            cx.fault("place-stolen", None, None);
        }
    }

    /// An operator deregisters our consumer.
    pub(super) fn deregister_consumer(&mut self, cx: &mut Context) {
        self.observe_stream(cx);
        if self.source.consumers().deregister(cx.now(), cx.plan().config.consumer()) {
            cx.fault("consumer-gone", None, None);
        }
    }

    /// The format of leases.
    pub(super) fn format(&self) -> &'static (dyn LeaseFormat + Send + Sync) {
        self.table.format
    }

    pub(super) fn rows(&self) -> &[Lease] {
        &self.rows
    }

    pub(super) fn row(&self, shard: usize) -> Option<&LeaseRow> {
        self.rows.get(shard)?.row()
    }

    pub(super) fn shards(&self) -> &[Family] {
        &self.shards
    }

    /// The life that owns a lease, by its row.
    pub(super) fn owner_of(&self, cx: &Context, shard: Option<ShardNo>) -> Option<Owner> {
        let row = self.row(shard? as usize)?;
        Some(cx.names().owner(row.actual_owner()?))
    }

    /// Whether the parents of a shard have leases that have not ended.
    pub(super) fn waits_for_parents(&self, shard: usize) -> bool {
        let family = self.shards.get(shard).copied().unwrap_or_default();
        family.parents().any(|parent| self.row(parent as usize).is_some_and(|row| !row.checkpoint.is_end()))
    }

    /// The number of shards above the youngest shard.
    pub(super) fn depth(&self) -> u64 {
        let mut depths = vec![1u64; self.shards.len()];
        for shard in 0..self.shards.len() {
            let above = self.shards[shard].parents();
            depths[shard] = 1 + above.map(|parent| depths[parent as usize]).max().unwrap_or(0);
        }
        depths.into_iter().max().unwrap_or(1)
    }

    /// The number of parts in the records of a shard.
    pub(super) fn records(&self, cx: &Context, shard: ShardNo) -> u64 {
        cx.names().parts().last(shard, self.source.records(shard))
    }

    /// Whether the service has forgotten a shard.
    pub(super) fn is_forgotten(&self, shard: ShardNo) -> bool {
        self.source.is_forgotten(shard)
    }

    /// The position of a part. After the stream's deletion no part has a position: the remade stream counts from 1
    /// again.
    pub(super) fn position(&self, cx: &Context, shard: ShardNo, part: u64) -> Option<Position> {
        if self.lost == Some(LossKind::StreamRemade) {
            return None;
        }
        let (record, sub) = cx.names().parts().place(shard, part);
        let position = self.source.position(shard, record)?;
        Some(Position { sub, ..position })
    }

    /// The permanent loss, if any.
    pub(super) fn lost(&self) -> Option<LossKind> {
        self.lost
    }

    /// The shared list of shards, with assignment by rank.
    pub(super) fn shared(&self) -> Vec<ShardId> {
        self.table.shared()
    }

    /// The age of a member's row, with assignment by rank.
    pub(super) fn silent_for(&self, now: Time, member: &WorkerId) -> Option<Time> {
        self.table.silent_for(now, member)
    }

    /// Every shard with its lease, in the view of the coverage check.
    pub(super) fn coverage(&self, cx: &Context) -> Vec<Coverage> {
        let shards = self.shards.iter().enumerate();
        let coverage = |(shard, family): (usize, &Family)| Coverage {
            shard: shard as ShardNo,
            parents: family.both(),
            open: family.exists() && !family.is_closed(),
            lease: self.row(shard).map(|row| cx.names().row(row).checkpoint),
        };
        shards.map(coverage).collect()
    }

    /// The error in the row of a shard, or in the row of an ancestor that must end first, if the row is unreadable as a
    /// lease.
    pub(super) fn unread(&self, shard: ShardNo) -> String {
        let mut seen = BTreeSet::new();
        let mut above = vec![shard];
        while let Some(n) = above.pop() {
            if !seen.insert(n) {
                continue;
            }
            let key = self.source.streams().name_of(n).to_lease();
            match self.table.item(&key).map(|item| self.table.format.decode(item)) {
                Some(RowRead::Unreadable { detail, .. }) => {
                    return format!(", since the row of shard {n} cannot be read: {detail}");
                }
                Some(RowRead::Foreign { kind, .. }) => {
                    return format!(", since the row of shard {n} is a {kind}");
                }
                Some(RowRead::Lease(row)) if n == shard && row.checkpoint.is_end() => {
                    return ", which its row says has ended".to_owned();
                }
                _ => above.extend(self.shards[n as usize].parents()),
            }
        }
        String::new()
    }

    /// An ended shard of a stream: the youngest.
    pub(super) fn some_ended(&self, stream: StreamNo) -> Option<ShardNo> {
        self.source.some_ended(stream)
    }

    /// Whether a shard has ended.
    pub(super) fn has_ended(&self, shard: ShardNo) -> bool {
        self.source.has_ended(shard)
    }

    /// Whether a shard began or ended in the last this many ms.
    pub(super) fn is_turning(&self, now: Time, shard: ShardNo, within_ms: i64) -> bool {
        self.source.is_turning(wall_ms(now), shard, within_ms)
    }

    /// Executes a request to the table.
    pub(super) fn execute(&mut self, cx: &Context, op: &TableOp, as_of_ms: Option<i64>) -> Outcome {
        self.table.execute(cx.now(), op, Reading::as_of(as_of_ms))
    }

    /// Refuses a write as if its condition did not hold.
    pub(super) fn refuse(&self, key: &LeaseKey) -> Outcome {
        self.table.refuse(key)
    }

    /// Executes a foreign program's request to the table.
    pub(super) fn execute_item(
        &mut self, cx: &Context, request: &Request, as_of_ms: Option<i64>,
    ) -> (Outcome, Carry) {
        self.table.execute_item(wall_ms(cx.now()), request, as_of_ms)
    }

    /// Has the stream answer a request. `lag`: the key of draws about the delay of a listing.
    pub(super) fn ask_stream<T>(
        &mut self, cx: &mut Context, lag: u64,
        answer: impl FnOnce(&mut Source, Time, &mut Names, &mut Roll) -> T,
    ) -> T {
        self.observe_stream(cx);
        let (now, mut roll) = (cx.now(), cx.draws().roll("lag", lag));
        answer(&mut self.source, now, cx.names_mut(), &mut roll)
    }
}
