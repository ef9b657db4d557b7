//! The polling reader of one shard, as a pure machine: the reader decides, and its embedder acts.
//!
//! The embedder asks [`Reader::next`] for the next command, issues the stream command, and reports its id with
//! [`Reader::sent`] and its outcome with [`Reader::fetched`]. Batches come out at [`Reader::front`] and are
//! acknowledged with [`Reader::processed`] or [`Reader::processed_through`]; [`Reader::watermark`] may be checkpointed.
//! The reader never sees a record: the id of a command stands for the batch that the command brought.
//!
//! ```mermaid
//! stateDiagram-v2
//!     [*] --> Lost
//!     Lost --> Locating: GetIterator sent
//!     Locating --> Ready: iterator
//!     Locating --> Lost: failed, backoff
//!     Ready --> Fetching: GetRecords sent
//!     Ready --> Lost: iterator unused for 4 min
//!     Fetching --> Ready: batch | failed, backoff (same iterator)
//!     Fetching --> Lost: Expired | Gone | Invalid
//!     Fetching --> Ended: batch with the end of the shard, proved
//!     Fetching --> Lost: batch with an end that a second answer must prove, perhaps after a pause
//!     Locating --> Paused: NotFound
//!     Fetching --> Paused: NotFound
//!     Paused --> Lost: resume, no iterator
//!     Paused --> Ready: resume
//!     Ready --> Lost: rewind
//!     Ended --> Lost: rewind, read on
//!     Locating --> Void: rewind
//!     Fetching --> Void: rewind
//!     Void --> Lost: outcome, ignored
//! ```
//!
//! In `Lost` and `Ready` the next command waits until it is due and the buffer has room; in all other states the reader
//! has no command to send. Buffered batches are independent of these states:
//!
//! ```mermaid
//! stateDiagram-v2
//!     [*] --> Waiting: fetched, with records
//!     Waiting --> Out: delivered (front only)
//!     Out --> Back: returned
//!     Back --> Out: delivered again, after the partial watermark
//!     Out --> [*]: processed
//!     Back --> [*]: wholly covered by the partial watermark
//!     Out --> Kept: kept by the application
//!     Kept --> [*]: acknowledged, and all before it
//!     Kept --> [*]: rewind, given back
//! ```
//!
//! # Invariants
//!
//! * **No record is skipped.** Before the first answer with records, a new iterator is asked for where reading began;
//!   then after the last record *fetched*, and after a [`rewind`](Reader::rewind) at the last record *processed*. A
//!   failed or unknown outcome moves no position. A start at a checkpoint reads the checkpointed record again, since
//!   parts of an aggregated record may be left, and filters by position. The watermark covers only an unbroken run of
//!   batches, all acknowledged, in whatever order. The end of the shard belongs to the place where it was fetched: a
//!   rewind forgets it. An end is believed when a second answer claims the end: from a new iterator after the last
//!   record, and without records. If the second answer names no children, `stream_lag` lies between the two answers. A
//!   record takes the claim back, and so do three answers at the tip with an iterator. Children are believed when two
//!   answers name the same children, and the children are complete for a closed shard. An answer that cannot come from
//!   the requested place is not taken: an answer with sequence numbers or children of another shard, with records from
//!   before the place, without the record to start at, or with records out of the order of their numbers. The answer is
//!   taken when three answers or more are doubtful for the same reason, and `stream_lag` lies between the first and the
//!   last of these answers. Where the record to start at is missing, the last two answers must begin with the same
//!   record. No record of an unordered answer is left out, and the watermark waits until all its records are processed.
//! * **Memory stays within the budget.** No read is sent while the buffered bytes or batches (including the batch being
//!   processed) are at their limit, so at most one batch lies above the limit. An empty buffer always has room, so no
//!   batch is too large. The number of records to ask for follows from the answers before (`machine/size.rs`). Kept
//!   batches have limits of their own; at these limits no more batches are handed over.
//! * **No storms.** At most one command is in flight; commands of a kind are `min_interval` apart, counted from
//!   emission, and bytes are paced. Every failure waits for an exponential backoff, reset only by a successful
//!   `GetRecords`. Two failures are exempt: the first expiry in a row, expected after a long stall, and refusals of
//!   reads for the rate: applications on one shard take turns (`machine/pace.rs`).
//!
//! # No iterator at `LATEST`
//!
//! An iterator at `LATEST` means "from now on", where "now" is the moment of its resolution. If the iterator is lost
//! before the first record was fetched, or its reader is gone, the next iterator starts later, and records that arrived
//! between the two starts are not read. So a shard at `LATEST` is read from a fixed moment. The module `began` tells
//! why the service may call this moment a future time, and how the reader then goes on.

