//! The table's note of this worker's action on a lease. The room of leases has the action itself, and tells the table
//! whenever the note may have changed.

use super::{Lease, LeaseTable};
use crate::ids::{LeaseIx, LeaseKey, WorkerId};
use crate::row::LeaseRow;
use crate::time::{Mono, Span};
use crate::worker::context::Context;

/// This worker's action on a lease.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Note {
    /// An attempt to become its owner: the owner and the counter in the row that the attempt expects.
    Taking { from: Option<WorkerId>, counter: u64 },
    /// Our ownership, from the take until the application let go of it. `doubted`: a row was shown that contradicts the
    /// note.
    Held { held: HeldNote, doubted: bool },
}

/// What the table knows of a held lease.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct HeldNote {
    counter: u64,
    settled: bool,
    valid_until: Mono,
    next_owner: Option<WorkerId>,
    lost: bool,
    awaits_listing: bool,
}

/// A held lease as it is now.
#[derive(Clone, Copy, Debug)]
pub(in crate::worker) struct HeldNow<'a> {
    counter: u64,
    settled: bool,
    valid_until: Mono,
    next_owner: Option<&'a WorkerId>,
    lost: bool,
    awaits_listing: bool,
}

impl<'a> HeldNow<'a> {
    /// A lease with this counter in its row, believed in until `valid_until`. `settled`: no write is without an answer.
    pub(in crate::worker) fn new(counter: u64, settled: bool, valid_until: Mono) -> Self {
        Self { counter, settled, valid_until, next_owner: None, lost: false, awaits_listing: false }
    }

    /// The next owner in a hand-over.
    pub(in crate::worker) fn with_next_owner(self, next_owner: Option<&'a WorkerId>) -> Self {
        Self { next_owner, ..self }
    }

    /// Whether the lease is not ours any more, and only its application is left to be closed.
    pub(in crate::worker) fn with_lost(self, lost: bool) -> Self {
        Self { lost, ..self }
    }

    /// Whether a listing is to show the fate of the shard, or of a shard that this shard waits for.
    pub(in crate::worker) fn with_awaited_listing(self, awaits_listing: bool) -> Self {
        Self { awaits_listing, ..self }
    }
}

impl HeldNote {
    fn new(now: HeldNow<'_>) -> Self {
        let HeldNow { counter, settled, valid_until, next_owner, lost, awaits_listing } = now;
        Self { counter, settled, valid_until, next_owner: next_owner.cloned(), lost, awaits_listing }
    }

    fn update(&mut self, now: HeldNow<'_>) {
        (self.counter, self.settled, self.valid_until) = (now.counter, now.settled, now.valid_until);
        (self.lost, self.awaits_listing) = (now.lost, now.awaits_listing);
        if self.next_owner.as_ref() != now.next_owner {
            self.next_owner = now.next_owner.cloned();
        }
    }

    /// Whether a row contradicts the note. The guard of our next write settles the contradiction.
    fn is_contradicted_by(&self, me: &WorkerId, row: &LeaseRow) -> bool {
        let ahead = row.counter > self.counter && self.settled;
        let handed =
            row.counter == self.counter && row.handing_over.as_ref() == Some(me) && self.next_owner.is_none();
        ahead || handed
    }
}

impl Lease {
    fn held(&self) -> Option<&HeldNote> {
        match self.note.as_deref() {
            Some(Note::Held { held, .. }) => Some(held),
            _ => None,
        }
    }

    /// Whether this worker holds or takes the lease.
    pub(in crate::worker) fn busy(&self) -> bool {
        self.note.is_some()
    }

    /// Whether we own it, as far as we know.
    pub(in crate::worker) fn is_ours(&self) -> bool {
        self.held().is_some_and(|held| !held.lost)
    }

    /// Whether this worker may act as the owner now. `None`: the lease is not held.
    pub(in crate::worker) fn believes(&self, now: Mono) -> Option<bool> {
        self.held().map(|held| !held.lost && now < held.valid_until)
    }

    /// Whether the lease is held, and a listing is to show the fate of its shard, or of a shard that this shard waits
    /// for.
    pub(in crate::worker) fn awaits_listing(&self) -> bool {
        self.held().is_some_and(|held| held.awaits_listing)
    }

    /// The next owner of a lease of ours that is being handed over.
    pub(in crate::worker) fn next_owner(&self) -> Option<&WorkerId> {
        self.held()?.next_owner.as_ref()
    }

