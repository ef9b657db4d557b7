//! One record at a time: handed over alone, or set aside.

use super::letters::Letters;
use super::stop::{Stop, call_until, call_with_letters};
use super::{Consumer, EXPIRED, gone, outcome, refused};
use crate::attempt::{Attempt, count_processed};
use crate::batch::Batch;
use crate::catch::{Panicked, catch};
use crate::dead_letter::Letter;
use crate::handler::{Ack, AnyHandler, Flush};
use crate::metrics;
use crate::receipt::{Keeping, Receipt, Settled};
use crate::runtime::BoxFuture;
use leasehold_engine::ids::{FencingToken, LeaseKey, OpId, ShardId};
use leasehold_engine::input::{Outcome, Refusal, Reply, Why};
use leasehold_engine::output::FlushReason;
use leasehold_engine::position::Position;
use leasehold_engine::time::Mono;
use std::sync::Arc;
use tokio::sync::oneshot;

/// A record that is handed over alone.
pub(super) struct Alone {
    pub(super) call: Batch,
    pub(super) receipt: Receipt,
    /// Hears of the receipt.
    pub(super) settled: Settled,
    /// What is to be stored before it.
    pub(super) letters: Letters,
    pub(super) stopped: oneshot::Receiver<Stop>,
}

/// The parts of [`ConsumerOp::SetAside`](leasehold_engine::output::ConsumerOp::SetAside).
pub(super) struct Aside {
    pub(super) lease: LeaseKey,
    pub(super) token: FencingToken,
    pub(super) batch: OpId,
    pub(super) record: Position,
    pub(super) attempts: u32,
    pub(super) detail: String,
    pub(super) valid_until: Mono,
}

/// Marks a failure of the handler with this record alone.
pub(super) fn blame(outcome: Outcome, record: Option<Position>) -> Outcome {
    match (outcome, record) {
        (Outcome::Refused(Refusal { why: Why::HandlerFailed, current, detail }), Some(record)) => {
            Outcome::Refused(Refusal { why: Why::RecordFailed(record), current, detail })
        }
        (outcome, _) => outcome,
    }
}

impl Consumer {
    /// Runs the handler with one record. If the handler keeps the record, the worker calls `flush` and waits for the
    /// acknowledgement.
    pub(super) fn deliver_alone(
        &self, shard: ShardId, record: Position, alone: Alone,
    ) -> BoxFuture<'static, Outcome> {
        let Alone { call, receipt, settled, letters, stopped } = alone;
        let (handler, this) = (self.0.handler.clone(), self.clone());
        let flush = Flush::new(FlushReason::Full, Mono::NEVER, self.0.runtime.clone());
        Box::pin(async move {
            if !call.fence.is_valid() {
                return EXPIRED;
            }
            let lease = call.shard.lease.clone();
            let fetched = call.fetched.clone();
            let attempt = Attempt::new(&this.0.meter, &this.0.runtime, &call);
            let run = attempt.around(process_alone(handler, (call, receipt), record, flush, settled));
            let run = this.0.polls.watch(lease, letters.before(run));
            let result = match call_with_letters(stopped, run).await {
                // The record is not to blame for that.
                Err(detail) => return refused(Why::HandlerFailed, detail),
                Ok(result) => result,
            };
            if matches!(result, Some(Ok(Ok(())))) {
                this.0.store.processed_through(&shard, record);
                let found = fetched.records.iter().find(|known| known.position == record);
                count_processed(&this.0.meter, found.map_or(&[], std::slice::from_ref));
            }
            blame(outcome(result, Reply::ProcessedThrough(record)), Some(record))
        })
    }

    /// Gives a record to the dead-letter sink. Without a sink, the event is the only remnant of the record.
    pub(super) fn set_aside(&self, aside: Aside) -> BoxFuture<'static, Outcome> {
        let Aside { lease, token, batch, record: at, attempts, detail, valid_until } = aside;
        let inner = &self.0;
        let shard = lease.to_shard();
        let fetched = inner.store.batch(&shard, batch);
        let known =
            fetched.and_then(|fetched| fetched.records.iter().find(|known| known.position == at).cloned());
        let Some(record) = known else {
            return gone(format!("the record {at} of {batch}"));
        };
        let (stop, stopped) = oneshot::channel();
        let (info, fence) = {
            let mut open = self.open_shards();
            let Some(open) = open.get_mut(&lease).filter(|open| open.info.token == token) else {
                return gone(format!("shard {lease} open under token {}", token.0));
            };
            inner.fences.believe(&lease, token, valid_until);
            open.stop = Some(stop);
            (open.info.clone(), open.fence.clone())
        };
        let letter = Letter { record, shard: info, attempts, error: detail };
        let (sink, this) = (inner.dead_letters.clone(), self.clone());
        Box::pin(async move {
            if !fence.is_valid() {
                return EXPIRED;
            }
            let run = catch(async move {
                match sink {
                    Some(sink) => sink.store(letter).await,
                    None => Ok(()),
                }
            });
            let result = call_until(stopped, this.0.polls.watch(lease, run)).await;
            if matches!(result, Some(Ok(Ok(())))) {
                this.0.store.processed_through(&shard, at);
                this.0.meter.count(&metrics::SET_ASIDE, ["failed".into()], 1);
            }
            outcome(result, Reply::ProcessedThrough(at))
        })
    }
}

async fn process_alone(
    handler: Arc<dyn AnyHandler>, (call, receipt): (Batch, Receipt), record: Position, flush: Flush,
    settled: Settled,
) -> Result<Result<(), String>, Panicked> {
    let info = call.shard.clone();
    let process = handler.clone();
    let ack = match catch(async move { process.process(call).await }).await? {
        Ok(ack) => ack,
        Err(detail) => {
            receipt.answered();
            return Ok(Err(detail));
        }
    };
    if ack != Ack::Later {
        receipt.answered();
    }
    match ack {
        Ack::All => return Ok(Ok(())),
        Ack::UpTo(position) if position >= record => return Ok(Ok(())),
        Ack::UpTo(position) => {
            return Ok(Err(format!(
                "expected the handler to process the one record that it was given, {record}, found that it is done up to {position}"
            )));
        }
        Ack::Later => {}
    }
    if receipt.keep() == Keeping::Dropped {
        return Ok(Err(super::DROPPED.to_owned()));
    }
    let flushed = catch(async move { handler.flush(info, flush).await }).await?;
    if let Err(detail) = flushed {
        return Ok(Err(detail));
    }
    Ok(settled.await)
}
