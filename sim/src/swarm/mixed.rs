//! Drawing fleets of our workers beside workers of another program. In upgrades, our workers replace the old workers,
//! worker by worker.

mod migrated;

use super::{Plan, fan_out, led};
use crate::draws::Draws;
use crate::faults::{
    ApplicationFaults, ClockFaults, Faults, InterruptionKind, PeerFaults, StreamFaults, SuspensionFaults,
    WallAfter, WallStep,
};
use crate::peers::{Assignment, Fleet, Program};
use leasehold_engine::config::InitialPosition;
use leasehold_engine::format::Format;
use leasehold_engine::policy::Life;
use migrated::migrated;
use std::sync::Arc;

impl Plan {
    /// The same world with workers of the tables' original program beside ours. In an upgrade, all workers run the
    /// other program until their turn. If no other program can run beside ours, nothing changes.
    ///
    /// Faults beyond the other program's power to recover are left out: otherwise each world would show known hazards.
    /// Known hazards have scenarios of their own (see [`crate::hazards`]).
    pub fn mixed(self) -> Self {
        let draws = Draws::new(self.seed);
        let other = match self.format {
            Format::VmwareGoKcl => Program::VmwareGoKcl,
            Format::Kinsumer => Program::Kinsumer,
            // Fleets of version 3 have by far more states.
            Format::Kcl if draws.coin("mixed", 2) || draws.coin("mixed", 8) => Program::Kcl3,
            Format::Kcl => Program::Kcl2,
            // Workers of kcl-rb and ours must never meet.
            _ => return self,
        };
        let (workers, shards) = (self.workers.clamp(2, 6), self.shards.min(32));
        let tables_beside = other == Program::Kcl3 && draws.coin("mixed", 4) && draws.coin("mixed", 5);
        let migrates = other == Program::Kcl3 && !tables_beside && draws.below("migrates", 0, 5) == 0;
        let forgets = other == Program::Kcl3 && !migrates && draws.below("mixed", 7, 6) == 0;
        let length_us = match other {
            Program::Kcl3 => self.fault_us.max(led::least_us(draws, migrates, forgets)),
            _ => self.fault_us,
        };
        // For kinsumer only: tables of the other programs begin empty, or with rows written by the other programs.
        let start = (other == Program::Kinsumer && draws.below("migrated", 1, 4) == 0)
            .then(|| migrated(draws, self.format));
        let shards = start.as_ref().map_or(shards, |start| start.shards.len() as u32);
        // The models of other programs read one stream.
        let mut plan = self.of_streams(1).resized(workers, shards, length_us);
        let programs = match draws.coin("mixed", 0) {
            _ if !plan.faults.upgrade.turns.is_empty() => vec![other],
            true => vec![other, Program::Leasehold],
            false => vec![Program::Leasehold, other],
        };
        plan.fleet = Fleet {
            programs,
            stealing: other == Program::VmwareGoKcl && draws.coin("mixed", 1),
            assignment: match other == Program::Kcl3 && draws.coin("mixed", 3) {
                true => Assignment::Load,
                false => Assignment::Count,
            },
            migrates,
            tables_beside,
            // In a migrating fleet, the fleet's workers create the index.
            owner_index: other == Program::Kcl3 && !migrates && draws.below("mixed", 6, 4) > 0,
            forgets,
            ..Fleet::default()
        };
        plan.upgraded = None;
        // From LATEST, a worker of the other program restarted before its first checkpoint begins at the latest record
        // of that moment.
        plan.configure(|config| {
            config
                .with_max_leases(0)
                .with_fleet_tables(tables_beside)
                .with_initial_position(InitialPosition::TrimHorizon)
        });
        plan.start = start.map(Arc::new);
        plan.faults = survivable(&plan, plan.faults.clone());
        if plan.config.policies().life != Life::Counter {
            keep_time(&mut plan.faults.suspension);
            plan.faults.clock.steps.clear();
        }
        plan.faults.peers = PeerFaults::draw(draws, plan.config.lease_duration().0);
        if other == Program::Kcl3 {
            plan.led(draws);
        }
        fan_out::fanned_beside(plan.read_in_time())
    }

    /// A worker of another program pauses after each read, even if more records wait: all records must be read long
    /// before the stream removes the oldest.
    fn read_in_time(mut self) -> Self {
        const MOST_READS: u64 = 2_000;
        let puts = self.fault_us / self.load.every_us.max(1) + 1;
        let records = u64::from(self.load.before) + puts * u64::from(self.load.burst);
        let least = u32::try_from(records / MOST_READS).unwrap_or(u32::MAX);
        self.configure(|config| {
            let reader = config.reader().clone();
            let records = reader.max_records().max(least).min(10_000);
            config.with_reader(reader.with_max_records(records))
        });
        self
    }
}

impl Plan {
    /// Whether the processes of a worker started at `now` run our program.
    pub(crate) fn runs_ours(&self, worker: usize, now: u64) -> bool {
        self.fleet.program(worker) == Program::Leasehold || self.faults.upgrade.reached(worker as u32, now)
    }

    /// Whether our workers run beside another program's workers, now or later.
    pub(crate) fn is_mixed(&self) -> bool {
        let ours = |worker| self.fleet.program(worker) == Program::Leasehold;
        let upgraded = !self.faults.upgrade.turns.is_empty();
        self.has_others() && (upgraded || (0..self.workers as usize).any(ours))
    }
}

