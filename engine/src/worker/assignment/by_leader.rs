//! Leases that a leader assigns, as in a fleet of KCL 3.x.
//!
//! A member takes what the table says is its own, gives up what it is asked for, and takes nothing else. If a leader is not there, or
//! does not act, KCL's workers wait for as long as that lasts, and a lease that no leader assigns is not read. Here a lease that
//! has been free or expired for [`patience`] is taken without a leader, up to this worker's share: KCL's workers understand a
//! take, and their leader goes on with what it finds. Where nobody leads, an expired lease waits for less.

use super::MAX_TAKES;
use super::by_count::{ByCount, drawn};
use crate::time::Span;
use crate::worker::choice::{Way, report_choice};
use crate::worker::context::{Context, Request};
use crate::worker::lease_table::{Balance, Lease, LeaseTable};

/// For how long a lease that is free or expired is left to the leader: two of its intervals, which are two lease durations each,
/// and one more lease duration. If nobody leads, an expired lease is left for one interval, in which a worker of KCL may become the leader.
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
    /// Takes what was assigned to us, and what was left lying for too long.
    pub(super) fn take_assigned(&mut self, cx: &mut Context, leases: &LeaseTable, balance: &Balance) {
        self.take_promised(cx, leases, balance);
        let need = balance.target().saturating_sub(balance.of(cx.me()));
        let leaderless = leases.kcl3().is_leaderless(cx.now(), cx.config().lease_duration);
        let left_lying = balance.available().iter().copied().filter(|ix| {
            let lease = leases.get(*ix);
            lease.is_some_and(|lease| unread_for(cx, lease) >= patience(cx, leaderless, lease))
        });
        let order = drawn(cx, leases, "take", left_lying);
        let most = order.len().min(need.min(MAX_TAKES) as usize);
        report_choice(cx, leases, balance, balance.of(cx.me()), Way::Take, &order, most);
        for ix in order.into_iter().take(most) {
            let why = leases.reason_to_take(cx, ix);
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
