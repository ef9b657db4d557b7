//! The faults of a world as a list of parts. Each part can be taken away.

use crate::faults::{
    Absence, Failing, Interruption, InterruptionKind, Outage, PermanentLoss, RequestFault, Reshard, RowEdit,
    Silence, Storm, Suspension, Trim, Trouble, Upgrade, WallStep,
};
use crate::swarm::Plan;

/// An entry names the part, the list in the plan, the fields with times, and the field with the worker.
macro_rules! parts {
    ($($Part:ident($Fault:ident) in $family:ident.$list:ident at $at:ident $(and $more:ident)? $(of $worker:ident)?;)+) => {
        /// One fault.
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub(super) enum Part {
            $($Part($Fault),)+
            PermanentLoss(PermanentLoss),
            RequestFault(RequestFault),
        }

        /// All faults of a world; the longest first, since long faults take most with them.
        pub(super) fn of(plan: &Plan) -> Vec<Part> {
            let faults = &plan.faults;
            let mut parts: Vec<Part> = Vec::new();
            $(parts.extend(faults.$family.$list.iter().map(|fault| Part::$Part(fault.to_owned())));)+
            parts.extend(faults.permanent_loss.iter().cloned().map(Part::PermanentLoss));
            parts.extend(faults.request_faults.iter().flatten().copied().map(Part::RequestFault));
            parts
        }

        /// The same world with only `parts` as its faults.
        pub(super) fn assemble(plan: &Plan, parts: &[Part]) -> Plan {
            let mut plan = plan.clone();
            let faults = &mut plan.faults;
            let listed = faults.request_faults.is_some();
            $(faults.$family.$list.clear();)+
            faults.permanent_loss = None;
            let mut request_faults = Vec::new();
            for part in parts.iter().cloned() {
                match part {
                    $(Part::$Part(fault) => faults.$family.$list.push(fault),)+
                    Part::PermanentLoss(loss) => faults.permanent_loss = Some(loss),
                    Part::RequestFault(fault) => request_faults.push(fault),
                }
            }
            faults.request_faults = listed.then_some(request_faults);
            plan
        }

        /// Leaves out faults at or after a time.
        pub(super) fn until(plan: &mut Plan, end: u64) {
            let faults = &mut plan.faults;
            $(faults.$family.$list.retain(|fault| fault.$at < end);)+
            faults.permanent_loss.take_if(|loss| loss.at >= end);
        }

        /// Leaves out faults of missing workers.
        pub(super) fn keep_possible(plan: &mut Plan) {
            if let Some(start) = &plan.start {
                plan.shards = start.shards.len() as u32;
            }
            plan.shards = plan.shards.next_multiple_of(plan.streams);
            let workers = plan.workers;
            let faults = &mut plan.faults;
            $($(faults.$family.$list.retain(|fault| fault.$worker < workers);)?)+
            faults.clock.rate_ppm.truncate(workers as usize);
            let (several, streams) = (&mut faults.several, plan.streams);
            several.absences.retain(|absence| absence.stream < streams && streams > 1);
            several.troubles.retain(|trouble| trouble.stream < streams && streams > 1);
            if let Some(request_faults) = &mut faults.request_faults {
                request_faults.retain(|fault| u32::from(fault.on.worker) < workers);
            }
        }

        /// Moves all timed events to a fraction of their times, rounded to the millisecond for easier reading.
        pub(super) fn hasten(plan: &mut Plan, numerator: u64, denominator: u64) {
            let sooner = |at: &mut u64| {
                let exact = (u128::from(*at) * u128::from(numerator) / u128::from(denominator.max(1))) as u64;
                *at = if exact > 10_000 { exact / 1_000 * 1_000 } else { exact };
            };
            sooner(&mut plan.fault_us);
            let faults = &mut plan.faults;
            $(for fault in &mut faults.$family.$list {
                sooner(&mut fault.$at);
                $(sooner(&mut fault.$more);)?
            })+
            if let Some(loss) = &mut faults.permanent_loss {
                sooner(&mut loss.at);
            }
            for interruption in &mut faults.process.interruptions {
                match &mut interruption.kind {
                    InterruptionKind::Crash { down_us, .. } => sooner(down_us),
                    InterruptionKind::Replace { gap_us } => sooner(gap_us),
                    // The length of a pause is the point of the pause.
                    InterruptionKind::Pause { .. } | InterruptionKind::Block { .. } => {}
                }
            }
        }
    };
}

parts! {
    Outage(Outage) in outage.outages at from and until of worker;
    Storm(Storm) in storm.storms at from and until;
    Failing(Failing) in storm.failing at from and until;
    Upgrade(Upgrade) in upgrade.turns at at and gap_us of worker;
    WallStep(WallStep) in clock.steps at at of worker;
    Suspension(Suspension) in suspension.suspensions at at of worker;
    Edit(RowEdit) in table.edits at at;
    Interruption(Interruption) in process.interruptions at at of worker;
    Reshard(Reshard) in stream.reshards at at;
    Trim(Trim) in stream.trims at at;
    Trouble(Trouble) in several.troubles at from and until;
    Absence(Absence) in several.absences at at and until of worker;
    Silence(Silence) in start.silences at from and until;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_world_is_the_sum_of_its_parts() {
        for seed in 0..200 {
            let mut plan = Plan::draw(seed);
            plan.faults.request_faults = Some(Vec::new());
            assert_eq!(assemble(&plan, &of(&plan)), plan);
            assert_eq!(of(&assemble(&plan, &[])), []);
        }
    }

    #[test]
    fn nothing_is_left_about_workers_that_are_not_there() {
        for seed in 0..200 {
            let mut plan = Plan::draw(seed);
            plan.workers = 1;
            keep_possible(&mut plan);
            let about = |part: &Part| match part {
                Part::Outage(outage) => outage.worker,
                Part::Interruption(interruption) => interruption.worker,
                Part::WallStep(step) => step.worker,
                Part::Suspension(suspension) => suspension.worker,
                Part::Upgrade(turn) => turn.worker,
                _ => 0,
            };
            assert!(of(&plan).iter().all(|part| about(part) == 0));
        }
    }
}
