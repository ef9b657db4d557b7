//! Which workers rows name as owners.

use super::LeaseTable;
use crate::ids::WorkerId;
use crate::time::{Mono, Span};
use crate::worker::context::Context;
use std::collections::BTreeSet;

impl LeaseTable {
    /// The owners of rows that did not stand still for so long, of all rows that other programs count: finished leases and those of
    /// streams that this worker does not read are among them. During a hand-over, both owners.
    pub(in crate::worker) fn live_owners(&self, cx: &Context, patience: Span) -> BTreeSet<WorkerId> {
        let mut owners = BTreeSet::new();
        let mut count = |owner: &WorkerId| {
            if !owners.contains(owner) {
                owners.insert(owner.clone());
            }
        };
        for (_, lease) in self.iter() {
            let still = !lease.is_ours() && lease.idle() >= patience;
            if let Some(row) = lease.row().filter(|_| !still) {
                row.owner.iter().chain(&row.handing_over).for_each(&mut count);
            }
        }
        let moved = |since: Mono| cx.now().since(since) < patience;
        for (owner, _) in self.unread().owners().filter(|(_, since)| moved(*since)) {
            count(owner);
        }
        owners
    }
}
