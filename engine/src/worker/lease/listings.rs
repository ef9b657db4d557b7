//! Lists of all shards, for the held leases that wait for one.

use super::HeldLeases;
use super::held::HeldLease;
use super::processing::{Prospects, View};
use crate::ids::LeaseIx;
use crate::shard::Shard;
use crate::sync::{self, Unlisted};
use crate::time::Mono;
use crate::worker::context::Context;
use crate::worker::lease_table::{Lease, LeaseTable, OnLane};
use crate::worker::stream_set::StreamIx;
use std::collections::BTreeMap;

impl HeldLeases {
    /// The shards of a stream were listed: resolves all of the stream's held leases that wait for a listing. `asked`:
    /// when the listing was requested.
    pub(in crate::worker) fn on_shards_listed(
        &mut self, cx: &mut Context, leases: &mut LeaseTable, stream: StreamIx, asked: Mono, shards: &[Shard],
    ) {
        for ix in self.of(leases, stream, HeldLease::is_missing) {
            self.on_listing(cx, leases, ix, asked, shards);
        }
        let waiting = self.of(leases, stream, HeldLease::is_waiting);
        if waiting.is_empty() {
            return;
        }
        let by_id: BTreeMap<&str, &Shard> = shards.iter().map(|shard| (shard.id.as_str(), shard)).collect();
        for ix in waiting {
            let held = self.actions.held_mut(ix);
            let denied = held.and_then(|held| held.compare_parents(cx, asked, &by_id));
            if let Some(denied) = denied {
                leases.wrote(cx, ix, OnLane::NotParents(&denied));
                leases.wake(ix, cx.now());
            }
        }
    }

    /// A listing that a held lease waits for.
    fn on_listing(
        &mut self, cx: &mut Context, leases: &mut LeaseTable, ix: LeaseIx, asked: Mono, shards: &[Shard],
    ) {
        let (Some(held), Some(lease)) = (self.actions.held_mut(ix), leases.get(ix)) else {
            return cx.broken("a lease that waits for a listing is held");
        };
        let key = lease.key().as_str();
        let listed = shards.iter().find(|shard| shard.id.as_str() == key);
        let by_name = Unlisted { id: key, parents: &[], range: None };
        let against = match listed {
            Some(_) => None,
            None => sync::stands_against(lease.row().map_or(by_name, Unlisted::of), shards),
        };
        let view = View::new(asked, shards, listed, against);
        let prospects = held.awaits_other_parents().then(|| Prospects::new(leases, shards, ix));
        let follows = held.on_shards_listed(cx, leases, view, prospects.as_ref());
        leases.note_held(ix, held.note());
        if follows {
            leases.wake(ix, cx.now());
        }
    }

    /// The shards of a stream were listed, and the list contradicts itself. No decision follows, and shards not found
    /// are requested again.
    pub(in crate::worker) fn on_bad_listing(
        &mut self, cx: &Context, leases: &mut LeaseTable, stream: StreamIx,
    ) {
        for ix in self.of(leases, stream, HeldLease::is_missing) {
            if let Some(held) = self.actions.held_mut(ix) {
                held.try_again(cx);
                leases.note_held(ix, held.note());
            }
            leases.wake(ix, cx.now());
        }
    }

    /// The held leases of a stream for which this holds, in key order.
    fn of(&self, leases: &LeaseTable, stream: StreamIx, holds: fn(&HeldLease) -> bool) -> Vec<LeaseIx> {
        let of_stream = leases.iter().filter(|(_, lease)| Lease::stream(lease) == stream);
        let held = of_stream.filter(|(ix, _)| self.actions.held(*ix).is_some_and(holds));
        held.map(|(ix, _)| ix).collect()
    }
}
