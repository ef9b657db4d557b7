//! The host of a world: processes on the thread of the test, a lease table and a stream in memory.

use super::ports::{Answered, Asked, Requests, Stream, Table};
use super::process::{Clock, Process};
use super::services::{Carry, Held};
use crate::harness::{
    APPLICATION, Draws, Failing, Host, Life, Plan, Run, STREAM, Served, Service, Stage, Time,
};
use leasehold::engine::format::Kcl;
use leasehold::engine::input::{Cause, Outcome};
use leasehold::engine::output::TableOp;
use leasehold::runtime::BoxFuture;
use leasehold::{CompleteBuilder, Worker};
use leasehold_engine::testkit::{Items, LeaseTable};
use std::sync::Arc;

/// The longest look-ahead of a process without events on the way.
const FAR: Time = 10_000;

/// The processes of a world, by worker, and its table.
#[derive(Debug)]
pub(crate) struct Processes {
    clock: Clock,
    draws: Draws,
    table: LeaseTable<Items<Kcl>>,
    alive: Vec<Option<Process>>,
}

impl Processes {
    /// No process yet, and no table.
    pub(crate) fn new(clock: Clock, plan: &Plan) -> Self {
        let mut table = LeaseTable::empty(Items(Kcl));
        table.rows = None;
        Self { clock, draws: plan.draws, table, alive: (0..plan.workers).map(|_| None).collect() }
    }
}

impl Host for Processes {
    type Request = Asked;
    type Answer = Answered;

    fn begin(
        &mut self, _: &Stage, life: Life, unique: usize, outbox: Requests,
    ) -> Result<CompleteBuilder, String> {
        let process =
            Process::new(self.clock.now()).map_err(|error| format!("no runtime can be made: {error}"))?;
        let unique = unique as u64;
        let port = process.port(&self.clock, self.draws.bits("entropy", unique));
        self.alive[life.worker] = Some(process);
        let table = Arc::new(Table(outbox.clone()));
        Ok(Worker::builder()
            .table_port(table)
            .stream_port(move |store| Arc::new(Stream { outbox, store }))
            .stream(STREAM)
            .application(APPLICATION)
            .identity(1 + unique, self.draws.bits("seed", unique))
            .flight_recorder(0, 0)
            .runtime(port))
    }

    fn spawn(&mut self, worker: usize, make: impl FnOnce() -> BoxFuture<'static, ()>) {
        if let Some(process) = &self.alive[worker] {
            let _entered = process.handle().enter();
            #[expect(
                clippy::disallowed_methods,
                reason = "it is spawned in the process that was made for it"
            )]
            process.handle().spawn(make());
        }
    }

    fn kill(&mut self, worker: usize) {
        self.alive[worker] = None;
    }

    fn pause(&mut self, _: usize) {}

    fn resume(&mut self, worker: usize, now: Time) {
        if let Some(process) = &mut self.alive[worker] {
            process.jump(now);
            process.set_next(now);
        }
    }

    fn service(asked: &Asked) -> Service {
        match asked {
            Asked::Table(_) => Service::Table,
            Asked::Stream(..) => Service::Stream,
        }
    }

    fn serve(&mut self, stage: &Stage, worker: usize, asked: &Asked) -> Served<Answered> {
        match asked {
            Asked::Table(op) => {
                let outcome = self.table.execute(op);
                stage.note(&(worker, op, &outcome));
                let row = match op {
                    TableOp::Write(change) => Some((change.key().clone(), self.table.read(change.key()))),
                    _ => None,
                };
                Served { answer: (outcome, Carry::Nothing), row }
            }
            Asked::Stream(op, held) => {
                let answer = stage.scene().source.stream(stage.now(), op, held.as_ref());
                stage.note(&(worker, op, held.as_ref().map(Held::text), &answer.0));
                Served { answer, row: None }
            }
        }
    }

    fn failure(_: &Asked, failing: Failing) -> Answered {
        let outcome = match failing {
            Failing::Refused => Outcome::NotSent(Cause::Network),
            Failing::Throttled => Outcome::NotSent(Cause::Throttled),
            _ => Outcome::Unknown(Cause::Network),
        };
        (outcome, Carry::Nothing)
    }
}

/// Runs a world to its end. The next event in time happens next, or the timer of a process that is due before.
pub(crate) fn play(run: &mut Run<'_, Processes>) {
    while !run.is_over() {
        let running = |worker: &usize| run.is_running(*worker);
        let timers = (0..run.host.alive.len()).filter(running);
        let timers = timers.filter_map(|worker| run.host.alive[worker].as_ref().map(Process::next));
        let Some(now) = timers.chain(run.next().map(|at| at / 1_000)).min() else {
            return;
        };
        run.host.clock.set(now);
        run.step(now * 1_000);
        for worker in 0..run.host.alive.len() {
            turn(run, now, worker);
        }
    }
}

/// Runs a process, if its next run is due.
fn turn(run: &mut Run<'_, Processes>, now: Time, worker: usize) {
    let due = |process: &&mut Process| process.next() <= now;
    if !run.is_running(worker) {
        return;
    }
    let Some(process) = run.host.alive[worker].as_mut().filter(due) else {
        return;
    };
    process.run();
    if !run.settle(worker) {
        return;
    }
    let far = now + FAR;
    let horizon = run.next_of(worker).map_or(far, |at| at / 1_000).min(far).max(now + 1);
    if let Some(process) = &mut run.host.alive[worker] {
        process.look_ahead(horizon);
    }
}
