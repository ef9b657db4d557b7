//! Acts of the script, and the fate of workers after the faults.

use super::World;
use super::fleet::Healed;
use super::script::Entry;
use super::services;
use crate::faults::InterruptionKind;
use crate::oracles::Fact;

impl World {
    /// Performs an act of the script.
    pub(super) fn perform(&mut self, entry: u32) {
        let Some(entry) = self.script.entry(entry) else {
            return;
        };
        let (cx, services) = (&mut self.cx, &mut self.services);
        match entry {
            Entry::Interrupt(w, InterruptionKind::Crash { down_us, loops }) => {
                cx.fault(if loops > 0 { "crash-loop" } else { "crash" }, Some(w), None);
                self.fleet.crash(cx, w, down_us, loops);
            }
            Entry::Interrupt(w, InterruptionKind::Pause { us }) => {
                cx.fault("pause", Some(w), None);
                self.fleet.pause(cx, w, us);
            }
            Entry::Interrupt(w, InterruptionKind::Block { us }) => self.fleet.block(cx, w, Some(us)),
            Entry::Interrupt(w, InterruptionKind::Replace { gap_us }) => self.ask_to_stop(w, gap_us),
            Entry::Suspend(suspension) => self.fleet.suspend(cx, suspension),
            Entry::StepWall { worker, by_ms, freeze } => self.fleet.step_wall(cx, worker, by_ms, freeze),
            Entry::Reshard(reshard) => {
                let kind = services::reshard_kind(reshard.kind);
                services.reshard(cx, kind, u64::from(reshard.pick), 0);
            }
            Entry::Edit(edit) => services.edit(cx, &edit),
            Entry::Trim(trim) => services.trim(cx, &trim),
            Entry::StealPlace { pick } => services.steal_place(cx, pick),
            Entry::DeregisterConsumer => services.deregister_consumer(cx),
            Entry::PermanentLoss(loss) => services.lose(cx, loss.kind, loss.pick),
            Entry::Absence(absence) => self.fleet.begin_absence(cx, &absence),
            Entry::Trouble(trouble) => services.delete_one_stream(cx, &trouble),
            Entry::Heal if self.faults_only => self.judge.cancel(),
            Entry::Heal => self.heal(),
        }
    }

    /// The faults are over.
    fn heal(&mut self) {
        self.services.heal(&mut self.cx);
        self.cx.set_healed();
        let sure = self.cx.draws().below("core-one", 0, self.fleet.len() as u64);
        for w in 0..self.fleet.len() {
            let pause = self.fleet.worker(w).pauses();
            match self.fleet.heal(&mut self.cx, w, sure) {
                Healed::Core => {
                    self.resume(w, pause);
                    if let Some(block) = self.fleet.block_of(w) {
                        self.unblock(w, block);
                    }
                    self.fleet.kill_stopping(&mut self.cx, w);
                }
                Healed::Dies => {}
                Healed::Blocked => {
                    self.resume(w, pause);
                    self.fleet.block(&mut self.cx, w, None);
                }
                Healed::CutOff => {
                    self.chances.cut_off_for_ever(w);
                    let life = self.fleet.worker(w).life();
                    self.cx.fact(Fact::CutOff { life });
                    self.resume(w, pause);
                }
            }
        }
        self.judge.begin(&mut self.cx, &self.services);
    }

    /// The handlers of a worker run again, and come to the waiting operations.
    pub(super) fn unblock(&mut self, w: usize, block: u32) {
        let (events, asked) = self.fleet.unblock(&mut self.cx, w, block);
        for what in events {
            self.happen(what);
        }
        for asked in asked {
            let (cx, chances) = (&mut self.cx, &mut self.chances);
            let (op, outcome) = self.fleet.consume_late(cx, chances, w, asked);
            if let Some(outcome) = outcome {
                self.net.answer_locally(cx, &self.fleet, w, op, outcome);
            }
        }
    }
}
