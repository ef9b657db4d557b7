//! The machines of one worker and the router between them.
//!
//! | file | machine |
//! |---|---|
//! | `boot` | table there and ours, stream there; the watch over both |
//! | `scan` | reading the whole table, and what a row does to the view |
//! | `unreadable` | saying, again and again, which rows cannot be read |
//! | `upkeep` | after a scan: order of leaders, audit, clean-up |
//! | `listing` | listing shards, and creating the leases that are missing |
//! | `lineage` | what a listing says that rows do not |
//! | `take`, `claim` | which leases to take or steal; asking for what a live worker owns |
//! | `attempt` | becoming an owner |
//! | `members`, `leading` | telling others that we live, looking who else does; what the first of them does for all |
//! | `turns` | taking and giving up leases by rank among the members |
//! | `holding` | the lane of writes of a held lease: renewing, checkpoints, ends, releases |
//! | `consumer`, `stage` | the life of a shard on its owner |
//! | `ending` | the children's leases, before a shard's end is written |
//! | `chores` | rows written beside those lanes |
//! | `stall` | noticing leases that do not move, and saying why |
//! | `farewell` | what a stop gave up and what it left |
//!
//! `view` and `tenure` hold what they know; `ctx`, `timers` are tools. Inputs are routed by the kind of waiter that the
//! command's id names. Every lease has one step function that may be called at any time and does what is due.

mod answers;
mod attempt;
mod boot;
mod chores;
mod claim;
mod consumer;
mod ctx;
mod ending;
mod farewell;
mod holding;
mod leading;
mod lineage;
mod listing;
mod members;
mod scan;
mod stage;
mod stall;
mod take;
mod tenure;
mod timers;
mod turns;
mod unreadable;
mod upkeep;
mod view;

use crate::engine::Held;
use crate::ids::{OpId, WorkerId};
use crate::input::{Boot as BootRecord, Call, Outcome};
use crate::mutant::{Mutant, Planted};
use crate::notice::{Fatal, Notice};
use crate::output::{EndReason, Output};
use crate::time::{Mono, Span, Wall};
use ctx::{Ctx, Request, Waiter};
use view::View;

/// Leases stepped because of their deadlines per input. The rest follows with the next tick, which is asked for at once.
const MAX_STEPS: usize = 256;

/// So often at most, what follows from an input may lead to more.
const MAX_ROUNDS: usize = 64;

/// Whether the worker works, lets go, or is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Phase {
    Running,
    Stopping { reason: EndReason, deadline: Mono },
    Stopped,
}

/// One worker after its boot record.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Core {
    pub(crate) ctx: Ctx,
    view: View,
    boot: boot::Boot,
    scan: scan::Scan,
    listing: listing::Listing,
    lineage: lineage::Lineage,
    chores: chores::Chores,
    claims: claim::Claims,
    upkeep: upkeep::Upkeep,
    members: members::Members,
    phase: Phase,
    /// Attempts and tenures that are not over.
    busy: u32,
    /// Grows with what may change our share, or how much of it we have: a page of a scan, and a lease that is ours no more.
    news: u64,
    /// How far a shutdown has run out of time; all leases are looked at again when it grows.
    urgency: u8,
    farewell: farewell::Farewell,
}

impl Core {
    pub(crate) fn new(record: BootRecord, now: Mono, wall: Wall, planted: Planted) -> Self {
        // The name in the rows tells this life from a former one of the same worker.
        let me = WorkerId::of_life(&record.worker, record.incarnation);
        let valid = record.config.check();
        let mut ctx = Ctx::new(
            record.config,
            me.clone(),
            record.incarnation,
            record.seed,
            reached(now),
            wall,
        );
        ctx.planted = planted;
        ctx.plant();
        let mut core = Core {
            ctx,
            view: View::default(),
            boot: boot::Boot::default(),
            scan: scan::Scan::default(),
            listing: listing::Listing::default(),
            lineage: lineage::Lineage::default(),
            chores: chores::Chores::default(),
            claims: claim::Claims::default(),
            upkeep: upkeep::Upkeep::default(),
            members: members::Members::default(),
            phase: Phase::Running,
            busy: 0,
            news: 0,
            urgency: 0,
            farewell: farewell::Farewell::default(),
        };
        let hold = core.ctx.hold;
        core.ctx.tell(Notice::Booted { worker: me, hold });
        match valid {
            Ok(()) => core.boot_step(),
            Err(error) => core.fatal(Fatal::Config {
                detail: error.to_string(),
            }),
        }
        core
    }

