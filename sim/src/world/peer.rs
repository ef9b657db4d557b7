//! Workers that run a program others wrote: their requests become the world's, and its answers theirs.

use super::World;
use super::services::stream::Carry;
use crate::oracles::fact::Owner;
use crate::peers::{Ask, Exit, Process, Program};
use leasehold_engine::ids::{OpId, WorkerId};
use leasehold_engine::input::{Body, Call, Outcome};
use leasehold_engine::internals::draw;
use leasehold_engine::output::Command;
use leasehold_engine::time::Mono;

/// A process that ended itself by an error is started again this long after, in µs.
const RESTART_US: u64 = 1_000_000;

impl World {
    /// Begins a process of another program, if that is what the worker is.
    pub(super) fn start_original(&mut self, w: usize) -> bool {
        let program = self.cx.plan().fleet.program(w);
        if program == Program::Leasehold || self.cx.plan().faults.upgrade.reached(w as u32, self.cx.now()) {
            return false;
        }
        let (seed, incarnation) = (self.cx.plan().seed, self.incarnation(w));
        let name = match &self.cx.plan().fleet.name {
            Some(name) => name.clone(),
            None => format!("w{w}-{incarnation:016x}"),
        };
        let (config, fleet) = (self.cx.plan().config.clone(), self.cx.plan().fleet.clone());
        let seed = draw(seed, "original", "", incarnation);
        self.workers[w].peer = Some(Process::of(program, seed, name.clone(), config, fleet));
        self.begin_life(w, &WorkerId::from(name));
        self.cx.note_other(self.workers[w].life);
        self.run_original(w);
        true
    }

    /// Gives an input to a process, if that is what the worker is.
    pub(super) fn handle_original(&mut self, w: usize, body: &Body) -> bool {
        let Some(process) = &self.workers[w].peer else {
            return false;
        };
        self.inputs += 1;
        self.digest.absorb(&(self.cx.now(), w as u16, body));
        match body {
            Body::Done { op, outcome } => {
                let (items, next) = self.brought.take().unwrap_or_default();
                process.answer(op.n, outcome.clone(), items, next);
            }
            Body::Call(Call::Shutdown) => process.stop(),
            Body::Call(Call::Processed { lease, through, .. }) => {
                process.checkpoint(lease.as_str(), through.sequence.to_string());
            }
            Body::Call(Call::Checkpoint { .. }) | Body::Tick | Body::Boot(_) => {}
        }
        self.run_original(w);
        true
    }

    /// An answer has come to a process.
    pub(super) fn answer_original(&mut self, w: usize, op: OpId, outcome: Outcome, carry: Carry) {
        match carry {
            Carry::Items(items, next) => self.brought = Some((items, next)),
            carry => self.workers[w].adapter.keep(op.n, carry),
        }
        self.done(w, op, outcome);
    }

    fn run_original(&mut self, w: usize) {
        let worker = &mut self.workers[w];
        let Some(process) = &mut worker.peer else {
            return;
        };
        let (mono, wall) = (worker.clock.mono(self.cx.now()), worker.clock.wall(self.cx.now()));
        let wall_ns = wall.0 as u64 * 1_000_000 + mono.0 % 1_000 * 1_000;
        let asked = process.run(mono.0, wall_ns);
        worker.wanted = worker.clock.when(Mono(process.wake_at()));
        let exit = process.exit();
        let life = self.incarnation(w);
        for (n, ask) in asked {
            let op = OpId { life, n };
            match ask {
                Ask::Effect(effect) => {
                    self.digest.absorb(&effect);
                    let give_up = Mono::NEVER;
                    self.issue(w, Command { op, give_up, effect });
                }
                Ask::Item(request) => {
                    self.digest.absorb(&format!("{request:?}"));
                    self.issue_item(w, op, request);
                }
            }
        }
        match exit {
            None => self.plan_wake(w),
            Some(Exit::Returned) => self.stopped(w),
            Some(Exit::Uncaught(why)) => {
                self.cx.line(|| format!("w{w} ends itself: {why}"));
                self.crash(w, RESTART_US, 0);
            }
        }
    }

    /// Whether this is the name of a life of another program, which takes no notice of claims.
    pub(super) fn keeps_what_is_claimed(&self, name: &WorkerId) -> bool {
        if self.cx.plan().fleet.stealing {
            return false;
        }
        let living = self.workers.iter().filter(|worker| worker.peer.is_some());
        let mut lives = living.map(|worker| Owner::Life(worker.life));
        let owner = self.cx.names().owner(name);
        lives.any(|life| life == owner)
    }
}
