//! Requests to the services: their kind, and their lease.

use super::stream::StreamRequest;
use crate::names::shard_of;
use crate::oracles::ShardNo;
use crate::oracles::fact::{Ask, Verb};
use crate::peers;
use crate::streams::{StreamNo, Streams};
use leasehold_engine::input::{Outcome, Refusal, Reply, Why};
use leasehold_engine::output::TableOp;
use leasehold_engine::row::{Change, RowRead};

#[derive(Clone, Debug)]
pub(super) enum Request {
    Table(TableOp),
    /// In the form of a foreign program.
    Item(peers::Request),
    Stream(StreamRequest),
    /// The request refers to data absent from the adapter.
    Gone,
}

impl Request {
    /// The stream of the request, if any.
    pub(super) fn stream(&self, streams: Streams) -> Option<StreamNo> {
        match self {
            Request::Stream(request) => Some(request.stream(streams)),
            _ => None,
        }
    }
}

pub(crate) fn verb(change: &Change) -> Verb {
    match change {
        Change::Create(_) => Verb::Create,
        Change::Renew { .. } => Verb::Renew,
        Change::Take { .. } => Verb::Take,
        Change::Claim { .. } => Verb::Claim,
        Change::Assign { .. } => Verb::Assign,
        Change::Offer { .. } => Verb::BeginHandOver,
        Change::Checkpoint { .. } => Verb::Checkpoint,
        Change::End { .. } => Verb::End,
        // No worker of a world makes a reset: for the world, a reset is a release.
        Change::Release { .. } | Change::Reset { .. } => Verb::Release,
        Change::HandOver { .. } => Verb::HandOver,
        // Outside the lanes, without the counter.
        Change::SetRange { .. } | Change::Weigh { .. } | Change::Name(_) => Verb::SetRange,
        Change::Delete { .. } | Change::Forget { .. } => Verb::Delete,
    }
}

pub(crate) type TableAsk = (Ask, Option<ShardNo>, Option<u64>, Option<u64>);

pub(crate) fn table_ask(op: &TableOp) -> TableAsk {
    match op {
        TableOp::Describe | TableOp::Create => (Ask::Setup, None, None, None),
        TableOp::OwnerIndex => (Ask::OwnerIndex, None, None, None),
        TableOp::Members(_) | TableOp::Fleet(_) | TableOp::FleetTable(..) => (Ask::Members, None, None, None),
        TableOp::Owned { .. } => (Ask::Owned, None, None, None),
        TableOp::Scan { .. } => (Ask::ScanPage, None, None, None),
        TableOp::Read { key } => (Ask::Read, shard_of(key), None, None),
        TableOp::Write(change) => {
            (Ask::Write(verb(change)), shard_of(change.key()), change.guard(), change.leaves())
        }
    }
}

/// The rows in an answer, and whether the answer is a page of a scan.
pub(crate) fn rows_in(outcome: &Outcome) -> (&[RowRead], bool) {
    match outcome {
        Outcome::Applied(Reply::Page(page)) => (&page.rows, true),
        Outcome::Applied(Reply::Row(Some(row))) => (std::slice::from_ref(&**row), false),
        Outcome::Refused(Refusal { current: Some(row), .. }) => (std::slice::from_ref(&**row), false),
        _ => (&[], false),
    }
}

pub(super) fn outcome_mark(ask: Ask, outcome: &Outcome) -> &'static str {
    let table = matches!(ask, Ask::ScanPage | Ask::Read | Ask::Write(_) | Ask::Members | Ask::Owned);
    match (table, outcome) {
        (true, Outcome::Applied(_)) => "table/applied",
        (true, Outcome::Refused(Refusal { why: Why::ConditionFailed, current: Some(_), .. })) => {
            "table/refused/condition-with-row"
        }
        (true, Outcome::Refused(Refusal { why: Why::ConditionFailed, .. })) => "table/refused/condition",
        (true, Outcome::Refused(_)) => "table/refused/other",
        (true, Outcome::NotSent(_)) => "table/not-sent",
        (true, Outcome::Unknown(_)) => "table/unknown",
        (false, Outcome::Applied(_)) => "stream/applied",
        (false, Outcome::Refused(Refusal { why: Why::Expired, .. })) => "stream/refused/expired",
        (false, Outcome::Refused(Refusal { why: Why::Gone, .. })) => "stream/refused/gone",
        (false, Outcome::Refused(_)) => "stream/refused/other",
        (false, Outcome::NotSent(_)) => "stream/not-sent",
        (false, Outcome::Unknown(_)) => "stream/unknown",
    }
}
