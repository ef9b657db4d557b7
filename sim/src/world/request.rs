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
    pub(super) shard: ShardNo,
    pub(super) verb: Option<Verb>,
    /// The rows before and after the change.
    pub(super) rows: [Option<Row>; 2],
    /// The shard is closed.
    pub(super) closed: bool,
    /// The number of the shard's parents.
    pub(super) parents: usize,
    /// A parent has a lease that has not ended.
    pub(super) unfinished: bool,
}
