//! What the answers to a claim mean: a wish for a lease that is written into the row of a live owner. And which claims are not sent any more.

use super::{RowWrite, RowWrites};
use crate::ids::{LeaseKey, WorkerId};
use crate::input::{Outcome, Reply, Why};
use crate::notice::Notice;
use crate::row::{Change, LeaseRow, RowRead};
use crate::time::Span;
use crate::worker::context::{Context, Request, RowWriteId};
use crate::worker::lease_table::{Beside, LeaseTable};
use std::collections::BTreeSet;

/// The most renewals by the owner that one claim follows before the next scan decides.
const MAX_CHASES: u32 = 5;
/// The longest pause between two looks at the row of a lease that is to be handed over.
const LOOK_PAUSE: Span = Span::from_millis(250);

impl RowWrites {
    /// Leases may have been taken, or shares may have changed: waiting claims are weighed anew before they are sent.
    pub(in crate::worker) fn weigh_claims(&mut self) {
        self.weighs = true;
    }

    /// Drops the claims that wait for their turn and ask for more than our share has room for by now.
    pub(super) fn spare_claims(&mut self, cx: &mut Context, leases: &LeaseTable) {
        let waiting = self.waiting.iter().copied();
        let new: Vec<RowWriteId> =
            waiting.filter(|id| self.get(*id).is_some_and(RowWrite::is_new_claim)).collect();
        if new.is_empty() {
            return;
        }
        let balance = leases.shares(cx).balance();
        // A claim sent may be granted, whether or not its answer or a scan has shown the promise to us.
        let counts = |key: &LeaseKey| {
            let lease = leases.find(key.as_str()).and_then(|ix| leases.get(ix));
            lease.is_some_and(|lease| {
                lease.busy() || lease.row().is_some_and(|row| row.owner.as_ref() == Some(cx.me()))
            })
        };
        let sent = self.slots.iter().flatten();
        let sent = sent.filter(|write| write.is_claim() && !write.is_new_claim());
        let sent = sent.filter(|write| !counts(write.change.key())).count();
        let room = balance.target().saturating_sub(balance.of(cx.me())) as usize;
        let spared: BTreeSet<RowWriteId> = new.into_iter().skip(room.saturating_sub(sent)).collect();
        self.waiting.retain(|waiting| !spared.contains(waiting));
        for id in spared {
            if let Some(write) = self.drop(id) {
                let lease = write.change.key().clone();
                cx.notify(Notice::Spared { lease });
            }
        }
    }

    /// Takes the outcome of a claim; returns one that is an ordinary failure.
    pub(super) fn on_claim_outcome(
        &mut self, cx: &mut Context, leases: &mut LeaseTable, id: RowWriteId, outcome: Outcome,
    ) -> Option<Outcome> {
        match outcome {
            Outcome::Refused(refusal) if refusal.why == Why::ConditionFailed => match refusal.current {
                Some(row) => self.on_claimed_row(cx, leases, id, Some(*row)),
                None => self.look_at_row(cx, id),
            },
            Outcome::Applied(Reply::Row(row)) => self.on_claimed_row(cx, leases, id, row.map(|row| *row)),
            Outcome::Applied(_) => self.on_claim_written(cx, leases, id),
            other => return Some(other),
        }
        None
    }

    /// The row has moved on since the scan behind a claim: most likely the owner has renewed the lease, and may renew
    /// it during every scan.
    fn look_at_row(&mut self, cx: &mut Context, id: RowWriteId) {
        let Some(write) = self.get_mut(id) else {
            return cx.broken("a claim that was refused is there");
        };
        debug_assert!(write.flight.is_none(), "a claim is refused by its answer");
        write.reads = true;
        self.waiting.push_back(id);
    }

