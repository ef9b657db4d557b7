//! A small fleet on one table and one stream, with instant answers: tests of behaviour that read like prose.
//!
//! Rows are changed as [`Change`] says, without any dialect; the simulator does the same with items, delays and faults.

pub mod side;

use leasehold_engine::Engine;
use leasehold_engine::config::Config;
use leasehold_engine::dialect::Dialect;
use leasehold_engine::ids::*;
use leasehold_engine::input::*;
use leasehold_engine::members::{MembersOp, Side};
use leasehold_engine::notice::Notice;
use leasehold_engine::output::*;
use leasehold_engine::position::{Checkpoint, Position, SequenceNumber};
use leasehold_engine::row::{Change, Guard, LeaseRow, RowRead};
use leasehold_engine::shard::{ChildShard, HashKey, HashRange, Shard};
use leasehold_engine::time::{Mono, Span, Wall};
use std::collections::BTreeMap;

/// What a worker's next matching command meets.
pub type Trap = Box<dyn FnMut(&Effect) -> Option<Trick>>;

pub enum Trick {
    /// Executed, and answered with this instead.
    AppliedBut(Outcome),
    /// Not executed, and answered with this.
    Instead(Outcome),
    /// Not answered until released.
    Hang,
}

pub struct Worker {
    pub engine: Engine,
    pub wake_at: Mono,
    pub alive: bool,
    pub trap: Option<Trap>,
    pub hung: Vec<Command>,
    pub notices: Vec<(Mono, Notice)>,
    pub calls: Vec<(Mono, ConsumerOp)>,
    pub sent: Vec<(Mono, Effect)>,
    /// How many inputs it was given.
    pub turns: usize,
    iterators: BTreeMap<OpId, (ShardId, usize)>,
    batches: BTreeMap<OpId, (ShardId, usize, usize)>,
    /// Positions processed, per shard.
    pub processed: BTreeMap<ShardId, Vec<u64>>,
}

pub struct Rig {
    pub now: Mono,
    pub config: Config,
    pub workers: Vec<Worker>,
    pub table: Option<BTreeMap<LeaseKey, LeaseRow>>,
    /// What is wrong with rows that cannot be read.
    pub broken: BTreeMap<LeaseKey, String>,
    /// Rows are written and read through it, if there is one.
    pub dialect: Option<&'static dyn Dialect>,
    /// The tables beside the lease table.
    pub side: side::SideTables,
    pub shards: BTreeMap<ShardId, Shard>,
    pub records: BTreeMap<ShardId, Vec<u64>>,
    pub stream_created: Option<Wall>,
    /// By how much the wall clocks of workers are ahead, in ms.
    pub wall_ahead: Vec<i64>,
    sequence: u64,
}

pub fn config() -> Config {
    Config {
        table: "app".into(),
        stream: "orders".into(),
        ..Config::default()
    }
}

impl Rig {
    /// The same, with rows of this format.
    pub fn with_dialect(dialect: &'static dyn Dialect, shards: u32, workers: u32) -> Rig {
        let mut rig = Rig::new(shards, 0);
        rig.dialect = Some(dialect);
        rig.config.policies = dialect.policies();
        let members = &mut rig.config.members;
        members.check_interval = rig.config.lease_duration.per(5);
        members.lead_interval = members.check_interval.times(2);
        for _ in 0..workers {
            rig.join();
        }
        rig
    }

    /// A stream of `shards` shards, an existing empty table, and `workers` workers.
    pub fn new(shards: u32, workers: u32) -> Rig {
        let mut rig = Rig {
            now: Mono(1_000_000),
            config: config(),
            workers: Vec::new(),
            table: Some(BTreeMap::new()),
            broken: BTreeMap::new(),
            dialect: None,
            side: side::SideTables::default(),
            shards: BTreeMap::new(),
            records: BTreeMap::new(),
            stream_created: Some(Wall(1)),
            wall_ahead: Vec::new(),
            sequence: 0,
        };
        let step = u128::MAX / u128::from(shards);
        for n in 0..shards {
            let start = step * u128::from(n);
            let end = if n + 1 == shards {
                u128::MAX
            } else {
                step * u128::from(n + 1) - 1
            };
            rig.add_shard(
                n,
                None,
                None,
                HashRange {
                    start: HashKey(start),
                    end: HashKey(end),
                },
            );
        }
        for _ in 0..workers {
            rig.join();
        }
        rig
    }

