//! Watching a held lease: noticing that it does not move, and saying how much is read of its shard.
//!
//! A shard that is owned, behind and not moving is a failure easily overlooked: the lease is renewed, and no error is
//! logged twice. So every held lease keeps the time since records were last processed, or since no record was left to
//! process. When that time is long, a notice names the reason, and repeats whenever the time has doubled.

mod flow;
mod movement;

use super::ownership::Ownership;
use crate::input::Fetched;
use crate::notice::{Notice, Stall};
use crate::time::{Mono, Span};
use crate::worker::context::Context;
use crate::worker::lease_table::LeaseTable;
use flow::Flow;
use movement::Movement;

/// What is noticed of a held lease, and told.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Watch {
    /// When it last moved.
    movement: Movement,
    /// How much was read.
    flow: Flow,
}

impl Watch {
    pub(super) fn new(now: Mono) -> Self {
        Self { movement: Movement::new(now), flow: Flow::new(now) }
    }

    /// Records were processed, or the shard went on to its next stage.
    pub(super) fn moved(&mut self, now: Mono) {
        self.movement.moved(now);
    }

    /// Takes note of the answer of a read, while `waiting` batches wait.
    pub(super) fn fetched(&mut self, answer: &Fetched, waiting: usize, now: Mono) {
        self.movement.fetched(answer, waiting, now);
    }

    /// So many bytes more were read.
    pub(super) fn read(&mut self, bytes: u64) {
        self.flow.read(bytes);
    }

    /// The standstill so far was wanted, and does not count.
    pub(super) fn count_from(&mut self, now: Mono) {
        self.movement.count_from(now);
    }

    /// Whether a notice reported a standstill, and the lease has not moved since.
    pub(super) fn is_stalled(&self) -> bool {
        self.movement.is_stalled()
    }

    /// Whether the last answer had arrived at the tip of the shard.
    pub(super) fn is_at_tip(&self) -> bool {
        self.movement.is_at_tip()
    }

    /// When the lease counts as stalled if nothing moves until then. A standstill shorter than `least` is ordinary.
    pub(super) fn stall_at(&self, cx: &Context, least: Span) -> Mono {
        let after = cx.config().stall_after;
        if after == Span::ZERO || cx.phase().stopping().is_some() {
            return Mono::NEVER;
        }
        self.movement.due(after.max(least))
    }

    /// Reports that the lease moves again after a reported standstill.
    pub(super) fn tell_moving(&mut self, own: &Ownership, cx: &mut Context) {
        if let Some(after) = self.movement.take_back() {
            let lease = own.lease();
            cx.notify(Notice::Moving { lease, after });
        }
    }

    /// Reports the lease's standstill, with the reason.
    pub(super) fn tell_stalled(&mut self, own: &Ownership, cx: &mut Context, why: Stall) {
        let (lease, idle) = (own.lease(), self.movement.told(cx.now()));
        cx.notify(Notice::Stalled { lease, idle, why, said: None });
    }

    /// Writes into the row how much is read of the shard, as often as this worker reports.
    pub(super) fn tell_flow(&mut self, own: &Ownership, rows: &LeaseTable, cx: &mut Context) {
        self.flow.step(own, rows, cx);
    }
}
