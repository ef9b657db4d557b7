//! An iterator of another shard, or of another place, and a number of another record.

use super::{Carry, Source};
use crate::faults::Misread;
use crate::oracles::{ShardNo, Time};
use leasehold_engine::input::{Outcome, Reply};
use leasehold_engine::output::IteratorFrom;
use leasehold_local_aws::kinesis::Shard;

impl Carry {
    /// The record in the middle gets the number of an earlier record, if the answer declares its records out of order.
    pub(crate) fn misnumber(&mut self, outcome: &Outcome) {
        if let (Carry::Batch { first, last, low, .. }, Outcome::Applied(Reply::Records(answer))) =
            (self, outcome)
            && answer.unordered
        {
            *low = Some(u64::midpoint(*first, *last));
        }
    }
}

impl Source {
    /// The wrong iterator in place of the right iterator.
    pub(crate) fn wrong_iterator(
        &mut self, misread: Misread, now: Time, shard: ShardNo, from: IteratorFrom,
    ) -> (Outcome, Carry) {
        match (misread, from) {
            (Misread::OtherIterator, _) => self.other_iterator(now, shard, from),
            // From any other place, no answer could show the error.
            (Misread::LaterIterator, IteratorFrom::At(_)) => self.iterator(now, shard, IteratorFrom::Latest),
            _ => self.iterator(now, shard, from),
        }
    }

    /// The iterator of another shard of the stream in the place of this shard's iterator. The other shard has records,
    /// or has ended: the answers of an empty open shard do not name a shard. If the stream has no such shard, the
    /// iterator is this shard's.
    fn other_iterator(&mut self, now: Time, shard: ShardNo, from: IteratorFrom) -> (Outcome, Carry) {
        let (stream, index) = self.streams.place(shard);
        let tells = |other: &Shard| {
            let tells = other.records().next().is_some() || !other.is_open();
            other.index() != index && tells && !self.is_forgotten(self.streams.shard(stream, other.index()))
        };
        let shards = || Some(self.truth(stream)?.shards().filter(|other| tells(other)));
        let other = shards().and_then(|mut shards| Some(self.streams.shard(stream, shards.next()?.index())));
        match other.map(|other| self.iterator(now, other, IteratorFrom::TrimHorizon)) {
            Some((outcome, Carry::Iterator(_, iterator))) => (outcome, Carry::Iterator(shard, iterator)),
            _ => self.iterator(now, shard, from),
        }
    }
}
