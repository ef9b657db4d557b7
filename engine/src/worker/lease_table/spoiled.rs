//! Rows whose checkpoints are no places in their shards, in a table that is the stream's all the same.
//!
//! The owner of such a lease would read from a wrong place, or from no place. So no worker takes the lease before a
//! listing contradicts.

use super::LeaseTable;
use crate::sync::Comparison;
use crate::worker::stream_set::StreamIx;
use std::collections::BTreeSet;

/// A listing was compared with the rows of a stream: the comparison names the spoiled rows.
pub(in crate::worker) fn mark_spoiled(leases: &mut LeaseTable, stream: StreamIx, compared: &Comparison) {
    let spoiled: BTreeSet<&str> = compared.misplaced().map(|(misfit, _)| misfit.lease.as_str()).collect();
    let of_stream = leases.slots.iter_mut().flatten().filter(|lease| lease.stream == stream);
    for lease in of_stream {
        lease.spoiled = spoiled.contains(lease.key.as_str());
    }
}
