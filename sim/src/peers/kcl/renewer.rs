//! A worker's owned leases, and their renewal.

use super::super::host::Host;
use super::super::sdk::Failure;
use super::lease::Lease;
use super::table::Table;
use leasehold_engine::ids::ShardId;
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;

/// A single acquisition of a lease.
pub(super) struct Held {
    pub lease: RefCell<Lease>,
    /// Distinguishes acquisitions of the same lease.
    pub token: u64,
    /// A renewal or a checkpoint is under way, and another write waits.
    busy: Cell<bool>,
    /// Version 3: the deadline for the hand-over, in ns since 1970.
    pub hand_over_by: Cell<Option<u64>>,
    /// Version 3: the hand-over was attempted.
    pub handed_over: Cell<bool>,
    /// Bytes from the shard since the last renewal.
    pub bytes: Cell<u64>,
}

pub(super) struct Renewer {
    pub host: Host,
    pub table: Table,
    pub failover_us: u64,
    owned: RefCell<BTreeMap<ShardId, Rc<Held>>>,
    /// The renewer was stopped.
    pub over: Cell<bool>,
}

/// The renewer renews a little more often than three times in a lease's duration.
const EPSILON_US: u64 = 25_000;

/// Version 3: the most time for a hand-over.
const PATIENCE_NS: u64 = 30_000_000_000;

impl Renewer {
    pub(super) fn new(host: Host, table: Table, failover_us: u64) -> Self {
        Self { host, table, failover_us, owned: RefCell::default(), over: Cell::new(false) }
    }

    /// At a fixed rate: after a round longer than the period, the next round follows at once.
    pub(super) async fn run(self: Rc<Self>) {
        let period = self.period_us();
        let mut due = self.host.mono_us();
        while !self.over.get() {
            self.renew_all().await;
            due += period;
            let wait = due.saturating_sub(self.host.mono_us());
            self.host.until(wait, || self.over.get()).await;
        }
    }

    /// Renews all leases at once, and waits for the last of them. A failed renewal waits for the next round.
    async fn renew_all(self: &Rc<Self>) {
        let all: Vec<Rc<Held>> = self.owned.borrow().values().rev().cloned().collect();
        let left = Rc::new(Cell::new(all.len()));
        for held in all {
            let (renewer, left) = (self.clone(), left.clone());
            self.host.spawn(async move {
                let _ = renewer.renew(&held).await;
                left.set(left.get() - 1);
            });
        }
        self.host.until(u64::MAX, || left.get() == 0).await;
    }

    async fn renew(&self, held: &Held) -> Result<(), Failure> {
        self.lock(held).await;
        let mut lease = held.lease.borrow().clone();
        self.measure(held, &mut lease);
        let renewed = match lease.is_expired(self.failover_us, self.host.mono_us()) {
            // The worker considers the lease lost, without a request.
            true => Ok(false),
            false => self.table.renew(&mut lease).await,
        };
        if renewed == Ok(true) {
            // The original counts from the answer, not from the request.
            lease.grown_us = Some(self.host.mono_us());
        }
        if lease.is_handed_over() && held.hand_over_by.get().is_none() {
            held.hand_over_by.set(Some(self.host.wall_ns() + PATIENCE_NS));
        }
        held.lease.replace(lease);
        held.busy.set(false);
        if !renewed? {
            // A new acquisition under this key is lost too.
            self.owned.borrow_mut().remove(&held.lease.borrow().key);
        }
        Ok(())
    }

    /// The shard's throughput, as a mean in which each period counts half as much as the next period.
    fn measure(&self, held: &Held, lease: &mut Lease) {
        let bytes = held.bytes.take();
        if bytes == 0 && lease.throughput.is_none() {
            return;
        }
        let now = bytes as f64 / 1_024.0 / (self.period_us() as f64 / 1e6);
        lease.throughput = Some(lease.throughput.map_or(now, |before| (before + now) / 2.0));
    }

    fn period_us(&self) -> u64 {
        (self.failover_us / 3).saturating_sub(EPSILON_US).max(1)
    }

    pub(super) async fn lock(&self, held: &Held) {
        self.host.until(u64::MAX, || !held.busy.get()).await;
        held.busy.set(true);
    }

    /// Adds a lease newly owned by this worker.
    pub(super) fn add(&self, lease: Lease) {
        if self.over.get() || lease.grown_us.is_none() {
            return;
        }
        let (key, token) = (lease.key.clone(), self.host.next_token());
        let held = Held {
            lease: RefCell::new(lease),
            token,
            busy: Cell::new(false),
            hand_over_by: Cell::new(None),
            handed_over: Cell::new(false),
            bytes: Cell::new(0),
        };
        self.owned.borrow_mut().insert(key, Rc::new(held));
    }

    /// The owned leases, by the worker's own clock.
    pub(super) fn held(&self) -> Vec<Rc<Held>> {
        let now = self.host.mono_us();
        let owned = self.owned.borrow();
        let lives = |held: &&Rc<Held>| !held.lease.borrow().is_expired(self.failover_us, now);
        owned.values().filter(lives).cloned().collect()
    }

    /// Whether the worker owns this acquisition of a lease, by its own clock.
    pub(super) fn holds(&self, held: &Held) -> bool {
        let now = self.host.mono_us();
        let lease = held.lease.borrow();
        let owned = self.owned.borrow();
        owned
            .get(&lease.key)
            .is_some_and(|known| known.token == held.token && !lease.is_expired(self.failover_us, now))
    }

    /// Lets go of a lease without a write: other workers wait until the lease expires.
    pub(super) fn forget(&self, held: &Held) {
        let mut owned = self.owned.borrow_mut();
        let key = &held.lease.borrow().key;
        if owned.get(key).is_some_and(|known| known.token == held.token) {
            owned.remove(key);
        }
    }

    pub(super) fn unlock(held: &Held) {
        held.busy.set(false);
    }

    pub(super) fn stop(&self) {
        self.over.set(true);
        self.owned.borrow_mut().clear();
    }

    /// Stores a checkpoint; returns whether the lease is (still) this worker's.
    pub(super) async fn checkpoint(&self, held: &Held, sequence: &str) -> Result<bool, Failure> {
        if !self.holds(held) {
            return Ok(false);
        }
        self.lock(held).await;
        let mut lease = held.lease.borrow().clone();
        sequence.clone_into(&mut lease.checkpoint);
        let written = self.table.checkpoint(&mut lease).await;
        match written {
            Ok(true) => {
                lease.grown_us = Some(self.host.mono_us());
                held.lease.replace(lease);
            }
            Ok(false) => self.forget(held),
            // The copy in memory stays as before, though the row may have changed.
            Err(_) => {}
        }
        held.busy.set(false);
        written
    }

    /// A process restarted under its old name continues with its former leases.
    pub(super) async fn regain(&self, me: &str) {
        let Ok(leases) = self.table.leases().await else {
            return;
        };
        for mut lease in leases {
            let mine = lease.owner.as_deref() == Some(me) && !lease.is_handed_over();
            if mine && self.table.renew(&mut lease).await == Ok(true) {
                lease.grown_us = Some(self.host.mono_us());
                self.add(lease);
            }
        }
    }
}