mod buffer;
mod machine;
#[cfg(test)]
mod model;
#[cfg(test)]
mod tests;

pub use buffer::BatchRef;
pub(crate) use buffer::Buffer;
pub use machine::Reader;
pub(crate) use machine::{EVENT_PAUSE, Feeds, SILENCE, SUBSCRIBE_TIMEOUT};

use crate::config::ReaderConfig;
use crate::ids::OpId;
use crate::input::{Cause, Why};
use crate::output::IteratorFrom;
use crate::position::{Checkpoint, Position};
use crate::time::{Span, Wall};
use std::fmt;

/// Where reading begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Start {
    /// At the oldest record.
    TrimHorizon,
    /// At the first record at or after the moment at which the application began. If the service calls the moment a
    /// future time, a clock was ahead, and the reader tries an earlier moment.
    Since(Wall),
    /// At the first record at or after a time; the reader waits for a time in the future.
    AtTimestamp(Wall),
    /// After this processed position. The record is read again for its remaining parts.
    At(Position),
}

impl Start {
    /// Where reading of a lease with this checkpoint begins; absent if the shard is done.
    ///
    /// `began` is the moment for `LATEST` and `AT_TIMESTAMP`. Without a moment, the row said `AT_TIMESTAMP` alone, and
    /// the configuration of its owner names no time either. Then the shard is read from its oldest record: too much
    /// rather than too little.
    pub fn from(checkpoint: Checkpoint, began: Option<Wall>) -> Option<Start> {
        Some(match (checkpoint, began) {
            (Checkpoint::At(position), _) => Start::At(position),
            (Checkpoint::ShardEnd, _) => return None,
            (Checkpoint::Latest, Some(moment)) => Start::Since(moment),
            (Checkpoint::AtTimestamp, Some(time)) => Start::AtTimestamp(time),
            (Checkpoint::TrimHorizon | Checkpoint::Latest | Checkpoint::AtTimestamp, _) => Start::TrimHorizon,
        })
    }
}

/// A stream command the reader wants to be issued.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Want {
    /// An iterator.
    GetIterator(IteratorFrom),
    /// Records.
    GetRecords {
        /// The command that brought the iterator to use.
        via: OpId,
        /// At most this many records. The embedder may ask for fewer.
        limit: u32,
    },
    /// A subscription.
    Subscribe(IteratorFrom),
    /// The next event of a subscription.
    NextEvent {
        /// The command that brought the subscription to use.
        via: OpId,
    },
}

impl Want {
    /// How many records it asks for; 0: no number of records.
    pub fn limit(self) -> u32 {
        match self {
            Want::GetIterator(_) | Want::Subscribe(_) | Want::NextEvent { .. } => 0,
            Want::GetRecords { limit, .. } => limit,
        }
    }
}

/// What a decision after an outcome depends on besides the outcome.
#[derive(Clone, Copy, Debug)]
pub struct Ctx<'a> {
    /// How to read.
    pub cfg: &'a ReaderConfig,
    /// The least pause before a retry.
    pub retry_min: Span,
    /// The greatest pause before a retry.
    pub retry_max: Span,
    /// For how long answers of the service may be behind: `stream_lag` of the configuration.
    pub stream_lag: Span,
    /// How long an answer is waited for.
    pub stream_timeout: Span,
    /// Seed of the jitter.
    pub seed: u64,
    /// The key of the jitter: the shard.
    pub subject: &'a str,
}

