//! Sentences about rows for whose sake a shard is read by no worker.

use crate::ids::LeaseKey;
use crate::time::Span;
use std::fmt;

pub(super) fn unreadable(
    f: &mut fmt::Formatter<'_>, key: &LeaseKey, detail: &str, lasting: Span,
) -> fmt::Result {
    write!(f, "row of {key} cannot be read{}", For(lasting))?;
    write!(f, ": {detail}; no worker reads its shard until that attribute is corrected in the table")
}

pub(super) fn spoiled(
    f: &mut fmt::Formatter<'_>, lease: &LeaseKey, detail: &str, lasting: Span,
) -> fmt::Result {
    write!(
        f,
        "expected the row of {lease} to say a place in its shard, found that {detail}{}; no worker of Leasehold takes the lease: \
         `leasehold admin rewind --shard {lease}` sets it to the place up to which the shard was processed, and `leasehold admin doctor \
         --repair` to the oldest record",
        For(lasting)
    )
}

/// For how long the state has lasted, unless the state is new.
struct For(Span);

impl fmt::Display for For {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Span::ZERO => Ok(()),
            lasting => write!(f, " (for {lasting} so far)"),
        }
    }
}
