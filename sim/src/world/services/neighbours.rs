//! Rows of another stream: a stream of another name, or an earlier stream of the same name. The rows were there before,
//! or a fleet of that stream begins with this table.

use super::Services;
use crate::faults::LossKind;
use crate::oracles::fact::{Verb, Whose};
use crate::oracles::{Fact, LifeNo, ShardNo};
use crate::world::context::Context;
use crate::world::heap::What;
use leasehold_engine::ids::LeaseKey;
use leasehold_engine::position::{Checkpoint, Position, SequenceNumber};
use leasehold_engine::row::{Change, LeaseRow};
use leasehold_engine::shard::{HashKey, HashRange};
use leasehold_engine::stream_identity::StreamIdentity;
use leasehold_engine::time::Wall;
use leasehold_local_aws::kinesis::{SequenceNumber as FakeSequence, SequenceParts};

/// The time between the creations of the earlier stream and of the present stream of the same name, in ms.
const EARLIER_MS: i64 = 86_400_000;

/// The worker of the other fleet, owner of the leases.
const NEIGHBOUR: &str = "neighbour:1";

/// The time between the creations of our shards and of the other stream's shards, in seconds.
const LATER_S: u64 = 5;

/// The longest time after our first row, in µs.
const BESIDE_US: u32 = 200_000;

impl Services {
    /// The identity of a shard's stream.
    fn identity(&self, shard: ShardNo) -> Option<StreamIdentity> {
        let stream = self.source.truth(self.source.streams().of(shard))?;
        StreamIdentity::new(&stream.arn(), Wall(stream.created_ms()))
    }

    /// The identity of another stream: of another name, or an earlier stream of the same name.
    fn another(&self, shard: ShardNo, pick: u32) -> Option<StreamIdentity> {
        let stream = self.source.truth(self.source.streams().of(shard))?;
        match pick.is_multiple_of(2) {
            true => StreamIdentity::new(&format!("{}-neighbour", stream.arn()), Wall(stream.created_ms())),
            false => StreamIdentity::new(&stream.arn(), Wall(stream.created_ms() - EARLIER_MS)),
        }
    }

    /// The row's claim about its stream.
    fn whose(&self, shard: ShardNo, row: Option<&LeaseRow>) -> Whose {
        let named = row.and_then(|row| row.stream.as_ref());
        match (named, self.identity(shard)) {
            (Some(named), Some(this)) if *named == this => Whose::This,
            (Some(_), _) => Whose::Another,
            (None, _) => Whose::Nobody,
        }
    }

    /// Tells the oracles the stream's name in a row, before and after our worker takes or creates the row.
    pub(super) fn tell_name(
        &self, cx: &mut Context, shard: ShardNo, (by, verb): (Option<LifeNo>, Option<Verb>),
        rows: [Option<&LeaseRow>; 2],
    ) {
        let (Some(life), Some(Verb::Take | Verb::Create)) = (by, verb) else {
            return;
        };
        // Foreign programs name no stream.
        if rows[1].is_none() || cx.plan().has_others() || self.identity(shard).is_none() {
            return;
        }
        // Until a worker notices the remaking of its stream, the worker reads the former stream.
        let kind = cx.plan().faults.permanent_loss.as_ref().map(|loss| loss.kind);
        if kind == Some(LossKind::StreamRemade) && cx.is_lost_for_good() {
            return;
        }
        let [before, after] = rows.map(|row| self.whose(shard, row));
        cx.fact(Fact::Named { life, shard, before, after });
    }

    fn range(&self, shard: ShardNo) -> Option<HashRange> {
        let range = self.source.shard(shard)?.hash_range();
        Some(HashRange { start: HashKey(range.start), end: HashKey(range.end) })
    }

    /// Fills a table before the first worker. All rows, or one row, name another stream; ranges and parents fit this
    /// stream.
    pub(super) fn plant_named(&mut self, cx: &mut Context, pick: u32) -> bool {
        self.table.make_at_once(cx.now());
        let shards = cx.plan().shards;
        let only = (pick / 2).is_multiple_of(2).then(|| pick / 4 % shards);
        for shard in 0..shards {
            let key = cx.names_mut().shard(shard).to_lease();
            let stream = self.another(shard, pick);
            let row = LeaseRow {
                range: self.range(shard),
                stream: stream.filter(|_| only.is_none_or(|only| only == shard)),
                ..LeaseRow::new(key, Checkpoint::TrimHorizon)
            };
            self.plant(cx, row);
        }
        true
    }

