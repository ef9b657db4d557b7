//! The gauges of a worker. Each update computes the gauges from the engine's and the store's state: gauges cannot
//! drift from the state.

use crate::machine::Machine;
use crate::metrics::{self, Meter, seconds};
use crate::store::Store;
use leasehold_engine::ids::{FencingToken, ShardId};
use leasehold_engine::time::{Mono, Span};
use std::collections::BTreeMap;

/// Sets the gauges of one worker; dropping this struct sets all gauges to 0.
#[derive(Debug, Default)]
pub(crate) struct Gauges {
    meter: Meter,
    store: Store,
    /// For how long a lease is believed in after a confirmed renewal; zero before that is known.
    hold: Span,
    /// What was held when they were last set.
    held: BTreeMap<ShardId, Seen>,
}

/// One ownership of a shard.
#[derive(Debug)]
struct Seen {
    token: FencingToken,
    /// When it was first seen to be held.
    since: Mono,
}

impl Gauges {
    pub(crate) fn new(meter: Meter, store: Store) -> Self {
        Self { meter, store, hold: Span::ZERO, held: BTreeMap::new() }
    }

    /// A life begins. `hold`: how long a worker counts on a lease after a confirmed renewal.
    pub(crate) fn begin(&mut self, hold: Span) {
        self.hold = hold;
    }

    /// Sets all gauges to what is so now.
    pub(crate) fn set(&mut self, now: Mono, engine: &impl Machine) {
        let mut before = std::mem::take(&mut self.held);
        let mut sums = Sums::default();
        let mut least_left = self.hold;
        engine.each_held(&mut |held| {
            let shard = held.lease.to_shard();
            let since = match before.remove(&shard) {
                Some(seen) if seen.token == held.token => seen.since,
                _ => now,
            };
            let backlog = self.store.backlog(&shard, now);
            let behind = backlog.behind.unwrap_or(now.since(since));
            set_shard(&self.meter, &shard, behind, backlog.records);
            sums.held += 1;
            sums.stalled += u64::from(held.stalled);
            sums.stopped += u64::from(held.stopped);
            sums.waiting += backlog.records;
            sums.behind = sums.behind.max(behind);
            least_left = least_left.min(held.valid_until.since(now));
            let token = held.token;
            self.held.insert(shard, Seen { token, since });
        });
        for gone in before.keys() {
            set_shard(&self.meter, gone, Span::ZERO, 0);
        }
        sums.set(&self.meter);
        self.meter.set(&metrics::LEASE_USED, [], used(self.hold, least_left));
        let unreadable = engine.unreadable() as f64;
        self.meter.set(&metrics::ROWS_UNREADABLE, [], unreadable);
    }
}

/// What is so of all shards together.
#[derive(Default)]
struct Sums {
    held: u64,
    stalled: u64,
    stopped: u64,
    waiting: u64,
    behind: Span,
}

impl Sums {
    fn set(&self, meter: &Meter) {
        meter.set(&metrics::LEASES_HELD, [], self.held as f64);
        meter.set(&metrics::LEASES_STALLED, [], self.stalled as f64);
        meter.set(&metrics::SHARDS_STOPPED, [], self.stopped as f64);
        meter.set(&metrics::WAITING, [], self.waiting as f64);
        meter.set(&metrics::BEHIND, [], seconds(self.behind));
    }
}

impl Drop for Gauges {
    fn drop(&mut self) {
        for shard in self.held.keys() {
            set_shard(&self.meter, shard, Span::ZERO, 0);
        }
        Sums::default().set(&self.meter);
        self.meter.set(&metrics::LEASE_USED, [], 0.0);
        self.meter.set(&metrics::ROWS_UNREADABLE, [], 0.0);
    }
}

/// The elapsed part of `hold`, from the time left.
fn used(hold: Span, left: Span) -> f64 {
    if hold == Span::ZERO {
        return 0.0;
    }
    1.0 - seconds(left) / seconds(hold)
}

fn set_shard(meter: &Meter, shard: &ShardId, behind: Span, waiting: u64) {
    let label = || [std::sync::Arc::<str>::from(shard.clone()).into()];
    meter.set(&metrics::SHARD_BEHIND, label(), seconds(behind));
    meter.set(&metrics::SHARD_WAITING, label(), waiting as f64);
}

#[cfg(test)]
#[path = "gauges_tests.rs"]
mod tests;
