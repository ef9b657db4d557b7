//! One shard: its place in the hash space and in the lineage, its records, its limits.

use super::ids::ShardIndex;
use super::log::{Log, StoredRecord};
use super::meter::Meter;
use super::sequence::{END_POSITION, SequenceNumber, SequenceParts, seconds};

/// An inclusive range of hash keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HashRange {
    /// `StartingHashKey`.
    pub start: u128,
    /// `EndingHashKey`, itself inside.
    pub end: u128,
}

/// The service's description of a shard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShardInfo {
    /// The shard.
    pub shard: ShardIndex,
    /// The parent after a split, or the first parent after a merge.
    pub parent: Option<ShardIndex>,
    /// The second parent after a merge.
    pub adjacent_parent: Option<ShardIndex>,
    /// The shard's hash keys.
    pub hash_range: HashRange,
    /// Below every record of the shard.
    pub starting_sequence: SequenceNumber,
    /// Above every record of the shard; only a closed shard has an ending number.
    pub ending_sequence: Option<SequenceNumber>,
}

/// A shard with all its records.
#[derive(Clone, Debug)]
pub struct Shard {
    index: ShardIndex,
    parent: Option<ShardIndex>,
    adjacent_parent: Option<ShardIndex>,
    hash_range: HashRange,
    created_secs: u64,
    opened_ms: i64,
    closed_ms: Option<i64>,
    expired: bool,
    pub(crate) children: Vec<ShardIndex>,
    pub(crate) log: Log,
    pub(crate) reads: Meter,
    pub(crate) writes: Meter,
    pub(crate) iterators: Meter,
}

impl Shard {
    pub(crate) fn new(
        index: ShardIndex, [parent, adjacent_parent]: [Option<ShardIndex>; 2], hash_range: HashRange,
        created_secs: u64, opened_ms: i64,
    ) -> Self {
        Shard {
            index,
            parent,
            adjacent_parent,
            hash_range,
            created_secs,
            opened_ms,
            closed_ms: None,
            expired: false,
            children: Vec::new(),
            log: Log::new(),
            reads: Meter::new(),
            writes: Meter::new(),
            iterators: Meter::new(),
        }
    }

    /// The shard's number.
    pub fn index(&self) -> ShardIndex {
        self.index
    }

    /// The shard's hash keys.
    pub fn hash_range(&self) -> HashRange {
        self.hash_range
    }

    /// The shard's parents: none, one (split) or two (merge).
    pub fn parents(&self) -> impl Iterator<Item = ShardIndex> {
        self.parent.into_iter().chain(self.adjacent_parent)
    }

    /// The shard's children.
    pub fn children(&self) -> &[ShardIndex] {
        &self.children
    }

    /// The time of the shard's opening.
    pub fn opened_ms(&self) -> i64 {
        self.opened_ms
    }

    /// The time of the shard's closing.
    pub fn closed_ms(&self) -> Option<i64> {
        self.closed_ms
    }

    /// Whether it takes records.
    pub fn is_open(&self) -> bool {
        self.closed_ms.is_none()
    }

    /// Whether the shard was closed so long ago that the service has forgotten the shard.
    pub fn is_expired(&self) -> bool {
        self.expired
    }

    /// The position of the oldest record that can still be read.
    pub fn first_position(&self) -> u64 {
        self.log.first()
    }

    /// The position of the next record: one more than the number of records ever written.
    pub fn next_position(&self) -> u64 {
        self.log.next()
    }

    /// The record at a position, unless it was trimmed or never written.
    pub fn record(&self, position: u64) -> Option<(SequenceNumber, &StoredRecord)> {
        self.log.get(position).map(|record| (self.sequence_of(position, record), record))
    }

    /// All readable records, oldest first.
    pub fn records(&self) -> impl Iterator<Item = (SequenceNumber, &StoredRecord)> {
        (self.log.first()..self.log.next()).filter_map(|position| self.record(position))
    }

    /// The service's description of the shard.
    pub fn info(&self) -> ShardInfo {
        ShardInfo {
            shard: self.index,
            parent: self.parent,
            adjacent_parent: self.adjacent_parent,
            hash_range: self.hash_range,
            starting_sequence: self.number(0, self.created_secs),
            ending_sequence: self.closed_ms.map(|at| self.number(END_POSITION, seconds(at))),
        }
    }

    pub(crate) fn created_secs(&self) -> u64 {
        self.created_secs
    }

    pub(crate) fn sequence_of(&self, position: u64, record: &StoredRecord) -> SequenceNumber {
        self.number(position, seconds(record.arrival_ms))
    }

    /// A number of this position that no record of the position has.
    pub(crate) fn number_without_record(&self, position: u64) -> SequenceNumber {
        self.number(position, self.created_secs)
    }

    fn number(&self, position: u64, time_secs: u64) -> SequenceNumber {
        let (created_secs, shard) = (self.created_secs, self.index.0);
        SequenceNumber::new(SequenceParts { created_secs, position, time_secs, shard })
    }

    /// Appends; arrival times never go back within a shard, whatever the caller's clock does.
    pub(crate) fn append(&mut self, mut record: StoredRecord) -> SequenceNumber {
        if let Some(newest) = self.log.newest() {
            record.arrival_ms = record.arrival_ms.max(newest.arrival_ms);
        }
        let arrival_secs = seconds(record.arrival_ms);
        let position = self.log.push(record);
        self.number(position, arrival_secs)
    }

    pub(crate) fn close(&mut self, at_ms: i64) {
        self.closed_ms = Some(at_ms.max(self.opened_ms));
    }

    /// Whether time takes records or the shard itself away by this cutoff.
    pub(crate) fn ages_at(&self, cutoff_ms: i64) -> bool {
        !self.expired
            && (self.closed_ms.is_some_and(|at| at <= cutoff_ms)
                || self.log.get(self.log.first()).is_some_and(|oldest| oldest.arrival_ms < cutoff_ms))
    }

    /// Trims records with an arrival before the cutoff, and forgets a shard closed by then.
    pub(crate) fn age(&mut self, cutoff_ms: i64) {
        self.log.trim_before(cutoff_ms);
        if self.closed_ms.is_some_and(|at| at <= cutoff_ms) {
            self.expire();
        }
    }

    /// Forgets the shard and its records.
    pub(crate) fn expire(&mut self) {
        self.expired = true;
        self.log.trim_to(u64::MAX);
    }
}
