//! A batch of records in a handler's hands.

use crate::fence::{Fence, NotDurable};
use crate::receipt::Receipt;
use crate::record::Record;
use crate::store::Fetched;
use leasehold_engine::ids::{FencingToken, LeaseKey, OpId, ShardId};
use leasehold_engine::position::{Checkpoint, Position};
use leasehold_engine::stream_id::{StreamId, split_key};
use leasehold_engine::time::{Span, Wall};
use std::fmt;
use std::sync::Arc;

/// A shard this worker owns.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ShardInfo {
    /// The shard's name: the shard id, or, in a worker of several streams, the key of the lease. No two shards of a
    /// worker have the same name.
    pub shard: ShardId,
    /// Its lease.
    pub lease: LeaseKey,
    /// Grows with every change of owner.
    pub token: FencingToken,
    /// The shard was processed up to here when this worker opened the shard.
    pub from: Checkpoint,
    /// Set if `from` is `LATEST` or `AT_TIMESTAMP`: this worker began with the first record that arrived at this
    /// moment or later. Every owner begins at this moment until a checkpoint is stored.
    pub since: Option<Wall>,
}

impl ShardInfo {
    /// The shard's stream, if the worker reads several.
    pub fn stream(&self) -> Option<StreamId> {
        split_key(self.shard.as_str()).and_then(|(stream, _)| stream.parse().ok())
    }

    /// Its id, as Kinesis names it.
    pub fn shard_id(&self) -> &str {
        split_key(self.shard.as_str()).map_or(self.shard.as_str(), |(_, id)| id)
    }
}

/// Records of one shard, in order. It is owned: keep it, or move it to another task.
pub struct Batch {
    pub(crate) shard: Arc<ShardInfo>,
    pub(crate) fetched: Arc<Fetched>,
    /// Records before this index were processed earlier.
    pub(crate) first: usize,
    /// Records from this index on wait for a later batch.
    pub(crate) end: usize,
    pub(crate) attempt: u32,
    pub(crate) fence: Fence,
    pub(crate) batch: OpId,
    pub(crate) receipt: Receipt,
}

impl Batch {
    /// The records, in the order of their positions; there is at least one.
    pub fn records(&self) -> &[Record] {
        self.fetched.records.get(self.first..self.end).unwrap_or_default()
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.records().len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.records().is_empty()
    }

    /// The shard they are from.
    pub fn shard(&self) -> &ShardInfo {
        &self.shard
    }

    /// How far behind the tip of the stream these records were read.
    pub fn behind(&self) -> Span {
        Span::from_millis(self.fetched.reading.behind_ms)
    }

    /// Counts how often these records were handed over, from 1: above 1, the handler failed or was stopped before.
    /// The count begins anew after any progress, and when the records of a batch that failed too often are handed
    /// over one at a time.
    pub fn attempt(&self) -> u32 {
        self.attempt
    }

    /// The fence of this shard: tells whether this worker may still act for the shard.
    pub fn fence(&self) -> Fence {
        self.fence.clone()
    }

    /// Acknowledges all records up to and including this record. Without a call, the whole batch is acknowledged
    /// once, when the handler returns `Ok`. If the handler fails later, only the records after this record are handed
    /// over again.
    pub fn ack(&self, record: &Record) {
        self.ack_through(record.position);
    }

    /// As [`ack`](Batch::ack), by position.
    ///
    /// A position after this batch counts as the batch's last position: records not handed over cannot be processed.
    ///
    /// If the service gives records that are not in the order of their sequence numbers, and goes on to do so, the batch is acknowledged as a
    /// whole: by its last record, or not at all.
    pub fn ack_through(&self, position: Position) {
        if self.fetched.unordered {
            if self.fetched.is_last(position) {
                self.acknowledge();
            }
            return;
        }
        let records = self.records();
        if let (Some(first), Some(last)) = (records.first(), records.last())
            && position >= first.position
        {
            let through = position.min(last.position);
            self.receipt.asks().processed(self.batch, through);
        }
    }

    /// Acknowledges all records of this batch, for good. A handler that keeps batches calls this method for each
    /// batch: see [`Ack::Later`](crate::Ack::Later).
    pub fn acknowledge(&self) {
        self.receipt.acknowledge();
    }

    /// A receipt of this batch. A receipt acknowledges the batch without holding the records in memory.
    pub fn receipt(&self) -> Receipt {
        self.receipt.clone()
    }

    /// Asks for what is processed to be made durable now instead of at the next interval. Does not wait for it.
    pub fn checkpoint(&self) {
        self.receipt.asks().checkpoint();
    }

    /// Acknowledges all of this batch, and waits until the checkpoint is durable in the lease table: after a crash,
    /// no record up to the batch's last is handed over again. The call also waits for kept batches before this batch.
    ///
    /// # Errors
    /// If the shard is lost or closed before the checkpoint is durable: the next owner may be handed these records
    /// again. Also if the records are not in the order of their sequence numbers and the last record does not have
    /// the greatest number: then no checkpoint can say that all records are processed.
    pub async fn commit(&self) -> Result<(), NotDurable> {
        self.acknowledge();
        self.checkpoint();
        if !self.fetched.ends_highest() {
            return Err(NotDurable);
        }
        self.fence.durable(self.receipt.last()).await
    }
}

impl fmt::Debug for Batch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Batch")
            .field("shard", &self.shard.shard)
            .field("records", &self.len())
            .field("attempt", &self.attempt)
            .field("behind", &self.behind())
            .finish_non_exhaustive()
    }
}

impl IntoIterator for Batch {
    type Item = Record;
    type IntoIter = BatchIter;

    fn into_iter(self) -> BatchIter {
        BatchIter { next: self.first, end: self.end, fetched: self.fetched }
    }
}

impl<'a> IntoIterator for &'a Batch {
    type Item = &'a Record;
    type IntoIter = std::slice::Iter<'a, Record>;

    fn into_iter(self) -> Self::IntoIter {
        self.records().iter()
    }
}

/// The records of a batch, owned. The batch is kept for another attempt: each record is a clone with a shared
/// payload.
#[derive(Debug)]
pub struct BatchIter {
    fetched: Arc<Fetched>,
    next: usize,
    end: usize,
}

impl Iterator for BatchIter {
    type Item = Record;

    fn next(&mut self) -> Option<Record> {
        let record = self.fetched.records.get(..self.end)?.get(self.next)?.clone();
        self.next += 1;
        Some(record)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = self.end.saturating_sub(self.next);
        (left, Some(left))
    }
}

impl ExactSizeIterator for BatchIter {}
