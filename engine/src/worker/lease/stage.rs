//! The life of a shard on its owner: states with their data, and legal transitions, declared once.

use super::failure::Failure;
use super::kept::Flush;
use super::strange::Strange;
use crate::ids::{OpId, ShardId};
use crate::output::EndReason;
use crate::reader::Reader;
use crate::shard::ChildShard;
use crate::time::Mono;
use crate::worker::evidence::Evidence;
use std::collections::BTreeSet;

/// Where a held shard is between the take of its lease and the end of its processing.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Stage {
    /// Not open: the former owner's belief must pass, parents must end, or opening failed and is tried again.
    Waiting(Box<Waiting>),
    /// The application was asked to open it.
    Opening {
        /// How often in a row it could not be opened.
        failures: u32,
    },
    /// Records are read and handed over.
    Running(Box<Reading>),
    /// Nothing more is handed over; what is being processed is waited for, then checkpointed.
    Draining {
        reason: EndReason,
        /// Absent: it was not read any more, or not yet.
        reading: Option<Box<Reading>>,
        /// Present: its end was being written.
        ending: Option<Box<Ending>>,
    },
    /// All was processed; the children's leases are created, then the end is written.
    Ending(Box<Ending>),
    /// The application was asked to close it.
    Closing(EndReason),
    /// The application has let go. Only the lease itself may be left to give up.
    Closed(EndReason),
}

/// The conditions for opening a shard.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Waiting {
    /// Parents not yet known to have ended.
    pub(super) parents: Vec<ShardId>,
    /// A read of a parent's row is in flight.
    pub(super) reading: Option<OpId>,
    /// The next look at the parents, or the next try to open.
    pub(super) look_at: Mono,
    /// How often in a row a look showed a parent that has not ended.
    pub(super) looks: u32,
    /// How often in a row it could not be opened.
    pub(super) failures: u32,
    /// A notice has told of the wait for the parents.
    pub(super) told: bool,
    /// The parents of the row that listings deny.
    pub(super) denied: Evidence<BTreeSet<ShardId>>,
    /// When the shards are listed, to compare the parents of the row with the parents of the shard.
    pub(super) list_at: Mono,
    /// The number of such listings that denied nothing.
    pub(super) lists: u32,
}

/// A shard that is read.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Reading {
    pub(super) reader: Reader,
    /// The attempts at the front batch, and the next step when the attempts fail.
    pub(super) failure: Failure,
    /// The next look for children, if its end was read and none were named.
    pub(super) look_at: Mono,
    /// Listings without the shard: each shows exactly these children.
    pub(super) gone: Evidence<Vec<ShardId>>,
    /// A shard proving the last listing without our shard late.
    pub(super) against: Option<ShardId>,
    /// The shard is known to have no children.
    pub(super) childless: bool,
    /// Ends without children that a listing denied.
    pub(super) denied: DeniedEnd,
    /// The commands to flush that the application has received, and the permission of the end.
    pub(super) flush: Flush,
    /// The service's answers about the place from which the shard is to be read.
    pub(super) strange: Strange,
}

/// An end that an answer asserts, without children, while listings show the shard open.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct DeniedEnd {
    /// The read whose answer asserted the end last.
    pub(super) read: Option<OpId>,
    /// How many such ends were denied in a row.
    pub(super) times: u32,
}

impl Reading {
    pub(super) fn new(reader: Reader, flush: Flush) -> Self {
        Self {
            reader,
            failure: Failure::NEW,
            look_at: Mono(0),
            gone: Evidence::default(),
            against: None,
            childless: false,
            denied: DeniedEnd::default(),
            flush,
            strange: Strange::default(),
        }
    }

    /// Whether listings do not show the shard, and are not enough to say that it is forgotten.
    pub(super) fn is_doubted(&self) -> bool {
        self.gone.answers() > 0 || self.against.is_some()
    }

    /// The shard was found, or shown.
    pub(super) fn found(&mut self) {
        self.gone.contradicted();
        self.against = None;
    }

    /// Whether everything was processed, and the application has not let the end be written yet.
    pub(super) fn awaits_permission(&self) -> bool {
        self.reader.finished().is_some() && self.flush.awaits_permission()
    }
}

/// A shard that was processed to its end.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Ending {
    /// How many of the children's leases are not known to exist yet.
    pub(super) children_left: u32,
    /// Children whose leases wait until their other parents have leases.
    pub(super) pending_children: Vec<ChildShard>,
    /// The other parents of the pending children.
    pub(super) unresolved_parents: Vec<ShardId>,
    /// Listings by which some of these parents will never have a lease: the leases of forgotten shards that may bring a
    /// parent's lease.
    pub(super) hopeless: Evidence<Vec<crate::ids::LeaseIx>>,
    /// A read of another parent's row is in flight.
    pub(super) reading: Option<OpId>,
    /// The next look at another parent.
    pub(super) look_at: Mono,
    /// How often a look showed another parent without a lease.
    pub(super) looks: u32,
    /// When the shards are listed again, at the earliest, for the sake of another parent without a lease.
    pub(super) doubt_at: Mono,
    /// A notice has told of the wait for other parents.
    pub(super) told: bool,
    /// A read showed another parent without a lease. Until the parent has a lease, the whole of another shard may have
    /// to be read.
    pub(super) lacks_parent: bool,
}

