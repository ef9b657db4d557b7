//! From items to rows.

use super::{LEASE, name, sentinel};
use crate::ids::{LeaseKey, ShardId, WorkerId};
use crate::position::{Checkpoint, Position};
use crate::row::{LeaseRow, RowRead};
use crate::shard::{HashKey, HashRange};
use crate::table::{AttributeValue, Item, to_u64};
use std::sync::Arc;

/// Kinds of item that KCL stored without `entityType` in some version, each with attributes that no lease has.
const TELLTALES: [(&str, &str); 5] = [
    ("WORKER_METRIC_STATS", "lut"),
    ("LEADER", "recordVersionNumber"),
    ("CLIENT_VERSION_MIGRATION", "cv"),
    ("TABLE_MIGRATION", "tm"),
    ("STREAM", "streamId"),
];

/// The attributes a lease is made of, found in one walk over the item: it has a dozen, and each search would be another.
#[derive(Default)]
struct Attributes<'a> {
    key: Option<&'a AttributeValue>,
    owner: Option<&'a AttributeValue>,
    old_owner: Option<&'a AttributeValue>,
    counter: Option<&'a AttributeValue>,
    switches: Option<&'a AttributeValue>,
    checkpoint: Option<&'a AttributeValue>,
    sub: Option<&'a AttributeValue>,
    parents: Option<&'a AttributeValue>,
    children: Option<&'a AttributeValue>,
    range_start: Option<&'a AttributeValue>,
    range_end: Option<&'a AttributeValue>,
    entity: Option<&'a AttributeValue>,
}

impl<'a> Attributes<'a> {
    fn of(item: &'a Item) -> Self {
        let mut found = Self::default();
        for (name, value) in item {
            let place = match name.as_ref() {
                name::KEY => &mut found.key,
                name::OWNER => &mut found.owner,
                name::OLD_OWNER => &mut found.old_owner,
                name::COUNTER => &mut found.counter,
                name::SWITCHES => &mut found.switches,
                name::CHECKPOINT => &mut found.checkpoint,
                name::SUB => &mut found.sub,
                name::PARENTS => &mut found.parents,
                name::CHILDREN => &mut found.children,
                name::RANGE_START => &mut found.range_start,
                name::RANGE_END => &mut found.range_end,
                name::ENTITY => &mut found.entity,
                _ => continue,
            };
            *place = Some(value);
        }
        found
    }
}

pub(super) fn decode(item: &Item) -> RowRead {
    let found = Attributes::of(item);
    let key = match found.key {
        Some(AttributeValue::S(key)) => LeaseKey::new(key.clone()),
        key => {
            return RowRead::Unreadable {
                key: LeaseKey::from(key.and_then(AttributeValue::as_n).unwrap_or_default()),
                detail: wrong(name::KEY, "a string", key),
            };
        }
    };
    match kind(item, &found) {
        Ok(None) => match lease(key.clone(), &found) {
            Ok(row) => RowRead::Lease(row),
            Err(detail) => RowRead::Unreadable { key, detail },
        },
        Ok(Some(kind)) => RowRead::Foreign { key, kind },
        Err(detail) => RowRead::Unreadable { key, detail },
    }
}

/// What an item calls itself or can only be; absent for a lease.
fn kind(item: &Item, found: &Attributes<'_>) -> Result<Option<String>, String> {
    match found.entity {
        Some(AttributeValue::S(kind)) if **kind == *LEASE => Ok(None),
        Some(AttributeValue::S(kind)) => Ok(Some(kind.to_string())),
        None if found.checkpoint.is_some() || found.counter.is_some() => Ok(None),
        None => Ok(TELLTALES
            .iter()
            .find(|(_, attribute)| item.contains_key(*attribute))
            .map(|(kind, _)| (*kind).to_string())),
        entity => Err(wrong(name::ENTITY, "a string", entity)),
    }
}

fn lease(key: LeaseKey, found: &Attributes<'_>) -> Result<LeaseRow, String> {
    Ok(LeaseRow {
        key,
        owner: text(name::OWNER, found.owner)?.cloned().map(WorkerId::new),
        handing_over: text(name::OLD_OWNER, found.old_owner)?
            .cloned()
            .map(WorkerId::new),
        counter: required(name::COUNTER, found.counter)?,
        switches: required(name::SWITCHES, found.switches)?,
        checkpoint: checkpoint(found)?,
        parents: shards(name::PARENTS, found.parents)?,
        children: shards(name::CHILDREN, found.children)?,
        range: range(found)?,
    })
}

fn checkpoint(found: &Attributes<'_>) -> Result<Checkpoint, String> {
    let text = found.checkpoint.and_then(AttributeValue::as_s);
    Ok(match text {
        Some(sentinel::TRIM_HORIZON) => Checkpoint::TrimHorizon,
        Some(sentinel::LATEST) => Checkpoint::Latest,
        Some(sentinel::AT_TIMESTAMP) => Checkpoint::AtTimestamp,
        Some(sentinel::SHARD_END) => Checkpoint::ShardEnd,
        _ => {
            let expected = "a sequence number, TRIM_HORIZON, LATEST, AT_TIMESTAMP or SHARD_END";
            let sequence = text
                .and_then(|text| text.parse().ok())
                .ok_or_else(|| wrong(name::CHECKPOINT, expected, found.checkpoint))?;
            let sub = number(name::SUB, found.sub)?.unwrap_or(0);
            Checkpoint::At(Position { sequence, sub })
        }
    })
}

fn range(found: &Attributes<'_>) -> Result<Option<HashRange>, String> {
    let bound = |name, found| -> Result<Option<HashKey>, String> {
        text(name, found)?
            .map(|text| {
                text.parse()
                    .map_err(|_| wrong(name, "a decimal below 2^128", found))
            })
            .transpose()
    };
    let start = bound(name::RANGE_START, found.range_start)?;
    let end = bound(name::RANGE_END, found.range_end)?;
    Ok(match (start, end) {
        (Some(start), Some(end)) if start <= end => Some(HashRange { start, end }),
        _ => None,
    })
}

/// A string; an empty one counts as absent.
fn text<'a>(name: &'static str, found: Option<&'a AttributeValue>) -> Result<Option<&'a Arc<str>>, String> {
    match found {
        None => Ok(None),
        Some(AttributeValue::S(text)) => Ok(Some(text).filter(|text| !text.is_empty())),
        found => Err(wrong(name, "a string", found)),
    }
}

fn number(name: &'static str, found: Option<&AttributeValue>) -> Result<Option<u64>, String> {
    if found.is_none() {
        return Ok(None);
    }
    match found.and_then(AttributeValue::as_n).and_then(to_u64) {
        Some(number) => Ok(Some(number)),
        None => Err(wrong(name, "a whole number from 0 to 2^64 - 1", found)),
    }
}

fn required(name: &'static str, found: Option<&AttributeValue>) -> Result<u64, String> {
    number(name, found)?.ok_or_else(|| wrong(name, "a whole number", None))
}

fn shards(name: &'static str, found: Option<&AttributeValue>) -> Result<Vec<ShardId>, String> {
    match found {
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
