//! Why requests failed, in words, until the driver asks.

use super::sent::Sent;
use crate::ports::Failure;
use leasehold_engine::ids::OpId;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The failures of a port's requests, by command. Clones share one map.
#[derive(Clone, Debug, Default)]
pub(super) struct Failures {
    kept: Arc<Mutex<BTreeMap<OpId, Failure>>>,
    /// The command that requests are made for.
    op: Option<OpId>,
}

impl Failures {
    /// For the requests of this command.
    pub(super) fn of(&self, op: OpId) -> Self {
        Self { kept: self.kept.clone(), op: Some(op) }
    }

    /// Watches one request.
    pub(super) fn request(&self) -> Sent {
        Sent::new(self.clone())
    }

    pub(super) fn keep(&self, failure: Failure) {
        if let Some(op) = self.op {
            self.kept().insert(op, failure);
        }
    }

    pub(super) fn take(&self, op: OpId) -> Option<Failure> {
        self.kept().remove(&op)
    }

    fn kept(&self) -> MutexGuard<'_, BTreeMap<OpId, Failure>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
