//! Workers with a foreign program: its requests become requests of the world, and the world's answers become its
//! answers.

use super::{Fleet, RESTART_US};
use crate::oracles::fact::Owner;
use crate::peers::{Ask, Exit, Process, Program};
use crate::world::context::Context;
use crate::world::services::stream::Items;
use leasehold_engine::ids::{OpId, WorkerId};
use leasehold_engine::input::{Body, Call};
use leasehold_engine::internals::draw;
use leasehold_engine::time::Mono;

impl Fleet {
    /// Begins a process of a foreign program, if the worker runs such a program.
    pub(super) fn begin_program(&mut self, cx: &mut Context, w: usize) -> bool {
        let plan = cx.plan();
        let program = plan.fleet.program(w);
        if program == Program::Leasehold || plan.faults.upgrade.reached(w as u32, cx.now()) {
            return false;
        }
        let (seed, incarnation) = (plan.seed, self.incarnation(cx, w));
        let name = match &plan.fleet.name {
            Some(name) => name.clone(),
            None => format!("w{w}-{incarnation:016x}"),
        };
        let (config, fleet) = (plan.config.clone(), plan.fleet.clone());
        let seed = draw(seed, "original", "", incarnation);
        let worker = &mut self.workers[w];
        worker.peer = Some(Process::of(program, seed, name.clone(), config, fleet));
        worker.life = cx.begin_life(w, &WorkerId::from(name));
        cx.note_other(worker.life);
        true
    }

    /// Gives an input to a process, to be run then. `items`: the items of an answer.
    pub(in crate::world) fn give_program(
        &mut self, cx: &Context, w: usize, body: &Body, items: Option<Items>,
    ) {
        let Some(process) = &self.workers[w].peer else {
            return;
        };
        self.transcript.input_of_other(cx.now(), w, body);
        match body {
            Body::Done { op, outcome } => {
                let (items, next) = items.unwrap_or_default();
                process.answer(op.n, outcome.clone(), items, next);
            }
            Body::Call(Call::Shutdown | Call::ShutdownWithin(_)) => process.stop(),
            Body::Call(Call::Processed { lease, through, .. }) => {
                process.checkpoint(lease.as_str(), through.sequence.to_string());
            }
            // Only our own handlers keep batches.
            Body::Call(Call::Acknowledged { .. } | Call::GivenBack { .. }) => {}
            Body::Call(Call::Checkpoint { .. } | Call::Pause { .. } | Call::Resume { .. }) => {}
            // No thread watches the threads of foreign programs.
            Body::Call(Call::RuntimeBlocked(_) | Call::RuntimeRuns) => {}
            // Foreign programs of a world read a single stream.
            Body::Call(Call::AddStream(_) | Call::RemoveStream(_)) => {}
            Body::Tick | Body::Boot(_) => {}
        }
    }

    /// Runs a process until all its threads wait. The caller executes the requests of the process, and then calls
    /// [`Fleet::end_program`].
    pub(in crate::world) fn run_program(
        &mut self, cx: &Context, w: usize,
    ) -> (Vec<(OpId, Ask)>, Option<Exit>) {
        let life = self.incarnation(cx, w);
        let worker = &mut self.workers[w];
        let Some(process) = &mut worker.peer else {
            return (Vec::new(), None);
        };
        let (mono, wall) = (worker.clock.mono(cx.now()), worker.clock.wall(cx.now()));
        let wall_ns = wall.0 as u64 * 1_000_000 + mono.0 % 1_000 * 1_000;
        let asked = process.run(mono.0, wall_ns);
        worker.wanted = worker.clock.when(Mono(process.wake_at()));
        let exit = process.exit();
        for (_, ask) in &asked {
            match ask {
                Ask::Effect(effect) => self.transcript.asked(effect),
                Ask::Item(request) => self.transcript.asked(&format!("{request:?}")),
            }
        }
        let asked = asked.into_iter().map(|(n, ask)| (OpId { life, n }, ask));
        (asked.collect(), exit)
    }

    /// The requests of a process were executed.
    pub(in crate::world) fn end_program(&mut self, cx: &mut Context, w: usize, exit: Option<Exit>) {
        match exit {
            None => self.plan_wake(cx, w),
            Some(Exit::Returned) => self.stopped(cx, w),
            Some(Exit::Uncaught(why)) => {
                cx.line(|| format!("w{w} ends itself: {why}"));
                self.crash(cx, w, RESTART_US, 0);
            }
        }
    }

    /// Whether this is the name of a live foreign program that ignores claims.
    pub(in crate::world) fn keeps_what_is_claimed(&self, cx: &Context, name: &WorkerId) -> bool {
        if cx.plan().fleet.stealing {
            return false;
        }
        let living = self.workers.iter().filter(|worker| worker.peer.is_some());
        let mut lives = living.map(|worker| Owner::Life(worker.life));
        let owner = cx.names().owner(name);
        lives.any(|life| life == owner)
    }
}
