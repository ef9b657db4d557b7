//! Being a member, where leases are assigned by rank: saying that we live, looking who else does and which shards are shared
//! out.
//!
//! One lane for all of it, with at most one request in flight. Nothing here makes anybody an owner: what two members see
//! differently costs time, until the guarded take of a lease decides.

use super::Core;
use super::boot::Step;
use super::ctx::{Request, Waiter};
use crate::ids::{OpId, ShardId, WorkerId};
use crate::input::{Outcome, Reply, TableState, Why};
use crate::members::{Member, MembersChange, MembersOp, MembersPage, Shared, Side};
use crate::mutant::Mutant;
use crate::notice::{Fatal, Notice};
use crate::output::TableOp;
use crate::policy::{Assign, Life};
use crate::rank::{Lead, Roster, Turns};
use crate::time::{Mono, Span};
use std::collections::{BTreeSet, VecDeque};

/// Something to ask of the tables of members.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Task {
    Look(Side),
    Create(Side),
    Register,
    List,
    ReadShards,
    ReadLeader,
    Lead,
    /// With the time in the row that the list was compared with.
    Share(Vec<ShardId>, Option<u64>),
    Reap(Member),
    StepDown,
    Leave,
}

/// The machine.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Members {
    pub(super) tasks: VecDeque<Task>,
    /// With its name for logs.
    flight: Option<(OpId, Task, &'static str)>,
    again_at: Mono,
    failures: u32,
    /// Both tables were seen.
    ready: bool,
    /// The next round: register, look, read.
    round_at: Mono,
    /// The last time that was written.
    stamp: u64,
    /// The listing under way: when it was begun, what it has shown, and where it goes on.
    pub(super) asked: Mono,
    listed: Vec<Member>,
    after: Option<WorkerId>,
    pub(super) roster: Roster,
    /// Who lived by the last listing that showed ourselves.
    alive: Option<Vec<WorkerId>>,
    /// The shards that are shared out; absent: not read yet. Within: there is no such row.
    pub(super) shared: Option<Option<Shared>>,
    /// Those of them that the last list of the stream's shards lacked.
    pub(super) missed: BTreeSet<ShardId>,
    pub(super) turns: Option<Turns>,
    /// When they last changed.
    pub(super) turns_since: Mono,
    pub(super) lead: Lead,
    /// Our last try to lead was applied.
    pub(super) leads: bool,
    /// When the duties of the leader are due again.
    pub(super) lead_at: Mono,
    pub(super) wants_listing: bool,
    /// Rows that may be ours.
    registered: bool,
    may_lead: bool,
}

impl Members {
    /// Whether nothing is left to be asked.
    pub(super) fn is_idle(&self) -> bool {
        self.tasks.is_empty() && self.flight.is_none()
    }

    fn wake_at(&self, running: bool) -> Mono {
        if self.flight.is_some() {
            return Mono::NEVER;
        }
        let round = if running { self.round_at } else { Mono::NEVER };
        match self.tasks.is_empty() {
            true => round,
            false => round.min(self.again_at),
        }
    }

    /// Puts these first, in this order.
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
}

impl Core {
    /// Whether leases are assigned by rank.
    pub(crate) fn ranks(&self) -> bool {
        self.ctx.config.policies.assign == Assign::Rank
    }

    pub(crate) fn members_wake_at(&self) -> Mono {
        if self.ranks() && self.boot.step == Step::Done {
            self.members.wake_at(self.is_running())
        } else {
            Mono::NEVER
        }
    }

    /// Asks what is due.
    pub(crate) fn members_step(&mut self) {
        if !self.ranks() || self.boot.step != Step::Done {
            return;
        }
        let now = self.ctx.now;
        if self.members.wants_listing && self.upkeep.recognised && self.listing.is_idle() && self.is_running()
        {
            self.members.wants_listing = false;
            self.ctx.request(Request::ListShards(
                "the shards that are shared out are compared with the stream's",
            ));
        }
        if self.members.flight.is_some() {
            return;
        }
        if self.is_running() && now >= self.members.round_at {
            let interval = self.ctx.config.members.check_interval;
            self.members.begin_round(now, interval);
            if self.members.registered && self.ctx.planted.is(Mutant::RegistersOnce) {
                self.members.tasks.retain(|task| *task != Task::Register);
            }
        }
        if now < self.members.again_at {
            return;
        }
        if let Some(task) = self.members.tasks.pop_front() {
            let op = self.spelled(&task);
            let verb = op.verb();
            let op = self.ctx.table(Waiter::Members, TableOp::Members(op));
            self.members.flight = Some((op, task, verb));
        }
    }

