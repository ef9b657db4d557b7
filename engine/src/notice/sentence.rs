//! A notice as one line; no name within can break the line.

use super::Notice;
use crate::config::InitialPosition;
use crate::ids::ShardId;
use crate::shown::Escaping;
use std::fmt::{self, Write as _};

/// An event as one line. Where a line names no subject, the subject is the worker. Control characters in names and in
/// answers of services are shown as escapes.
impl fmt::Display for Notice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(Escaping(f), "{}", Sentence(self))
    }
}

/// A notice with the texts of other programs unescaped.
pub(super) struct Sentence<'a>(pub(super) &'a Notice);

/// Shard ids as a list in a sentence.
pub(super) struct Ids<'a>(pub(super) &'a [ShardId]);

impl fmt::Display for Ids<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (n, id) in self.0.iter().enumerate() {
            let before = match n {
                0 => "",
                n if n + 1 == self.0.len() => " and ",
                _ => ", ",
            };
            write!(f, "{before}{id}")?;
        }
        Ok(())
    }
}

/// Leases were found that do not begin at the configured initial position.
pub(super) fn continued(
    f: &mut fmt::Formatter<'_>, table: &str, leases: u32, position: InitialPosition,
) -> fmt::Result {
    let (leases, their) = match leases {
        1 => ("1 lease".to_owned(), "its checkpoint"),
        _ => (format!("{leases} leases"), "their checkpoints"),
    };
    write!(
        f,
        "found {leases} in the lease table of {table:?} and goes on from {their}: the initial position {position} applies only to \
         shards without a lease; to begin anew from there, stop the fleet and delete the table, or use another application name"
    )
}
