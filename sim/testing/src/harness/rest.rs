//! Whether a world is at rest, and the state in which its workers leave the table.

use super::fault::Time;
use super::judge::{Judge, records};
use super::source::place;
use leasehold::{Checkpoint, LeaseKey, LeaseRow};
use leasehold_local_aws::kinesis::Stream;

/// The last record that a row's checkpoint covers.
fn covered(row: &LeaseRow) -> u64 {
    match row.checkpoint {
        Checkpoint::At(position) => place(position).unwrap_or(0),
        Checkpoint::ShardEnd => u64::MAX,
        _ => 0,
    }
}

impl Judge {
    /// How many records there are, and how many of them are not done.
    pub(super) fn counts(&self, stream: &Stream) -> (u64, u64) {
        let counts = stream.shards().map(|shard| {
            let records = records(stream, shard.index());
            (records, records.saturating_sub(self.done(shard.index())))
        });
        counts.fold((0, 0), |(all, lost), (records, left)| (all + records, lost + left))
    }

    /// A record that is not yet done, or not acknowledged durably.
    pub(super) fn missing(&self, stream: &Stream) -> Option<String> {
        stream.shards().find_map(|shard| {
            let (shard, last) = (shard.index(), records(stream, shard.index()));
            let (done, verb) = (self.done(shard), self.verb());
            if done < last {
                return Some(format!("{done} of the {last} records of {shard} were {verb}"));
            }
            // The shard of a removed row had ended.
            let row = self.rows.get(&LeaseKey::from(shard.to_string()))?;
            let checkpoint = row.checkpoint;
            (covered(row) < last).then(|| {
                format!("all {last} records of {shard} were {verb}, and its checkpoint is still {checkpoint}")
            })
        })
    }

    /// The reason why the leases have not kept their owners for a calm time.
    pub(super) fn unsettled(&self, stream: &Stream, now: Time, calm: Time) -> Option<String> {
        let unsettled = stream.shards().find_map(|shard| {
            let key = LeaseKey::from(shard.index().to_string());
            match self.rows.get(&key) {
                _ if !shard.is_open() => {
                    (!self.has_ended(&key)).then(|| format!("the lease of the closed {key} has not ended"))
                }
                None => Some(format!("there is no lease for {key}")),
                Some(row) if row.owner.is_none() => Some(format!("nobody owns {key}")),
                Some(_) => None,
            }
        });
        let calm = now >= self.changed + calm;
        unsettled.or_else(|| (!calm).then(|| "leases go on changing their owners".to_owned()))
    }

    /// What is wrong with the leases of a world whose workers were all asked to shut down, in peace.
    pub(super) fn left(&self, stream: &Stream) -> Option<String> {
        stream.shards().filter(|shard| shard.is_open()).find_map(|shard| {
            let key = LeaseKey::from(shard.index().to_string());
            let Some(row) = self.rows.get(&key) else {
                return Some(format!("there is no lease for {key}"));
            };
            if let Some(owner) = &row.owner {
                return Some(format!("{key} still belongs to {owner} after every shutdown"));
            }
            let (covered, done) = (covered(row), self.done(shard.index()));
            (covered != done)
                .then(|| format!("{key} was checkpointed at record {covered} of {done} in the last shutdown"))
        })
    }
}
