//! A state of the search: engines, services, requests under way, and faults left.
//!
//! A world is cheap to clone: its parts are shared until a step changes them.

use super::request::Flight;
use super::scope::{RATE_ERROR_PPM, Scope};
use crate::faults::{Faults, StreamFaults};
use crate::names::{self, Names, record_of, shard_of};
use crate::oracles::fact::{Mark, Verb};
use crate::oracles::{Fact, LifeNo, Oracles, ShardNo, Terms, Time, Violation};
use crate::report::is_worth_a_line;
use crate::streams::Streams;
use crate::swarm::Load;
use crate::world::fleet::clock::Clock;
use crate::world::fleet::worker::Adapter;
use crate::world::services::stream::Source;
use crate::world::services::table::{LeaseTable, wall_ms};
use leasehold_engine::Engine;
use leasehold_engine::ids::{LeaseKey, WorkerId};
use leasehold_engine::input::{Body, Boot, Input};
use leasehold_engine::output::{Command, Output};
use leasehold_engine::row::LeaseRow;
use std::collections::VecDeque;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

/// One state, on one path to the state.
#[derive(Clone)]
pub(super) struct World {
    pub(super) scope: Arc<Scope>,
    pub(super) now: Time,
    /// The number of steps on the path.
    pub(super) steps: u32,
    pub(super) workers: Vec<Arc<Worker>>,
    /// Requests under way, by worker and in the order of their emission.
    pub(super) flights: Vec<Arc<Flight>>,
    pub(super) table: Arc<LeaseTable>,
    pub(super) source: Arc<Source>,
    pub(super) truth: Arc<Truth>,
    pub(super) spent: Spent,
    /// The events, line by line, if a path is told again.
    pub(super) story: Option<Vec<String>>,
}

/// The faults spent on this path.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Spent {
    pub(super) slow: u32,
    pub(super) pauses: u32,
    pub(super) crashes: u32,
    pub(super) stops: u32,
    pub(super) split: bool,
}

impl Spent {
    pub(super) fn faults(self) -> u32 {
        self.slow + self.pauses + self.crashes + self.stops
    }
}

/// One worker.
#[derive(Clone)]
pub(super) struct Worker {
    engine: Engine,
    /// Fingerprint of the engine.
    state: u64,
    pub(super) life: LifeNo,
    generation: u64,
    pub(super) clock: Clock,
    /// The time of the engine's next wake-up.
    pub(super) wanted: Time,
    /// The beginning of the pause.
    pub(super) paused: Option<Time>,
    /// The worker was told to stop.
    pub(super) stopping: bool,
    /// The worker has stopped for good.
    pub(super) ended: bool,
    pub(super) adapter: Adapter,
}

impl Worker {
    /// Whether the worker can take an input now.
    pub(super) fn runs(&self) -> bool {
        self.paused.is_none() && !self.ended
    }

    /// The ends of the worker's beliefs, in true time.
    pub(super) fn beliefs(&self) -> impl Iterator<Item = Time> {
        self.engine.held().map(|held| self.clock.when(held.valid_until))
    }

    /// Whether the worker holds the shard's lease, open to the application.
    pub(super) fn processes(&self, shard: ShardNo, now: Time) -> bool {
        self.engine.held().any(|held| {
            held.open && shard_of(held.lease) == Some(shard) && self.clock.when(held.valid_until) > now
        })
    }
}

/// The known facts, and their judges.
#[derive(Clone)]
pub(super) struct Truth {
    pub(super) oracles: Oracles,
    pub(super) names: Names,
    pub(super) rows: Vec<Row>,
    /// Shards known to the oracles, and whether as closed.
    closed: Vec<bool>,
}

/// A lease's row, and a fingerprint of all its past states.
#[derive(Clone, Default)]
pub(super) struct Row {
    pub(super) now: Option<LeaseRow>,
    past: u64,
}

