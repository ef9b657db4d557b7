//! The rows of its checkpoints, as oracles read them.

use crate::originals::sdk::key_only;
use leasehold_engine::dialect::Dialect;
use leasehold_engine::ids::{LeaseKey, ShardId, WorkerId};
use leasehold_engine::policy::Policies;
use leasehold_engine::position::{Checkpoint, Position};
use leasehold_engine::row::{Change, LeaseRow, RowRead};
use leasehold_engine::table::{Action, Condition, Item, ItemWrite};

pub(super) const KEY: &str = "Shard";
pub(super) const OWNER: &str = "OwnerID";
pub(super) const SEQUENCE: &str = "SequenceNumber";
pub(super) const FINISHED: &str = "Finished";

pub(super) fn key(shard: &ShardId) -> Item {
    key_only(KEY, shard.as_str())
}

/// Reads the rows; writes none.
#[derive(Debug)]
pub(crate) struct Rows;

/// The one there is.
pub(crate) static ROWS: Rows = Rows;

impl Dialect for Rows {
    fn key_name(&self) -> &'static str {
        KEY
    }

    fn policies(&self) -> Policies {
        Policies::default()
    }

    fn key(&self, key: &LeaseKey) -> Item {
        key_only(KEY, key.as_str())
    }

    fn decode(&self, item: &Item) -> RowRead {
        let key = LeaseKey::from(super::text(item, KEY).unwrap_or_default());
        let checkpoint = match super::text(item, SEQUENCE) {
            _ if super::number(item, FINISHED) > 0 => Some(Checkpoint::ShardEnd),
            None | Some("") => Some(Checkpoint::TrimHorizon),
            Some("LATEST") => Some(Checkpoint::Latest),
            Some(sequence) => sequence
                .parse()
                .ok()
                .map(|sequence| Checkpoint::At(Position::of(sequence))),
        };
        match checkpoint {
            Some(checkpoint) => RowRead::Lease(LeaseRow {
                owner: super::text(item, OWNER).map(WorkerId::from),
                counter: super::number(item, super::UPDATED),
                ..LeaseRow::new(key, checkpoint)
            }),
            None => RowRead::Unreadable {
                key,
                detail: format!("`{SEQUENCE}`: expected a sequence number"),
            },
        }
    }

    /// A write that is never done: the key is always there and never absent.
    fn encode(&self, change: &Change) -> ItemWrite {
        let never = vec![Condition::Exists(KEY.into()), Condition::NotExists(KEY.into())];
        ItemWrite {
            key: self.key(change.key()),
            condition: Condition::All(never),
            action: Action::Delete,
        }
    }
}
