//! Requests for leases from owners that hand leases over. The owner finishes its batch, saves its checkpoint and lets
//! go, and the next owner begins at once. So shares become even at once, with many moves at a time: a move repeats no
//! record.
//!
//! Each row of a worker of this library promises a hand-over on request. If no row of a live owner has this promise,
//! leases are stolen as KCL steals them, a few at a time: workers of KCL 2.x know nothing of a hand-over, and
//! take a lease in the midst of a hand-over.

use super::HandOver;
use crate::ids::{LeaseIx, LeaseKey, WorkerId};
use crate::notice::TakeReason;
use crate::self_assignment;
use crate::time::Mono;
use crate::worker::assignment::MAX_TAKES;
use crate::worker::assignment::by_count::drawn;
use crate::worker::choice::{Way, report_choice};
use crate::worker::context::{Context, Request};
use crate::worker::lease_table::{Balance, Lease, LeaseTable};

impl HandOver {
    /// Accepts leases handed over to this worker, and takes leases whose hand-over is overdue. Every lease requested and
    /// handed over is taken, up to the most that this worker may have.
    pub(in crate::worker::assignment) fn accept(
        &mut self, cx: &mut Context, leases: &LeaseTable, balance: &Balance,
    ) {
        let room = match cx.config().max_leases {
            0 => MAX_TAKES,
            most => most.saturating_sub(balance.held()).min(MAX_TAKES),
        };
        let handed_over = balance.handed_over().iter().take(room as usize);
        let room = (room as usize).saturating_sub(handed_over.len());
        for ix in handed_over {
            let why = leases.shares(cx).reason_to_take(*ix);
            cx.request(Request::Take(*ix, why));
        }
        self.requests.forget_settled(leases);
        take_overdue(cx, leases, balance, room);
    }

    /// Requests all leases missing from the share: the busiest owners first, each for its leases above its share. Where
    /// no owner has more than its share and several leases are missing, the worker requests one lease from one owner. A
    /// worker that has just started requests fewer: see `joining`. `since`: when this worker first counted leases.
    /// `requested`: what is requested already.
    pub(in crate::worker::assignment) fn request(
        &mut self, cx: &mut Context, leases: &LeaseTable, balance: &Balance, need: u32,
        (since, requested): (Mono, &[LeaseKey]),
    ) {
        // Not shown as coming to us yet.
        let pending = requested.iter().filter(|key| {
            let lease = leases.find(key.as_str()).and_then(|ix| leases.get(ix));
            lease.is_some_and(|lease| {
                !lease.busy() && lease.row().is_some_and(|row| row.owner.as_ref() != Some(cx.me()))
            })
        });
        let pending = pending.count() as u32;
        let lacks = need.saturating_sub(pending);
        if lacks == 0 {
            return;
        }
        let leases_of = leases.owners().leases();
        let most = self.joining.most(cx, leases, since, &leases_of);
        let most = most.saturating_sub(balance.of(cx.me()).saturating_add(pending));
        let me = cx.me().clone();
        let counting = self_assignment::Counting { me: &me, ..leases.shares(cx).counting() };
        self_assignment::request(&counting, balance, lacks, most, |owner, most| {
            let theirs = leases_of.get(owner).map_or(&[][..], Vec::as_slice);
            match lives(cx, leases, theirs) {
                true => self.request_from(cx, leases, balance, owner, theirs, most),
                false => 0,
            }
        });
    }

    /// Requests up to `most` of `theirs`, the leases whose rows name the owner. Returns the number of requests.
    fn request_from(
        &mut self, cx: &mut Context, leases: &LeaseTable, balance: &Balance, owner: &WorkerId,
        theirs: &[LeaseIx], most: u32,
    ) -> u32 {
        let theirs = theirs.iter().filter_map(|ix| Some((*ix, leases.get(*ix)?)));
        let theirs = theirs.filter(|(_, lease)| {
            let hands_over = lease.row().is_some_and(|row| self_assignment::may_be_requested(row, owner));
            hands_over && !lease.busy() && cx.may_take(lease.stream()) && self.requests.may_request(cx, lease)
        });
        let order: Vec<LeaseIx> = drawn(cx, leases, "ask", theirs.map(|(ix, _)| ix));
        let most = most.min(order.len() as u32);
        if most > 0 {
            self.joining.requested(cx.now());
        }
        let ours = balance.of(cx.me());
        report_choice(cx, leases, balance, ours, Way::Request(owner), &order, most as usize);
        for ix in order.into_iter().take(most as usize) {
            self.requests.request(cx, leases, ix);
        }
        most
    }
}

/// Whether an owner is seen to live, by `theirs`, the leases whose rows name the owner: a lease of these was renewed a
/// short while ago, or between the last two scans, since scans of a large table take long. A dead worker hands nothing
/// over, and leases requested from a dead worker would count as ours meanwhile. A worker that has just started has seen
/// no renewal: the first renewal lets the worker send requests.
fn lives(cx: &Context, leases: &LeaseTable, theirs: &[LeaseIx]) -> bool {
    let lately = cx.now() - cx.config().lease_duration.per(2);
    let since = lately.min(leases.scans().began());
    let moved = |lease: &Lease| {
        // The former owner renews a lease during its hand-over.
        let is_its_own = lease.row().is_some_and(|row| row.handing_over.is_none());
        is_its_own && lease.has_moved() && lease.observed_at() >= since
    };
    theirs.iter().any(|ix| leases.get(*ix).is_some_and(moved))
}

/// Steals leases requested by us and not handed over in time: the owner hangs, or its handler does not finish.
fn take_overdue(cx: &mut Context, leases: &LeaseTable, balance: &Balance, most: usize) {
    // An owner that knows of the hand-over lets go in time without a steal, and so does an owner of KCL. Otherwise the
    // owner has an older program, or a handler that does not stop.
    let patience = cx.config().hand_over_timeout;
    let letting_go = cx.config().renew_interval + cx.config().table_timeout;
    // KCL's owner lets go 30 s after it learns of the hand-over. KCL's leader ends a hand-over 40 s after its begin.
    let letting_go = match leases.kcl3().is_led() {
        true => letting_go.max(cx.config().lease_duration.times(3).per(2)),
        false => letting_go,
    };
    let patience = |lease: &Lease| match lease.was_renewed_since_requested() {
        true => patience + letting_go,
        false => patience,
    };
    let requested = balance.requested().iter().filter_map(|ix| Some((*ix, leases.get(*ix)?)));
    let overdue: Vec<_> = requested
        .filter(|(_, lease)| lease.requested_for(cx.now()) >= patience(lease) && cx.may_take(lease.stream()))
        .filter_map(|(ix, lease)| Some((ix, lease.row()?.actual_owner()?.clone())))
        .take(most)
        .collect();
    for (ix, owner) in overdue {
        let why = TakeReason::Stolen {
            theirs: balance.of(&owner),
            ours: balance.of(cx.me()),
            target: balance.target(),
            owner,
        };
        cx.request(Request::Take(ix, why));
    }
}