    pub fn id(n: u32) -> ShardId {
        ShardId::from(format!("shardId-{n:012}"))
    }

    fn add_shard(&mut self, n: u32, parent: Option<u32>, adjacent: Option<u32>, range: HashRange) {
        self.sequence += 1;
        let id = Self::id(n);
        let starting = SequenceNumber::from(self.sequence);
        let (parent, adjacent_parent) = (parent.map(Self::id), adjacent.map(Self::id));
        self.shards.insert(
            id.clone(),
            Shard {
                id: id.clone(),
                parent,
                adjacent_parent,
                range,
                starting,
                ending: None,
            },
        );
        self.records.insert(id, Vec::new());
    }

    fn close(&mut self, n: u32) -> HashRange {
        self.sequence += 1;
        let shard = self.shards.get_mut(&Self::id(n)).unwrap();
        shard.ending = Some(SequenceNumber::from(self.sequence));
        shard.range
    }

    pub fn split(&mut self, n: u32) -> (u32, u32) {
        let range = self.close(n);
        let next = self.shards.len() as u32;
        let middle = range.start.0 + (range.end.0 - range.start.0) / 2;
        self.add_shard(
            next,
            Some(n),
            None,
            HashRange {
                start: range.start,
                end: HashKey(middle),
            },
        );
        self.add_shard(
            next + 1,
            Some(n),
            None,
            HashRange {
                start: HashKey(middle + 1),
                end: range.end,
            },
        );
        (next, next + 1)
    }

    pub fn merge(&mut self, a: u32, b: u32) -> u32 {
        let (low, high) = (self.close(a), self.close(b));
        let next = self.shards.len() as u32;
        self.add_shard(
            next,
            Some(a),
            Some(b),
            HashRange {
                start: low.start,
                end: high.end,
            },
        );
        next
    }

    pub fn put(&mut self, n: u32, count: u64) {
        for _ in 0..count {
            self.sequence += 1;
            self.records.get_mut(&Self::id(n)).unwrap().push(self.sequence);
        }
    }

    /// Makes the tables beside the lease table, empty.
    pub fn side_tables(&mut self) {
        let dialect = self.dialect.expect("a dialect with members");
        for side in Side::ALL {
            self.side.execute(dialect, &MembersOp::Create(side));
        }
    }

    pub fn join(&mut self) -> usize {
        self.join_trapped(None)
    }

    /// The same, with a trap from its first command on.
    pub fn join_trapped(&mut self, trap: Option<Trap>) -> usize {
        let number = self.workers.len();
        let mut worker = Worker {
            engine: Engine::new(),
            wake_at: Mono::NEVER,
            alive: true,
            trap,
            hung: Vec::new(),
            notices: Vec::new(),
            calls: Vec::new(),
            sent: Vec::new(),
            turns: 0,
            iterators: BTreeMap::new(),
            batches: BTreeMap::new(),
            processed: BTreeMap::new(),
        };
        let boot = Boot {
            worker: format!("w{number}"),
            incarnation: number as u64 + 1,
            seed: number as u64,
            config: self.config.clone(),
        };
        worker.wake_at = Mono(0);
        self.workers.push(worker);
        self.tell(number, Body::Boot(Box::new(boot)));
        number
    }

    pub fn call(&mut self, worker: usize, call: Call) {
        self.tell(worker, Body::Call(call));
    }

    /// Feeds an input and everything that follows from it at the same instant.
    pub fn tell(&mut self, worker: usize, body: Body) {
        let mut bodies = std::collections::VecDeque::from([body]);
        while let Some(body) = bodies.pop_front() {
            let now = self.now;
            let ahead = self.wall_ahead.get(worker).copied().unwrap_or(0);
            let wall = Wall((now.0 / 1000) as i64 + ahead);
            let outputs: Vec<Output> = {
                let this = &mut self.workers[worker];
                this.turns += 1;
                let outbox = this.engine.handle(Input { at: now, wall, body });
                this.wake_at = outbox.wake_at();
                outbox.collect()
            };
            for output in outputs {
                match output {
                    Output::Tell(notice) => self.workers[worker].notices.push((now, notice)),
                    Output::Do(command) => {
                        if let Some(outcome) = self.execute(worker, &command) {
                            bodies.push_back(Body::Done {
                                op: command.op,
                                outcome,
                            });
                        }
                    }
                }
            }
        }
    }

