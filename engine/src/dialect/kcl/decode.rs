//! From items to rows.

use super::{LEASE, name, sentinel};
use crate::ids::{LeaseKey, ShardId, WorkerId};
use crate::position::{Checkpoint, Position};
use crate::row::{LeaseRow, RowRead};
use crate::shard::{HashKey, HashRange};
use crate::table::{AttributeValue, Item, to_u64};

/// Kinds of item that KCL stored without `entityType` in some version, each with attributes that no lease has.
const TELLTALES: [(&str, &str); 5] = [
    ("WORKER_METRIC_STATS", "lut"),
    ("LEADER", "recordVersionNumber"),
    ("CLIENT_VERSION_MIGRATION", "cv"),
    ("TABLE_MIGRATION", "tm"),
    ("STREAM", "streamId"),
];

pub(super) fn decode(item: &Item) -> RowRead {
    let key = match item.get(name::KEY) {
        Some(AttributeValue::S(key)) => LeaseKey::from(key.as_str()),
        found => {
            return RowRead::Unreadable {
                key: LeaseKey::from(found.and_then(AttributeValue::as_n).unwrap_or_default()),
                detail: wrong(name::KEY, "a string", found),
            };
        }
    };
    match kind(item) {
        Ok(None) => match lease(key.clone(), item) {
            Ok(row) => RowRead::Lease(row),
            Err(detail) => RowRead::Unreadable { key, detail },
        },
        Ok(Some(kind)) => RowRead::Foreign { key, kind },
        Err(detail) => RowRead::Unreadable { key, detail },
    }
}

/// What an item calls itself or can only be; absent for a lease.
fn kind(item: &Item) -> Result<Option<String>, String> {
    match item.get(name::ENTITY) {
        Some(AttributeValue::S(kind)) if kind == LEASE => Ok(None),
        Some(AttributeValue::S(kind)) => Ok(Some(kind.clone())),
        None if item.contains_key(name::CHECKPOINT) || item.contains_key(name::COUNTER) => Ok(None),
        None => Ok(TELLTALES
            .iter()
            .find(|(_, attribute)| item.contains_key(*attribute))
            .map(|(kind, _)| (*kind).to_string())),
        found => Err(wrong(name::ENTITY, "a string", found)),
    }
}

fn lease(key: LeaseKey, item: &Item) -> Result<LeaseRow, String> {
    Ok(LeaseRow {
        key,
        owner: text(item, name::OWNER)?.map(WorkerId::from),
        handing_over: text(item, name::OLD_OWNER)?.map(WorkerId::from),
        counter: required(item, name::COUNTER)?,
        switches: required(item, name::SWITCHES)?,
        checkpoint: checkpoint(item)?,
        parents: shards(item, name::PARENTS)?,
        children: shards(item, name::CHILDREN)?,
        range: range(item)?,
    })
}

fn checkpoint(item: &Item) -> Result<Checkpoint, String> {
    let found = item.get(name::CHECKPOINT);
    let text = found.and_then(AttributeValue::as_s);
    Ok(match text {
        Some(sentinel::TRIM_HORIZON) => Checkpoint::TrimHorizon,
        Some(sentinel::LATEST) => Checkpoint::Latest,
        Some(sentinel::AT_TIMESTAMP) => Checkpoint::AtTimestamp,
        Some(sentinel::SHARD_END) => Checkpoint::ShardEnd,
        _ => {
            let expected = "a sequence number, TRIM_HORIZON, LATEST, AT_TIMESTAMP or SHARD_END";
            let sequence = text
                .and_then(|text| text.parse().ok())
                .ok_or_else(|| wrong(name::CHECKPOINT, expected, found))?;
            let sub = number(item, name::SUB)?.unwrap_or(0);
            Checkpoint::At(Position { sequence, sub })
        }
    })
}

fn range(item: &Item) -> Result<Option<HashRange>, String> {
    let bound = |name| -> Result<Option<HashKey>, String> {
        text(item, name)?
            .map(|text| {
                text.parse()
                    .map_err(|_| wrong(name, "a decimal below 2^128", item.get(name)))
            })
            .transpose()
    };
    Ok(match (bound(name::RANGE_START)?, bound(name::RANGE_END)?) {
        (Some(start), Some(end)) if start <= end => Some(HashRange { start, end }),
        _ => None,
    })
}

/// A string; an empty one counts as absent.
fn text<'a>(item: &'a Item, name: &'static str) -> Result<Option<&'a str>, String> {
    match item.get(name) {
        None => Ok(None),
        Some(AttributeValue::S(text)) => Ok(Some(text.as_str()).filter(|text| !text.is_empty())),
        found => Err(wrong(name, "a string", found)),
    }
}

fn number(item: &Item, name: &'static str) -> Result<Option<u64>, String> {
    let found = item.get(name);
    if found.is_none() {
        return Ok(None);
    }
    match found.and_then(AttributeValue::as_n).and_then(to_u64) {
        Some(number) => Ok(Some(number)),
        None => Err(wrong(name, "a whole number from 0 to 2^64 - 1", found)),
    }
}

fn required(item: &Item, name: &'static str) -> Result<u64, String> {
    number(item, name)?.ok_or_else(|| wrong(name, "a whole number", None))
}

fn shards(item: &Item, name: &'static str) -> Result<Vec<ShardId>, String> {
    match item.get(name) {
        None => Ok(Vec::new()),
        Some(AttributeValue::Ss(ids)) => Ok(ids.iter().map(|id| ShardId::from(id.as_str())).collect()),
        found => Err(wrong(name, "a set of strings", found)),
    }
}

/// The sentence for a malformed attribute. Long values are cut: they are there to be recognised.
fn wrong(name: &str, expected: &str, found: Option<&AttributeValue>) -> String {
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
