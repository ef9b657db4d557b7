//! A small fleet on one table and one stream, with instant answers: its tests of behaviour read like prose.
//!
//! The engine's `testkit` carries the commands out; a rig adds traps, which let a command fail, and a clock for all workers. The
//! simulator does the same with items, delays and faults.

mod acts;
mod ask;
pub mod side;
mod tricks;

pub use acts::*;
pub use ask::bare;
pub use leasehold_engine::testkit::{refused, shard_id};
pub use tricks::*;

use leasehold_engine::Engine;
use leasehold_engine::config::{Config, MembersConfig};
use leasehold_engine::format::LeaseFormat;
use leasehold_engine::input::*;
use leasehold_engine::notice::Notice;
use leasehold_engine::output::*;
use leasehold_engine::policy::{Policies, Steal};
use leasehold_engine::row::{Change, LeaseRow, RowRead};
use leasehold_engine::stream_id::{StreamId, split_key};
use leasehold_engine::testkit::{Carry, Driven, Keeping, LeaseTable, Plain, Reading, Stream};
use leasehold_engine::time::{Mono, Span, Wall};
use std::collections::BTreeMap;
use std::ops::{Index, IndexMut};

#[derive(Default)]
pub struct Worker {
    driven: Driven,
    pub reading: Reading,
    /// The reading of each of several streams.
    pub of: BTreeMap<StreamId, Reading>,
    pub alive: bool,
    pub trap: Option<Trap>,
    pub hung: Vec<Command>,
    pub notices: Vec<(Mono, Notice)>,
    pub calls: Vec<(Mono, ConsumerOp)>,
    pub sent: Vec<(Mono, Effect)>,
}

impl Worker {
    pub fn engine(&self) -> &Engine {
        self.driven.engine()
    }

    /// How many inputs it was given.
    pub fn turns(&self) -> usize {
        self.driven.inputs()
    }
}

pub struct Rig {
    pub now: Mono,
    pub config: Config,
    pub workers: Vec<Worker>,
    pub table: LeaseTable<Spelled>,
    /// The tables beside the lease table.
    pub side: side::SideTables,
    pub stream: Stream,
    /// Further streams, where workers read several.
    pub streams: BTreeMap<StreamId, Stream>,
    /// By how much the wall clocks of workers are ahead, in ms.
    pub wall_ahead: Vec<i64>,
}

/// A worker by its number.
impl Index<usize> for Rig {
    type Output = Worker;

    fn index(&self, worker: usize) -> &Worker {
        &self.workers[worker]
    }
}

impl IndexMut<usize> for Rig {
    fn index_mut(&mut self, worker: usize) -> &mut Worker {
        &mut self.workers[worker]
    }
}

/// Plain rows, or, with a format, rows changed as items of the format.
pub struct Spelled(pub Option<&'static dyn LeaseFormat>);

impl Keeping for Spelled {
    type Row = LeaseRow;

    fn read(&self, row: &LeaseRow) -> RowRead {
        RowRead::Lease(row.clone())
    }

    fn change(&self, row: &mut Option<LeaseRow>, change: &Change) -> Result<(), Why> {
        let Some(format) = self.0 else {
            return Plain.change(row, change);
        };
        let mut item = None;
        if let Some(row) = row {
            let put = format.encode(&Change::Create(Box::new(row.clone())));
            put.carry_out(&mut item).unwrap();
        }
        if format.encode(change).carry_out(&mut item).is_err() {
            return Err(Why::ConditionFailed);
        }
        *row = item.map(|item| match format.decode(&item) {
            RowRead::Lease(row) => row,
            other => panic!("{other:?}"),
        });
        Ok(())
    }
}

/// A worker of a rig while it is fed an input.
struct Turn<'a> {
    rig: &'a mut Rig,
    worker: usize,
}

