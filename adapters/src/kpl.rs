//! Aggregated records of the Kinesis Producer Library (KPL): many small records in one.
//!
//! The layout is `F3 89 9A C2`, a protobuf `AggregatedRecord`, and the MD5 of the protobuf. All other data is a plain
//! record. Three rules differ from KCL for Java 3.5, but never for an aggregate with all parts in its own shard:
//!
//! * An aggregate with an index out of its tables, or a hash key that is no number, is handed over whole and raw. KCL
//!   keeps the parts before the damage and loses the rest silently.
//! * Part of an aggregate may belong to another shard: the producer used an outdated shard map. KCL drops the whole
//!   aggregate, and thereby loses records of every KPL since August 2024. Here the parts of the shard are handed
//!   over, and [`Misplaced`] decides about the foreign parts (see [`leasehold_engine::aggregate`]).
//! * The parts are numbered by their place in the aggregate, whatever is dropped.

use crate::record::Record;
use bytes::Bytes;
use leasehold_engine::aggregate::{Misplaced, Sorted};
use leasehold_engine::shard::{HashKey, HashRange};
use md5::{Digest, Md5};
use prost::Message;
use std::sync::Arc;

const MAGIC: [u8; 4] = [0xF3, 0x89, 0x9A, 0xC2];
const MD5_LEN: usize = 16;

#[derive(Clone, PartialEq, Message)]
struct Aggregate {
    #[prost(string, repeated, tag = "1")]
    partition_keys: Vec<String>,
    #[prost(string, repeated, tag = "2")]
    explicit_hash_keys: Vec<String>,
    #[prost(message, repeated, tag = "3")]
    parts: Vec<Part>,
}

#[derive(Clone, PartialEq, Message)]
struct Part {
    // Required in the original; optional here: a missing index is noticed rather than read as 0.
    #[prost(uint64, optional, tag = "1")]
    partition_key: Option<u64>,
    #[prost(uint64, optional, tag = "2")]
    explicit_hash_key: Option<u64>,
    #[prost(bytes = "bytes", optional, tag = "3")]
    data: Option<Bytes>,
}

/// A record of Kinesis after unpacking.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Unpacked {
    /// Not aggregated (or not readable as such): itself.
    Plain(Record),
    /// The sorted parts, and their number before sorting.
    Parts(Sorted<Record>, u64),
}

/// Takes `record` apart if it is aggregated. Without `range`, no part counts as misplaced.
pub(crate) fn unpack(record: Record, range: Option<HashRange>, misplaced: Misplaced) -> Unpacked {
    let Some(aggregate) = parse(&record.data) else {
        return Unpacked::Plain(record);
    };
    let Some(parts) = split(&record, aggregate) else {
        tracing::warn!(
            shard = %record.shard, position = %record.position,
            "an aggregated record is damaged and cannot be split; handing it over as one record"
        );
        return Unpacked::Plain(record);
    };
    let count = parts.len() as u64;
    Unpacked::Parts(misplaced.sort(parts, range, hash_of), count)
}

fn parse(data: &Bytes) -> Option<Aggregate> {
    if !data.starts_with(&MAGIC) || data.len() <= MAGIC.len() + MD5_LEN {
        return None;
    }
    let body = data.slice(MAGIC.len()..data.len() - MD5_LEN);
    let sum = Md5::digest(&body);
    if sum.as_slice() != &data[data.len() - MD5_LEN..] {
        return None;
    }
    Aggregate::decode(body).ok()
}

/// All parts of an aggregated record, in order, to whichever shards they belong. Absent: the record is none, or is damaged.
pub fn parts(record: &Record) -> Option<Vec<Record>> {
    split(record, parse(&record.data)?)
}

fn split(whole: &Record, aggregate: Aggregate) -> Option<Vec<Record>> {
    let partition_keys: Vec<Arc<str>> = aggregate.partition_keys.into_iter().map(Arc::from).collect();
    let mut hash_keys = Vec::with_capacity(aggregate.explicit_hash_keys.len());
    for text in &aggregate.explicit_hash_keys {
        // Unused entries may hold any text, as in the original.
        hash_keys.push(text.parse::<HashKey>().ok());
    }
    let mut parts = Vec::with_capacity(aggregate.parts.len());
    for (sub, part) in aggregate.parts.into_iter().enumerate() {
        let partition_key = partition_keys.get(usize::try_from(part.partition_key?).ok()?)?.clone();
        let explicit_hash_key = match part.explicit_hash_key {
            None => None,
            Some(index) => Some((*hash_keys.get(usize::try_from(index).ok()?)?)?),
        };
        let mut record = whole.clone();
        record.position.sub = sub as u64;
        record.partition_key = partition_key;
        record.explicit_hash_key = explicit_hash_key;
        record.data = part.data?;
        record.aggregated = true;
        parts.push(record);
    }
    Some(parts)
}

/// A record's hash key: the hash key decides the record's shard.
pub fn hash_of(record: &Record) -> HashKey {
    record
        .explicit_hash_key
        .unwrap_or_else(|| HashKey(u128::from_be_bytes(Md5::digest(record.partition_key.as_bytes()).into())))
}

#[cfg(test)]
#[path = "kpl_tests.rs"]
pub(crate) mod tests;
