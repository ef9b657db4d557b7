//! `GetRecords`.

use super::config::EndOfShard;
use super::error::{ApiError, ApiResult};
use super::ids::{ShardIndex, StreamRef};
use super::iterator::ShardIterator;
use super::sequence::SequenceNumber;
use super::shard::{HashRange, Shard};
use super::stream::Stream;
use super::{Kinesis, StreamStatus};
use crate::constraint::beyond;
use crate::constraint::refuse_if;
use bytes::Bytes;
use std::fmt;
use std::sync::Arc;

/// A record in the reader's form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReadRecord {
    /// Its number.
    pub sequence_number: SequenceNumber,
    /// The blob.
    pub data: Bytes,
    /// The producer's key.
    pub partition_key: Arc<str>,
    /// `ApproximateArrivalTimestamp`.
    pub arrival_ms: i64,
    /// Whether `EncryptionType` is `KMS`.
    pub encrypted: bool,
}

/// A child, as announced at the end of its parent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChildShard {
    /// The child.
    pub shard: ShardIndex,
    /// All parents of the child: two after a merge.
    pub parents: Vec<ShardIndex>,
    /// The child's hash keys.
    pub hash_range: HashRange,
}

/// What `GetRecords` answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordsPage {
    /// In the order of their numbers.
    pub records: Vec<ReadRecord>,
    /// Where to go on; none at the end of a closed shard.
    pub next: Option<ShardIterator>,
    /// How far behind the tip the answer ends; 0 at the tip.
    pub millis_behind_latest: i64,
    /// The children, only in the answer that ends the shard.
    pub child_shards: Vec<ChildShard>,
}

/// The most records of one answer, and the default of `Limit`.
pub(super) const MOST_RECORDS: u32 = 10_000;
/// The most bytes of one answer, but for a single record.
const MOST_BYTES: usize = 10 << 20;
const READS_PER_SECOND: u32 = 5;
pub(super) const READ_BYTES_PER_SECOND: u64 = 2 << 20;

impl Kinesis {
    /// `GetRecords`; `limit` is 1 to 10,000, and none means 10,000.
    pub fn get_records(
        &mut self, now_ms: i64, iterator: &ShardIterator, limit: Option<u32>,
    ) -> ApiResult<RecordsPage> {
        let limit = limit.unwrap_or(MOST_RECORDS);
        if let Some(bound) = beyond(limit, 1, MOST_RECORDS) {
            let place = format_args!("Value '{limit}' at 'limit'");
            return Err(ApiError::unmet(place, format_args!("have value {bound}")));
        }
        let expiry_ms = self.config().iterator_expiry_ms;
        if now_ms.saturating_sub(iterator.issued_ms) > expiry_ms {
            return Err(ApiError::client(
                "ExpiredIteratorException",
                format!(
                    "Iterator expired. The iterator was created at time {} while right now it is {} which is further in \
                     the future than the tolerated delay of {expiry_ms} milliseconds.",
                    UtcTime(iterator.issued_ms),
                    UtcTime(now_ms)
                ),
            ));
        }
        let (limits, end_of_shard) = (self.config().limits, self.config().end_of_shard);
        let id = self.find(now_ms, StreamRef::Id(iterator.stream))?;
        let stream = self.stream_by_id(id)?;
        refuse_if(stream.status() == StreamStatus::Creating, || stream.no_such_shard(iterator.shard))?;
        if limits || self.needs_aging(now_ms, iterator) {
            let stream = self.stream_mut(id)?;
            stream.age_shard(now_ms, iterator.shard);
            let admitted = !limits
                || stream
                    .shard_mut(iterator.shard)
                    .is_none_or(|shard| shard.reads.take_read(now_ms, READS_PER_SECOND));
            refuse_if(!admitted, || stream.throttled(iterator.shard))?;
        }
        let stream = self.stream_by_id(id)?;
        let shard = stream.readable(iterator.shard)?;
        let (page, bytes) = stream.page(now_ms, shard, iterator, (limit, MOST_BYTES), end_of_shard);
        if limits && let Some(shard) = self.stream_mut(id)?.shard_mut(iterator.shard) {
            shard.reads.charge_read(bytes as u64, READ_BYTES_PER_SECOND);
        }
        Ok(page)
    }