    /// Answers what was left hanging.
    pub fn release(&mut self, worker: usize) {
        for command in std::mem::take(&mut self.workers[worker].hung) {
            let outcome = self.perform(worker, &command);
            self.tell(
                worker,
                Body::Done {
                    op: command.op,
                    outcome,
                },
            );
        }
    }

    fn execute(&mut self, worker: usize, command: &Command) -> Option<Outcome> {
        let now = self.now;
        self.workers[worker].sent.push((now, command.effect.clone()));
        let trick = self.workers[worker]
            .trap
            .as_mut()
            .and_then(|trap| trap(&command.effect));
        match trick {
            None => Some(self.perform(worker, command)),
            Some(Trick::Instead(outcome)) => Some(outcome),
            Some(Trick::AppliedBut(outcome)) => {
                self.perform(worker, command);
                Some(outcome)
            }
            Some(Trick::Hang) => {
                self.workers[worker].hung.push(command.clone());
                None
            }
        }
    }

    /// Executes a command now, and leaves it to the caller to answer it.
    pub fn perform(&mut self, worker: usize, command: &Command) -> Outcome {
        match &command.effect {
            Effect::Table(op) => self.table_op(op),
            Effect::Stream(op) => self.stream_op(worker, command.op, op),
            Effect::Consumer(op) => self.consumer_op(worker, op),
        }
    }

    fn table_op(&mut self, op: &TableOp) -> Outcome {
        let missing = || refused(Why::NotFound, None);
        match op {
            TableOp::Describe => Outcome::Applied(Reply::Table(match self.table {
                Some(_) => TableState::Usable,
                None => TableState::Missing,
            })),
            TableOp::Create => {
                self.table.get_or_insert_default();
                Outcome::Applied(Reply::Done)
            }
            TableOp::Scan { after, limit } => match &self.table {
                None => missing(),
                Some(rows) => {
                    let mut left = rows.values().filter(|row| after.as_ref() < Some(&row.key));
                    let limit = limit.map_or(usize::MAX, |limit| limit as usize);
                    let page: Vec<LeaseRow> = left.by_ref().take(limit).cloned().collect();
                    let last = page.last().map(|row| row.key.clone());
                    Outcome::Applied(Reply::Page(ScanPage {
                        next: last.filter(|_| left.next().is_some()),
                        rows: page.into_iter().map(|row| self.read(row)).collect(),
                    }))
                }
            },
            TableOp::Read { key } => match &self.table {
                None => missing(),
                Some(rows) => Outcome::Applied(Reply::Row(
                    rows.get(key).cloned().map(|row| Box::new(self.read(row))),
                )),
            },
            TableOp::Members(op) => {
                let dialect = self.dialect.expect("a dialect with members");
                self.side.execute(dialect, op)
            }
            TableOp::Write(change) => match &mut self.table {
                None => missing(),
                Some(rows) => match self.dialect {
                    None => write(rows, change),
                    Some(dialect) => write_through(dialect, rows, change),
                },
            },
        }
    }

    /// A row as it is read.
    fn read(&self, row: LeaseRow) -> RowRead {
        match self.broken.get(&row.key) {
            Some(detail) => RowRead::Unreadable {
                key: row.key,
                detail: detail.clone(),
            },
            None => RowRead::Lease(row),
        }
    }

