//! What a worker asks of the stream: the request that each command becomes, and the answer to it.

use crate::draws::Roll;
use crate::names::Names;
use crate::oracles::fact::Ask;
use crate::oracles::{ShardNo, Time};
use crate::world::fleet::worker::Adapter;
use crate::world::services::stream::{Carry, Source, shard_no};
use leasehold_engine::input::Outcome;
use leasehold_engine::output::{IteratorFrom, ShardFilter, StreamOp};
use leasehold_local_aws::kinesis::ShardIterator;

/// A request to the stream, with the iterator or page token that the command refers to.
#[derive(Clone, Debug)]
pub(crate) enum StreamRequest {
    Describe,
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
}

/// The request that a command becomes, its kind, and the shard that it is about. There is no request if the adapter does not
/// have the iterator or page token any more.
pub(crate) fn stream_request(
    adapter: &Adapter,
    op: StreamOp,
) -> (Option<StreamRequest>, Ask, Option<ShardNo>) {
    match op {
        StreamOp::Describe => (Some(StreamRequest::Describe), Ask::Setup, None),
        StreamOp::ListShards { filter, after } => {
            let request = match after.map(|op| adapter.token(op.n).map(str::to_owned)) {
                Some(None) => None,
                token => Some(StreamRequest::List {
                    filter,
                    token: token.flatten(),
                }),
            };
            (request, Ask::page(after), None)
        }
        StreamOp::GetIterator { shard, from } => {
            let shard = shard_no(&shard);
            let request = shard.map(|shard| StreamRequest::Iterator { shard, from });
            (request, Ask::GetIterator, shard)
        }
        StreamOp::GetRecords { shard, via, limit } => {
            let shard = shard_no(&shard);
            let request = shard.and_then(|shard| {
                Some(StreamRequest::Records {
                    shard,
                    iterator: adapter.iterator(shard, via.n)?,
                    limit,
                })
            });
            (request, Ask::GetRecords, shard)
        }
    }
}

impl StreamRequest {
    /// The answer of the stream. `empty`: it brings no records, though there are some. `roll`: how far a listing is behind.
    pub(crate) fn answer(
        &self,
        source: &mut Source,
        now: Time,
        empty: bool,
        names: &mut Names,
        roll: &mut Roll,
    ) -> (Outcome, Carry) {
        match self {
            StreamRequest::Describe => (source.describe(now), Carry::Nothing),
            StreamRequest::List { filter, token } => source.list(now, *filter, token.as_deref(), names, roll),
            StreamRequest::Iterator { shard, from } => source.iterator(now, *shard, *from),
            StreamRequest::Records {
                shard,
                iterator,
                limit,
            } => source.fetch(now, *shard, *iterator, *limit, empty, names),
        }
    }
}
