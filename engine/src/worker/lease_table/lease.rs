//! A lease: its row as observed, and the note of this worker's action on the lease.

use super::note::Note;
use crate::ids::{LeaseKey, WorkerId};
use crate::row::LeaseRow;
use crate::self_assignment;
use crate::shard::HashRange;
use crate::time::{Mono, Span};
use crate::worker::backoff::Backoff;
use crate::worker::context::Context;
use crate::worker::stream_set::StreamIx;

/// A lease. The fields for every step lie in front: with many leases, a renewal costs the memory that it touches.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[repr(C)]
pub(in crate::worker) struct Lease {
    /// The time of the live entry in the timers; `NEVER` for none.
    pub(super) armed: Mono,
    /// This worker's action on the lease.
    pub(super) note: Option<Box<Note>>,
    pub(super) key: LeaseKey,
    pub(super) stream: StreamIx,
    /// When the first answer was received that showed the row's present counter and owner.
    pub(super) observed_at: Mono,
    /// When the last answer with the present counter and owner was requested. From `observed_at` to this moment, the
    /// row stood still, as far as is known. A scan may take longer than a lease lasts, and its first page tells nothing
    /// of later changes.
    pub(super) seen_at: Mono,
    /// When the row was first seen to be requested by another worker; `NEVER` while it is not.
    pub(super) requested_at: Mono,
    /// The number of the last scan that showed the row.
    pub(super) seen_by: u64,
    /// The newest row known; absent if only our own writes name this lease.
    pub(super) row: Option<LeaseRow>,
    /// When the row was first seen to be at the end of its shard; `NEVER` while it is not.
    pub(super) ended_at: Mono,
    /// The greatest counter that the row is known to have had.
    pub(super) highest: u64,
    /// How often in a row an older counter than the known one was read.
    pub(super) older_seen: u8,
    /// The row was seen to change under its present owner: that owner lived.
    pub(super) moved: bool,
    /// The last change of the row lies between two answers far apart: the change may be as old as the time between
    /// these answers.
    pub(super) unwatched: bool,
    /// An attempt to steal the lease was given up, and may have been applied: the lease's owner may believe in the
    /// lease beside us.
    pub(super) prior_owner_may_believe: bool,
    /// Our takes without effect: the row is still as the takes expect the row.
    pub(super) vain_takes: Backoff,
    /// The last listing showed that the checkpoint of the row is no place in the shard.
    pub(super) spoiled: bool,
}

impl Lease {
    pub(super) fn new(key: LeaseKey, stream: StreamIx) -> Self {
        Self {
            armed: Mono::NEVER,
            note: None,
            key,
            stream,
            observed_at: Mono(0),
            seen_at: Mono(0),
            requested_at: Mono::NEVER,
            seen_by: 0,
            row: None,
            ended_at: Mono::NEVER,
            highest: 0,
            older_seen: 0,
            moved: false,
            unwatched: false,
            prior_owner_may_believe: false,
            vain_takes: Backoff::default(),
            spoiled: false,
        }
    }

    pub(in crate::worker) fn key(&self) -> &LeaseKey {
        &self.key
    }

    /// The stream of its shard.
    pub(in crate::worker) fn stream(&self) -> StreamIx {
        self.stream
    }

    pub(in crate::worker) fn row(&self) -> Option<&LeaseRow> {
        self.row.as_ref()
    }

    /// The row, if the shard is unfinished by its row.
    pub(in crate::worker) fn unfinished_row(&self) -> Option<&LeaseRow> {
        self.row.as_ref().filter(|row| !row.checkpoint.is_end())
    }

    /// The lease's part of the hash space, as far as its row tells. `None`: the lease is not unfinished.
    pub(super) fn covers(&self) -> Option<Option<HashRange>> {
        Some(self.unfinished_row()?.range)
    }

    /// Whether the row says that the shard is unfinished.
    pub(in crate::worker) fn is_unfinished(&self) -> bool {
        self.unfinished_row().is_some()
    }

    /// The greatest counter that the row is known to have had.
    pub(in crate::worker) fn highest(&self) -> u64 {
        self.highest
    }

    /// When the row was first seen to be at the end of its shard; `NEVER` while it is not.
    pub(in crate::worker) fn ended_at(&self) -> Mono {
        self.ended_at
    }

    /// For how long the row is known to have stood still.
    pub(in crate::worker) fn idle(&self) -> Span {
        self.seen_at.since(self.observed_at)
    }

    /// For how long the row had stood still at that moment.
    pub(super) fn stood_still_at(&self, at: Mono) -> Span {
        at.since(self.observed_at)
    }

    /// Whether the row was seen to change under its present owner.
    pub(in crate::worker) fn has_moved(&self) -> bool {
        self.moved
    }

    /// Whether nothing tells when the row changed for the last time: this worker did not look for a while.
    pub(super) fn is_unwatched(&self) -> bool {
        self.unwatched
    }

    /// When the row was last seen to change, or first seen at all.
    pub(in crate::worker) fn observed_at(&self) -> Mono {
        self.observed_at
    }

    /// For how long the request for the lease has been known.
    pub(in crate::worker) fn requested_for(&self, now: Mono) -> Span {
        now.since(self.requested_at)
    }

    /// Whether the owner knows of the request: without that knowledge, a renewal would be refused.
    pub(in crate::worker) fn was_renewed_since_requested(&self) -> bool {
        self.moved && self.observed_at > self.requested_at
    }

    /// The scan with this number shows the lease, or the lease was written since that scan's begin. Returns whether
    /// this is new.
    pub(super) fn seen_in(&mut self, scan: u64) -> bool {
        std::mem::replace(&mut self.seen_by, scan) != scan
    }

    /// Takes note of whether the lease is requested from its owner.
    pub(super) fn note_requested(&mut self, requested: bool, now: Mono) {
        self.requested_at = match requested {
            true => self.requested_at.min(now),
            false => Mono::NEVER,
        };
    }

    /// Whether an abandoned attempt to steal the lease may have been applied.
    pub(in crate::worker) fn prior_owner_may_believe(&self) -> bool {
        self.prior_owner_may_believe
    }

    /// Whether the lease itself permits a take: its row is not spoiled, and enough time has passed since takes without effect.
    pub(in crate::worker) fn may_be_taken(&self, cx: &Context) -> bool {
        !self.is_spoiled() && cx.now() >= self.vain_takes.until()
    }

    /// Whether the lease is this worker's, without an action of this worker on the lease, and of a known stream.
    pub(in crate::worker) fn is_plainly_of(&self, cx: &Context, owner: &WorkerId) -> bool {
        let row = self.row().filter(|_| !self.busy() && cx.may_take(self.stream()));
        row.is_some_and(|row| self_assignment::is_plainly_of(row, owner))
    }

    /// Whether the last listing showed that the checkpoint of the row is no place in its shard.
    pub(in crate::worker) fn is_spoiled(&self) -> bool {
        self.spoiled
    }
}
