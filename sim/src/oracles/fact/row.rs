//! What a lease row says, as far as oracles care.

use super::{LifeNo, Verb};
use leasehold_engine::position::Checkpoint;

/// Which stream a row names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Whose {
    /// None, or none that can be read; or there is no row.
    Nobody,
    /// The one that is read.
    This,
    /// Another one.
    Another,
}

/// Who a row names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Owner {
    /// A life of one of our workers.
    Life(LifeNo),
    /// Somebody else.
    Stranger,
}

/// A lease row, as far as oracles care.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Row {
    /// Its owner; the old one while it is being handed over.
    pub owner: Option<Owner>,
    /// Who is to own it next, while it is being handed over.
    pub next: Option<Owner>,
    /// Its counter.
    pub counter: u64,
    /// Its checkpoint.
    pub checkpoint: Mark,
}

/// A checkpoint with its record's place in the shard instead of the sequence number: 1 is the first record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Mark {
    /// Nothing yet, from a time on.
    AtTimestamp,
    /// Nothing yet, from the oldest on.
    TrimHorizon,
    /// Nothing yet, from now on.
    Latest,
    /// Up to and including this record.
    At(u64),
    /// A position that no record of this shard has.
    Nowhere,
    /// Everything.
    End,
}

impl Mark {
    /// Translates a checkpoint, given the translation of positions.
    pub fn of(
        checkpoint: Checkpoint, record: impl FnOnce(leasehold_engine::position::Position) -> Option<u64>,
    ) -> Self {
        match checkpoint {
            Checkpoint::AtTimestamp => Mark::AtTimestamp,
            Checkpoint::TrimHorizon => Mark::TrimHorizon,
            Checkpoint::Latest => Mark::Latest,
            Checkpoint::At(position) => record(position).map_or(Mark::Nowhere, Mark::At),
            Checkpoint::ShardEnd => Mark::End,
        }
    }

    /// Whether nothing has been processed yet.
    pub fn is_initial(self) -> bool {
        matches!(self, Mark::AtTimestamp | Mark::TrimHorizon | Mark::Latest)
    }
}

/// Whether a person changed whether there is a row, or what it says of its shard: nothing can be expected of it then. An edit of
/// what guards the row is no such change.
pub fn rewrites(verb: Option<Verb>, before: Option<Row>, after: Option<Row>) -> bool {
    verb.is_none() && before.map(|row| row.checkpoint) != after.map(|row| row.checkpoint)
}
