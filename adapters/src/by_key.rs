//! Processes records of one partition key in order, and records of different keys at the same time.

use crate::batch::Batch;
use crate::handler::Ack;
use crate::record::Record;
use futures_util::stream::{FuturesUnordered, StreamExt};
use std::collections::{BTreeMap, BTreeSet};
use std::future::Future;

impl Batch {
    /// Processes the records of this batch, up to `limit` records at the same time (at least 1). Records of one
    /// partition key are processed in their order, one at a time.
    ///
    /// Meanwhile, the processed records before the first gap are acknowledged. The handler's answer, or a task of the
    /// handler, acknowledges the whole batch:
    ///
    /// ```
    /// # use leasehold::{Batch, Record, ShardStream, Worker};
    /// # async fn store(record: Record) -> std::io::Result<()> { Ok(()) }
    /// # fn doors(one: Worker, other: Worker) {
    /// let run = one.run_fn(|batch: Batch| async move { batch.for_each_key_concurrent(16, store).await });
    /// # drop(run);
    ///
    /// let run = other.run_shards(|shard: ShardStream| async move {
    ///     while let Some(batch) = shard.next().await {
    ///         batch.for_each_key_concurrent(16, store).await?;
    ///         batch.acknowledge();
    ///     }
    ///     Ok::<(), std::io::Error>(())
    /// });
    /// # drop(run);
    /// # }
    /// ```
    ///
    /// # Errors
    /// The first error of `process`. The calls still running at that moment are dropped at their next await point,
    /// and no further record begins. Processed records after the first gap come again with the rest.
    pub async fn for_each_key_concurrent<F, Fut, E>(&self, limit: usize, mut process: F) -> Result<Ack, E>
    where
        F: FnMut(Record) -> Fut,
        Fut: Future<Output = Result<(), E>>,
    {
        let records = self.records();
        let mut plan = Plan::new(records);
        let mut running = FuturesUnordered::new();
        loop {
            while running.len() < limit.max(1)
                && let Some(index) = plan.begin()
            {
                // The index comes from these records.
                let Some(record) = records.get(index) else {
                    continue;
                };
                let call = process(record.clone());
                running.push(async move { (index, call.await) });
            }
            let Some((index, result)) = running.next().await else {
                return Ok(Ack::All);
            };
            result?;
            if let Some(record) = plan.done(index).and_then(|last| records.get(last)) {
                self.ack(record);
            }
        }
    }
}

/// The records allowed to begin, and the progress.
struct Plan {
    /// For each record, the next record of the same key.
    next_of_key: Vec<Option<usize>>,
    /// Those that may be begun: all before them of their key are done.
    ready: BTreeSet<usize>,
    /// Those that are done beyond the first gap.
    done: BTreeSet<usize>,
    /// All before this are done.
    gap: usize,
}

impl Plan {
    fn new(records: &[Record]) -> Self {
        let mut next_of_key = vec![None; records.len()];
        let mut ready = BTreeSet::new();
        let mut last_of_key: BTreeMap<&str, usize> = BTreeMap::new();
        for (index, record) in records.iter().enumerate() {
            match last_of_key.insert(&record.partition_key, index) {
                None => {
                    ready.insert(index);
                }
                Some(before) => {
                    if let Some(next) = next_of_key.get_mut(before) {
                        *next = Some(index);
                    }
                }
            }
        }
        Self { next_of_key, ready, done: BTreeSet::new(), gap: 0 }
    }

    /// The first record that may be begun.
    fn begin(&mut self) -> Option<usize> {
        self.ready.pop_first()
    }

    /// Marks a record as done. Gives the last record before the gap, if the gap moved.
    fn done(&mut self, index: usize) -> Option<usize> {
        self.ready.extend(self.next_of_key.get(index).copied().flatten());
        self.done.insert(index);
        let before = self.gap;
        while self.done.remove(&self.gap) {
            self.gap += 1;
        }
        (self.gap > before).then(|| self.gap - 1)
    }
}

#[cfg(all(test, feature = "tokio-runtime"))]
#[path = "by_key_tests.rs"]
mod tests;
