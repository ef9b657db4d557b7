//! Which leases this worker is to have, and how it comes by them.
//!
//! | file | what |
//! |---|---|
//! | `by_count` | a share of all leases, counted by the owners that their rows name: what is free is taken, the rest stolen |
//! | `asking` | the same where owners hand over what they are asked for: no lease is stolen from them |
//! | `joining` | how many leases a worker asks for that has just started |
//! | `claims` | asking for what a live worker owns, where leases are not simply stolen |
//! | `by_leader` | what a leader assigns, as in a fleet of KCL 3.x: as its member, and as the leader |
//! | `fleet_member`, `leader_lock` | saying that we live in such a fleet, and leading it |
//! | `discovery` | finding what a leader assigned in the index of owners, between scans |
//! | `migration` | leading a fleet from the rules of KCL 2 to those of KCL 3 |
//! | `by_rank` | the leases whose turn it is, among the members |
//! | `members`, `member_tasks`, `leader` | saying that we live, looking which other members do; what the first of them does for all |
//!
//! Nothing here makes anybody an owner: the guarded take of a lease decides.

mod asking;
mod by_count;
mod by_leader;
mod by_rank;
mod claims;
mod discovery;
mod fleet_member;
mod joining;
mod leader;
mod leader_lock;
mod member_tasks;
mod members;
mod migration;
#[cfg(test)]
mod tests;

use super::context::Context;
use super::lease_table::{Balance, LeaseTable};
use crate::ids::{LeaseIx, LeaseKey, OpId, WorkerId};
use crate::input::Outcome;
use crate::notice::{Choice, Notice};
use crate::own_share::MAX_TAKES;
use crate::shard::Shard;
use crate::time::{Mono, Span};
use by_count::ByCount;
use discovery::Discovery;
use fleet_member::FleetMember;
use members::Members;
use std::collections::BTreeMap;

/// Leases are to be shared out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Undecided {
    since: Mono,
    /// In a round.
    round: bool,
}

/// The room.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Assignment {
    by_count: ByCount,
    members: Members,
    fleet: FleetMember,
    discovery: Discovery,
    /// What is to be decided as the leader when the tables beside the lease table have been looked at.
    undecided: Option<Undecided>,
    /// How many leases each worker was passed while this one stops.
    passed_on: BTreeMap<WorkerId, u32>,
}

impl Assignment {
    /// Takes what is ours to take. `asked`: leases that live owners are being asked for.
    pub(super) fn take_share(
        &mut self, cx: &mut Context, leases: &LeaseTable, balance: &Balance, asked: &[LeaseKey],
    ) {
        if !cx.wants_leases() {
        } else if cx.ranks() {
            self.members.take_turns(cx, leases, balance);
        } else if leases.fleet().is_led() {
            self.by_count.take_assigned(cx, leases, balance);
        } else {
            self.by_count.take_share(cx, leases, balance, asked);
        }
    }

    /// A whole scan has ended. As the leader of a fleet, shares leases out; in a round, it moves leases, too.
    pub(super) fn on_scanned(
        &mut self, cx: &mut Context, leases: &LeaseTable, balance: &Balance, round: bool,
    ) {
        if cx.ranks() {
            return;
        }
        self.fleet.on_scanned(cx, leases);
        if self.fleet.leads(cx) && leases.fleet().is_led() {
            self.share_out(cx, leases, balance, round);
        } else {
            self.undecided = None;
        }
    }

    /// Shares leases out, if it is known by now who lives. If that cannot be found out, as it was known last.
    fn share_out(&mut self, cx: &mut Context, leases: &LeaseTable, balance: &Balance, round: bool) {
        let before = self.undecided.take();
        let round = round || before.is_some_and(|before| before.round);
        let since = before.map_or(cx.now(), |before| before.since);
        let is_known = leases.fleet().is_as_new_as(leases.scans().began());
        let decides = round || !balance.available().is_empty();
        if decides && !is_known && cx.now().since(since) < cx.config().lease_duration {
            self.undecided = Some(Undecided { since, round });
        } else {
            by_leader::assign(cx, leases, balance, round);
        }
    }

    /// The tables beside the lease table were looked at.
    pub(super) fn on_looked(&mut self, cx: &mut Context, leases: &LeaseTable) {
        let leads = cx.is_running() && self.fleet.leads(cx) && leases.fleet().is_led();
        if leads && self.undecided.is_some() && leases.fleet().is_as_new_as(leases.scans().began()) {
            let balance = leases.balance(cx);
            self.share_out(cx, leases, &balance, false);
        }
    }

