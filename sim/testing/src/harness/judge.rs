//! Leasehold's promises, checked at every step of a world.
//!
//! * A shard is opened after all records of its parents were handed over (`parents-first`).
//! * Within an ownership records come in order, without a gap, from the checkpoint on (`order`).
//! * The token of a shard grows with every owner that opens the shard, and no two owners' fences are valid at one time
//!   (`owners`).
//! * Every record is handed over at least once, and is acknowledged durably by the end of all faults (`delivery`).
//! * Rows are readable leases, their checkpoints and counters never go back, no checkpoint covers a record that was not
//!   handed over, and only ended rows are removed, for good (`rows`).

use super::fault::Time;
use super::source::{index, place};
use leasehold::engine::row::RowRead;
use leasehold::{Batch, Checkpoint, EndReason, Fence, LeaseKey, LeaseRow, ShardInfo};
use leasehold_local_aws::kinesis::{ShardIndex, Stream};
use std::collections::{BTreeMap, BTreeSet};

/// A broken promise: the property, and the facts.
pub(super) type Finding = (&'static str, String);

/// What makes a record done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Done {
    /// A hand-over to the handler.
    #[default]
    HandedOver,
    /// The handler's own word.
    Processed,
}

/// Keeps account of one world.
#[derive(Debug, Default)]
pub struct Judge {
    /// What makes a record done.
    by: Done,
    /// Two owners may believe in one shard for a while.
    shares: bool,
    /// How many of each shard's records are done, without a gap from the shard's beginning.
    done: BTreeMap<ShardIndex, u64>,
    /// The highest token of each opened shard, and the life that opened the shard.
    tokens: BTreeMap<ShardIndex, (u64, usize)>,
    sessions: BTreeMap<(ShardIndex, usize), Session>,
    pub(super) rows: BTreeMap<LeaseKey, LeaseRow>,
    removed: BTreeSet<LeaseKey>,
    /// When a lease changed its owner for the last time.
    pub(super) changed: Time,
    /// How many records were done more than once.
    pub repeated: u64,
}

/// A shard in the hands of one life.
#[derive(Debug)]
struct Session {
    token: u64,
    /// The next record to hand over; a record before it may come, too.
    next: u64,
    fence: Option<Fence>,
}

/// The number of a shard's records.
pub(super) fn records(stream: &Stream, shard: ShardIndex) -> u64 {
    stream.shard(shard).map_or(0, |shard| shard.next_position() - 1)
}

impl Judge {
    /// A judge at the begin of a world.
    pub(super) fn new(by: Done, shares: bool) -> Self {
        Self { by, shares, ..Self::default() }
    }

    /// How many of a shard's records are done.
    pub(super) fn done(&self, shard: ShardIndex) -> u64 {
        self.done.get(&shard).copied().unwrap_or(0)
    }

