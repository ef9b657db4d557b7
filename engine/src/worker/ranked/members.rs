//! Being a member, where leases are assigned by rank: registering that we live, looking for live members and for the
//! shards shared out.
//!
//! The members' work has one lane, with at most one request in flight. Nothing here makes any worker an owner.
//! Different views of two members cost time, until the guarded take of a lease decides.

use super::tasks::Task;
use crate::ids::{OpId, ShardId, WorkerId};
use crate::input::{Outcome, TableState};
use crate::members::{Member, MembersPage, Shared, Side};
use crate::notice::{Fatal, ListReason};
use crate::output::TableOp;
use crate::rank::{Lead, Roster, Turns};
use crate::time::{Mono, Span};
use crate::worker::backoff::Backoff;
use crate::worker::context::{Context, Request, Waiter};
use crate::worker::describe;
use crate::worker::evidence::{Evidence, Needed};
use crate::worker::lease_table::LeaseTable;
use crate::worker::stream_set::StreamIx;
use std::collections::{BTreeSet, VecDeque};

/// Our part in the tables of members.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(in crate::worker) struct Members {
    pub(super) tasks: VecDeque<Task>,
    /// With its name for logs.
    flight: Option<(OpId, Task, &'static str)>,
    /// Failures in a row, and when the next request may be made.
    pub(super) backoff: Backoff,
    /// Looks in a row that show a table with another key.
    incompatible: Evidence<&'static str>,
    /// Both tables were seen.
    pub(super) ready: bool,
    /// The next round: register, look, read.
    pub(super) round_at: Mono,
    /// The last time that was written.
    pub(super) stamp: u64,
    /// The present listing: its begin, the members shown so far, and the place to go on.
    pub(super) asked: Mono,
    listed: Vec<Member>,
    pub(super) after: Option<WorkerId>,
    pub(super) roster: Roster,
    /// The live members, by the last listing that showed ourselves.
    alive: Option<Vec<WorkerId>>,
    /// The shards shared out. Outer `None`: not read yet. Inner `None`: the row does not exist.
    pub(super) shared: Option<Option<Shared>>,
    /// Shared shards missing from the last list of the stream's shards.
    pub(super) missed: BTreeSet<ShardId>,
    /// When the turns last changed.
    turns_since: Mono,
    pub(super) lead: Lead,
    /// Our last try to lead was applied.
    pub(super) leads: bool,
    /// When the duties of the leader are due again.
    pub(super) lead_at: Mono,
    pub(super) wants_listing: bool,
    /// Rows that may be ours.
    pub(super) registered: bool,
    pub(super) may_lead: bool,
}

impl Members {
    /// Whether nothing is left to be asked.
    pub(in crate::worker) fn is_idle(&self) -> bool {
        self.tasks.is_empty() && self.flight.is_none()
    }

    /// When the turns last changed.
    pub(super) fn turns_since(&self) -> Mono {
        self.turns_since
    }

    pub(in crate::worker) fn wake_at(&self, cx: &Context) -> Mono {
        if !cx.ranks() || !cx.is_booted() || self.flight.is_some() {
            return Mono::NEVER;
        }
        let round = if cx.wants_leases() { self.round_at } else { Mono::NEVER };
        match self.tasks.is_empty() {
            true => round,
            false => round.min(self.backoff.until()),
        }
    }

    /// Puts these tasks first, in this order.
    pub(super) fn first(&mut self, tasks: impl DoubleEndedIterator<Item = Task>) {
        for task in tasks.rev() {
            self.tasks.retain(|waiting| *waiting != task);
            self.tasks.push_front(task);
        }
    }

    pub(super) fn last(&mut self, task: Task) {
        if !self.tasks.contains(&task) {
            self.tasks.push_back(task);
        }
    }

    fn begin_round(&mut self, now: Mono, interval: Span) {
        self.round_at = now + interval;
        let looks = Side::ALL.map(Task::Look);
        let looks = looks.into_iter().filter(|_| !self.ready).collect::<Vec<_>>();
        let round = [Task::Register, Task::List, Task::ReadShards];
        self.first(looks.into_iter().chain(round));
    }

    /// The shards that are shared out, as far as is known.
    pub(super) fn shards(&self) -> &[ShardId] {
        let shared = self.shared.as_ref().and_then(Option::as_ref);
        shared.map_or(&[], |shared| &shared.shards)
    }

    /// Asks what is due. `listing`: whether the shards are being listed.
    pub(in crate::worker) fn step(&mut self, cx: &mut Context, listing: bool) {
        if !cx.ranks() || !cx.is_booted() {
            return;
        }
        let now = cx.now();
        if self.wants_listing && cx.has_recognised(StreamIx::ONLY) && !listing && cx.wants_leases() {
            self.wants_listing = false;
            cx.request(Request::ListShards(StreamIx::ONLY, ListReason::SharedList));
        }
        if self.flight.is_some() {
            return;
        }
        if cx.wants_leases() && now >= self.round_at {
            self.begin_round(now, cx.config().members.check_interval);
        }
        if now < self.backoff.until() {
            return;
        }
        if let Some(task) = self.tasks.pop_front() {
            let op = self.operation(cx, &task);
            let verb = op.verb();
            let op = cx.table(Waiter::Members, TableOp::Members(op));
            self.flight = Some((op, task, verb));
        }
    }

