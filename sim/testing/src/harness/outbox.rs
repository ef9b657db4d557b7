//! Requests on their way from a worker to its world.

use leasehold::runtime::BoxFuture;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::{Notify, oneshot};

/// A request sent by a worker.
#[derive(Debug)]
pub struct Sent<Q, A> {
    /// What is asked.
    pub request: Q,
    /// Where the answer goes.
    pub reply: oneshot::Sender<A>,
}

/// Requests sent by a process, and not yet fetched by the world. Clones are handles on the same requests.
#[derive(Debug)]
pub struct Outbox<Q, A> {
    sent: Arc<Mutex<Vec<Sent<Q, A>>>>,
    wakes: Arc<Notify>,
}

impl<Q, A> Clone for Outbox<Q, A> {
    fn clone(&self) -> Self {
        Self { sent: self.sent.clone(), wakes: self.wakes.clone() }
    }
}

impl<Q, A: Send + 'static> Outbox<Q, A> {
    /// An outbox. Every request wakes the world.
    pub fn new(wakes: Arc<Notify>) -> Self {
        Self { sent: Arc::default(), wakes }
    }

    /// Sends a request, and waits for the answer. If the answer never comes, the caller gives up the request.
    pub fn ask(&self, request: Q) -> BoxFuture<'static, A> {
        let (reply, answer) = oneshot::channel();
        self.sent.lock().unwrap_or_else(PoisonError::into_inner).push(Sent { request, reply });
        self.wakes.notify_one();
        Box::pin(async move {
            match answer.await {
                Ok(answer) => answer,
                Err(_) => std::future::pending().await,
            }
        })
    }

    /// The requests since the last call.
    pub fn take(&self) -> Vec<Sent<Q, A>> {
        std::mem::take(&mut *self.sent.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
