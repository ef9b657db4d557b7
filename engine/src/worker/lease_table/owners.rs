//! Which workers rows name as owners.

use super::LeaseTable;
use crate::ids::WorkerId;
use crate::time::{Mono, Span};
use crate::worker::context::Context;
use std::collections::BTreeSet;

impl LeaseTable {
    /// The owners of rows changed within `patience`, by all rows counted by other programs. Finished leases and leases
    /// of unread streams count, too. During a hand-over, both owners count.
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
