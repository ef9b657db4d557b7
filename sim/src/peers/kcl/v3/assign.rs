//! The leader's task: it reads the table and assigns each lease to a worker.

use super::super::super::fleet::Assignment;
use super::super::super::host::Host;
use super::super::super::sdk::Failure;
use super::super::Worker;
use super::super::lease::Lease;
use super::{count, report, variance};
use crate::oracles::fact::Verb;
use std::collections::BTreeMap;
use std::rc::Rc;

/// A promised lease stays untouched for this time and one duration of a lease.
const PATIENCE_US: u64 = 30_000_000;

/// The leader looks at the balance in every third round.
const BALANCE_EVERY: u64 = 3;

/// The leader resigns after this many failures in a row.
const FAILURES: u32 = 3;

/// A lease in the leader's view.
#[derive(Clone, Debug)]
pub(super) struct Seen {
    pub lease: Lease,
    /// The lease has no owner, or its owner does not renew the lease.
    pub is_free: bool,
    /// The lease is promised, and untouched until this time.
    pub until_us: Option<u64>,
}

impl Seen {
    /// The lease's owner still has time for the hand-over.
    pub(super) fn is_blocked(&self, now_us: u64) -> bool {
        let waits = self.lease.is_handed_over() && self.until_us.is_some_and(|until| now_us < until);
        waits && !self.is_free && !self.lease.has_ended()
    }

    fn can_be_promised(&self) -> bool {
        !self.is_free && !self.lease.has_ended() && !self.lease.is_handed_over()
    }
}

/// The next owner of each lease, by the lease's key.
pub(super) type Moves = BTreeMap<String, String>;

pub(super) struct Assigner {
    worker: Rc<Worker>,
    led: bool,
    round: u64,
    failures: u32,
    /// Every lease in the state of the last round.
    before: BTreeMap<String, Seen>,
}

impl Assigner {
    pub(super) fn new(worker: Rc<Worker>) -> Self {
        Self { worker, led: false, round: 0, failures: 0, before: BTreeMap::new() }
    }

    /// With a fixed pause between two rounds. The lock's heartbeat runs beside the rounds, whatever their outcome.
    pub(super) async fn run(mut self) {
        let worker = self.worker.clone();
        let Some(fleet) = &worker.fleet else { return };
        let beating = worker.clone();
        worker.host.spawn(async move {
            if let Some(fleet) = &beating.fleet {
                fleet.lock.beat().await;
            }
        });
        let pause = 2 * worker.renewer.failover_us;
        loop {
            let done = match fleet.lock.is_leader().await {
                Ok(true) => self.lead().await,
                Ok(false) => {
                    self.led = false;
                    Ok(())
                }
                Err(failure) => Err(failure),
            };
            self.failures = if done.is_ok() { 0 } else { self.failures + 1 };
            if self.failures >= FAILURES {
                fleet.lock.resign().await;
            }
            if worker.host.sleep_or_stop(pause).await {
                return;
            }
        }
    }

    /// The leader does not check its lock again.
    async fn lead(&mut self) -> Result<(), Failure> {
        if !std::mem::replace(&mut self.led, true) {
            (self.round, self.failures) = (0, 0);
            self.before.clear();
        }
        let (leases, workers) = self.load().await?;
        let host = self.host().clone();
        self.note(leases, host.mono_us());
        let balance = self.round.is_multiple_of(BALANCE_EVERY);
        let moves = self.decide(&workers, balance);
        self.round += 1;
        self.write(moves).await
    }

    fn decide(&self, workers: &[String], balance: bool) -> Moves {
        let host = self.host();
        let mut seen: Vec<Seen> = self.before.values().cloned().collect();
        match self.worker.fleet.as_ref().map(|fleet| fleet.assignment) {
            Some(Assignment::Load) => {
                variance::share_out(&seen, workers, balance, |below| host.below("shuffle", below))
            }
            _ => {
                let mut moves = count::assign_free(&mut seen, workers);
                if balance {
                    count::balance(&mut seen, workers, host.mono_us(), &mut moves);
                }
                moves
            }
        }
    }

