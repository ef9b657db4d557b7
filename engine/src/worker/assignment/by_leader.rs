//! Leases in a fleet that has a leader, as in KCL 3.x: it assigns what is free or expired, and moves leases by hand-over.
//!
//! A member takes what the table says is its own, gives up what it is asked for, and takes nothing else. If a leader is not there, or
//! does not act, KCL's workers wait for as long as that lasts, and a lease that no leader assigns is not read. Here a lease that
//! has been free or expired for [`patience`] is taken without a leader, up to this worker's share: KCL's workers understand a
//! take, and their leader goes on with what it finds. Where nobody leads, an expired lease waits for less.

use super::by_count::{ByCount, drawn, is_plainly_of};
use super::{MAX_TAKES, Way, report_choice};
use crate::config::AssignBy;
use crate::ids::{LeaseIx, WorkerId};
use crate::notice::Notice;
use crate::row::{Change, LeaseRow};
use crate::share_out::{self, Candidate, LoadOptions, Portion};
use crate::time::Span;
use crate::worker::context::{Context, Request};
use crate::worker::lease_table::{Balance, Lease, LeaseTable, silence_of};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

/// No more than this many free and expired leases are assigned after one scan. What is not written within `table_timeout` is decided anew.
const MAX_ASSIGNED: usize = 5_000;

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

/// Whether a lease that can be taken is the leader's to assign by now.
fn is_due(cx: &Context, leases: &LeaseTable, lease: &Lease) -> bool {
    let owned = lease.row().filter(|row| row.actual_owner().is_some());
    owned.is_none_or(|row| lease.idle() >= silence_of(cx, row) || leases.was_left(lease, row))
}

impl ByCount {
    /// Takes what was assigned to us, and what was left lying for too long.
    pub(super) fn take_assigned(&mut self, cx: &mut Context, leases: &LeaseTable, balance: &Balance) {
        self.take_promised(cx, leases, balance);
        let need = balance.target().saturating_sub(balance.of(cx.me()));
        let leaderless = leases.fleet().is_leaderless(cx.now(), cx.config().lease_duration);
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
        AssignBy::Load => share_out::by_load(&candidates, &portions, &LoadOptions::default(), balance, draw),
        AssignBy::Number => share_out::by_count(&candidates, &portions, balance),
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

/// Ends hand-overs that their owners do not end: the next owner gets the lease, or the old one back, if the next one is dead.
///
/// KCL's owner lets go after 30 s, and one of ours after `hand_over_timeout`. One whose processor hangs does not, nor does one of KCL before 3.5
/// that has forgotten the hand-over: the lease is renewed for ever, and no record of it is read. KCL's leader ends that, too, 40 s after it began
/// the hand-over. A next owner of ours steals the lease, and leaves it idle until the old one must know: it is given more time.
fn end_hand_overs(cx: &mut Context, leases: &LeaseTable) {
    let now = cx.now();
    let live: BTreeMap<&WorkerId, bool> = leases.fleet().live(now).map(|it| (&it.id, it.ours)).collect();
    let mut overdue = Vec::new();
    for (ix, lease) in leases.not_plain() {
        let row = lease.unfinished_row().filter(|_| !lease.busy() && cx.may_take(lease.stream()));
        let Some((next, old)) = row.and_then(|row| Some((row.owner.as_ref()?, row.handing_over.as_ref()?)))
        else {
            continue;
        };
        let (heir, leases_more) = match (live.get(next), live.contains_key(old)) {
            (Some(ours), _) => (next, if *ours { 3 } else { 1 }),
            (None, true) => (old, 1),
            // Nobody renews it: it expires.
            (None, false) => continue,
        };
        let patience = cx.config().hand_over_timeout + cx.config().lease_duration.times(leases_more);
        if heir != cx.me() && next != cx.me() && lease.promised_for(now) >= patience {
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
    let loads = leases.loads(candidates);
    let light = |below| loads.light(below);
    match cx.config().fleet.assign_by {
        AssignBy::Load => {
            share_out::is_even_by_load(candidates, loads.each(), light, &LoadOptions::default())
        }
        AssignBy::Number => share_out::is_even_by_count(candidates, loads.each()),
    }
}

/// The workers that live, and we, in the order of their names.
fn candidates(cx: &Context, leases: &LeaseTable) -> Vec<Candidate> {
    let most = Some(cx.config().max_leases).filter(|most| *most > 0);
    share_out::candidates(leases.fleet().live(cx.now()), cx.me(), most)
}

fn portion(cx: &Context, lease: &Lease, available: bool, candidates: &[Candidate]) -> Portion {
    let is_settled = |row: &LeaseRow, owner: &WorkerId| match owner == cx.me() {
        true => lease.is_ours() && row.handing_over.is_none(),
        false => is_plainly_of(cx, lease, owner),
    };
    share_out::portion(lease.row(), available, candidates, is_settled)
}

/// Makes the worker with the fewest leases the owner of one that we gave up.
pub(super) fn pass_on(
    cx: &mut Context, leases: &LeaseTable, ix: LeaseIx, passed_on: &mut BTreeMap<WorkerId, u32>,
) {
    let balance = leases.balance(cx);
    let others = leases.fleet().live(cx.now()).filter(|worker| worker.id != *cx.me());
    let count = |id: &WorkerId| balance.of(id) + passed_on.get(id).copied().unwrap_or(0);
    let next = others.map(|worker| &worker.id).min_by_key(|id| (count(id), *id));
    let free = leases.get(ix).and_then(Lease::unfinished_row).is_some_and(|row| row.owner.is_none());
    let Some(next) = next.cloned().filter(|_| free) else {
        return;
    };
    *passed_on.entry(next.clone()).or_default() += 1;
    carry_out(cx, leases, ix, &next, true);
}

fn carry_out(cx: &mut Context, leases: &LeaseTable, ix: LeaseIx, to: &WorkerId, available: bool) {
    let Some((lease, row)) = leases.get(ix).and_then(|lease| Some((lease, lease.row()?))) else {
        return;
    };
    if available && to == cx.me() {
        let why = leases.reason_to_take(cx, ix);
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
