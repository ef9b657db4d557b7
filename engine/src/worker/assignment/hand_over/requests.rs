//! The requests for leases that this worker has made, in formats where a live worker hands a lease over on request.
//!
//! The owner hands a requested lease over when its present work is finished. But other programs may write a row back as
//! they knew the row, and so remove the request. Such a program writes old rows again and again. So the pauses before a
//! lost request is repeated grow.

use crate::ids::{LeaseIx, LeaseKey, WorkerId};
use crate::time::Mono;
use crate::worker::context::{Context, Request};
use crate::worker::lease_request::LeaseRequest;
use crate::worker::lease_table::{Lease, LeaseTable};
use std::collections::{BTreeMap, BTreeSet};

/// The longest pause between two requests for a lease is this power of two, in scan intervals.
const MAX_DOUBLINGS: u32 = 5;

/// The requests for leases that are still with the owners of whom they were requested.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Requests {
    made: BTreeMap<LeaseKey, Made>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Made {
    from: WorkerId,
    times: u32,
    /// Not again before this.
    again_at: Mono,
}

/// How many leases of other workers are being handed over to us, or requested. A requested lease counts until a scan
/// shows the hand-over or the refusal: a scan may be older than the request.
pub(super) fn count(cx: &Context, leases: &LeaseTable, requested: &[LeaseKey]) -> u32 {
    let coming = |lease: &&Lease| {
        let row = lease.row().filter(|row| row.handing_over.is_some());
        row.is_some_and(|row| row.owner.as_ref() == Some(cx.me()))
    };
    let coming = leases.unordered().filter(coming).map(Lease::key);
    let requested = requested.iter().filter(|key| {
        let lease = leases.find(key.as_str()).and_then(|ix| leases.get(ix));
        lease.is_none_or(|lease| !lease.busy())
    });
    let all: BTreeSet<&LeaseKey> = coming.chain(requested).collect();
    all.len() as u32
}

impl Requests {
    /// Whether it is not too soon to request a lease again.
    pub(super) fn may_request(&self, cx: &Context, lease: &Lease) -> bool {
        let owner = lease.row().and_then(|row| row.owner.as_ref());
        let made = self.made.get(lease.key());
        made.is_none_or(|made| Some(&made.from) != owner || cx.now() >= made.again_at)
    }

    /// Requests a lease from its owner. For a while, the worker looks at the row until the owner hands the lease over.
    /// Later, scans show the row.
    pub(super) fn request(&mut self, cx: &mut Context, leases: &LeaseTable, ix: LeaseIx) {
        let row = leases.get(ix).and_then(|lease| lease.row());
        let Some((row, from)) = row.and_then(|row| Some((row, row.owner.clone()?))) else {
            debug_assert!(false, "a lease is requested from its owner");
            return;
        };
        let now = cx.now();
        let before = self.made.get(&row.key).filter(|made| made.from == from);
        let times = before.map_or(0, |made| made.times).saturating_add(1);
        let doublings = (times - 1).min(MAX_DOUBLINGS);
        let made = Made { from, times, again_at: now + cx.config().scan_interval.times(1 << doublings) };
        let expires = now + cx.config().table_timeout;
        let request = LeaseRequest::new(row, made.from.clone(), cx.me().clone(), expires);
        self.made.insert(row.key.clone(), made);
        cx.request(Request::OfOwner(Box::new(request)));
    }

    /// Forgets the requests for leases no longer with the owner of whom they were requested.
    pub(super) fn forget_settled(&mut self, leases: &LeaseTable) {
        self.made.retain(|key, made| {
            let row = leases.row(key.as_str());
            row.is_some_and(|row| row.actual_owner() == Some(&made.from))
        });
    }
}
