//! One step of a plan: what is to become of a row.

use crate::ids::LeaseKey;
use crate::policy::Life;
use crate::position::Checkpoint;
use crate::row::{Change, LeaseRow, Renaming};
use crate::stream_identity::StreamIdentity;
use crate::time::{Span, Wall};
use serde::Serialize;
use std::fmt;

/// The steps to do, in order, and the leases left alone.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Plan {
    /// The steps to do.
    pub steps: Vec<Step>,
    /// What was asked for and is not done.
    pub left: Vec<LeftAlone>,
}

/// A lease that is left alone.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LeftAlone {
    /// The lease.
    pub lease: LeaseKey,
    /// The reason, and a possible remedy.
    pub why: String,
}

impl LeftAlone {
    pub(super) fn new(lease: &LeaseKey, why: impl Into<String>) -> Self {
        Self { lease: lease.clone(), why: why.into() }
    }
}

/// What is to become of a row.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Step {
    /// The lease.
    pub lease: LeaseKey,
    /// The deed.
    pub deed: Deed,
    /// The row as it was read; absent: the row did not exist.
    pub seen: Option<LeaseRow>,
    /// The consequences of the step, in sentences.
    pub follows: Vec<String>,
}

/// What is done to a row.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Deed {
    /// It names no owner any more.
    Release,
    /// The lease is at this checkpoint, and its row names no owner any more.
    Rewind(Checkpoint),
    /// The lease is created.
    Create(Box<LeaseRow>),
    /// The lease is removed: its shard was read to its end.
    Remove,
    /// The row names this stream. The rest of the row stays.
    Name(StreamIdentity),
}

/// How a step ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Done {
    /// The lease.
    pub lease: LeaseKey,
    /// The end of the step.
    pub how: Stepped,
}

/// How a step ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Stepped {
    /// The step was written.
    Written,
    /// The step was not written: the row differs from the row at planning.
    Changed(String),
}

impl Step {
    /// The write of this step, for the row as it is now. `life` is the `Life` of the table's format, `now` this
    /// machine's clock.
    ///
    /// A renewal and a checkpoint of the owner that was read are no hindrance.
    ///
    /// # Errors
    /// The difference between the row now and the row at planning.
    pub fn change(&self, row: Option<&LeaseRow>, life: Life, now: Wall) -> Result<Change, String> {
        let (row, seen) = match (row, &self.seen, &self.deed) {
            (None, None, Deed::Create(new)) => return Ok(Change::Create(new.clone())),
            (Some(row), Some(seen), Deed::Release | Deed::Rewind(_) | Deed::Remove | Deed::Name(_)) => {
                (row, seen)
            }
            (None, ..) => return Err("expected its row to be there still, found none".to_owned()),
            (Some(_), ..) => return Err("expected no row of this key, found one".to_owned()),
        };
        self.is_as_seen(row, seen)?;
        let key = row.key.clone();
        let to = match &self.deed {
            Deed::Remove => {
                let counter = row.counter;
                return Ok(Change::Delete { key, counter });
            }
            Deed::Name(stream) => return Self::name(row, seen, stream),
            Deed::Rewind(to) => *to,
            Deed::Release | Deed::Create(_) => row.checkpoint,
        };
        Ok(Change::Reset {
            key,
            counter: row.counter,
            next: life.next(row.counter, now, Span::ZERO),
            owner: row.owner.clone(),
            handing_over: row.handing_over.clone(),
            checkpoint: row.checkpoint,
            to,
        })
    }

    /// The row is to name a stream. The proof used the checkpoint and the name as read, so both must be unchanged.
    fn name(row: &LeaseRow, seen: &LeaseRow, stream: &StreamIdentity) -> Result<Change, String> {
        let said = |row: &LeaseRow| match &row.stream {
            Some(stream) => format!("stream {stream} and the checkpoint {}", row.checkpoint),
            None => format!("no stream, and the checkpoint {}", row.checkpoint),
        };
        let as_seen = (&row.stream, row.checkpoint) == (&seen.stream, seen.checkpoint);
        match &row.stream {
            Some(named) if as_seen => Ok(Change::Name(Box::new(Renaming {
                key: row.key.clone(),
                counter: row.counter,
                checkpoint: row.checkpoint,
                named: named.clone(),
                stream: stream.clone(),
            }))),
            _ => Err(format!("expected {}, found {}", said(seen), said(row))),
        }
    }

    fn is_as_seen(&self, row: &LeaseRow, seen: &LeaseRow) -> Result<(), String> {
        let name = |row: &LeaseRow| {
            row.actual_owner().map_or("no owner".to_owned(), |owner| format!("the owner {owner}"))
        };
        if (&row.owner, &row.handing_over) != (&seen.owner, &seen.handing_over) {
            return Err(format!("expected {}, found {}", name(seen), name(row)));
        }
        if row.checkpoint.is_end() != seen.checkpoint.is_end() {
            return Err(format!(
                "expected the checkpoint {} or a later one of the same kind, found {}",
                seen.checkpoint, row.checkpoint
            ));
        }
        Ok(())
    }

    /// Whether a row is in the state left by this step's change.
    pub fn is_done(&self, change: &Change, row: Option<&LeaseRow>) -> bool {
        match (change, row) {
            (Change::Create(new), Some(row)) => row.never_owned() && row.checkpoint == new.checkpoint,
            (Change::Delete { .. }, None) => true,
            (Change::Name(renaming), Some(row)) => row.stream.as_ref() == Some(&renaming.stream),
            (Change::Reset { next, to, .. }, Some(row)) => {
                row.counter == *next && row.owner.is_none() && row.checkpoint == *to
            }
            _ => false,
        }
    }
}

/// A line: the lease, and what is done.
impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lease = &self.lease;
        match &self.deed {
            Deed::Release => write!(f, "release {lease}"),
            Deed::Rewind(to) => {
                let from = self.seen.as_ref().map(|row| row.checkpoint.to_string());
                write!(f, "rewind {lease} from {} to {to}", from.as_deref().unwrap_or("nowhere"))
            }
            Deed::Create(row) => write!(f, "create {lease} at {}", row.checkpoint),
            Deed::Remove => write!(f, "remove {lease}"),
            Deed::Name(stream) => write!(f, "name stream {stream} in {lease}"),
        }
    }
}
