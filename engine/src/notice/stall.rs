//! Why a lease that is held does not move.

use crate::ids::ShardId;
use serde::{Deserialize, Serialize};
use std::fmt;

/// What a held lease waits for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Stall {
    /// It was stolen, and its former owner may still believe in it.
    Settling,
    /// These parents have not ended.
    Parents(Vec<ShardId>),
    /// The rows of these parents cannot be read as leases, so no worker reads them to their end.
    UnreadableParents(Vec<ShardId>),
    /// The application was asked to open the shard and has not answered.
    Opening,
    /// The application could not open the shard, so often in a row.
    OpenFails {
        /// How often.
        attempts: u32,
    },
    /// The handler has been given a batch and has not come back. This is the attempt.
    Handler {
        /// Counts from 1.
        attempt: u32,
    },
    /// The handler fails with the same batch again and again.
    HandlerFails {
        /// How often in a row.
        attempts: u32,
    },
    /// The lease could not be renewed in time: whether it is still ours must be found out.
    Fenced,
    /// The stream or the shard was not found, or the children of a shard that ended: the shards are being listed.
    Missing,
    /// Reads of the shard fail.
    ReadsFail {
        /// How often in a row.
        failures: u32,
    },
    /// Reads are answered, or about to be, and bring nothing although the shard is not at its tip.
    ReadsEmpty,
    /// The shard has ended; these must have a lease before its end is written, and have none yet.
    CoParents(Vec<ShardId>),
    /// The shard has ended; so many of its children's leases could not be created yet.
    Children {
        /// How many.
        left: u32,
    },
    /// A write of the lease's row does not come through.
    Writing,
    /// The application was asked to close the shard and has not answered.
    Closing,
}

/// What follows "has not moved (the lease) for (a while):" in a sentence.
impl fmt::Display for Stall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Stall::Settling => f.write_str("it was stolen, and its former owner may still believe in it"),
            Stall::Parents(parents) => write!(f, "it waits for {} to end", super::Ids(parents)),
            Stall::UnreadableParents(parents) => write!(
                f,
                "it waits for {} to end, which no worker reads: a row that cannot be read must be corrected in the table",
                super::Ids(parents)
            ),
            Stall::Opening => f.write_str("the application has not opened it yet"),
            Stall::OpenFails { attempts } => write!(f, "the application failed to open it {attempts} times"),
            Stall::Handler { attempt } => {
                write!(
                    f,
                    "its handler has not returned (attempt {attempt} at this batch)"
                )
            }
            Stall::HandlerFails { attempts } => {
                write!(f, "its handler failed {attempts} times with the same batch")
            }
            Stall::Fenced => f.write_str("its lease could not be renewed in time, and may be another's"),
            Stall::Missing => f.write_str("it, or a child of it, was not found; the shards are being listed"),
            Stall::ReadsFail { failures } => write!(f, "reading it failed {failures} times in a row"),
            Stall::ReadsEmpty => f.write_str("reads bring nothing, though it is not at its tip"),
            Stall::CoParents(parents) => write!(
                f,
                "it has ended, and {} must have a lease before that is written",
                super::Ids(parents)
            ),
            Stall::Children { left } => {
                write!(f, "it has ended, and {left} of its children have no lease yet")
            }
            Stall::Writing => f.write_str("its row cannot be written"),
            Stall::Closing => f.write_str("the application has not closed it yet"),
        }
    }
}
