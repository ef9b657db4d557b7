//! Sentences about time not counted by the monotonic clock.

use super::stop::Count;
use crate::time::Span;
use std::fmt;

pub(super) fn time(f: &mut fmt::Formatter<'_>, by: Span, leases: u32) -> fmt::Result {
    write!(
        f,
        "expected both clocks to go on together, found the wall clock {by} further than the monotonic clock: the machine was suspended, \
         or its wall clock was set; "
    )?;
    match leases {
        0 => f.write_str("no lease is held"),
        _ => write!(
            f,
            "{} believed in for that much less, and renewed that much sooner",
            Count(leases, "lease is", "leases are")
        ),
    }
}

pub(super) fn ignored(f: &mut fmt::Formatter<'_>, by: Span) -> fmt::Result {
    write!(
        f,
        "expected both clocks to go on together, found the wall clock {by} further than the monotonic clock, as so often lately that \
         nothing follows from it: a suspension would not be noticed now; find out what sets the wall clock of this machine forward"
    )
}
