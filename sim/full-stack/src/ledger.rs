//! The conditions at every step of a world: for every batch handed over, and every change of a lease row.
//!
//! * A shard is opened after all records of its parents were processed.
//! * Within an ownership records come in order, without a gap, from the checkpoint on.
//! * Of each partition key, record `n` is processed for the first time after record `n - 1`.
//! * No two workers hold a shard at one time by their own fences (if stolen leases are left to settle).
//! * Checkpoints never go back, and never cover an unprocessed record.
//! * A shard is marked as ended only if closed and processed wholly, and if its children have leases.
//! * Rows are readable leases, their counters grow, and only ended rows are removed, for good.

use leasehold::Fence;
use leasehold_engine::format::{Kcl, LeaseFormat};
use leasehold_engine::ids::LeaseKey;
use leasehold_engine::position::{Checkpoint, Position};
use leasehold_engine::row::{LeaseRow, RowRead};
use leasehold_engine::table::Item;
use leasehold_local_aws::kinesis::{SequenceNumber, ShardIndex, Stream};
use std::collections::{BTreeMap, BTreeSet};

/// Keeps account of one world.
#[derive(Debug, Default)]
pub struct Ledger {
    /// Whether two workers must never hold one shard.
    exclusive: bool,
    /// What did not hold.
    pub violations: Vec<String>,
    /// How many records were processed for the first time.
    pub processed: u64,
    /// How many were processed again.
    pub repeated: u64,
    /// The number of owner changes.
    pub owner_changes: u64,
    /// How many of each shard's records were processed, from its first on.
    done: BTreeMap<ShardIndex, u64>,
    /// The number of the last record of each partition key.
    keys: BTreeMap<String, u64>,
    sessions: BTreeMap<(ShardIndex, String), Session>,
    rows: BTreeMap<LeaseKey, LeaseRow>,
    removed: BTreeSet<LeaseKey>,
}

/// One worker's ownership of a shard, from the handler's view.
#[derive(Debug)]
struct Session {
    /// The last position processed before or during the session.
    done: u64,
    fence: Option<Fence>,
}

/// The position of a record in its shard, from 1.
pub fn index_of(position: Position) -> Option<u64> {
    let number = SequenceNumber::from_words(position.sequence.words());
    number.parts().map(|parts| parts.position)
}

impl Ledger {
    /// An empty ledger. If `exclusive`, two workers must never hold one shard.
    pub fn new(exclusive: bool) -> Self {
        Self { exclusive, ..Self::default() }
    }

    fn violated(&mut self, what: String) {
        // The first tells most; many follow from it.
        if self.violations.len() < 20 {
            self.violations.push(what);
        }
    }

    /// How many of a shard's records were processed.
    pub fn done(&self, shard: ShardIndex) -> u64 {
        self.done.get(&shard).copied().unwrap_or(0)
    }

    /// The last state of a lease's row; absent if removed or never created.
    pub fn row(&self, key: &str) -> Option<&LeaseRow> {
        self.rows.get(key)
    }

    /// Whether a shard's lease is marked as ended, or was removed after its end.
    pub fn has_ended(&self, shard: ShardIndex) -> bool {
        let key = LeaseKey::from(shard.to_string());
        self.removed.contains(&key)
            || self.rows.get(&key).is_some_and(|row| row.checkpoint == Checkpoint::ShardEnd)
    }

    fn is_done(&self, stream: &Stream, shard: ShardIndex) -> bool {
        stream
            .shard(shard)
            .is_some_and(|truth| !truth.is_open() && self.done(shard) + 1 == truth.next_position())
    }

    /// A handler opens a shard.
    pub fn opens(&mut self, stream: &Stream, client: &str, shard: ShardIndex, from: Checkpoint) {
        let parents = stream.shard(shard).map(|truth| truth.parents().collect::<Vec<_>>());
        for parent in parents.unwrap_or_default() {
            if !self.is_done(stream, parent) {
                let done = self.done(parent);
                self.violated(format!(
                    "{client} opened {shard} when only {done} records of its parent {parent} were processed"
                ));
            }
        }
        let done = match from {
            Checkpoint::At(position) => index_of(position).unwrap_or(u64::MAX),
            Checkpoint::ShardEnd => u64::MAX,
            _ => 0,
        };
        if done > self.done(shard) {
            let known = self.done(shard);
            self.violated(format!(
                "{client} opened {shard} from {from}, but only {known} records were processed"
            ));
        }
        let session = Session { done, fence: None };
        self.sessions.insert((shard, client.to_owned()), session);
    }

