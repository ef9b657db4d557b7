//! Data hidden from the engine behind a command's id: fetched records, shard iterators, subscriptions and page tokens.
//!
//! The store keeps records until they are processed or their shard is closed. Delivery only moves forward: a delivery
//! frees all earlier records. The engine's byte budget bounds the records fetched and not delivered.

mod cursor;
mod order;

pub use cursor::Cursor;

use crate::kpl::{Unpacked, unpack};
use crate::misplaced::{Count, Outside, Untold};
use crate::record::Record;
use crate::runtime::Runtime;
use leasehold_engine::aggregate::Misplaced;
use leasehold_engine::ids::{OpId, ShardId};
use leasehold_engine::input;
use leasehold_engine::known_range::KnownRange;
use leasehold_engine::position::Position;
use leasehold_engine::shard::{ChildShard, HashRange, of_another_shard};
use leasehold_engine::time::{Mono, Span, Wall};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// An iterator is used by the next call; a few more are kept for answers that were lost on the way.
const CURSORS_PER_SHARD: usize = 4;
/// A page token is used by the next call; listings rarely overlap.
const PAGE_TOKENS: usize = 16;

/// The store, shared by the stream and the application. Clones are handles on the same.
#[derive(Clone, Debug, Default)]
pub struct Store {
    kept: Arc<Mutex<Kept>>,
    misplaced: Misplaced,
    /// Tells when an answer came; without it, time stands still.
    clock: Option<Arc<dyn Runtime>>,
}

/// An answer to GetRecords, or an event of a subscription.
#[derive(Clone, Debug, Default)]
pub struct Answer {
    /// The records, as Kinesis gave them.
    pub records: Vec<Record>,
    /// How far behind the tip of the stream it is, in milliseconds.
    pub behind_ms: u64,
    /// The iterator or subscription to go on with; absent at the end of the shard.
    pub next: Option<Cursor>,
    /// At the end of the shard: what it was split or merged into.
    pub children: Vec<ChildShard>,
    /// The service has pushed the records into a subscription.
    pub is_pushed: bool,
}

#[derive(Debug, Default)]
struct Kept {
    shards: BTreeMap<ShardId, KeptShard>,
    /// The shard of a command's batch or cursor.
    shard_of: BTreeMap<OpId, ShardId>,
    pages: VecDeque<(OpId, String)>,
    ranges: BTreeMap<ShardId, KnownRange>,
    /// Aggregated records of which parts were dropped.
    misplaced: Count,
}

#[derive(Debug, Default)]
struct KeptShard {
    batches: BTreeMap<OpId, Arc<Fetched>>,
    /// Those of them that the application keeps.
    kept: BTreeSet<OpId>,
    cursors: VecDeque<(OpId, Cursor)>,
    /// Commands up to this id belong to an ended ownership.
    closed: Option<OpId>,
    /// The last answer of this ownership.
    last: Option<Reading>,
    /// Aggregated records of which parts were dropped.
    untold: Untold,
    /// Everything up to here is processed, as far as this ownership knows.
    done: Option<Position>,
}

/// The records of one answer, in order.
#[derive(Debug, Default)]
pub(crate) struct Fetched {
    pub(crate) records: Vec<Record>,
    /// Parts of aggregated records that belong to other shards, and are dead letters.
    pub(crate) outside: Outside,
    pub(crate) reading: Reading,
    /// The sequence numbers name another shard: the records are not handed over, unless the service repeats the
    /// answer.
    pub(crate) foreign: bool,
    /// The sequence numbers do not grow from each record to the next: the records are not handed over, unless the
    /// service repeats the answer. Then all records are handed over, and no position can count the processed records.
    pub(crate) unordered: bool,
}

/// The time of an answer, and its distance behind the tip of the shard at that time.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Reading {
    at: Mono,
    wall: Wall,
    pub(crate) behind_ms: u64,
    /// An event of a subscription.
    pub(crate) is_pushed: bool,
    /// Nothing follows: the shard has ended.
    end: bool,
}

impl Reading {
    /// An answer at this distance behind the tip, at no particular time.
    pub(crate) fn behind_by(behind_ms: u64) -> Self {
        Self { behind_ms, ..Self::default() }
    }

    /// The greatest age of records missing in this answer and all earlier answers.
    fn behind(&self, now: Mono) -> Span {
        if self.end {
            return Span::ZERO;
        }
        Span::from_millis(self.behind_ms) + now.since(self.at)
    }

    /// The age of a record of this answer. The records of an answer are no nearer to the tip than the answer; records
    /// also carry their arrival time, by Kinesis' clock.
    pub(crate) fn age(&self, arrival: Option<Wall>, now: Mono) -> Span {
        let then = arrival.map_or(0, |arrival| self.wall.0.saturating_sub(arrival.0));
        let then = self.behind_ms.max(u64::try_from(then).unwrap_or(0));
        Span::from_millis(then) + now.since(self.at)
    }
}

