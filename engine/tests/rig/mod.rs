//! A small fleet on one table and one stream, with instant answers: tests of behaviour that read like prose.
//!
//! Rows are changed as [`Change`] says, without any format; the simulator does the same with items, delays and faults.

pub mod side;
mod stream;
mod table;

pub use table::{refused, write};

use leasehold_engine::Engine;
use leasehold_engine::config::{Config, MembersConfig};
use leasehold_engine::format::LeaseFormat;
use leasehold_engine::ids::*;
use leasehold_engine::input::*;
use leasehold_engine::members::{MembersOp, Side};
use leasehold_engine::notice::Notice;
use leasehold_engine::output::*;
use leasehold_engine::position::{Position, SequenceNumber};
use leasehold_engine::row::{LeaseRow, RowRead};
use leasehold_engine::shard::{ChildShard, HashKey, HashRange, Shard};
use leasehold_engine::time::{Mono, Span, Wall};
use std::collections::BTreeMap;
use table::write_through;

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
    pub format: Option<&'static dyn LeaseFormat>,
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
    Config::default().with_table("app").with_stream("orders")
}

impl Rig {
    /// The same, with rows of this format.
    pub fn with_format(format: &'static dyn LeaseFormat, shards: u32, workers: u32) -> Rig {
        let mut rig = Rig::new(shards, 0);
        rig.format = Some(format);
        rig.configure(|config| config.with_policies(format.policies()));
        let check = rig.config.lease_duration().per(5);
        let members = MembersConfig::default()
            .with_check_interval(check)
            .with_lead_interval(check.times(2));
        rig.configure(|config| config.with_members(members));
        for _ in 0..workers {
            rig.join();
        }
        rig
    }

    /// Changes options of the workers that are started from now on.
    pub fn configure(&mut self, change: impl FnOnce(Config) -> Config) {
        self.config = change(std::mem::take(&mut self.config));
    }

    /// A stream of `shards` shards, an existing empty table, and `workers` workers.
    pub fn new(shards: u32, workers: u32) -> Rig {
        let mut rig = Rig {
            now: Mono(1_000_000),
            config: config(),
            workers: Vec::new(),
            table: Some(BTreeMap::new()),
            broken: BTreeMap::new(),
            format: None,
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

    pub fn put(&mut self, n: u32, count: u64) {
        for _ in 0..count {
            self.sequence += 1;
            self.records.get_mut(&Self::id(n)).unwrap().push(self.sequence);
        }
    }

    /// Makes the tables beside the lease table, empty.
    pub fn side_tables(&mut self) {
        let format = self.format.expect("a format with members");
        for side in Side::ALL {
            self.side.execute(format, &MembersOp::Create(side));
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
                let format = self.format.expect("a format with members");
                self.side.execute(format, op)
            }
            TableOp::Write(change) => match &mut self.table {
                None => missing(),
                Some(rows) => match self.format {
                    None => write(rows, change),
                    Some(format) => write_through(format, rows, change),
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
