//! What table formats differ in beyond their spelling: a few independent choices, in any combination.
//!
//! The machines ask these policies, never for the format. A new format is a codec
//! ([`LeaseFormat`](crate::format::LeaseFormat)) and a choice of each policy.

use crate::time::{Span, Wall};
use serde::{Deserialize, Serialize};

/// The rules of this worker that follow from the table's format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct Policies {
    /// What our writes leave in a row as the evidence of life.
    pub life: Life,
    /// The source of a shard's parents and hash keys.
    pub lineage: Lineage,
    /// How a worker gets a lease of a live worker.
    pub steal: Steal,
    /// When the rows of finished shards are removed.
    pub finished: Finished,
    /// The worker for each lease.
    #[serde(skip_serializing_if = "Assign::is_count")]
    pub assign: Assign,
    /// The contents of a row beside the end of its shard.
    #[serde(skip_serializing_if = "AtEnd::is_alone")]
    pub at_end: AtEnd,
}

/// KCL's.
impl Default for Policies {
    fn default() -> Self {
        Self {
            life: Life::Counter,
            lineage: Lineage::Stored,
            steal: Steal::Ask,
            finished: Finished::WhenRead,
            assign: Assign::Count,
            at_end: AtEnd::Alone,
        }
    }
}

impl Policies {
    /// Whether these are the policies of KCL's table. Requests or steals of leases tell nothing of the table.
    pub(crate) fn are_kcls(&self) -> bool {
        let kcls = Self { steal: self.steal, ..Self::default() };
        *self == kcls
    }
}

/// The meaning of the number that guards a row. The number grows with every write of ours, whatever the meaning.
///
/// Every meaning leads to the same judgement of another worker's life: a worker lives if its row changes, on our own
/// clock. So no agreement of clocks is needed, although other programs may judge *us* by the number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Life {
    /// A count of writes.
    Counter,
    /// The time until which the lease is held, in nanoseconds since 1970 of the writer's clock.
    Deadline,
    /// The time of the write, in nanoseconds since 1970 of the writer's clock.
    Stamp,
}

impl Life {
    /// The number to write into a row with the present number `number`, at `now`, for a lease of this duration.
    pub fn next(self, number: u64, now: Wall, lease: Span) -> u64 {
        let after = number.saturating_add(1);
        // A millisecond has a million nanoseconds. The lowest bit is set, so no number of ours is a whole second; the
        // programs with times in this number write whole seconds.
        let stamp = |ms: i64| (ms.max(0) as u64).saturating_mul(1_000_000) | 1;
        match self {
            Life::Counter => after,
            Life::Deadline => after.max(stamp(now.0.saturating_add((lease.0 / 1_000) as i64))),
            Life::Stamp => after.max(stamp(now.0)),
        }
    }

    /// Whether other programs may act on the time told by our number.
    pub fn tells_time(self) -> bool {
        self != Life::Counter
    }
}

/// Where a shard's parents, children and hash range are known from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Lineage {
    /// Every row says.
    Stored,
    /// Rows may lack parents and hash keys, or a part of them: the list of shards completes them, and no lease is taken
    /// before.
    Listed,
}

/// How a worker gets a lease of a live worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Steal {
    /// By becoming its owner; the former owner finds out.
    Take,
    /// By a request in the row; the owner hands the lease over after its running batch.
    Claim,
    /// By a request in the row, where the row says that its owner hands over a requested lease. From any other owner,
    /// as with `Take`.
    Ask,
}

/// When the rows of finished shards are removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Finished {
    /// Once their children have begun.
    WhenRead,
    /// Once the stream has forgotten the shard: a worker that finds a listed shard without a row reads the shard from
    /// the beginning.
    WhenForgotten,
    /// Never. Here too, no worker has read a listed shard without a row.
    Never,
}

/// The worker for each lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Assign {
    /// A worker with fewer leases than its share: leases are counted by the owners named in their rows.
    Count,
    /// The member whose turn the shard is, in the order of names. Members say in a table of their own that they live.
    /// All members work out the same turns, and no member takes a lease from another member.
    Rank,
}

impl Assign {
    /// Whether leases are assigned by count.
    pub fn is_count(&self) -> bool {
        *self == Assign::Count
    }
}

/// The contents of a row beside the end of its shard.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum AtEnd {
    /// No further content: the end takes the place of the checkpoint.
    #[default]
    Alone,
    /// The last position, too. Programs that take a finished row go on after this position.
    Position,
}

impl AtEnd {
    /// Whether the end stands alone.
    pub fn is_alone(&self) -> bool {
        *self == AtEnd::Alone
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// The guard of every write relies on it.
        #[test]
        fn numbers_grow_whatever_the_clock_says(number in 0..u64::MAX, now: i64, lease in 0u64..1 << 40) {
            for life in [Life::Counter, Life::Deadline, Life::Stamp] {
                prop_assert!(life.next(number, Wall(now), Span(lease)) > number);
            }
        }
    }

    #[test]
    fn a_deadline_is_a_lease_after_now() {
        let (now, lease) = (Wall(1_700_000_000_000), Span::from_secs(10));
        assert_eq!(Life::Deadline.next(0, now, lease), 1_700_000_010_000_000_001);
        assert_eq!(Life::Stamp.next(0, now, lease), 1_700_000_000_000_000_001);
        assert_eq!(Life::Counter.next(41, now, lease), 42);
        let ahead = 1_800_000_000_000_000_000;
        assert_eq!(Life::Deadline.next(ahead, now, lease), ahead + 1);
    }
}