    /// A batch is handed over.
    pub fn hands_over(&mut self, client: &str, shard: ShardIndex, batch: &[Position], fence: Fence) {
        let indexes: Vec<u64> = batch.iter().copied().filter_map(index_of).collect();
        let in_order = indexes.len() == batch.len() && indexes.windows(2).all(|pair| pair[1] == pair[0] + 1);
        if !in_order {
            self.violated(format!("{client} got records of {shard} out of order: {indexes:?}"));
        }
        let Some(session) = self.sessions.get_mut(&(shard, client.to_owned())) else {
            self.violated(format!("{client} got records of {shard}, which it had not opened"));
            return;
        };
        session.fence = Some(fence.clone());
        let (done, first) = (session.done, indexes.first().copied().unwrap_or(0));
        if first > done + 1 {
            self.violated(format!("{client} got record {first} of {shard} next after record {done}"));
        }
        if !self.exclusive || !fence.is_valid() {
            return;
        }
        let others: Vec<String> = self
            .sessions
            .iter()
            .filter(|((of, name), other)| {
                *of == shard && name != client && other.fence.as_ref().is_some_and(Fence::is_valid)
            })
            .map(|((_, name), _)| name.clone())
            .collect();
        for other in others {
            self.violated(format!("{client} and {other} held {shard} at one time by their fences"));
        }
    }

    /// A record was processed.
    pub fn processes(&mut self, client: &str, shard: ShardIndex, position: Position, data: &[u8]) {
        let index = index_of(position).unwrap_or(0);
        if let Some(session) = self.sessions.get_mut(&(shard, client.to_owned())) {
            session.done = session.done.max(index);
        }
        let done = self.done(shard);
        if index <= done {
            self.repeated += 1;
            return;
        }
        if index > done + 1 {
            self.violated(format!("{client} processed record {index} of {shard} after record {done}"));
        }
        self.done.insert(shard, index);
        self.processed += 1;
        let text = String::from_utf8_lossy(data);
        let Some((key, number)) =
            text.split_once('/').and_then(|(key, n)| Some((key, n.parse::<u64>().ok()?)))
        else {
            self.violated(format!("{client} got a record of {shard} that nobody wrote: {text:?}"));
            return;
        };
        let before = self.keys.insert(key.to_owned(), number).unwrap_or(0);
        if number != before + 1 {
            self.violated(format!("{client} processed record {number} of key {key} after record {before}"));
        }
    }

    /// A handler closes a shard.
    pub fn closes(&mut self, stream: &Stream, client: &str, shard: ShardIndex, ended: bool) {
        self.sessions.remove(&(shard, client.to_owned()));
        if ended && !self.is_done(stream, shard) {
            let done = self.done(shard);
            self.violated(format!(
                "{client} closed {shard} as ended when only {done} records were processed"
            ));
        }
    }

    /// A worker's process is no more.
    pub fn dies(&mut self, client: &str) {
        self.sessions.retain(|(_, name), _| name != client);
    }

    /// A row of the lease table was written or removed by a client.
    pub fn wrote(&mut self, stream: &Stream, client: &str, key: &LeaseKey, item: Option<&Item>) {
        let before = self.rows.remove(key);
        let Some(item) = item else {
            match before {
                Some(row) if row.checkpoint == Checkpoint::ShardEnd => {
                    self.removed.insert(key.clone());
                }
                Some(row) => self
                    .violated(format!("{client} removed the lease {key} at checkpoint {}", row.checkpoint)),
                None => {}
            }
            return;
        };
        let row = match Kcl.decode(item) {
            RowRead::Lease(row) => row,
            other => {
                self.violated(format!("{client} wrote a row that is no lease: {other:?}"));
                return;
            }
        };
        if self.removed.contains(key) {
            self.violated(format!("{client} put back the removed lease {key}"));
        }
        if let Some(before) = &before {
            if row.checkpoint < before.checkpoint {
                self.violated(format!(
                    "{client} took the checkpoint of {key} back from {} to {}",
                    before.checkpoint, row.checkpoint
                ));
            }
            if row.counter < before.counter {
                self.violated(format!(
                    "{client} took the counter of {key} back from {} to {}",
                    before.counter, row.counter
                ));
            }
        }
        let earlier = before.as_ref().map(|row| row.checkpoint);
        if before.and_then(|row| row.owner) != row.owner {
            self.owner_changes += 1;
        }
        let checkpoint = row.checkpoint;
        self.rows.insert(key.clone(), row);
        if earlier != Some(checkpoint) {
            self.checkpointed(stream, client, key, checkpoint);
        }
    }

    fn checkpointed(&mut self, stream: &Stream, client: &str, key: &LeaseKey, checkpoint: Checkpoint) {
        let Some(shard) = ShardIndex::parse(key.as_str()) else {
            self.violated(format!("{client} wrote the lease {key}, which is no shard"));
            return;
        };
        let done = self.done(shard);
        match checkpoint {
            Checkpoint::At(position) if index_of(position).is_none_or(|index| index > done) => {
                self.violated(format!(
                    "{client} checkpointed {key} at {position} when only {done} records were processed"
                ));
            }
            Checkpoint::ShardEnd => {
                if !self.is_done(stream, shard) {
                    self.violated(format!("{client} ended {key} when only {done} records were processed"));
                }
                let children = stream.shard(shard).map(|truth| truth.children().to_vec());
                for child in children.unwrap_or_default() {
                    let key = LeaseKey::from(child.to_string());
                    if !self.rows.contains_key(&key) && !self.removed.contains(&key) {
                        self.violated(format!("{client} ended {shard} before its child {child} had a lease"));
                    }
                }
            }
            _ => {}
        }
    }
}
