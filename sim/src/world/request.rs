//! Requests of parts to each other.

use crate::oracles::fact::{Row, Verb};
use crate::oracles::{LifeNo, ShardNo};
use leasehold_engine::ids::OpId;
use leasehold_engine::input::{Call, Outcome};

/// A request of one part to another. The world executes the requests in the order of their making, after the return of
/// their part.
#[derive(Clone, Debug)]
pub(super) enum Request {
    /// Record the kind of a row's state after a change.
    NoteState(RowChange),
    /// Begin to hand a lease over, as a leader does.
    HandOver {
        shard: ShardNo,
        /// The next owner, by its number among our workers.
        to: u32,
    },
    /// Have an operator mend the row of a shard: a worker has reported the row.
    MendRow { shard: ShardNo },
    /// Tell a worker the outcome of a command to its application.
    Done { w: usize, op: OpId, outcome: Outcome },
    /// Give a worker its application's calls in their order, if that life still runs.
    Calls { w: usize, life: LifeNo, calls: Vec<Call> },
}

/// The facts about a changed row, for kinds of states.
#[derive(Clone, Copy, Debug)]
pub(super) struct RowChange {
    shard: ShardNo,
    verb: Option<Verb>,
    rows: [Option<Row>; 2],
    closed: bool,
    parents: usize,
    /// A parent has a lease that has not ended.
    unfinished: bool,
}

impl RowChange {
    pub(super) fn new(shard: ShardNo, verb: Option<Verb>, before: Option<Row>, after: Option<Row>) -> Self {
        Self { shard, verb, rows: [before, after], closed: false, parents: 0, unfinished: false }
    }

    /// Whether the shard is closed, the number of its parents, and whether a parent has a lease that has not ended.
    pub(super) fn of_shard(mut self, closed: bool, parents: usize, unfinished: bool) -> Self {
        (self.closed, self.parents, self.unfinished) = (closed, parents, unfinished);
        self
    }

    pub(super) fn shard(&self) -> ShardNo {
        self.shard
    }

    pub(super) fn verb(&self) -> Option<Verb> {
        self.verb
    }

    /// The rows before and after the change.
    pub(super) fn rows(&self) -> [Option<Row>; 2] {
        self.rows
    }

    pub(super) fn is_closed(&self) -> bool {
        self.closed
    }

    /// The number of the shard's parents, and whether a parent has a lease that has not ended.
    pub(super) fn parents(&self) -> (usize, bool) {
        (self.parents, self.unfinished)
    }
}
