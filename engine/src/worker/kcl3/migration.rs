//! Leading a fleet from the rules of KCL 2 to those of KCL 3.
//!
//! Workers of KCL 3, started in a fleet of KCL 2, write the state `CLIENT_VERSION_UPGRADE_FROM_2X`, report, create the
//! index of owners, and take leases as KCL 2 does. The leader, the first of a fixed shuffle of the owners, looks once a
//! minute. When the index can be used and all owners of leases have reported for ten minutes, the leader writes
//! `CLIENT_VERSION_3X_WITH_ROLLBACK`. All workers follow within a minute and a half.
//!
//! ```text
//!                another worker leads, an owner is silent, or there is no index
//!              ┌──────────────────────────────────────────────────────────────┐
//!              ▼                                                              │
//!   ┌─ waiting ─┐   all is ready    ┌─ ready since t ─┐   at t + wait     ┌─ due ─┐   written, or the state is another
//!   │           │ ────────────────► │                 │ ────────────────► │       │ ─────────────────────────────────► waiting
//!   └───────────┘                   └─────────────────┘                   └───────┘
//! ```
//!
//! Two rules differ from KCL's. In KCL, a lease without an owner, or with a dead owner, holds the migration up for as
//! long as the lease is in the table. Here, a row without a change for a minute holds nothing up: no live worker
//! processes its shard. And the leader is found among the live owners.

use super::workers::silence;
use crate::fleet::{FleetState, FleetVersion, FleetWrite, MIGRATION_LOOK, WORKER_EXPIRY};
use crate::ids::{OpId, WorkerId};
use crate::input::{Outcome, Reply, Why};
use crate::leader;
use crate::notice::{MigrationNews, Notice};
use crate::output::TableOp;
use crate::time::{Mono, Span};
use crate::worker::context::{Context, Waiter};
use crate::worker::describe;
use crate::worker::lease_table::LeaseTable;

/// What this worker knows of a migration.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Migration {
    /// The state of the fleet, during a migration. All other fields are of this state.
    state: Option<FleetState>,
    /// When to look again.
    look_at: Mono,
    /// Looking for the index: all of these owners report, in number. `None`: the question came from another state.
    question: Option<(OpId, Option<u32>)>,
    /// Since when all was ready at every look.
    ready_since: Option<Mono>,
    /// It was ready for long enough: the end is to be written.
    due: bool,
    /// How many owners reported at the last look at which all did.
    owners: u32,
    /// What was told last.
    told: Option<MigrationNews>,
}

/// How long a row must have stood still before it holds nothing up. A live owner would have renewed it many times.
fn stillness(cx: &Context) -> Span {
    WORKER_EXPIRY.max(silence(cx))
}

impl Migration {
    /// Whether the end of the migration is to be written.
    pub(super) fn is_due(&self) -> bool {
        self.due
    }

    /// Whether this is the question for the index.
    pub(super) fn asked(&self, op: OpId) -> bool {
        self.question.is_some_and(|(asked, _)| asked == op)
    }

    /// A whole scan has ended. Looks whether all is ready, if it is time.
    pub(super) fn on_scanned(&mut self, cx: &mut Context, leases: &LeaseTable) {
        let state = leases.kcl3().state();
        let state = state.filter(|state| state.version == FleetVersion::UpgradeFrom2x);
        if self.state.as_ref() != state {
            // Also after a rollback and a new beginning: the operator who began anew wants all of the time.
            *self = Self {
                state: state.cloned(),
                question: self.question.map(|(op, _)| (op, None)),
                ..Self::default()
            };
        }
        let busy = self.question.is_some() || self.due;
        if state.is_none() || busy || !cx.is_running() || cx.now() < self.look_at {
            return;
        }
        self.look_at = cx.now() + MIGRATION_LOOK.min(cx.config().fleet.migration_wait.per(10));
        let owners = leases.owners().live(cx, stillness(cx));
        if leader::rank(&owners, cx.me()) != Some(0) {
            self.ready_since = None;
            self.told = None;
            return;
        }
        let reports = |owner: &&WorkerId| leases.kcl3().reports(owner, cx.now());
        let mut silent = owners.iter().filter(|owner| !reports(owner));
        match silent.next() {
            Some(owner) => {
                let (owner, others) = (owner.clone(), silent.count() as u32);
                self.wait(cx, MigrationNews::OwnerSilent { owner, others });
            }
            None => {
                let op = cx.table(Waiter::Kcl3Write, TableOp::OwnerIndex);
                self.question = Some((op, Some(owners.len() as u32)));
            }
        }
    }

    fn wait(&mut self, cx: &mut Context, why: MigrationNews) {
        self.ready_since = None;
        self.tell(cx, why);
    }

    fn tell(&mut self, cx: &mut Context, news: MigrationNews) {
        if self.told.as_ref() != Some(&news) {
            self.told = Some(news.clone());
            cx.notify(Notice::Migration(news));
        }
    }

    /// Whether the index can be used was answered. `sent`: when it was asked.
    pub(super) fn on_index(&mut self, cx: &mut Context, op: OpId, sent: Mono, outcome: &Outcome) {
        let Some((_, owners)) = self.question.take() else {
            debug_assert!(false, "an answer is to a question");
            return;
        };
        let Some(owners) = owners.filter(|_| self.state.is_some() && cx.is_running()) else {
            // The state has changed since the question, the migration is over, or the worker stops.
            return;
        };
        match outcome {
            Outcome::Applied(Reply::OwnerIndex(true)) => self.on_ready(cx, sent, owners),
            Outcome::Applied(Reply::OwnerIndex(false)) => self.wait(cx, MigrationNews::NoIndex),
            // It is not known: what was known before still holds, and the next look asks again.
            other => {
                let again_in = self.look_at.since(cx.now());
                cx.trouble(op, None, "look for the index of owners", describe(other), again_in);
            }
        }
    }

    fn on_ready(&mut self, cx: &mut Context, sent: Mono, owners: u32) {
        let stays = cx.config().fleet.migration_wait;
        self.owners = owners;
        let Some(since) = self.ready_since else {
            self.ready_since = Some(sent);
            return self.tell(cx, MigrationNews::Ready { owners, stays });
        };
        self.due = sent.since(since) >= stays;
    }

    /// The write of the migration's end, if due.
    pub(super) fn due(&mut self, cx: &Context) -> Option<FleetWrite> {
        let state = self.state.as_ref().filter(|_| self.due)?;
        let write =
            FleetWrite::Migrate { worker: cx.me().clone(), at: cx.wall().0, seen: Box::new(state.clone()) };
        self.due = false;
        Some(write)
    }

    /// What the write came to.
    pub(super) fn on_outcome(&mut self, cx: &mut Context, write: &FleetWrite, outcome: &Outcome) {
        if !matches!(write, FleetWrite::Migrate { .. }) {
            return;
        }
        match outcome {
            Outcome::Applied(_) => {
                self.ready_since = None;
                let owners = self.owners;
                self.tell(cx, MigrationNews::Ended { owners });
            }
            // The state is another by now: the next scan shows it.
            Outcome::Refused(refusal) if refusal.why == Why::ConditionFailed => self.ready_since = None,
            // Whether all is still ready is looked at before it is tried again.
            _ => self.look_at = cx.now(),
        }
    }
}
