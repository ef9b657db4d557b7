//! A worker's requests to the stream: the request of each command, and its answer.

use crate::faults::Says;
use crate::names::Names;
use crate::oracles::fact::Ask;
use crate::oracles::{ShardNo, Time};
use crate::streams::{self, StreamNo, Streams};
use crate::world::fleet::worker::Adapter;
use crate::world::services::stream::{Carry, Pushed, Sight, Source, not_found};
use leasehold_engine::ids::ShardId;
use leasehold_engine::input::{Cause, Outcome, Reply};
use leasehold_engine::output::{IteratorFrom, ShardFilter, StreamOp};
use leasehold_engine::stream_id::StreamId;
use leasehold_local_aws::kinesis::{ShardIndex, ShardIterator, Subscription};
use std::sync::Arc;

/// A request to the stream, with the iterator or page token of the command.
#[derive(Clone, Debug)]
pub(crate) enum StreamRequest {
    Describe { stream: StreamNo },
    List { stream: StreamNo, filter: ShardFilter, token: Option<String> },
    Iterator { shard: ShardNo, from: IteratorFrom },
    Records { shard: ShardNo, iterator: ShardIterator, limit: u32 },
    DescribeConsumer { stream: StreamNo, arn: Arc<str>, name: Arc<str> },
    RegisterConsumer { stream: StreamNo, arn: Arc<str>, name: Arc<str> },
    Subscribe { shard: ShardNo, consumer: Arc<str>, from: IteratorFrom },
    Event { shard: ShardNo, subscription: Box<Subscription> },
}

/// The stream of this identifier; without an identifier, the only stream.
///
/// # Panics
/// If a worker names a stream outside its world: a fault of the engine or of the world.
pub(crate) fn stream_no(streams: Streams, id: Option<&StreamId>) -> StreamNo {
    let asked = id.map_or(Some((0, 1)), |id| streams::place_of(id.as_str()));
    let (stream, count) = asked.unwrap_or_else(|| panic!("expected a stream of the world, found {id:?}"));
    assert!(streams.are(count), "expected one of {streams:?}, found {id:?}");
    stream
}

/// The request of a command about a stream, its kind, and its shard. The request is missing if the adapter has lost the
/// iterator or page token.
pub(crate) fn stream_request(
    adapter: &Adapter, (streams, stream): (Streams, StreamNo), op: StreamOp,
) -> (Option<StreamRequest>, Ask, Option<ShardNo>) {
    let shard_no = |id: &ShardId| {
        let index = streams::number(id.as_str())?;
        Some(streams.shard(stream, ShardIndex(index)))
    };
    match op {
        StreamOp::Describe => (Some(StreamRequest::Describe { stream }), Ask::DescribeStream(stream), None),
        StreamOp::ListShards { filter, after } => {
            let request = match after.map(|op| adapter.token(op.n).map(str::to_owned)) {
                Some(None) => None,
                token => Some(StreamRequest::List { stream, filter, token: token.flatten() }),
            };
            (request, Ask::page(after), None)
        }
        StreamOp::GetIterator { shard, from } => {
            let shard = shard_no(&shard);
            let request = shard.map(|shard| StreamRequest::Iterator { shard, from });
            (request, Ask::GetIterator, shard)
        }
        StreamOp::DescribeConsumer { stream: arn, name } => {
            (Some(StreamRequest::DescribeConsumer { stream, arn, name }), Ask::Consumer(stream), None)
        }
        StreamOp::RegisterConsumer { stream: arn, name } => {
            (Some(StreamRequest::RegisterConsumer { stream, arn, name }), Ask::Consumer(stream), None)
        }
        StreamOp::Subscribe { shard, consumer, from } => {
            let shard = shard_no(&shard);
            let request = shard.map(|shard| StreamRequest::Subscribe { shard, consumer, from });
            (request, Ask::Subscribe, shard)
        }
        StreamOp::NextEvent { shard, via } => {
            let shard = shard_no(&shard);
            let request = shard.and_then(|shard| {
                let subscription = Box::new(adapter.subscription(shard, via.n)?.clone());
                Some(StreamRequest::Event { shard, subscription })
            });
            (request, Ask::NextEvent, shard)
        }
        StreamOp::GetRecords { shard, via, limit } => {
            let shard = shard_no(&shard);
            let request = shard.and_then(|shard| {
                Some(StreamRequest::Records { shard, iterator: adapter.iterator(shard, via.n)?, limit })
            });
            (request, Ask::GetRecords, shard)
        }
    }
}

