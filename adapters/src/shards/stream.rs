//! The stream of batches for the task of a shard.

use super::link::Link;
use crate::batch::{Batch, ShardInfo};
use crate::fence::Fence;
use leasehold_engine::output::{EndReason, FlushReason};
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

/// The batches of one shard, in order, for the shard's task: see [`Worker::run_shards`](crate::Worker::run_shards).
///
/// A task takes a batch with [`next`](Self::next), and acknowledges the batch when its records are processed for
/// good. The task may take further batches first, up to [`ReaderConfig::kept_bytes`](crate::ReaderConfig::kept_bytes)
/// and [`kept_batches`](crate::ReaderConfig::kept_batches). At that limit [`flush_wanted`](Self::flush_wanted) asks
/// for acknowledgements.
///
/// The stream ends with `None` when the shard has ended or its lease is given up. Then the task processes and
/// acknowledges its remaining batches, and returns `Ok(())`. The task below collects records into files of up to a
/// thousand records, and writes a file every minute at the latest:
///
/// ```
/// use leasehold::{Batch, Receipt, Record, ShardStream};
/// use std::time::Duration;
///
/// #[derive(Default)]
/// struct File {
///     records: Vec<Record>,
///     receipts: Vec<Receipt>,
/// }
///
/// impl File {
///     fn add(&mut self, batch: Batch) {
///         self.receipts.push(batch.receipt());
///         self.records.extend(batch);
///     }
///
///     async fn write(&mut self) -> std::io::Result<()> {
///         let records = std::mem::take(&mut self.records);
///         // … write them, and wait until they are safe.
/// #       drop(records);
///         for receipt in self.receipts.drain(..) {
///             receipt.acknowledge();
///         }
///         Ok(())
///     }
/// }
///
/// async fn collect(shard: ShardStream) -> std::io::Result<()> {
///     let mut file = File::default();
///     let mut minute = tokio::time::interval(Duration::from_secs(60));
///     loop {
///         tokio::select! {
///             batch = shard.next() => match batch {
///                 Some(batch) => file.add(batch),
///                 None => break,
///             },
///             () = shard.flush_wanted() => file.write().await?,
///             _ = minute.tick() => file.write().await?,
///         }
///         if file.records.len() >= 1_000 {
///             file.write().await?;
///         }
///     }
///     // The shard has ended, or another worker gets it: `shard.why_ended()`, within `shard.remaining()`.
///     file.write().await
/// }
/// # fn door(worker: leasehold::Worker) {
/// # drop(worker.run_shards(collect));
/// # }
/// ```
pub struct ShardStream(pub(super) Arc<Link>);

impl ShardStream {
    /// Waits for the next batch. `None`: the stream has ended, and [`why_ended`](Self::why_ended) tells why.
    ///
    /// Dropping the future loses no batch.
    pub fn next(&self) -> impl Future<Output = Option<Batch>> + Send + '_ {
        self.0.wait(|link| link.take())
    }

    /// Waits until the task's kept batches reach their limit: no batch is handed over until the task has acknowledged
    /// a batch, the oldest batch best. Returns once, and again after a further batch.
    pub fn flush_wanted(&self) -> impl Future<Output = ()> + Send + '_ {
        self.0.wait(|link| link.take_full())
    }

    /// Waits until the lease is given up, and gives the reason: the task has [`remaining`](Self::remaining) to
    /// acknowledge its kept batches, and `next` gives `None`. A batch waiting at that moment is given first.
    ///
    /// If the lease is lost, the task is dropped, and this future never returns.
    pub fn leaving(&self) -> impl Future<Output = EndReason> + Send + '_ {
        let leaving = |why| matches!(why, FlushReason::Leaving(_));
        self.0.wait(move |link| match link.see_end(leaving)? {
            FlushReason::Leaving(reason) => Some(reason),
            _ => None,
        })
    }

    /// Why the stream ends; absent as long as it goes on. It is known before `next` gives `None` if a batch still waits.
    pub fn why_ended(&self) -> Option<FlushReason> {
        self.0.ended()
    }

    /// After the end of the stream: the time left for acknowledgements. Batches not acknowledged by then come again
    /// at the next owner, and the task is dropped. Absent: the stream goes on, or its end has no known limit of time.
    pub fn remaining(&self) -> Option<Duration> {
        self.0.remaining()
    }

    /// The shard, its lease, the fencing token, and the worker's first checkpoint in the shard.
    pub fn info(&self) -> &ShardInfo {
        &self.0.info
    }

    /// Tells whether this worker may still act for the shard. Not valid before the first batch.
    pub fn fence(&self) -> Fence {
        self.0.fence.clone()
    }
}

/// As [`next`](ShardStream::next).
impl futures_core::Stream for ShardStream {
    type Item = Batch;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Batch>> {
        self.0.poll(cx, |link| link.take())
    }
}

impl fmt::Debug for ShardStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ShardStream")
            .field("shard", &self.info().shard)
            .field("token", &self.info().token)
            .field("why_ended", &self.why_ended())
            .finish_non_exhaustive()
    }
}
