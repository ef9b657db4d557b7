//! Leading a fleet of KCL 3.x: the leader assigns what is free or expired, moves leases by hand-over, and ends the hand-overs that
//! their owners do not end.

use super::workers::silence_of;
use crate::config::AssignBy;
use crate::ids::{LeaseIx, WorkerId};
use crate::leader_assignment::{self, Candidate, LoadOptions, Portion};
use crate::notice::Notice;
use crate::row::{Change, LeaseRow};
use crate::worker::context::{Context, Request};
use crate::worker::lease_table::{Balance, Lease, LeaseTable};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

/// The most free and expired leases assigned after one scan. A write not made within `table_timeout` is decided anew.
const MAX_ASSIGNED: usize = 5_000;

/// Whether a lease that can be taken is the leader's to assign by now.
fn is_due(cx: &Context, leases: &LeaseTable, lease: &Lease) -> bool {
    let owned = lease.row().filter(|row| row.actual_owner().is_some());
    owned.is_none_or(|row| lease.idle() >= silence_of(cx, row) || leases.shares(cx).was_left(lease, row))
}

/// What the leader does after a scan: it assigns what is free or expired; in a round, it also moves leases.
pub(super) fn assign(cx: &mut Context, leases: &LeaseTable, counts: &Balance, round: bool) {
    end_hand_overs(cx, leases);
    let due = |ix: &LeaseIx| leases.get(*ix).is_some_and(|lease| is_due(cx, leases, lease));
    let available: BTreeSet<LeaseIx> = counts.available().iter().copied().filter(due).collect();
    if available.is_empty() && !round {
        return;
    }
    let candidates = candidates(cx, leases);
    let even = available.is_empty() && is_even(cx, leases, &candidates);
    // Where checks are on, small tables are shared out all the same, to see that nothing moves.
    if even && (!cfg!(debug_assertions) || leases.len() > 64) {
        return;
    }
    let unfinished = leases.iter().filter(|(_, lease)| lease.is_unfinished());
    let mut ixs: Vec<LeaseIx> = unfinished.map(|(ix, _)| ix).collect();
    // What has stood still for longest comes first.
    ixs.sort_by_key(|ix| Reverse(leases.get(*ix).map(Lease::idle)));
    let all = ixs.len();
    let mut left = MAX_ASSIGNED;
    ixs.retain(|ix| {
        let is_available = available.contains(ix);
        let stays = !is_available || left > 0;
        left = left.saturating_sub(usize::from(is_available));
        stays
    });
    let portions: Vec<Portion> = ixs
        .iter()
        .filter_map(|ix| Some(portion(cx, leases.get(*ix)?, available.contains(ix), &candidates)))
        .collect();
    debug_assert_eq!(ixs.len(), portions.len(), "every lease is a portion");
    // What is not placed yet may make loads even.
    let balance = round && ixs.len() == all;
    let number = leases.scans().number();
    let key = |lease: usize| ixs.get(lease).and_then(|ix| leases.get(*ix)).map(Lease::key);
    let draw = |lease: usize| key(lease).map_or(0, |key| cx.draw("share out", key, number));
    let moves = match cx.config().fleet.assign_by {
        AssignBy::Load => {
            leader_assignment::by_load(&candidates, &portions, &LoadOptions::default(), balance, draw)
        }
        AssignBy::Number => leader_assignment::by_count(&candidates, &portions, balance),
    };
    debug_assert!(!even || moves.is_empty(), "nothing moves where loads are even");
    for step in moves {
        let (Some(ix), Some(to)) = (ixs.get(step.lease), candidates.get(step.to)) else {
            debug_assert!(false, "a lease and a worker that were given are chosen");
            continue;
        };
        carry_out(cx, leases, *ix, &to.id, portions[step.lease].available);
    }
}

