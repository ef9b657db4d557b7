//! One worker: an engine, its clocks, and what an adapter keeps for it.

use super::clock::Clock;
use super::handler::Consumer;
use super::standstill::Standstill;
use crate::faults::{Deed, Suspension};
use crate::oracles::{LifeNo, ShardNo, Time};
use crate::peers::Process;
use crate::world::heap::What;
use crate::world::services::stream::Carry;
use leasehold_engine::Engine;
use leasehold_engine::ids::{FencingToken, WorkerId};
use leasehold_engine::internals::Skew;
use leasehold_engine::known_range::KnownRange;
use leasehold_local_aws::kinesis::ShardIterator;
use std::collections::{BTreeMap, VecDeque};

/// A worker, alive or not.
#[derive(Debug)]
pub(in crate::world) struct Worker {
    /// Alive while there is one of these: ours, or a process of a program that others wrote.
    pub(super) engine: Option<Engine>,
    pub(super) peer: Option<Process>,
    /// Counts processes, so that what was meant for a former one is not taken by the next.
    pub(super) generation: u32,
    pub(super) life: LifeNo,
    pub(super) clock: Clock,
    /// What the adapter knows of its clocks, for fences.
    pub(super) skew: Option<Skew>,
    /// The last input showed the wall clock of the worker further on than the monotonic clock: the worker's beliefs end sooner.
    pub(super) missed: bool,
    /// When the earliest planned wake-up is due.
    pub(super) wake: Time,
    /// When the engine asked to be woken.
    pub(super) wanted: Time,
    /// The inputs it took since about now.
    pub(super) inputs: (Time, u32),
    /// Since when it stands still.
    pub(super) paused: Option<Time>,
    pub(super) pauses: u32,
    /// Its machine is suspended.
    pub(super) suspended: Option<Suspension>,
    /// What happened to it meanwhile.
    pub(super) backlog: VecDeque<What>,
    /// Whether its handlers block every thread of their runtime.
    pub(super) standstill: Standstill,
    /// It was told to stop.
    pub(super) stopping: bool,
    /// A replacement comes this long after it has stopped, in µs.
    pub(super) gap_us: u64,
    /// Why it could not go on.
    pub(super) fatal: Option<String>,
    /// It has a part in the world after the faults.
    pub(super) core: bool,
    pub(super) adapter: Adapter,
}

/// What an adapter keeps: iterators and batches under command ids, and the application's consumers.
#[derive(Clone, Debug, Default)]
pub(crate) struct Adapter {
    pub(super) consumers: BTreeMap<ShardNo, Consumer>,
    iterators: BTreeMap<ShardNo, VecDeque<(u64, ShardIterator)>>,
    batches: BTreeMap<ShardNo, VecDeque<(u64, u64, u64)>>,
    /// Parts of batches that have the number of an earlier part.
    low: BTreeMap<ShardNo, VecDeque<(u64, u64)>>,
    /// Parts of batches that handlers are not given.
    left_out: BTreeMap<ShardNo, VecDeque<(u64, Vec<u64>)>>,
    /// The hash keys that shards take.
    ranges: BTreeMap<ShardNo, KnownRange>,
    tokens: VecDeque<(u64, String)>,
    /// How many of each deed, by shard; those without one first.
    deeds: Vec<[u32; Deed::ALL.len()]>,
}

const ITERATORS: usize = 8;
const BATCHES: usize = 256;
const TOKENS: usize = 8;

impl Worker {
    pub(super) fn new(clock: Clock) -> Self {
        Self {
            engine: None,
            peer: None,
            generation: 0,
            life: 0,
            clock,
            skew: None,
            missed: false,
            wake: Time::MAX,
            wanted: Time::MAX,
            inputs: (0, 0),
            paused: None,
            pauses: 0,
            suspended: None,
            backlog: VecDeque::new(),
            standstill: Standstill::default(),
            stopping: false,
            gap_us: 0,
            fatal: None,
            core: true,
            adapter: Adapter::default(),
        }
    }

    /// Whether its process is there.
    pub(in crate::world) fn lives(&self) -> bool {
        self.engine.is_some() || self.peer.is_some()
    }

    /// Whether this is its process.
    pub(in crate::world) fn is_process(&self, generation: u32) -> bool {
        self.lives() && self.generation == generation
    }

    /// Whether it runs our engine.
    pub(in crate::world) fn is_ours(&self) -> bool {
        self.engine.is_some()
    }

    /// Whether it runs a program that others wrote.
    pub(in crate::world) fn is_of_others(&self) -> bool {
        self.peer.is_some()
    }

    pub(in crate::world) fn generation(&self) -> u32 {
        self.generation
    }

    pub(in crate::world) fn life(&self) -> LifeNo {
        self.life
    }

    /// The engine's name in the rows.
    pub(in crate::world) fn name(&self) -> Option<&WorkerId> {
        self.engine.as_ref()?.worker()
    }

    pub(in crate::world) fn clock(&self) -> &Clock {
        &self.clock
    }

    /// How often it stood still: names the last time.
    pub(in crate::world) fn pauses(&self) -> u32 {
        self.pauses
    }

