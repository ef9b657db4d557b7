//! Receipts: a handler that keeps a batch acknowledges the batch later through a receipt.

use crate::asks::ShardAsks;
use leasehold_engine::ids::OpId;
use leasehold_engine::position::Position;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::{Context, Poll};
use tokio::sync::oneshot;

/// Acknowledges one batch, or gives it back: from any task or thread, at any time. Clones are receipts of the same batch.
///
/// A handler that returns [`Ack::Later`](crate::Ack::Later) keeps the [`Batch`](crate::Batch), or a receipt of the
/// batch, until the records are processed. Batches may be acknowledged in any order: the checkpoint follows the
/// longest run without a gap. If the batch and all its receipts are dropped without an acknowledgement, the batch is
/// given back: the shard is read and handed over again from the batch on, after a pause, and an event tells the
/// reason.
///
/// After the shard was lost or closed, a receipt has no effect.
#[derive(Clone)]
pub struct Receipt(Arc<Ticket>);

/// Receives the acknowledgement of one record, or the reason for giving the record back.
type Hears = oneshot::Sender<Result<(), String>>;

/// What all receipts of a batch share.
struct Ticket {
    batch: OpId,
    last: Position,
    asks: ShardAsks,
    state: Mutex<State>,
    /// Present if the batch is a single record: receives the record's end.
    alone: Option<Mutex<Option<Hears>>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// The handler has not returned.
    Handling,
    /// The handler has returned, and the batch is to be acknowledged later.
    Kept,
    /// The batch was acknowledged or given back, or the handler has answered for the batch.
    Settled,
}

/// The state of a batch at the return of a handler with `Ack::Later`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Keeping {
    Kept,
    /// It was acknowledged before the handler returned.
    Acknowledged,
    /// Nothing is left that could acknowledge it.
    Dropped,
}

impl Receipt {
    pub(crate) fn new(batch: OpId, last: Position, asks: ShardAsks) -> Self {
        Self(Arc::new(Ticket { batch, last, asks, state: Mutex::new(State::Handling), alone: None }))
    }

    /// A receipt of one record of a batch, and the receiver of the record's end.
    pub(crate) fn of_one(batch: OpId, record: Position, asks: ShardAsks) -> (Self, Settled) {
        let (sender, receiver) = oneshot::channel();
        let receipt = Self(Arc::new(Ticket {
            batch,
            last: record,
            asks,
            state: Mutex::new(State::Handling),
            alone: Some(Mutex::new(Some(sender))),
        }));
        (receipt, Settled(receiver))
    }

    /// All records of the batch are processed, for good. Saying it again changes nothing.
    pub fn acknowledge(&self) {
        if self.0.settle() {
            match &self.0.alone {
                None => self.0.asks.acknowledged(self.0.batch),
                Some(_) => {
                    self.0.asks.processed(self.0.batch, self.0.last);
                    self.0.tell(Ok(()));
                }
            }
        }
    }

    /// Gives the batch back: all records from the batch on are handed over again, after a pause. An event tells
    /// `why`.
    pub fn give_back(&self, why: impl fmt::Display) {
        if self.0.settle() {
            self.0.give_back(why.to_string());
        }
    }

    /// Whether it was acknowledged or given back.
    pub fn is_settled(&self) -> bool {
        *self.0.state() == State::Settled
    }

    /// A receipt without weight: a batch can be dropped in spite of a weak receipt.
    pub(crate) fn downgrade(&self) -> WeakReceipt {
        WeakReceipt(Arc::downgrade(&self.0))
    }

    pub(crate) fn last(&self) -> Position {
        self.0.last
    }

    pub(crate) fn asks(&self) -> &ShardAsks {
        &self.0.asks
    }

    /// The handler wants to keep the batch. The call consumes the worker's own receipt.
    pub(crate) fn keep(self) -> Keeping {
        let mut state = self.0.state();
        match *state {
            State::Settled => Keeping::Acknowledged,
            _ if Arc::strong_count(&self.0) == 1 => {
                *state = State::Settled;
                Keeping::Dropped
            }
            // Should the last foreign receipt be dropped at this moment, then this receipt gives the batch back.
            _ => {
                *state = State::Kept;
                Keeping::Kept
            }
        }
    }

    /// The handler has answered for the batch.
    pub(crate) fn answered(&self) {
        *self.0.state() = State::Settled;
    }
}

/// A receipt for as long as a full receipt exists.
pub(crate) struct WeakReceipt(Weak<Ticket>);

impl WeakReceipt {
    /// The receipt, if a full receipt exists and the batch was neither acknowledged nor given back.
    pub(crate) fn unsettled(&self) -> Option<Receipt> {
        let receipt = Receipt(self.0.upgrade()?);
        (!receipt.is_settled()).then_some(receipt)
    }
}

/// Waits until one record was acknowledged, or given back for a reason.
pub(crate) struct Settled(oneshot::Receiver<Result<(), String>>);

impl Future for Settled {
    type Output = Result<(), String>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        Pin::new(&mut self.0).poll(cx).map(|heard| {
            let dropped = |_| Err("the record was dropped without an acknowledgement".to_owned());
            heard.unwrap_or_else(dropped)
        })
    }
}

impl fmt::Debug for Receipt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Receipt")
            .field("last", &self.0.last)
            .field("state", &*self.0.state())
            .finish_non_exhaustive()
    }
}

impl Ticket {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn give_back(&self, why: String) {
        match self.alone {
            None => self.asks.give_back(self.batch, why),
            Some(_) => self.tell(Err(why)),
        }
    }

    /// Tells whether the one record was acknowledged.
    fn tell(&self, what: Result<(), String>) {
        let hears = self.alone.as_ref().and_then(|hears| {
            let mut hears = hears.lock().unwrap_or_else(PoisonError::into_inner);
            hears.take()
        });
        if let Some(hears) = hears {
            // The shard may have been lost meanwhile.
            let _ = hears.send(what);
        }
    }

    /// Whether this settles it.
    fn settle(&self) -> bool {
        std::mem::replace(&mut *self.state(), State::Settled) != State::Settled
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        if *self.state() == State::Kept {
            match self.alone {
                None => self.asks.dropped(self.batch),
                Some(_) => self.tell(Err("the record was dropped without an acknowledgement".to_owned())),
            }
        }
    }
}
