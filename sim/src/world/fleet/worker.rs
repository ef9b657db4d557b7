//! One worker: an engine, its clocks, and the memory of an adapter.

use super::clock::Clock;
use super::handler::Consumer;
use super::standstill::Standstill;
use crate::faults::{Deed, Suspension};
use crate::oracles::{LifeNo, ShardNo, Time};
use crate::peers::Process;
use crate::world::heap::What;
use crate::world::services::stream::{Carry, ReadOn};
use leasehold_engine::Engine;
use leasehold_engine::ids::{FencingToken, WorkerId};
use leasehold_engine::internals::Skew;
use leasehold_engine::known_range::KnownRange;
use leasehold_local_aws::kinesis::{ShardIterator, Subscription};
use std::collections::{BTreeMap, VecDeque};

/// A worker, alive or not.
#[derive(Debug, Default)]
pub(in crate::world) struct Worker {
    /// A live worker has either an engine of ours or a process of a foreign program.
    pub(super) engine: Option<Engine>,
    pub(super) peer: Option<Process>,
    /// Counts processes, so that an event for an earlier process does not reach a later process.
    pub(super) generation: u32,
    pub(super) life: LifeNo,
    pub(super) clock: Clock,
    /// The adapter's knowledge of its clocks, for fences.
    pub(super) skew: Option<Skew>,
    /// With the last input, the wall clock was ahead of the monotonic clock: the worker's beliefs end sooner.
    pub(super) missed: bool,
    /// The time of the earliest planned wake-up.
    pub(super) wake: Time,
    /// The time of the engine's requested wake-up.
    pub(super) wanted: Time,
    /// The start of a short span, and the number of inputs since.
    pub(super) inputs: (Time, u32),
    /// The beginning of the present standstill.
    pub(super) paused: Option<Time>,
    pub(super) pauses: u32,
    /// The suspension of the machine, if suspended.
    pub(super) suspended: Option<Suspension>,
    /// The events during the standstill.
    pub(super) backlog: VecDeque<What>,
    /// Whether the worker's handlers block every thread of their runtime.
    pub(super) standstill: Standstill,
    /// The worker has received a request to stop.
    pub(super) stopping: bool,
    /// The time between the worker's stop and the start of its replacement, in µs.
    pub(super) gap_us: u64,
    /// The reason of a fatal stop.
    pub(super) fatal: Option<String>,
    /// The worker belongs to the core: the healthy workers after the faults.
    pub(super) core: bool,
    pub(super) adapter: Adapter,
}

/// An adapter's memory: iterators and batches under command ids, and the application's consumers.
#[derive(Clone, Debug, Default)]
pub(crate) struct Adapter {
    pub(super) consumers: BTreeMap<ShardNo, Consumer>,
    iterators: BTreeMap<ShardNo, VecDeque<(u64, ShardIterator)>>,
    /// One of a shard.
    subscriptions: BTreeMap<ShardNo, (u64, Box<Subscription>)>,
    batches: BTreeMap<ShardNo, VecDeque<(u64, u64, u64)>>,
    /// Parts of batches with the number of an earlier part.
    low: BTreeMap<ShardNo, VecDeque<(u64, u64)>>,
    /// Parts of batches that handlers do not receive.
    left_out: BTreeMap<ShardNo, VecDeque<(u64, Vec<u64>)>>,
    /// The hash keys of shards.
    ranges: BTreeMap<ShardNo, KnownRange>,
    tokens: VecDeque<(u64, String)>,
    /// The numbers of deeds by shard; deeds without a shard first.
    deeds: Vec<[u32; Deed::ALL.len()]>,
}

const ITERATORS: usize = 8;
const BATCHES: usize = 256;
const TOKENS: usize = 8;

impl Worker {
    pub(super) fn new(clock: Clock) -> Self {
        Self { clock, wake: Time::MAX, wanted: Time::MAX, inputs: (0, 0), core: true, ..Self::default() }
    }

    /// Whether the worker's process runs.
    pub(in crate::world) fn lives(&self) -> bool {
        self.engine.is_some() || self.peer.is_some()
    }

    /// Whether this is the worker's present process.
    pub(in crate::world) fn is_process(&self, generation: u32) -> bool {
        self.lives() && self.generation == generation
    }

    /// Whether the worker runs our engine.
    pub(in crate::world) fn is_ours(&self) -> bool {
        self.engine.is_some()
    }

    /// Whether the worker runs a foreign program.
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

    /// The number of standstills: names the last standstill.
    pub(in crate::world) fn pauses(&self) -> u32 {
        self.pauses
    }

    /// Whether the worker has received a request to stop.
    pub(in crate::world) fn is_stopping(&self) -> bool {
        self.stopping
    }