    /// Takes the time of an input. A clock that went back is taken as not having moved.
    pub(crate) fn clock(&mut self, at: Mono, wall: Wall) {
        self.ctx.now = self.ctx.now.max(reached(at));
        self.ctx.wall = wall;
    }

    pub(crate) fn done(&mut self, op: OpId, outcome: Outcome) {
        let Some((waiter, emitted)) = self.ctx.settle(op) else {
            return self.ctx.tell(Notice::Stray {
                what: format!("an outcome of {op}, which is not expected"),
            });
        };
        if self.phase == Phase::Stopped {
            return;
        }
        match waiter {
            Waiter::TableState => self.table_state(op, outcome),
            Waiter::TableCreate => self.table_created(op, outcome),
            Waiter::StreamState => self.stream_state(op, outcome),
            Waiter::Scan => self.scan_done(op, outcome),
            Waiter::List => self.listing_done(op, outcome),
            Waiter::Members => self.members_done(op, emitted, outcome),
            Waiter::Chore(slot) => self.chore_done(slot, op, outcome),
            Waiter::Parent(ix) => self.parent_seen(ix, op, outcome),
            Waiter::Reader(ix) => self.read_done(ix, op, outcome),
            Waiter::App(ix) => self.app_done(ix, op, outcome),
            Waiter::Lane(ix) => self.lane_done(ix, op, emitted, outcome),
        }
    }

    fn lane_done(&mut self, ix: u32, op: OpId, emitted: Mono, outcome: Outcome) {
        let Some(lease) = self.view.get_mut(ix) else {
            return;
        };
        match lease.tenure.take() {
            Some(mut tenure) => {
                self.write_done(ix, &mut tenure, op, emitted, outcome);
                if let Some(lease) = self.view.get_mut(ix) {
                    lease.tenure = Some(tenure);
                }
                self.step(ix);
            }
            None => self.take_done(ix, op, outcome),
        }
    }

    pub(crate) fn call(&mut self, call: Call) {
        if self.phase == Phase::Stopped {
            return;
        }
        match call {
            Call::Processed {
                lease,
                token,
                through,
            } => {
                let Some(ix) = self.view.find(lease.as_str()) else {
                    return;
                };
                let Some(tenure) = self.view.get_mut(ix).and_then(|lease| lease.tenure.as_mut()) else {
                    return;
                };
                if tenure.token != token {
                    return;
                }
                if let Some(reader) = &mut tenure.reader {
                    let before = tenure.processed;
                    reader.processed_through(through);
                    tenure.processed = reader.watermark().or(tenure.processed);
                    if tenure.processed > before {
                        tenure.movement.moved(self.ctx.now);
                    }
                    if self.ctx.planted.is(Mutant::PartialIsWhole) {
                        tenure.processed = reader.last_handed().or(tenure.processed);
                    }
                }
                self.step(ix);
            }
            Call::Checkpoint { lease, token } => {
                let Some(ix) = self.view.find(lease.as_str()) else {
                    return;
                };
                let Some(tenure) = self.view.get_mut(ix).and_then(|lease| lease.tenure.as_mut()) else {
                    return;
                };
                if tenure.token == token && !tenure.is_durable() && !self.ctx.planted.is(Mutant::AskedWaits) {
                    tenure.flush = true;
                    self.step(ix);
                }
            }
            Call::Shutdown => self.stop(EndReason::Shutdown),
        }
    }