    fn host(&self) -> &Host {
        &self.worker.host
    }

    /// All leases, and the live workers.
    async fn load(&self) -> Result<(Vec<Lease>, Vec<String>), Failure> {
        let (mut leases, mut workers, mut after) = (Vec::new(), Vec::new(), None);
        loop {
            let (page, next) = self.worker.table.sdk.scan(false, after).await?;
            let now = self.host().wall_ns();
            for item in page {
                match report::live_worker(&item, now) {
                    Some(worker) => workers.push(worker),
                    None => leases.extend(Lease::of(&item)),
                }
            }
            if next.is_none() {
                break;
            }
            after = next;
        }
        if let Some(reports) = self.worker.fleet.as_ref().map(|fleet| &fleet.reports)
            && reports.beside
        {
            let items = reports.sdk.scan_all(true).await?;
            let now = self.host().wall_ns();
            workers.extend(items.iter().filter_map(|item| report::live(item, reports.key, now)));
        }
        Ok((leases, workers))
    }

    /// Dates the leases by the knowledge of the round before.
    fn note(&mut self, leases: Vec<Lease>, now: u64) {
        let failover_us = self.worker.renewer.failover_us;
        let before = std::mem::take(&mut self.before);
        for mut lease in leases {
            let known = before.get(lease.key.as_str());
            lease.grown_us = match known {
                Some(known) if lease.counter <= known.lease.counter => known.lease.grown_us,
                None if lease.actual_owner().is_none() => None,
                _ => Some(now),
            };
            let same = |known: &&Seen| {
                known.lease.owner == lease.owner && known.lease.checkpoint_owner == lease.checkpoint_owner
            };
            let until = known.filter(same).and_then(|known| known.until_us);
            let until_us = lease.is_handed_over().then(|| until.unwrap_or(now + PATIENCE_US + failover_us));
            let forgets = self.worker.fleet.as_ref().is_some_and(|fleet| fleet.forgets);
            let is_forgotten = forgets && until_us.is_some_and(|until| now >= until);
            let is_free =
                lease.actual_owner().is_none() || lease.is_expired(failover_us, now) || is_forgotten;
            let seen = Seen { lease, is_free, until_us };
            self.before.insert(seen.lease.key.to_string(), seen);
        }
    }

    async fn write(&mut self, moves: Moves) -> Result<(), Failure> {
        let (host, table) = (self.worker.host.clone(), &self.worker.table);
        let failover_us = self.worker.renewer.failover_us;
        for (key, to) in moves {
            let Some(seen) = self.before.get_mut(&key) else {
                continue;
            };
            if seen.is_blocked(host.mono_us()) {
                continue;
            }
            if seen.can_be_promised() {
                if table.promise(&mut seen.lease, &to).await? {
                    seen.until_us = Some(host.mono_us() + PATIENCE_US + failover_us);
                }
            } else if table.assign(Verb::Take, &mut seen.lease, &to).await? {
                seen.lease.grown_us = Some(host.mono_us());
            }
        }
        Ok(())
    }
}

#[cfg(test)]
pub(super) mod testing {
    use super::super::super::lease::Lease;
    use super::Seen;
    use leasehold_engine::shard::HashRange;

    /// Leases with these owners and throughputs; without an owner, a lease is free.
    pub(in super::super) fn seen<'a>(
        leases: impl IntoIterator<Item = (Option<&'a str>, Option<f64>)>,
    ) -> Vec<Seen> {
        let lease = |(n, (owner, throughput)): (usize, (Option<&str>, _))| {
            let mut lease = Lease::new(format!("s{n:02}").into(), [].iter(), HashRange::ALL, "LATEST");
            (lease.owner, lease.throughput) = (owner.map(str::to_owned), throughput);
            Seen { lease, is_free: owner.is_none(), until_us: None }
        };
        leases.into_iter().enumerate().map(lease).collect()
    }

    pub(in super::super) fn names(names: &[&str]) -> Vec<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }
}
