//! Any bytes as a record of the Kinesis Producer Library: taken apart, or left as a plain record.
//!
//! The first byte chooses the kind of the rest: the data of a record, the body of an aggregate (framed here), or the
//! parts of an aggregate, written as protobuf by this file. For written parts, the expected result is known. For other
//! inputs, the resulting parts are numbered without gaps, and stay the same after packing and taking apart again.
#![no_main]

use arbitrary::{Arbitrary, Result, Unstructured};
use leasehold::Record;
use leasehold::internals::{hash_of, parts};
use leasehold_engine::position::Position;
use leasehold_engine::shard::HashKey;
use libfuzzer_sys::fuzz_target;
use md5::{Digest, Md5};

const TEXTS: [&str; 5] = ["", "k", "key", "ä", "00000000000000000000000000000000"];
/// Hash keys as texts, with their values.
const HASHES: [(&str, Option<u128>); 9] = [
    ("0", Some(0)),
    ("5", Some(5)),
    ("170141183460469231731687303715884105728", Some(1 << 127)),
    ("340282366920938463463374607431768211455", Some(u128::MAX)),
    ("340282366920938463463374607431768211456", None),
    ("-1", None),
    ("", None),
    ("0x10", None),
    ("1 ", None),
];

/// A part: the places of its keys in the tables, and its data. Absent fields are not written.
#[derive(Debug, Arbitrary)]
struct Part {
    key: Option<u8>,
    hash: Option<u8>,
    data: Option<Vec<u8>>,
    tagged: bool,
}

/// What must come out: partition key, hash key, data.
type Expected = Vec<(String, Option<u128>, Vec<u8>)>;

fn varint(mut number: u64, out: &mut Vec<u8>) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

/// A field of bytes.
fn field(tag: u64, bytes: &[u8], out: &mut Vec<u8>) {
    varint(tag << 3 | 2, out);
    varint(bytes.len() as u64, out);
    out.extend_from_slice(bytes);
}

fn sealed(body: &[u8]) -> Vec<u8> {
    [&[0xF3, 0x89, 0x9A, 0xC2], body, &Md5::digest(body)[..]].concat()
}

fn message(part: &Part) -> Vec<u8> {
    let mut out = Vec::new();
    for (tag, index) in [(1, part.key), (2, part.hash)] {
        if let Some(index) = index {
            varint(tag << 3, &mut out);
            varint(u64::from(index), &mut out);
        }
    }
    if let Some(data) = &part.data {
        field(3, data, &mut out);
    }
    if part.tagged {
        // A tag of the record, ignored by all consumers.
        field(4, &[0x0a, 1, b't'], &mut out);
    }
    out
}

/// The body of an aggregate, and the expected result: none for a damaged body.
fn drawn(u: &mut Unstructured<'_>) -> Result<(Vec<u8>, Option<Expected>)> {
    let mut body = Vec::new();
    let (mut keys, mut hashes) = (Vec::new(), Vec::new());
    for _ in 0..u.int_in_range(0..=3)? {
        keys.push(*u.choose(&TEXTS)?);
    }
    for _ in 0..u.int_in_range(0..=3)? {
        hashes.push(*u.choose(&HASHES)?);
    }
    let mut packed: Vec<Part> = Vec::new();
    for _ in 0..u.int_in_range(0..=6)? {
        let mut part = Part::arbitrary(u)?;
        // Most places are within the tables, and most parts are whole.
        if !keys.is_empty() && u.ratio(7, 8)? {
            part.key = Some(u.choose_index(keys.len())? as u8);
        }
        if u.ratio(7, 8)? {
            part.data.get_or_insert_default();
            part.hash = match hashes.len() {
                0 => None,
                many => part.hash.map(|hash| hash % many as u8),
            };
        }
        packed.push(part);
    }
    keys.iter().for_each(|key| field(1, key.as_bytes(), &mut body));
    // The order of fields with different numbers has no meaning.
    let tables_last: bool = u.arbitrary()?;
    let mut tables = Vec::new();
    hashes.iter().for_each(|(text, _)| field(2, text.as_bytes(), &mut tables));
    if !tables_last {
        body.append(&mut tables);
    }
    packed.iter().for_each(|part| field(3, &message(part), &mut body));
    body.append(&mut tables);
    let expected = |part: &Part| {
        let key = *keys.get(usize::from(part.key?))?;
        let hash = match part.hash {
            None => None,
            Some(at) => Some(hashes.get(usize::from(at))?.1?),
        };
        Some((key.to_owned(), hash, part.data.clone()?))
    };
    let expected = packed.iter().map(expected).collect();
    // An aggregate needs at least one byte between magic and sum.
    Ok(if body.is_empty() { (body, None) } else { (body, expected) })
}

fn record(data: Vec<u8>) -> Record {
    Record::new("shardId-0".into(), Position::of(7.into()), "outer".into(), data.into())
}

/// The parts of a record. Each part has the place of its record, and a number.
fn taken_apart(data: Vec<u8>) -> Option<Expected> {
    let record = record(data);
    let parts = parts(&record)?;
    for (n, part) in parts.iter().enumerate() {
        let expected = Position { sub: n as u64, ..record.position };
        assert_eq!((part.position, &part.shard), (expected, &record.shard));
        assert!(part.aggregated && part.arrival == record.arrival);
        let own = || u128::from_be_bytes(Md5::digest(part.partition_key.as_bytes()).into());
        let hash = part.explicit_hash_key.map_or_else(own, |HashKey(hash)| hash);
        assert_eq!(hash_of(part), HashKey(hash), "{part:?}");
    }
    let said = |part: Record| {
        let hash = part.explicit_hash_key.map(|HashKey(hash)| hash);
        (part.partition_key.to_string(), hash, part.data.to_vec())
    };
    Some(parts.into_iter().map(said).collect())
}

/// The same parts, each with tables of its own.
fn packed(parts: &Expected) -> Vec<u8> {
    let mut body = Vec::new();
    let mut hashes = 0;
    for (n, (key, hash, data)) in parts.iter().enumerate() {
        field(1, key.as_bytes(), &mut body);
        let mut part = Vec::new();
        varint(1 << 3, &mut part);
        varint(n as u64, &mut part);
        if let Some(hash) = hash {
            field(2, hash.to_string().as_bytes(), &mut body);
            varint(2 << 3, &mut part);
            varint(hashes, &mut part);
            hashes += 1;
        }
        field(3, data, &mut part);
        field(3, &part, &mut body);
    }
    sealed(&body)
}

fuzz_target!(|bytes: &[u8]| {
    let [kind, rest @ ..] = bytes else {
        return;
    };
    let found = match kind % 4 {
        0 => taken_apart(rest.to_vec()),
        1 => taken_apart(sealed(rest)),
        kind => {
            let Ok((body, expected)) = drawn(&mut Unstructured::new(rest)) else {
                return;
            };
            let mut data = sealed(&body);
            if kind == 2 {
                let found = taken_apart(data);
                assert_eq!(found, expected);
                found
            } else {
                // One byte of the sum is wrong.
                let at = data.len() - 1 - usize::from(rest.len() as u8 % 16);
                data[at] ^= 1;
                assert_eq!(taken_apart(data), None);
                return;
            }
        }
    };
    if let Some(parts) = found.filter(|parts| !parts.is_empty()) {
        assert_eq!(taken_apart(packed(&parts)).as_ref(), Some(&parts));
    }
});
