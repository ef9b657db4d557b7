//! A table and a stream with correct answers, and an operator who meddles with the table.

use super::members::Members;
use super::{Dice, hostile};
use leasehold_engine::fleet::FleetTable;
use leasehold_engine::format::Kcl;
use leasehold_engine::ids::{LeaseKey, OpId, WorkerId};
use leasehold_engine::input::*;
use leasehold_engine::output::*;
use leasehold_engine::position::{Checkpoint, Position};
use leasehold_engine::row::{Change, LeaseRow};
use leasehold_engine::shard::{HashKey, HashRange};
use leasehold_engine::testkit;
use leasehold_engine::testkit::{Items, Keeping, LeaseTable, Stream};
use leasehold_engine::time::Wall;
use std::collections::BTreeMap;

/// The shards of the stream, then keys of no shard.
pub const KEYS: [&str; 10] = [
    "shardId-000000000000",
    "shardId-000000000001",
    "shardId-000000000002",
    "shardId-000000000003",
    "shardId-000000000004",
    "1:a:2:shardId-000000000000",
    "1:a:2:shardId-000000000001",
    "",
    "a key of no shard",
    "\u{10FFFF}",
];
/// Owners in rows; `w:1` is the engine under test.
pub const OWNERS: [&str; 4] = ["", "other", "w:1", "w:0"];

pub struct World {
    table: LeaseTable<Items<Kcl>>,
    stream: Stream,
    members: Members,
    /// The number of the last record fetched, over all shards.
    sequence: u64,
    /// The last batches kept by the application, with their leases.
    kept: Vec<(LeaseKey, OpId)>,
}

impl World {
    /// Two shards of which the first was split; the halves were not, but one was merged with the second.
    pub fn new(dice: &mut Dice<'_>) -> Self {
        let half = u128::MAX / 2;
        let shard = |n: usize, start, end, closed: bool| {
            let range = HashRange { start: HashKey(start), end: HashKey(end) };
            testkit::shard(KEYS[n], None::<&str>, range, n as u64, closed.then_some(1_000))
        };
        let mut shards = vec![
            shard(0, 0, half, true),
            shard(1, half + 1, u128::MAX, true),
            shard(2, 0, half / 2, false),
            shard(3, half / 2 + 1, half, true),
            shard(4, half / 2 + 1, u128::MAX, false),
        ];
        shards[2].parent = Some(KEYS[0].into());
        shards[3].parent = Some(KEYS[0].into());
        shards[4].parent = Some(KEYS[3].into());
        shards[4].adjacent_parent = Some(KEYS[1].into());
        let mut stream = Stream::of(0);
        stream.shards = shards.into_iter().map(|shard| (shard.id.clone(), shard)).collect();
        let mut world = World {
            table: LeaseTable::empty(Items(Kcl)),
            members: Members::default(),
            stream,
            sequence: 1,
            kept: Vec::new(),
        };
        if dice.one_in(4) {
            world.table.fleet_tables = FleetTable::ALL.map(|table| (table, BTreeMap::new())).into();
        }
        if dice.one_in(2) {
            for key in &KEYS[..3] {
                let mut row = LeaseRow::new((*key).into(), Checkpoint::TrimHorizon);
                row.range = world.stream.shards.get(*key).map(|shard| shard.range);
                world.put(row);
            }
        }
        world
    }

    /// How many leases there can be at most.
    pub fn leases(&self) -> usize {
        KEYS.len()
    }

    /// Puts a row, whatever is there.
    fn put(&mut self, row: LeaseRow) {
        let mut item = None;
        let put = Change::Create(Box::new(row.clone()));
        if self.table.keeping.change(&mut item, &put).is_ok() {
            let rows = self.table.rows.get_or_insert_default();
            rows.extend(item.map(|item| (row.key, item)));
        }
    }

