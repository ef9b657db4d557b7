//! The content of a lease row, at the detail needed by oracles.

use super::{LifeNo, Verb};
use leasehold_engine::position::Checkpoint;

/// The stream named by a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Whose {
    /// No stream, or an unreadable stream; or the row does not exist.
    Nobody,
    /// The stream read.
    This,
    /// Another stream.
    Another,
}

/// The owner named by a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Owner {
    /// A life of one of our workers.
    Life(LifeNo),
    /// An owner other than our workers.
    Stranger,
}

impl Owner {
    /// The life, if the owner is a life of ours.
    pub fn life(self) -> Option<LifeNo> {
        match self {
            Owner::Life(life) => Some(life),
            Owner::Stranger => None,
        }
    }
}

/// A lease row, at the detail needed by oracles.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Row {
    /// The row's owner; the old owner during a hand-over.
    pub owner: Option<Owner>,
    /// The next owner, during a hand-over.
    pub next: Option<Owner>,
    /// The row's counter.
    pub counter: u64,
    /// The row's checkpoint.
    pub checkpoint: Mark,
}

impl Row {
    /// Whether the shard is unfinished.
    pub fn is_open(self) -> bool {
        self.checkpoint != Mark::End
    }

    /// Whether this life is the owner named by the row.
    pub fn is_of(self, life: LifeNo) -> bool {
        self.owner == Some(Owner::Life(life))
    }
}

/// A checkpoint with a record's place in the shard in place of the sequence number: 1 is the first record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Mark {
    /// No record yet, from a time on.
    AtTimestamp,
    /// No record yet, from the oldest on.
    TrimHorizon,
    /// No record yet, from now on.
    Latest,
    /// All records up to and including this record.
    At(u64),
    /// A position without a record in this shard.
    Nowhere,
    /// All records.
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

    /// Whether no record has been processed yet.
    pub fn is_initial(self) -> bool {
        matches!(self, Mark::AtTimestamp | Mark::TrimHorizon | Mark::Latest)
    }
}

/// Whether a person created or removed a row, or changed its checkpoint: oracles then expect no particular state of the
/// shard. An edit of the row's guard is no such change.
pub fn rewrites(verb: Option<Verb>, before: Option<Row>, after: Option<Row>) -> bool {
    verb.is_none() && before.map(|row| row.checkpoint) != after.map(|row| row.checkpoint)
}

/// The owner named by a row, if there is a row.
pub fn owner(row: Option<Row>) -> Option<Owner> {
    row.and_then(|row| row.owner)
}

/// Whether a write begins an ownership.
pub fn begins(verb: Option<Verb>, before: Option<Row>, after: Option<Row>) -> bool {
    verb == Some(Verb::Take) || owner(before) != owner(after)
}
