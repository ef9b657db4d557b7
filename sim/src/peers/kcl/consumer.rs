//! One shard, from the take of its lease to the loss of the lease or the end of the shard.

use super::super::sdk::{Failure, after};
use super::Worker;
use super::lease::SHARD_END;
use super::renewer::Held;
use leasehold_engine::config::InitialPosition;
use leasehold_engine::ids::ShardId;
use leasehold_engine::output::{EndReason, IteratorFrom};
use std::cell::Cell;
use std::rc::Rc;

const PARENT_POLL_US: u64 = 10_000_000;

/// The reason of a consumer's end. A reason later in this list replaces an earlier reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Reason {
    Requested,
    ShardEnd,
    LeaseLost,
}

/// The thread of a shard, and its messages from other threads.
pub(super) struct Consumer {
    pub held: Rc<Held>,
    pub shard: ShardId,
    pub reason: Cell<Option<Reason>>,
    pub over: Cell<bool>,
}

impl Consumer {
    pub(super) fn new(held: Rc<Held>) -> Self {
        let shard = held.lease.borrow().key.clone();
        Self { held, shard, reason: Cell::new(None), over: Cell::new(false) }
    }

    pub(super) fn end(&self, reason: Reason) {
        self.reason.set(self.reason.get().max(Some(reason)));
    }

    pub(super) fn is_to_end(&self) -> bool {
        self.reason.get().is_some()
    }
}

impl Worker {
    pub(super) async fn consume(self: Rc<Self>, consumer: Rc<Consumer>) {
        if consumer.held.lease.borrow().has_ended() {
            consumer.end(Reason::ShardEnd);
        } else {
            // The worker notices neither a loss nor a stop before the parents have ended.
            self.block_on_parents(&consumer).await;
            if !consumer.is_to_end() {
                self.process(&consumer).await;
            }
            if consumer.reason.get() == Some(Reason::Requested) {
                self.hand_over(&consumer.held).await;
                self.renewer.forget(&consumer.held);
            }
        }
        consumer.over.set(true);
    }

    /// Parents without a row do not count.
    async fn block_on_parents(&self, consumer: &Consumer) {
        let parents = consumer.held.lease.borrow().parents.clone();
        'again: loop {
            for parent in &parents {
                match self.table.lease(parent).await {
                    Ok(lease) if lease.as_ref().is_none_or(|lease| lease.has_ended()) => {}
                    _ => {
                        self.host.sleep(PARENT_POLL_US).await;
                        continue 'again;
                    }
                }
            }
            return;
        }
    }

    async fn process(self: &Rc<Self>, consumer: &Rc<Consumer>) {
        let (shard, token) = (&consumer.shard, consumer.held.token);
        let Some(mut from) = self.start(consumer).await else {
            return;
        };
        self.kinesis.open(shard, token).await;
        let mut feed = self.feed();
        let children = loop {
            if consumer.is_to_end() {
                break None;
            }
            let asked_us = self.host.mono_us();
            let read = self.read(consumer, &mut feed, from).await;
            let failure = read.as_ref().err().copied();
            match read {
                Ok(batch) => {
                    if let Some(last) = batch.fetched.last {
                        from = IteratorFrom::After(last);
                        let bytes = consumer.held.bytes.get() + batch.fetched.bytes;
                        consumer.held.bytes.set(bytes);
                        self.kinesis.process(shard, token, batch.op).await;
                        let sequence = last.sequence.to_string();
                        // A failure is logged; the next batch follows regardless.
                        let _ = self.renewer.checkpoint(&consumer.held, &sequence).await;
                    }
                    if let Some(children) = batch.fetched.end {
                        break Some(children);
                    }
                }
                // A missing shard counts as ended, without children.
                Err(Failure::NotFound) => break Some(Vec::new()),
                Err(_) => {}
            }
            let next_us = self.next_read_us(&feed, asked_us, failure);
            let pause = next_us.saturating_sub(self.host.mono_us());
            self.host.until(pause, || consumer.is_to_end()).await;
        };
        let reason = match children {
            Some(children) => {
                consumer.end(Reason::ShardEnd);
                // On success, `end_shard` itself tells the application of the shard's end.
                if self.end_shard(consumer, &children).await {
                    return;
                }
                consumer.end(Reason::LeaseLost);
                self.renewer.forget(&consumer.held);
                EndReason::LeaseLost
            }
            None if consumer.reason.get() == Some(Reason::LeaseLost) => EndReason::LeaseLost,
            None if consumer.held.hand_over_by.get().is_some() => EndReason::HandedOver,
            None => EndReason::Shutdown,
        };
        self.kinesis.close(shard, token, reason).await;
    }

    /// The place to begin, by another read of the row. `None`: the consumer is to end.
    async fn start(&self, consumer: &Consumer) -> Option<IteratorFrom> {
        while !consumer.is_to_end() {
            if let Ok(Some(lease)) = self.table.lease(&consumer.shard).await {
                return match lease.checkpoint.as_str() {
                    "TRIM_HORIZON" => Some(IteratorFrom::TrimHorizon),
                    "LATEST" => Some(IteratorFrom::Latest),
                    "AT_TIMESTAMP" => match self.settings.initial_position {
                        InitialPosition::AtTimestamp(at) => Some(IteratorFrom::AtTimestamp(at)),
                        _ => None,
                    },
                    SHARD_END => None,
                    sequence => after(sequence).ok(),
                };
            }
            self.host.sleep(super::BACKOFF_US).await;
        }
        None
    }
}
