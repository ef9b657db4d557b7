//! What can be asked of a running worker.

#[cfg(feature = "aws")]
use super::operator::{Operator, Rewind};
#[cfg(feature = "aws")]
use crate::admin::{AdminError, To, Which};
use crate::asks::AskSender;
#[cfg(feature = "aws")]
use crate::aws::stream_ref::{Directory, StreamRef};
use crate::board::Board;
#[cfg(feature = "aws")]
use crate::error::Error;
use crate::health::Health;
use crate::recorder::Flight;
use crate::status::Status;
use leasehold_engine::ids::ShardId;
#[cfg(feature = "aws")]
use leasehold_engine::input::Call;
#[cfg(feature = "aws")]
use leasehold_engine::stream_id::StreamId;
use std::io::{self, Write};
#[cfg(feature = "aws")]
use std::sync::Arc;
use std::time::Duration;

/// A handle on a worker. Clones are handles on the same.
///
/// A control works on any thread and at any time: before [`Worker::run`](crate::Worker::run), while the worker runs,
/// within [`Builder::on_notice`](crate::Builder::on_notice), and after the worker has ended. No call waits for the
/// worker. Only [`rewind`](Control::rewind) makes requests, and is `async`.
#[derive(Clone, Debug)]
pub struct Control {
    pub(super) asks: AskSender,
    pub(super) flight: Option<Flight>,
    pub(super) board: Board,
    #[cfg(feature = "aws")]
    pub(super) operator: Arc<Operator>,
    #[cfg(feature = "aws")]
    pub(super) directory: Option<Directory>,
}

impl Control {
    /// Asks the worker to stop: handlers finish their batches, progress is made durable, and leases are given up.
    /// [`Worker::run`](crate::Worker::run) returns at the end of the stop, or with
    /// [`Error::Unclean`](crate::Error::Unclean) after the option `shutdown_timeout` (30 s by default). A repeated
    /// call changes nothing.
    pub fn shutdown(&self) {
        self.asks.shutdown(None);
    }

    /// As [`shutdown`](Control::shutdown), with `time` from now instead of `shutdown_timeout`. A worker already
    /// stopping ends at the earlier of the two moments: a shorter time makes the stop shorter, and a longer time
    /// changes nothing.
    ///
    /// Handlers have all of this time except the last two `table_timeout` (3 s each by default). The last two
    /// `table_timeout` are for the final writes. With less time, the worker waits for no handler, and the stop takes
    /// two `table_timeout`. Times are rounded down to microseconds.
    pub fn shutdown_within(&self, time: Duration) {
        self.asks.shutdown(Some(time.into()));
    }

    /// Hands no more records of a shard to its handler until [`resume`](Control::resume) is called. The lease is kept
    /// and renewed. A running handler finishes its batch, and the batch is checkpointed.
    ///
    /// The call has no effect if this worker does not hold the shard's lease when the request arrives, within
    /// milliseconds. The notice [`Paused`](crate::Notice::Paused) tells that the shard is paused.
    ///
    /// A pause ends with the ownership: a later take of the lease, by any worker, is not paused. A shutdown gives the
    /// lease up, and a growing fleet or an expiry may move the lease. To keep a shard from being processed for good,
    /// let the shard's handler refuse.
    ///
    /// During a pause the shard is read until its buffer is full (`buffer_bytes`, `buffer_batches`), and costs as
    /// much memory as a slow handler's shard. The shard falls behind, as the metrics show, but does not count as
    /// stalled. A shard with all its records processed still ends, and its children begin. A shard not yet open is
    /// opened, and is then given nothing. Records older than the stream's retention (24 h by default) are lost, also
    /// in a pause.
    ///
    /// ```no_run
    /// # fn example(control: leasehold::Control) {
    /// control.pause("shardId-000000000003");
    /// // … repair what the records of this shard are written to.
    /// control.resume("shardId-000000000003");
    /// # }
    /// ```
    pub fn pause(&self, shard: impl Into<ShardId>) {
        self.asks.pause(shard.into().to_lease(), true);
    }

    /// Ends a [`pause`](Control::pause): records read meanwhile are handed over at once. A shard stopped because of a
    /// record ([`FailurePolicy::stop`](crate::FailurePolicy::stop)) goes on, too, with a new count of attempts. The
    /// call has no effect on other shards.
    pub fn resume(&self, shard: impl Into<ShardId>) {
        self.asks.pause(shard.into().to_lease(), false);
    }

    /// Reads a stream, too, of a worker that was built with [`Builder::streams`](crate::Builder::streams): within a second or two, and
    /// after the worker has found the stream. Nothing happens if the stream is read already.
    ///
    /// Workers of a fleet may have different streams for a while: a stream is read by the workers with the stream.
    /// Add a new stream to all workers, one after the other. The notices [`StreamNews`](crate::StreamNews) tell the
    /// result.
    ///
    /// # Errors
    /// [`Error::OneStream`](crate::Error::OneStream) if the worker was built with [`Builder::stream`](crate::Builder::stream).
    #[cfg(feature = "aws")]
    pub fn add_stream(&self, stream: StreamRef) -> Result<(), Error> {
        let directory = self.directory.as_ref().ok_or(Error::OneStream)?;
        let source = stream.source.clone();
        directory.insert(stream);
        self.asks.streams(Call::AddStream(source));
        Ok(())
    }

