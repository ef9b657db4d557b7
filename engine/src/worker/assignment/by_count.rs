//! A share of all leases, counted by the owners that their rows name.

use super::hand_over::HandOver;
use crate::ids::{LeaseIx, LeaseKey};
use crate::notice::TakeReason;
use crate::policy::Steal;
use crate::self_assignment;
use crate::time::Mono;
use crate::worker::choice::{Way, report_choice};
use crate::worker::context::{Context, Request};
use crate::worker::lease_table::{Balance, Lease, LeaseTable};

/// What is remembered from scan to scan.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct ByCount {
    /// When we first counted leases, to take our share of them.
    shares_since: Option<Mono>,
    /// The scan since which leases were stolen, and how many.
    stolen: (u64, u32),
    hand_over: HandOver,
}

impl ByCount {
    /// Takes this worker's share of the available leases, or steals a few from the busiest worker.
    pub(super) fn take_share(
        &mut self, cx: &mut Context, leases: &LeaseTable, balance: &Balance, requested: &[LeaseKey],
    ) {
        if balance.unfinished() > 0 {
            self.shares_since.get_or_insert(cx.now());
        }
        if cx.hands_over() {
            self.hand_over.accept(cx, leases, balance);
        }
        match self_assignment::next(&leases.shares(cx).counting(), balance) {
            None => {}
            Some((self_assignment::Way::Take, need)) => self.take_available(cx, leases, balance, need),
            Some((self_assignment::Way::Request, need)) => {
                let since = self.shares_since.unwrap_or(cx.now());
                self.hand_over.request(cx, leases, balance, need, (since, requested));
            }
            Some((self_assignment::Way::Steal, need)) => self.steal(cx, leases, balance, need, requested),
        }
        look_again(cx, leases, balance);
    }

    /// Accepts leases handed over to this worker, and takes leases whose hand-over is overdue.
    pub(super) fn accept(&mut self, cx: &mut Context, leases: &LeaseTable, balance: &Balance) {
        self.hand_over.accept(cx, leases, balance);
    }

    /// Takes free or expired leases, up to our share. The worker may leave a part of them to other workers for a
    /// moment: then it looks again.
    fn take_available(&mut self, cx: &mut Context, leases: &LeaseTable, balance: &Balance, need: u32) {
        let now = cx.now();
        let order = drawn(cx, leases, "take", balance.available().iter().copied());
        let all_know = self.shares_since.unwrap_or(now) + cx.config().meeting();
        let row_of = |ix| leases.get(ix).and_then(Lease::row);
        let taking = self_assignment::take(
            &leases.shares(cx).counting(),
            balance,
            need,
            order,
            now < all_know,
            row_of,
        );
        let most = taking.now as usize;
        report_choice(cx, leases, balance, balance.of(cx.me()), Way::Take, &taking.order, most);
        for ix in taking.order.into_iter().take(most) {
            let why = leases.shares(cx).reason_to_take(ix);
            cx.request(Request::Take(ix, why));
        }
        if taking.more {
            cx.request(Request::Rescan(all_know.max(now)));
        }
    }

    /// Steals a few leases from the most loaded worker, or requests them, as the format says.
    fn steal(
        &mut self, cx: &mut Context, leases: &LeaseTable, balance: &Balance, need: u32,
        requested: &[LeaseKey],
    ) {
        let policy = cx.config().policies.steal;
        let coming = match policy {
            Steal::Take | Steal::Ask => 0,
            Steal::Claim => self.hand_over.count(cx, leases, requested),
        };
        let begun = self.steals_begun(leases);
        let most = cx.config().max_steals.saturating_sub(begun);
        let Some(stealing) =
            self_assignment::steal(&leases.shares(cx).counting(), balance, need, coming, most)
        else {
            // No lease is lacking, no worker has a lease to spare, or enough steals have begun.
            return;
        };
        let (victim, spare) = (stealing.victim, stealing.spare as usize);
        let from_victim = leases.owners().perhaps_of(victim);
        let from_victim = from_victim.filter(|(_, lease)| lease.is_plainly_of(cx, victim));
        let from_victim =
            from_victim.filter(|(_, lease)| policy != Steal::Claim || self.hand_over.may_request(cx, lease));
        let order = drawn(cx, leases, "steal", from_victim.map(|(ix, _)| ix));
        report_choice(cx, leases, balance, stealing.ours, Way::Steal(victim), &order, spare);
        self.stolen = (leases.scans().number(), begun.saturating_add(spare.min(order.len()) as u32));
        for ix in order.into_iter().take(spare) {
            if policy == Steal::Claim {
                self.hand_over.request_one(cx, leases, ix);
                continue;
            }
            let why = TakeReason::Stolen {
                owner: victim.clone(),
                theirs: stealing.theirs,
                ours: stealing.ours,
                target: balance.target(),
            };
            cx.request(Request::Take(ix, why));
        }
    }

    /// The number of steals begun since the start of the present or last scan: that scan may show the leases with their
    /// old owners.
    fn steals_begun(&self, leases: &LeaseTable) -> u32 {
        match self.stolen {
            (scan, steals) if scan == leases.scans().number() => steals,
            _ => 0,
        }
    }
}

/// Leases of dead workers outside every share at the next scan are taken by a worker that knows of them: that scan is
/// made soon.
fn look_again(cx: &mut Context, leases: &LeaseTable, balance: &Balance) {
    let is_left = |ix: &LeaseIx| {
        let row = leases.get(*ix).and_then(Lease::row);
        row.is_some_and(|row| row.actual_owner().is_some())
    };
    let most = cx.config().max_leases;
    let has_room = most == 0 || balance.of(cx.me()) < most;
    if self_assignment::evens_out(&leases.shares(cx).counting(), balance)
        && has_room
        && balance.available().iter().any(is_left)
    {
        cx.request(Request::Rescan(cx.now() + cx.config().quick_scan_interval));
    }
}

/// Leases in an order that is drawn anew after each scan.
pub(super) fn drawn(
    cx: &Context, leases: &LeaseTable, purpose: &str, some: impl Iterator<Item = LeaseIx>,
) -> Vec<LeaseIx> {
    let number = leases.scans().number();
    self_assignment::drawn(some.filter_map(|ix| Some((cx.draw(purpose, leases.get(ix)?.key(), number), ix))))
}
