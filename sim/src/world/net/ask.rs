//! What is asked of the services: what it is, and which lease it is about.

use crate::names::shard_of;
use crate::oracles::ShardNo;
use crate::oracles::fact::{Ask, Verb};
use crate::peers;
use crate::world::fleet::worker::Adapter;
use crate::world::services::stream::shard_no;
use leasehold_engine::input::{Outcome, Refusal, Why};
use leasehold_engine::output::{IteratorFrom, ShardFilter, StreamOp, TableOp};
use leasehold_engine::row::Change;
use leasehold_local_aws::kinesis::ShardIterator;

#[derive(Clone, Debug)]
pub(super) enum Request {
    Table(TableOp),
    /// As another program makes it.
    Item(peers::Request),
    DescribeStream,
    List {
        filter: ShardFilter,
        token: Option<String>,
    },
    Iterator {
        shard: ShardNo,
        from: IteratorFrom,
    },
    Records {
        shard: ShardNo,
        iterator: ShardIterator,
        limit: u32,
    },
    /// Refers to something the adapter does not have.
    Gone,
}

/// What a command to the stream asks for; an answer it refers to may be gone.
pub(super) fn stream_request(adapter: &Adapter, op: StreamOp) -> (Request, Ask, Option<ShardNo>) {
    match op {
        StreamOp::Describe => (Request::DescribeStream, Ask::Setup, None),
        StreamOp::ListShards { filter, after } => {
            let token = after.map(|op| adapter.token(op.n).map(str::to_owned));
            let ask = Ask::page(after);
            match token {
                Some(None) => (Request::Gone, ask, None),
                token => (
                    Request::List {
                        filter,
                        token: token.flatten(),
                    },
                    ask,
                    None,
                ),
            }
        }
        StreamOp::GetIterator { shard, from } => match shard_no(&shard) {
            Some(shard) => (Request::Iterator { shard, from }, Ask::GetIterator, Some(shard)),
            None => (Request::Gone, Ask::GetIterator, None),
        },
        StreamOp::GetRecords { shard, via, limit } => {
            let shard = shard_no(&shard);
            match shard.and_then(|shard| adapter.iterator(shard, via.n).map(|iterator| (shard, iterator))) {
                Some((shard, iterator)) => (
                    Request::Records {
                        shard,
                        iterator,
                        limit,
                    },
                    Ask::GetRecords,
                    Some(shard),
                ),
                None => (Request::Gone, Ask::GetRecords, shard),
            }
        }
    }
}

pub(crate) fn verb(change: &Change) -> Verb {
    match change {
        Change::Create(_) => Verb::Create,
        Change::Renew { .. } => Verb::Renew,
        Change::Take { .. } => Verb::Take,
        Change::Claim { .. } => Verb::Claim,
        Change::Checkpoint { .. } => Verb::Checkpoint,
        Change::End { .. } => Verb::End,
        Change::Release { .. } => Verb::Release,
        Change::HandOver { .. } => Verb::HandOver,
        Change::SetRange { .. } => Verb::SetRange,
        Change::Delete { .. } => Verb::Delete,
    }
}

pub(crate) type TableAsk = (Ask, Option<ShardNo>, Option<u64>, Option<u64>);

pub(crate) fn table_ask(op: &TableOp) -> TableAsk {
    match op {
        TableOp::Describe | TableOp::Create => (Ask::Setup, None, None, None),
        TableOp::Members(_) => (Ask::Members, None, None, None),
        TableOp::Scan { .. } => (Ask::ScanPage, None, None, None),
        TableOp::Read { key } => (Ask::Read, shard_of(key), None, None),
        TableOp::Write(change) => (
            Ask::Write(verb(change)),
            shard_of(change.key()),
            change.guard(),
            change.leaves(),
        ),
    }
}

pub(super) fn outcome_mark(ask: Ask, outcome: &Outcome) -> &'static str {
    let table = matches!(ask, Ask::ScanPage | Ask::Read | Ask::Write(_) | Ask::Members);
    match (table, outcome) {
        (true, Outcome::Applied(_)) => "table/applied",
        (
            true,
            Outcome::Refused(Refusal {
                why: Why::ConditionFailed,
                current: Some(_),
                ..
            }),
        ) => "table/refused/condition-with-row",
        (
            true,
            Outcome::Refused(Refusal {
                why: Why::ConditionFailed,
                ..
            }),
        ) => "table/refused/condition",
        (true, Outcome::Refused(_)) => "table/refused/other",
        (true, Outcome::NotSent(_)) => "table/not-sent",
        (true, Outcome::Unknown(_)) => "table/unknown",
        (false, Outcome::Applied(_)) => "stream/applied",
        (
            false,
            Outcome::Refused(Refusal {
                why: Why::Expired, ..
            }),
        ) => "stream/refused/expired",
        (false, Outcome::Refused(Refusal { why: Why::Gone, .. })) => "stream/refused/gone",
        (false, Outcome::Refused(_)) => "stream/refused/other",
        (false, Outcome::NotSent(_)) => "stream/not-sent",
        (false, Outcome::Unknown(_)) => "stream/unknown",
    }
}
