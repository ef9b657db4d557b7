//! The faults of a world as a list of parts. Each part can be taken away.

use crate::faults::{
    Absence, Interruption, InterruptionKind, Outage, PermanentLoss, RequestFault, Reshard, RowEdit,
    SeveralFaults, Silence, Storm, Suspension, Trim, Trouble, Upgrade, WallStep,
};
use crate::swarm::Plan;

/// One fault.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Part {
    RequestFault(RequestFault),
    Outage(Outage),
    Storm(Storm),
    Upgrade(Upgrade),
    Interruption(Interruption),
    WallStep(WallStep),
    Suspension(Suspension),
    Reshard(Reshard),
    Edit(RowEdit),
    Trim(Trim),
    PermanentLoss(PermanentLoss),
    Absence(Absence),
    Trouble(Trouble),
    Silence(Silence),
}

/// All faults of a world; the longest first, since long faults take most with them.
pub(super) fn of(plan: &Plan) -> Vec<Part> {
    let faults = &plan.faults;
    let mut parts: Vec<Part> = Vec::new();
    parts.extend(faults.outage.outages.iter().cloned().map(Part::Outage));
    parts.extend(faults.storm.storms.iter().cloned().map(Part::Storm));
    parts.extend(faults.upgrade.turns.iter().cloned().map(Part::Upgrade));
    parts.extend(faults.clock.steps.iter().cloned().map(Part::WallStep));
    let suspensions = faults.suspension.suspensions.iter();
    parts.extend(suspensions.copied().map(Part::Suspension));
    parts.extend(faults.table.edits.iter().cloned().map(Part::Edit));
    parts.extend(faults.process.interruptions.iter().cloned().map(Part::Interruption));
    parts.extend(faults.stream.reshards.iter().cloned().map(Part::Reshard));
    parts.extend(faults.stream.trims.iter().cloned().map(Part::Trim));
    parts.extend(faults.several.troubles.iter().cloned().map(Part::Trouble));
    parts.extend(faults.several.absences.iter().cloned().map(Part::Absence));
    parts.extend(faults.start.silences.iter().cloned().map(Part::Silence));
    parts.extend(faults.permanent_loss.iter().cloned().map(Part::PermanentLoss));
    parts.extend(faults.request_faults.iter().flatten().copied().map(Part::RequestFault));
    parts
}

/// The same world with only `parts` as its faults.
pub(super) fn assemble(plan: &Plan, parts: &[Part]) -> Plan {
    let mut plan = plan.clone();
    let faults = &mut plan.faults;
    let listed = faults.request_faults.is_some();
    faults.outage.outages.clear();
    faults.storm.storms.clear();
    faults.upgrade.turns.clear();
    faults.clock.steps.clear();
    faults.suspension.suspensions.clear();
    faults.table.edits.clear();
    faults.process.interruptions.clear();
    faults.stream.reshards.clear();
    faults.stream.trims.clear();
    faults.several = SeveralFaults::default();
    faults.start.silences.clear();
    faults.permanent_loss = None;
    let mut request_faults = Vec::new();
    for part in parts.iter().cloned() {
        match part {
            Part::RequestFault(fault) => request_faults.push(fault),
            Part::Outage(outage) => faults.outage.outages.push(outage),
            Part::Interruption(interruption) => faults.process.interruptions.push(interruption),
            Part::Storm(storm) => faults.storm.storms.push(storm),
            Part::Upgrade(turn) => faults.upgrade.turns.push(turn),
            Part::WallStep(step) => faults.clock.steps.push(step),
            Part::Suspension(suspension) => faults.suspension.suspensions.push(suspension),
            Part::Reshard(reshard) => faults.stream.reshards.push(reshard),
            Part::Edit(edit) => faults.table.edits.push(edit),
            Part::Trim(trim) => faults.stream.trims.push(trim),
            Part::Absence(absence) => faults.several.absences.push(absence),
            Part::Trouble(trouble) => faults.several.troubles.push(trouble),
            Part::Silence(silence) => faults.start.silences.push(silence),
            Part::PermanentLoss(loss) => faults.permanent_loss = Some(loss),
        }
    }
    faults.request_faults = listed.then_some(request_faults);
    plan
}

/// Leaves out faults at or after a time.
pub(super) fn until(plan: &mut Plan, end: u64) {
    let faults = &mut plan.faults;
    faults.outage.outages.retain(|outage| outage.from < end);
    faults.storm.storms.retain(|storm| storm.from < end);
    faults.upgrade.turns.retain(|turn| turn.at < end);
    faults.clock.steps.retain(|step| step.at < end);
    faults.suspension.suspensions.retain(|one| one.at < end);
    faults.table.edits.retain(|edit| edit.at < end);
    faults.process.interruptions.retain(|interruption| interruption.at < end);
    faults.stream.reshards.retain(|reshard| reshard.at < end);
    faults.stream.trims.retain(|trim| trim.at < end);
    faults.several.absences.retain(|absence| absence.at < end);
    faults.several.troubles.retain(|trouble| trouble.from < end);
    faults.start.silences.retain(|silence| silence.from < end);
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
    faults.outage.outages.retain(|outage| outage.worker < workers);
    faults.upgrade.turns.retain(|turn| turn.worker < workers);
    faults.clock.steps.retain(|step| step.worker < workers);
    faults.suspension.suspensions.retain(|one| one.worker < workers);
    faults.clock.rate_ppm.truncate(workers as usize);
    let (several, streams) = (&mut faults.several, plan.streams);
    several.absences.retain(|absence| absence.worker < workers && absence.stream < streams && streams > 1);
    several.troubles.retain(|trouble| trouble.stream < streams && streams > 1);
    faults.process.interruptions.retain(|interruption| interruption.worker < workers);
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
    for outage in &mut faults.outage.outages {
        sooner(&mut outage.from);
        sooner(&mut outage.until);
    }
    for storm in &mut faults.storm.storms {
        sooner(&mut storm.from);
        sooner(&mut storm.until);
    }
    for turn in &mut faults.upgrade.turns {
        sooner(&mut turn.at);
        sooner(&mut turn.gap_us);
    }
    for step in &mut faults.clock.steps {
        sooner(&mut step.at);
    }
    for suspension in &mut faults.suspension.suspensions {
        sooner(&mut suspension.at);
    }
    for edit in &mut faults.table.edits {
        sooner(&mut edit.at);
    }
    for reshard in &mut faults.stream.reshards {
        sooner(&mut reshard.at);
    }
    for trim in &mut faults.stream.trims {
        sooner(&mut trim.at);
    }
    for absence in &mut faults.several.absences {
        sooner(&mut absence.at);
        sooner(&mut absence.until);
    }
    for trouble in &mut faults.several.troubles {
        sooner(&mut trouble.from);
        sooner(&mut trouble.until);
    }
    for silence in &mut faults.start.silences {
        sooner(&mut silence.from);
        sooner(&mut silence.until);
    }
    if let Some(loss) = &mut faults.permanent_loss {
        sooner(&mut loss.at);
    }
    for interruption in &mut faults.process.interruptions {
        sooner(&mut interruption.at);
        match &mut interruption.kind {
            InterruptionKind::Crash { down_us, .. } => sooner(down_us),
            InterruptionKind::Replace { gap_us } => sooner(gap_us),
            // The length of a pause is the point of the pause.
            InterruptionKind::Pause { .. } | InterruptionKind::Block { .. } => {}
        }
    }
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