    /// Carries out a command, and answers it.
    pub fn perform(&mut self, command: &Command, dice: &mut Dice<'_>) -> Outcome {
        match &command.effect {
            Effect::Table(TableOp::Members(op)) => self.members.perform(op, dice),
            Effect::Table(op) => {
                let mut outcome = self.table.execute(op);
                // Not every service shows the row in the refusal of a write.
                if let Outcome::Refused(refusal) = &mut outcome {
                    refusal.current = refusal.current.take().filter(|_| !dice.one_in(4));
                }
                outcome
            }
            Effect::Stream(op) | Effect::StreamOf(_, op) => Outcome::Applied(self.stream(op, dice)),
            Effect::Consumer(ConsumerOp::Deliver { lease, batch, .. }) => {
                Outcome::Applied(self.handle(lease, *batch, dice))
            }
            Effect::Consumer(ConsumerOp::DeliverOne { lease, .. }) => {
                let at = self.position(lease, dice);
                match dice.one_in(2) {
                    true => hostile::failed(Why::RecordFailed(at)),
                    false => Outcome::Applied(Reply::ProcessedThrough(at)),
                }
            }
            Effect::Consumer(ConsumerOp::SetAside { record, .. }) => match dice.one_in(3) {
                true => hostile::failed(Why::HandlerFailed),
                false => Outcome::Applied(Reply::ProcessedThrough(*record)),
            },
            Effect::Consumer(ConsumerOp::Open { .. }) if dice.one_in(2) => {
                Outcome::Applied(Reply::ConfirmsEnd)
            }
            Effect::Consumer(_) => Outcome::Applied(Reply::Done),
        }
    }

    /// What a handler makes of a batch.
    fn handle(&mut self, lease: &LeaseKey, batch: OpId, dice: &mut Dice<'_>) -> Reply {
        match dice.below(8) {
            5 => Reply::ProcessedThrough(self.position(lease, dice)),
            6 | 7 => {
                self.kept.push((lease.clone(), batch));
                Reply::Kept
            }
            _ => Reply::Processed,
        }
    }

    /// A batch kept by the application, now or earlier, and its lease.
    pub fn kept(&self, dice: &mut Dice<'_>) -> Option<(LeaseKey, OpId)> {
        let back = dice.below(4);
        self.kept.iter().rev().nth(back).cloned()
    }

    fn stream(&mut self, op: &StreamOp, dice: &mut Dice<'_>) -> Reply {
        match op {
            StreamOp::Describe => {
                Reply::Stream(StreamState { readable: true, created: Wall(1), arn: "".into() })
            }
            StreamOp::ListShards { filter, after } => {
                let more = after.is_none() && dice.one_in(4);
                let shards = self.stream.listed(*filter);
                let shards = match after {
                    Some(_) => shards.skip(2).cloned().collect(),
                    None => shards.take(if more { 2 } else { 5 }).cloned().collect(),
                };
                Reply::Shards(ShardPage { shards, more })
            }
            StreamOp::GetIterator { .. } => Reply::Iterator,
            StreamOp::Subscribe { .. } => Reply::Subscribed,
            StreamOp::DescribeConsumer { name, .. } | StreamOp::RegisterConsumer { name, .. } => {
                Reply::Consumer(ConsumerState { arn: name.clone(), active: !dice.one_in(3) })
            }
            StreamOp::GetRecords { shard, .. } | StreamOp::NextEvent { shard, .. } => {
                let limit = match op {
                    StreamOp::GetRecords { limit, .. } => *limit,
                    _ => 4,
                };
                let count = u64::from(dice.byte() % 4).min(u64::from(limit));
                let first = self.sequence + 1;
                self.sequence += count;
                let position = |sequence: u64| Position::of(sequence.into());
                let closed = self.stream.is_closed(shard);
                Reply::Records(Fetched {
                    count: count as u32,
                    bytes: count * 1_000,
                    first: (count > 0).then(|| position(first)),
                    last: (count > 0).then(|| position(self.sequence)),
                    end: (closed && !dice.one_in(2)).then(|| self.stream.children(shard)),
                    ..testkit::no_records(0)
                })
            }
        }
    }

    /// A position that the application may report as processed.
    pub fn position(&self, _lease: &LeaseKey, dice: &mut Dice<'_>) -> Position {
        if dice.one_in(4) {
            hostile::position(dice)
        } else {
            Position::of(self.sequence.saturating_sub(u64::from(dice.byte() % 4)).into())
        }
    }

    /// Changes the table behind the engine's back.
    pub fn meddle(&mut self, dice: &mut Dice<'_>, me: Option<&WorkerId>) {
        let key = hostile::key(dice);
        let row = self.table.read(&key).and_then(|read| read.lease().cloned());
        let Some(mut row) = row else {
            let row = hostile::lease(dice);
            return self.put(LeaseRow { key, ..row });
        };
        match dice.below(6) {
            0 => {
                row.owner = Some("other".into());
                row.handing_over = None;
                row.counter = row.counter.saturating_add(1);
            }
            1 => {
                self.table.rows.get_or_insert_default().remove(&key);
                return;
            }
            2 => {
                row.handing_over = me.cloned();
                row.owner = Some("other".into());
            }
            3 => row.counter = dice.number(),
            4 => row.owner = me.cloned(),
            _ => row = LeaseRow { key, ..hostile::lease(dice) },
        }
        self.put(row);
    }
}
