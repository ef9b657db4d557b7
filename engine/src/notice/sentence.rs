//! A notice as one line that no name in it can break.

use super::Notice;
use crate::ids::ShardId;
use crate::shown::Escaping;
use std::fmt::{self, Write as _};

/// An event as one line. Where a line names no subject, the subject is the worker. Control characters in names and in what services
/// said are shown as escapes.
impl fmt::Display for Notice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(Escaping(f), "{}", Sentence(self))
    }
}

/// A notice with the texts of others as they are.
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