    /// Whether it was told to stop.
    pub(in crate::world) fn is_stopping(&self) -> bool {
        self.stopping
    }

    /// Why it could not go on.
    pub(in crate::world) fn fatal(&self) -> Option<&str> {
        self.fatal.as_deref()
    }

    /// Whether it has a part in the world after the faults.
    pub(in crate::world) fn is_core(&self) -> bool {
        self.core
    }

    /// Whether its application has this shard open.
    pub(in crate::world) fn has_open(&self, shard: ShardNo) -> bool {
        self.adapter.consumers.contains_key(&shard)
    }

    pub(in crate::world) fn adapter(&self) -> &Adapter {
        &self.adapter
    }

    pub(super) fn adapter_mut(&mut self) -> &mut Adapter {
        &mut self.adapter
    }

    /// The process is gone, and all it knew.
    pub(super) fn end(&mut self) {
        self.engine = None;
        self.peer = None;
        self.generation += 1;
        self.wake = Time::MAX;
        self.wanted = Time::MAX;
        (self.paused, self.suspended) = (None, None);
        self.backlog.clear();
        self.standstill = Standstill::default();
        self.stopping = false;
        self.adapter = Adapter::default();
    }
}

impl Adapter {
    /// How many of these there were before, in this life.
    pub(crate) fn count(&mut self, deed: Deed, shard: Option<ShardNo>) -> u32 {
        let index = shard.map_or(0, |shard| shard as usize + 1);
        if self.deeds.len() <= index {
            self.deeds.resize_with(index + 1, Default::default);
        }
        let count = &mut self.deeds[index][deed as usize];
        *count += 1;
        *count - 1
    }

    /// The ownership with which the application last had the shard.
    pub(in crate::world) fn ownership(&self, shard: ShardNo) -> Option<FencingToken> {
        self.consumers.get(&shard).map(|consumer| consumer.token)
    }

    /// Keeps what an answer brought.
    pub(crate) fn keep(&mut self, op: u64, carry: Carry) {
        match carry {
            Carry::Nothing | Carry::Items(..) => {}
            Carry::Token(token) => push(&mut self.tokens, TOKENS, (op, token)),
            Carry::Iterator(shard, iterator) => {
                push(self.iterators.entry(shard).or_default(), ITERATORS, (op, iterator));
            }
            Carry::Batch { shard, first, last, next, low } => {
                if let Some(low) = low {
                    push(self.low.entry(shard).or_default(), BATCHES, (op, low));
                }
                if first <= last {
                    push(self.batches.entry(shard).or_default(), BATCHES, (op, first, last));
                }
                if let Some(next) = next {
                    push(self.iterators.entry(shard).or_default(), ITERATORS, (op, next));
                }
            }
        }
    }

    pub(crate) fn token(&self, op: u64) -> Option<&str> {
        self.tokens.iter().find(|(known, _)| *known == op).map(|(_, token)| &**token)
    }

    pub(crate) fn iterator(&self, shard: ShardNo, op: u64) -> Option<ShardIterator> {
        let known = self.iterators.get(&shard)?.iter().rev();
        known.into_iter().find(|(known, _)| *known == op).map(|(_, iterator)| *iterator)
    }

    /// The first and the last record of a batch.
    pub(crate) fn batch(&self, shard: ShardNo, op: u64) -> Option<(u64, u64)> {
        let known = self.batches.get(&shard)?.iter();
        known.into_iter().find(|(known, ..)| *known == op).map(|(_, first, last)| (*first, *last))
    }

    /// The part of a batch that has the number of an earlier part: a search for the first part after a position finds the one after it.
    pub(super) fn low(&self, shard: ShardNo, op: u64) -> Option<u64> {
        let mut known = self.low.get(&shard)?.iter();
        known.find(|(known, _)| *known == op).map(|(_, part)| *part)
    }

    /// A handler is not given these parts of a batch.
    pub(super) fn leave_out(&mut self, shard: ShardNo, op: u64, parts: Vec<u64>) {
        push(self.left_out.entry(shard).or_default(), BATCHES, (op, parts));
    }

    /// The parts of a batch that a handler is not given.
    pub(super) fn left_out(&self, shard: ShardNo, op: u64) -> &[u64] {
        let mut known = self.left_out.get(&shard).into_iter().flatten();
        known.find(|(known, _)| *known == op).map_or(&[], |(_, parts)| parts)
    }

    /// What is known of the hash keys that a shard takes, to be added to.
    pub(super) fn range_mut(&mut self, shard: ShardNo) -> &mut KnownRange {
        self.ranges.entry(shard).or_default()
    }

    /// The hash keys that a shard takes, as far as they are known.
    pub(super) fn range(&self, shard: ShardNo) -> KnownRange {
        self.ranges.get(&shard).copied().unwrap_or_default()
    }

    /// Nothing of this shard is needed any more.
    pub(crate) fn forget(&mut self, shard: ShardNo) {
        self.iterators.remove(&shard);
        self.batches.remove(&shard);
        self.low.remove(&shard);
        self.left_out.remove(&shard);
    }
}

fn push<T>(list: &mut VecDeque<T>, most: usize, entry: T) {
    if list.len() >= most {
        list.pop_front();
    }
    list.push_back(entry);
}
