//! What table formats differ in beyond their spelling: a few independent choices, in any combination.
//!
//! The machines ask these, never which format it is. A new format is a codec ([`LeaseFormat`](crate::format::LeaseFormat)) and a
//! choice of each.

use crate::time::{Span, Wall};
use serde::{Deserialize, Serialize};

/// How this worker's rules follow from the table's format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct Policies {
    /// What our writes leave in a row as the evidence of life.
    pub life: Life,
    /// Where it is known from which parents a shard came, and which keys it takes.
    pub lineage: Lineage,
    /// How a lease is had from a worker that lives.
    pub steal: Steal,
    /// When the rows of finished shards are removed.
    pub finished: Finished,
    /// Who is to have which lease.
    #[serde(skip_serializing_if = "Assign::is_count")]
    pub assign: Assign,
    /// What a row says beside the end of its shard.
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
    /// Whether they are those of KCL's table. Whether leases are asked for or stolen says nothing of the table.
    pub(crate) fn are_kcls(&self) -> bool {
        let kcls = Self { steal: self.steal, ..Self::default() };
        *self == kcls
    }
}

/// What the number that guards a row stands for. It grows with every write of ours, whatever it is.
///
/// Whether somebody else lives is judged by all of them alike: by whether the row changes, on our own clock. So no
/// agreement of clocks is needed for that, although other programs may judge *us* by what our number says.
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
    /// The number to write into a row that shows `number`, at `now`, for a lease of this duration.
    pub fn next(self, number: u64, now: Wall, lease: Span) -> u64 {
        let after = number.saturating_add(1);
        // A thousandth of a second has a million of them; the last one is set, so that no number of ours is of whole
        // seconds, as those of programs are that tell time so.
        let stamp = |ms: i64| (ms.max(0) as u64).saturating_mul(1_000_000) | 1;
        match self {
            Life::Counter => after,
            Life::Deadline => after.max(stamp(now.0.saturating_add((lease.0 / 1_000) as i64))),
            Life::Stamp => after.max(stamp(now.0)),
        }
    }

    /// Whether others may act on the time that our number tells.
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
    /// Rows may not say, or not all: what they lack is taken from the list of shards, and no lease is taken before.
    Listed,
}

/// How a lease is had from a worker that lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Steal {
    /// By becoming its owner; the former one finds out.
    Take,
    /// By asking for it in the row; the owner gives it up when it has finished what it does.
    Claim,
    /// By asking for it in the row, where the row says that its owner gives what it is asked for. From any other owner, as with
    /// `Take`.
    Ask,
}

/// When the rows of finished shards are removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Finished {
    /// Once their children have begun.
    WhenRead,
    /// Once the stream has forgotten the shard: a worker that finds a listed shard without a row reads it from the beginning.
    WhenForgotten,
    /// Never. Here too, a listed shard without a row is one that nobody has read.
    Never,
}

/// Who is to have which lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Assign {
    /// A worker that has fewer than its share: leases are counted by the owners that their rows name.
    Count,
    /// The member whose turn the shard is, in the order of names. Members say in a table of their own that they live. All of
    /// them work out the same turns, and none takes a lease from another.
    Rank,
}

impl Assign {
    /// Whether it is by count.
    pub fn is_count(&self) -> bool {
        *self == Assign::Count
    }
}

/// What a row says beside the end of its shard.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum AtEnd {
    /// Nothing: the end takes the place of the checkpoint.
    #[default]
    Alone,
    /// The last position, too. Programs that take a finished row go on after it.
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
