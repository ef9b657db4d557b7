//! The name and the severity of every notice.

use super::{Notice, kind};

/// How much attention a notice asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Severity {
    /// A step of the protocol: of interest when one looks into a worker.
    Debug,
    /// A change of the worker's leases or of its work.
    Info,
    /// An event out of the ordinary. The worker deals with the event, but a person may be needed in the end.
    Warning,
    /// Records were lost, or the worker cannot go on with a shard or at all.
    Error,
}

impl Notice {
    /// A short, stable name, such as `took`: the label `kind` of metrics and log lines.
    pub fn name(&self) -> &'static str {
        kind(self).0
    }

    /// How much attention it asks for: a worker logs it at the level of the same name.
    pub fn severity(&self) -> Severity {
        kind(self).1
    }
}
