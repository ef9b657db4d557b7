//! Asking the stream for what the reader of a shard wants, within what the reads of all shards share.

use super::held::HeldLease;
use super::stage::Stage;
use crate::output::StreamOp;
use crate::reader::Want;
use crate::worker::context::{Context, Waiter};
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
}

impl HeldLease {
    /// Requests the reader's next records or iterator, if the budget has room.
    pub(super) fn fetch(&mut self, cx: &mut Context) {
        let now = cx.now();
        let Stage::Running(reading) = &mut self.stage else {
            return cx.broken("a shard is fetched while it runs");
        };
        // Nothing is fetched from before the moment in the row: the next owner would begin after that moment.
        let saved = self.lane.begins_earlier().is_none();
        let wanted = reading.reader.next(now, &cx.config().reader).filter(|_| saved);
        let Some(want) = wanted else {
            return self.wait_no_more(cx);
        };
        let bytes = match want {
            Want::GetIterator(_) => (0, 0),
            Want::GetRecords { limit, .. } => reading.reader.expects(limit),
        };
        let buffered = reading.reader.held_bytes();
        let ask = Ask::new(self.own.ix(), want.limit(), bytes, buffered);
        let grant = cx.reads_mut().ask(ask);
        self.share.waits = grant.is_none() && buffered == 0;
        let Some(grant) = grant else {
            return;
        };
        let (shard, limit) = (self.own.key().to_shard(), grant.limit());
        let op = match want {
            Want::GetIterator(from) => StreamOp::GetIterator { shard, from },
            Want::GetRecords { via, .. } => StreamOp::GetRecords { shard, via, limit },
        };
        let op = cx.stream(Waiter::Reader(self.own.ix()), self.own.stream(), op);
        cx.reads_mut().begun(op, grant);
        reading.reader.sent(op, now, limit);
    }

    /// Says what is buffered, and leaves the line when the shard is not read.
    pub(super) fn share_step(&mut self, cx: &mut Context) {
        let reading = self.stage.reading();
        let buffered = reading.map_or(0, |reading| reading.reader.held_bytes());
        cx.reads_mut().buffers(self.share.buffered, buffered);
        self.share.buffered = buffered;
        let is_read = matches!(&self.stage, Stage::Running(reading) if reading.reader.finished().is_none());
        if !is_read {
            self.wait_no_more(cx);
        }
    }

    fn wait_no_more(&mut self, cx: &mut Context) {
        if std::mem::take(&mut self.share.waits) {
            cx.reads_mut().leave(self.own.ix());
        }
    }
}
