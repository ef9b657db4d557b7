//! Drawing fleets with a leader, as in version 3 of the Java KCL, and the faults of leaders.

use super::Plan;
use crate::draws::{Draws, Roll};
use crate::faults::{CallFaults, Interruption, InterruptionKind, OutageFaults, StormFaults, WallStep};
use crate::peers::Program;
use leasehold_engine::time::Span;

/// The least length of a world with a leader, in µs: workers report every 30 s, and a leader's lock lasts for 120 s.
const LED_US: u64 = 150_000_000;

/// The least length of a world with coming and going leaders of our program, in µs.
const OURS_LEAD_US: u64 = 600_000_000;

/// A leader paused for this long has surely lost its lock, in µs: other workers look every 30 s, and wait for 120 s
/// from then on.
const STILL_US: u64 = 210_000_000;

/// The range of requests that the service executes twice, in one of a thousand.
const TWICE_PER_MILLE: (u64, u64) = (100, 400);

/// The length of a wrong clock, in µs. A worker's report is old after a minute.
const WRONG_US: (u64, u64) = (60_000_000, 120_000_000);

/// The greatest error of a clock, in ms.
const DAY_MS: u64 = 86_400_000;

/// The extra length of a world whose fleet migrates to version 3, in µs. The leader looks once a minute whether all
/// workers report. Each worker looks once a minute whether the migration is over.
const MIGRATING_US: u64 = 300_000_000;

/// The least length of a world, in µs.
pub(super) fn least_us(draws: Draws, migrates: bool, forgets: bool) -> u64 {
    let migrating_us = if migrates { MIGRATING_US } else { 0 };
    let led_us = match forgets || are_gone(draws) {
        true => OURS_LEAD_US,
        false => LED_US,
    };
    led_us + migrating_us
}

/// Whether all workers of the other program are absent for a while. On their return, a worker of ours leads.
fn are_gone(draws: Draws) -> bool {
    draws.below("leaders", 1, 3) == 0 || draws.below("leaders", 3, 4) == 0
}

impl Plan {
    /// The options of a fleet with a leader, and the faults of its leaders.
    pub(super) fn led(&mut self, draws: Draws) {
        // The KCL leader derives its periods from the lease duration. With a shorter duration, the leader counts a
        // worker as dead right after the worker has found its assigned leases. Our workers must look for assigned
        // leases once in a lease duration, like workers of the other program.
        let lease = Span::from_secs(10);
        // Without looks in the index, only scans show assigned leases. Scans are at most a lease duration apart, as in
        // a large table.
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
        if draws.below("leaders", 8, 3) == 0 {
            self.calm();
        }
        let mut interruptions = self.deaths_of_leaders(draws);
        // Owners that forget hand-overs live beside a leader of ours, and for long: the leader ends the hand-overs.
        let forgets = self.fleet.forgets;
        if !forgets {
            interruptions.extend(self.errors_of_all(draws));
        }
        if (forgets || are_gone(draws)) && self.faults.upgrade.turns.is_empty() {
            interruptions.extend(self.absence(draws));
        }
        interruptions.extend(std::mem::take(&mut self.faults.process.interruptions));
        interruptions.sort_by_key(|interruption| interruption.at);
        self.faults.process.interruptions = interruptions;
    }

    /// Requests of all workers are executed twice; the clocks of ours are wrong, or the fleet dies as a whole.
    fn errors_of_all(&mut self, draws: Draws) -> Vec<Interruption> {
        let mut interruptions = Vec::new();
        if draws.below("leaders", 4, 3) == 0 {
            interruptions.extend(self.doubled_beats(draws));
        }
        if draws.below("leaders", 5, 3) > 0 {
            interruptions.extend(self.wrong_clocks(draws));
        } else if draws.coin("leaders", 10) {
            let at = draws.between("leaders", 11, LED_US / 2, self.fault_us);
            interruptions.extend(self.blackout(at, draws.roll("leaders", 12)));
        }
        interruptions
    }