impl World {
    /// The beginning: each worker has just been started.
    pub(super) fn new(scope: Arc<Scope>, story: bool) -> Self {
        let load = Load { before: 0, every_us: 1, burst: 0, bytes: 1 };
        let stream_faults = StreamFaults { update_ms: 0, ..StreamFaults::default() };
        let mut source = Source::new(Streams::default(), scope.shards, &load, &stream_faults)
            .unwrap_or_else(|error| panic!("the stream of a scope was refused: {error}"));
        for shard in 0..u128::from(scope.shards) {
            for _ in 0..scope.records {
                source.put(wall_ms(0), 0, u128::MAX / u128::from(scope.shards) * shard + 1, 1);
            }
        }
        let table = LeaseTable::new(scope.format, &Faults::default());
        let mut world = Self {
            now: 0,
            steps: 0,
            workers: Vec::new(),
            flights: Vec::new(),
            table: Arc::new(table),
            source: Arc::new(source),
            truth: Arc::new(Truth {
                oracles: Oracles::new(&Terms::plain(scope.config())),
                names: Names::default(),
                rows: Vec::new(),
                closed: Vec::new(),
            }),
            spent: Spent::default(),
            story: story.then(Vec::new),
            scope,
        };
        world.observe_stream();
        for w in 0..world.scope.workers {
            let ppm = if w == 0 { -RATE_ERROR_PPM } else { RATE_ERROR_PPM };
            world.workers.push(Arc::new(Worker {
                engine: Engine::new(),
                state: 0,
                life: 0,
                generation: 0,
                clock: Clock::new(0, 0, ppm),
                wanted: Time::MAX,
                paused: None,
                stopping: false,
                ended: true,
                adapter: Adapter::default(),
            }));
            world.start(w);
        }
        world
    }

    /// Begins a life of a worker.
    pub(super) fn start(&mut self, w: usize) {
        let (now, config) = (self.now, self.scope.config());
        let worker = Arc::make_mut(&mut self.workers[w]);
        worker.engine = Engine::new();
        worker.generation += 1;
        worker.clock.restart(now, 0);
        worker.paused = None;
        (worker.stopping, worker.ended) = (false, false);
        worker.adapter = Adapter::default();
        let boot = Boot {
            worker: format!("w{w}"),
            incarnation: (w as u64) << 8 | worker.generation,
            seed: 0,
            config,
        };
        self.feed(w, Body::Boot(Box::new(boot)));
    }

    /// Gives an input to a worker's engine, and completes the requests without a duration.
    pub(super) fn feed(&mut self, w: usize, body: Body) {
        let mut bodies = VecDeque::from([body]);
        while let Some(body) = bodies.pop_front() {
            for command in self.input(w, body) {
                self.command(w, command, &mut bodies);
            }
            self.compare_view(w);
        }
        let worker = Arc::make_mut(&mut self.workers[w]);
        worker.state = fingerprint(&worker.engine);
        if worker.engine.is_stopped() {
            worker.ended = true;
            worker.wanted = Time::MAX;
            let life = worker.life;
            self.fact(&Fact::Stopped { life, fatal: false });
            self.orphan(w);
            self.tell(|_| format!("w{w} has stopped"));
        }
    }

    fn input(&mut self, w: usize, body: Body) -> Vec<Command> {
        let now = self.now;
        let worker = Arc::make_mut(&mut self.workers[w]);
        let boots = matches!(body, Body::Boot(_));
        let input = Input { at: worker.clock.mono(now), wall: worker.clock.wall(now), body };
        let outbox = worker.engine.handle(input);
        worker.wanted = worker.clock.when(outbox.wake_at());
        let mut commands = Vec::new();
        let mut notices = Vec::new();
        for output in outbox {
            match output {
                Output::Do(command) => commands.push(command),
                Output::Tell(notice) if self.story.is_some() => notices.push(notice),
                Output::Tell(_) => {}
            }
        }
        if boots {
            let name = worker.engine.worker().cloned().unwrap_or_else(|| WorkerId::from(""));
            let life = Arc::make_mut(&mut self.truth).names.begin_life(w as u16, &name);
            worker.life = life;
            let worker = w as u32;
            self.fact(&Fact::Booted { life, worker });
        }
        for notice in notices.iter().filter(|notice| is_worth_a_line(notice)) {
            self.tell(|_| format!("w{w}: {notice}"));
        }
        commands
    }

    /// Reports the leases held by a worker, for comparison by the oracles.
    fn compare_view(&mut self, w: usize) {
        let worker = self.workers[w].clone();
        let life = worker.life;
        let mut others: Vec<_> = (0..self.truth.rows.len() as ShardNo).collect();
        for held in worker.engine.held() {
            let Some(shard) = shard_of(held.lease) else {
                continue;
            };
            others.retain(|other| *other != shard);
            self.fact(&Fact::Holds {
                life,
                shard,
                counter: held.counter,
                checkpoint: Mark::of(held.checkpoint, record_of),
                open: held.open,
                until: worker.clock.when(held.valid_until),
            });
        }
        for shard in others {
            self.fact(&Fact::HoldsNoMore { life, shard });
        }
        self.fact(&Fact::Said { life });
    }

