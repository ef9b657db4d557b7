//! The tables of kinsumer.
//!
//! `<application>_checkpoints`, one row for each shard:
//!
//! | attribute | type | what it says |
//! |---|---|---|
//! | `Shard` | S, hash key | the lease |
//! | `OwnerID`, `OwnerName` | S | the owner; absent, NULL or empty: nobody |
//! | `LastUpdate` | N | when it was last written, in nanoseconds since 1970: what guards the row |
//! | `SequenceNumber` | S | how far it was read; NULL or empty: from the trim horizon; `LATEST`: from the tip |
//! | `Finished` | N | when it was read to its end; absent or NULL: it was not |
//! | `LastUpdateRFC`, `FinishedRFC` | S | the same times for people, never read |
//!
//! Programs of kinsumer replace whole items, and so drop unknown attributes; attributes of ours begin with `Leasehold`.
//! Rows are never removed. The two tables beside this table are in `side`.
//!
//! Until the list of shards lacks a finished shard, its programs take the row of the shard like any other, and read on after
//! `SequenceNumber`, whatever `Finished` says. So the last number stands beside every end; `LATEST` where no number is known, since nothing
//! follows on the tip of a closed shard.

mod rows;
mod side;
#[cfg(test)]
mod tests;

use super::{LeaseFormat, Membership};
use crate::policy::{Assign, AtEnd, Finished, Life, Lineage, Policies, Steal};
use crate::row::{Change, RowRead};
use crate::table::{Item, ItemWrite};

/// The tables of kinsumer.
#[derive(Clone, Copy, Debug, Default)]
pub struct Kinsumer;

impl LeaseFormat for Kinsumer {
    fn key_name(&self) -> &'static str {
        rows::KEY
    }

    fn policies(&self) -> Policies {
        Policies {
            life: Life::Stamp,
            lineage: Lineage::Listed,
            // No worker steals where leases are assigned by rank.
            steal: Steal::Take,
            finished: Finished::Never,
            assign: Assign::Rank,
            at_end: AtEnd::Position,
        }
    }

    fn decode(&self, item: &Item) -> RowRead {
        rows::decode(item)
    }

    fn lacks(&self, item: &Item) -> Vec<&'static str> {
        rows::lacks(item)
    }

    fn encode(&self, change: &Change) -> ItemWrite {
        ItemWrite {
            key: self.key(change.key()),
            condition: rows::condition(change),
            action: rows::action(change),
        }
    }

    fn membership(&self) -> Option<&dyn Membership> {
        Some(self)
    }
}