    /// Us, now. Times of ours grow, whatever the clock does.
    fn signed(&mut self) -> Member {
        let stamp = Life::Stamp.next(self.members.stamp, self.ctx.wall, Span::ZERO);
        self.members.stamp = stamp;
        Member {
            id: self.ctx.me.clone(),
            at: stamp,
        }
    }

    fn spelled(&mut self, task: &Task) -> MembersOp {
        let change = match task {
            Task::Look(side) => return MembersOp::Describe(*side),
            Task::Create(side) => return MembersOp::Create(*side),
            Task::List => {
                let after = self.members.after.clone();
                return MembersOp::List { after };
            }
            Task::ReadShards => return MembersOp::ReadShards,
            Task::ReadLeader => return MembersOp::ReadLeader,
            Task::Register => {
                self.members.registered = true;
                MembersChange::Register(self.signed())
            }
            Task::Lead => {
                self.members.may_lead = true;
                let seen = self.members.lead.row().cloned();
                let me = self.signed();
                MembersChange::Lead { me, seen }
            }
            Task::Share(shards, seen) => {
                // Of our clock even where the row is of the future: others do not touch it until then.
                let at = Life::Stamp.next(0, self.ctx.wall, Span::ZERO);
                // Another time than the one that guards it.
                let at = if *seen == Some(at) { at ^ 2 } else { at };
                let shards = shards.clone();
                let shared = Shared { shards, at };
                MembersChange::Share { shared, seen: *seen }
            }
            Task::Reap(member) => MembersChange::Reap(member.clone()),
            Task::StepDown => MembersChange::StepDown(self.signed()),
            Task::Leave => MembersChange::Leave(self.ctx.me.clone()),
        };
        MembersOp::Write(change)
    }

    pub(crate) fn members_done(&mut self, op: OpId, emitted: Mono, outcome: Outcome) {
        let Some((_, task, verb)) = self.members.flight.take_if(|(expected, ..)| *expected == op) else {
            return;
        };
        match outcome {
            Outcome::Applied(reply) => {
                (self.members.failures, self.members.again_at) = (0, Mono(0));
                self.task_done(op, emitted, task, verb, reply);
            }
            other => self.task_failed(op, task, verb, &other),
        }
        if !self.is_running() {
            self.members
                .tasks
                .retain(|task| matches!(task, Task::Leave | Task::StepDown));
        }
    }

    fn task_done(&mut self, op: OpId, emitted: Mono, task: Task, verb: &'static str, reply: Reply) {
        let now = self.ctx.now;
        let interval = self.ctx.config.members.check_interval;
        match (task, reply) {
            (Task::Look(side), Reply::Table(state)) => self.looked(side, state),
            (Task::List, Reply::Members(page)) => self.members_page(emitted, page),
            (Task::ReadShards, Reply::Shared(shared)) => {
                self.members.shared = Some(shared);
                self.take_turns_anew();
            }
            (Task::ReadLeader, Reply::Leader(row)) => self.leader_read(emitted, row),
            (Task::Create(side), Reply::Done) => self.members.first([Task::Look(side)].into_iter()),
            (Task::Register, Reply::Done) => self.members.round_at = now + interval,
            (Task::Lead, Reply::Done) => self.lead(),
            (Task::Share(..), Reply::Done) => self.members.first([Task::ReadShards].into_iter()),
            (Task::StepDown, Reply::Done) => (self.members.leads, self.members.may_lead) = (false, false),
            (Task::Leave, Reply::Done) => self.members.registered = false,
            (Task::Reap(_), Reply::Done) => {}
            (task, reply) => self.again(op, task, verb, &Outcome::Applied(reply)),
        }
    }

    fn task_failed(&mut self, op: OpId, task: Task, verb: &'static str, outcome: &Outcome) {
        let why = match outcome {
            Outcome::Refused(refusal) => Some(refusal.why),
            _ => None,
        };
        let unknown = matches!(outcome, Outcome::Unknown(_));
        match (&task, why) {
            (Task::Create(side), Some(Why::InUse)) => self.members.first([Task::Look(*side)].into_iter()),
            // Nothing is left that would name us.
            (Task::Leave | Task::StepDown, Some(Why::NotFound)) => {}
            (Task::StepDown, Some(Why::ConditionFailed)) => {
                (self.members.leads, self.members.may_lead) = (false, false);
            }
            // What these relied on is read again with the next round, and so is what became of them.
            (Task::Lead, Some(Why::ConditionFailed)) => self.members.leads = false,
            (Task::Reap(_) | Task::Share(..), Some(Why::ConditionFailed)) => {}
            (Task::Lead | Task::Reap(_) | Task::Share(..), None) if unknown => {}
            (_, Some(Why::NotFound)) => {
                self.members.ready = false;
                self.again(op, task, verb, outcome);
            }
            _ => self.again(op, task, verb, outcome),
        }
    }

