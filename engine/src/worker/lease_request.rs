//! A request for a lease, as the queue of row writes carries it: the write into the lease's row, and then looks at the
//! row until the owner hands the lease over. The room of assignment decides what follows from each answer.

use crate::ids::{LeaseKey, WorkerId};
use crate::input::Outcome;
use crate::output::TableOp;
use crate::position::Checkpoint;
use crate::row::{Change, LeaseRow};
use crate::time::Mono;

/// The most renewals by the owner that one request follows before the next scan decides.
const MAX_CHASES: u32 = 5;

/// A request of this worker for a lease of a live owner.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct LeaseRequest {
    key: LeaseKey,
    /// The row as the write expects it.
    counter: u64,
    from: WorkerId,
    checkpoint: Checkpoint,
    by: WorkerId,
    /// After this moment, the request is neither written nor looked at.
    expires: Mono,
    sent: bool,
    /// How often the request followed a renewal of the row by its owner.
    chases: u32,
    /// The row is read next: the row has moved on, and no answer showed the new row; or the request is in the row.
    reads: bool,
    /// The request is in the row, and the owner has not handed the lease over yet.
    in_row: bool,
}

/// What follows from the answer to a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum FollowUp {
    /// The next write or look comes at once.
    Now,
    /// The next write comes after the pause that follows a failure: the row does not say why the write was refused.
    AfterFailure,
    /// The next look comes at this moment.
    LookAt(Mono),
    /// The request is over.
    Over,
    /// The operation failed like any other.
    Failed(Outcome),
}

impl LeaseRequest {
    /// A request of `by`, by the row of a live owner.
    pub(super) fn new(row: &LeaseRow, from: WorkerId, by: WorkerId, expires: Mono) -> Self {
        debug_assert_ne!(from, by, "a lease is requested from another worker");
        Self {
            key: row.key.clone(),
            counter: row.counter,
            from,
            checkpoint: row.checkpoint,
            by,
            expires,
            sent: false,
            chases: 0,
            reads: false,
            in_row: false,
        }
    }

    pub(super) fn key(&self) -> &LeaseKey {
        &self.key
    }

    /// The owner.
    pub(super) fn from(&self) -> &WorkerId {
        &self.from
    }

    pub(super) fn expires(&self) -> Mono {
        self.expires
    }

    /// Whether it was sent at least once.
    pub(super) fn is_sent(&self) -> bool {
        self.sent
    }

    /// Whether it is in the row, and the owner has not handed the lease over yet.
    pub(super) fn is_in_row(&self) -> bool {
        self.in_row
    }

    /// Whether the request may follow one more renewal by the owner of the row.
    pub(super) fn may_follow(&self) -> bool {
        !self.in_row && self.chases < MAX_CHASES
    }

    /// The next operation is sent.
    pub(super) fn send(&mut self) -> TableOp {
        self.sent = true;
        match self.reads {
            true => TableOp::Read { key: self.key.clone() },
            false => TableOp::Write(Change::Claim {
                key: self.key.clone(),
                counter: self.counter,
                from: self.from.clone(),
                checkpoint: self.checkpoint,
                by: self.by.clone(),
            }),
        }
    }

    /// The name of its write, for notices.
    pub(super) fn verb(&self) -> &'static str {
        "claim"
    }

    /// The row itself is to be read next.
    pub(super) fn look(&mut self) {
        self.reads = true;
    }

    /// The request is in the row, and is looked after until `until`.
    pub(super) fn written(&mut self, until: Mono) {
        self.in_row = true;
        self.reads = true;
        self.expires = until;
    }

    /// The owner has renewed the row: the request is written anew. Whether the row is as the last write expected it.
    pub(super) fn follow(&mut self, row: &LeaseRow) -> bool {
        debug_assert!(self.may_follow(), "a request follows its row a few times only");
        let as_expected = (self.counter, self.checkpoint) == (row.counter, row.checkpoint);
        (self.counter, self.checkpoint) = (row.counter, row.checkpoint);
        self.chases += 1;
        self.reads = false;
        as_expected
    }
}