    /// Stops reading a stream: handlers of its shards finish their batches, progress is made durable, and the leases
    /// are given up. The call has no effect if the stream is not read.
    ///
    /// The rows of the stream's leases stay in the table: a stream added again goes on from its checkpoints. The rows
    /// are removed when no worker of the fleet has read the stream for
    /// [`Config::stream_cleanup_delay`](crate::Config::stream_cleanup_delay), by default never.
    ///
    /// # Errors
    /// [`Error::OneStream`](crate::Error::OneStream) if the worker was built with [`Builder::stream`](crate::Builder::stream).
    #[cfg(feature = "aws")]
    pub fn remove_stream(&self, stream: &StreamId) -> Result<(), Error> {
        if self.directory.is_none() {
            return Err(Error::OneStream);
        }
        self.asks.streams(Call::RemoveStream(stream.clone()));
        Ok(())
    }

    /// Plans to move shards of the worker's streams to another place, and to read their records again from there:
    /// these shards' or all shards', of any worker of the fleet. No write happens before [`Rewind::apply`]; the plan
    /// names the writes and their consequences.
    ///
    /// ```no_run
    /// # #[cfg(feature = "aws")]
    /// # async fn example(control: leasehold::Control) -> Result<(), leasehold::admin::AdminError> {
    /// use leasehold::admin::{Stepped, To, Which};
    ///
    /// let which = Which::Shards(vec!["shardId-000000000003".into()]);
    /// let rewind = control.rewind(&which, To::TrimHorizon).await?;
    /// println!("{rewind}");
    /// // … a person agrees.
    /// let done = rewind.apply().await?;
    /// assert!(done.iter().all(|done| done.how == Stepped::Written));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// A rewind is the same as `leasehold admin rewind`, with the same guards: for each lease, one conditional write
    /// sets the checkpoint, clears the owner and moves the counter. **A shard that this worker has open is no
    /// exception.** The worker's next write of the lease, at the latest a renewal (`renew_interval`, 3.3 s by
    /// default), is refused. Then the lease is [lost](crate::LossReason): its fence is no longer valid, its handler
    /// is stopped, and its checkpoints end. This or another worker with room for the lease takes the lease at its
    /// next scan of the table (`scan_interval`, 20.05 s by default) and begins at the new checkpoint. Until the
    /// former owner has noticed, two owners may process records side by side.
    ///
    /// Children of a shard that was read to its end keep their checkpoints, unless they are rewound, too:
    /// [`Which::All`] rewinds children, ancestors first. A place ahead of a checkpoint skips records, and the plan
    /// says this.
    ///
    /// The call watches the table for two renewal intervals, 5 s at most, to find the live owners. The call works
    /// before, during and after the worker's run, within a tokio runtime unless the builder was given a runtime.
    ///
    /// # Errors
    /// If there is no table yet, if `to` makes no sense for these shards ([`To::check`]), or if the table or the stream cannot be read
    /// in spite of several tries.
    #[cfg(feature = "aws")]
    pub async fn rewind(&self, which: &Which, to: To) -> Result<Rewind, AdminError> {
        self.operator.rewind(which, to).await
    }

    /// The worker's state, and every held lease, at this moment.
    ///
    /// The status includes each notice as soon as [`Builder::on_notice`](crate::Builder::on_notice) has returned. The
    /// worker goes on meanwhile; with 10,000 leases an answer takes some milliseconds.
    pub fn status(&self) -> Status {
        self.board.status()
    }

    /// The worker's health, for a liveness probe: a failing probe has the process restarted.
    ///
    /// The worker is healthy unless
    ///
    /// * the loop that keeps its leases has not run for longer than `lease_duration` (10 s by default), or than 3 s
    ///   with a shorter `lease_duration`: something blocks the loop's thread, such as a function for notices that
    ///   does not return, or, with [`coordination_on_caller`](crate::Builder::coordination_on_caller), a handler that
    ///   blocks;
    /// * the runtime of the handlers has run nothing for longer than that, since handlers block all of its threads:
    ///   the reason names the handlers;
    /// * every request to the lease table has failed for longer than `lease_duration`;
    /// * the worker has ended with an error, or its future was dropped or has panicked. A worker that was asked to
    ///   stop and ended well is healthy, and so is a worker before its run.
    ///
    /// Ask from a thread that no handler can block, or the answer does not come: the examples `shutdown_and_health` and `axum_service`
    /// serve it on a thread and a runtime of their own.
    ///
    /// Each of these reasons is worth a restart, if the trouble lasts. An outage of DynamoDB looks the same on all
    /// workers. Let a probe fail only after the longest outage that you would rather sit out (`failureThreshold`
    /// times `periodSeconds` of Kubernetes), or the whole fleet restarts. No lease outlasts an outage of that length
    /// in either case.
    ///
    /// A shard that does not move is a [remark](Health::remarks), and not unhealthy: its handler may wait for a
    /// failed system, and after a restart the next worker waits for the same system. A shard far behind, a worker
    /// without a lease, and a worker in a shutdown are healthy, too. Let a person look at these cases, by the metrics
    /// `leasehold_leases_stalled` and `leasehold_behind_seconds` or by [`status`](Control::status), and do not
    /// restart for them.
    pub fn health(&self) -> Health {
        self.board.health()
    }

    /// Whether the worker does its work: [`Health::is_healthy`] of [`health`](Control::health).
    pub fn is_healthy(&self) -> bool {
        self.health().is_healthy()
    }

    /// Writes the flight recorder's inputs as a trace. Writes nothing if the flight recorder is off.
    ///
    /// # Errors
    /// If `to` cannot be written.
    pub fn dump_flight(&self, to: impl Write) -> io::Result<()> {
        match &self.flight {
            Some(flight) => flight.dump(to),
            None => Ok(()),
        }
    }
}

#[cfg(all(test, feature = "tokio-runtime"))]
#[path = "control_tests.rs"]
mod tests;
