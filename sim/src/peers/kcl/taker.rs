//! A version 2 worker's way to leases: the worker takes expired leases, and steals a lease a round.

use super::super::sdk::Failure;
use super::lease::Lease;
use super::renewer::Renewer;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

const EPSILON_US: u64 = 25_000;

/// Leases without a renewal for this many durations are taken beyond a fair share.
const VERY_OLD: u64 = 3;

/// The most attempts of a throttled take.
const ATTEMPTS: u32 = 3;

pub(super) struct Taker {
    pub renewer: Rc<Renewer>,
    pub me: String,
    /// Every lease in the state of the last scan.
    pub seen: RefCell<BTreeMap<String, Lease>>,
}

impl Taker {
    /// With a fixed pause between two rounds, as long as `goes_on` allows.
    pub(super) async fn run(self, goes_on: impl Fn() -> bool) {
        let host = &self.renewer.host;
        let pause = 2 * (self.renewer.failover_us + EPSILON_US);
        while goes_on() {
            // A failure is logged. The leases taken before the failure are then not renewed.
            if let Ok(taken) = self.round().await {
                for lease in taken {
                    self.renewer.add(lease);
                }
            }
            if host.sleep_or_stop(pause).await {
                return;
            }
        }
    }

    async fn round(&self) -> Result<Vec<Lease>, Failure> {
        let (host, table) = (&self.renewer.host, &self.renewer.table);
        let begun = host.mono_us();
        let scanned = table.leases().await?;
        let now = host.mono_us();
        self.note(scanned, now);
        let mut chosen = self.choose(now);
        // Half of a renewal's period.
        if now - begun > self.renewer.failover_us / 6 {
            for lease in &mut chosen {
                let Ok(found) = table.lease(&lease.key).await else {
                    continue;
                };
                let grown_us = lease.grown_us;
                // The original does not consider missing rows.
                *lease = found.ok_or(Failure::Other)?;
                lease.grown_us = grown_us;
            }
        }
        let mut taken = Vec::new();
        for mut lease in chosen {
            for attempt in 1.. {
                match table.take(&mut lease, &self.me).await {
                    Ok(true) => {
                        lease.grown_us = Some(host.mono_us());
                        taken.push(lease);
                    }
                    Err(Failure::Throttled) if attempt < ATTEMPTS => continue,
                    Ok(false) | Err(Failure::Throttled) => {}
                    Err(failure) => return Err(failure),
                }
                break;
            }
        }
        Ok(taken)
    }

    /// Notes the leases of a scan: an unchanged counter leaves the lease's time unchanged.
    fn note(&self, scanned: Vec<Lease>, now: u64) {
        let before = self.seen.take();
        let dated = scanned.into_iter().map(|mut lease| {
            lease.grown_us = Some(match before.get(lease.key.as_str()) {
                Some(known) if known.counter == lease.counter => known.grown_us.unwrap_or(0),
                Some(_) => now,
                None if lease.owner.is_none() => 0,
                None => now,
            });
            (lease.key.to_string(), lease)
        });
        let seen = dated.collect();
        self.seen.replace(seen);
    }

    fn choose(&self, now: u64) -> Vec<Lease> {
        let (host, failover_us) = (&self.renewer.host, self.renewer.failover_us);
        let seen = self.seen.borrow();
        // Times may lie before the beginning of the process; the clock of the original is never that young.
        let is_over = |lease: &Lease, us: u64| match lease.grown_us {
            None | Some(0) => true,
            Some(grown) => now.saturating_sub(grown) > us,
        };
        let is_free = |lease: &&Lease| lease.owner.is_none() || is_over(lease, failover_us);
        let mut counts = BTreeMap::from([(self.me.as_str(), 0_usize)]);
        for lease in seen.values().filter(|lease| !is_free(lease)) {
            *counts.entry(lease.owner.as_deref().unwrap_or_default()).or_default() += 1;
        }
        let mine = counts[self.me.as_str()];
        let very_old: Vec<Lease> =
            seen.values().filter(|lease| is_over(lease, VERY_OLD * failover_us)).cloned().collect();
        if !very_old.is_empty() {
            // Leases without any earlier owner are among them: the first worker takes them all.
            return host.shuffled("shuffle", very_old);
        }
        let target = match counts.len() >= seen.len() {
            true => 1,
            false => seen.len().div_ceil(counts.len()),
        };
        let Some(need) = target.checked_sub(mine).filter(|need| *need > 0) else {
            return Vec::new();
        };
        let free: Vec<Lease> = seen.values().filter(is_free).cloned().collect();
        if !free.is_empty() {
            let mut free = host.shuffled("shuffle", free);
            free.truncate(need);
            return free;
        }
        let most = counts.values().copied().max().unwrap_or(0);
        let Some(loaded) = counts.iter().find(|(_, count)| **count == most).map(|(owner, _)| *owner) else {
            return Vec::new();
        };
        let spare = most.saturating_sub(target);
        if most < target || (spare == 0 && need <= 1) {
            return Vec::new();
        }
        let of_loaded = seen.values().filter(|lease| lease.owner.as_deref() == Some(loaded));
        let mut stolen = host.shuffled("shuffle", of_loaded.cloned().collect());
        stolen.truncate(1);
        stolen
    }
}
