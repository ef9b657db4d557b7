//! The questions and the news to the lane from the remaining parts of a held lease.

use super::Lane;
use super::processed::Processed;
use crate::ids::WorkerId;
use crate::time::{Mono, Span, Wall};
use crate::worker::context::Context;
use crate::worker::lease_table::HeldNow;

impl Lane {
    /// Whether the lease is not ours any more. Then only the application is left to be closed.
    pub(in crate::worker::lease) fn is_lost(&self) -> bool {
        self.lost
    }

    /// Whether the belief ran out, and was not renewed since.
    pub(in crate::worker::lease) fn is_fenced(&self) -> bool {
        self.fenced
    }

    /// We believe before this moment.
    pub(in crate::worker::lease) fn valid_until(&self) -> Mono {
        self.valid_until
    }

    /// Whether a write, or a read of the row, has no answer yet.
    pub(in crate::worker::lease) fn is_in_flight(&self) -> bool {
        self.flight.is_some()
    }

    /// The counter of the last write known to be durable.
    pub(in crate::worker::lease) fn counter(&self) -> u64 {
        self.counter
    }

    /// The next owner in a hand-over.
    pub(in crate::worker::lease) fn next_owner(&self) -> Option<&WorkerId> {
        self.next_owner.as_ref()
    }

    /// By when this worker lets go of a lease with a next owner. After that time, the next owner steals the lease, and
    /// leaves it idle until this worker must know of the steal.
    pub(in crate::worker::lease) fn hands_over_by(&self, cx: &Context) -> Mono {
        match self.next_owner {
            Some(_) => self.handing_since + cx.config().hand_over_timeout,
            None => Mono::NEVER,
        }
    }

    /// The progress of the shard.
    pub(in crate::worker::lease) fn processed(&self) -> &Processed {
        &self.processed
    }

    pub(in crate::worker::lease) fn processed_mut(&mut self) -> &mut Processed {
        &mut self.processed
    }

    /// Where we begin, if the shard is read from a moment.
    pub(in crate::worker::lease) fn begins(&self) -> Option<Wall> {
        self.begins
    }

    /// The service has refused later moments: we begin at this moment. The next write tells the row.
    pub(in crate::worker::lease) fn begin_at(&mut self, earlier: Option<Wall>) {
        self.begins = earlier.or(self.begins);
    }

    /// When the belief is to be looked at, or renewed, if nothing else happens.
    pub(in crate::worker::lease) fn belief_wake_at(&self, cx: &Context) -> Mono {
        if self.lost || self.fenced {
            return Mono::NEVER;
        }
        match self.flight {
            // When the next renewal is due once this write is answered: nothing needs to be armed anew then.
            Some(_) => self.valid_until.min(cx.now() + cx.config().renew_interval),
            None => self.valid_until,
        }
    }

    /// Writes that failed in a row.
    pub(in crate::worker::lease) fn failures(&self) -> u32 {
        self.backoff.failures()
    }

    /// Whether the lease may have been given up by a write without an answer.
    pub(in crate::worker::lease) fn is_giving_up(&self) -> bool {
        let under_way = self.flight.is_some_and(|(_, kind)| kind.gives_up());
        under_way || self.unresolved.is_some_and(|unresolved| unresolved.release)
    }

    /// What the lease table is told of the lease. `awaits_listing`: a listing is to show the fate of the shard.
    pub(in crate::worker::lease) fn note(&self, awaits_listing: bool) -> HeldNow<'_> {
        let settled = self.flight.is_none() && self.unresolved.is_none();
        HeldNow::new(self.counter, settled, self.valid_until)
            .with_next_owner(self.next_owner.as_ref())
            .with_lost(self.lost)
            .with_awaited_listing(awaits_listing)
    }

    /// The next write is made at once.
    pub(in crate::worker::lease) fn renew_now(&mut self, now: Mono) {
        self.renew_at = now;
    }

    /// The monotonic clock did not count so much time.
    pub(in crate::worker::lease) fn missed(&mut self, by: Span) {
        self.valid_until = self.valid_until - by;
        self.renew_at = self.renew_at - by;
        if let Some(unresolved) = &mut self.unresolved {
            unresolved.since = unresolved.since - by;
        }
    }

    /// The ownership is over, and nothing more is written. Returns a counter that a write of unknown outcome may have
    /// left in the row.
    pub(in crate::worker::lease) fn end(&mut self, now: Mono) -> Option<u64> {
        debug_assert!(!self.lost, "an ownership ends once");
        debug_assert!(self.flight.is_none(), "it ends with an answer");
        self.lost = true;
        self.valid_until = self.valid_until.min(now);
        self.unresolved.take().map(|_| self.next)
    }
}
