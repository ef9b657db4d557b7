//! The table and the stream of a worker in a world: every request goes to the world for an answer.

use super::fault::Service;
use super::services::Carry;
use leasehold::OpId;
use leasehold::engine::input::{Outcome, Reply};
use leasehold::engine::output::{StreamOp, TableOp};
use leasehold::internals::{Port, Store};
use leasehold::runtime::BoxFuture;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::oneshot;

/// An answer on its way to a worker.
pub(crate) type Answered = (Outcome, Carry);

/// A worker's operation.
#[derive(Clone, Debug)]
pub(crate) enum Asked {
    Table(TableOp),
    /// With the worker's iterator, if the operation needs an iterator.
    Stream(StreamOp, Option<String>),
}

impl Asked {
    pub(crate) fn service(&self) -> Service {
        match self {
            Self::Table(_) => Service::Table,
            Self::Stream(..) => Service::Stream,
        }
    }
}

/// A request sent by a worker.
#[derive(Debug)]
pub(crate) struct Request {
    pub(crate) asked: Asked,
    pub(crate) reply: oneshot::Sender<Answered>,
}

/// Requests sent by a process, and not yet fetched by the world. Clones are handles on the same requests.
#[derive(Clone, Debug, Default)]
pub(crate) struct Outbox(Arc<Mutex<Vec<Request>>>);

impl Outbox {
    fn send(&self, asked: Asked) -> oneshot::Receiver<Answered> {
        let (reply, answer) = oneshot::channel();
        let mut sent = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        sent.push(Request { asked, reply });
        answer
    }

    pub(crate) fn take(&self) -> Vec<Request> {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Waits for an answer. If the answer never comes, the driver gives up the request.
async fn answer(answer: oneshot::Receiver<Answered>) -> Answered {
    match answer.await {
        Ok(answered) => answered,
        Err(_) => std::future::pending().await,
    }
}

/// A worker's table.
pub(crate) struct Table(pub(crate) Outbox);

impl Port<TableOp> for Table {
    fn execute(&self, _: OpId, op: TableOp) -> BoxFuture<'static, Outcome> {
        let sent = self.0.send(Asked::Table(op));
        Box::pin(async move { answer(sent).await.0 })
    }
}

/// A worker's stream. Records read from the stream go into the worker's store.
pub(crate) struct Stream {
    pub(crate) outbox: Outbox,
    pub(crate) store: Store,
}

impl Port<StreamOp> for Stream {
    fn execute(&self, id: OpId, op: StreamOp) -> BoxFuture<'static, Outcome> {
        let iterator = match &op {
            StreamOp::GetRecords { via, .. } => self.store.iterator(*via),
            _ => None,
        };
        let sent = self.outbox.send(Asked::Stream(op.clone(), iterator));
        let store = self.store.clone();
        Box::pin(async move {
            let (outcome, carry) = answer(sent).await;
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
