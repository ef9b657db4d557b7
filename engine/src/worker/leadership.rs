//! Which worker acts first where one is enough: the order of leaders.

use super::context::Context;
use super::lease_table::LeaseTable;
use crate::leader;
use crate::notice::Notice;

#[cfg(test)]
mod tests;

/// The longest that a worker of lower rank waits for the leader, in multiples of the leader's own patience.
const MAX_DEPUTY: u32 = 3;

/// The room.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Leadership {
    /// Our place in the order of leaders. `None`: we own no lease.
    rank: Option<u32>,
    workers: u32,
    told: bool,
}

impl Leadership {
    /// Works the order of leaders out anew, after a whole scan. The order is KCL 2.x's, a fixed shuffle of all owners
    /// named in the table, or the order of the members.
    pub(super) fn elect(&mut self, cx: &mut Context, leases: &LeaseTable) {
        let (rank, workers) = match leases.turns() {
            Some(turns) => (Some(turns.rank()), turns.count()),
            None => {
                let owners = leases.owners().names();
                (leader::rank(&owners, cx.me()), owners.len() as u32)
            }
        };
        debug_assert!(rank.is_none_or(|rank| rank < workers), "a rank is a place among the workers");
        if rank != self.rank || workers != self.workers || !self.told {
            (self.rank, self.workers, self.told) = (rank, workers, true);
            cx.notify(Notice::Rank { rank, workers });
        }
    }

    /// How much longer than the leader this worker waits. The lower ranks act too, later: otherwise a leader without
    /// permission to list shards would leave a hole open for as long as the leader keeps its leases.
    pub(super) fn deputy(&self) -> u32 {
        if self.workers == 0 { 0 } else { self.rank.unwrap_or(MAX_DEPUTY).min(MAX_DEPUTY) }
    }
}