/// What of a shard is not processed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Backlog {
    /// The number of records fetched and not yet processed.
    pub(crate) records: u64,
    /// All records older than this are processed. Unknown before the first answer.
    pub(crate) behind: Option<Span>,
}

impl Store {
    /// An empty store. The clock measures the waiting time of records.
    pub fn new(misplaced: Misplaced, clock: Arc<dyn Runtime>) -> Self {
        Self { kept: Arc::default(), misplaced, clock: Some(clock) }
    }

    /// Takes in what a `GetRecords` brought: takes aggregated records apart, keeps all under the command's id, and
    /// describes it for the engine.
    pub fn take_in(&self, shard: &ShardId, op: OpId, answer: Answer) -> input::Fetched {
        let range = self.range(shard).proven();
        let mut description = input::Fetched {
            count: u32::try_from(answer.records.len()).unwrap_or(u32::MAX),
            bytes: 0,
            first: answer.records.first().map(|record| record.position),
            last: None,
            behind_ms: answer.behind_ms,
            end: None,
            range_unproven: false,
            unordered: !answer.records.is_sorted_by(|one, next| one.position < next.position),
        };
        let reading = Reading {
            at: self.clock.as_ref().map_or(Mono(0), |clock| clock.now()),
            wall: self.clock.as_ref().map_or(Wall(0), |clock| clock.wall()),
            behind_ms: answer.behind_ms,
            is_pushed: answer.is_pushed,
            end: answer.next.is_none(),
        };
        let mut records = Vec::with_capacity(answer.records.len());
        let mut outside = Vec::new();
        let mut misplaced = Vec::new();
        for record in answer.records {
            description.bytes += record.data.len() as u64;
            let mut position = record.position;
            match unpack(record, range, self.misplaced) {
                Unpacked::Plain(record) => records.push(record),
                Unpacked::Parts(sorted, count) => {
                    if sorted.dropped > 0 {
                        misplaced.push((position, sorted.ours.len() as u64, sorted.dropped));
                    }
                    description.range_unproven |= self.misplaced != Misplaced::Keep && range.is_none();
                    position.sub = count.saturating_sub(1);
                    records.extend(sorted.ours);
                    outside.extend(sorted.others);
                }
            }
            description.last = Some(position);
        }
        if answer.next.is_none() {
            for child in &answer.children {
                self.learn_range(&child.id, child.range, op);
            }
            description.end = Some(answer.children);
        }
        let ends = [description.first, description.last].into_iter().flatten();
        let foreign = of_another_shard(shard.as_str(), ends.map(|position| position.sequence)).is_some();
        let fetched = (description.count > 0).then(|| Fetched {
            records,
            outside: Outside::new(outside),
            reading,
            foreign,
            unordered: description.unordered,
        });
        self.note_misplaced(shard, reading.at, &misplaced);
        self.keep_batch(shard, op, fetched, answer.next, reading);
        description
    }

