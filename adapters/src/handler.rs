//! The application's side of the worker.

use crate::batch::{Batch, ShardInfo};
use crate::runtime::BoxFuture;
use leasehold_engine::output::EndReason;
use std::error::Error as StdError;
use std::fmt;
use std::future::Future;
use std::sync::Arc;

/// Processes records. Shards run concurrently; the calls of one shard follow each other, never overlapping.
///
/// ```
/// use leasehold::{Batch, Handler};
///
/// struct Print;
///
/// impl Handler for Print {
///     type Error = std::io::Error;
///
///     async fn process(&self, batch: Batch) -> Result<(), Self::Error> {
///         for record in &batch {
///             println!("{} {:?}", record.position, record.data);
///         }
///         Ok(())
///     }
/// }
/// ```
///
/// Records are delivered at least once, in order within a shard, and a shard's parents are finished before it is
/// opened. A call may be dropped at any await point when the shard is lost: there is nothing to be undone then, as
/// another worker starts from the last checkpoint.
pub trait Handler: Send + Sync + 'static {
    /// What goes wrong here.
    type Error: Into<Box<dyn StdError + Send + Sync>> + Send;

    /// A shard is about to be processed. An error is retried after a pause.
    fn open(&self, shard: &ShardInfo) -> impl Future<Output = Result<(), Self::Error>> + Send {
        let _ = shard;
        async { Ok(()) }
    }

    /// Processes a batch. `Ok` means: all of it, for good. An error, or a panic, brings back what was not
    /// acknowledged, after a pause.
    fn process(&self, batch: Batch) -> impl Future<Output = Result<(), Self::Error>> + Send;

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
    pub fn new<Fut, E>(process: F) -> Self
    where
        F: Fn(Batch) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<(), E>> + Send,
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

impl<F, Fut, E> Handler for HandlerFn<F>
where
    F: Fn(Batch) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<(), E>> + Send + 'static,
    E: Into<Box<dyn StdError + Send + Sync>> + Send + 'static,
{
    type Error = E;

    fn process(&self, batch: Batch) -> impl Future<Output = Result<(), E>> + Send {
        (self.0)(batch)
    }
}

/// A handler of any type. Errors have become text.
pub(crate) trait AnyHandler: Send + Sync {
    fn open(self: Arc<Self>, shard: Arc<ShardInfo>) -> BoxFuture<'static, Result<(), String>>;
    fn process(self: Arc<Self>, batch: Batch) -> BoxFuture<'static, Result<(), String>>;
    fn close(self: Arc<Self>, shard: Arc<ShardInfo>, reason: EndReason) -> BoxFuture<'static, ()>;
}

impl<H: Handler> AnyHandler for H {
    fn open(self: Arc<Self>, shard: Arc<ShardInfo>) -> BoxFuture<'static, Result<(), String>> {
        Box::pin(async move { Handler::open(&*self, &shard).await.map_err(describe) })
    }

    fn process(self: Arc<Self>, batch: Batch) -> BoxFuture<'static, Result<(), String>> {
        Box::pin(async move { Handler::process(&*self, batch).await.map_err(describe) })
    }

    fn close(self: Arc<Self>, shard: Arc<ShardInfo>, reason: EndReason) -> BoxFuture<'static, ()> {
        Box::pin(async move { Handler::close(&*self, &shard, reason).await })
    }
}

/// An error with its causes, on one line.
fn describe(error: impl Into<Box<dyn StdError + Send + Sync>>) -> String {
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
