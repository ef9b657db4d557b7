//! From items to rows, in the reading of KCL for Java.
//!
//! KCL asks the value of an attribute for its string, or its set of strings. A value of another type has neither. So
//! NULL, which boto3 writes for None, stands for an absent attribute, and each type but a string or a set does, too.
//! Numbers differ: KCL reads no row with another type in place of a number, and our reader agrees. KCL does not read a
//! row without a number; our reader takes the missing number for 0.

use super::super::reading::{identity, moment, number, range, wrong};
use super::{LEASE, name, sentinel};
use crate::ids::{LeaseKey, ShardId, WorkerId};
use crate::position::{Checkpoint, Position};
use crate::row::{HandsOver, LeaseRow, RowRead};
use crate::stream_id::split_key;
use crate::table::{AttributeValue, Item};
use std::collections::BTreeSet;
use std::sync::Arc;

/// Kinds of item that KCL stored without `entityType` in some version, each with an attribute that no lease has.
const TELLTALES: [(&str, &str); 5] = [
    ("WORKER_METRIC_STATS", "lut"),
    ("LEADER", "recordVersionNumber"),
    ("CLIENT_VERSION_MIGRATION", "cv"),
    ("TABLE_MIGRATION", "tm"),
    ("STREAM", "streamId"),
];

/// The attributes a lease is made of, found in one walk over the item: an item has a dozen attributes, and each search
/// would be a walk of its own.
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
    hands_over: Option<&'a AttributeValue>,
    next_owner: Option<&'a AttributeValue>,
    throughput: Option<&'a AttributeValue>,
    began: Option<&'a AttributeValue>,
    identity: Option<&'a AttributeValue>,
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
                name::HANDS_OVER => &mut found.hands_over,
                name::NEXT_OWNER => &mut found.next_owner,
                name::THROUGHPUT => &mut found.throughput,
                name::BEGAN => &mut found.began,
                name::IDENTITY => &mut found.identity,
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
        None => match lease(key.clone(), &found) {
            Ok(row) => RowRead::Lease(row),
            Err(detail) => RowRead::Unreadable { key, detail },
        },
        Some(kind) => {
            let says = super::fleet::decode(&key, &kind, item).map(Box::new);
            RowRead::Foreign { key, kind, says }
        }
    }
}

/// The contents of an item in a table beside the lease table. No lease is kept in such a table.
pub(super) fn decode_fleet(key_name: &'static str, item: &Item) -> RowRead {
    let key = match item.get(key_name) {
        Some(AttributeValue::S(key)) => LeaseKey::new(key.clone()),
        key => {
            return RowRead::Unreadable { key: LeaseKey::from(""), detail: wrong(key_name, "a string", key) };
        }
    };
    let named = item.get(name::ENTITY).and_then(AttributeValue::as_s);
    let kind = named.or_else(|| telltale(item)).unwrap_or_default().to_owned();
    let says = super::fleet::decode(&key, &kind, item).map(Box::new);
    RowRead::Foreign { key, kind, says }
}

/// What an item without `entityType` can only be.
fn telltale(item: &Item) -> Option<&'static str> {
    let told = TELLTALES.iter().find(|(_, attribute)| item.contains_key(*attribute));
    told.map(|(kind, _)| *kind)
}

/// The item's own name of its kind, or the only possible kind; absent for a lease.
fn kind(item: &Item, found: &Attributes<'_>) -> Option<String> {
    match string(found.entity) {
        Some(kind) if **kind == *LEASE => None,
        Some(kind) => Some(kind.to_string()),
        None if found.checkpoint.is_some() || found.counter.is_some() => None,
        None => telltale(item).map(str::to_owned),
    }
}

/// A string. A value of another type counts as absent.
fn string(found: Option<&AttributeValue>) -> Option<&Arc<str>> {
    match found {
        Some(AttributeValue::S(text)) => Some(text),
        _ => None,
    }
}

