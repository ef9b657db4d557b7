//! Acts of operators, producers and fate at set times.

use super::context::Context;
use super::heap::What;
use crate::faults::{
    Absence, InterruptionKind, PermanentLoss, Reshard, RowEdit, Suspension, Trim, Trouble, TroubleKind,
};
use crate::oracles::Time;

/// An act at a set time.
#[derive(Clone, Debug)]
pub(super) enum Entry {
    Interrupt(usize, InterruptionKind),
    Suspend(Suspension),
    StepWall { worker: usize, by_ms: i64, freeze: bool },
    Reshard(Reshard),
    Edit(RowEdit),
    Trim(Trim),
    StealPlace { pick: u32 },
    DeregisterConsumer,
    PermanentLoss(PermanentLoss),
    Absence(Absence),
    Trouble(Trouble),
    Heal,
}

/// All acts at set times.
#[derive(Debug)]
pub(super) struct Script {
    entries: Vec<(Time, Entry)>,
}

impl Script {
    /// The script of a plan; every entry is an event.
    pub(super) fn new(cx: &mut Context) -> Self {
        let faults = &cx.plan().faults;
        let mut script: Vec<(Time, Entry)> = Vec::new();
        script.extend(
            faults.process.interruptions.iter().map(|i| (i.at, Entry::Interrupt(i.worker as usize, i.kind))),
        );
        let upgrades = faults.upgrade.turns.iter();
        script.extend(upgrades.map(|turn| {
            let kind = InterruptionKind::Replace { gap_us: turn.gap_us };
            (turn.at, Entry::Interrupt(turn.worker as usize, kind))
        }));
        script.extend(faults.clock.steps.iter().map(|step| {
            (
                step.at,
                Entry::StepWall { worker: step.worker as usize, by_ms: step.by_ms, freeze: step.freeze },
            )
        }));
        let suspensions = faults.suspension.suspensions.iter();
        script.extend(suspensions.map(|suspension| (suspension.at, Entry::Suspend(*suspension))));
        script.extend(
            faults.stream.reshards.iter().map(|reshard| (reshard.at, Entry::Reshard(reshard.clone()))),
        );
        script.extend(faults.table.edits.iter().map(|edit| (edit.at, Entry::Edit(edit.clone()))));
        script.extend(faults.stream.trims.iter().map(|trim| (trim.at, Entry::Trim(trim.clone()))));
        let stolen = faults.fan_out.stolen.iter();
        script.extend(stolen.map(|theft| (theft.at, Entry::StealPlace { pick: theft.pick })));
        let deregistered = faults.fan_out.deregistered.iter();
        script.extend(deregistered.map(|time| (time.at, Entry::DeregisterConsumer)));
        let loss = faults.permanent_loss.iter();
        script.extend(
            loss.filter(|loss| loss.kind.has_its_time())
                .map(|loss| (loss.at, Entry::PermanentLoss(loss.clone()))),
        );
        let absences = faults.several.absences.iter();
        script.extend(absences.map(|absence| (absence.at, Entry::Absence(absence.clone()))));
        let troubles = faults.several.troubles.iter();
        let deletions = troubles.filter(|trouble| trouble.kind == TroubleKind::Deleted);
        script.extend(deletions.map(|trouble| (trouble.from, Entry::Trouble(trouble.clone()))));
        script.push((cx.plan().fault_us, Entry::Heal));
        for (entry, (at, _)) in script.iter().enumerate() {
            cx.push(*at, What::Script { entry: entry as u32 });
        }
        Self { entries: script }
    }

    /// The act of an event; `None` if the entry does not exist.
    pub(super) fn entry(&self, entry: u32) -> Option<Entry> {
        let (_, entry) = self.entries.get(entry as usize)?;
        Some(entry.clone())
    }
}

/// Counts worlds of several streams.
pub(super) fn mark_streams(cx: &mut Context) {
    match cx.plan().streams {
        2 => cx.mark("streams-2"),
        4 => cx.mark("streams-4"),
        _ => {}
    }
}