    /// Whether new work is begun.
    fn is_running(&self) -> bool {
        self.phase == Phase::Running
            || (self.ctx.planted.is(Mutant::TakeWhileStopping) && self.phase != Phase::Stopped)
    }

    /// Why everything is let go of, if it is.
    fn stopping(&self) -> Option<EndReason> {
        match self.phase {
            Phase::Stopping { reason, .. } => Some(reason),
            _ => None,
        }
    }

    /// Whether a shutdown has come to the point where handlers are aborted and checkpoints not waited for: two
    /// requests before its deadline.
    fn forced(&self) -> bool {
        self.stop_within(2)
    }

    /// Whether a shutdown waits for no handler any more: one request before its deadline.
    fn out_of_patience(&self) -> bool {
        self.stop_within(1)
    }

    fn stop_within(&self, requests: u64) -> bool {
        match self.phase {
            Phase::Stopping { .. } if self.ctx.planted.is(Mutant::NoPatience) => false,
            Phase::Stopping { deadline, .. } => {
                self.ctx.now >= deadline - self.ctx.config.table_timeout.times(requests)
            }
            _ => false,
        }
    }

    fn fatal(&mut self, fatal: Fatal) {
        if self.phase == Phase::Running {
            self.ctx.tell(Notice::Fatal(fatal));
            self.stop(EndReason::SourceGone);
        }
    }

    fn stop(&mut self, reason: EndReason) {
        if self.phase != Phase::Running {
            return;
        }
        let now = self.ctx.now;
        self.phase = Phase::Stopping {
            reason,
            deadline: now + self.ctx.config.shutdown_timeout,
        };
        let held = self.view.iter().filter(|(_, lease)| lease.ours()).count() as u32;
        self.ctx.tell(Notice::ShuttingDown { held });
        self.leave_members();
        self.arm_busy();
    }

    fn arm_busy(&mut self) {
        let now = self.ctx.now;
        for ix in self.view.all() {
            if self.view.get(ix).is_some_and(|lease| lease.busy()) {
                self.view.arm(ix, now);
            }
        }
    }

    /// Everything whose time has come, and everything that follows from it. Called after every input.
    pub(crate) fn run_due(&mut self) {
        let mut steps = MAX_STEPS;
        self.carry_out_requests();
        for _ in 0..MAX_ROUNDS {
            if self.phase == Phase::Stopped {
                return;
            }
            while steps > 0
                && let Some(ix) = self.view.pop_due(self.ctx.now)
            {
                steps -= 1;
                self.step(ix);
            }
            self.carry_out_requests();
            self.step_machines();
            if !self.carry_out_requests() {
                return;
            }
        }
        debug_assert!(false, "the machines ask each other for ever");
    }

    fn step_machines(&mut self) {
        if let Phase::Stopping { deadline, .. } = self.phase {
            if self.ctx.planted.is(Mutant::TakeWhileStopping) {
                self.scan_step();
            }
            return self.stop_step(deadline);
        }
        self.boot_step();
        self.scan_step();
        self.listing_step();
        self.members_step();
        self.chores_step();
    }

    /// Whether there were any.
    fn carry_out_requests(&mut self) -> bool {
        let mut any = false;
        while let Some(request) = self.ctx.next_request() {
            any = true;
            if self.phase != Phase::Stopped {
                self.carry_out(request);
            }
        }
        any
    }

    fn carry_out(&mut self, request: Request) {
        match request {
            Request::ListShards(why) => self.list_to_repair(why),
            Request::Rescan(at) => self.scan.hurry(at),
            Request::DoubtTable => self.doubt_table(),
            Request::DoubtStream => self.doubt_stream(),
            Request::StreamListed(took) => self.stream_listed(took),
            Request::WriteRow {
                change,
                why,
                child_of,
                expires,
            } => self.add_chore(change, why, child_of, expires),
            Request::DropRowWrites(ix) => self.drop_chores_of(ix),
            Request::Take(ix, why) => self.take(ix, why),
            Request::Stop(fatal) => self.fatal(fatal),
        }
    }