    /// Counts aggregated records with dropped parts, and warns about the loss. For each record: its position, and the
    /// numbers of parts handed over and dropped.
    fn note_misplaced(&self, shard: &ShardId, now: Mono, misplaced: &[(Position, u64, u64)]) {
        if misplaced.is_empty() {
            return;
        }
        let mut kept = self.kept();
        for (_, handed_over, dropped) in misplaced {
            kept.misplaced.add(*handed_over, *dropped);
        }
        let entry = kept.shards.entry(shard.clone()).or_default();
        for (position, handed_over, dropped) in misplaced {
            entry.untold.add(*position, *handed_over, *dropped);
        }
        entry.untold.tell(self.misplaced, shard, now, false);
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps what a read brought: the records, if there were any, and the next cursor, unless the shard ended.
    fn keep_batch(
        &self, shard: &ShardId, op: OpId, fetched: Option<Fetched>, next: Option<Cursor>, reading: Reading,
    ) {
        let mut kept = self.kept();
        let entry = kept.shards.entry(shard.clone()).or_default();
        if entry.closed.is_some_and(|closed| op < closed) {
            return;
        }
        if !fetched.as_ref().is_some_and(Fetched::is_doubtful) {
            entry.last = Some(reading);
        }
        if let Some(fetched) = fetched {
            entry.batches.insert(op, Arc::new(fetched));
        }
        kept.keep_cursor(shard, op, next);
        kept.shard_of.insert(op, shard.clone());
        kept.settle(op);
        kept.check(shard);
    }

    /// Keeps an iterator or a subscription.
    pub fn keep_cursor(&self, shard: &ShardId, op: OpId, cursor: Cursor) {
        let mut kept = self.kept();
        let entry = kept.shards.entry(shard.clone()).or_default();
        if entry.closed.is_some_and(|closed| op < closed) {
            return;
        }
        kept.keep_cursor(shard, op, Some(cursor));
        kept.shard_of.insert(op, shard.clone());
    }

    /// The iterator under a command's id, if still kept.
    pub fn iterator(&self, op: OpId) -> Option<String> {
        match self.cursor(op)? {
            Cursor::Iterator(iterator) => Some(iterator),
            Cursor::Subscription(_) => None,
        }
    }

    /// The iterator or subscription under a command's id, if still kept.
    pub fn cursor(&self, op: OpId) -> Option<Cursor> {
        let kept = self.kept();
        let shard = kept.shards.get(kept.shard_of.get(&op)?)?;
        shard.cursors.iter().find(|(id, _)| *id == op).map(|(_, cursor)| cursor.clone())
    }

    /// A batch before its delivery. Batches before this batch will not be asked for any more; batches kept by the
    /// application count as waiting until they are processed.
    pub(crate) fn batch(&self, shard: &ShardId, op: OpId) -> Option<Arc<Fetched>> {
        let mut kept = self.kept();
        let entry = kept.shards.get_mut(shard)?;
        let batch = entry.batches.get(&op).cloned();
        let before = entry.batches.range(..op).map(|(before, _)| *before);
        let gone: Vec<OpId> = before.filter(|before| !entry.kept.contains(before)).collect();
        for gone in &gone {
            entry.batches.remove(gone);
        }
        for gone in gone {
            kept.settle(gone);
        }
        batch
    }

    /// The application keeps a batch.
    pub(crate) fn keep(&self, shard: &ShardId, op: OpId) {
        if let Some(entry) = self.kept().shards.get_mut(shard)
            && entry.batches.contains_key(&op)
        {
            entry.kept.insert(op);
        }
    }

    /// What the application keeps will be read again.
    pub(crate) fn forget_kept(&self, shard: &ShardId) {
        let mut kept = self.kept();
        let Some(entry) = kept.shards.get_mut(shard) else {
            return;
        };
        let gone = std::mem::take(&mut entry.kept);
        entry.batches.retain(|op, _| !gone.contains(op));
        for op in gone {
            kept.settle(op);
        }
    }

    /// The application does not keep a batch after all: it is handed over again.
    pub(crate) fn keep_not(&self, shard: &ShardId, op: OpId) {
        if let Some(entry) = self.kept().shards.get_mut(shard) {
            entry.kept.remove(&op);
        }
    }

    /// All of a batch has been processed: the batch, if it is known.
    pub(crate) fn processed(&self, shard: &ShardId, op: OpId) -> Option<Arc<Fetched>> {
        let mut kept = self.kept();
        let entry = kept.shards.get_mut(shard);
        let batch = entry.and_then(|entry| {
            entry.kept.remove(&op);
            entry.batches.remove(&op)
        });
        kept.settle(op);
        kept.check(shard);
        batch
    }

    /// The shard is processed up to here, even within a batch.
    pub(crate) fn processed_through(&self, shard: &ShardId, through: Position) {
        let mut kept = self.kept();
        if let Some(entry) = kept.shards.get_mut(shard)
            // While batches are kept, a position says nothing about earlier batches.
            && entry.kept.is_empty()
        {
            entry.done = entry.done.max(Some(through));
        }
    }

    /// What of a shard waits to be processed.
    pub(crate) fn backlog(&self, shard: &ShardId, now: Mono) -> Backlog {
        let kept = self.kept();
        let Some(entry) = kept.shards.get(shard) else {
            return Backlog::default();
        };
        let mut records = 0;
        let mut oldest = None;
        for batch in entry.batches.values().filter(|batch| !batch.is_doubtful()) {
            let left = batch.records.get(batch.first_after(entry.done)..).unwrap_or_default();
            records += left.len() as u64;
            oldest = oldest.or_else(|| Some(batch.reading.age(left.first()?.arrival, now)));
        }
        Backlog { records, behind: oldest.or_else(|| Some(entry.last?.behind(now))) }
    }

    /// The number of aggregated records with dropped parts: some part of each belongs to another shard.
    pub(crate) fn misplaced(&self) -> Count {
        self.kept().misplaced
    }

    /// A shard's ownership ended: frees all data of commands before `close`, and of their late answers.
    pub(crate) fn close(&self, shard: &ShardId, close: OpId) {
        let mut kept = self.kept();
        let entry = kept.shards.entry(shard.clone()).or_default();
        entry.closed = Some(close);
        entry.untold.tell(self.misplaced, shard, Mono(0), true);
        (entry.last, entry.done) = (None, None);
        entry.kept = entry.kept.split_off(&close);
        let later = entry.batches.split_off(&close);
        let before = std::mem::replace(&mut entry.batches, later);
        let cursors: Vec<OpId> = entry.cursors.iter().map(|(op, _)| *op).filter(|op| *op < close).collect();
        entry.cursors.retain(|(op, _)| *op >= close);
        for op in before.into_keys().chain(cursors) {
            kept.settle(op);
        }
        kept.check(shard);
    }

    /// The outcome of this command is not used.
    pub fn forget(&self, op: OpId) {
        let mut kept = self.kept();
        if let Some(shard) = kept.shard_of.remove(&op)
            && let Some(entry) = kept.shards.get_mut(&shard)
        {
            entry.batches.remove(&op);
            entry.cursors.retain(|(id, _)| *id != op);
        }
        kept.pages.retain(|(id, _)| *id != op);
    }

    /// Keeps a page token.
    pub fn keep_page(&self, op: OpId, token: String) {
        let mut kept = self.kept();
        kept.pages.push_back((op, token));
        if kept.pages.len() > PAGE_TOKENS {
            kept.pages.pop_front();
        }
    }

    /// The page token under a command's id, if still kept.
    pub fn page(&self, op: OpId) -> Option<String> {
        self.kept().pages.iter().find(|(id, _)| *id == op).map(|(_, token)| token.clone())
    }

    /// Notes the hash keys a shard takes, as a listing or its parent's last answer said. `by`: the request.
    pub fn learn_range(&self, shard: &ShardId, range: HashRange, by: OpId) {
        let mut kept = self.kept();
        match kept.ranges.get_mut(shard) {
            Some(known) => known.learn(range, by),
            None => kept.ranges.entry(shard.clone()).or_default().learn(range, by),
        }
    }

    /// The hash keys a shard takes, as far as they are known.
    pub(crate) fn range(&self, shard: &ShardId) -> KnownRange {
        self.kept().ranges.get(shard).copied().unwrap_or_default()
    }

    /// How many batches and cursors are kept.
    #[cfg(test)]
    pub(crate) fn len(&self) -> (usize, usize, usize) {
        let kept = self.kept();
        let batches = kept.shards.values().map(|shard| shard.batches.len()).sum();
        let cursors = kept.shards.values().map(|shard| shard.cursors.len()).sum();
        (batches, cursors, kept.shard_of.len())
    }
}

impl Kept {
    /// What holds of a shard between two calls.
    fn check(&self, shard: &ShardId) {
        let Some(entry) = self.shards.get(shard).filter(|_| cfg!(debug_assertions)) else {
            // The store has heard nothing of the shard.
            return;
        };
        debug_assert!(
            entry.kept.iter().all(|op| entry.batches.contains_key(op)),
            "the application keeps batches of {shard} that the store has"
        );
        debug_assert!(entry.cursors.len() <= CURSORS_PER_SHARD, "few cursors of {shard} are kept");
        debug_assert!(
            entry.batches.keys().all(|op| self.shard_of.get(op) == Some(shard)),
            "the shard of each kept batch is known"
        );
    }

