//! What parts ask of each other.

use crate::oracles::fact::{Row, Verb};
use crate::oracles::{LifeNo, ShardNo};
use leasehold_engine::ids::OpId;
use leasehold_engine::input::{Call, Outcome};

/// What one part wants of another. The world carries requests out in the order in which they were made, when the part that made
/// them has returned.
#[derive(Clone, Debug)]
pub(super) enum Request {
    /// Take note of the kind of state in which a row changed.
    NoteState(RowChange),
    /// Begin to hand a lease over, as a leader would.
    HandOver {
        shard: ShardNo,
        /// Which of our workers is to have it.
        to: u32,
    },
    /// Have an operator mend the row of a shard: a worker has told of it.
    MendRow { shard: ShardNo },
    /// Tell a worker how a command to its application ended.
    Done { w: usize, op: OpId, outcome: Outcome },
    /// Give a worker what its application says to it, one after the other, if that life still goes on.
    Calls { w: usize, life: LifeNo, calls: Vec<Call> },
}

/// What is known where a row has changed, for kinds of states.
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

    /// Whether the shard is closed, how many parents it has, and whether one of them has a lease that has not ended.
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

    /// Before and after.
    pub(super) fn rows(&self) -> [Option<Row>; 2] {
        self.rows
    }

    pub(super) fn is_closed(&self) -> bool {
        self.closed
    }

    /// How many parents the shard has, and whether one of them has a lease that has not ended.
    pub(super) fn parents(&self) -> (usize, bool) {
        (self.parents, self.unfinished)
    }
}
