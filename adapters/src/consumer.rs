//! The port to the application: opens, feeds and closes handlers, one shard at a time each.

mod alone;
mod letters;
mod stop;

use self::alone::{Alone, Aside, blame};
use self::stop::{Called, Stop, call_until, call_with_letters};
use crate::asks::{AskSender, ShardAsks};
use crate::attempt::{Attempt, count_processed};
use crate::batch::{Batch, ShardInfo};
use crate::catch::{Panicked, catch};
use crate::dead_letter::AnyDeadLetter;
use crate::fence::{Fence, Fences};
use crate::handler::{Ack, AnyHandler, Flush};
use crate::metrics::Meter;
use crate::ports::Port;
use crate::pulse::Polls;
use crate::receipt::{Keeping, Receipt, Settled};
use crate::record::Record;
use crate::runtime::{BoxFuture, Runtime};
use crate::store::{Fetched, Store};
use leasehold_engine::ids::{FencingToken, LeaseKey, OpId, ShardId};
use leasehold_engine::input::{Cause, Outcome, Refusal, Reply, Why};
use leasehold_engine::output::{ConsumerOp, EndReason, FlushReason};
use leasehold_engine::position::Position;
use leasehold_engine::time::Mono;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::oneshot;

/// Runs an application's handler. Cloning it gives another handle on the same.
#[derive(Clone)]
pub(crate) struct Consumer(Arc<Inner>);

struct Inner {
    handler: Arc<dyn AnyHandler>,
    runtime: Arc<dyn Runtime>,
    store: Store,
    fences: Fences,
    asks: AskSender,
    meter: Meter,
    polls: Polls,
    dead_letters: Option<Arc<dyn AnyDeadLetter>>,
    open: Mutex<BTreeMap<LeaseKey, OpenShard>>,
}

struct OpenShard {
    info: Arc<ShardInfo>,
    fence: Fence,
    asks: ShardAsks,
    /// Stops the running call.
    stop: Option<oneshot::Sender<Stop>>,
}

impl Consumer {
    pub(crate) fn new(
        handler: Arc<dyn AnyHandler>, runtime: Arc<dyn Runtime>, store: Store, fences: Fences,
        asks: AskSender, meter: Meter, polls: Polls,
    ) -> Self {
        Self(Arc::new(Inner {
            handler,
            runtime,
            store,
            fences,
            asks,
            meter,
            polls,
            dead_letters: None,
            open: Mutex::default(),
        }))
    }

    /// Where records go that are set aside.
    pub(crate) fn with_dead_letters(mut self, sink: Option<Arc<dyn AnyDeadLetter>>) -> Self {
        if let Some(inner) = Arc::get_mut(&mut self.0) {
            inner.dead_letters = sink;
        }
        self
    }