    /// Whether an acquisition of ours can still succeed: the row was not seen to be a third worker's since.
    pub(in crate::worker) fn may_come_to(&self, me: &WorkerId) -> bool {
        let Some(Note::Taking { from, .. }) = self.note.as_deref() else {
            // This worker is not taking the lease.
            return false;
        };
        let row = self.row();
        let owner = row.and_then(|row| row.owner.as_ref());
        // A row that we are to hand over shows that our write was applied.
        let ours = owner == Some(me) || row.and_then(|row| row.handing_over.as_ref()) == Some(me);
        ours || owner == from.as_ref()
    }

    /// The owner that has renewed the row since our acquisition of the lease was decided on.
    pub(in crate::worker) fn renewed_by(&self) -> Option<&WorkerId> {
        let Some(Note::Taking { counter, .. }) = self.note.as_deref() else {
            // This worker is not taking the lease.
            return None;
        };
        let row = self.row()?;
        let owner = row.actual_owner()?;
        // The guard of our writes cannot hold any more.
        (*counter != row.counter).then_some(owner)
    }

    /// A row of a lease of ours was shown. Whether the row contradicts the note.
    pub(super) fn doubts(&mut self, me: &WorkerId, row: &LeaseRow) -> bool {
        let Some(Note::Held { held, doubted }) = self.note.as_deref_mut() else {
            debug_assert!(false, "a lease of ours is held");
            return false;
        };
        let contradicted = held.is_contradicted_by(me, row);
        *doubted |= contradicted;
        contradicted
    }
}

impl LeaseTable {
    /// This worker begins to take a lease: the row is expected to have this owner and counter. `comes_to_us`: the row
    /// named us as the owner already, and the lease did not count towards our share before.
    pub(in crate::worker) fn begin_taking(
        &mut self, ix: LeaseIx, from: Option<WorkerId>, counter: u64, comes_to_us: bool,
    ) {
        let Some(lease) = self.get_mut(ix) else {
            debug_assert!(false, "only a known lease is taken");
            return;
        };
        debug_assert!(!lease.busy(), "one acquisition at a time, and none of a held lease");
        lease.note = Some(Box::new(Note::Taking { from, counter }));
        self.busy += 1;
        self.news += u64::from(comes_to_us);
    }

    /// Counts a take without effect: the row is still as the take expects the row. Returns the lease, the pause before the
    /// next take, and the number of such takes since the row last changed.
    pub(in crate::worker) fn count_vain_take(
        &mut self, cx: &Context, ix: LeaseIx,
    ) -> Option<(LeaseKey, Span, u32)> {
        let lease = self.get_mut(ix)?;
        let pause = lease.vain_takes.failed(cx, "refused take", lease.key.as_str());
        Some((lease.key.clone(), pause, lease.vain_takes.failures()))
    }

    /// A held lease may have changed, or is held from now on, after its acquisition.
    pub(in crate::worker) fn note_held(&mut self, ix: LeaseIx, now: HeldNow<'_>) {
        // A held lease counts as touched from the begin of its step.
        let lease = self.slots.get_mut(ix.index()).and_then(Option::as_mut);
        if let Some(Note::Held { held, .. }) = lease.and_then(|lease| lease.note.as_deref_mut()) {
            return held.update(now);
        }
        let Some(lease) = self.get_mut(ix).filter(|lease| lease.busy()) else {
            debug_assert!(false, "a lease is held after its acquisition");
            return;
        };
        lease.prior_owner_may_believe = false;
        lease.vain_takes.succeeded();
        lease.note = Some(Box::new(Note::Held { held: HeldNote::new(now), doubted: false }));
    }

    /// A step of a held lease begins. Whether a row was shown since the last one that contradicts the note.
    pub(in crate::worker) fn take_doubt(&mut self, ix: LeaseIx) -> bool {
        match self.get_mut(ix).and_then(|lease| lease.note.as_deref_mut()) {
            Some(Note::Held { doubted, .. }) => std::mem::take(doubted),
            _ => false,
        }
    }

    /// This worker's action on a lease is over: an attempt is given up, or a held lease let go of. `steals`: the attempt
    /// was to steal the lease, and may have been applied all the same.
    pub(in crate::worker) fn let_go(&mut self, ix: LeaseIx, steals: bool) {
        let Some(lease) = self.get_mut(ix) else {
            debug_assert!(false, "only a known lease is let go of");
            return;
        };
        let note = lease.note.take();
        debug_assert!(note.is_some(), "only what is under way is over");
        lease.prior_owner_may_believe |= steals;
        debug_assert!(self.busy > 0, "what is under way was counted");
        self.busy -= 1;
        self.news += u64::from(matches!(note.as_deref(), Some(Note::Held { .. })));
    }
}