    /// The reason of a fatal stop.
    pub(in crate::world) fn fatal(&self) -> Option<&str> {
        self.fatal.as_deref()
    }

    /// Whether the worker belongs to the core.
    pub(in crate::world) fn is_core(&self) -> bool {
        self.core
    }

    /// Whether the worker's application has this shard open.
    pub(in crate::world) fn has_open(&self, shard: ShardNo) -> bool {
        self.adapter.consumers.contains_key(&shard)
    }

    pub(in crate::world) fn adapter(&self) -> &Adapter {
        &self.adapter
    }

    pub(super) fn adapter_mut(&mut self) -> &mut Adapter {
        &mut self.adapter
    }

    /// The process is gone, with all its knowledge.
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
    /// The number of earlier deeds of this kind in this life.
    pub(crate) fn count(&mut self, deed: Deed, shard: Option<ShardNo>) -> u32 {
        let index = shard.map_or(0, |shard| shard as usize + 1);
        if self.deeds.len() <= index {
            self.deeds.resize_with(index + 1, Default::default);
        }
        let count = &mut self.deeds[index][deed as usize];
        *count += 1;
        *count - 1
    }

    /// The ownership under which the application last had the shard.
    pub(in crate::world) fn ownership(&self, shard: ShardNo) -> Option<FencingToken> {
        self.consumers.get(&shard).map(|consumer| consumer.token)
    }

    /// Keeps the contents of an answer.
    pub(crate) fn keep(&mut self, op: u64, carry: Carry) {
        match carry {
            Carry::Nothing | Carry::Items(..) => {}
            Carry::Token(token) => push(&mut self.tokens, TOKENS, (op, token)),
            Carry::Iterator(shard, iterator) => {
                push(self.iterators.entry(shard).or_default(), ITERATORS, (op, iterator));
            }
            Carry::Subscription(shard, subscription) => {
                self.subscriptions.insert(shard, (op, subscription));
            }
            Carry::Batch { shard, first, last, next, low } => {
                if let Some(low) = low {
                    push(self.low.entry(shard).or_default(), BATCHES, (op, low));
                }
                if first <= last {
                    push(self.batches.entry(shard).or_default(), BATCHES, (op, first, last));
                }
                match next {
                    Some(ReadOn::Iterator(next)) => {
                        push(self.iterators.entry(shard).or_default(), ITERATORS, (op, next));
                    }
                    Some(ReadOn::Subscription(next)) => drop(self.subscriptions.insert(shard, (op, next))),
                    None => {}
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

    /// The wait for an event takes the subscription, and the event brings it back.
    pub(in crate::world) fn take_subscription(&mut self, shard: ShardNo) {
        self.subscriptions.remove(&shard);
    }

    pub(crate) fn subscription(&self, shard: ShardNo, op: u64) -> Option<&Subscription> {
        let known = self.subscriptions.get(&shard).filter(|(known, _)| *known == op);
        known.map(|(_, subscription)| &**subscription)
    }

    /// The first and the last record of a batch.
    pub(crate) fn batch(&self, shard: ShardNo, op: u64) -> Option<(u64, u64)> {
        let known = self.batches.get(&shard)?.iter();
        known.into_iter().find(|(known, ..)| *known == op).map(|(_, first, last)| (*first, *last))
    }

    /// The part of a batch with the number of an earlier part: a search for the first part after a position finds the
    /// part after this part.
    pub(super) fn low(&self, shard: ShardNo, op: u64) -> Option<u64> {
        let mut known = self.low.get(&shard)?.iter();
        known.find(|(known, _)| *known == op).map(|(_, part)| *part)
    }

    /// Notes the parts of a batch that a handler does not receive.
    pub(super) fn leave_out(&mut self, shard: ShardNo, op: u64, parts: Vec<u64>) {
        push(self.left_out.entry(shard).or_default(), BATCHES, (op, parts));
    }

    /// The parts of a batch that a handler does not receive.
    pub(super) fn left_out(&self, shard: ShardNo, op: u64) -> &[u64] {
        let mut known = self.left_out.get(&shard).into_iter().flatten();
        known.find(|(known, _)| *known == op).map_or(&[], |(_, parts)| parts)
    }

    /// The known hash keys of a shard, for additions.
    pub(super) fn range_mut(&mut self, shard: ShardNo) -> &mut KnownRange {
        self.ranges.entry(shard).or_default()
    }

    /// The known hash keys of a shard.
    pub(super) fn range(&self, shard: ShardNo) -> KnownRange {
        self.ranges.get(&shard).copied().unwrap_or_default()
    }

    /// The shard's iterators and batches are needed no longer.
    pub(crate) fn forget(&mut self, shard: ShardNo) {
        self.iterators.remove(&shard);
        self.subscriptions.remove(&shard);
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
