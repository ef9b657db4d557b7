//! Commands without an outcome, by number, and who waits for it.

use super::context::RowWriteId;
use super::stream_set::StreamIx;
use crate::ids::LeaseIx;
use crate::time::Mono;
use std::hash::{BuildHasherDefault, Hasher};

/// The room that waits for an outcome, and what it needs to know of the command.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Waiter {
    /// Start-up and the watch: the state of the table.
    TableState,
    /// Start-up: the creation of the table.
    TableCreate,
    /// Start-up and the watch: the state of the stream.
    StreamState(StreamIx),
    /// Lease table: a page of a scan.
    Scan,
    /// Shard sync: a page of the listing of a stream's shards.
    List(StreamIx),
    /// Assignment: an operation on the tables of members.
    Members,
    /// Assignment: a write of a row by which workers of a KCL 3.x fleet know each other.
    Fleet,
    /// Assignment: a look in the index of owners, and the reads of the rows that it names.
    Discovery,
    /// Lease table: a look at the tables beside it, in which workers of KCL 3.0 to 3.4 know each other.
    FleetLook,
    /// A write or a read on a lease's own lane.
    Lane(LeaseIx),
    /// A strongly consistent read of the row of another shard, for a lease that waits for that shard.
    Relative(LeaseIx),
    /// A row that is created, filled in, claimed or removed beside the lanes.
    RowWrite(RowWriteId),
    /// A stream command of a lease's reader.
    Reader(LeaseIx),
    /// An application command of a lease.
    App(LeaseIx),
}

/// Spreads numbers, but keeps each sixteen consecutive ones together: what was asked for together is answered together,
/// and shares its cache lines. Nothing iterates over the map, so order never shows.
#[derive(Clone, Copy, Default)]
pub(super) struct NumberHasher(u64);

impl Hasher for NumberHasher {
    fn finish(&self) -> u64 {
        self.0
    }
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u64(u64::from(*byte));
        }
    }
    fn write_u64(&mut self, value: u64) {
        let spread = (self.0 ^ value >> 4)
            .wrapping_mul(0x9e37_79b9_7f4a_7c15)
            .rotate_left(26);
        self.0 = spread << 4 | value & 15;
    }
}

#[expect(
    clippy::disallowed_types,
    reason = "its hasher is fixed, and its entries are sorted where they are iterated over"
)]
pub(super) type Pending = std::collections::HashMap<u64, (Waiter, Mono), BuildHasherDefault<NumberHasher>>;
