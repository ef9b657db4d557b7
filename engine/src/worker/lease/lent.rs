//! What the processing of a shard borrows for a step.

use super::lane::Lane;
use super::ownership::Ownership;
use super::watch::Watch;
use crate::ids::LeaseKey;
use crate::output::EndReason;
use crate::time::Mono;
use crate::worker::context::Context;
use crate::worker::lease_table::LeaseTable;

/// The remaining parts of a held lease, and what all leases share.
pub(super) struct Lent<'a> {
    pub(super) own: &'a Ownership,
    pub(super) lane: &'a mut Lane,
    pub(super) watch: &'a mut Watch,
    pub(super) rows: &'a LeaseTable,
    pub(super) cx: &'a mut Context,
}

impl Lent<'_> {
    pub(super) fn now(&self) -> Mono {
        self.cx.now()
    }

    /// Whether we may act as the owner now.
    pub(super) fn believes(&self) -> bool {
        self.lane.believes(self.now())
    }

    /// Why this lease should be let go of, if at all.
    pub(super) fn exit(&self) -> Option<EndReason> {
        if self.lane.is_lost() {
            return Some(EndReason::LeaseLost);
        }
        if let Some(reason) = self.cx.leaves(self.own.stream()) {
            return Some(reason);
        }
        let hands_over = self.lane.next_owner().is_some() || !keeps(self.rows, self.own.key());
        hands_over.then_some(EndReason::HandedOver)
    }
}

/// Whether a lease is, by now, not the turn of another member.
fn keeps(rows: &LeaseTable, key: &LeaseKey) -> bool {
    let turns = rows.turns();
    turns.is_none_or(|turns| turns.has(key.as_str()) != Some(false))
}