    fn stream_op(&mut self, worker: usize, op_id: OpId, op: &StreamOp) -> Outcome {
        let Some(created) = self.stream_created else {
            return refused(Why::NotFound, None);
        };
        match op {
            StreamOp::Describe => Outcome::Applied(Reply::Stream(StreamState {
                readable: true,
                created,
            })),
            StreamOp::ListShards { filter, .. } => {
                let shards = self
                    .shards
                    .values()
                    .filter(|shard| match filter {
                        ShardFilter::All => true,
                        ShardFilter::AtLatest => shard.is_open(),
                        _ => shard.parent.is_none(),
                    })
                    .cloned()
                    .collect();
                Outcome::Applied(Reply::Shards(ShardPage { shards, more: false }))
            }
            StreamOp::GetIterator { shard, from } => {
                let Some(records) = self.records.get(shard) else {
                    return refused(Why::NotFound, None);
                };
                let at = |position: &Position| position.sequence.words()[2];
                let start = match from {
                    IteratorFrom::TrimHorizon | IteratorFrom::AtTimestamp(_) => 0,
                    IteratorFrom::Latest => records.len(),
                    IteratorFrom::At(position) => records.partition_point(|record| *record < at(position)),
                    IteratorFrom::After(position) => {
                        records.partition_point(|record| *record <= at(position))
                    }
                };
                self.workers[worker]
                    .iterators
                    .insert(op_id, (shard.clone(), start));
                Outcome::Applied(Reply::Iterator)
            }
            StreamOp::GetRecords { shard, via, limit } => {
                let Some((_, start)) = self.workers[worker].iterators.get(via).cloned() else {
                    return refused(Why::Gone, None);
                };
                let Some(records) = self.records.get(shard) else {
                    return refused(Why::NotFound, None);
                };
                let end = records.len().min(start + *limit as usize);
                let position = |n: usize| Position::of(SequenceNumber::from(records[n]));
                let fetched = Fetched {
                    count: (end - start) as u32,
                    bytes: (end - start) as u64 * 100,
                    first: (end > start).then(|| position(start)),
                    last: (end > start).then(|| position(end - 1)),
                    behind_ms: if end < records.len() { 1000 } else { 0 },
                    end: (end == records.len() && !self.shards[shard].is_open())
                        .then(|| self.children(shard)),
                };
                self.workers[worker].iterators.insert(op_id, (shard.clone(), end));
                self.workers[worker]
                    .batches
                    .insert(op_id, (shard.clone(), start, end));
                Outcome::Applied(Reply::Records(fetched))
            }
        }
    }

    pub fn children(&self, shard: &ShardId) -> Vec<ChildShard> {
        self.shards
            .values()
            .filter(|child| child.parents().any(|parent| parent == shard))
            .map(|child| ChildShard {
                id: child.id.clone(),
                parents: child.parents().cloned().collect(),
                range: child.range,
            })
            .collect()
    }

    fn consumer_op(&mut self, worker: usize, op: &ConsumerOp) -> Outcome {
        let now = self.now;
        self.workers[worker].calls.push((now, op.clone()));
        if let ConsumerOp::Deliver { batch, after, .. } = op {
            let Some((shard, start, end)) = self.workers[worker].batches.remove(batch) else {
                return refused(Why::Gone, None);
            };
            let after = after.map_or(0, |position| position.sequence.words()[2]);
            let records: Vec<u64> = self.records[&shard][start..end]
                .iter()
                .copied()
                .filter(|record| *record > after)
                .collect();
            self.workers[worker]
                .processed
                .entry(shard)
                .or_default()
                .extend(records);
            return Outcome::Applied(Reply::Processed);
        }
        Outcome::Applied(Reply::Done)
    }

    /// Lets time pass.
    pub fn run(&mut self, span: Span) {
        let end = self.now + span;
        loop {
            let next = self
                .workers
                .iter()
                .enumerate()
                .filter(|(_, worker)| worker.alive)
                .map(|(number, worker)| (worker.wake_at, number))
                .min();
            match next {
                Some((at, number)) if at <= end => {
                    self.now = self.now.max(at);
                    self.tell(number, Body::Tick);
                }
                _ => break,
            }
        }
        self.now = end;
    }

    pub fn secs(&mut self, secs: u64) {
        self.run(Span::from_secs(secs));
    }

    pub fn row(&self, n: u32) -> &LeaseRow {
        &self.table.as_ref().unwrap()[&Self::id(n).to_lease()]
    }

    pub fn has_row(&self, n: u32) -> bool {
        self.table.as_ref().unwrap().contains_key(&Self::id(n).to_lease())
    }

    pub fn owner(&self, n: u32) -> Option<usize> {
        let owner = self.row(n).owner.as_ref()?;
        self.workers
            .iter()
            .position(|worker| worker.engine.worker() == Some(owner))
    }

    /// Every record was processed, by anybody.
    pub fn assert_all_processed(&self) {
        for (shard, records) in &self.records {
            let mut seen: Vec<u64> = self
                .workers
                .iter()
                .flat_map(|worker| worker.processed.get(shard).cloned().unwrap_or_default())
                .collect();
            seen.sort_unstable();
            seen.dedup();
            assert_eq!(&seen, records, "records of {shard}");
        }
    }

