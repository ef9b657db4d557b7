//! Tables with a lease's holder and its deadline in each row: one codec for several formats with different names and
//! different spellings of a time.
//!
//! A row with an owner and another worker's claim is being handed over; a row with a claim alone waits for the
//! claimant, as if the claimant owned the row. A row without any former checkpoint is read from the trim horizon unless
//! the row says otherwise: the first position of its owner is unknown, and no record may be lost.
//!
//! The programs of these formats replace whole items, and so drop unknown attributes. Every attribute of ours must
//! therefore be dispensable, and is: lineage then comes from the list of shards.

mod decode;
mod encode;
#[cfg(test)]
mod tests;

use super::LeaseFormat;
use crate::policy::{Assign, AtEnd, Finished, Life, Lineage, Policies, Steal};
use crate::row::{Change, RowRead};
use crate::table::{AttributeValue, Condition, Item, ItemWrite};

/// The spelling of rows in a table of this kind.
#[derive(Clone, Copy, Debug)]
pub(super) struct Columns {
    /// The lease: S, hash key.
    pub(super) key: &'static str,
    /// The owner: S.
    pub(super) owner: &'static str,
    /// Until when: S.
    pub(super) timeout: &'static str,
    /// A sequence number or `SHARD_END`: S; absent or empty while nothing was processed.
    pub(super) checkpoint: &'static str,
    /// The first parent: S.
    pub(super) parent: &'static str,
    /// The claimant that asks the owner for the lease: S.
    pub(super) claim: &'static str,
    /// Ours: where to begin, while there is no checkpoint: S.
    pub(super) start: &'static str,
    /// Ours: while no checkpoint is stored, the moment from which the shard is read, in ms since 1970: N.
    pub(super) began: &'static str,
    /// Ours: the place within an aggregated record: N.
    pub(super) sub: &'static str,
    /// Ours: all parents: SS.
    pub(super) parents: &'static str,
    /// Ours: SS.
    pub(super) children: &'static str,
    /// Ours: decimal S.
    pub(super) range_start: &'static str,
    /// Ours: decimal S.
    pub(super) range_end: &'static str,
    /// Ours: the identity of the shard's stream: S.
    pub(super) stream: &'static str,
    /// Ours: N, the exact time until when, where the format's own is too coarse to guard a row.
    pub(super) exact: Option<&'static str>,
    /// The text of nanoseconds since 1970.
    pub(super) spell: fn(u64) -> String,
    /// The reverse of `spell`; absent if the text has another form.
    pub(super) read: fn(&str) -> Option<u64>,
    /// What a time looks like, for errors.
    pub(super) time: &'static str,
    /// Whether rows of ours without a checkpoint hold an empty text instead. Programs of the format take the empty text
    /// for a checkpoint.
    pub(super) says_none: bool,
}

const SHARD_END: &str = "SHARD_END";

impl LeaseFormat for Columns {
    fn key_name(&self) -> &'static str {
        self.key
    }

    fn policies(&self) -> Policies {
        Policies {
            life: Life::Deadline,
            lineage: Lineage::Listed,
            steal: Steal::Claim,
            finished: Finished::WhenForgotten,
            assign: Assign::Count,
            at_end: AtEnd::Alone,
        }
    }

    fn decode(&self, item: &Item) -> RowRead {
        decode::decode(self, item)
    }

    fn lacks(&self, item: &Item) -> Vec<&'static str> {
        decode::lacks(self, item)
    }

    fn encode(&self, change: &Change) -> ItemWrite {
        ItemWrite {
            key: self.key(change.key()),
            condition: encode::condition(self, change),
            action: encode::action(self, change),
        }
    }
}

fn absent(name: &'static str) -> Condition {
    Condition::Any(vec![
        Condition::NotExists(name.into()),
        Condition::Equals(name.into(), AttributeValue::Null),
    ])
}

/// Absent, or an empty text.
fn empty(name: &'static str) -> Condition {
    Condition::Any(vec![
        Condition::NotExists(name.into()),
        Condition::Equals(name.into(), AttributeValue::s("")),
        Condition::Equals(name.into(), AttributeValue::Null),
    ])
}