    pub(super) fn verb(&self) -> &'static str {
        match self.by {
            Done::HandedOver => "handed over",
            Done::Processed => "processed",
        }
    }

    /// Whether a shard's lease is marked as ended, or was removed after its end.
    pub(super) fn has_ended(&self, key: &LeaseKey) -> bool {
        let ended = |row: &LeaseRow| row.checkpoint == Checkpoint::ShardEnd;
        self.removed.contains(key) || self.rows.get(key).is_some_and(ended)
    }

    /// A life opens a shard.
    pub(super) fn opens(&mut self, stream: &Stream, life: usize, info: &ShardInfo) -> Vec<Finding> {
        let (shard, token, verb) = (index(&info.shard), info.token.0, self.verb());
        let mut found = Vec::new();
        for parent in stream.shard(shard).iter().flat_map(|truth| truth.parents()) {
            let (done, last) = (self.done(parent), records(stream, parent));
            if done < last {
                let what = format!(
                    "{shard} was opened when {done} of the {last} records of its parent {parent} had been {verb}"
                );
                found.push(("parents-first", what));
            }
        }
        let from = match info.from {
            Checkpoint::At(position) => place(position).unwrap_or(u64::MAX - 1),
            Checkpoint::ShardEnd => u64::MAX - 1,
            _ => 0,
        };
        let done = self.done(shard);
        if from > done {
            let what = format!("{shard} was opened after record {from}, and only {done} had been {verb}");
            found.push(("delivery", what));
        }
        match self.tokens.get(&shard) {
            Some(&(known, other)) if !self.shares && (token < known || (token == known && other != life)) => {
                let what = format!(
                    "{shard} was opened under token {token} after it had been opened under token {known}"
                );
                found.push(("owners", what));
            }
            _ => {
                self.tokens.insert(shard, (token, life));
            }
        }
        let session = Session { token, next: from + 1, fence: None };
        self.sessions.insert((shard, life), session);
        found
    }

    /// A batch is handed over.
    pub(super) fn hands_over(&mut self, life: usize, batch: &Batch) -> Vec<Finding> {
        let shard = index(&batch.shard().shard);
        let mut places: Vec<u64> =
            batch.records().iter().filter_map(|record| place(record.position)).collect();
        // Parts of one record share its place.
        places.dedup();
        let mut found = Vec::new();
        if !places.windows(2).all(|pair| pair[1] == pair[0] + 1) {
            found.push(("order", format!("{shard} was handed over as records {places:?}")));
        }
        let (Some(&first), Some(&last)) = (places.first(), places.last()) else {
            return found;
        };
        let token = batch.shard().token.0;
        match self.sessions.get_mut(&(shard, life)) {
            Some(session) if session.token == token => {
                if first > session.next {
                    let next = session.next;
                    found.push(("order", format!("record {first} of {shard} came where {next} was next")));
                }
                session.next = session.next.max(last + 1);
                session.fence = Some(batch.fence());
            }
            _ => found.push((
                "owners",
                format!("a batch of {shard} came under token {token}, which had not opened it"),
            )),
        }
        if self.by == Done::HandedOver {
            // A gap is told above.
            let _ = self.does(shard, &places);
        }
        if !self.shares {
            found.extend(self.two_owners(shard));
        }
        found
    }

    /// Records of a shard are done.
    pub(super) fn does(&mut self, shard: ShardIndex, places: &[u64]) -> Option<Finding> {
        let mut gap = None;
        for &place in places {
            let done = self.done(shard);
            if place > done + 1 {
                let what = format!("record {place} of {shard} was {} after record {done}", self.verb());
                gap.get_or_insert(("order", what));
            }
            self.repeated += u64::from(place <= done);
            self.done.insert(shard, done.max(place));
        }
        gap
    }

    fn two_owners(&self, shard: ShardIndex) -> Option<Finding> {
        let valid: Vec<u64> = self
            .sessions
            .range((shard, 0)..=(shard, usize::MAX))
            .filter(|(_, session)| session.fence.as_ref().is_some_and(Fence::is_valid))
            .map(|(_, session)| session.token)
            .collect();
        (valid.len() > 1).then(|| {
            let what = format!("the fences of {shard} under the tokens {valid:?} are valid at one time");
            ("owners", what)
        })
    }

    /// A shard is given up.
    pub(super) fn closes(
        &mut self, stream: &Stream, life: usize, info: &ShardInfo, reason: EndReason,
    ) -> Option<Finding> {
        let shard = index(&info.shard);
        self.sessions.remove(&(shard, life));
        (reason == EndReason::ShardEnded && !self.is_done(stream, shard)).then(|| {
            let what = format!(
                "{shard} was closed as ended when only {} records were {}",
                self.done(shard),
                self.verb()
            );
            ("delivery", what)
        })
    }

    /// A process is no more.
    pub(super) fn dies(&mut self, life: usize) {
        self.sessions.retain(|(_, of), _| *of != life);
    }

    fn is_done(&self, stream: &Stream, shard: ShardIndex) -> bool {
        let closed = stream.shard(shard).is_some_and(|truth| !truth.is_open());
        closed && self.done(shard) == records(stream, shard)
    }

    /// A row was written, or removed. Returns whether its checkpoint moved, and what is wrong with the row.
    pub(super) fn wrote(
        &mut self, stream: &Stream, now: Time, key: &LeaseKey, row: Option<RowRead>,
    ) -> (bool, Vec<String>) {
        let before = self.rows.remove(key);
        let row = match (row, &before) {
            (Some(RowRead::Lease(row)), _) => row,
            (Some(other), _) => {
                return (false, vec![format!("a row was written that is no lease: {other:?}")]);
            }
            (None, Some(before)) if before.checkpoint != Checkpoint::ShardEnd => {
                return (
                    false,
                    vec![format!("the lease {key} was removed at checkpoint {}", before.checkpoint)],
                );
            }
            (None, before) => {
                self.removed.extend(before.as_ref().map(|_| key.clone()));
                return (false, Vec::new());
            }
        };
        let mut wrong = Vec::new();
        if self.removed.contains(key) {
            wrong.push(format!("the removed lease {key} was put back"));
        }
        if let Some(before) = &before {
            let (old, new) = (before.checkpoint, row.checkpoint);
            if new < old {
                wrong.push(format!("the checkpoint of {key} went back from {old} to {new}"));
            }
            if row.counter < before.counter {
                wrong.push(format!(
                    "the counter of {key} went back from {} to {}",
                    before.counter, row.counter
                ));
            }
        }
        if before.as_ref().and_then(|row| row.owner.as_ref()) != row.owner.as_ref() {
            self.changed = now;
        }
        let (checkpoint, earlier) = (row.checkpoint, before.map(|row| row.checkpoint));
        self.rows.insert(key.clone(), row);
        if earlier != Some(checkpoint) {
            wrong.extend(self.checkpointed(stream, key, checkpoint));
        }
        (earlier.is_some_and(|earlier| earlier != checkpoint), wrong)
    }

    fn checkpointed(&self, stream: &Stream, key: &LeaseKey, checkpoint: Checkpoint) -> Vec<String> {
        let Some(shard) = ShardIndex::parse(key.as_str()) else {
            return vec![format!("the lease {key} was written, which is no shard")];
        };
        let (done, verb) = (self.done(shard), self.verb());
        let mut wrong = Vec::new();
        match checkpoint {
            Checkpoint::At(position) if place(position).is_none_or(|place| place > done) => {
                wrong.push(format!(
                    "{key} was checkpointed at {position} when only {done} records were {verb}"
                ));
            }
            Checkpoint::ShardEnd => {
                if !self.is_done(stream, shard) {
                    wrong.push(format!("{key} was ended when only {done} records were {verb}"));
                }
                for child in stream.shard(shard).iter().flat_map(|truth| truth.children()) {
                    let child = LeaseKey::from(child.to_string());
                    if !self.rows.contains_key(&child) && !self.removed.contains(&child) {
                        wrong.push(format!("{key} was ended before its child {child} had a lease"));
                    }
                }
            }
            _ => {}
        }
        wrong
    }
}

#[cfg(test)]
#[path = "judge_tests.rs"]
mod tests;
