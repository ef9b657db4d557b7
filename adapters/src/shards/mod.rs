//! A task for each shard: the handler behind [`Worker::run_shards`](crate::Worker::run_shards).
//!
//! An open shard has a task. A batch is handed over when the task takes the batch; the task acknowledges the batch
//! later. If a task returns too early, fails or panics, the shard's next batch starts a new task.

mod link;
mod stream;

pub use stream::ShardStream;

use crate::batch::{Batch, ShardInfo};
use crate::catch::catch;
use crate::fence::Fence;
use crate::handler::{Ack, AnyHandler, Flush, describe};
use crate::pulse::Polls;
use crate::runtime::{BoxFuture, Runtime, Task};
use leasehold_engine::ids::LeaseKey;
use leasehold_engine::output::{EndReason, FlushReason};
use link::{Link, Returned};
use std::collections::BTreeMap;
use std::error::Error as StdError;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

type Begin = dyn Fn(ShardStream) -> BoxFuture<'static, Result<(), String>> + Send + Sync;

/// Runs a task for each shard.
pub(crate) struct ShardTasks {
    /// The application's function for making a task; each shard gets a separate task.
    begin: Box<Begin>,
    /// Runs them.
    runtime: Arc<dyn Runtime>,
    polls: Polls,
    open: Mutex<BTreeMap<LeaseKey, Arc<Running>>>,
}

/// A task of a shard. Dropping this struct stops the task.
struct Running {
    link: Arc<Link>,
    task: Task,
}

impl Drop for Running {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl ShardTasks {
    pub(crate) fn new<F, Fut, E>(task: F, runtime: Arc<dyn Runtime>, polls: Polls) -> Self
    where
        F: Fn(ShardStream) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<(), E>> + Send + 'static,
        E: Into<Box<dyn StdError + Send + Sync>> + Send + 'static,
    {
        let task = Arc::new(task);
        let begin = move |stream| -> BoxFuture<'static, Result<(), String>> {
            let task = task.clone();
            // A panic may come from making the future as well as from running it.
            Box::pin(async move { task(stream).await.map_err(describe) })
        };
        Self { begin: Box::new(begin), runtime, polls, open: Mutex::default() }
    }

    fn shards(&self) -> MutexGuard<'_, BTreeMap<LeaseKey, Arc<Running>>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The task of a shard, unless the shard was closed.
    fn running(&self, shard: &ShardInfo) -> Option<Arc<Running>> {
        let shards = self.shards();
        let running = shards.get(&shard.lease)?;
        (running.link.info.token == shard.token).then(|| running.clone())
    }

    /// Starts a task for a shard, in the place of the one before.
    fn start(&self, info: Arc<ShardInfo>, fence: Fence) -> Arc<Running> {
        let lease = info.lease.clone();
        let link = Arc::new(Link::new(info, fence));
        let call = (self.begin)(ShardStream(link.clone()));
        let call = run(link.clone(), self.polls.clone(), call);
        let task = self.runtime.spawn(Box::pin(call));
        let running = Arc::new(Running { link, task });
        let before = self.shards().insert(lease, running.clone());
        drop(before);
        running
    }

    fn start_anew(&self, before: &Link) -> Arc<Running> {
        self.start(before.info.clone(), before.fence.clone())
    }

    async fn hand_over(&self, batch: Batch) -> Result<Ack, String> {
        let Some(mut running) = self.running(batch.shard()) else {
            return Err(format!("expected shard {} to be open, found it closed", batch.shard().shard));
        };
        if running.link.ended().is_some() {
            // A shard already at its end goes on if batches were given back: with a new task, after this task.
            running.link.until_returned().await;
        }
        if let Some(failure) = running.link.tell() {
            return Err(failure);
        }
        if running.link.returned().is_some() {
            running = self.start_anew(&running.link);
        }
        running.link.hand_over(batch).await.map(|()| Ack::Later)
    }

    /// Ends the stream of a shard, and waits until its task has returned.
    async fn end(&self, mut running: Arc<Running>, why: FlushReason, flush: Flush) -> Result<(), String> {
        if let Some(failure) = running.link.tell() {
            return Err(failure);
        }
        let failed = matches!(running.link.returned(), Some(Returned::Failed { .. }));
        if failed && why == FlushReason::ShardEnd {
            running = self.start_anew(&running.link);
        }
        running.link.end(why, Some(flush));
        running.link.until_returned().await;
        running.link.tell().map_or(Ok(()), Err)
    }

    async fn close(&self, shard: &ShardInfo, reason: EndReason) {
        let Some(running) = self.running(shard) else {
            return;
        };
        self.shards().remove(&shard.lease);
        let is_leaving = matches!(running.link.ended(), Some(FlushReason::Leaving(_)));
        let why = match reason {
            // The task's further work would be of no use.
            EndReason::LeaseLost | EndReason::SourceGone => return,
            // It had its time.
            _ if is_leaving => return,
            EndReason::ShardEnded => FlushReason::ShardEnd,
            _ => FlushReason::Leaving(reason),
        };
        running.link.end(why, None);
        running.link.until_returned().await;
        if let Some(failure) = running.link.tell() {
            tracing::warn!(target: "leasehold", kind = "shard-task-failed", shard = %shard.shard, "{failure}");
        }
    }
}

/// Runs a task until its return, and gives back its unacknowledged batches.
async fn run(link: Arc<Link>, polls: Polls, call: BoxFuture<'static, Result<(), String>>) {
    /// Tells waiting callers that the runtime has dropped the task.
    struct Dropped(Arc<Link>);

    impl Drop for Dropped {
        fn drop(&mut self) {
            let why = "its runtime stopped it".to_owned();
            self.0.returns(Ok(Err(why)));
        }
    }

    let dropped = Dropped(link.clone());
    let mut call = pin!(polls.watch(link.info.lease.clone(), catch(call)));
    let result = poll_fn(|cx| {
        link.before_poll();
        let polled = call.as_mut().poll(cx);
        if polled.is_pending() {
            link.goes_on();
        }
        polled
    })
    .await;
    link.returns(result);
    drop(dropped);
}

impl AnyHandler for ShardTasks {
    /// A task that returns `Ok(())` at the end of its shard permits the end to be written.
    fn confirms_end(&self) -> bool {
        true
    }

    fn open(self: Arc<Self>, shard: Arc<ShardInfo>, fence: Fence) -> BoxFuture<'static, Result<(), String>> {
        Box::pin(async move {
            self.start(shard, fence);
            Ok(())
        })
    }

    fn process(self: Arc<Self>, batch: Batch) -> BoxFuture<'static, Result<Ack, String>> {
        Box::pin(async move { self.hand_over(batch).await })
    }

    fn flush(self: Arc<Self>, shard: Arc<ShardInfo>, flush: Flush) -> BoxFuture<'static, Result<(), String>> {
        Box::pin(async move {
            let Some(running) = self.running(&shard) else {
                return Ok(());
            };
            match flush.reason() {
                FlushReason::Full => {
                    running.link.want_flush();
                    running.link.tell().map_or(Ok(()), Err)
                }
                why => self.end(running, why, flush).await,
            }
        })
    }

    fn close(self: Arc<Self>, shard: Arc<ShardInfo>, reason: EndReason) -> BoxFuture<'static, ()> {
        Box::pin(async move { ShardTasks::close(&self, &shard, reason).await })
    }
}

#[cfg(all(test, feature = "tokio-runtime"))]
mod tests;