impl Carry for Turn<'_> {
    fn carry(&mut self, command: Command) -> Option<Outcome> {
        let Turn { rig, worker } = self;
        let (now, worker) = (rig.now, *worker);
        rig[worker].sent.push((now, command.effect.clone()));
        let trick = rig[worker].trap.as_mut().and_then(|trap| trap(&command.effect));
        match trick {
            None => Some(rig.perform(worker, &command)),
            Some(Trick::Instead(outcome)) => Some(outcome),
            Some(Trick::AppliedBut(outcome)) => {
                rig.perform(worker, &command);
                Some(outcome)
            }
            Some(Trick::Hang) => {
                rig[worker].hung.push(command);
                None
            }
        }
    }

    fn told(&mut self, notice: Notice) {
        let now = self.rig.now;
        self.rig[self.worker].notices.push((now, notice));
    }
}

/// The wall clock of the services.
pub fn wall(now: Mono) -> Wall {
    Wall((now.0 / 1000) as i64)
}

/// Leases are stolen, as they are where workers of KCL 2.x are among the owners, and the table is scanned in rounds only.
pub fn config() -> Config {
    let mut policies = Policies::default();
    policies.steal = Steal::Take;
    let config = asking();
    let interval = config.scan_interval();
    config.with_policies(policies).with_quick_scan_interval(interval).with_bootstrap_delay(Span::from_secs(3))
}

/// The defaults: owners hand leases over on request.
pub fn asking() -> Config {
    Config::default().with_table("app").with_stream("orders")
}

impl Rig {
    /// The same, with rows of this format.
    pub fn with_format(format: &'static dyn LeaseFormat, shards: u32, workers: u32) -> Rig {
        let mut rig = Rig::new(shards, 0);
        rig.table.keeping = Spelled(Some(format));
        rig.configure(|config| config.with_policies(format.policies()));
        let check = rig.config.lease_duration().per(5);
        let members = MembersConfig::default().with_check_interval(check).with_lead_interval(check.times(2));
        rig.configure(|config| config.with_members(members));
        rig.join_all(workers);
        rig
    }

    /// Changes options of the workers that are started from now on.
    pub fn configure(&mut self, change: impl FnOnce(Config) -> Config) {
        self.config = change(std::mem::take(&mut self.config));
    }

    /// A stream of `shards` shards, an existing empty table, and `workers` workers.
    pub fn new(shards: u32, workers: u32) -> Rig {
        Rig::of(shards, workers, |config| config)
    }

    /// The same, with changed options.
    pub fn of(shards: u32, workers: u32, change: impl FnOnce(Config) -> Config) -> Rig {
        let mut rig = Rig {
            now: Mono(1_000_000),
            config: change(config()),
            workers: Vec::new(),
            table: LeaseTable::empty(Spelled(None)),
            side: side::SideTables::default(),
            stream: Stream::of(shards),
            streams: BTreeMap::new(),
            wall_ahead: Vec::new(),
        };
        rig.join_all(workers);
        rig
    }

    pub fn join(&mut self) -> usize {
        self.join_with(None)
    }

    /// A worker joins, and then so many seconds pass.
    pub fn join_then(&mut self, secs: u64) {
        self.join();
        self.secs(secs);
    }

    /// So many workers join at once.
    pub fn join_all(&mut self, workers: u32) {
        for _ in 0..workers {
            self.join();
        }
    }

    /// A worker joins, with a trap from its first command on.
    pub fn join_trapped(&mut self, trap: impl FnMut(&Effect) -> Option<Trick> + 'static) -> usize {
        self.join_with(Some(Box::new(trap)))
    }

    fn join_with(&mut self, trap: Option<Trap>) -> usize {
        let number = self.workers.len();
        self.workers.push(Worker { alive: true, trap, ..Worker::default() });
        let boot = Boot {
            worker: format!("w{number}"),
            incarnation: number as u64 + 1,
            seed: number as u64,
            config: self.config.clone(),
        };
        self.tell(number, Body::Boot(Box::new(boot)));
        number
    }

    pub fn call(&mut self, worker: usize, call: Call) {
        self.tell(worker, Body::Call(call));
    }

