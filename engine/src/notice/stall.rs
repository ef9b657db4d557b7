//! Why a held lease does not move.

use crate::ids::ShardId;
use crate::position::Position;
use serde::{Deserialize, Serialize};
use std::fmt;

/// What a held lease waits for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Stall {
    /// The lease was stolen, and its former owner may still believe in its ownership.
    Settling,
    /// The parents have not ended.
    Parents(Vec<ShardId>),
    /// The rows of these parents cannot be read as leases, so no worker reads these parents to their end.
    UnreadableParents(Vec<ShardId>),
    /// The application was asked to open the shard and has not answered.
    Opening,
    /// The application could not open the shard, so often in a row.
    OpenFails {
        /// How often.
        attempts: u32,
    },
    /// The handler has been given a batch and has not come back. The number is the present attempt.
    Handler {
        /// Counts from 1.
        attempt: u32,
    },
    /// The handler fails with the same batch again and again.
    HandlerFails {
        /// How often in a row.
        attempts: u32,
    },
    /// The lease could not be renewed in time: the worker must find out whether the lease is still ours.
    Fenced,
    /// The stream or the shard was not found, or the children of a shard that ended: the shards are being listed.
    Missing,
    /// The service does not find the shard, and `listings` counted listings, apart in time, lack the shard; several
    /// listings are needed until the shard counts as forgotten.
    Unproven {
        /// How many listings.
        listings: u32,
        /// The last listing shows this shard, although the stream would have forgotten it first: the listing is behind.
        against: Option<ShardId>,
    },
    /// An answer says that the shard has ended. A second answer must confirm the end: at once if answers name children,
    /// else `stream_lag` later.
    EndClaimed,
    /// The last answers cannot be of the place that was asked for. A later answer must be, or several must say the same over `stream_lag`.
    Doubted,
    /// Answers say that the shard has ended, and listings show the shard open. A new iterator is taken after the last
    /// record, again and again.
    EndDenied {
        /// How often in a row.
        times: u32,
    },
    /// Reads of the shard fail.
    ReadsFail {
        /// How often in a row.
        failures: u32,
    },
    /// `reader.mode` is `fan-out`, and the consumer of the stream is not ACTIVE yet.
    AwaitsConsumer,
    /// The next event of a subscription is awaited for longer than usual.
    AwaitsEvent,
    /// Reads are answered, or about to be, and bring no records although the shard is not at its tip.
    ReadsEmpty,
    /// The shard could be read, and waits for its turn: records of other shards fill the memory, or the highest number
    /// of reads is under way.
    WaitsToRead,
    /// The shard has ended; these parents must have a lease before the shard's end is written, and have none yet.
    CoParents(Vec<ShardId>),
    /// The shard has ended; as many leases of its children as `left` says could not be created yet.
    Children {
        /// How many.
        left: u32,
    },
    /// A write of the lease's row does not come through.
    Writing,
    /// The application was asked to close the shard and has not answered.
    Closing,
    /// The application has paused the shard. A shard with no other wait is never reported as stalled.
    Paused,
    /// The handler keeps this many batches, and has acknowledged none of them for a while.
    Kept {
        /// How many.
        batches: u32,
    },
    /// The handler failed too often with one record, so the shard was stopped: no batch is handed over until the
    /// application resumes the shard.
    Stopped {
        /// The record.
        position: Position,
        /// How often the record failed alone.
        attempts: u32,
    },
    /// A record that the handler cannot process is being set aside.
    SettingAside {
        /// The record.
        position: Position,
        /// How often this has failed so far.
        failures: u32,
    },
    /// The shard has ended, and its end is written when the handler has come to an end, too.
    EndUnconfirmed {
        /// How often the handler failed at the end.
        failures: u32,
    },
}

const DOUBTED: &str = "reads say that the records at the place which was asked for are missing, or are another shard's; a later read must \
                       bring these records, or several must say the same over `stream_lag`";

