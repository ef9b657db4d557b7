//! Hand-overs of leases between live workers: a worker *requests* a lease in its row, the owner *hands it over*, and the
//! new owner *accepts* it.
//!
//! | file | what |
//! |---|---|
//! | `requesting` | which leases this worker requests, accepts, and takes after an overdue hand-over |
//! | `joining` | how many leases a worker requests just after its start |
//! | `requests` | the requests made, and the pauses before a lost request is repeated |
//! | `answers` | what follows from the answers to a request, and the requests that are spared |
//!
//! The owner's part is in the room of leases: the lane learns of the request, and the processing lets go. Requests go
//! through the queue of row writes, in the order of all rows; this room decides what follows from their answers.

mod answers;
mod joining;
mod requesting;
mod requests;
#[cfg(test)]
mod tests;

pub(super) use answers::{on_answer, spared};

use crate::ids::{LeaseIx, LeaseKey};
use crate::worker::context::Context;
use crate::worker::lease_table::{Lease, LeaseTable};
use joining::Joining;
use requests::Requests;

/// The requests made by this worker, and the first requests after the worker's start.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct HandOver {
    requests: Requests,
    joining: Joining,
}

impl HandOver {
    /// How many leases of other workers are being handed over to us, or requested, where a few are requested at a time.
    pub(super) fn count(&mut self, cx: &Context, leases: &LeaseTable, requested: &[LeaseKey]) -> u32 {
        self.requests.forget_settled(leases);
        requests::count(cx, leases, requested)
    }

    /// Whether it is not too soon to request a lease again.
    pub(super) fn may_request(&self, cx: &Context, lease: &Lease) -> bool {
        self.requests.may_request(cx, lease)
    }

    /// Requests this lease from its owner.
    pub(super) fn request_one(&mut self, cx: &mut Context, leases: &LeaseTable, ix: LeaseIx) {
        self.requests.request(cx, leases, ix);
    }
}
