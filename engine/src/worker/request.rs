//! Requests between rooms.

use super::lease_request::LeaseRequest;
use super::stream_set::StreamIx;
use crate::ids::LeaseIx;
use crate::notice::{Fatal, ListReason, TakeReason};
use crate::row::Change;
use crate::time::{Mono, Span};

/// Names a row that is written beside the lanes, until the write is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct RowWriteId(pub(super) u32);

/// A request of one room to another. The worker carries requests out in the order in which they were made, after the
/// requesting room has returned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Request {
    /// List the shards, unless they are being listed: something is missing, or not understood. With the reason.
    ListShards(StreamIx, ListReason),
    /// Scan the table at this moment at the latest, but not too soon after the last scan.
    Rescan(Mono),
    /// Find out whether the lease table is gone: an operation did not find it.
    DoubtTable,
    /// Take note that a stream to be read was found.
    StreamFound(StreamIx),
    /// Take note that the identity of a stream is known.
    StreamIdentified(StreamIx),
    /// Find out whether the stream is gone, and list its shards: a shard was not found.
    DoubtStream(StreamIx),
    /// Find out whether the consumer of the stream is gone: a subscription was refused.
    DoubtConsumer(StreamIx),
    /// Take note that a listing of the shards has ended, with the listing's duration.
    StreamListed(StreamIx, Span),
    /// Read a stream no more: the worker cannot go on with it.
    LoseStream(StreamIx, Fatal),
    /// Write a row beside the lanes.
    WriteRow {
        change: Change,
        why: String,
        /// The held lease whose end waits for this row.
        child_of: Option<LeaseIx>,
        /// Do not begin it after this moment.
        expires: Mono,
    },
    /// Write a request for a lease into the row of a live owner.
    OfOwner(Box<LeaseRequest>),
    /// Drop the rows to be created for this lease: the lease is not ours any more.
    DropRowWrites(LeaseIx),
    /// Take note that the lease of a child of this held lease's shard is written.
    ChildWritten(LeaseIx),
    /// Take note that a lease was given up by our own will.
    GivenUp(LeaseIx),
    /// Take a lease.
    Take(LeaseIx, TakeReason),
    /// The lease table is gone: nothing can be written any more. Stop.
    TableGone(Fatal),
    /// Stop: the worker cannot go on.
    Stop(Fatal),
}
