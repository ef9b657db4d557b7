//! The life of a shard on its owner: states with their data, and legal transitions, declared once.

use super::reading::Reading;
use super::shard_end::Ending;
use super::waiting::Waiting;
use crate::output::EndReason;

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
        assert_eq!(documented, super::diagram(), "update lease/processing/stage.mmd");
    }
}
