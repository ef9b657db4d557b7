//! Workers' requests, at the detail needed by oracles.

use super::Verb;
use crate::streams::StreamNo;
use leasehold_engine::ids::OpId;

/// A request of a worker, by its cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ask {
    /// DescribeTable, CreateTable.
    Setup,
    /// DescribeTable, for the index of owners.
    OwnerIndex,
    /// DescribeStreamSummary of the stream with this number.
    DescribeStream(StreamNo),
    /// One page of a scan.
    ScanPage,
    /// One row.
    Read,
    /// One write.
    Write(Verb),
    /// The first page of shards.
    ListShards,
    /// A further page of shards.
    ListMore,
    /// An iterator.
    GetIterator,
    /// Records.
    GetRecords,
    /// A subscription.
    Subscribe,
    /// The wait for the next event of a subscription: no request.
    NextEvent,
    /// DescribeStreamConsumer, RegisterStreamConsumer, for the stream with this number.
    Consumer(StreamNo),
    /// A request about members.
    Members,
    /// A page of the keys of a worker's leases, from the index of owners.
    Owned,
}

impl Ask {
    /// A page of shards, by the request of the page before.
    pub fn page(after: Option<OpId>) -> Self {
        match after {
            None => Self::ListShards,
            Some(_) => Self::ListMore,
        }
    }
}
