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
/// It can be used on any thread and at any time: before [`Worker::run`](crate::Worker::run), while the worker runs, within
/// [`Builder::on_notice`](crate::Builder::on_notice), and after the worker has ended. No call waits for the worker.
/// [`rewind`](Control::rewind) alone makes requests, and is `async`.
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
    /// Asks the worker to stop: handlers finish what they have, progress is made durable, and leases are given up.
    /// [`Worker::run`](crate::Worker::run) returns when that is done, or with [`Error::Unclean`](crate::Error::Unclean) when it
    /// took longer than the option `shutdown_timeout` (30 s by default). Asking again changes nothing.
    pub fn shutdown(&self) {
        self.asks.shutdown(None);
    }

    /// As [`shutdown`](Control::shutdown), within so much time from now, instead of `shutdown_timeout`. If the worker stops
    /// already, it ends at the earlier one of the two moments: to ask again with less time makes a stop shorter, and with more it
    /// changes nothing.
    ///
    /// Handlers have all of this time but for the last two `table_timeout` (3 s each by default), which are left for what is
    /// written at the end. In less than that, no handler is waited for, and the stop takes two `table_timeout`. Times are rounded
    /// down to microseconds.
    pub fn shutdown_within(&self, time: Duration) {
        self.asks.shutdown(Some(time.into()));
    }

    /// Hands nothing more of a shard to its handler until [`resume`](Control::resume) is called. The lease is kept and renewed. A
    /// handler that runs finishes its batch, and what it processed is checkpointed.
    ///
    /// Nothing happens if this worker does not hold the shard's lease when it comes to the request, which is within milliseconds.
    /// The notice [`Paused`](crate::Notice::Paused) tells that the shard is paused.
    ///
    /// A pause ends with the ownership: a worker that takes the lease later, this one or another, is not paused. A shutdown gives
    /// the lease up, a fleet that grows may move it, and so may an expiry. To keep a shard from being processed for good, let its
    /// handler refuse.
    ///
    /// During a pause the shard is read until its buffer is full (`buffer_bytes`, `buffer_batches`), so it costs as much memory as a
    /// slow handler does. It falls behind, which the metrics show, but is not told as stalled. A shard of which every record was
    /// processed ends even so, and its children begin. A shard that is not open yet is opened, and is given nothing then. Records
    /// that a pause outlasts are lost when the stream's retention is over (24 h by default).
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

    /// Ends a [`pause`](Control::pause): what was read meanwhile is handed over at once. A shard that was stopped because of a record
    /// ([`FailurePolicy::stop`](crate::FailurePolicy::stop)) goes on, too, with a new count of attempts. Nothing happens to any other
    /// shard.
    pub fn resume(&self, shard: impl Into<ShardId>) {
        self.asks.pause(shard.into().to_lease(), false);
    }

    /// Reads a stream, too, of a worker that was built with [`Builder::streams`](crate::Builder::streams): within a second or two, and
    /// after the worker has found the stream. Nothing happens if the stream is read already.
    ///
    /// Workers of a fleet may differ in their streams for a while: a stream is read by those that have it. So add a stream to all
    /// workers, one after the other. The notices [`StreamNews`](crate::StreamNews) tell what becomes of it.
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

    /// Reads a stream no more: handlers of its shards finish what they have, progress is made durable, and the leases are given up.
    /// Nothing happens if the stream is not read.
    ///
    /// The rows of its leases stay in the table, so a stream that is added again goes on from its checkpoints. They are removed when no
    /// worker of the fleet has read the stream for [`Config::stream_cleanup_delay`](crate::Config::stream_cleanup_delay), which is never
    /// by default.
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

    /// Plans to put shards of the worker's stream at another place, so that their records come again from there: these shards' or
    /// all, of whichever worker of the fleet. Nothing is written before [`Rewind::apply`]; the plan says what would be, and what follows.
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
    /// It is what `leasehold admin rewind` does, and guarded in the same way: for each lease, one conditional write sets the checkpoint,
    /// clears the owner and moves the counter. **A shard that this worker has open is no exception.** The worker's next write for it, at
    /// the latest a renewal (`renew_interval`, 3.3 s by default), is refused. Then the lease is
    /// [lost](crate::LossReason): its fence is no longer valid, its handler is stopped, and nothing of it is checkpointed any more. A
    /// worker with room for it, this one or another, takes the lease at its next scan of the table (`scan_interval`, 20.05 s by default)
    /// and begins at the new checkpoint. Until the former owner has noticed, it may process records beside the next one.
    ///
    /// Children of a shard that was read to its end keep their checkpoints, unless they are rewound, too: [`Which::All`] does that,
    /// ancestors first. A place ahead of a checkpoint skips records; the plan says so.
    ///
    /// The table is watched for two renewal intervals, 5 s at most, to tell which owners live. It may be called while the worker runs,
    /// before, and afterwards, within a tokio runtime unless the builder was given one.
    ///
    /// # Errors
    /// If there is no table yet, if `to` makes no sense for these shards ([`To::check`]), or if the table or the stream cannot be read
    /// in spite of several tries.
    #[cfg(feature = "aws")]
    pub async fn rewind(&self, which: &Which, to: To) -> Result<Rewind, AdminError> {
        self.operator.rewind(which, to).await
    }

    /// What the worker does, and every lease it holds, as it is at this moment.
    ///
    /// What is told to [`Builder::on_notice`](crate::Builder::on_notice) is shown as soon as that function has returned. The
    /// worker goes on meanwhile; with 10,000 leases an answer takes some milliseconds.
    pub fn status(&self) -> Status {
        self.board.status()
    }

    /// Whether the worker does its work, for a liveness probe: a check that has the process restarted if it fails.
    ///
    /// The worker is healthy unless
    ///
    /// * the loop that keeps its leases has not run for longer than `lease_duration` (10 s by default; 3 s if that is shorter):
    ///   something blocks its thread, as a function for notices that does not return, or, with
    ///   [`coordination_on_caller`](crate::Builder::coordination_on_caller), a handler that blocks;
    /// * the runtime of the handlers has run nothing for longer than that, as handlers block all of its threads: the reason names
    ///   them;
    /// * every request to the lease table has failed for longer than `lease_duration`;
    /// * the worker has ended with an error, or its future was dropped or has panicked. A worker that was asked to stop and ended
    ///   well is healthy, and so is one that has not been run yet.
    ///
    /// Ask from a thread that no handler can block, or the answer does not come: the examples `shutdown_and_health` and `axum_service`
    /// serve it on a thread and a runtime of their own.
    ///
    /// Each of these is worth a restart, if it lasts. An outage of DynamoDB looks the same on all workers: let a probe fail for
    /// longer than outages that you would rather sit out (`failureThreshold` times `periodSeconds` of Kubernetes), or the whole
    /// fleet restarts. No lease outlasts such an outage in either case.
    ///
    /// A shard that does not move is told as a [remark](Health::remarks), and is not unhealthy: its handler may wait for
    /// something that is down, and after a restart the next worker waits for the same. Neither is a shard that is far behind, a
    /// worker without a lease, or one that shuts down. Let a person look at these, by the metrics `leasehold_leases_stalled` and
    /// `leasehold_behind_seconds` or by [`status`](Control::status), and do not restart for them.
    pub fn health(&self) -> Health {
        self.board.health()
    }

    /// Whether the worker does its work: [`Health::is_healthy`] of [`health`](Control::health), which says when that is so.
    pub fn is_healthy(&self) -> bool {
        self.health().is_healthy()
    }

    /// Writes what the flight recorder holds, as a trace. Writes nothing if it is off.
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
