//! A lease's part of what the reads of all shards share.

use crate::worker::context::Context;
use crate::worker::lease::ownership::Ownership;

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

    /// The shard is to be read now: whether it waits in line.
    pub(super) fn wait(&mut self, waits: bool) {
        self.waits = waits;
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
