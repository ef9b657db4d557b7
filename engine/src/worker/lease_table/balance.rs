//! How the leases lie, as far as scans have shown them: the counting itself is in [`self_assignment`](crate::self_assignment).

use super::plain::{PlainLeases, not_among};
use super::{Lease, LeaseTable};
use crate::ids::LeaseIx;
use crate::notice::TakeReason;
use crate::policy::Life;
use crate::row::{HandsOver, LeaseRow};
use crate::self_assignment::{Balance, Counting, Ours, Standing};
use crate::time::Span;
use crate::worker::context::Context;

/// How long the row of a lease must stand still before its owner counts as dead.
///
/// A lease handed over has no owner until the next owner takes it. The next owner looks four times a second at first,
/// and later in each quick scan. If the next owner does not take the lease within a moment, that worker has died or
/// stopped since its request. No two workers believe in a lease taken then: of two takes, the service refuses one.
fn lasts(cx: &Context, row: &LeaseRow) -> Span {
    let config = cx.config();
    match row.hands_over {
        HandsOver::Later => (ACCEPTING + config.table_timeout.per(4)).min(config.lease_duration),
        HandsOver::No | HandsOver::Yes => config.lease_duration,
    }
}

/// A worker accepts a lease handed over within this time, plus the time of its requests.
const ACCEPTING: Span = Span::from_millis(500);

/// The counting of leases, by all that was shown to this worker.
#[derive(Clone, Copy, Debug)]
pub(in crate::worker) struct Shares<'a> {
    leases: &'a LeaseTable,
    cx: &'a Context,
}

impl<'a> Shares<'a> {
    pub(super) fn of(leases: &'a LeaseTable, cx: &'a Context) -> Self {
        Self { leases, cx }
    }

    /// Counts which worker has how many leases. A lease counts as expired when its row stood still for a lease
    /// duration: from the arrival of the first answer with the present row to the request of the last.
    pub(in crate::worker) fn balance(self) -> Balance {
        let balance = self.count_beside(&self.leases.plain.0);
        debug_assert!(
            self.leases.len() > 64 || balance == self.balance_anew(),
            "plain leases are counted as all leases are"
        );
        balance
    }

    /// The same by a look at every lease.
    pub(super) fn balance_anew(self) -> Balance {
        self.count_beside(&PlainLeases::default())
    }

    /// Who counts, and how.
    pub(in crate::worker) fn counting(self) -> Counting<'a> {
        let cx = self.cx;
        Counting {
            me: cx.me(),
            hands_over: cx.hands_over() || self.leases.kcl3().is_led(),
            max_leases: cx.config().max_leases,
        }
    }

    /// Looks at all leases except the known plain leases.
    fn count_beside(self, plain: &PlainLeases) -> Balance {
        let (cx, counting) = (self.cx, self.counting());
        let counts = plain.counts();
        let counts = counts.map(|(owner, count)| (owner, count.leases, count.silent));
        let mut balance = Balance::begin(&counting, counts);
        for (ix, lease) in not_among(self.leases, plain) {
            let counts =
                cx.streams().reads(lease.stream()) || lease.is_ours() || lease.may_come_to(counting.me);
            if let Some(row) = lease.unfinished_row().filter(|_| counts) {
                self.weigh(&counting, &mut balance, ix, lease, row);
            }
        }
        if balance.has_other_programs() {
            let plain_speakers = plain.counts().filter(|(_, count)| count.silent < count.leases);
            balance.hear(plain_speakers.map(|(owner, _)| owner));
            let rows = not_among(self.leases, plain).filter_map(|(_, lease)| lease.unfinished_row());
            let speaking = rows.filter(|row| !row.hands_over.is_no());
            balance.hear(speaking.filter_map(LeaseRow::actual_owner));
        }
        balance.settle(&counting, |ix| self.leases.get(*ix).map(Lease::key));
        balance
    }

    fn weigh(
        self, counting: &Counting<'_>, balance: &mut Balance, ix: LeaseIx, lease: &Lease, row: &LeaseRow,
    ) {
        let (me, cx) = (counting.me, self.cx);
        let ours = lease.is_ours() || lease.may_come_to(me);
        let expired =
            lease.idle() >= lasts(cx, row) || self.was_left(lease, row) || self.is_of_former_life(lease, row);
        let stood_still = lease.stood_still_at(self.leases.scans().before_began());
        let standing = Standing {
            expired,
            overdue: expired && stood_still >= cx.config().lease_duration,
            young: lease.requested_for(cx.now()) < cx.config().hand_over_timeout,
            ours: ours.then(|| Ours { next: lease.next_owner(), renewed_by: lease.renewed_by() }),
        };
        // A lease we are still letting go of cannot be taken again before that is over.
        balance.count(counting, ix, row, &standing, || {
            let lives = row.actual_owner().is_some_and(|owner| owner != me) && cx.spares_owners();
            !lives
                && !lease.busy()
                && lease.may_be_taken(cx)
                && self.leases.lineage().knows(row)
                && cx.may_take(lease.stream())
        });
    }

    /// Whether a leader assigned a lease to a worker that left before it could take the lease.
    pub(in crate::worker) fn was_left(self, lease: &Lease, row: &LeaseRow) -> bool {
        let owner = row.owner.as_ref().filter(|_| row.handing_over.is_none());
        let waits = self.leases.kcl3().is_led() && !lease.has_moved() && lease.idle() >= ACCEPTING;
        waits && row.hands_over.is_no() && owner.is_some_and(|owner| self.leases.kcl3().has_left(owner))
    }

    /// Whether a former process of ours had the lease when we started, and nothing has changed the row since. A process that has saved no
    /// checkpoint since it took the lease may have stolen the lease a moment ago: the owner before may believe in the lease.
    fn is_of_former_life(self, lease: &Lease, row: &LeaseRow) -> bool {
        let tells_takes = self.cx.config().policies.life == Life::Counter;
        if !tells_takes || row.switches > 0 {
            return false;
        }
        let owner = row.actual_owner().filter(|owner| self.cx.is_former_life(owner));
        owner.is_some() && lease.observed_at() <= self.leases.scans().first_ended()
    }

    /// Whether our share has room for so many more leases, by all that was shown to us.
    pub(in crate::worker) fn has_room(self, more: u32) -> bool {
        let balance = self.balance();
        balance.of(self.cx.me()) + more <= balance.target()
    }

    /// Why a lease that can be taken is taken.
    pub(in crate::worker) fn reason_to_take(self, ix: LeaseIx) -> TakeReason {
        let (cx, me, lease) = (self.cx, self.cx.me(), self.leases.get(ix));
        let row = lease.and_then(Lease::row);
        let handed_over = row.is_some_and(|row| row.hands_over == HandsOver::Later);
        match row.and_then(LeaseRow::actual_owner) {
            None => TakeReason::Unowned,
            Some(owner) if owner == me && handed_over => TakeReason::Given,
            Some(owner) if owner == me => TakeReason::Ours,
            Some(owner) => {
                let (owner, idle) = (owner.clone(), lease.map_or(Span::ZERO, Lease::idle));
                let lasted = idle >= cx.config().lease_duration;
                match (handed_over, lasted || !cx.is_former_life(&owner)) {
                    (true, _) => TakeReason::LeftLying { owner, idle },
                    (false, true) => TakeReason::Expired { owner, idle },
                    (false, false) => TakeReason::FormerLife { owner },
                }
            }
        }
    }
}
