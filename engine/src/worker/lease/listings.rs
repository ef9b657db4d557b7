//! Lists of all shards, for the held leases that wait for one.

use super::held::HeldLease;
use super::processing::{Prospects, View};
use crate::ids::LeaseIx;
use crate::shard::Shard;
use crate::sync::{self, Unlisted};
use crate::time::Mono;
use crate::worker::context::Context;
use crate::worker::lease_table::{Lease, LeaseTable};
use crate::worker::stream_set::StreamIx;
use std::collections::BTreeMap;

/// The shards of a stream were listed: resolves all of the stream's held leases that wait for a listing. `asked`: when
/// the listing was requested.
pub(in crate::worker) fn on_shards_listed(
    cx: &mut Context, leases: &mut LeaseTable, stream: StreamIx, asked: Mono, shards: &[Shard],
) {
    for ix in missing(leases, stream) {
        let row = leases.get(ix).and_then(Lease::row);
        let Some(key) = leases.get(ix).map(|lease| lease.key().clone()) else {
            continue;
        };
        let listed = shards.iter().find(|shard| shard.id.as_str() == key.as_str());
        let by_name = Unlisted { id: key.as_str(), parents: &[], range: None };
        let against = match listed {
            Some(_) => None,
            None => sync::stands_against(row.map_or(by_name, Unlisted::of), shards),
        };
        let view = View::new(asked, shards, listed, against);
        let held = leases.get(ix).and_then(Lease::held);
        let prospects =
            held.is_some_and(HeldLease::awaits_other_parents).then(|| Prospects::new(leases, shards, ix));
        let follows =
            leases.with_held(ix, |held, leases| held.on_shards_listed(cx, leases, view, prospects.as_ref()));
        if follows == Some(true) {
            leases.wake(ix, cx.now());
        }
    }
    let waiting = waiting(leases, stream);
    if waiting.is_empty() {
        return;
    }
    let by_id: BTreeMap<&str, &Shard> = shards.iter().map(|shard| (shard.id.as_str(), shard)).collect();
    for ix in waiting {
        let denied = leases.with_held(ix, |held, _| held.compare_parents(cx, asked, &by_id)).flatten();
        if let Some(denied) = denied {
            leases.deny_parents(ix, &denied);
            leases.wake(ix, cx.now());
        }
    }
}

/// The shards of a stream were listed, and the list contradicts itself. No decision follows, and shards not found are
/// requested again.
pub(in crate::worker) fn on_bad_listing(cx: &mut Context, leases: &mut LeaseTable, stream: StreamIx) {
    for ix in missing(leases, stream) {
        leases.with_held(ix, |held, _| held.try_again(cx));
        leases.wake(ix, cx.now());
    }
}

/// The held leases of a stream that wait for a listing.
fn missing(leases: &LeaseTable, stream: StreamIx) -> Vec<LeaseIx> {
    let of_stream = |lease: &&Lease| lease.stream() == stream;
    let waits = |ix: &LeaseIx| {
        let lease = leases.get(*ix).filter(of_stream);
        lease.and_then(Lease::held).is_some_and(HeldLease::is_missing)
    };
    leases.all().into_iter().filter(waits).collect()
}

/// The held leases of a stream whose shards wait for their parents.
fn waiting(leases: &LeaseTable, stream: StreamIx) -> Vec<LeaseIx> {
    let waits = |ix: &LeaseIx| {
        let lease = leases.get(*ix).filter(|lease| lease.stream() == stream);
        lease.and_then(Lease::held).is_some_and(HeldLease::is_waiting)
    };
    leases.all().into_iter().filter(waits).collect()
}