/// A worker. KCL takes an empty string for a name: an owner that matches no worker, and never renews.
fn worker(found: Option<&AttributeValue>) -> Option<WorkerId> {
    string(found).cloned().map(WorkerId::new)
}

/// Names of shards. KCL reads a set of strings alone. A list of strings, written by tools without sets, is read here,
/// too: KCL would begin the shard without its parents.
fn shards(found: Option<&AttributeValue>) -> Vec<ShardId> {
    let listed = |value: &AttributeValue| string(Some(value)).cloned().map(ShardId::new);
    match found {
        Some(AttributeValue::Ss(ids)) => ids.iter().map(|id| ShardId::from(id.as_str())).collect(),
        Some(AttributeValue::L(ids)) => {
            let ids: BTreeSet<ShardId> = ids.iter().filter_map(listed).collect();
            ids.into_iter().collect()
        }
        _ => Vec::new(),
    }
}

fn lease<'a>(key: LeaseKey, found: &Attributes<'a>) -> Result<LeaseRow, String> {
    let owner = worker(found.owner);
    let text = |found: Option<&'a AttributeValue>| found.filter(|found| found.as_s().is_some());
    let asked = found.next_owner.and_then(AttributeValue::as_s);
    let handing_over = worker(found.old_owner)
        // KCL 2.x takes a lease that is being handed over, and leaves the old owner's name in the row.
        .filter(|_| asked.is_none_or(|asked| owner.as_ref().is_some_and(|owner| owner.as_str() == asked)));
    let hands_over = hands_over(found, handing_over.as_ref().or(owner.as_ref()));
    let whole = key.clone();
    let stream = split_key(whole.as_str()).map(|(stream, _)| stream);
    Ok(LeaseRow {
        key,
        owner,
        handing_over,
        // A person's edit or another tool may leave a row without these attributes behind; the next write adds them.
        counter: number(name::COUNTER, found.counter)?.unwrap_or(0),
        switches: number(name::SWITCHES, found.switches)?.unwrap_or(0),
        checkpoint: checkpoint(found)?,
        parents: relatives(stream, shards(found.parents)),
        children: relatives(stream, shards(found.children)),
        range: range([
            (name::RANGE_START, text(found.range_start)),
            (name::RANGE_END, text(found.range_end)),
        ])?,
        hands_over,
        // An unreadable number spoils no lease: the throughput only weighs the lease.
        throughput: found
            .throughput
            .and_then(super::fleet::millionths)
            .and_then(|value| u64::try_from(value).ok()),
        began: moment(found.began),
        stream: identity(found.identity),
    })
}

/// The names of shards of a row of this stream, if the application has several: the row's attributes name shards by
/// their ids alone.
fn relatives(stream: Option<&str>, ids: Vec<ShardId>) -> Vec<ShardId> {
    match stream {
        Some(stream) => ids.iter().map(|id| ShardId::from(format!("{stream}:{id}"))).collect(),
        None => ids,
    }
}

/// Whether our own attributes name the actual owner. Any other content of the two attributes means nothing, and spoils
/// no lease.
fn hands_over(found: &Attributes<'_>, owner: Option<&WorkerId>) -> HandsOver {
    let Some(owner) = owner else { return HandsOver::No };
    let names =
        |attribute: Option<&AttributeValue>| attribute.and_then(AttributeValue::as_s) == Some(owner.as_str());
    match (names(found.hands_over), names(found.next_owner)) {
        (true, _) => HandsOver::Yes,
        (false, true) => HandsOver::Later,
        (false, false) => HandsOver::No,
    }
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

/// The attributes of every lease of KCL. KCL reads no lease without them.
pub(super) fn lacks(item: &Item) -> Vec<&'static str> {
    let needed = [name::COUNTER, name::SWITCHES];
    needed.into_iter().filter(|name| !item.contains_key(*name)).collect()
}
