//! A separate handler for each shard: the handler's state needs no locks.

use crate::batch::{Batch, ShardInfo};
use crate::handler::{Ack, Flush, Handler};
use leasehold_engine::ids::LeaseKey;
use leasehold_engine::output::EndReason;
use std::collections::BTreeMap;
use std::error::Error as StdError;
use std::future::Future;
use std::sync::{Arc, Mutex as StdMutex, PoisonError};
use tokio::sync::Mutex;

/// Processes the records of one shard. It is made when the shard is opened, and dropped when the shard is closed.
///
/// ```
/// use leasehold::{Ack, Batch, EndReason, ShardHandler};
///
/// /// Counts the records of a shard since it was opened.
/// #[derive(Default)]
/// struct Count(u64);
///
/// impl ShardHandler for Count {
///     type Error = std::io::Error;
///
///     async fn process(&mut self, batch: Batch) -> Result<Ack, Self::Error> {
///         self.0 += batch.len() as u64;
///         Ok(Ack::All)
///     }
///
///     async fn close(&mut self, reason: EndReason) {
///         println!("{} records until {reason:?}", self.0);
///     }
/// }
///
/// # async fn example(worker: leasehold::Worker) -> Result<(), leasehold::Error> {
/// worker.run_per_shard(|_shard| Count::default()).await?;
/// # Ok(())
/// # }
/// ```
///
/// The calls are the calls of [`Handler`], with the same meaning. After a call that failed, panicked or was dropped,
/// the handler is called again with all unacknowledged records: a handler must not count on the broken call.
pub trait ShardHandler: Send + 'static {
    /// What goes wrong here.
    type Error: Into<Box<dyn StdError + Send + Sync>> + Send;

    /// As [`Handler::process`].
    fn process(&mut self, batch: Batch) -> impl Future<Output = Result<Ack, Self::Error>> + Send;

    /// As [`Handler::flush`].
    fn flush(&mut self, flush: Flush) -> impl Future<Output = Result<(), Self::Error>> + Send {
        let _ = flush;
        async { Ok(()) }
    }

    /// As [`Handler::close`].
    fn close(&mut self, reason: EndReason) -> impl Future<Output = ()> + Send {
        let _ = reason;
        async {}
    }
}

/// Makes a handler for each shard, and hands calls on to the handler.
pub(crate) struct PerShard<F, H> {
    make: F,
    open: StdMutex<BTreeMap<LeaseKey, Arc<Mutex<H>>>>,
}

/// The error of a shard's handler, or the lack of a handler.
pub(crate) enum Failure<E> {
    Own(E),
    Missing(Missing),
}

/// A shard was not opened, or is closed.
#[derive(Debug, thiserror::Error)]
#[error("expected shard {0} to be open, found it closed")]
pub(crate) struct Missing(LeaseKey);

impl<E: Into<Box<dyn StdError + Send + Sync>>> From<Failure<E>> for Box<dyn StdError + Send + Sync> {
    fn from(failure: Failure<E>) -> Self {
        match failure {
            Failure::Own(error) => error.into(),
            Failure::Missing(missing) => missing.into(),
        }
    }
}

impl<F, H> PerShard<F, H> {
    pub(crate) fn new(make: F) -> Self {
        let open = StdMutex::default();
        Self { make, open }
    }

    fn of(&self, shard: &ShardInfo) -> Result<Arc<Mutex<H>>, Missing> {
        let open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let found = open.get(&shard.lease).cloned();
        found.ok_or_else(|| Missing(shard.lease.clone()))
    }
}

impl<F, H> Handler for PerShard<F, H>
where
    F: Fn(&ShardInfo) -> H + Send + Sync + 'static,
    H: ShardHandler,
{
    type Error = Failure<H::Error>;

    async fn open(&self, shard: &ShardInfo) -> Result<(), Self::Error> {
        let handler = Arc::new(Mutex::new((self.make)(shard)));
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        open.insert(shard.lease.clone(), handler);
        Ok(())
    }

    async fn process(&self, batch: Batch) -> Result<Ack, Self::Error> {
        let handler = self.of(batch.shard()).map_err(Failure::Missing)?;
        let mut handler = handler.lock().await;
        handler.process(batch).await.map_err(Failure::Own)
    }

    async fn flush(&self, shard: &ShardInfo, flush: Flush) -> Result<(), Self::Error> {
        let handler = self.of(shard).map_err(Failure::Missing)?;
        let mut handler = handler.lock().await;
        handler.flush(flush).await.map_err(Failure::Own)
    }

    async fn close(&self, shard: &ShardInfo, reason: EndReason) {
        let handler = {
            let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
            open.remove(&shard.lease)
        };
        if let Some(handler) = handler {
            handler.lock().await.close(reason).await;
        }
    }
}

#[cfg(all(test, feature = "tokio-runtime"))]
#[path = "per_shard_tests.rs"]
mod tests;
