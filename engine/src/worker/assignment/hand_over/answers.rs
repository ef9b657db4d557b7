//! What follows from the answers to a request for a lease, and which requests are spared.

use crate::ids::{LeaseKey, WorkerId};
use crate::input::{Outcome, Reply, Why};
use crate::notice::Notice;
use crate::row::{LeaseRow, RowRead};
use crate::time::Span;
use crate::worker::context::{Context, Request, RowWriteId};
use crate::worker::lease_request::{FollowUp, LeaseRequest};
use crate::worker::lease_table::{BesideLane, LeaseTable};
use std::collections::BTreeSet;

/// The longest pause between two looks at the row of a lease that is to be handed over.
const LOOK_PAUSE: Span = Span::from_millis(250);

/// The requests that wait for their turn and are more than our share has room for by now.
/// `requests`: first those that wait, in the order of the queue.
pub(in crate::worker::assignment) fn spared<'a>(
    cx: &Context, leases: &LeaseTable, requests: impl Iterator<Item = (RowWriteId, &'a LeaseRequest)>,
) -> BTreeSet<RowWriteId> {
    let (sent, new): (Vec<_>, Vec<_>) = requests.partition(|(_, request)| request.is_sent());
    if new.is_empty() {
        return BTreeSet::new();
    }
    let balance = leases.shares(cx).balance();
    // A request sent may be granted, whether or not its answer or a scan has shown us as the next owner.
    let counts = |key: &LeaseKey| {
        let lease = leases.find(key.as_str()).and_then(|ix| leases.get(ix));
        lease.is_some_and(|lease| {
            lease.busy() || lease.row().is_some_and(|row| row.owner.as_ref() == Some(cx.me()))
        })
    };
    let sent = sent.into_iter().filter(|(_, request)| !counts(request.key())).count();
    let room = balance.target().saturating_sub(balance.of(cx.me())) as usize;
    new.into_iter().skip(room.saturating_sub(sent)).map(|(id, _)| id).collect()
}

/// The answer to a request, or to a look at its row.
pub(in crate::worker::assignment) fn on_answer(
    cx: &mut Context, leases: &mut LeaseTable, request: &mut LeaseRequest, outcome: Outcome,
) -> FollowUp {
    match outcome {
        Outcome::Refused(refusal) if refusal.why == Why::ConditionFailed => match refusal.current {
            Some(row) => on_row(cx, leases, request, Some(*row)),
            None => {
                // The row has moved on since the scan behind the request: most likely the owner has renewed the lease,
                // and may renew it during every scan.
                request.look();
                FollowUp::Now
            }
        },
        Outcome::Applied(Reply::Row(row)) => on_row(cx, leases, request, row.map(|row| *row)),
        Outcome::Applied(_) => on_written(cx, leases, request),
        other => FollowUp::Failed(other),
    }
}

/// The row has our request. Its owner hands the lease over within about a renewal, and a free lease counts as expired a
/// lease duration later: a scan may come too late to find it, so the row itself is looked at.
fn on_written(cx: &mut Context, leases: &mut LeaseTable, request: &mut LeaseRequest) -> FollowUp {
    let now = cx.now();
    request.written(now + cx.config().lease_duration.times(2));
    let (lease, owner) = (request.key().clone(), request.from().clone());
    if cx.hands_over() {
        leases.wrote_beside(cx, lease.as_str(), BesideLane::Requested { from: &owner });
    }
    cx.notify(Notice::Claimed { lease, owner });
    FollowUp::LookAt(now + look_pause(cx))
}

/// Requests a lease by its present row, if its owner is still the same. Accepts the lease, if it was handed over to us.
fn on_row(
    cx: &mut Context, leases: &mut LeaseTable, request: &mut LeaseRequest, row: Option<RowRead>,
) -> FollowUp {
    let Some(RowRead::Lease(row)) = row else {
        return FollowUp::Over;
    };
    let now = cx.now();
    let in_time = now < request.expires() && !row.checkpoint.is_end();
    let shown = Shown::of(&row, request.from(), cx.me());
    let next = match shown {
        Shown::Kept if in_time && request.may_follow() => match request.follow(&row) {
            true => FollowUp::AfterFailure,
            false => FollowUp::Now,
        },
        Shown::Requested if in_time && request.is_in_row() => FollowUp::LookAt(now + look_pause(cx)),
        // An earlier attempt was applied after all.
        Shown::Requested if in_time => on_written(cx, leases, request),
        _ => FollowUp::Over,
    };
    leases.observe_now(cx, row);
    if shown == Shown::HandedOver && in_time {
        accept(cx, leases, request.key());
    }
    next
}

/// The pause between two looks at the row of a requested lease. Where owners hand over at once, a lease handed over
/// stands still until its new owner sees it.
fn look_pause(cx: &Context) -> Span {
    let half = cx.config().renew_interval.per(2);
    match cx.hands_over() {
        true => half.min(LOOK_PAUSE),
        false => half,
    }
}

/// How a row shows a lease that was requested.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shown {
    /// With the owner of whom it was requested, and without our request.
    Kept,
    /// With our request to that owner.
    Requested,
    /// Handed over to us.
    HandedOver,
    Otherwise,
}

impl Shown {
    fn of(row: &LeaseRow, from: &WorkerId, me: &WorkerId) -> Self {
        let owner = row.owner.as_ref();
        match row.handing_over.as_ref() {
            None if owner == Some(from) => Shown::Kept,
            None if owner == Some(me) => Shown::HandedOver,
            Some(owner_before) if owner == Some(me) && owner_before == from => Shown::Requested,
            _ => Shown::Otherwise,
        }
    }
}

/// Accepts a lease that its owner handed over to us.
fn accept(cx: &mut Context, leases: &LeaseTable, key: &LeaseKey) {
    let Some(ix) = leases.find(key.as_str()) else {
        // The answer shows a row of another key, and the lease was forgotten meanwhile.
        return;
    };
    let lease = leases.get(ix).filter(|lease| !lease.busy());
    let free = lease.is_some_and(|lease| lease.row().is_some_and(|row| leases.lineage().knows(row)));
    // What is more than we may have is left to expire.
    let most = cx.config().max_leases;
    let room = !cx.hands_over() || most == 0 || leases.shares(cx).balance().held() < most;
    if cx.wants_leases() && free && room {
        let why = leases.shares(cx).reason_to_take(ix);
        cx.request(Request::Take(ix, why));
    }
}
