//! Asking the stream for what the reader of a shard wants, within what the reads of all shards share.

use crate::output::StreamOp;
use crate::reader::{Reader, Want};
use crate::worker::context::{Context, Waiter};
use crate::worker::lease::lane::Lane;
use crate::worker::lease::ownership::Ownership;
use crate::worker::read_budget::Ask;

/// A lease's part of the resources shared by the reads of all shards.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Share {
    /// The bytes that are counted as buffered.
    buffered: u64,
    /// It waits in line.
    waits: bool,
}

impl Share {
    /// Whether the shard could be read, and other reads come first.
    pub(super) fn waits(self) -> bool {
        self.waits
    }

    /// Requests the reader's next records or iterator, if the budget has room.
    pub(super) fn fetch(&mut self, reader: &mut Reader, own: &Ownership, lane: &Lane, cx: &mut Context) {
        let now = cx.now();
        // Nothing is fetched from before the moment in the row: the next owner would begin after that moment.
        let saved = lane.begins_earlier().is_none();
        let wanted = reader.next(now, &cx.config().reader).filter(|_| saved);
        let Some(want) = wanted else {
            return self.wait_no_more(own, cx);
        };
        let bytes = match want {
            Want::GetIterator(_) => (0, 0),
            Want::GetRecords { limit, .. } => reader.expects(limit),
        };
        let buffered = reader.held_bytes();
        let ask = Ask::new(own.ix(), want.limit(), bytes, buffered);
        let grant = cx.reads_mut().ask(ask);
        self.waits = grant.is_none() && buffered == 0;
        let Some(grant) = grant else {
            return;
        };
        let (shard, limit) = (own.key().to_shard(), grant.limit());
        let op = match want {
            Want::GetIterator(from) => StreamOp::GetIterator { shard, from },
            Want::GetRecords { via, .. } => StreamOp::GetRecords { shard, via, limit },
        };
        let op = cx.stream(Waiter::Reader(own.ix()), own.stream(), op);
        cx.reads_mut().begun(op, grant);
        reader.sent(op, now, limit);
    }

    /// So many bytes are buffered now.
    pub(super) fn buffers(&mut self, buffered: u64, cx: &mut Context) {
        cx.reads_mut().buffers(self.buffered, buffered);
        self.buffered = buffered;
    }

    /// The shard is not to be read now: it leaves the line.
    pub(super) fn wait_no_more(&mut self, own: &Ownership, cx: &mut Context) {
        if std::mem::take(&mut self.waits) {
            cx.reads_mut().leave(own.ix());
        }
    }
}
