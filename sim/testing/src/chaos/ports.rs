//! The table and the stream of a worker in a world: every request goes to the world for an answer.

use super::services::Carry;
use crate::harness;
use leasehold::OpId;
use leasehold::engine::input::{Outcome, Reply};
use leasehold::engine::output::{StreamOp, TableOp};
use leasehold::internals::{Port, Store};
use leasehold::runtime::BoxFuture;

/// An answer on its way to a worker.
pub(crate) type Answered = (Outcome, Carry);

/// A worker's operation.
#[derive(Clone, Debug)]
pub(crate) enum Asked {
    Table(TableOp),
    /// With the worker's iterator, if the operation needs an iterator.
    Stream(StreamOp, Option<String>),
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
        let iterator = match &op {
            StreamOp::GetRecords { via, .. } => self.store.iterator(*via),
            _ => None,
        };
        let answer = self.outbox.ask(Asked::Stream(op.clone(), iterator));
        let store = self.store.clone();
        Box::pin(async move {
            let (outcome, carry) = answer.await;
            if let Outcome::Applied(Reply::Shards(page)) = &outcome {
                for shard in &page.shards {
                    store.learn_range(&shard.id, shard.range, id);
                }
            }
            match (op, carry) {
                (StreamOp::GetIterator { shard, .. }, Carry::Iterator(text)) => {
                    store.keep_iterator(&shard, id, text);
                    outcome
                }
                (StreamOp::GetRecords { shard, .. }, Carry::Records(answer)) => {
                    Outcome::Applied(Reply::Records(store.take_in(&shard, id, answer)))
                }
                _ => outcome,
            }
        })
    }

    fn forget(&self, id: OpId) {
        self.store.forget(id);
    }
}
