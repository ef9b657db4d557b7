//! Tables whose rows say who holds a lease and until when: one codec for several, which differ in names and in how they
//! spell a time.
//!
//! A row with an owner and a claim of somebody else is one that is being handed over; a row with a claim alone waits for
//! the claimant, as if it owned it. A row that never had a checkpoint is read from the trim horizon unless it says
//! otherwise: nobody can tell where its owner began, and nothing may be lost.
//!
//! The programs that own these formats replace whole items, and so drop what they do not know. Whatever is ours alone
//! must therefore be missable, and is: lineage comes from the list of shards then.

mod decode;
mod encode;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod vectors;

use super::LeaseFormat;
use crate::ids::LeaseKey;
use crate::policy::{Assign, AtEnd, Finished, Life, Lineage, Policies, Steal};
use crate::row::{Change, RowRead};
use crate::table::{AttributeValue, Condition, Item, ItemWrite};

/// How such a table spells its rows.
#[derive(Clone, Copy, Debug)]
pub(super) struct Columns {
    /// The lease: S, hash key.
    pub(super) key: &'static str,
    /// Who holds it: S.
    pub(super) owner: &'static str,
    /// Until when: S.
    pub(super) timeout: &'static str,
    /// A sequence number or `SHARD_END`: S; absent or empty while nothing was processed.
    pub(super) checkpoint: &'static str,
    /// The first parent: S.
    pub(super) parent: &'static str,
    /// Who asks the owner to give it up: S.
    pub(super) claim: &'static str,
    /// Ours: where to begin, while there is no checkpoint: S.
    pub(super) start: &'static str,
    /// Ours: while there is no checkpoint, the moment from which the shard is read, in ms since 1970: N.
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
    /// Ours: the identity of the stream that the shard is of: S.
    pub(super) stream: &'static str,
    /// Ours: N, the exact time until when, where the format's own is too coarse to guard a row.
    pub(super) exact: Option<&'static str>,
    /// The text of nanoseconds since 1970.
    pub(super) spell: fn(u64) -> String,
    /// The other way round; absent if the text is not spelled so.
    pub(super) read: fn(&str) -> Option<u64>,
    /// What a time looks like, for errors.
    pub(super) time: &'static str,
    /// Whether rows of ours without a checkpoint have an empty one, which is a checkpoint to its programs, and stands for none.
    pub(super) says_none: bool,
}

const SHARD_END: &str = "SHARD_END";

/// What the names of all shards begin with. These tables have no kinds of rows, so this tells those of other people.
const SHARD_PREFIX: &str = "shardId-";

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

    fn key(&self, key: &LeaseKey) -> Item {
        Item::from([(self.key.into(), AttributeValue::s(key.clone()))])
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

/// The attribute, unless it is NULL: kcl-rb and boto3 write that for what is not there.
fn get<'a>(item: &'a Item, name: &str) -> Option<&'a AttributeValue> {
    item.get(name).filter(|value| **value != AttributeValue::Null)
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
