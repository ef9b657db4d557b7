//! The choice of leases for this worker, and the way to get each lease: by count, by a leader, or by rank.
//!
//! | file | what |
//! |---|---|
//! | `by_count` | a share of all leases, counted by the owners in their rows: free leases are taken, the rest stolen |
//! | `hand_over` | leases of live workers that hand leases over on request: no lease is stolen from these owners |
//! | `by_leader` | leases assigned by a leader, and leases that the leader left free: the rooms of [`kcl3`](super::kcl3) find the leader |
//!
//! Where leases are assigned by rank, [`ranked`](super::ranked) does all of the work. Nothing here makes any worker an
//! owner: the guarded take of a lease decides.

mod by_count;
mod by_leader;
mod hand_over;
#[cfg(test)]
mod tests;

use super::context::{Context, RowWriteId};
use super::kcl3::Kcl3;
use super::lease_request::{FollowUp, LeaseRequest};
use super::lease_table::{Balance, LeaseTable, Scanned};
use super::ranked::{Members, ask_leases};
use crate::ids::{LeaseIx, LeaseKey, OpId};
use crate::input::Outcome;
use crate::self_assignment::MAX_TAKES;
use crate::shard::Shard;
use crate::time::{Mono, Span};
use by_count::ByCount;
use std::collections::BTreeSet;

/// The room.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Assignment {
    by_count: ByCount,
    ranked: Members,
    kcl3: Kcl3,
    /// Requests that wait for their turn are weighed anew.
    weighs: bool,
}

impl Assignment {
    /// The part of a fleet with workers of KCL 3.x.
    pub(super) fn kcl3(&mut self) -> &mut Kcl3 {
        &mut self.kcl3
    }

    /// When the next question about the tables beside the lease table is due.
    pub(super) fn look_at(&self, cx: &Context) -> Mono {
        self.kcl3.look_at(cx)
    }

    /// Takes what is ours to take. `requested`: leases that this worker requests from live owners.
    pub(super) fn take_share(
        &mut self, cx: &mut Context, leases: &LeaseTable, balance: &Balance, requested: &[LeaseKey],
    ) {
        // Leases may be taken, or shares may have changed.
        self.weighs = true;
        if !cx.wants_leases() {
        } else if cx.ranks() {
            self.ranked.take_turns(cx, leases, balance);
        } else if leases.kcl3().is_led() {
            self.by_count.take_assigned(cx, leases, balance);
        } else {
            self.by_count.take_share(cx, leases, balance, requested);
        }
    }

    /// Whether the requests that wait for their turn are to be weighed anew, before they are sent.
    pub(super) fn weighs_requests(&mut self, cx: &Context) -> bool {
        std::mem::take(&mut self.weighs) && cx.hands_over()
    }

    /// The requests for leases, of those in the queue of row writes, that are more than our share has room for.
    pub(super) fn spared_requests<'a>(
        &self, cx: &Context, leases: &LeaseTable,
        requests: impl Iterator<Item = (RowWriteId, &'a LeaseRequest)>,
    ) -> BTreeSet<RowWriteId> {
        hand_over::spared(cx, leases, requests)
    }

    /// The answer to a request for a lease, or to a look at its row.
    pub(super) fn on_request_answer(
        &self, cx: &mut Context, leases: &mut LeaseTable, request: &mut LeaseRequest, outcome: Outcome,
    ) -> FollowUp {
        hand_over::on_answer(cx, leases, request, outcome)
    }

    /// A whole scan is decided on.
    pub(super) fn on_scanned(&mut self, cx: &mut Context, leases: &LeaseTable, scanned: &Scanned) {
        if cx.ranks() {
            // Other programs create the lease of a shard of our rank at its take.
            if scanned.is_round() {
                ask_leases(cx, leases);
            }
        } else {
            self.kcl3.on_scanned(cx, leases, scanned.balance(), scanned.is_round());
        }
    }

    /// Asks what is due of the tables of members. `listing`: whether the shards are being listed.
    pub(super) fn step(&mut self, cx: &mut Context, leases: &LeaseTable, listing: bool) {
        self.ranked.step(cx, listing);
        self.kcl3.step(cx, leases);
    }

    pub(super) fn wake_at(&self, cx: &Context, leases: &LeaseTable) -> Mono {
        self.ranked.wake_at(cx).min(self.kcl3.wake_at(cx, leases))
    }

    /// The monotonic clock did not count so much time: who leads leads for that much less.
    pub(super) fn on_missed(&mut self, by: Span) {
        self.ranked.on_missed(by);
        self.kcl3.on_missed(by);
    }

    /// Whether nothing is left to be asked of the tables of members, or to be written of this worker's own rows.
    pub(super) fn is_idle(&self) -> bool {
        self.ranked.is_idle() && self.kcl3.is_idle()
    }

    /// A look in the index of owners was answered, or the read of a row that it named.
    pub(super) fn on_discovery(
        &mut self, cx: &mut Context, leases: &mut LeaseTable, op: OpId, outcome: Outcome,
    ) {
        if self.kcl3.on_discovery(cx, leases, op, outcome) {
            let balance = leases.shares(cx).balance();
            self.by_count.take_assigned(cx, leases, &balance);
        }
    }

    /// An operation on the tables of members has ended.
    pub(super) fn on_members(
        &mut self, cx: &mut Context, leases: &mut LeaseTable, op: OpId, emitted: Mono, outcome: Outcome,
    ) {
        self.ranked.on_outcome(cx, leases, op, emitted, outcome);
    }

    /// The shards were listed. Compares these shards with the shards shared out, if this worker leads.
    pub(super) fn on_shards_listed(&mut self, cx: &Context, leases: &LeaseTable, shards: &[Shard]) {
        self.ranked.compare_shared(cx, leases, shards);
    }

    /// A lease was given up.
    pub(super) fn on_given_up(&mut self, cx: &mut Context, leases: &LeaseTable, ix: LeaseIx) {
        self.kcl3.on_given_up(cx, leases, ix);
    }

    /// Members may count on us again.
    pub(super) fn come_back(&mut self) {
        self.ranked.come_back();
    }

    /// No member is to count on us any more, and no lease is to be assigned to us.
    pub(super) fn leave(&mut self, cx: &Context) {
        self.kcl3.leave(cx);
        self.ranked.leave();
    }
}
