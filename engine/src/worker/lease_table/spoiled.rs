//! Rows whose checkpoints are no places in their shards, in a table that is the stream's all the same; and the evidence
//! for that table.
//!
//! The owner of such a lease would read from a wrong place, or from no place. So no worker takes the lease before a
//! listing contradicts.

use super::{Lease, LeaseTable};
use crate::position::Checkpoint;
use crate::sync::Comparison;
use crate::worker::stream_set::StreamIx;
use std::collections::BTreeSet;

/// The streams in whose shards this worker went on after a place from some row: numbers of these rows are the stream's.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Progress(BTreeSet<StreamIx>);

impl LeaseTable {
    /// A listing was compared with the rows of a stream: the comparison names the spoiled rows.
    pub(in crate::worker) fn set_spoiled(&mut self, stream: StreamIx, compared: &Comparison) {
        let spoiled: BTreeSet<&str> = compared.misplaced().map(|(misfit, _)| misfit.lease.as_str()).collect();
        let of_stream = self.slots.iter_mut().flatten().filter(|lease| lease.stream == stream);
        for lease in of_stream {
            lease.spoiled = spoiled.contains(lease.key.as_str());
        }
    }

    /// A place that this worker has processed replaces the checkpoint of a row.
    pub(super) fn note_progress(&mut self, stream: StreamIx, before: Checkpoint, after: Checkpoint) {
        let on = matches!((before, after), (Checkpoint::At(before), Checkpoint::At(after)) if after > before);
        if on && !self.progress.0.contains(&stream) {
            self.progress.0.insert(stream);
        }
    }

    /// Whether this worker has processed records of a stream after a place that a row of the table said.
    pub(in crate::worker) fn has_progressed(&self, stream: StreamIx) -> bool {
        self.progress.0.contains(&stream)
    }
}

impl Lease {
    /// Whether the last listing showed that the checkpoint of the row is no place in its shard.
    pub(in crate::worker) fn is_spoiled(&self) -> bool {
        self.spoiled
    }
}
