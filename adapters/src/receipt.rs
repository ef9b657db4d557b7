//! Receipts: how a batch that a handler keeps is acknowledged later.

use crate::asks::ShardAsks;
use leasehold_engine::ids::OpId;
use leasehold_engine::position::Position;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

/// Acknowledges one batch, or gives it back: from any task or thread, at any time. Clones are receipts of the same batch.
///
/// A handler that returns [`Ack::Later`](crate::Ack::Later) keeps the [`Batch`](crate::Batch), or a receipt of it, until the
/// records are processed. Batches may be acknowledged in any order: the checkpoint follows the longest run without a gap. If the
/// batch and all its receipts are dropped without an acknowledgement, the batch is given back: it and everything after it is read
/// and handed over again, after a pause, and an event tells of it.
///
/// After the shard was lost or closed, a receipt has no effect.
#[derive(Clone)]
pub struct Receipt(Arc<Ticket>);

/// What all receipts of a batch share.
struct Ticket {
    batch: OpId,
    last: Position,
    asks: ShardAsks,
    state: Mutex<State>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// The handler has not returned.
    Handling,
    /// The handler has returned, and the batch is to be acknowledged later.
    Kept,
    /// It was acknowledged or given back, or its handler has answered for it.
    Settled,
}

/// What became of a batch that a handler wants to keep.
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
        Self(Arc::new(Ticket {
            batch,
            last,
            asks,
            state: Mutex::new(State::Handling),
        }))
    }

    /// All records of the batch are processed, for good. Saying it again changes nothing.
    pub fn acknowledge(&self) {
        if self.0.settle() {
            self.0.asks.acknowledged(self.0.batch);
        }
    }

    /// The batch will not be processed: it and everything after it is handed over again, after a pause. `why` is told in an event.
    pub fn give_back(&self, why: impl fmt::Display) {
        if self.0.settle() {
            self.0.asks.give_back(self.0.batch, why.to_string());
        }
    }

    /// Whether it was acknowledged or given back.
    pub fn is_settled(&self) -> bool {
        *self.0.state() == State::Settled
    }

    /// A receipt that does not count: the batch is given back in spite of it.
    pub(crate) fn downgrade(&self) -> WeakReceipt {
        WeakReceipt(Arc::downgrade(&self.0))
    }

    pub(crate) fn last(&self) -> Position {
        self.0.last
    }

    pub(crate) fn asks(&self) -> &ShardAsks {
        &self.0.asks
    }

    /// The handler wants to keep the batch. This receipt is the worker's own, and is given up with that.
    pub(crate) fn keep(self) -> Keeping {
        let mut state = self.0.state();
        match *state {
            State::Settled => Keeping::Acknowledged,
            _ if Arc::strong_count(&self.0) == 1 => {
                *state = State::Settled;
                Keeping::Dropped
            }
            // Should the last other one be dropped at this moment, then this one gives the batch back.
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

/// A receipt for as long as there is another.
pub(crate) struct WeakReceipt(Weak<Ticket>);

impl WeakReceipt {
    /// The receipt, if there is another one and the batch was neither acknowledged nor given back.
    pub(crate) fn unsettled(&self) -> Option<Receipt> {
        let receipt = Receipt(self.0.upgrade()?);
        (!receipt.is_settled()).then_some(receipt)
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

    /// Whether this settles it.
    fn settle(&self) -> bool {
        std::mem::replace(&mut *self.state(), State::Settled) != State::Settled
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        if *self.state() == State::Kept {
            self.asks.dropped(self.batch);
        }
    }
}