    /// Asks what is due of the tables of members. `listing`: whether the shards are being listed.
    pub(super) fn step(&mut self, cx: &mut Context, leases: &LeaseTable, listing: bool) {
        self.members.step(cx, listing);
        self.fleet.step(cx, leases);
        self.discovery.step(cx, leases);
    }

    pub(super) fn wake_at(&self, cx: &Context, leases: &LeaseTable) -> Mono {
        self.members
            .wake_at(cx)
            .min(self.fleet.wake_at(cx, leases.fleet()))
            .min(self.discovery.wake_at(cx, leases))
    }

    /// The monotonic clock did not count so much time: who leads leads for that much less.
    pub(super) fn on_missed(&mut self, by: Span) {
        self.members.on_missed(by);
        self.fleet.on_missed(by);
    }

    /// Whether nothing is left to be asked of the tables of members, or to be written of this worker's own rows.
    pub(super) fn is_idle(&self) -> bool {
        self.members.is_idle() && self.fleet.is_idle()
    }

    /// A write of a row by which workers of a fleet know each other has ended.
    pub(super) fn on_fleet(&mut self, cx: &mut Context, op: OpId, emitted: Mono, outcome: Outcome) {
        self.fleet.on_outcome(cx, op, emitted, outcome);
    }

    /// A look in the index of owners was answered, or the read of a row that it named.
    pub(super) fn on_discovery(
        &mut self, cx: &mut Context, leases: &mut LeaseTable, op: OpId, outcome: Outcome,
    ) {
        if self.discovery.on_outcome(cx, leases, op, outcome) {
            let balance = leases.balance(cx);
            self.by_count.take_assigned(cx, leases, &balance);
        }
    }

    /// An operation on the tables of members has ended.
    pub(super) fn on_members(
        &mut self, cx: &mut Context, leases: &mut LeaseTable, op: OpId, emitted: Mono, outcome: Outcome,
    ) {
        self.members.on_outcome(cx, leases, op, emitted, outcome);
    }

    /// The shards were listed: compares them with those that are shared out, if that is our part.
    pub(super) fn on_shards_listed(&mut self, cx: &Context, leases: &LeaseTable, shards: &[Shard]) {
        self.members.compare_shared(cx, leases, shards);
    }

    /// Lists the shards if one that is ours by rank has no lease yet: other programs create that when they take it.
    pub(super) fn ask_leases(&self, cx: &mut Context, leases: &LeaseTable) {
        by_rank::ask_leases(cx, leases);
    }

    /// A lease was given up. A worker that stops in a fleet with a leader passes it on: the leader would find it a while later.
    pub(super) fn on_given_up(&mut self, cx: &mut Context, leases: &LeaseTable, ix: LeaseIx) {
        if !cx.is_running() && leases.fleet().is_led() {
            by_leader::pass_on(cx, leases, ix, &mut self.passed_on);
        }
    }

    /// Members may count on us again.
    pub(super) fn come_back(&mut self) {
        self.members.come_back();
    }

    /// No member is to count on us any more.
    pub(super) fn leave(&mut self, cx: &Context) {
        self.fleet.leave(cx);
        self.members.leave();
    }
}

/// How leases are had that are chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way<'a> {
    /// They are free or expired, and taken.
    Take,
    /// They are stolen from this owner.
    Steal(&'a WorkerId),
    /// This owner is asked for them.
    Ask(&'a WorkerId),
}

/// Says what was weighed, the leases in the order drawn; the first `now` are taken or asked for.
fn report_choice(
    cx: &mut Context, leases: &LeaseTable, balance: &Balance, ours: u32, way: Way<'_>, order: &[LeaseIx],
    now: usize,
) {
    let (chosen, left) = order.split_at(now.min(order.len()));
    if chosen.is_empty() {
        return;
    }
    let keys = |part: &[LeaseIx]| {
        let part = part.iter().filter_map(|ix| leases.get(*ix));
        part.map(|lease| lease.key().clone()).take(Choice::MOST).collect()
    };
    let choice = Choice {
        taken: chosen.len() as u32,
        chosen: keys(chosen),
        left: keys(left),
        candidates: order.len() as u32,
        asked: matches!(way, Way::Ask(_)),
        victim: match way {
            Way::Take => None,
            Way::Steal(owner) | Way::Ask(owner) => Some(owner.clone()),
        },
        counts: balance.busiest(cx.me()).to_vec(),
        workers: balance.workers(),
        unfinished: balance.unfinished(),
        target: balance.target(),
        ours,
    };
    cx.notify(Notice::Chose(Box::new(choice)));
}