impl Ending {
    /// Whether the end cannot be written before others have done their part.
    pub(super) fn waits_for_others(&self) -> bool {
        self.lacks_parent && !self.unresolved_parents.is_empty()
    }
}

/// The legal transitions, by name.
pub(super) const TRANSITIONS: &[(&str, &str, &str)] = &[
    ("Waiting", "parents ended, belief valid", "Opening"),
    ("Waiting", "lost, shutdown or hand-over", "Closed"),
    ("Opening", "opened", "Running"),
    ("Opening", "handler failed", "Waiting"),
    ("Opening", "lost, shutdown or hand-over", "Draining"),
    ("Running", "every record processed, end permitted", "Ending"),
    ("Running", "lost, shutdown or hand-over", "Draining"),
    ("Ending", "end durable", "Closing"),
    ("Ending", "lost, shutdown or hand-over", "Draining"),
    ("Draining", "idle and checkpointed", "Closing"),
    ("Draining", "never opened", "Closed"),
    ("Closing", "closed", "Closed"),
];

impl Stage {
    /// Its name in [`TRANSITIONS`].
    fn name(&self) -> &'static str {
        match self {
            Stage::Waiting(_) => "Waiting",
            Stage::Opening { .. } => "Opening",
            Stage::Running(_) => "Running",
            Stage::Draining { .. } => "Draining",
            Stage::Ending(_) => "Ending",
            Stage::Closing(_) => "Closing",
            Stage::Closed(_) => "Closed",
        }
    }

    /// Goes over to the stage made by `next` from this stage. An undeclared transition is a bug for simulation to find.
    pub(super) fn go(&mut self, next: impl FnOnce(Stage) -> Stage) {
        let before = self.name();
        // A placeholder without cost: `next` does not see it.
        let old = std::mem::replace(self, Stage::Closed(EndReason::LeaseLost));
        *self = next(old);
        debug_assert!(
            TRANSITIONS.iter().any(|(from, _, to)| *from == before && *to == self.name()),
            "undeclared transition from {before} to {}",
            self.name()
        );
    }

    /// Keeps the parts of a stage needed while its shard is let go of.
    pub(super) fn into_draining(self, reason: EndReason) -> Stage {
        let (reading, ending) = match self {
            Stage::Running(reading) => (Some(reading), None),
            Stage::Ending(ending) => (None, Some(ending)),
            Stage::Draining { reading, ending, .. } => (reading, ending),
            Stage::Waiting(_) | Stage::Opening { .. } | Stage::Closing(_) | Stage::Closed(_) => (None, None),
        };
        Stage::Draining { reason, reading, ending }
    }

    /// Whether the application has been asked to open it and not yet let go.
    pub(super) fn is_open(&self) -> bool {
        !matches!(self, Stage::Waiting(_) | Stage::Closed(_))
    }

    /// What is read, or was when the lease was to be let go of.
    pub(super) fn reading(&self) -> Option<&Reading> {
        match self {
            Stage::Running(reading) => Some(reading),
            Stage::Draining { reading, .. } => reading.as_deref(),
            _ => None,
        }
    }

    pub(super) fn reading_mut(&mut self) -> Option<&mut Reading> {
        match self {
            Stage::Running(reading) => Some(reading),
            Stage::Draining { reading, .. } => reading.as_deref_mut(),
            _ => None,
        }
    }

    /// The end that is written, or was when the lease was to be let go of.
    pub(super) fn ending_mut(&mut self) -> Option<&mut Ending> {
        match self {
            Stage::Ending(ending) => Some(ending),
            Stage::Draining { ending, .. } => ending.as_deref_mut(),
            _ => None,
        }
    }
}

/// The diagram of the transitions, in Mermaid's notation.
#[cfg(test)]
fn diagram() -> String {
    let mut text = String::from("stateDiagram-v2\n    [*] --> Waiting: lease taken\n");
    for (from, event, to) in TRANSITIONS {
        text.push_str(&format!("    {from} --> {to}: {event}\n"));
    }
    text + "    Closed --> [*]: lease given up or gone\n"
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_documented_diagram_is_the_declared_one() {
        let documented = include_str!("stage.mmd");
        assert_eq!(documented, super::diagram(), "update lease/stage.mmd");
    }
}
