//! Commands without an outcome, by number, and the room waiting for each.

use super::by_number::ByNumber;
use super::request::RowWriteId;
use super::stream_set::StreamIx;
use crate::ids::LeaseIx;
use crate::time::Mono;

/// The room that waits for an outcome, and the room's data about the command.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Waiter {
    /// Start-up and the watch: the state of the table.
    TableState,
    /// Start-up: the creation of the table.
    TableCreate,
    /// Start-up and the watch: the state of the stream.
    StreamState(StreamIx),
    /// The search for the consumer of the stream.
    Consumer(StreamIx),
    /// Lease table: a page of a scan.
    Scan,
    /// Shard sync: a page of the listing of a stream's shards.
    List(StreamIx),
    /// Ranked: an operation on the tables of members.
    Members,
    /// KCL 3: a write of a fleet row, by which workers of a KCL 3.x fleet know each other.
    Kcl3Write,
    /// KCL 3: a look in the index of owners, and the reads of the rows named by the index.
    Discovery,
    /// KCL 3: a look at the tables beside the lease table, in which workers of KCL 3.0 to 3.4 know each other.
    Kcl3Look,
    /// A write or a read on a lease's own lane.
    Lane(LeaseIx),
    /// A strongly consistent read of another shard's row, for a lease that waits for that shard.
    Relative(LeaseIx),
    /// A row that is created, filled in, requested or removed beside the lanes.
    RowWrite(RowWriteId),
    /// A stream command of a lease's reader.
    Reader(LeaseIx),
    /// An application command of a lease.
    App(LeaseIx),
}

/// Who waits for each command, and since when.
pub(super) type Pending = ByNumber<(Waiter, Mono)>;
