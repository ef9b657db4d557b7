//! A share of all leases, counted by the owners that their rows name.

use super::claims::{self, Claims};
use super::{MAX_TAKES, Way, report_choice};
use crate::ids::{LeaseIx, LeaseKey, WorkerId};
use crate::notice::TakeReason;
use crate::policy::Steal;
use crate::time::Mono;
use crate::worker::context::{Context, Request};
use crate::worker::lease_table::{Balance, Lease, LeaseTable};

/// What is remembered from scan to scan.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct ByCount {
    /// When we first counted leases, to take our share of them.
    shares_since: Option<Mono>,
    /// The scan since which leases were stolen, and how many.
    stolen: (u64, u32),
    pub(super) claims: Claims,
}

impl ByCount {
    /// Takes what is our share of what is available, or steals a little from the busiest.
    pub(super) fn take_share(
        &mut self,
        cx: &mut Context,
        leases: &LeaseTable,
        balance: &Balance,
        asked: &[LeaseKey],
    ) {
        if balance.unfinished() > 0 {
            self.shares_since.get_or_insert(cx.now());
        }
        if cx.asks() {
            self.take_promised(cx, leases, balance);
        }
        let mine = balance.of(cx.me());
        let need = balance.target().saturating_sub(mine);
        if need == 0 {
            return;
        }
        if !balance.available().is_empty() {
            self.take_available(cx, leases, balance, need);
        } else if cx.asks() && !balance.has_other_programs() {
            self.ask(cx, leases, balance, need, asked);
        } else {
            self.steal(cx, leases, balance, need, asked);
        }
    }

    /// Takes what is free or expired, up to our share. A part of it may be left to others for a moment: then we look again.
    fn take_available(&mut self, cx: &mut Context, leases: &LeaseTable, balance: &Balance, need: u32) {
        debug_assert!(
            need > 0 && need <= balance.target(),
            "no more is needed than a share"
        );
        let now = cx.now();
        let order = drawn(cx, leases, "take", balance.available().iter().copied());
        let all_know = self.shares_since.unwrap_or(now) + cx.config().meeting();
        // Where leases are handed over, another worker that starts has its share within moments anyway.
        let evens_out = cx.asks() && !balance.has_other_programs();
        let (order, most) = if now < all_know && !evens_out {
            leave_half(leases, balance, order)
        } else {
            let all = order.len() as u32;
            (order, all)
        };
        let most = most.min(need).min(MAX_TAKES);
        let more = need > most && order.len() > most as usize;
        report_choice(
            cx,
            leases,
            balance,
            balance.of(cx.me()),
            Way::Take,
            &order,
            most as usize,
        );
        for ix in order.into_iter().take(most as usize) {
            let why = leases.reason_to_take(ix, cx.me());
            cx.request(Request::Take(ix, why));
        }
        if more {
            cx.request(Request::Rescan(all_know.max(now)));
        }
    }

    /// KCL's rule: from the most loaded worker, what it has above its share, or one if we lack two and more.
    fn steal(
        &mut self,
        cx: &mut Context,
        leases: &LeaseTable,
        balance: &Balance,
        need: u32,
        asked: &[LeaseKey],
    ) {
        let policy = cx.config().policies.steal;
        let claimed = match policy {
            Steal::Take | Steal::Ask => 0,
            Steal::Claim => {
                self.claims.forget_settled(leases);
                claims::count(cx, leases, asked)
            }
        };
        let (ours, need) = (balance.of(cx.me()) + claimed, need.saturating_sub(claimed));
        if need == 0 {
            return;
        }
        let busiest = balance
            .counts()
            .iter()
            .filter(|(owner, _)| *owner != cx.me())
            .max_by_key(|(_, count)| **count);
        let Some((victim, theirs)) = busiest else { return };
        let mut spare = need.min(theirs.saturating_sub(balance.target()));
        if spare == 0 && need > 1 && *theirs >= balance.target() {
            spare = 1;
        }
        let begun = self.steals_begun(leases);
        let spare = spare.min(cx.config().max_steals.saturating_sub(begun)) as usize;
        if spare == 0 {
            return;
        }
        // A worker that has some to spare has two more than we at least: one taken leaves us more even, or leases would wander.
        debug_assert!(*theirs > ours + 1, "a steal evens out");
        let from_victim = leases.perhaps_of(victim);
        let from_victim = from_victim.filter(|(_, lease)| is_plainly_of(cx, lease, victim));
        let from_victim =
            from_victim.filter(|(_, lease)| policy != Steal::Claim || self.claims.may_claim(cx, lease));
        let order = drawn(cx, leases, "steal", from_victim.map(|(ix, _)| ix));
        report_choice(cx, leases, balance, ours, Way::Steal(victim), &order, spare);
        self.stolen = (
            leases.scans().number(),
            begun.saturating_add(spare.min(order.len()) as u32),
        );
        for ix in order.into_iter().take(spare) {
            if policy == Steal::Claim {
                self.claims.claim(cx, leases, ix);
                continue;
            }
            let why = TakeReason::Stolen {
                owner: victim.clone(),
                theirs: *theirs,
                ours,
                target: balance.target(),
            };
            cx.request(Request::Take(ix, why));
        }
    }

    /// So many were begun since the scan that is under way, or the last one, began: it may show them with their old owners.
    fn steals_begun(&self, leases: &LeaseTable) -> u32 {
        match self.stolen {
            (scan, steals) if scan == leases.scans().number() => steals,
            _ => 0,
        }
    }
}

/// Whether a lease is this worker's, nothing is going on with it, and its stream is known.
pub(super) fn is_plainly_of(cx: &Context, lease: &Lease, owner: &WorkerId) -> bool {
    let plain = !lease.busy() && cx.may_take(lease.stream());
    let row = lease.unfinished_row().filter(|_| plain);
    row.is_some_and(|row| row.handing_over.is_none() && row.owner.as_ref() == Some(owner))
}

/// Leases in an order that is drawn anew after each scan.
pub(super) fn drawn(
    cx: &Context,
    leases: &LeaseTable,
    purpose: &str,
    some: impl Iterator<Item = LeaseIx>,
) -> Vec<LeaseIx> {
    let number = leases.scans().number();
    let mut order: Vec<(u64, LeaseIx)> = some
        .filter_map(|ix| Some((cx.draw(purpose, leases.get(ix)?.key(), number), ix)))
        .collect();
    order.sort_unstable();
    order.into_iter().map(|(_, ix)| ix).collect()
}

/// Puts behind the rest, in the order drawn, what is left to others for a moment. Returns how many may be taken at once, too.
///
/// When workers start together, none sees the others before they have something. So of what another that starts may be
/// about to take, half is left. That is what no worker ever had; and what was given up, if no other worker is seen to live:
/// then the whole fleet may be starting. What a worker that died or gave up left to a live fleet is taken at once.
fn leave_half(leases: &LeaseTable, balance: &Balance, order: Vec<LeaseIx>) -> (Vec<LeaseIx>, u32) {
    let alone = balance.workers() == 1;
    let mut take = false;
    let (mut at_once, left): (Vec<_>, Vec<_>) = order.into_iter().partition(|ix| {
        let row = leases.get(*ix).and_then(|lease| lease.row());
        let anybodys = row.is_some_and(|row| row.never_owned() || row.owner.is_none() && alone);
        take ^= anybodys;
        take || !anybodys
    });
    let most = at_once.len() as u32;
    debug_assert!(at_once.len() >= left.len(), "no more than half is left");
    at_once.extend(left);
    (at_once, most)
}
