//! Attributes of items as values, or a sentence with the expected and the found value.

use crate::ids::{LeaseKey, ShardId};
use crate::row::{LeaseRow, RowRead};
use crate::shard::{HashKey, HashRange};
use crate::stream_identity::StreamIdentity;
use crate::table::{AttributeValue, Condition, Item, to_u64};
use crate::time::Wall;
use std::sync::Arc;

/// The first characters of every shard name. Tables without kinds of rows tell leases from rows of unrelated programs by
/// this prefix.
const SHARD_PREFIX: &str = "shardId-";

/// The attribute, unless its value is NULL: programs of Ruby and of boto3 write NULL for a missing value.
pub(super) fn get<'a>(item: &'a Item, name: &str) -> Option<&'a AttributeValue> {
    item.get(name).filter(|value| **value != AttributeValue::Null)
}

/// An item of a table whose keys are the names of shards.
pub(super) fn keyed(
    key_name: &'static str, item: &Item, lease: impl FnOnce(LeaseKey) -> Result<LeaseRow, String>,
) -> RowRead {
    match item.get(key_name) {
        Some(AttributeValue::S(key)) => {
            let key = LeaseKey::new(key.clone());
            if !key.as_str().starts_with(SHARD_PREFIX) {
                let kind = "an item whose key is no shard's".to_owned();
                let says = None;
                return RowRead::Foreign { key, kind, says };
            }
            match lease(key.clone()) {
                Ok(row) => RowRead::Lease(row),
                Err(detail) => RowRead::Unreadable { key, detail },
            }
        }
        key => RowRead::Unreadable {
            key: LeaseKey::from(key.and_then(AttributeValue::as_n).unwrap_or_default()),
            detail: wrong(key_name, "a string", key),
        },
    }
}

/// A string; an empty one counts as absent.
pub(super) fn text<'a>(
    name: &'static str, found: Option<&'a AttributeValue>,
) -> Result<Option<&'a Arc<str>>, String> {
    match found {
        None => Ok(None),
        Some(AttributeValue::S(text)) => Ok(Some(text).filter(|text| !text.is_empty())),
        found => Err(wrong(name, "a string", found)),
    }
}

/// The stream that a row names. An unreadable name means nothing, and spoils no lease.
pub(super) fn identity(found: Option<&AttributeValue>) -> Option<StreamIdentity> {
    match found {
        Some(AttributeValue::S(text)) => StreamIdentity::read(text),
        _ => None,
    }
}

/// The stream's name in a row.
pub(super) fn naming(stream: Option<&StreamIdentity>) -> Option<AttributeValue> {
    stream.map(|stream| AttributeValue::s(stream.text()))
}

/// The attribute still names the same stream as at the read. A row read without a stream may hold an unreadable name.
pub(super) fn still_names(name: &'static str, named: Option<&StreamIdentity>) -> Option<Condition> {
    naming(named).map(|named| Condition::Equals(name.into(), named))
}

pub(super) fn number(name: &'static str, found: Option<&AttributeValue>) -> Result<Option<u64>, String> {
    if found.is_none() {
        return Ok(None);
    }
    match found.and_then(AttributeValue::as_n).and_then(to_u64) {
        Some(number) => Ok(Some(number)),
        None => Err(wrong(name, "a whole number from 0 to 2^64 - 1", found)),
    }
}

/// A moment, in ms since 1970. The attribute is ours: what cannot be read spoils no lease, and counts as absent.
pub(super) fn moment(found: Option<&AttributeValue>) -> Option<Wall> {
    let number = found.and_then(AttributeValue::as_n).and_then(to_u64)?;
    i64::try_from(number).ok().map(Wall)
}

/// A moment in a row.
pub(super) fn dated(moment: Option<Wall>) -> Option<AttributeValue> {
    moment.map(|moment| AttributeValue::n(moment.0))
}

pub(super) fn shards(name: &'static str, found: Option<&AttributeValue>) -> Result<Vec<ShardId>, String> {
    match found {
        None => Ok(Vec::new()),
        Some(AttributeValue::Ss(ids)) => Ok(ids.iter().map(|id| ShardId::from(id.as_str())).collect()),
        found => Err(wrong(name, "a set of strings", found)),
    }
}

/// The sentence for a malformed attribute. Long values are cut: a reader must only recognise the value.
pub(super) fn wrong(name: &str, expected: &str, found: Option<&AttributeValue>) -> String {
    let found = match found {
        None => "nothing".to_string(),
        Some(AttributeValue::S(text)) => {
            format!("the string {:?}", text.chars().take(60).collect::<String>())
        }
        Some(AttributeValue::N(text)) => format!("the number {}", text.chars().take(60).collect::<String>()),
        Some(other) => format!("a value of type {}", other.type_name()),
    };
    format!("{name}: expected {expected}, found {found}")
}

pub(super) fn range(
    found: [(&'static str, Option<&AttributeValue>); 2],
) -> Result<Option<HashRange>, String> {
    let bound = |name, found| -> Result<Option<HashKey>, String> {
        text(name, found)?
            .map(|text| text.parse().map_err(|_| wrong(name, "a decimal below 2^128", found)))
            .transpose()
    };
    let [(first, start), (last, end)] = found;
    Ok(match (bound(first, start)?, bound(last, end)?) {
        (Some(start), Some(end)) if start <= end => Some(HashRange { start, end }),
        _ => None,
    })
}
