//! Requests to the tables of members, one task at a time, and the meaning of their answers.

use super::members::Members;
use crate::ids::{OpId, ShardId};
use crate::input::{Outcome, Reply, Why};
use crate::members::{Member, MembersChange, MembersOp, Shared, Side};
use crate::policy::Life;
use crate::time::{Mono, Span};
use crate::worker::context::Context;
use crate::worker::lease_table::LeaseTable;

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
    /// Remove the row of a member that is dead.
    Reap(Member),
    StepDown,
    Leave,
}

impl Members {
    /// Us, now. Times of ours grow, whatever the clock does.
    fn signed(&mut self, cx: &Context) -> Member {
        let stamp = Life::Stamp.next(self.stamp, cx.wall(), Span::ZERO);
        debug_assert!(stamp > self.stamp || stamp == u64::MAX, "our times grow");
        self.stamp = stamp;
        Member { id: cx.me().clone(), at: stamp }
    }

    /// The operation that does a task.
    pub(super) fn operation(&mut self, cx: &Context, task: &Task) -> MembersOp {
        let change = match task {
            Task::Look(side) => return MembersOp::Describe(*side),
            Task::Create(side) => return MembersOp::Create(*side),
            Task::List => {
                let after = self.after.clone();
                return MembersOp::List { after };
            }
            Task::ReadShards => return MembersOp::ReadShards,
            Task::ReadLeader => return MembersOp::ReadLeader,
            Task::Register => {
                self.registered = true;
                MembersChange::Register(self.signed(cx))
            }
            Task::Lead => {
                self.may_lead = true;
                let seen = self.lead.row().cloned();
                let me = self.signed(cx);
                MembersChange::Lead { me, seen }
            }
            Task::Share(shards, seen) => {
                // Of our clock even where the row is of the future: others do not touch it until then.
                let at = Life::Stamp.next(0, cx.wall(), Span::ZERO);
                // A time different from the time of the guard.
                let at = if *seen == Some(at) { at ^ 2 } else { at };
                let shards = shards.clone();
                let shared = Shared { shards, at };
                MembersChange::Share { shared, seen: *seen }
            }
            Task::Reap(member) => MembersChange::Reap(member.clone()),
            Task::StepDown => MembersChange::StepDown(self.signed(cx)),
            Task::Leave => MembersChange::Leave(cx.me().clone()),
        };
        MembersOp::Write(change)
    }

    #[expect(clippy::too_many_arguments, reason = "all of them say what the outcome is of")]
    pub(super) fn on_task_done(
        &mut self, cx: &mut Context, leases: &mut LeaseTable, op: OpId, emitted: Mono, task: Task,
        verb: &'static str, reply: Reply,
    ) {
        match (task, reply) {
            (Task::Look(side), Reply::Table(state)) => self.on_table_seen(cx, side, emitted, state),
            (Task::List, Reply::Members(page)) => self.on_page(cx, leases, emitted, page),
            (Task::ReadShards, Reply::Shared(shared)) => {
                self.shared = Some(shared);
                self.take_turns_anew(cx, leases);
            }
            (Task::ReadLeader, Reply::Leader(row)) => self.on_leader_row(cx, leases, emitted, row),
            (Task::Create(side), Reply::Done) => self.first([Task::Look(side)].into_iter()),
            (Task::Register, Reply::Done) => self.round_at = cx.now() + cx.config().members.check_interval,
            (Task::Lead, Reply::Done) => self.on_lead(cx),
            (Task::Share(..), Reply::Done) => self.first([Task::ReadShards].into_iter()),
            (Task::StepDown, Reply::Done) => (self.leads, self.may_lead) = (false, false),
            (Task::Leave, Reply::Done) => self.registered = false,
            (Task::Reap(_), Reply::Done) => {}
            (task, reply) => self.again(cx, op, task, verb, &Outcome::Applied(reply)),
        }
    }

    pub(super) fn on_task_failed(
        &mut self, cx: &mut Context, op: OpId, task: Task, verb: &'static str, outcome: &Outcome,
    ) {
        let why = match outcome {
            Outcome::Refused(refusal) => Some(refusal.why),
            _ => None,
        };
        let unknown = matches!(outcome, Outcome::Unknown(_));
        match (&task, why) {
            (Task::Create(side), Some(Why::InUse)) => self.first([Task::Look(*side)].into_iter()),
            // Nothing is left that would name us.
            (Task::Leave | Task::StepDown, Some(Why::NotFound)) => {}
            (Task::StepDown, Some(Why::ConditionFailed)) => {
                (self.leads, self.may_lead) = (false, false);
            }
            // The next round reads the rows of these tasks again, and shows whether the tasks were applied.
            (Task::Lead, Some(Why::ConditionFailed)) => self.leads = false,
            (Task::Reap(_) | Task::Share(..), Some(Why::ConditionFailed)) => {}
            (Task::Lead | Task::Reap(_) | Task::Share(..), None) if unknown => {}
            (_, Some(Why::NotFound)) => {
                self.ready = false;
                self.again(cx, op, task, verb, outcome);
            }
            _ => self.again(cx, op, task, verb, outcome),
        }
    }
}