/// Other programs compare a row's lease end with their own wall clocks. If the owner's wall clock stays behind, other
/// workers take lease after lease from the owner without end.
fn keep_time(faults: &mut SuspensionFaults) {
    for suspension in &mut faults.suspensions {
        if suspension.wall == WallAfter::Wrong {
            suspension.wall = WallAfter::Right;
        }
    }
}

/// A leader of KCL trusts the times in reports. If a worker dies with a clock a day ahead, the leader assigns leases to
/// the dead worker for a day. So each clock is corrected within two minutes.
fn set_right(clock: &mut ClockFaults, plan: &Plan) {
    const MOST_US: u64 = 120_000_000;
    let end = |step: &WallStep| {
        let mut roll = Draws::new(plan.seed).roll("set-right", step.at);
        step.at.saturating_add(roll.magnitude(1_000_000, MOST_US)).min(plan.fault_us)
    };
    let back =
        |step: &WallStep| WallStep { at: end(step), worker: step.worker, by_ms: -step.by_ms, freeze: false };
    clock.steps.retain(|step| !step.freeze);
    let backs: Vec<WallStep> = clock.steps.iter().map(back).collect();
    clock.steps.extend(backs);
    clock.steps.sort_by_key(|step| step.at);
}

/// Faults survived by programs of other libraries, and faults of our workers alone.
fn survivable(plan: &Plan, faults: Faults) -> Faults {
    let fleet = &plan.fleet;
    let is_ours = |worker: u32, at: u64| plan.runs_ours(worker as usize, at);
    let mut process = faults.process;
    process.interruptions.retain(|interruption| {
        let survived = match interruption.kind {
            // A frozen worker of the other program writes after its thaw, though another worker reads the shard by
            // then.
            InterruptionKind::Pause { .. } => false,
            // The models of other programs never block.
            InterruptionKind::Block { .. } => false,
            // kinsumer checkpoints delivered records: a crash loses records not yet processed.
            InterruptionKind::Crash { .. } => !fleet.programs.contains(&Program::Kinsumer),
            InterruptionKind::Replace { .. } => true,
        };
        is_ours(interruption.worker, interruption.at) || survived
    });
    let mut clock = faults.clock;
    clock.beyond = false;
    clock.rate_ppm.clear();
    clock.steps.retain(|step| is_ours(step.worker, step.at));
    if fleet.programs.contains(&Program::Kcl3) {
        set_right(&mut clock, plan);
    }
    Faults {
        call: faults.call,
        outage: faults.outage,
        storm: faults.storm,
        process,
        upgrade: faults.upgrade,
        clock,
        // Programs of other libraries are not suspended.
        suspension: faults.suspension,
        stream: StreamFaults {
            reshards: faults.stream.reshards,
            update_ms: faults.stream.update_ms,
            read_throttled: faults.stream.read_throttled,
            empty_read: faults.stream.empty_read,
            ..StreamFaults::default()
        },
        application: ApplicationFaults {
            // Workers of other programs cannot leave a record out.
            poison: 0,
            ..faults.application
        },
        ..Faults::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::{Options, run_plan};
    use leasehold_engine::time::Span;

    #[test]
    fn every_mixed_world_has_both_programs_and_can_be_told() {
        for seed in 0..500 {
            for format in [Format::Kcl, Format::VmwareGoKcl, Format::Kinsumer] {
                let plan = Plan::draw(seed).with_format(format).mixed();
                assert_eq!(plan.fleet.check(format), Ok(()));
                for config in plan.configs() {
                    assert_eq!(config.check(), Ok(()), "seed {seed}");
                }
                assert!(plan.is_mixed(), "seed {seed}");
            }
        }
    }

    #[test]
    fn in_some_worlds_a_fleet_goes_over_to_version_3() {
        let plans = (0..4_000).map(|seed| Plan::draw(seed).with_format(Format::Kcl).mixed());
        let led: Vec<Plan> = plans.filter(|plan| plan.fleet.is_led()).collect();
        let migrating: Vec<&Plan> = led.iter().filter(|plan| plan.fleet.migrates).collect();
        let share = migrating.len() * 100 / led.len();
        assert!((13..18).contains(&share), "{share} % of {}", led.len());
        for plan in migrating {
            let wait = plan.config.fleet().migration_wait();
            assert!(Span::from_secs(30) <= wait && wait.times(3) < Span(plan.fault_us), "{wait}");
        }
    }

    #[test]
    fn where_nobody_else_can_be_nothing_changes() {
        let plan = Plan::draw(7).with_format(Format::KclRb);
        assert_eq!(plan.clone().mixed(), plan);
    }

    /// A test of KCL's fleets alone, before mixed fleets.
    #[test]
    fn fleets_of_the_java_kcl_come_right_by_themselves() {
        for (program, seeds) in [(Program::Kcl2, 0..8), (Program::Kcl3, 0..8)] {
            for seed in seeds {
                let mut plan = Plan::draw(seed).with_format(Format::Kcl).mixed();
                plan.fleet.programs = vec![program];
                plan.faults.upgrade.turns.clear();
                plan.configure(|config| config.with_lease_duration(Span::from_secs(10)));
                plan.faults.process.interruptions = Vec::new();
                let found = run_plan(plan, &Options::default()).expect("expected no panic");
                let name = program.name();
                assert!(found.violations.is_empty(), "{name}, seed {seed}: {:?}", found.violations);
            }
        }
    }
}
