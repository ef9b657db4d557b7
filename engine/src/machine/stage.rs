//! The life of a shard on its owner: states and legal transitions, declared once.

use crate::output::EndReason;

/// Where a held shard is between the take of its lease and the end of its processing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Stage {
    /// Not open: the former owner's belief must pass, parents must end, or opening failed and is tried again.
    Waiting,
    /// The application was asked to open it.
    Opening,
    /// Records are read and handed over.
    Running,
    /// Nothing more is handed over; what is being processed is waited for, then checkpointed.
    Draining(EndReason),
    /// All was processed; the children's leases are created, then the end is written.
    Ending,
    /// The application was asked to close it.
    Closing(EndReason),
    /// The application has let go. Only the lease itself may be left to give up.
    Closed(EndReason),
}

/// The legal transitions, by name.
pub(crate) const TRANSITIONS: &[(&str, &str, &str)] = &[
    ("Waiting", "parents ended, belief valid", "Opening"),
    ("Waiting", "lost, shutdown or hand-over", "Closed"),
    ("Opening", "opened", "Running"),
    ("Opening", "handler failed", "Waiting"),
    ("Opening", "lost, shutdown or hand-over", "Draining"),
    ("Running", "every record processed", "Ending"),
    ("Running", "lost, shutdown or hand-over", "Draining"),
    ("Ending", "end durable", "Closing"),
    ("Ending", "lost or shutdown", "Draining"),
    ("Draining", "idle and checkpointed", "Closing"),
    ("Draining", "never opened", "Closed"),
    ("Closing", "closed", "Closed"),
];

impl Stage {
    /// Its name in [`TRANSITIONS`].
    pub(crate) fn name(self) -> &'static str {
        match self {
            Stage::Waiting => "Waiting",
            Stage::Opening => "Opening",
            Stage::Running => "Running",
            Stage::Draining(_) => "Draining",
            Stage::Ending => "Ending",
            Stage::Closing(_) => "Closing",
            Stage::Closed(_) => "Closed",
        }
    }

    /// Goes over to `next`; an undeclared transition is a bug that simulation must find.
    pub(crate) fn go(&mut self, next: Stage) {
        debug_assert!(
            self.name() == next.name()
                || TRANSITIONS
                    .iter()
                    .any(|(from, _, to)| *from == self.name() && *to == next.name()),
            "undeclared transition {self:?} -> {next:?}"
        );
        *self = next;
    }

    /// Whether the application has been asked to open it and not yet let go.
    pub(crate) fn is_open(self) -> bool {
        !matches!(self, Stage::Waiting | Stage::Closed(_))
    }
}

/// The diagram of the transitions, in Mermaid's notation.
#[cfg(test)]
pub(crate) fn diagram() -> String {
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
        assert_eq!(documented, super::diagram(), "update machine/stage.mmd");
    }
}