    fn stop_step(&mut self, mut deadline: Mono) {
        let now = self.ctx.now;
        let urgency = u8::from(self.forced()) + u8::from(self.out_of_patience());
        if urgency > self.urgency {
            // Whoever stood still over these moments gets the time that was to follow them.
            let left = self
                .ctx
                .config
                .table_timeout
                .times(2 - u64::from(self.urgency.min(1)));
            if let Phase::Stopping { deadline: known, .. } = &mut self.phase {
                *known = (*known).max(now + left);
                deadline = *known;
            }
            self.urgency += 1;
            self.arm_busy();
        }
        self.chores_step();
        self.members_step();
        if (self.busy == 0 && self.members.is_idle()) || now >= deadline {
            self.phase = Phase::Stopped;
            let summary = self.stop_summary();
            self.ctx.tell(Notice::Stopped(Box::new(summary)));
        }
    }

    /// When to be woken at the latest.
    pub(crate) fn wake_at(&mut self) -> Mono {
        let leases = self.view.wake_at();
        match self.phase {
            Phase::Stopped => Mono::NEVER,
            Phase::Stopping { deadline, .. } => {
                let timeout = self.ctx.config.table_timeout;
                let next = [deadline - timeout.times(2), deadline - timeout, deadline]
                    .into_iter()
                    .find(|at| *at > self.ctx.now)
                    .unwrap_or(deadline);
                leases
                    .min(next)
                    .min(self.members_wake_at())
                    .min(self.chores.wake_at(self.ctx.config.max_creates))
            }
            Phase::Running => leases
                .min(self.boot.wake_at())
                .min(if self.boot.step == boot::Step::Done {
                    self.scan.wake_at()
                } else {
                    Mono::NEVER
                })
                .min(self.listing.wake_at())
                .min(self.members_wake_at())
                .min(self.chores.wake_at(self.ctx.config.max_creates)),
        }
    }

    pub(crate) fn is_stopped(&self) -> bool {
        self.phase == Phase::Stopped
    }

    pub(crate) fn unreadable(&self) -> usize {
        self.scan.broken.len()
    }

    pub(crate) fn held(&self) -> impl Iterator<Item = Held<'_>> {
        self.view.unordered().filter_map(view::Lease::held)
    }

    /// Moves out the slots of leases of which more or less may be held than at the last call.
    pub(crate) fn touched(&mut self, into: &mut Vec<u32>) {
        self.view.take_touched(into);
    }

    pub(crate) fn held_in(&self, slot: u32) -> Option<Held<'_>> {
        self.view.get(slot)?.held()
    }

    /// Moves the outputs out, keeping the memory.
    pub(crate) fn outputs(&mut self) -> std::vec::Drain<'_, Output> {
        self.ctx.out.drain(..)
    }
}

/// A time as a clock can show it. `NEVER` is what nothing waits for; were it now, everything would be due for ever.
fn reached(at: Mono) -> Mono {
    at.min(Mono::NEVER - Span(1))
}

/// An outcome that is not success, as words.
fn describe(outcome: &Outcome) -> String {
    match outcome {
        Outcome::Applied(reply) => format!("answered with what was not asked for: {reply:?}"),
        Outcome::Refused(refusal) if refusal.detail.is_empty() => format!("refused: {:?}", refusal.why),
        Outcome::Refused(refusal) => format!("refused: {:?} ({})", refusal.why, refusal.detail),
        Outcome::NotSent(cause) => format!("not executed: {cause:?}"),
        Outcome::Unknown(cause) => format!("outcome unknown: {cause:?}"),
    }
}