    /// Fills a table before the first worker. The rows name no stream, and their ranges fit this stream; the
    /// checkpoints are numbers of another stream.
    pub(super) fn plant_strange(&mut self, cx: &mut Context) -> bool {
        self.table.make_at_once(cx.now());
        for shard in 0..cx.plan().shards {
            let key = cx.names_mut().shard(shard).to_lease();
            let Some(number) = self.number_of_another(shard) else {
                return false;
            };
            let row = LeaseRow {
                range: self.range(shard),
                ..LeaseRow::new(key, Checkpoint::At(Position::of(number)))
            };
            self.plant(cx, row);
        }
        true
    }

    /// A sequence number from the shard of this name in another stream.
    fn number_of_another(&self, shard: ShardNo) -> Option<SequenceNumber> {
        let parts = self.source.shard(shard)?.info().starting_sequence.parts()?;
        Some(crate::names::sequence(FakeSequence::new(SequenceParts {
            created_secs: parts.created_secs + LATER_S,
            position: 1_000,
            time_secs: parts.created_secs + 2 * LATER_S,
            ..parts
        })))
    }

    fn plant(&mut self, cx: &mut Context, row: LeaseRow) -> bool {
        let key = row.key.clone();
        let put = self.table.change_by_hand(cx.now(), &Change::Create(Box::new(row)));
        if put {
            self.row_written(cx, &key, None, None);
        }
        put
    }

    /// A fleet of another stream has begun with this table, and takes leases. Returns whether the fleet got any lease.
    pub(super) fn neighbours_take(&mut self, cx: &mut Context, pick: u32) -> bool {
        let rows: Vec<LeaseRow> = self.rows.iter().filter_map(|lease| lease.row().cloned()).collect();
        let free = |row: &&LeaseRow| row.handing_over.is_none() && !row.checkpoint.is_end();
        let mut taken = false;
        for (n, row) in rows.iter().filter(free).enumerate() {
            let wanted = n == 0 || pick >> (n % 16) & 1 == 1;
            let stream = crate::names::shard_of(&row.key).and_then(|shard| self.another(shard, pick));
            let change = Change::Take {
                key: row.key.clone(),
                counter: row.counter,
                next: row.counter.saturating_add(1),
                from: row.owner.clone(),
                checkpoint: row.checkpoint,
                to: NEIGHBOUR.into(),
                began: None,
                named: row.stream.clone(),
                stream,
            };
            if wanted && self.table.change_by_hand(cx.now(), &change) {
                self.row_written(cx, &row.key, None, None);
                taken = true;
            }
        }
        taken
    }

    /// Our fleet has begun to fill the table. A second fleet, if planned, follows a moment later.
    pub(super) fn expect_neighbours(&self, cx: &mut Context) {
        let loss = cx.plan().faults.permanent_loss.as_ref();
        let beside = loss.filter(|loss| loss.kind == LossKind::TwoFleets && !self.is_lost());
        if let Some(pick) = beside.map(|loss| loss.pick) {
            cx.push(cx.now() + u64::from(pick % BESIDE_US), What::Beside);
        }
    }

    /// The other fleet fills the table.
    pub(in crate::world) fn begin_beside(&mut self, cx: &mut Context) {
        let loss = cx.plan().faults.permanent_loss.clone();
        if let Some(loss) = loss.filter(|_| !self.is_lost()) {
            self.lose(cx, loss.kind, loss.pick);
        }
    }

    fn is_lost(&self) -> bool {
        self.lost().is_some()
    }

    /// A fleet of another stream with one more shard fills the table at the same time as our fleet. Returns whether the
    /// fleet created any row.
    pub(super) fn neighbours_fill(&mut self, cx: &mut Context, pick: u32) -> bool {
        let mut made = false;
        for shard in 0..=self.shards.len() as ShardNo {
            let key: LeaseKey = cx.names_mut().shard(shard).to_lease();
            let row = LeaseRow {
                range: self.range(shard),
                stream: self.another(shard, pick),
                ..LeaseRow::new(key, Checkpoint::TrimHorizon)
            };
            made |= self.plant(cx, row);
        }
        made
    }
}