/// Ends hand-overs not ended by their owners: the next owner gets the lease, or the old owner gets it back, if the next
/// owner is dead.
///
/// KCL's owner lets go after 30 s, and an owner of this library after `hand_over_timeout`. An owner with a hanging
/// processor does not let go. Nor does an owner of KCL before 3.5 that has forgotten the hand-over: it renews the lease
/// for ever, and reads no record. KCL's leader ends these hand-overs, too, 40 s after their begin. A next owner of this
/// library steals the lease, and leaves it idle until the old owner must know of the steal. So the next owner gets more
/// time.
fn end_hand_overs(cx: &mut Context, leases: &LeaseTable) {
    let now = cx.now();
    let live: BTreeMap<&WorkerId, bool> = leases.kcl3().live(now).map(|it| (&it.id, it.ours)).collect();
    let mut overdue = Vec::new();
    for (ix, lease) in leases.owners().not_plain() {
        let row = lease.unfinished_row().filter(|_| !lease.busy() && cx.may_take(lease.stream()));
        let Some((next, old)) = row.and_then(|row| Some((row.owner.as_ref()?, row.handing_over.as_ref()?)))
        else {
            continue;
        };
        let (heir, leases_more) = match (live.get(next), live.contains_key(old)) {
            (Some(ours), _) => (next, if *ours { 3 } else { 1 }),
            (None, true) => (old, 1),
            // No worker renews the lease: it expires.
            (None, false) => continue,
        };
        let patience = cx.config().hand_over_timeout + cx.config().lease_duration.times(leases_more);
        if heir != cx.me() && next != cx.me() && lease.requested_for(now) >= patience {
            overdue.push((ix, heir.clone()));
        }
    }
    overdue.truncate(MAX_ASSIGNED);
    for (ix, heir) in overdue {
        carry_out(cx, leases, ix, &heir, true);
    }
}

/// Whether nothing would move, if nothing is available.
fn is_even(cx: &Context, leases: &LeaseTable, candidates: &[Candidate]) -> bool {
    let loads = leases.owners().loads(candidates);
    let light = |below| loads.light(below);
    match cx.config().fleet.assign_by {
        AssignBy::Load => {
            leader_assignment::is_even_by_load(candidates, loads.each(), light, &LoadOptions::default())
        }
        AssignBy::Number => leader_assignment::is_even_by_count(candidates, loads.each()),
    }
}

/// The workers that live, and we, in the order of their names.
fn candidates(cx: &Context, leases: &LeaseTable) -> Vec<Candidate> {
    let most = Some(cx.config().max_leases).filter(|most| *most > 0);
    leader_assignment::candidates(leases.kcl3().surely_live(cx.now()), cx.me(), most)
}

fn portion(cx: &Context, lease: &Lease, available: bool, candidates: &[Candidate]) -> Portion {
    let is_settled = |row: &LeaseRow, owner: &WorkerId| match owner == cx.me() {
        true => lease.is_ours() && row.handing_over.is_none(),
        false => lease.is_plainly_of(cx, owner),
    };
    leader_assignment::portion(lease.row(), available, candidates, is_settled)
}

/// Makes the worker with the fewest leases the owner of a lease released by this worker.
pub(super) fn assign_on_leaving(
    cx: &mut Context, leases: &LeaseTable, ix: LeaseIx, assigned: &mut BTreeMap<WorkerId, u32>,
) {
    let balance = leases.shares(cx).balance();
    let others = leases.kcl3().surely_live(cx.now()).filter(|worker| worker.id != *cx.me());
    let count = |id: &WorkerId| balance.of(id) + assigned.get(id).copied().unwrap_or(0);
    let next = others.map(|worker| &worker.id).min_by_key(|id| (count(id), *id));
    let free = leases.get(ix).and_then(Lease::unfinished_row).is_some_and(|row| row.owner.is_none());
    let Some(next) = next.cloned().filter(|_| free) else {
        // No other worker surely lives, or the lease is not free.
        return;
    };
    *assigned.entry(next.clone()).or_default() += 1;
    carry_out(cx, leases, ix, &next, true);
}

fn carry_out(cx: &mut Context, leases: &LeaseTable, ix: LeaseIx, to: &WorkerId, available: bool) {
    let Some((lease, row)) = leases.get(ix).and_then(|lease| Some((lease, lease.row()?))) else {
        return cx.broken("a lease that the leader assigns has a row");
    };
    if available && to == cx.me() {
        let why = leases.shares(cx).reason_to_take(ix);
        return cx.request(Request::Take(ix, why));
    }
    let change = match (available, &row.owner) {
        (true, _) => Change::Assign {
            key: row.key.clone(),
            counter: row.counter,
            next: cx.next_counter(row.counter, lease.highest()),
            from: row.owner.clone(),
            handing_over: row.handing_over.clone(),
            to: to.clone(),
        },
        (false, Some(from)) => Change::Offer { key: row.key.clone(), from: from.clone(), to: to.clone() },
        (false, None) => return,
    };
    cx.notify(Notice::Assigned { lease: row.key.clone(), from: row.actual_owner().cloned(), to: to.clone() });
    let expires = cx.now() + cx.config().table_timeout;
    cx.write_row(change, "it is this worker's, as the leader decided".into(), None, expires);
}