/// Something the embedder should know about an outcome.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Event {
    /// The command failed; the reader goes on by itself.
    Trouble {
        /// The failure.
        how: How,
        /// The backoff. Pacing may lengthen the pause.
        again_in: Span,
    },
    /// A subscription was refused, or ended before its time; the reader subscribes again by itself.
    Unsubscribed {
        /// The failure.
        how: How,
        /// Calls in a row without an event.
        tries: u32,
        /// The pause before the next call. The limit of calls may lengthen the pause.
        again_in: Span,
        /// Whether iterators read the shard meanwhile.
        is_polled: bool,
    },
    /// Access was denied; the reader keeps trying.
    Denied {
        /// The backoff.
        again_in: Span,
    },
    /// The service keeps calling a position invalid. To go on elsewhere would skip records, so the reader keeps trying;
    /// a person must look at the checkpoint.
    BadPosition {
        /// The position.
        at: Position,
        /// Failures in a row.
        tries: u32,
        /// The backoff.
        again_in: Span,
    },
    /// The service calls the moment at which reading begins a future time: the clock of the worker that wrote the
    /// moment was ahead. Reading begins at an earlier moment.
    Early {
        /// The refused moment.
        at: Wall,
        /// The pause before the next try. Pacing may lengthen the pause.
        again_in: Span,
    },
    /// The shard or the stream does not exist. The reader pauses until [`Reader::resume`].
    ShardMissing,
    /// The record to start at is missing, and perhaps further records up to the first record found: several answers
    /// over `stream_lag` agree.
    Trimmed {
        /// The record looked for.
        at: Position,
        /// The first record found.
        first: Position,
    },
    /// The positions of an answer do not follow the earlier positions, or each other, and later answers agree. All its
    /// records are handed over, also records that may have been processed before. An answer with records but no last
    /// position is fetched again.
    Disorder {
        /// The last position fetched before; absent for the first answer.
        before: Option<Position>,
        /// The first position of the answer.
        first: Option<Position>,
        /// The last position of the answer.
        last: Option<Position>,
        /// The positions do not follow each other: no checkpoint is written before all of the answer was processed.
        inside: bool,
    },
    /// An answer cannot be of the place that was asked for. Nothing of the answer is taken. A new iterator is asked for.
    Doubted {
        /// The reason for the doubt.
        why: Doubtful,
        /// This many answers in a row are doubtful for this reason.
        answers: u32,
    },
    /// An answer claims the end of the shard without children. An answer `stream_lag` later must claim the end, too.
    WeakEnd {
        /// The pause before the next answer is asked for.
        again_in: Span,
    },
    /// The end of the shard has been fetched. An answer can mean two events at once, and the end is reported last, so
    /// decide by [`Reader::finished`].
    EndOfShard,
}

/// The reason to doubt an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Doubtful {
    /// The records have sequence numbers of another shard, or the children have different parents: the service gave the
    /// iterator or the answer of another shard.
    Foreign {
        /// The number of the shard in the sequence numbers. Absent: the children belong to another shard.
        of: Option<u32>,
    },
    /// The positions do not follow the earlier positions, or each other.
    Disorder {
        /// The last position fetched before; absent for the first answer.
        before: Option<Position>,
        /// The first position of the answer.
        first: Option<Position>,
        /// The last position of the answer.
        last: Option<Position>,
        /// The positions do not follow each other.
        inside: bool,
    },
    /// The record to start at is missing.
    Gap {
        /// The record looked for.
        at: Position,
        /// The first record found. Absent: the shard has no record from the requested place on.
        first: Option<Position>,
    },
}

/// How a command failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum How {
    /// The command was refused.
    Refused(Why),
    /// The command was not executed.
    NotSent(Cause),
    /// The execution is uncertain. Reading changes nothing, so the reader repeats the read as after a certain failure.
    Unknown(Cause),
    /// The answer does not fit the command.
    Mismatched,
}

impl fmt::Display for How {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            How::Refused(why) => write!(f, "{why}"),
            How::NotSent(cause) | How::Unknown(cause) => write!(f, "{cause}"),
            How::Mismatched => f.write_str("expected an answer to this command, found another kind"),
        }
    }
}
