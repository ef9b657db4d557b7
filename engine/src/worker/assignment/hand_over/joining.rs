//! How many leases a worker that has just started requests from owners.
//!
//! * **One lease first.** By this lease, workers that start at once see each other, and work out equal shares: no lease
//!   moves twice.
//! * **Few leases, while an owner may have died.** A worker that crashes again and again would take its whole share
//!   down each time. While some owner has renewed nothing since the first scan, the worker has one lease, and twice as
//!   many after each interval of renewals. A deploy leaves no dead owner: a stopping worker lets go of its leases.
//!
//! A worker takes free and expired leases in any case: no worker reads their shards.

use crate::ids::{LeaseIx, WorkerId};
use crate::time::Mono;
use crate::worker::context::Context;
use crate::worker::lease_table::LeaseTable;
use std::collections::BTreeMap;

/// When this worker first requested a lease.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Joining {
    since: Option<Mono>,
}

impl Joining {
    /// How many leases this worker may have, if it requests any. `counts_since`: the time of the first count of leases.
    /// `leases_of`: by the owner in the rows.
    pub(super) fn most(
        &self, cx: &Context, leases: &LeaseTable, counts_since: Mono,
        leases_of: &BTreeMap<&WorkerId, Vec<LeaseIx>>,
    ) -> u32 {
        let config = cx.config();
        // By then, a worker that died since the count began has lost its leases.
        if cx.now().since(counts_since) >= config.lease_duration.times(2) {
            return u32::MAX;
        }
        let age = cx.now().since(self.since.unwrap_or(cx.now()));
        let shown = config.quick_scan_interval.times(2).min(config.lease_duration.per(4));
        match age < shown || may_have_died(cx, leases, leases_of) {
            true => 1 << (age.0 / config.renew_interval.0.max(1)).min(20),
            false => u32::MAX,
        }
    }

    /// A lease was requested.
    pub(super) fn requested(&mut self, now: Mono) {
        self.since.get_or_insert(now);
    }
}

/// Whether some owner has renewed and taken nothing since the first scan.
fn may_have_died(cx: &Context, leases: &LeaseTable, leases_of: &BTreeMap<&WorkerId, Vec<LeaseIx>>) -> bool {
    let since = leases.scans().first_ended();
    let unfinished = |ix: &LeaseIx| leases.get(*ix).filter(|lease| lease.is_unfinished());
    leases_of.iter().any(|(owner, theirs)| {
        let mut theirs = theirs.iter().filter_map(unfinished).peekable();
        *owner != cx.me() && theirs.peek().is_some() && theirs.all(|lease| lease.observed_at() <= since)
    })
}