    pub(in crate::worker) fn on_outcome(
        &mut self, cx: &mut Context, leases: &mut LeaseTable, op: OpId, emitted: Mono, outcome: Outcome,
    ) {
        let Some((_, task, verb)) = self.flight.take_if(|(expected, ..)| *expected == op) else {
            debug_assert!(false, "an outcome is of what is in flight");
            return;
        };
        match outcome {
            Outcome::Applied(reply) => {
                self.backoff.succeeded();
                self.on_task_done(cx, leases, op, emitted, task, verb, reply);
            }
            other => self.on_task_failed(cx, op, task, verb, &other),
        }
        if !cx.wants_leases() {
            self.tasks.retain(|task| matches!(task, Task::Leave | Task::StepDown));
        }
    }

    /// Tries a task again, after a pause and after all others.
    pub(super) fn again(&mut self, cx: &mut Context, op: OpId, task: Task, verb: &str, outcome: &Outcome) {
        self.last(task);
        let again_in = self.backoff.failed(cx, "members", "");
        cx.trouble(op, None, verb, describe(outcome), again_in);
    }

    /// Waits for something that passes by itself.
    fn poll(&mut self, cx: &Context) {
        self.backoff.wait_until(cx.now() + cx.poll_pause());
    }

    pub(super) fn on_table_seen(&mut self, cx: &mut Context, side: Side, asked: Mono, state: TableState) {
        if state != TableState::Incompatible {
            self.incompatible.contradicted();
        }
        match state {
            TableState::Usable => {
                let mut tasks = self.tasks.iter();
                self.ready = !tasks.any(|task| matches!(task, Task::Look(_) | Task::Create(_)));
            }
            TableState::Missing => self.first([Task::Create(side)].into_iter()),
            TableState::Creating | TableState::Deleting => {
                self.first([Task::Look(side)].into_iter());
                self.poll(cx);
            }
            TableState::Incompatible => {
                let needed = Needed::to_give_up(cx);
                if !self.incompatible.says(cx, asked, side.name(), needed) {
                    self.first([Task::Look(side)].into_iter());
                    return self.backoff.wait_until(self.incompatible.ask_again_at(needed));
                }
                let table = format!("{} ({})", cx.config().table, side.name());
                cx.request(Request::Stop(Fatal::TableIncompatible { table }));
            }
        }
    }

    pub(super) fn on_page(
        &mut self, cx: &mut Context, leases: &mut LeaseTable, emitted: Mono, page: MembersPage,
    ) {
        if self.after.is_none() {
            self.asked = emitted;
            self.listed.clear();
        }
        self.listed.extend(page.members);
        // A service that repeats a cursor would keep the worker in one listing for ever.
        if page.next.is_some() && page.next != self.after {
            self.after = page.next;
            return self.first([Task::List].into_iter());
        }
        self.after = None;
        let listed = std::mem::take(&mut self.listed);
        self.roster.see(listed, cx.now());
        if !self.roster.knows(cx.me()) {
            // By this list other members would rank otherwise than we do: no decision follows from the list.
            self.first([Task::Register, Task::List].into_iter());
            return self.poll(cx);
        }
        let expiry = cx.config().members.expiry();
        self.alive = Some(self.roster.alive(cx.me(), self.asked, cx.wall(), expiry));
        self.take_turns_anew(cx, leases);
    }

    /// Works out whose turn each shard is, and acts on the turns.
    pub(super) fn take_turns_anew(&mut self, cx: &mut Context, leases: &mut LeaseTable) {
        let now = cx.now();
        let (Some(alive), Some(_)) = (&self.alive, &self.shared) else {
            // The members, or the shared shards, are not known yet.
            return;
        };
        let turns = Turns::new(cx.me(), alive.clone(), self.shards().to_vec());
        if turns.rank() > 0 {
            self.lead_at = Mono(0);
            if self.leads {
                self.last(Task::StepDown);
            }
        } else {
            self.wants_listing |= turns.shards().is_empty();
            if now >= self.lead_at {
                self.last(Task::ReadLeader);
            }
        }
        if leases.turns() != Some(&turns) {
            leases.set_turns(turns);
            self.turns_since = now;
            leases.wake_busy(now);
            cx.request(Request::Rescan(now));
        }
    }

    /// Members may count on us again: remaining tasks of our leaving must not undo later tasks.
    pub(in crate::worker) fn come_back(&mut self) {
        self.tasks.retain(|task| !matches!(task, Task::Leave | Task::StepDown));
        self.round_at = Mono(0);
    }

    /// No member is to count on us any more.
    pub(in crate::worker) fn leave(&mut self) {
        self.tasks.clear();
        self.backoff.wait_until(Mono(0));
        if self.registered {
            self.tasks.push_back(Task::Leave);
        }
        if self.may_lead {
            self.tasks.push_back(Task::StepDown);
        }
    }
}