    pub fn duplicates(&self) -> usize {
        let processed: usize = self
            .workers
            .iter()
            .flat_map(|worker| worker.processed.values())
            .map(|records| records.len())
            .sum();
        processed - self.records.values().map(|records| records.len()).sum::<usize>()
    }
}

pub fn refused(why: Why, current: Option<LeaseRow>) -> Outcome {
    let current = current.map(|row| Box::new(RowRead::Lease(row)));
    Outcome::Refused(Refusal {
        why,
        current,
        detail: String::new(),
    })
}

fn guarded(row: &LeaseRow, guard: &Guard) -> bool {
    row.counter == guard.counter
        && match &guard.next_owner {
            None => row.owner.as_ref() == Some(&guard.holder) && row.handing_over.is_none(),
            Some(next) => {
                row.owner.as_ref() == Some(next) && row.handing_over.as_ref() == Some(&guard.holder)
            }
        }
}

/// One guarded change of a row as an item.
fn write_through(dialect: &dyn Dialect, rows: &mut BTreeMap<LeaseKey, LeaseRow>, change: &Change) -> Outcome {
    let current = rows.get(change.key()).cloned();
    let mut item = None;
    if let Some(row) = &current {
        let put = dialect.encode(&Change::Create(Box::new(row.clone())));
        put.carry_out(&mut item).unwrap();
    }
    if dialect.encode(change).carry_out(&mut item).is_err() {
        return refused(Why::ConditionFailed, current);
    }
    match item.map(|item| dialect.decode(&item)) {
        Some(RowRead::Lease(row)) => {
            rows.insert(row.key.clone(), row);
        }
        None => {
            rows.remove(change.key());
        }
        Some(other) => panic!("{other:?}"),
    }
    Outcome::Applied(Reply::Done)
}

/// One guarded change of the rows.
pub fn write(rows: &mut BTreeMap<LeaseKey, LeaseRow>, change: &Change) -> Outcome {
    let current = rows.get(change.key()).cloned();
    let holds = match (change, &current) {
        (Change::Create(_), None) => true,
        (Change::Create(_), Some(_)) | (_, None) => false,
        (Change::Take { counter, from, .. }, Some(row)) => row.counter == *counter && row.owner == *from,
        (Change::Claim { counter, from, .. }, Some(row)) => {
            row.counter == *counter && row.owner.as_ref() == Some(from) && row.handing_over.is_none()
        }
        (Change::Delete { counter, .. }, Some(row)) => row.counter == *counter && row.checkpoint.is_end(),
        (Change::SetRange { .. }, Some(row)) => row.range.is_none(),
        (
            Change::Renew { guard, .. }
            | Change::Checkpoint { guard, .. }
            | Change::End { guard, .. }
            | Change::Release { guard, .. }
            | Change::HandOver { guard, .. },
            Some(row),
        ) => guarded(row, guard),
    };
    if !holds {
        return refused(Why::ConditionFailed, current);
    }
    if let Change::Create(row) = change {
        rows.insert(row.key.clone(), (**row).clone());
        return Outcome::Applied(Reply::Done);
    }
    if let Change::Delete { key, .. } = change {
        rows.remove(key);
        return Outcome::Applied(Reply::Done);
    }
    let row = rows.get_mut(change.key()).unwrap();
    match change {
        Change::SetRange { range, .. } => {
            row.range = Some(*range);
            return Outcome::Applied(Reply::Done);
        }
        Change::Claim { by, .. } => {
            row.handing_over = row.owner.replace(by.clone());
            return Outcome::Applied(Reply::Done);
        }
        Change::Take { to, .. } => {
            row.owner = Some(to.clone());
            row.handing_over = None;
        }
        Change::Checkpoint { position, .. } => row.checkpoint = Checkpoint::At(*position),
        Change::End { children, .. } => {
            row.checkpoint = Checkpoint::ShardEnd;
            row.children = children.clone();
            row.owner = None;
            row.handing_over = None;
        }
        Change::Release { .. } => row.owner = None,
        Change::HandOver { .. } => row.handing_over = None,
        _ => {}
    }
    row.counter = change.leaves().unwrap_or(row.counter);
    Outcome::Applied(Reply::Done)
}
