//! A fleet with workers of KCL 3.x: live workers, the leader, and the leader's assignments.
//!
//! | file | what |
//! |---|---|
//! | `workers` | which workers of KCL 3.x live, and which worker leads: as the rows show it |
//! | `standing` | evidence about a worker from the rows of its leases |
//! | `look` | looking at the tables beside the lease table, with the reports of workers of KCL 3.0 to 3.4 |
//! | `member` | this worker's own rows: its report, and the reports of dead workers, removed by this worker |
//! | `lock` | the leader's lock |
//! | `leader` | a leader's assignments, and moves by hand-over |
//! | `discovery` | finding a leader's assignments in the index of owners, between scans |
//! | `migration` | leading a fleet from the rules of KCL 2 to those of KCL 3 |
//!
//! The lease table keeps [`Kcl3Workers`], since the owner of a lease depends on whether a worker lives. Nothing here
//! makes any worker an owner: the guarded take of a lease decides.

mod discovery;
mod leader;
mod lock;
mod look;
mod member;
mod migration;
mod standing;
#[cfg(test)]
mod tests;
mod workers;

use super::context::Context;
use super::lease_table::{Balance, LeaseTable, Scanned};
use crate::ids::{LeaseIx, OpId, WorkerId};
use crate::input::Outcome;
use crate::time::{Mono, Span};
use discovery::Discovery;
use look::Kcl3Look;
use member::Kcl3Member;
pub(super) use standing::Standing;
use std::collections::BTreeMap;
pub(super) use workers::{Kcl3Workers, silence_of};

/// A decision of the leader that waits for a look at the tables beside the lease table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Undecided {
    since: Mono,
    /// In a round.
    round: bool,
}

/// The room.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Kcl3 {
    look: Kcl3Look,
    member: Kcl3Member,
    discovery: Discovery,
    undecided: Option<Undecided>,
    /// How many leases this worker assigned to each worker during its stop.
    assigned: BTreeMap<WorkerId, u32>,
}

impl Kcl3 {
    /// Asks the next question about the tables beside the lease table, if it is time. The first scan waits for the first answer.
    pub(super) fn look(&mut self, cx: &mut Context) {
        self.look.step(cx);
    }

    /// When the next question about the tables beside is due.
    pub(super) fn look_at(&self, cx: &Context) -> Mono {
        self.look.wake_at(cx)
    }

    /// A question about the tables beside was answered.
    pub(super) fn on_look(&mut self, cx: &mut Context, leases: &mut LeaseTable, op: OpId, outcome: Outcome) {
        self.look.on_outcome(cx, leases.kcl3_mut(), op, outcome);
        let leads = cx.is_running() && self.member.leads(cx) && leases.kcl3().is_led();
        if leads && self.undecided.is_some() && leases.kcl3().is_as_new_as(leases.scans().began()) {
            let balance = leases.shares(cx).balance();
            self.decide(cx, leases, &balance, false);
        }
    }

    /// A whole scan has ended.
    pub(super) fn on_whole_scan(&mut self, cx: &Context, leases: &LeaseTable, scanned: &Scanned) {
        let balance = scanned.balance();
        let decides = scanned.is_round() || !balance.available().is_empty();
        let began = leases.scans().began();
        self.look.on_scanned(cx, leases.kcl3(), began, balance.has_other_programs(), decides);
    }

    /// A whole scan is decided on. As the leader of a fleet, assigns leases; in a round, it moves leases, too.
    pub(super) fn on_scanned(
        &mut self, cx: &mut Context, leases: &LeaseTable, balance: &Balance, round: bool,
    ) {
        self.member.on_scanned(cx, leases);
        if self.member.leads(cx) && leases.kcl3().is_led() {
            self.decide(cx, leases, balance, round);
        } else {
            self.undecided = None;
        }
    }

    /// Assigns leases, if the live workers are known by now. If the tables stay unreadable, by the last known state.
    fn decide(&mut self, cx: &mut Context, leases: &LeaseTable, balance: &Balance, round: bool) {
        let before = self.undecided.take();
        let round = round || before.is_some_and(|before| before.round);
        let since = before.map_or(cx.now(), |before| before.since);
        let is_known = leases.kcl3().is_as_new_as(leases.scans().began());
        let decides = round || !balance.available().is_empty();
        if decides && !is_known && cx.now().since(since) < cx.config().lease_duration {
            self.undecided = Some(Undecided { since, round });
        } else {
            leader::assign(cx, leases, balance, round);
        }
    }

    /// Writes and asks what is due.
    pub(super) fn step(&mut self, cx: &mut Context, leases: &LeaseTable) {
        self.member.step(cx, leases);
        self.discovery.step(cx, leases);
    }

    pub(super) fn wake_at(&self, cx: &Context, leases: &LeaseTable) -> Mono {
        self.member.wake_at(cx, leases.kcl3()).min(self.discovery.wake_at(cx, leases))
    }

    /// The monotonic clock did not count so much time: who leads leads for that much less.
    pub(super) fn on_missed(&mut self, by: Span) {
        self.member.on_missed(by);
    }

    /// Whether all of this worker's own rows are written.
    pub(super) fn is_idle(&self) -> bool {
        self.member.is_idle()
    }

    /// A write of a fleet row has ended.
    pub(super) fn on_write(&mut self, cx: &mut Context, op: OpId, emitted: Mono, outcome: Outcome) {
        self.member.on_outcome(cx, op, emitted, outcome);
    }

    /// A look in the index of owners was answered, or the read of a row that it named. Whether it may have shown a lease of ours.
    pub(super) fn on_discovery(
        &mut self, cx: &mut Context, leases: &mut LeaseTable, op: OpId, outcome: Outcome,
    ) -> bool {
        self.discovery.on_outcome(cx, leases, op, outcome)
    }

    /// A lease was given up. A worker that stops in a fleet with a leader assigns the lease to another worker: the
    /// leader would find the lease later.
    pub(super) fn on_given_up(&mut self, cx: &mut Context, leases: &LeaseTable, ix: LeaseIx) {
        if !cx.is_running() && leases.kcl3().is_led() {
            leader::assign_on_leaving(cx, leases, ix, &mut self.assigned);
        }
    }

    /// No lease is to be assigned to this worker any more.
    pub(super) fn leave(&mut self, cx: &Context) {
        self.member.leave(cx);
    }
}
