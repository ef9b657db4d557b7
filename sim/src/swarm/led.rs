//! Drawing fleets that have a leader, as in version 3 of the Java KCL, and what befalls their leaders.

use super::Plan;
use crate::draws::Draws;
use crate::faults::{Interruption, InterruptionKind};
use crate::peers::Program;
use leasehold_engine::time::Span;

/// Such a world lasts for so long at least, in µs: workers report every 30 s, and a leader's lock lasts for 120 s.
const LED_US: u64 = 150_000_000;

/// A world in which a leader of ours is to come and go lasts for so long at least, in µs.
const OURS_LEAD_US: u64 = 600_000_000;

/// Who stands still for so long has surely lost a leader's lock, in µs: others look every 30 s, and wait for 120 s from then on.
const STILL_US: u64 = 210_000_000;

/// How much longer a world lasts in which the fleet goes over to version 3, in µs: the leader looks once a minute whether all report, and
/// each worker once a minute whether it is over.
const MIGRATING_US: u64 = 300_000_000;

/// How long a world lasts at least, in µs.
pub(super) fn least_us(draws: Draws, migrates: bool) -> u64 {
    let migrating_us = if migrates { MIGRATING_US } else { 0 };
    let led_us = match are_gone(draws) {
        true => OURS_LEAD_US,
        false => LED_US,
    };
    led_us + migrating_us
}

/// Whether all workers of the other program are gone for a while. When they come back, one of ours leads.
fn are_gone(draws: Draws) -> bool {
    draws.below("leaders", 1, 3) == 0
}

impl Plan {
    /// What a fleet with a leader needs, and what befalls its leaders.
    pub(super) fn led(&mut self, draws: Draws) {
        // The periods of their leader follow from this: with a shorter one, it takes for dead a worker that has only just found out what it
        // was assigned. And who is assigned a lease must look for it once in a lease duration, as they do.
        let lease = Span::from_secs(10);
        // Without looks in the index, scans alone show what was assigned. They are at most a lease duration apart, as in a large table.
        let looks = match draws.below("discovery", 0, 4) {
            0 => Span::ZERO,
            1 => Span(draws.magnitude("discovery", 1, 200_000, lease.0)),
            _ => lease.per(4),
        };
        let is_large = draws.coin("discovery", 2);
        self.configure(|config| {
            let (scan, quick) = match is_large {
                true => (lease, lease),
                false => (config.scan_interval().min(lease), config.quick_scan_interval()),
            };
            let fleet = config.fleet().clone().with_discovery_interval(looks);
            let cleanup = match config.cleanup_delay() {
                Span::ZERO => Span::ZERO,
                delay => delay.max(lease.times(7)),
            };
            config
                .with_lease_duration(lease)
                .with_cleanup_delay(cleanup)
                .with_scan_interval(scan)
                .with_quick_scan_interval(quick.min(scan))
                .with_fleet(fleet)
        });
        if self.fleet.migrates {
            let wait = Span(draws.magnitude("migrates", 1, 30_000_000, 140_000_000));
            self.configure(|config| {
                let fleet = config.fleet().clone().with_migration_wait(wait);
                config.with_fleet(fleet)
            });
        }
        let mut interruptions = self.deaths_of_leaders(draws);
        if are_gone(draws) && self.faults.upgrade.turns.is_empty() {
            interruptions.extend(self.absence(draws));
        }
        interruptions.extend(std::mem::take(&mut self.faults.process.interruptions));
        interruptions.sort_by_key(|interruption| interruption.at);
        self.faults.process.interruptions = interruptions;
    }

    /// The leader may die, and its successor, too; or it stands still for longer than its lock lasts.
    fn deaths_of_leaders(&self, draws: Draws) -> Vec<Interruption> {
        let mut roll = draws.roll("leaders", 0);
        let deaths = 0..roll.below(4);
        let death = |_| {
            let at = roll.between(LED_US / 3, self.fault_us);
            let worker = roll.below(u64::from(self.workers)) as u32;
            let (down_us, still) = (roll.magnitude(1_000_000, LED_US), roll.below(2) == 0);
            let kind = match self.is_ours(worker) && still {
                true => InterruptionKind::Pause { us: STILL_US + down_us },
                false => InterruptionKind::Crash { down_us, loops: 0 },
            };
            Interruption { at, worker, kind }
        };
        deaths.map(death).collect()
    }

    /// All of their workers die, and come back when the lock of their leader is over; later one of ours stands still.
    fn absence(&self, draws: Draws) -> Vec<Interruption> {
        let mut roll = draws.roll("leaders", 2);
        let (ours, theirs): (Vec<u32>, Vec<u32>) =
            (0..self.workers).partition(|worker| self.is_ours(*worker));
        let mut interruptions: Vec<Interruption> = theirs
            .into_iter()
            .map(|worker| Interruption {
                at: roll.between(20_000_000, 40_000_000),
                worker,
                kind: InterruptionKind::Crash {
                    down_us: roll.between(LED_US, LED_US + 60_000_000),
                    loops: 0,
                },
            })
            .collect();
        interruptions.extend(ours.get(roll.below(ours.len() as u64) as usize).map(|worker| Interruption {
            at: roll.between(2 * LED_US, OURS_LEAD_US - STILL_US),
            worker: *worker,
            kind: InterruptionKind::Pause { us: STILL_US },
        }));
        interruptions
    }

    fn is_ours(&self, worker: u32) -> bool {
        self.fleet.program(worker as usize) == Program::Leasehold
    }
}