    /// Reports a write to the oracles.
    pub(super) fn row_written(&mut self, key: &LeaseKey, verb: Verb, by: LifeNo) {
        let Some(shard) = shard_of(key) else { return };
        let after = Arc::make_mut(&mut self.table).lease(key);
        let truth = Arc::make_mut(&mut self.truth);
        let index = shard as usize;
        if truth.rows.len() <= index {
            truth.rows.resize_with(index + 1, Row::default);
        }
        let row = &mut truth.rows[index];
        row.past = fingerprint(&(row.past, &after));
        let before = std::mem::replace(&mut row.now, after.clone());
        let fact = Fact::RowChanged {
            shard,
            by: Some(by),
            verb: Some(verb),
            before: before.map(|row| truth.names.row(&row)),
            after: after.as_ref().map(|row| truth.names.row(row)),
            from_record: 1,
        };
        self.fact(&fact);
    }

    /// Reports the states of shards to the oracles.
    pub(super) fn observe_stream(&mut self) {
        let mut facts = Vec::new();
        let Some(stream) = self.source.truth(0) else {
            return;
        };
        let closed = &mut Arc::make_mut(&mut self.truth).closed;
        for shard in stream.shards().skip(closed.len()) {
            let mut parents = shard.parents().map(|parent| parent.0);
            facts.push(Fact::ShardBorn { shard: shard.index().0, parents: [parents.next(), parents.next()] });
        }
        closed.resize(stream.shards().len(), false);
        for (shard, closed) in stream.shards().zip(closed) {
            if !shard.is_open() && !*closed {
                *closed = true;
                facts.push(Fact::ShardClosed {
                    shard: shard.index().0,
                    records: shard.next_position() - 1,
                    children: shard.children().iter().map(|child| child.0).collect(),
                });
            }
        }
        for fact in &facts {
            self.fact(fact);
        }
    }

    pub(super) fn fact(&mut self, fact: &Fact) {
        let now = self.now;
        self.truth_mut().oracles.observe(now, fact);
    }

    pub(super) fn truth_mut(&mut self) -> &mut Truth {
        Arc::make_mut(&mut self.truth)
    }

    /// The violations on the path so far.
    pub(super) fn violations(&self) -> &[Violation] {
        self.truth.oracles.verdict.violations()
    }

    /// Adds a line to the story, if the story is kept.
    pub(super) fn tell(&mut self, line: impl FnOnce(&Names) -> String) {
        if let Some(story) = &mut self.story {
            let (seconds, millis) = (self.now / 1_000_000, self.now / 1_000 % 1_000);
            let line = line(&self.truth.names);
            story.push(format!("{seconds:>3}.{millis:03}  {line}"));
        }
    }

    /// A fingerprint of the state, to detect a second visit.
    ///
    /// The fingerprint covers all causes of future events. From the past, the fingerprint covers each state of each
    /// row, and the records processed. Other memory of the oracles comes from the first path to the state.
    pub(super) fn key(&self) -> u64 {
        let mut state = Fingerprint::default();
        (self.now, self.steps, self.spent).hash(&mut state);
        for worker in &self.workers {
            let stands = worker.paused.is_some();
            (worker.state, worker.life, stands, worker.stopping, worker.ended).hash(&mut state);
        }
        for flight in &self.flights {
            flight.hash(&mut state);
        }
        for (shard, row) in self.truth.rows.iter().enumerate() {
            (row.past, self.truth.oracles.processed(shard as ShardNo)).hash(&mut state);
        }
        state.finish()
    }
}

/// The short name of a row's lease.
pub(super) fn shard_name(key: &LeaseKey) -> String {
    names::shard_of(key).map_or_else(|| key.to_string(), |shard| format!("shard {shard}"))
}

/// A hasher with equal results on every machine and in every build. Over ten million states, the chance of a collision
/// of two states is about three in a million.
#[derive(Default)]
pub(super) struct Fingerprint(u64);

pub(super) fn fingerprint(value: &impl Hash) -> u64 {
    let mut state = Fingerprint::default();
    value.hash(&mut state);
    state.finish()
}

impl Hasher for Fingerprint {
    fn write(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            self.write_u64(u64::from_le_bytes(word));
        }
    }

    fn write_u8(&mut self, value: u8) {
        self.write_u64(u64::from(value));
    }

    fn write_u32(&mut self, value: u32) {
        self.write_u64(u64::from(value));
    }

    fn write_usize(&mut self, value: usize) {
        self.write_u64(value as u64);
    }

    fn write_u64(&mut self, value: u64) {
        let wide = u128::from(self.0 ^ value ^ 0x1319_8a2e_0370_7345)
            .wrapping_mul(0xa409_3822_299f_31d1_2437_54f1_6a09_e667_u128);
        self.0 = (wide as u64 ^ (wide >> 64) as u64).wrapping_add(0x9e37_79b9_7f4a_7c15);
    }

    fn finish(&self) -> u64 {
        let mut value = self.0;
        value = (value ^ value >> 32).wrapping_mul(0xd6e8_feb8_6659_fd93);
        value ^ value >> 32
    }
}