    /// Keeps a cursor. A shard has one subscription at most, and none beside an iterator: an open subscription holds a connection.
    fn keep_cursor(&mut self, shard: &ShardId, op: OpId, cursor: Option<Cursor>) {
        let (Some(cursor), Some(entry)) = (cursor, self.shards.get_mut(shard)) else {
            return;
        };
        let is_open = |(_, cursor): &&(OpId, Cursor)| matches!(cursor, Cursor::Subscription(_));
        let mut gone: Vec<OpId> = entry.cursors.iter().filter(is_open).map(|(op, _)| *op).collect();
        entry.cursors.retain(|(op, _)| !gone.contains(op));
        entry.cursors.push_back((op, cursor));
        if entry.cursors.len() > CURSORS_PER_SHARD {
            gone.extend(entry.cursors.pop_front().map(|(op, _)| op));
        }
        for op in gone {
            self.settle(op);
        }
    }

    /// Forgets the shard of `op`, once no batch and no cursor is left of `op`.
    fn settle(&mut self, op: OpId) {
        let Some(shard) = self.shard_of.get(&op).and_then(|shard| self.shards.get(shard)) else {
            self.shard_of.remove(&op);
            return;
        };
        if !shard.batches.contains_key(&op) && shard.cursors.iter().all(|(id, _)| *id != op) {
            self.shard_of.remove(&op);
        }
    }
}

#[cfg(test)]
#[path = "store_tests.rs"]
mod tests;
