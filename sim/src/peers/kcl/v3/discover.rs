//! A version 3 worker's way to leases: the worker looks for leases with its name.

use super::super::Worker;
use super::super::lease::Lease;
use crate::oracles::Time;
use leasehold_engine::ids::ShardId;
use std::collections::BTreeSet;
use std::rc::Rc;

/// The most delay of the index of owners behind the table.
const INDEX_US: Time = 1_000_000;

const EPSILON_US: u64 = 25_000;

impl Worker {
    pub(super) async fn discover(self: Rc<Self>) {
        let period = self.renewer.failover_us.saturating_sub(EPSILON_US).max(1);
        let mut due = self.host.mono_us();
        while !self.host.is_stopping() {
            self.look_for_leases().await;
            due += period;
            let wait = due.saturating_sub(self.host.mono_us());
            self.host.sleep_or_stop(wait).await;
        }
    }

    async fn look_for_leases(&self) {
        let mine = |lease: &Lease| lease.owner.as_deref() == Some(&self.me);
        let held: BTreeSet<ShardId> =
            self.renewer.held().iter().map(|held| held.lease.borrow().key.clone()).collect();
        let Ok(leases) = self.table.leases().await else {
            return;
        };
        self.host.sleep(self.host.below("index", INDEX_US)).await;
        for lease in leases.into_iter().filter(mine) {
            if held.contains(&lease.key) {
                continue;
            }
            if let Ok(Some(mut lease)) = self.table.lease(&lease.key).await
                && mine(&lease)
                && !lease.is_handed_over()
            {
                lease.grown_us = Some(self.host.mono_us());
                self.renewer.add(lease);
            }
        }
    }
}