    fn open_shards(&self) -> MutexGuard<'_, BTreeMap<LeaseKey, OpenShard>> {
        self.0.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn open(&self, info: ShardInfo) -> BoxFuture<'static, Outcome> {
        let inner = &self.0;
        let info = Arc::new(info);
        let (stop, stopped) = oneshot::channel();
        let fence = inner.fences.open(info.lease.clone(), info.token, inner.runtime.clone());
        let shard = OpenShard {
            info: info.clone(),
            fence: fence.clone(),
            asks: inner.asks.shard(info.lease.clone(), info.token),
            stop: Some(stop),
        };
        let before = self.open_shards().insert(info.lease.clone(), shard);
        debug_assert!(
            before.is_none_or(|before| before.info.token < info.token),
            "an ownership of {} opens its shard once",
            info.lease
        );
        let handler = inner.handler.clone();
        let opened = match handler.confirms_end() {
            true => Reply::ConfirmsEnd,
            false => Reply::Done,
        };
        let this = self.clone();
        Box::pin(async move {
            let (lease, token) = (info.lease.clone(), info.token);
            // A panic may come from making the future as well as from running it.
            let run = catch(async move { handler.open(info, fence).await });
            let run = this.0.polls.watch(lease.clone(), run);
            let result = call_until(stopped, run).await;
            if !matches!(result, Some(Ok(Ok(())))) {
                // What did not open is not closed either.
                this.take_open(&lease, token);
                this.0.fences.close(&lease, token);
            }
            outcome(result, opened)
        })
    }

    /// Removes a shard from the open shards of this ownership.
    fn take_open(&self, lease: &LeaseKey, token: FencingToken) -> Option<OpenShard> {
        let mut open = self.open_shards();
        match open.get(lease) {
            Some(shard) if shard.info.token == token => open.remove(lease),
            _ => None,
        }
    }

    fn deliver(&self, delivery: Delivery) -> BoxFuture<'static, Outcome> {
        let (lease, batch) = (delivery.lease.clone(), delivery.batch);
        let inner = &self.0;
        let shard = lease.to_shard();
        let Some(fetched) = inner.store.batch(&shard, batch) else {
            return gone(format!("the records of {batch}"));
        };
        if let Some(after) = delivery.after {
            inner.store.processed_through(&shard, after);
        }
        let (stop, stopped) = oneshot::channel();
        let (token, after) = (delivery.token, delivery.after);
        let Some((call, receipt, settled)) = self.call(delivery, fetched, stop) else {
            return gone(format!("shard {lease} open under token {}", token.0));
        };
        let given = (call.fetched.clone(), call.first);
        let letters = self.letters(&call, after, receipt.clone());
        let single = match call.records() {
            [record] => Some(record.position),
            _ => None,
        };
        if let (Some(settled), Some(record)) = (settled, single) {
            let alone = Alone { call, receipt, settled, letters, stopped };
            return self.deliver_alone(shard, record, alone);
        }
        let handler = inner.handler.clone();
        let this = self.clone();
        Box::pin(async move {
            if !call.fence.is_valid() {
                return EXPIRED;
            }
            let attempt = Attempt::new(&this.0.meter, &this.0.runtime, &call);
            let run = async move {
                match call.is_empty() {
                    true => Ok(Ok(Ack::All)),
                    false => attempt.around(catch(async move { handler.process(call).await })).await,
                }
            };
            let run = this.0.polls.watch(lease, letters.before(run));
            match call_with_letters(stopped, run).await {
                Err(detail) => refused(Why::HandlerFailed, detail),
                Ok(result) => blame(this.delivered(&shard, batch, given, receipt, result), single),
            }
        })
    }

    /// The handler's batch with its receipt, and the waiter for a record handed over alone. Absent: the shard is not
    /// open under this token.
    fn call(
        &self, delivery: Delivery, fetched: Arc<Fetched>, stop: oneshot::Sender<Stop>,
    ) -> Option<(Batch, Receipt, Option<Settled>)> {
        let Delivery { lease, token, batch, .. } = delivery;
        let first = fetched.first_after(delivery.after);
        let end = match delivery.alone {
            true => fetched.records.len().min(first + 1),
            false => fetched.records.len(),
        };
        debug_assert!(first <= end, "records before {first} are processed, and the batch ends at {end}");
        let mut open = self.open_shards();
        let open = open.get_mut(&lease).filter(|open| open.info.token == token)?;
        self.0.fences.believe(&lease, token, delivery.valid_until);
        open.stop = Some(stop);
        let last = fetched.records.get(..end).and_then(<[Record]>::last);
        let last = last.map(|record| record.position).unwrap_or_default();
        let (receipt, settled) = if delivery.alone && first < end {
            let (receipt, settled) = Receipt::of_one(batch, last, open.asks.clone());
            (receipt, Some(settled))
        } else {
            (Receipt::new(batch, last, open.asks.clone()), None)
        };
        let call = Batch {
            shard: open.info.clone(),
            first,
            end,
            fetched,
            attempt: delivery.attempt,
            fence: open.fence.clone(),
            batch,
            receipt: receipt.clone(),
        };
        Some((call, receipt, settled))
    }

    /// What a handler has made of a batch.
    fn delivered(
        &self, shard: &ShardId, batch: OpId, (fetched, first): (Arc<Fetched>, usize), receipt: Receipt,
        result: Called<Ack>,
    ) -> Outcome {
        let inner = &self.0;
        let ack = match result {
            Some(Ok(Ok(ack))) => ack,
            other => {
                receipt.answered();
                return outcome(other.map(|result| result.map(|result| result.map(drop))), Reply::Done);
            }
        };
        let given = fetched.records.get(first..).unwrap_or_default();
        let ack = match ack {
            Ack::UpTo(position) if fetched.unordered && fetched.is_last(position) => Ack::All,
            Ack::UpTo(position) if fetched.unordered => {
                receipt.answered();
                let found = format!("{NOT_IN_ORDER}, found that it is done up to {position}");
                return refused(Why::HandlerFailed, found);
            }
            ack => ack,
        };
        match ack {
            Ack::Later => {
                // Before the receipt: an immediate acknowledgement must find the batch in the store.
                inner.store.keep(shard, batch);
                match receipt.keep() {
                    Keeping::Kept | Keeping::Acknowledged => return Outcome::Applied(Reply::Kept),
                    Keeping::Dropped => {}
                }
                inner.store.keep_not(shard, batch);
                refused(Why::HandlerFailed, DROPPED.to_owned())
            }
            Ack::UpTo(position) => {
                receipt.answered();
                let done = given.partition_point(|record| record.position <= position);
                count_processed(&inner.meter, given.get(..done).unwrap_or_default());
                if done == given.len() {
                    inner.store.processed(shard, batch);
                } else {
                    inner.store.processed_through(shard, position);
                }
                Outcome::Applied(Reply::ProcessedThrough(position))
            }
            Ack::All => {
                receipt.answered();
                inner.store.processed(shard, batch);
                count_processed(&inner.meter, given);
                Outcome::Applied(Reply::Processed)
            }
        }
    }

    /// The handler acknowledges as many kept batches as possible.
    fn flush(
        &self, lease: LeaseKey, token: FencingToken, why: FlushReason, deadline: Mono,
    ) -> BoxFuture<'static, Outcome> {
        let (stop, stopped) = oneshot::channel();
        let info = {
            let mut open = self.open_shards();
            let Some(open) = open.get_mut(&lease).filter(|open| open.info.token == token) else {
                return gone(format!("shard {lease} open under token {}", token.0));
            };
            open.stop = Some(stop);
            open.info.clone()
        };
        let flush = Flush::new(why, deadline, self.0.runtime.clone());
        let (handler, this) = (self.0.handler.clone(), self.clone());
        Box::pin(async move {
            let run = catch(async move { handler.flush(info, flush).await });
            let result = call_until(stopped, this.0.polls.watch(lease, run)).await;
            outcome(result, Reply::Done)
        })
    }

    /// An ownership ends, whatever becomes of the handler's own close.
    fn close(
        &self, id: OpId, lease: &LeaseKey, token: FencingToken, reason: EndReason,
    ) -> BoxFuture<'static, Outcome> {
        let inner = &self.0;
        let open = self.take_open(lease, token);
        inner.store.close(&lease.to_shard(), id);
        inner.fences.close(lease, token);
        let Some(open) = open else {
            return ready(Outcome::Applied(Reply::Done));
        };
        let (handler, polls, lease) = (inner.handler.clone(), inner.polls.clone(), lease.clone());
        Box::pin(async move {
            let run = catch(async move { handler.close(open.info, reason).await });
            let run = polls.watch(lease, run).await;
            outcome(Some(run.map(Ok)), Reply::Done)
        })
    }

    /// Stops the running call.
    fn stop(&self, lease: &LeaseKey, token: FencingToken, why: Stop) -> BoxFuture<'static, Outcome> {
        let mut open = self.open_shards();
        if let Some(open) = open.get_mut(lease).filter(|open| open.info.token == token) {
            if let Stop::Aborted = why {
                self.0.fences.revoke(lease);
            }
            if let Some(stop) = open.stop.take() {
                // A call that has ended does not listen any more.
                let _ = stop.send(why);
            }
        }
        ready(Outcome::Applied(Reply::Done))
    }
}