    /// Feeds an input and all following answers at the same instant.
    pub fn tell(&mut self, worker: usize, body: Body) {
        let at = self.now;
        let ahead = self.wall_ahead.get(worker).copied().unwrap_or(0);
        let wall = Wall(wall(self.now).0 + ahead);
        let mut driven = std::mem::take(&mut self.workers[worker].driven);
        driven.tell(Input { at, wall, body }, &mut Turn { rig: self, worker });
        self.workers[worker].driven = driven;
    }

    /// Answers the hanging commands.
    pub fn release(&mut self, worker: usize) {
        for command in std::mem::take(&mut self.workers[worker].hung) {
            let outcome = self.perform(worker, &command);
            self.tell(worker, Body::Done { op: command.op, outcome });
        }
    }

    /// Executes a command now, and leaves the answer to the caller.
    pub fn perform(&mut self, worker: usize, command: &Command) -> Outcome {
        let worker = &mut self.workers[worker];
        match &command.effect {
            Effect::Table(TableOp::Members(op)) => {
                let format = self.table.keeping.0.expect("a format with members");
                self.side.execute(format, op)
            }
            Effect::Table(op) => self.table.execute(op),
            Effect::Stream(op) => self.stream.execute(&mut worker.reading, command.op, op),
            Effect::StreamOf(id, op) => match self.streams.get(id) {
                Some(stream) => stream.execute(worker.of.entry(id.clone()).or_default(), command.op, op),
                None => refused(Why::NotFound, None),
            },
            Effect::Consumer(op) => {
                worker.calls.push((self.now, op.clone()));
                let id = split_key(op.lease().as_str()).map(|(id, _)| id);
                match id.and_then(|id| Some((self.streams.get(id)?, worker.of.get_mut(id)?))) {
                    Some((stream, reading)) => reading.execute(stream, op),
                    None => worker.reading.execute(&self.stream, op),
                }
            }
        }
    }

    pub fn put(&mut self, n: u32, count: u64) {
        self.stream.now = wall(self.now);
        self.stream.put(n, count).expect("a shard");
    }

    /// Each of these shards gets so many records.
    pub fn put_all(&mut self, shards: impl IntoIterator<Item = u32>, count: u64) {
        shards.into_iter().for_each(|n| self.put(n, count));
    }

    pub fn split(&mut self, n: u32) -> (u32, u32) {
        self.stream.split(n).expect("a shard")
    }

    pub fn merge(&mut self, a: u32, b: u32) -> u32 {
        self.stream.merge(a, b).expect("two shards")
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
                .map(|(number, worker)| (worker.driven.wake_at(), number))
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

    /// The rig with so many more records in each of these shards.
    pub fn with_records(mut self, shards: impl IntoIterator<Item = u32>, count: u64) -> Rig {
        self.put_all(shards, count);
        self
    }

    /// The rig after so many seconds.
    pub fn after(mut self, secs: u64) -> Rig {
        self.secs(secs);
        self
    }

    /// Every record was processed, by anybody.
    pub fn assert_all_processed(&self) {
        for (shard, records) in &self.stream.records {
            let mut seen: Vec<u64> = self
                .workers
                .iter()
                .flat_map(|worker| worker.reading.processed.get(shard).cloned().unwrap_or_default())
                .collect();
            seen.sort_unstable();
            seen.dedup();
            assert_eq!(&seen, records, "records of {shard}");
        }
    }

    /// Every record is processed within so many seconds, by anybody.
    pub fn assert_all_processed_in(&mut self, secs: u64) {
        self.secs(secs);
        self.assert_all_processed();
    }

    pub fn duplicates(&self) -> usize {
        let processed: usize = self
            .workers
            .iter()
            .flat_map(|worker| worker.reading.processed.values())
            .map(|records| records.len())
            .sum();
        processed - self.stream.records.values().map(|records| records.len()).sum::<usize>()
    }
}
