//! The requests of a shard's reader, within the share of the reads of all shards.

use crate::notice::Stall;
use crate::output::StreamOp;
use crate::reader::{Ctx, Reader, Want};
use crate::worker::context::{Context, Waiter};
use crate::worker::lease::lane::Lane;
use crate::worker::lease::ownership::Ownership;
use crate::worker::lease::processing::share::Share;
use crate::worker::read_budget::Ask;

/// Requests the reader's next records or iterator, if the budget has room.
pub(super) fn request(
    reader: &mut Reader, share: &mut Share, own: &Ownership, lane: &Lane, cx: &mut Context,
) {
    let now = cx.now();
    // Nothing is fetched from before the moment in the row: the next owner would begin after that moment.
    let saved = lane.begins_earlier().is_none();
    reader.read_by(cx.feeds(own.stream()));
    let wanted = reader.next(now, &cx.config().reader).filter(|_| saved);
    let Some(want) = wanted else {
        return share.wait_no_more(own, cx);
    };
    let bytes = match want {
        Want::GetIterator(_) | Want::Subscribe(_) => (0, 0),
        Want::GetRecords { limit, .. } => reader.expects(limit),
        Want::NextEvent { .. } => (reader.expects_event(), reader.expects_event()),
    };
    let buffered = reader.held_bytes();
    let ask = match want {
        Want::NextEvent { .. } => Ask::pushed(own.ix(), bytes.0, buffered),
        _ => Ask::new(own.ix(), want.limit(), bytes, buffered),
    };
    let grant = cx.reads_mut().ask(ask);
    share.wait(grant.is_none() && buffered == 0);
    let Some(grant) = grant else {
        // The budget has no room now.
        return;
    };
    let (shard, limit) = (own.key().to_shard(), grant.limit());
    let op = match want {
        Want::GetIterator(from) => StreamOp::GetIterator { shard, from },
        Want::GetRecords { via, .. } => StreamOp::GetRecords { shard, via, limit },
        Want::Subscribe(from) => {
            let Some(consumer) = cx.streams().consumer(own.stream()).cloned() else {
                cx.broken("a subscription is wanted only with a consumer");
                return;
            };
            StreamOp::Subscribe { shard, consumer, from }
        }
        Want::NextEvent { via } => StreamOp::NextEvent { shard, via },
    };
    let op = cx.stream(Waiter::Reader(own.ix()), own.stream(), op);
    cx.reads_mut().begun(op, grant);
    reader.sent(op, now, limit);
}

/// What the reader's decision after an outcome depends on.
pub(super) fn context<'a>(own: &'a Ownership, cx: &'a Context) -> Ctx<'a> {
    let config = cx.config();
    Ctx {
        cfg: &config.reader,
        retry_min: config.retry_min,
        retry_max: config.retry_max,
        stream_lag: config.stream_lag,
        stream_timeout: config.stream_timeout,
        seed: cx.seed(),
        subject: own.key().as_str(),
    }
}

/// Why the reader has no batch.
pub(super) fn why_empty(reader: &Reader) -> Stall {
    match reader.failures() {
        0 if reader.is_end_claimed() => Stall::EndClaimed,
        0 if reader.doubts() => Stall::Doubted,
        0 if reader.awaits_consumer() => Stall::AwaitsConsumer,
        0 if reader.awaits_event() => Stall::AwaitsEvent,
        0 => Stall::ReadsEmpty,
        failures => Stall::ReadsFail { failures },
    }
}