/// The lease may be another worker's by now: the machine may have stood still since the engine asked for this.
const EXPIRED: Outcome = Outcome::NotSent(Cause::Cancelled);

/// The reason for refusing `Ack::Later` without a kept batch or receipt.
const DROPPED: &str = "the handler returned `Ack::Later` and dropped the batch; keep the batch, or a receipt of it, until it is \
                       acknowledged";

/// No position can count processed records out of order.
const NOT_IN_ORDER: &str = "expected the handler to process the whole batch, since its records are not in the order of their sequence numbers";

/// The parts of [`ConsumerOp::Deliver`], or of [`ConsumerOp::DeliverOne`].
struct Delivery {
    lease: LeaseKey,
    token: FencingToken,
    batch: OpId,
    after: Option<Position>,
    /// Only the first record.
    alone: bool,
    attempt: u32,
    valid_until: Mono,
}

impl Port<ConsumerOp> for Consumer {
    /// The port is updated at once, before the returned future runs. An `Abort` then finds its call even before the
    /// call has begun to run.
    fn execute(&self, id: OpId, op: ConsumerOp) -> BoxFuture<'static, Outcome> {
        let alone = matches!(op, ConsumerOp::DeliverOne { .. });
        match op {
            ConsumerOp::Open { lease, token, from, since } => {
                let info = ShardInfo { shard: lease.to_shard(), lease, token, from, since };
                self.open(info)
            }
            ConsumerOp::Deliver { lease, token, batch, after, attempt, valid_until }
            | ConsumerOp::DeliverOne { lease, token, batch, after, attempt, valid_until } => {
                self.deliver(Delivery { lease, token, batch, after, alone, attempt, valid_until })
            }
            ConsumerOp::SetAside { lease, token, batch, record, attempts, detail, valid_until } => {
                self.set_aside(Aside { lease, token, batch, record, attempts, detail, valid_until })
            }
            ConsumerOp::Flush { lease, token, why, until } => self.flush(lease, token, why, until),
            ConsumerOp::Abort { lease, token } => self.stop(&lease, token, Stop::Aborted),
            ConsumerOp::TimeOut { lease, token, after } => self.stop(&lease, token, Stop::TimedOut(after)),
            ConsumerOp::Close { lease, token, reason } => self.close(id, &lease, token, reason),
        }
    }
}

fn ready(outcome: Outcome) -> BoxFuture<'static, Outcome> {
    Box::pin(std::future::ready(outcome))
}

fn outcome(result: Called<()>, good: Reply) -> Outcome {
    match result {
        None => Outcome::Unknown(Cause::Cancelled),
        Some(Ok(Ok(()))) => Outcome::Applied(good),
        Some(Ok(Err(detail))) => refused(Why::HandlerFailed, detail),
        Some(Err(Panicked(message))) => {
            refused(Why::HandlerFailed, format!("the handler panicked: {message}"))
        }
    }
}

fn gone(what: String) -> BoxFuture<'static, Outcome> {
    ready(refused(Why::Gone, format!("expected {what} to be there, found nothing")))
}

fn refused(why: Why, detail: String) -> Outcome {
    Outcome::Refused(Refusal { why, current: None, detail })
}

#[cfg(all(test, feature = "tokio-runtime"))]
#[path = "consumer_tests.rs"]
mod tests;