    /// The leader may die, and its successor, too; or the leader stands still beyond the end of its lock.
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

    /// Every request arrives, and every answer: only processes and clocks fail. A worker with a failed request may be
    /// late, so no oracle bounds the work of such a worker.
    fn calm(&mut self) {
        let latency_us = self.faults.call.latency_us;
        self.faults.call = CallFaults { latency_us, ..CallFaults::default() };
        self.faults.outage = OutageFaults::default();
        self.faults.storm = StormFaults::default();
    }

    /// The service executes many requests twice. The second execution of a leader's renewal is refused, although no
    /// other worker wrote the lock. Workers of ours stop meanwhile.
    fn doubled_beats(&mut self, draws: Draws) -> Vec<Interruption> {
        let mut roll = draws.roll("leaders", 9);
        let (low, high) = TWICE_PER_MILLE;
        self.faults.call.twice = self.faults.call.twice.max(roll.between(low, high) as u32);
        let stop = |worker| Interruption {
            at: roll.between(LED_US / 3, self.fault_us),
            worker,
            kind: InterruptionKind::Replace { gap_us: roll.magnitude(1_000_000, STILL_US) },
        };
        self.ours().into_iter().map(stop).collect()
    }

    /// The wall clock of a worker of ours is wrong for a while, by more than the age of an old report. All workers may
    /// die meanwhile: then the last report tells a wrong time to the workers that start later.
    fn wrong_clocks(&mut self, draws: Draws) -> Vec<Interruption> {
        let mut roll = draws.roll("leaders", 6);
        let ours = self.ours();
        let Some(worker) = ours.get(roll.below(ours.len() as u64) as usize).copied() else {
            return Vec::new();
        };
        let (least, most) = WRONG_US;
        let at = roll.between(20_000_000, self.fault_us.saturating_sub(most).max(20_000_000));
        let for_us = roll.between(least, most);
        let size = roll.magnitude(least / 1_000, DAY_MS) as i64;
        let by_ms = if roll.below(2) == 0 { size } else { -size };
        let step = |at, by_ms| WallStep { at, worker, by_ms, freeze: false };
        self.faults.clock.steps.extend([step(at, by_ms), step(at + for_us, -by_ms)]);
        self.faults.clock.steps.sort_by_key(|step| step.at);
        if roll.below(4) == 0 {
            return Vec::new();
        }
        self.blackout(at + roll.between(for_us / 2, for_us), roll)
    }

    /// All workers die, and are down for longer than a report counts. A worker of ours is back first, and sees reports
    /// and leases of dead workers alone for the first time.
    fn blackout(&self, at: u64, mut roll: Roll) -> Vec<Interruption> {
        let ours = self.ours();
        let first = ours.get(roll.below(ours.len() as u64) as usize).copied();
        let down_us = roll.between(WRONG_US.0, STILL_US);
        let death = |worker| {
            let later_us = if Some(worker) == first { 0 } else { roll.between(2_000_000, WRONG_US.0) };
            let kind = InterruptionKind::Crash { down_us: down_us + later_us, loops: 0 };
            Interruption { at, worker, kind }
        };
        (0..self.workers).map(death).collect()
    }

    fn ours(&self) -> Vec<u32> {
        (0..self.workers).filter(|worker| self.is_ours(*worker)).collect()
    }

    /// All workers of the other program die, and return after the end of their leader's lock. Later a worker of ours
    /// stands still, or dies.
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
            kind: match draws.coin("leaders", 7) {
                true => InterruptionKind::Pause { us: STILL_US },
                false => InterruptionKind::Crash { down_us: STILL_US, loops: 0 },
            },
        }));
        interruptions
    }

    fn is_ours(&self, worker: u32) -> bool {
        self.fleet.program(worker as usize) == Program::Leasehold
    }
}