/// What follows "(the shard) has made no progress for (a while):" in a sentence.
impl fmt::Display for Stall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Stall::Settling => f.write_str(SETTLING),
            Stall::Parents(parents) => write!(f, "the shard waits for {} to end", super::Ids(parents)),
            Stall::UnreadableParents(parents) => unreadable(f, parents),
            Stall::Opening => f.write_str("the application has not opened the shard yet"),
            Stall::OpenFails { attempts } => {
                write!(f, "the application failed to open the shard {attempts} times, and is asked again after a pause")
            }
            Stall::Paused => f.write_str("the application has paused the shard"),
            Stall::Handler { attempt } => {
                write!(
                    f,
                    "the handler has not returned (attempt {attempt} with this batch)"
                )
            }
            Stall::HandlerFails { attempts } => {
                write!(f, "the handler failed {attempts} times with the same batch, and gets the batch again after a pause")
            }
            Stall::Kept { batches } => {
                write!(
                    f,
                    "the handler keeps {batches} batches that it has not acknowledged"
                )
            }
            Stall::Stopped { .. } | Stall::SettingAside { .. } | Stall::EndUnconfirmed { .. } => {
                self.fmt_failure(f)
            }
            Stall::Fenced => {
                f.write_str("the lease was not renewed in time, and another worker may have taken it; the next read of the row tells")
            }
            Stall::Missing => {
                f.write_str("the shard or one of its children was not found; the shards are listed until a listing shows the missing one")
            }
            Stall::Unproven { listings, against } => unproven(f, *listings, against.as_ref()),
            Stall::EndClaimed => f.write_str(
                "a read says that the shard has ended; a later read must say so, too, and name the same children",
            ),
            Stall::Doubted => f.write_str(DOUBTED),
            Stall::EndDenied { times } => write!(
                f,
                "reads say that the shard has ended, and listings show the shard open ({times} times in a row); a new \
                 iterator is taken after the last record"
            ),
            Stall::ReadsFail { failures } => {
                write!(f, "reads of the shard failed {failures} times in a row; the shard is read again after a pause")
            }
            Stall::AwaitsConsumer => f.write_str(AWAITS_CONSUMER),
            Stall::AwaitsEvent => f.write_str(AWAITS_EVENT),
            Stall::ReadsEmpty => f.write_str(READS_EMPTY),
            Stall::WaitsToRead => f.write_str(WAITS_TO_READ),
            Stall::CoParents(parents) => write!(
                f,
                "the shard has ended, and {} must have a lease before its end is written",
                super::Ids(parents)
            ),
            Stall::Children { left } => {
                write!(
                    f,
                    "the shard has ended, and {left} of its children have no lease yet; the leases are being created"
                )
            }
            Stall::Writing => f.write_str("the row of the lease cannot be written; the write is tried until the lease expires"),
            Stall::Closing => f.write_str("the application has not closed the shard yet"),
        }
    }
}

const SETTLING: &str =
    "the lease was stolen, and its former owner may still count on it for a lease duration";

const AWAITS_CONSUMER: &str = "the consumer of the stream is not ACTIVE yet, and `reader.mode` is `fan-out`; the consumer is described again \
     each second";
const AWAITS_EVENT: &str = "the subscription brings no event, although the service sends one every few seconds; after 20 s the shard is \
     subscribed to anew";
const READS_EMPTY: &str =
    "reads return no records, although the shard is not at its tip; the shard is read on";

const WAITS_TO_READ: &str = "the shard waits for its turn to be read: records of other shards that are not processed fill the memory \
    (`memory_budget`), or as many reads as may be are under way (`max_reads`)";

/// The sentence for a shard whose parents cannot be judged.
fn unreadable(f: &mut fmt::Formatter<'_>, parents: &[ShardId]) -> fmt::Result {
    write!(
        f,
        "the shard waits for {} to end, but a row that cannot be read keeps all workers from it: correct that row in the table",
        super::Ids(parents)
    )
}

/// The sentence for a shard that is not found: the wait, and its possible end.
fn unproven(f: &mut fmt::Formatter<'_>, listings: u32, against: Option<&ShardId>) -> fmt::Result {
    match against {
        None => write!(
            f,
            "the service does not find the shard; {listings} listings, apart in time, do not show the shard, and several must agree \
             before the shard counts as forgotten; until then its records are asked for again"
        ),
        Some(older) => write!(
            f,
            "the service does not find the shard, but the last listing, which lacks the shard, shows {older}, which the stream would \
             have forgotten first: that listing is behind; the shard is asked for again until a read finds the shard, or listings agree \
             that the stream has forgotten the shard"
        ),
    }
}

impl Stall {
    /// A sentence, if the stall comes from a failure of the handler.
    fn fmt_failure(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Stall::Stopped { position, attempts } => write!(
                f,
                "the handler failed {attempts} times with the record {position}, so nothing is handed over until the application \
                 resumes the shard"
            ),
            Stall::SettingAside {
                position,
                failures: 0,
            } => write!(f, "the record {position} is being set aside"),
            Stall::SettingAside { position, failures } => {
                write!(f, "setting aside the record {position} failed {failures} times")
            }
            Stall::EndUnconfirmed { failures: 0 } => f.write_str(
                "the shard has ended, and its end is not written before the handler has finished the shard, too",
            ),
            Stall::EndUnconfirmed { failures } => {
                write!(f, "the handler failed {failures} times at the end of the shard")
            }
            _ => {
                debug_assert!(false, "only what the handler could not do is told here");
                Ok(())
            }
        }
    }
}
