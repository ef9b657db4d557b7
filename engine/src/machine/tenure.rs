//! What this worker remembers of a lease it takes or holds.

use super::stage::Stage;
use super::stall::Movement;
use crate::ids::{FencingToken, OpId, ShardId, WorkerId};
use crate::notice::TakeReason;
use crate::position::{Checkpoint, Position};
use crate::reader::Reader;
use crate::shard::ChildShard;
use crate::time::Mono;

/// An attempt to become the owner of a lease.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Taking {
    /// The counter that must still be there.
    pub(crate) counter: u64,
    /// The counter that all attempts leave.
    pub(crate) next: u64,
    /// The owner as read.
    pub(crate) from: Option<WorkerId>,
    /// Whether its owner is to hand it over.
    pub(crate) handed: bool,
    /// The checkpoint as read. It is exact if the take succeeds: a checkpoint moves the counter, or is guarded itself.
    pub(crate) checkpoint: Checkpoint,
    /// Why we take it.
    pub(crate) why: TakeReason,
    /// When the first attempt was emitted: validity counts from here, whichever attempt was applied.
    pub(crate) first_emitted: Mono,
    /// Failed attempts in a row.
    pub(crate) failures: u32,
    /// The news that were known when it was last weighed whether we want it.
    pub(crate) weighed: u64,
    /// How often the row was found renewed by its owner.
    pub(crate) chases: u32,
    /// What is in flight.
    pub(crate) flight: TakeFlight,
}

/// What is in flight for a [`Taking`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum TakeFlight {
    /// Nothing until then: the write is to be tried again.
    Pause(Mono),
    /// The write.
    Write(OpId),
    /// A read, after an outcome that was not known.
    Read(OpId),
}

/// A write on a held lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum WriteKind {
    Renew,
    Checkpoint(Position),
    End,
    Release,
    HandOver,
    /// The row was removed by somebody and is put back.
    Restore,
    /// Not a write: how is the row?
    Read,
}

/// The writes of unknown outcome since the last one that was acknowledged. All have the same guard, so at most one of
/// them was or will be applied.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Unresolved {
    /// When the earliest of them was emitted: the safe moment to count validity from.
    pub(crate) since: Mono,
    /// One of them was `End`.
    pub(crate) end: bool,
    /// One of them was `Release` or `HandOver`.
    pub(crate) release: bool,
}

/// Our ownership of a lease.
///
/// With many leases, what a renewal costs is the memory it touches. So what every step looks at lies in front and
/// together, and the rest behind it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[repr(C, align(64))]
pub(crate) struct Tenure {
    pub(crate) stage: Stage,
    /// The row is somebody else's, or not to be had any more. Only the application is left to be closed.
    pub(crate) lost: bool,
    /// The belief ran out, and this was told.
    pub(crate) fenced: bool,
    /// A checkpoint was asked for.
    pub(crate) flush: bool,
    /// The application opened it, so it must be closed.
    pub(crate) opened: bool,
    /// The command in flight was told to stop.
    pub(crate) aborted: bool,
    /// The shard was not found, and it is being found out why.
    pub(crate) missing: bool,
    /// It is known that the shard has no children.
    pub(crate) childless: bool,
    /// "Blocked" was told.
    pub(crate) told_blocked: bool,
    /// That its end waits for the leases of [`co_parents`](Self::co_parents) was told.
    pub(crate) told_waiting: bool,
    /// A planted bug: our own writes come through are not recognised.
    pub(crate) never_adopt: bool,
    /// Writes that failed in a row.
    pub(crate) failures: u32,
    pub(crate) open_failures: u32,
    /// Attempts at the front batch.
    pub(crate) attempts: u32,
    /// How many of the children's leases are not known to exist yet.
    pub(crate) children_left: u32,
    /// We believe before this moment.
    pub(crate) valid_until: Mono,
    /// The next renewal.
    pub(crate) renew_at: Mono,
    /// No write before this, after a failure.
    pub(crate) retry_at: Mono,
    /// The next checkpoint that nobody has to ask for.
    pub(crate) checkpoint_at: Mono,

    /// The counter of the last write known to be durable.
    pub(crate) counter: u64,
    /// The counter that our next write leaves, or those of unknown outcome since: all of them the same.
    pub(crate) next: u64,
    /// Not opened before this: a former owner may still believe.
    pub(crate) open_after: Mono,
    /// The next look at the parents, or the next try to open.
    pub(crate) look_at: Mono,
    /// No new attempt at the front batch before this.
    pub(crate) deliver_after: Mono,
    pub(crate) reader: Option<Box<Reader>>,
    pub(crate) unresolved: Option<Unresolved>,

    /// What is in flight on this lease's lane.
    pub(crate) flight: Option<(OpId, WriteKind)>,
    /// Since when nothing has moved.
    pub(crate) movement: Movement,
    /// Everything up to here was processed.
    pub(crate) processed: Option<Position>,
    /// The checkpoint known to be durable.
    pub(crate) durable: Checkpoint,
    /// Set while the row is being handed over from us.
    pub(crate) next_owner: Option<WorkerId>,
    /// The application command in flight.
    pub(crate) app: Option<(OpId, AppFlight)>,
    /// Parents not yet known to have ended.
    pub(crate) parents: Vec<ShardId>,
    /// A look at a parent's row is in flight.
    pub(crate) looking: Option<OpId>,
    /// Children whose leases wait for their other parents' leases to exist.
    pub(crate) heirs: Vec<ChildShard>,

    pub(crate) token: FencingToken,
    /// The children, once the end was reached.
    pub(crate) children: Vec<ShardId>,
    /// The other parents that [`heirs`](Self::heirs) wait for.
    pub(crate) co_parents: Vec<ShardId>,
    /// Listings in a row by which some of those will never have a lease.
    pub(crate) verdicts: u32,
    /// Forgotten leases that may bring anything, as those saw them.
    pub(crate) bringers: Vec<u32>,
}

/// The application command in flight of a lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum AppFlight {
    Open,
    Deliver { batch: OpId },
    Close,
}

impl Tenure {
    /// Whether everything the application processed is durable.
    pub(crate) fn is_durable(&self) -> bool {
        self.processed
            .is_none_or(|position| self.durable.covers(position))
    }

    /// Whether we may act as the owner now.
    pub(crate) fn believes(&self, now: Mono) -> bool {
        !self.lost && now < self.valid_until
    }
}
