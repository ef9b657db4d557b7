//! The table and the stream of a worker in a world: every request goes to the world for an answer.

use super::services::{Carry, Held};
use crate::harness;
use leasehold::OpId;
use leasehold::engine::input::{Outcome, Reply};
use leasehold::engine::output::{StreamOp, TableOp};
use leasehold::internals::{Cursor, Port, Store};
use leasehold::runtime::BoxFuture;
use leasehold_local_aws::kinesis::Subscription;
use std::sync::Arc;

/// An answer on its way to a worker.
pub(crate) type Answered = (Outcome, Carry);

/// A worker's operation.
#[derive(Clone, Debug)]
pub(crate) enum Asked {
    Table(TableOp),
    /// With the worker's iterator or subscription, if the operation needs one.
    Stream(StreamOp, Option<Held>),
}

/// The way of requests to the world.
pub(crate) type Requests = harness::Outbox<Asked, Answered>;

/// A worker's table.
pub(crate) struct Table(pub(crate) Requests);

impl Port<TableOp> for Table {
    fn execute(&self, _: OpId, op: TableOp) -> BoxFuture<'static, Outcome> {
        let answer = self.0.ask(Asked::Table(op));
        Box::pin(async move { answer.await.0 })
    }
}

/// A worker's stream. Records read from the stream go into the worker's store.
pub(crate) struct Stream {
    pub(crate) outbox: Requests,
    pub(crate) store: Store,
}

impl Port<StreamOp> for Stream {
    fn execute(&self, id: OpId, op: StreamOp) -> BoxFuture<'static, Outcome> {
        let held = match &op {
            StreamOp::GetRecords { via, .. } | StreamOp::NextEvent { via, .. } => {
                self.store.cursor(*via).and_then(held)
            }
            _ => None,
        };
        let answer = self.outbox.ask(Asked::Stream(op.clone(), held));
        let (store, outbox) = (self.store.clone(), self.outbox.clone());
        Box::pin(async move {
            let (mut outcome, mut carry) = answer.await;
            while let Carry::NotYet(subscription) = carry {
                let held = Some(Held::Subscription(subscription));
                (outcome, carry) = outbox.ask(Asked::Stream(op.clone(), held)).await;
            }
            if let Outcome::Applied(Reply::Shards(page)) = &outcome {
                for shard in &page.shards {
                    store.learn_range(&shard.id, shard.range, id);
                }
            }
            match (op, carry) {
                (StreamOp::GetIterator { shard, .. }, Carry::Iterator(text)) => {
                    store.keep_cursor(&shard, id, Cursor::Iterator(text));
                    outcome
                }
                (StreamOp::Subscribe { shard, .. }, Carry::Subscription(subscription)) => {
                    store.keep_cursor(&shard, id, Cursor::Subscription(Arc::new(subscription)));
                    outcome
                }
                (
                    StreamOp::GetRecords { shard, .. } | StreamOp::NextEvent { shard, .. },
                    Carry::Records(answer),
                ) => Outcome::Applied(Reply::Records(store.take_in(&shard, id, answer))),
                _ => outcome,
            }
        })
    }

    fn forget(&self, id: OpId) {
        self.store.forget(id);
    }
}

fn held(cursor: Cursor) -> Option<Held> {
    match cursor {
        Cursor::Iterator(text) => Some(Held::Iterator(text)),
        Cursor::Subscription(kept) => kept.downcast_ref::<Subscription>().cloned().map(Held::Subscription),
    }
}