    pub(super) fn needs_aging(&self, now_ms: i64, iterator: &ShardIterator) -> bool {
        self.stream_by_id(iterator.stream).is_ok_and(|stream| {
            let cutoff = stream.cutoff_ms(now_ms);
            stream.shard(iterator.shard).is_some_and(|shard| shard.ages_at(cutoff))
        })
    }
}

impl Stream {
    /// The records from an iterator on, no more than so many records and bytes; and their bytes.
    pub(super) fn page(
        &self, now_ms: i64, shard: &Shard, iterator: &ShardIterator, (limit, most_bytes): (u32, usize),
        end_of_shard: EndOfShard,
    ) -> (RecordsPage, usize) {
        let from = iterator.position.max(shard.log.first());
        let available = shard.log.next().saturating_sub(from).min(u64::from(limit));
        let mut records = Vec::with_capacity(available as usize);
        let (mut at, mut bytes) = (from, 0);
        while records.len() < available as usize {
            let Some((sequence_number, record)) = shard.record(at) else {
                break;
            };
            if !records.is_empty() && bytes + record.size() > most_bytes {
                break;
            }
            bytes += record.size();
            at += 1;
            records.push(ReadRecord {
                sequence_number,
                data: record.data.clone(),
                partition_key: record.partition_key.clone(),
                arrival_ms: record.arrival_ms,
                encrypted: record.encrypted,
            });
        }
        let at_tip = at >= shard.log.next();
        let may_end = records.is_empty() || end_of_shard == EndOfShard::WithLastRecords;
        let end = shard.closed_ms().filter(|_| at_tip && may_end);
        let tip_ms = match (end, records.last()) {
            // At the end of a closed shard the service counts from when it was closed.
            (Some(closed_ms), _) => closed_ms,
            (None, Some(last)) if !at_tip => last.arrival_ms,
            _ => now_ms,
        };
        let page = RecordsPage {
            next: end.is_none().then_some(ShardIterator { position: at, issued_ms: now_ms, ..*iterator }),
            millis_behind_latest: now_ms.saturating_sub(tip_ms).max(0),
            child_shards: if end.is_some() { self.children_of(shard) } else { Vec::new() },
            records,
        };
        (page, bytes)
    }

    /// The children of a shard, as the last answer of a read names them.
    pub fn children_of(&self, shard: &Shard) -> Vec<ChildShard> {
        let children = shard.children().iter().filter_map(|&child| self.shard(child));
        children
            .map(|child| ChildShard {
                shard: child.index(),
                parents: child.parents().collect(),
                hash_range: child.hash_range(),
            })
            .collect()
    }
}

/// A time in the form of the service's messages: `Thu Jan 22 01:22:02 UTC 2015`.
struct UtcTime(i64);

impl fmt::Display for UtcTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const DAYS: [&str; 7] = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"];
        const MONTHS: [&str; 12] =
            ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
        let secs = self.0.div_euclid(1000);
        let (days, clock) = (secs.div_euclid(86_400), secs.rem_euclid(86_400));
        // Years begin in March here, to make the leap day the last day of a year; eras have 400 years.
        let shifted = days + 719_468;
        let (era, day_of_era) = (shifted.div_euclid(146_097), shifted.rem_euclid(146_097));
        let year_of_era =
            (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
        let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
        let month_from_march = (5 * day_of_year + 2) / 153;
        let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
        let month = (month_from_march + 2) % 12;
        let year = year_of_era + era * 400 + i64::from(month < 2);
        let (weekday, name) = (DAYS[days.rem_euclid(7) as usize], MONTHS[month as usize]);
        let (hour, minute, second) = (clock / 3600, clock / 60 % 60, clock % 60);
        write!(f, "{weekday} {name} {day:02} {hour:02}:{minute:02}:{second:02} UTC {year}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_written_as_the_service_writes_them() {
        assert_eq!(UtcTime(1_421_889_722_000).to_string(), "Thu Jan 22 01:22:02 UTC 2015");
        assert_eq!(UtcTime(0).to_string(), "Thu Jan 01 00:00:00 UTC 1970");
        assert_eq!(UtcTime(1_709_164_800_000).to_string(), "Thu Feb 29 00:00:00 UTC 2024");
        assert_eq!(UtcTime(-1).to_string(), "Wed Dec 31 23:59:59 UTC 1969");
        for extreme in [i64::MIN, i64::MAX] {
            assert!(UtcTime(extreme).to_string().contains("UTC"));
        }
    }
}