/// The error of a wrong creation time, in ms.
const MISTAKE_MS: i64 = 3_600_000;

/// A description of the stream with another creation time.
pub(super) fn mistaken(mut outcome: Outcome) -> Outcome {
    if let Outcome::Applied(Reply::Stream(state)) = &mut outcome {
        state.created.0 -= MISTAKE_MS;
    }
    outcome
}

/// An answer claims the end of the shard.
#[derive(Clone, Copy, Debug)]
pub(super) struct Claimed {
    named: bool,
    empty: bool,
}

impl Claimed {
    pub(super) fn new(named: bool, for_us: u64) -> Self {
        let empty = named || for_us > 0;
        Self { named, empty }
    }

    /// An answer that repeats the claim of an earlier answer.
    pub(super) fn again() -> Self {
        let (named, empty) = (false, true);
        Self { named, empty }
    }

    pub(super) fn brings_nothing(self) -> bool {
        self.empty
    }

    /// Removes the iterator from an answer. With named children, the answer has the children of the shard and is at the
    /// tip.
    pub(super) fn instead_of(
        self, outcome: &mut Outcome, request: &StreamRequest, source: &Source, names: &mut Names,
    ) {
        let (Outcome::Applied(Reply::Records(answer)), Some(shard)) = (outcome, request.shard()) else {
            return;
        };
        if self.named {
            answer.behind_ms = 0;
            answer.end.get_or_insert_with(|| source.children(shard, names));
        }
        answer.end.get_or_insert_default();
    }
}

impl StreamRequest {
    /// The shard of a read.
    fn shard(&self) -> Option<ShardNo> {
        match self {
            StreamRequest::Describe { .. }
            | StreamRequest::List { .. }
            | StreamRequest::DescribeConsumer { .. }
            | StreamRequest::RegisterConsumer { .. } => None,
            StreamRequest::Iterator { shard, .. }
            | StreamRequest::Records { shard, .. }
            | StreamRequest::Subscribe { shard, .. }
            | StreamRequest::Event { shard, .. } => Some(*shard),
        }
    }

    /// The stream of the request.
    pub(crate) fn stream(&self, streams: Streams) -> StreamNo {
        match self {
            StreamRequest::Describe { stream }
            | StreamRequest::List { stream, .. }
            | StreamRequest::DescribeConsumer { stream, .. }
            | StreamRequest::RegisterConsumer { stream, .. } => *stream,
            StreamRequest::Iterator { shard, .. }
            | StreamRequest::Records { shard, .. }
            | StreamRequest::Subscribe { shard, .. }
            | StreamRequest::Event { shard, .. } => streams.of(*shard),
        }
    }

    /// The answer of the stream. `empty`: the answer brings no records, though the shard has records.
    pub(crate) fn answer(
        &self, source: &mut Source, now: Time, empty: bool, names: &mut Names, sight: Sight<'_>,
    ) -> (Outcome, Carry) {
        if let (Some(replica), Some(shard)) = (sight.replica(), self.shard())
            && let Some(answer) = not_found(replica, shard)
        {
            return answer;
        }
        match self {
            StreamRequest::Describe { stream } => {
                let says = sight.replica().map_or(Says::Truth, |replica| replica.says);
                (source.describe_as(now, *stream, says), Carry::Nothing)
            }
            StreamRequest::List { stream, filter, token } => {
                source.list(now, *stream, *filter, token.as_deref(), names, sight)
            }
            StreamRequest::Iterator { shard, from } => source.iterator(now, *shard, *from),
            StreamRequest::Records { shard, iterator, limit } => {
                source.fetch(now, *shard, *iterator, *limit, empty, names)
            }
            StreamRequest::DescribeConsumer { arn, name, .. } => source.consumers().describe(now, arn, name),
            StreamRequest::RegisterConsumer { arn, name, .. } => source.consumers().register(now, arn, name),
            StreamRequest::Subscribe { shard, consumer, from } => {
                source.consumers().subscribe(now, *shard, consumer, *from)
            }
            StreamRequest::Event { shard, subscription } => {
                match source.consumers().push(now, *shard, &mut subscription.clone(), names) {
                    Pushed::Over(outcome, carry) => (outcome, carry),
                    Pushed::Waits(_) => (Outcome::Unknown(Cause::Timeout), Carry::Nothing),
                }
            }
        }
    }
}
