//! Leases that a leader assigns, as in a fleet of KCL 3.x.
//!
//! A member takes the leases that the table assigns to the member, gives up leases on request, and takes no other
//! lease. Where a leader is absent or does not act, KCL's workers wait, however long, and no worker reads a lease
//! without an assignment. Here a worker takes a lease that has been free or expired for [`patience`] without a leader,
//! up to the worker's share. KCL's workers understand a take, and their leader goes on from the rows as they are.
//! Without a leader in the fleet, an expired lease waits for less.

use super::MAX_TAKES;
use super::by_count::{ByCount, drawn};
use crate::time::Span;
use crate::worker::choice::{Way, report_choice};
use crate::worker::context::{Context, Request};
use crate::worker::lease_table::{Balance, Lease, LeaseTable};

/// How long a free or expired lease is left to the leader: two of the leader's intervals, each of two lease durations,
/// and one more lease duration. If no worker leads, an expired lease is left for one interval: in that time, a worker
/// of KCL may become the leader.
fn patience(cx: &Context, leaderless: bool, lease: &Lease) -> Span {
    match leaderless && is_owned(lease) {
        true => cx.config().lease_duration.times(2),
        false => cx.config().lease_duration.times(5),
    }
}

fn is_owned(lease: &Lease) -> bool {
    lease.row().is_some_and(|row| row.actual_owner().is_some())
}

impl ByCount {
    /// Takes assigned leases, and leases free or expired for too long.
    pub(super) fn take_assigned(&mut self, cx: &mut Context, leases: &LeaseTable, balance: &Balance) {
        self.accept(cx, leases, balance);
        let need = balance.target().saturating_sub(balance.of(cx.me()));
        let leaderless = leases.kcl3().is_leaderless(cx.config().lease_duration);
        let left_lying = balance.available().iter().copied().filter(|ix| {
            let lease = leases.get(*ix);
            lease.is_some_and(|lease| unread_for(cx, lease) >= patience(cx, leaderless, lease))
        });
        let order = drawn(cx, leases, "take", left_lying);
        let most = order.len().min(need.min(MAX_TAKES) as usize);
        report_choice(cx, leases, balance, balance.of(cx.me()), Way::Take, &order, most);
        for ix in order.into_iter().take(most) {
            let why = leases.shares(cx).reason_to_take(ix);
            cx.request(Request::Take(ix, why));
        }
    }
}

/// For how long a lease that can be taken is known to have been free or expired.
fn unread_for(cx: &Context, lease: &Lease) -> Span {
    match is_owned(lease) {
        true => Span(lease.idle().0.saturating_sub(cx.config().lease_duration.0)),
        false => lease.idle(),
    }
}
