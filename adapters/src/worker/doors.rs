//! The doors of a worker besides [`Worker::run`]: closures, a task for each shard, and a handler for each shard.

use super::Worker;
use crate::batch::{Batch, ShardInfo};
use crate::error::Error;
use crate::handler::{Ack, HandlerFn};
use crate::per_shard::{PerShard, ShardHandler};
use crate::report::Report;
use crate::shards::{ShardStream, ShardTasks};
use std::error::Error as StdError;
use std::future::Future;
use std::sync::Arc;

impl Worker {
    /// As [`run`](Worker::run), with a closure that is called for every batch.
    ///
    /// # Errors
    /// As [`run`](Worker::run).
    pub async fn run_fn<F, Fut, A, E>(self, process: F) -> Result<Report, Error>
    where
        F: Fn(Batch) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<A, E>> + Send + 'static,
        A: Into<Ack> + 'static,
        E: Into<Box<dyn StdError + Send + Sync>> + Send + 'static,
    {
        self.run(HandlerFn::new(process)).await
    }

    /// As [`run`](Worker::run), with a task for each shard: the shard's state lives in local variables of the task.
    ///
    /// The task begins when the shard is opened. The task reads the batches of its [`ShardStream`], and acknowledges
    /// each batch. At the end of the stream the task acknowledges its remaining batches, and returns `Ok(())`.
    ///
    /// ```no_run
    /// # #[cfg(feature = "aws")]
    /// # async fn example(kinesis: leasehold::aws::kinesis::Client, dynamodb: leasehold::aws::dynamodb::Client)
    /// # -> Result<(), leasehold::Error> {
    /// use leasehold::{ShardStream, Worker};
    ///
    /// let worker = Worker::builder()
    ///     .kinesis(kinesis)
    ///     .dynamodb(dynamodb)
    ///     .stream("orders")
    ///     .application("billing")
    ///     .build()?;
    /// worker
    ///     .run_shards(|shard: ShardStream| async move {
    ///         let mut bytes = 0;
    ///         while let Some(batch) = shard.next().await {
    ///             for record in &batch {
    ///                 bytes += record.data.len();
    ///             }
    ///             batch.acknowledge();
    ///         }
    ///         println!("{}: {bytes} bytes until {:?}", shard.info().shard, shard.why_ended());
    ///         Ok::<(), std::io::Error>(())
    ///     })
    ///     .await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// | the stream ends because | the task |
    /// |---|---|
    /// | the shard has ended | has no limit of time; the end of the shard is written after all acknowledgements and the task's return with `Ok(())` |
    /// | the lease is given up: a shutdown, or a hand-over to another worker | has [`Config::flush_timeout`](crate::Config::flush_timeout) to acknowledge its remaining batches |
    ///
    /// If the lease is lost, the task is dropped at its next await point: another worker starts from the last
    /// checkpoint. A drop of the worker also drops the task.
    ///
    /// A task that returns an error, panics, or returns `Ok(())` before the end of its stream has failed: an event
    /// says so, at the latest with the shard's next batch. Unacknowledged records are handed over again, after a
    /// pause ([`Config::handler_backoff`](crate::Config::handler_backoff)), to a new task with new local variables. A
    /// task that fails at the end of its shard is replaced in the same way: the new task gets `None` at once if
    /// everything was acknowledged, and the end is not written before a task has returned `Ok(())`. If the worker
    /// stops or loses the lease earlier, the next owner's task is told the end.
    ///
    /// Tasks run on the caller's tokio runtime, or on the builder's runtime.
    ///
    /// # Errors
    /// As [`run`](Worker::run).
    pub async fn run_shards<F, Fut, E>(self, task: F) -> Result<Report, Error>
    where
        F: Fn(ShardStream) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<(), E>> + Send + 'static,
        E: Into<Box<dyn StdError + Send + Sync>> + Send + 'static,
    {
        self.open_door(Box::new(|runtime, polls| {
            Arc::new(ShardTasks::new(task, runtime.clone(), polls.clone()))
        }))
        .await
    }

    /// As [`run`](Worker::run), with a [`ShardHandler`] for each shard, made when the shard is opened.
    ///
    /// # Errors
    /// As [`run`](Worker::run).
    pub async fn run_per_shard<F, H>(self, make: F) -> Result<Report, Error>
    where
        F: Fn(&ShardInfo) -> H + Send + Sync + 'static,
        H: ShardHandler,
    {
        self.run(PerShard::new(make)).await
    }
}
