//! The application's side of the worker.

use crate::batch::{Batch, ShardInfo};
use crate::fence::Fence;
use crate::runtime::{BoxFuture, Runtime};
use leasehold_engine::output::{EndReason, FlushReason};
use leasehold_engine::position::Position;
use leasehold_engine::time::Mono;
use std::error::Error as StdError;
use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

/// A handler's answer to a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ack {
    /// All of it is processed, for good. `()` is the same.
    All,
    /// The batch is processed up to and including this position. The rest is handed over again: at once, or after a
    /// pause ([`Config::handler_backoff`](crate::Config::handler_backoff)) if the position is no progress.
    UpTo(Position),
    /// The handler keeps the batch, or a [receipt](crate::Batch::receipt) of the batch, and acknowledges the batch
    /// later. Meanwhile the next batches are handed over: for a sink that collects many batches into one file, or for
    /// a pipeline inside a shard. The kept batches of a shard are limited: see
    /// [`ReaderConfig::kept_bytes`](crate::ReaderConfig::kept_bytes). At the limit, at the end of the shard and
    /// before the lease is given up, the worker calls [`flush`](Handler::flush). A kept record of a batch that failed
    /// too often, handed over alone, also leads to a flush: the shard goes on only after the record's
    /// acknowledgement.
    Later,
}

impl From<()> for Ack {
    fn from((): ()) -> Self {
        Ack::All
    }
}

/// The reason for a flush, and the time left for acknowledging the kept batches.
#[derive(Clone, Debug)]
pub struct Flush {
    reason: FlushReason,
    deadline: Mono,
    runtime: Arc<dyn Runtime>,
}

impl Flush {
    pub(crate) fn new(reason: FlushReason, deadline: Mono, runtime: Arc<dyn Runtime>) -> Self {
        Self { reason, deadline, runtime }
    }

    /// Why.
    pub fn reason(&self) -> FlushReason {
        self.reason
    }

    /// How much time is left. What is not acknowledged by then is given up, and comes again at the next owner. Absent: there is no
    /// limit, and the shard waits.
    pub fn remaining(&self) -> Option<Duration> {
        (self.deadline != Mono::NEVER).then(|| self.deadline.since(self.runtime.now()).into())
    }
}

/// Processes records. Shards run concurrently; the calls of one shard follow each other, never overlapping.
///
/// ```
/// use leasehold::{Ack, Batch, Handler};
///
/// struct Print;
///
/// impl Handler for Print {
///     type Error = std::io::Error;
///
///     async fn process(&self, batch: Batch) -> Result<Ack, Self::Error> {
///         for record in &batch {
///             println!("{} {:?}", record.position, record.data);
///         }
///         Ok(Ack::All)
///     }
/// }
/// ```
///
/// Records are delivered at least once, in order within a shard, and a shard's parents are finished before the shard
/// is opened. A call may be dropped at any await point when the shard is lost. No undo is needed then: another worker
/// starts from the last checkpoint.
pub trait Handler: Send + Sync + 'static {
    /// What goes wrong here.
    type Error: Into<Box<dyn StdError + Send + Sync>> + Send;

    /// A shard is about to be processed. An error is retried after a pause.
    fn open(&self, shard: &ShardInfo) -> impl Future<Output = Result<(), Self::Error>> + Send {
        let _ = shard;
        async { Ok(()) }
    }

    /// Processes a batch, or keeps it: see [`Ack`]. An error, or a panic, brings back what was not acknowledged, after a pause; for
    /// how often, see [`FailurePolicy`](crate::FailurePolicy).
    fn process(&self, batch: Batch) -> impl Future<Output = Result<Ack, Self::Error>> + Send;

    /// Processes and acknowledges as many kept batches of a shard as possible: see [`Flush`]. Called only while
    /// batches are kept. Batches may still be kept at the return: the worker waits for their acknowledgements. An
    /// error is retried after a pause, unless the lease is being given up.
    fn flush(&self, shard: &ShardInfo, flush: Flush) -> impl Future<Output = Result<(), Self::Error>> + Send {
        let _ = (shard, flush);
        async { Ok(()) }
    }

    /// Nothing more follows for this shard. Not called if the process dies.
    fn close(&self, shard: &ShardInfo, reason: EndReason) -> impl Future<Output = ()> + Send {
        let _ = (shard, reason);
        async {}
    }
}

/// A handler made of a closure; see [`Worker::run_fn`](crate::Worker::run_fn).
pub struct HandlerFn<F>(F);

impl<F> HandlerFn<F> {
    /// Calls `process` with every batch.
    pub fn new<Fut, A, E>(process: F) -> Self
    where
        F: Fn(Batch) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<A, E>> + Send,
        A: Into<Ack>,
        E: Into<Box<dyn StdError + Send + Sync>> + Send,
    {
        Self(process)
    }
}

impl<F> fmt::Debug for HandlerFn<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("HandlerFn")
    }
}

impl<F, Fut, A, E> Handler for HandlerFn<F>
where
    F: Fn(Batch) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<A, E>> + Send + 'static,
    A: Into<Ack> + 'static,
    E: Into<Box<dyn StdError + Send + Sync>> + Send + 'static,
{
    type Error = E;

    fn process(&self, batch: Batch) -> impl Future<Output = Result<Ack, E>> + Send {
        let process = (self.0)(batch);
        async move { process.await.map(Into::into) }
    }
}

/// A handler of any type. Errors have become text.
pub(crate) trait AnyHandler: Send + Sync {
    /// Whether the end of a shard is not written before the handler has answered the flush at that end.
    fn confirms_end(&self) -> bool {
        false
    }

    fn open(self: Arc<Self>, shard: Arc<ShardInfo>, fence: Fence) -> BoxFuture<'static, Result<(), String>>;
    fn process(self: Arc<Self>, batch: Batch) -> BoxFuture<'static, Result<Ack, String>>;
    fn flush(self: Arc<Self>, shard: Arc<ShardInfo>, flush: Flush) -> BoxFuture<'static, Result<(), String>>;
    fn close(self: Arc<Self>, shard: Arc<ShardInfo>, reason: EndReason) -> BoxFuture<'static, ()>;
}

impl<H: Handler> AnyHandler for H {
    fn open(self: Arc<Self>, shard: Arc<ShardInfo>, _: Fence) -> BoxFuture<'static, Result<(), String>> {
        Box::pin(async move { Handler::open(&*self, &shard).await.map_err(describe) })
    }

    fn process(self: Arc<Self>, batch: Batch) -> BoxFuture<'static, Result<Ack, String>> {
        Box::pin(async move { Handler::process(&*self, batch).await.map_err(describe) })
    }

    fn flush(self: Arc<Self>, shard: Arc<ShardInfo>, flush: Flush) -> BoxFuture<'static, Result<(), String>> {
        Box::pin(async move { Handler::flush(&*self, &shard, flush).await.map_err(describe) })
    }

    fn close(self: Arc<Self>, shard: Arc<ShardInfo>, reason: EndReason) -> BoxFuture<'static, ()> {
        Box::pin(async move { Handler::close(&*self, &shard, reason).await })
    }
}

/// An error with its causes, on one line.
pub(crate) fn describe(error: impl Into<Box<dyn StdError + Send + Sync>>) -> String {
    let error = error.into();
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(deeper) = cause {
        text.push_str(": ");
        text.push_str(&deeper.to_string());
        cause = deeper.source();
    }
    text
}
