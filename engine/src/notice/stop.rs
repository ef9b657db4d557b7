//! Leases given up by a stopping worker, and leases left behind.

use crate::ids::LeaseKey;
use crate::time::Span;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Leases given up by a stopping worker, and leases left behind. Lost leases, and ended shards, are in neither number.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct StopSummary {
    /// Leases that were released or handed over, with an acknowledged write, since the worker began to stop.
    pub released: u32,
    /// Leases whose rows may still name this worker: the leases expire.
    pub left: u32,
    /// The first of them by name, at most [`StopSummary::MOST`], and why each was left.
    pub named: Vec<(LeaseKey, Left)>,
    /// Handlers stopped before their end.
    pub aborted: u32,
    /// How long a lease lasts without a renewal: another worker takes the remaining leases after this span.
    pub lease_duration: Span,
}

/// Why a lease was left to expire.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Left {
    /// The lease's release failed, this often in a row.
    Failed {
        /// The number of failures; 0: no release was tried.
        times: u32,
    },
    /// Its release was sent, and the execution of the release is uncertain.
    Unanswered,
    /// The lease was stolen, and its former owner may still believe in its ownership.
    Settling,
    /// A take of it was under way, and may have been executed.
    Taking,
    /// The application had not closed its shard.
    Busy,
}

impl StopSummary {
    /// No more leases than this are named.
    pub const MOST: usize = 16;

    /// Whether every lease was given up and every handler had finished.
    pub fn is_clean(&self) -> bool {
        self.left == 0 && self.aborted == 0
    }
}

/// What follows "(the worker) stopped" in a sentence.
impl fmt::Display for StopSummary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "; {} released", Count(self.released, "lease was", "leases were"))?;
        if self.left > 0 {
            write!(f, ", {} left to expire (", Count(self.left, "lease was", "leases were"))?;
            for (n, (lease, why)) in self.named.iter().enumerate() {
                let before = if n == 0 { "" } else { "; " };
                write!(f, "{before}{lease}: {why}")?;
            }
            let more = (self.left as usize).saturating_sub(self.named.len());
            match more {
                0 => f.write_str(")")?,
                more => write!(f, "; and {more} more)")?,
            }
        }
        if self.aborted > 0 {
            write!(f, ", {} stopped before the end", Count(self.aborted, "handler was", "handlers were"))?;
        }
        if self.left > 0 {
            write!(
                f,
                "; another worker takes what was left once it was not renewed for {}",
                self.lease_duration
            )?;
        }
        if !self.is_clean() {
            f.write_str("; no record is lost: what was not checkpointed is processed again")?;
        }
        Ok(())
    }
}

/// What follows "(the lease):" in a sentence.
impl fmt::Display for Left {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Left::Failed { times: 0 } => f.write_str("its release was not tried"),
            Left::Failed { times: 1 } => f.write_str("its release failed"),
            Left::Failed { times } => write!(f, "its release failed {times} times"),
            Left::Unanswered => f.write_str("its release was not acknowledged"),
            Left::Settling => f.write_str("it was stolen, and its former owner may still count on it"),
            Left::Taking => f.write_str("it was being taken"),
            Left::Busy => f.write_str("the application had not closed its shard"),
        }
    }
}

/// A number with its noun and verb.
pub(super) struct Count(pub u32, pub &'static str, pub &'static str);

impl fmt::Display for Count {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Count(number, one, many) = *self;
        write!(f, "{number} {}", if number == 1 { one } else { many })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn summary(released: u32, left: u32, aborted: u32) -> StopSummary {
        let named = [Left::Failed { times: 3 }, Left::Unanswered];
        let named = named.into_iter().enumerate();
        StopSummary {
            released,
            left,
            named: named
                .map(|(n, why)| (format!("shard-{n}").as_str().into(), why))
                .take(left as usize)
                .collect(),
            aborted,
            lease_duration: Span::from_secs(10),
        }
    }

    #[test]
    fn a_stop_says_what_was_given_up_and_what_was_left() {
        assert_eq!(summary(3, 0, 0).to_string(), "; 3 leases were released");
        assert_eq!(
            summary(0, 1, 0).to_string(),
            "; 0 leases were released, 1 lease was left to expire (shard-0: its release failed 3 times); another worker \
             takes what was left once it was not renewed for 10.000s; no record is lost: what was not checkpointed is \
             processed again"
        );
        assert_eq!(
            summary(1, 7, 2).to_string(),
            "; 1 lease was released, 7 leases were left to expire (shard-0: its release failed 3 times; shard-1: its release \
             was not acknowledged; and 5 more), 2 handlers were stopped before the end; another worker takes what was left \
             once it was not renewed for 10.000s; no record is lost: what was not checkpointed is processed again"
        );
        assert!(summary(3, 0, 0).is_clean() && !summary(3, 1, 0).is_clean() && !summary(3, 0, 1).is_clean());
    }
}
