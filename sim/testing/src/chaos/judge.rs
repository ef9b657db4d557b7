//! Leasehold's promises, checked at every step of a world.
//!
//! * A shard is opened after all records of its parents were handed over (`parents-first`).
//! * Within an ownership records come in order, without a gap, from the checkpoint on (`order`).
//! * The token of a shard grows with every owner that opens the shard, and no two owners' fences are valid at one time
//!   (`owners`).
//! * Every record is handed over at least once, and is acknowledged durably by the end of all faults (`delivery`).

use super::services::{Services, index, place};
use leasehold::{Batch, Checkpoint, Fence, LeaseKey, ShardInfo};
use leasehold_local_aws::kinesis::ShardIndex;
use std::collections::BTreeMap;

/// A broken promise: the property, and the facts.
pub(crate) type Finding = (&'static str, String);

/// Keeps account of one world.
#[derive(Debug, Default)]
pub(crate) struct Judge {
    /// The last record of each shard handed over without a gap from the shard's beginning.
    through: BTreeMap<ShardIndex, u64>,
    /// The highest token of each opened shard, and the life that opened the shard.
    tokens: BTreeMap<ShardIndex, (u64, usize)>,
    sessions: BTreeMap<(ShardIndex, usize), Session>,
    /// How many records were handed over more than once.
    pub(crate) repeated: u64,
}

/// A shard in the hands of one life.
#[derive(Debug)]
struct Session {
    token: u64,
    /// The next record to hand over; a record before it may come, too.
    next: u64,
    fence: Option<Fence>,
}

impl Judge {
    fn through(&self, shard: ShardIndex) -> u64 {
        self.through.get(&shard).copied().unwrap_or(0)
    }

    /// A life opens a shard.
    pub(crate) fn opens(
        &mut self, services: &mut Services, now: u64, life: usize, info: &ShardInfo,
    ) -> Vec<Finding> {
        let (shard, token) = (index(&info.shard), info.token.0);
        let mut found = Vec::new();
        if let Some(stream) = services.truth(now) {
            let parents = stream.shard(shard).map(|truth| truth.parents().collect::<Vec<_>>());
            for parent in parents.unwrap_or_default() {
                let last = stream.shard(parent).map_or(0, |parent| parent.next_position() - 1);
                let through = self.through(parent);
                if through < last {
                    found.push((
                        "parents-first",
                        format!("{shard} was opened when {through} of the {last} records of its parent {parent} had been handed over"),
                    ));
                }
            }
        }
        let from = match info.from {
            Checkpoint::At(position) => place(position).unwrap_or(u64::MAX - 1),
            Checkpoint::ShardEnd => u64::MAX - 1,
            _ => 0,
        };
        let through = self.through(shard);
        if from > through {
            found.push((
                "delivery",
                format!("{shard} was opened after record {from}, and only {through} had been handed over"),
            ));
        }
        match self.tokens.get(&shard) {
            Some(&(known, other)) if token < known || (token == known && other != life) => found.push((
                "owners",
                format!(
                    "{shard} was opened under token {token} after it had been opened under token {known}"
                ),
            )),
            _ => {
                self.tokens.insert(shard, (token, life));
            }
        }
        let session = Session { token, next: from + 1, fence: None };
        self.sessions.insert((shard, life), session);
        found
    }

    /// A batch is handed over.
    pub(crate) fn hands_over(&mut self, life: usize, batch: &Batch) -> Vec<Finding> {
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
        let through = self.through(shard);
        self.repeated += through.min(last).saturating_sub(first - 1);
        self.through.insert(shard, through.max(last));
        found.extend(self.two_owners(shard));
        found
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
    pub(crate) fn closes(&mut self, life: usize, info: &ShardInfo) {
        self.sessions.remove(&(index(&info.shard), life));
    }

    /// A process is no more.
    pub(crate) fn dies(&mut self, life: usize) {
        self.sessions.retain(|(_, of), _| *of != life);
    }

    /// A record not yet handed over, or not acknowledged durably.
    pub(crate) fn missing(&self, services: &mut Services, now: u64) -> Option<String> {
        let shards: Vec<(ShardIndex, u64)> =
            services.truth(now)?.shards().map(|shard| (shard.index(), shard.next_position() - 1)).collect();
        shards.into_iter().find_map(|(shard, last)| {
            let through = self.through(shard);
            if through < last {
                return Some(format!("{through} of the {last} records of {shard} were handed over"));
            }
            // The shard of a removed row had ended.
            let row = services.row(&LeaseKey::from(shard.to_string()))?;
            let durable = match row.checkpoint {
                Checkpoint::At(position) => place(position).unwrap_or(0) >= last,
                Checkpoint::ShardEnd => true,
                _ => last == 0,
            };
            let checkpoint = row.checkpoint;
            (!durable).then(|| {
                format!(
                    "all {last} records of {shard} were handed over, and its checkpoint is still {checkpoint}"
                )
            })
        })
    }
}

#[cfg(test)]
#[path = "judge_tests.rs"]
mod tests;