    /// The row has our claim. Its owner gives the lease up within about a renewal, and a free lease counts as expired a
    /// lease duration later: a scan may come too late to find it, so the row itself is looked at.
    fn on_claim_written(&mut self, cx: &mut Context, leases: &mut LeaseTable, id: RowWriteId) {
        let now = cx.now();
        let Some(write) = self.get_mut(id) else {
            return cx.broken("a claim that was written is there");
        };
        let Change::Claim { key, from, .. } = &write.change else {
            return cx.broken("only a claim waits for an answer of the owner");
        };
        debug_assert!(from != cx.me(), "a lease is claimed from another worker");
        let (lease, owner) = (key.clone(), from.clone());
        let first = !write.claimed;
        write.claimed = true;
        write.reads = true;
        write.backoff.answered();
        write.backoff.wait_until(now + look_pause(cx));
        write.expires = now + cx.config().lease_duration.times(2);
        self.claimed += u32::from(first);
        self.waiting.push_back(id);
        if cx.asks() {
            leases.wrote_beside(cx, lease.as_str(), Beside::Requested { from: &owner });
        }
        cx.notify(Notice::Claimed { lease, owner });
    }

    /// Claims a lease by its present row, if its owner is still the same. Takes the lease, if it was given up to us.
    fn on_claimed_row(
        &mut self, cx: &mut Context, leases: &mut LeaseTable, id: RowWriteId, row: Option<RowRead>,
    ) {
        let Some(RowRead::Lease(row)) = row else {
            self.drop(id);
            return;
        };
        let now = cx.now();
        let Some(write) = self.get_mut(id) else {
            return cx.broken("a claim whose row was shown is there");
        };
        debug_assert!(write.chases <= MAX_CHASES, "a claim follows its row a few times only");
        let in_time = now < write.expires && !row.checkpoint.is_end();
        let Change::Claim { counter, from, checkpoint, .. } = &mut write.change else {
            return cx.broken("only a claim waits for an answer of the owner");
        };
        let shown = Shown::of(&row, from, cx.me());
        match shown {
            Shown::Kept if in_time && !write.claimed && write.chases < MAX_CHASES => {
                let as_expected = (*counter, *checkpoint) == (row.counter, row.checkpoint);
                (*counter, *checkpoint) = (row.counter, row.checkpoint);
                if as_expected {
                    // The row does not say why the claim was refused.
                    write.backoff.failed(cx, "chore", row.key.as_str());
                }
                write.chases += 1;
                write.reads = false;
                self.waiting.push_back(id);
            }
            Shown::Promised if in_time && write.claimed => {
                write.backoff.wait_until(now + look_pause(cx));
                self.waiting.push_back(id);
            }
            // An earlier attempt was applied after all.
            Shown::Promised if in_time => self.on_claim_written(cx, leases, id),
            _ => {
                self.drop(id);
            }
        }
        let key = row.key.clone();
        leases.observe_now(cx, row);
        if shown == Shown::Ours && in_time {
            take_handed(cx, leases, &key);
        }
    }
}

/// The pause between two looks at a claimed row. Where owners hand over at once, a lease given up stands still until it
/// is seen.
fn look_pause(cx: &Context) -> Span {
    let half = cx.config().renew_interval.per(2);
    match cx.asks() {
        true => half.min(LOOK_PAUSE),
        false => half,
    }
}

/// How a row shows a lease that was claimed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shown {
    /// With the owner that it was claimed from.
    Kept,
    /// Promised to us by that owner.
    Promised,
    /// Given up to us.
    Ours,
    Otherwise,
}

impl Shown {
    fn of(row: &LeaseRow, from: &WorkerId, me: &WorkerId) -> Self {
        let owner = row.owner.as_ref();
        match row.handing_over.as_ref() {
            None if owner == Some(from) => Shown::Kept,
            None if owner == Some(me) => Shown::Ours,
            Some(giver) if owner == Some(me) && giver == from => Shown::Promised,
            _ => Shown::Otherwise,
        }
    }
}

/// Takes what its owner gave up to us.
fn take_handed(cx: &mut Context, leases: &LeaseTable, key: &LeaseKey) {
    let Some(ix) = leases.find(key.as_str()) else {
        return;
    };
    let lease = leases.get(ix).filter(|lease| !lease.busy());
    let free = lease.is_some_and(|lease| lease.row().is_some_and(|row| leases.lineage().knows(row)));
    // What is more than we may have is left to expire.
    let room = !cx.asks()
        || cx.config().max_leases == 0
        || leases.shares(cx).balance().held() < cx.config().max_leases;
    if cx.wants_leases() && free && room {
        let why = leases.shares(cx).reason_to_take(ix);
        cx.request(Request::Take(ix, why));
    }
}
