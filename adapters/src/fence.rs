//! Fences: a handler asks its fence whether the handler may still act for the shard.

use crate::clocks::{self, Clocks};
use crate::runtime::Runtime;
use leasehold_engine::ids::{FencingToken, LeaseKey};
use leasehold_engine::position::Position;
use leasehold_engine::time::{Mono, Span};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::watch;

/// The right of one owner to act for a shard, for as long as the lease surely lasts.
///
/// A lease is a promise about time: another worker may already process the shard of a handler that stalled for longer
/// than the lease lasts. Look at [`is_valid`](Fence::is_valid) right before a side effect, and send
/// [`token`](Fence::token) along to a sink that can refuse older tokens: only a token is safe against every stall.
///
/// Each call of a fence compares the monotonic clock and the wall clock. A fence notices a suspension of the machine
/// as soon as one of the clocks does: see [the guide](crate::guide::acknowledging#suspended-machines).
#[derive(Clone)]
pub struct Fence {
    belief: Arc<Belief>,
    clocks: Clocks,
    runtime: Arc<dyn Runtime>,
}

struct Belief {
    token: FencingToken,
    /// In microseconds of the runtime's monotonic clock.
    valid_until: AtomicU64,
    /// The ownership has ended: nothing more becomes durable.
    is_over: AtomicBool,
    /// The progress known to be durable in the lease table.
    durable: watch::Sender<Durable>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Durable {
    through: Option<Position>,
    /// The end of the shard is in the table.
    end: bool,
}

/// The worker lost or closed the shard before progress was durable: the next owner may be handed the records again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "expected the checkpoint to be written, found the shard lost or closed before that; the next owner may process the records again"
)]
#[non_exhaustive]
pub struct NotDurable;

impl Fence {
    /// Tells whether this worker certainly holds the lease at this moment.
    pub fn is_valid(&self) -> bool {
        self.remaining() > Span::ZERO
    }

    /// For how long the lease is known to be ours, from now. Grows with every renewal.
    pub fn remaining(&self) -> Span {
        let valid_until = Mono(self.belief.valid_until.load(Ordering::Acquire));
        let (now, wall) = clocks::read(&*self.runtime);
        let left = valid_until.since(now);
        Span(left.0.saturating_sub(self.clocks.missed(now, wall).0))
    }

    /// Waits until everything up to here is in the lease table.
    pub(crate) async fn durable(&self, through: Position) -> Result<(), NotDurable> {
        let mut durable = self.belief.durable.subscribe();
        let wanted = |durable: &Durable| durable.end || durable.through >= Some(through);
        loop {
            if wanted(&durable.borrow_and_update()) {
                return Ok(());
            }
            if self.belief.is_over.load(Ordering::Acquire) || durable.changed().await.is_err() {
                return Err(NotDurable);
            }
        }
    }

    /// Grows with every change of the shard's owner.
    pub fn token(&self) -> u64 {
        self.belief.token.0
    }
}

impl fmt::Debug for Fence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Fence").field("token", &self.token()).field("remaining", &self.remaining()).finish()
    }
}

impl Belief {
    /// The ownership is over.
    fn end(&self) {
        self.valid_until.store(0, Ordering::Release);
        self.is_over.store(true, Ordering::Release);
        // Wakes those who wait.
        self.durable.send_modify(|_| {});
    }
}

/// The fences of all open shards.
#[derive(Clone, Default)]
pub(crate) struct Fences {
    beliefs: Arc<Mutex<BTreeMap<LeaseKey, Arc<Belief>>>>,
    clocks: Clocks,
}

impl fmt::Debug for Fences {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Fences").field("open", &self.map().len()).finish()
    }
}

impl Fences {
    fn map(&self) -> MutexGuard<'_, BTreeMap<LeaseKey, Arc<Belief>>> {
        self.beliefs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The clocks that fences compare.
    pub(crate) fn clocks(&self) -> &Clocks {
        &self.clocks
    }

    /// A fence for a new ownership. Not valid until the first call of `believe`.
    pub(crate) fn open(&self, lease: LeaseKey, token: FencingToken, runtime: Arc<dyn Runtime>) -> Fence {
        let belief = Arc::new(Belief {
            token,
            valid_until: AtomicU64::new(0),
            durable: watch::Sender::new(Durable::default()),
            is_over: AtomicBool::new(false),
        });
        if let Some(old) = self.map().insert(lease, belief.clone()) {
            debug_assert!(old.token < token, "each ownership has a token above all tokens before");
            old.end();
        }
        Fence { belief, clocks: self.clocks.clone(), runtime }
    }

    /// The ownership is over: its fence is never valid again.
    pub(crate) fn close(&self, lease: &LeaseKey, token: FencingToken) {
        let mut map = self.map();
        if map.get(lease).is_some_and(|belief| belief.token == token)
            && let Some(old) = map.remove(lease)
        {
            old.end();
        }
    }

    /// Everything up to here is in the lease table; absent: the end of the shard is.
    pub(crate) fn durable(&self, lease: &LeaseKey, through: Option<Position>) {
        if let Some(belief) = self.map().get(lease) {
            belief.durable.send_modify(|durable| {
                durable.through = durable.through.max(through);
                durable.end |= through.is_none();
            });
        }
    }

    pub(crate) fn believe(&self, lease: &LeaseKey, token: FencingToken, valid_until: Mono) {
        if let Some(belief) = self.map().get(lease).filter(|belief| belief.token == token) {
            belief.valid_until.store(valid_until.0, Ordering::Release);
        }
    }

    /// There is doubt: not valid until it is believed in again.
    pub(crate) fn revoke(&self, lease: &LeaseKey) {
        if let Some(belief) = self.map().get(lease) {
            belief.valid_until.store(0, Ordering::Release);
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.map().is_empty()
    }
}

#[cfg(all(test, feature = "tokio-runtime"))]
#[path = "fence_tests.rs"]
mod tests;