    /// Tries a task again, after a pause and after all others.
    fn again(&mut self, op: OpId, task: Task, verb: &str, outcome: &Outcome) {
        self.members.last(task);
        let again_in = self.members_pause();
        self.ctx.tell(Notice::Trouble {
            op,
            lease: None,
            what: verb.into(),
            how: super::describe(outcome),
            again_in,
        });
    }

    fn members_pause(&mut self) -> Span {
        self.members.failures += 1;
        let pause = self.ctx.backoff("members", "", self.members.failures);
        self.members.again_at = self.ctx.now + pause;
        pause
    }

    /// Waits for something that passes by itself.
    fn members_poll(&mut self) {
        let config = &self.ctx.config;
        let pause = config.retry_max.min(Span::from_secs(1)).max(config.retry_min);
        self.members.again_at = self.ctx.now + pause;
    }

    fn looked(&mut self, side: Side, state: TableState) {
        match state {
            TableState::Usable => {
                let waits = self
                    .members
                    .tasks
                    .iter()
                    .any(|task| matches!(task, Task::Look(_) | Task::Create(_)));
                self.members.ready = !waits;
            }
            TableState::Missing => self.members.first([Task::Create(side)].into_iter()),
            TableState::Creating | TableState::Deleting => {
                self.members.first([Task::Look(side)].into_iter());
                self.members_poll();
            }
            TableState::Incompatible => {
                let table = format!("{} ({})", self.ctx.config.table, side.name());
                self.ctx
                    .request(Request::Stop(Fatal::TableIncompatible { table }));
            }
        }
    }

    fn members_page(&mut self, emitted: Mono, page: MembersPage) {
        let members = &mut self.members;
        if members.after.is_none() {
            members.asked = emitted;
            members.listed.clear();
        }
        members.listed.extend(page.members);
        // A service that repeats a cursor would keep us in one listing for ever.
        let more = page.next.is_some() && !self.ctx.planted.is(Mutant::FirstMembersPageOnly);
        if more && page.next != members.after {
            members.after = page.next;
            return members.first([Task::List].into_iter());
        }
        members.after = None;
        let listed = std::mem::take(&mut members.listed);
        members.roster.see(listed, self.ctx.now);
        let me = &self.ctx.me;
        if !members.roster.knows(me) {
            // By such a list others would rank otherwise than we do: nothing follows from it.
            members.first([Task::Register, Task::List].into_iter());
            return self.members_poll();
        }
        let expiry = if self.ctx.planted.is(Mutant::DeadMembersCount) {
            Span(u64::MAX)
        } else {
            self.ctx.config.members.expiry()
        };
        members.alive = Some(members.roster.alive(me, members.asked, self.ctx.wall, expiry));
        self.take_turns_anew();
    }

    /// Works out whose turn each shard is, and what follows from that.
    fn take_turns_anew(&mut self) {
        let now = self.ctx.now;
        let members = &mut self.members;
        let (Some(alive), Some(_)) = (&members.alive, &members.shared) else {
            return;
        };
        let turns = Turns::new(&self.ctx.me, alive.clone(), members.shards().to_vec());
        if turns.rank() > 0 {
            members.lead_at = Mono(0);
            if members.leads {
                members.last(Task::StepDown);
            }
        } else {
            members.wants_listing |= turns.shards().is_empty();
            if now >= members.lead_at {
                members.last(Task::ReadLeader);
            }
        }
        if members.turns.as_ref() != Some(&turns) {
            members.turns = Some(turns);
            members.turns_since = now;
            self.arm_busy();
            self.ctx.request(Request::Rescan(now));
        }
    }

    /// Nobody is to count on us any more.
    pub(crate) fn leave_members(&mut self) {
        self.members.tasks.clear();
        self.members.again_at = Mono(0);
        if self.members.registered {
            self.members.tasks.push_back(Task::Leave);
        }
        if self.members.may_lead {
            self.members.tasks.push_back(Task::StepDown);
        }
    }
}
