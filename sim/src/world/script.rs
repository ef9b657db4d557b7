//! What operators, producers and fate do at set times.

use super::World;
use super::heap::What;
use super::services;
use crate::faults::{InterruptionKind, LossKind, PermanentLoss, Reshard, RowEdit, Trim};
use crate::oracles::fact::Owner;
use crate::oracles::{ShardNo, Time};

/// One thing that is done at a set time.
#[derive(Clone, Debug)]
pub(super) enum Entry {
    Interrupt(usize, InterruptionKind),
    StepWall { worker: usize, by_ms: i64, freeze: bool },
    Reshard(Reshard),
    Edit(RowEdit),
    Trim(Trim),
    PermanentLoss(PermanentLoss),
    Heal,
}

impl World {
    pub(super) fn plan_script(&mut self) {
        let faults = &self.cx.plan().faults;
        let mut script: Vec<(Time, Entry)> = Vec::new();
        script.extend(
            faults
                .process
                .interruptions
                .iter()
                .map(|i| (i.at, Entry::Interrupt(i.worker as usize, i.kind))),
        );
        let upgrades = faults.upgrade.turns.iter();
        script.extend(upgrades.map(|turn| {
            let kind = InterruptionKind::Replace { gap_us: turn.gap_us };
            (turn.at, Entry::Interrupt(turn.worker as usize, kind))
        }));
        script.extend(faults.clock.steps.iter().map(|step| {
            (
                step.at,
                Entry::StepWall {
                    worker: step.worker as usize,
                    by_ms: step.by_ms,
                    freeze: step.freeze,
                },
            )
        }));
        script.extend(
            faults
                .stream
                .reshards
                .iter()
                .map(|reshard| (reshard.at, Entry::Reshard(reshard.clone()))),
        );
        script.extend(
            faults
                .table
                .edits
                .iter()
                .map(|edit| (edit.at, Entry::Edit(edit.clone()))),
        );
        script.extend(
            faults
                .stream
                .trims
                .iter()
                .map(|trim| (trim.at, Entry::Trim(trim.clone()))),
        );
        let loss = faults.permanent_loss.iter();
        script.extend(
            loss.filter(|loss| loss.kind != LossKind::TableOfAnother)
                .map(|loss| (loss.at, Entry::PermanentLoss(loss.clone()))),
        );
        script.push((self.cx.plan().fault_us, Entry::Heal));
        for (entry, (at, _)) in script.iter().enumerate() {
            self.cx.push(*at, What::Script { entry: entry as u32 });
        }
        self.script = script;
    }

    pub(super) fn perform(&mut self, entry: u32) {
        let Some((_, entry)) = self.script.get(entry as usize) else {
            return;
        };
        match entry.clone() {
            Entry::Interrupt(worker, kind) => match kind {
                InterruptionKind::Crash { down_us, loops } => {
                    self.cx
                        .fault(if loops > 0 { "crash-loop" } else { "crash" }, Some(worker), None);
                    self.crash(worker, down_us, loops);
                }
                InterruptionKind::Pause { us } => {
                    self.cx.fault("pause", Some(worker), None);
                    self.pause(worker, us);
                }
                InterruptionKind::Replace { gap_us } => self.ask_to_stop(worker, gap_us),
            },
            Entry::StepWall {
                worker,
                by_ms,
                freeze,
            } => {
                self.cx.fault(
                    if freeze { "wall-freeze" } else { "wall-step" },
                    Some(worker),
                    None,
                );
                let now = self.cx.now();
                self.workers[worker].clock.step(now, by_ms, freeze);
            }
            Entry::Reshard(reshard) => {
                let kind = services::reshard_kind(reshard.kind);
                self.services
                    .reshard(&mut self.cx, kind, u64::from(reshard.pick), 0);
            }
            Entry::Edit(edit) => self.services.edit(&mut self.cx, &edit),
            Entry::Trim(trim) => self.services.trim(&mut self.cx, &trim),
            Entry::PermanentLoss(loss) => self.services.lose(&mut self.cx, loss.kind, loss.pick),
            Entry::Heal => self.heal(),
        }
    }

    /// The worker whose present life owns a lease, by its row.
    pub(super) fn owner_of(&self, shard: Option<ShardNo>) -> Option<usize> {
        let owner = self.services.owner_of(&self.cx, shard)?;
        self.workers
            .iter()
            .position(|worker| worker.lives() && owner == Owner::Life(worker.life))
    }
}
