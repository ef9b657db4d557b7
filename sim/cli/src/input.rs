//! Reads output of the AWS command line as shards and rows.

use crate::exit::Failure;
use leasehold_engine::fleet::FleetWorker;
use leasehold_engine::format::{Kcl, LeaseFormat as _};
use leasehold_engine::shard::{HashKey, HashRange, Shard};
use leasehold_engine::table::{AttributeValue, Item};
use leasehold_local_aws::dynamo::json::parse_item;
use serde::Deserialize;
use serde_json::Value;
use std::path::Path;

/// The documents of a file: one document, several in a row, or an array of documents.
fn documents(path: &Path) -> Result<Vec<Value>, Failure> {
    let name = path.display();
    let text = std::fs::read_to_string(path)
        .map_err(|error| Failure::unusable(format!("expected a readable text file, but {name}: {error}")))?;
    let mut found = Vec::new();
    for document in serde_json::Deserializer::from_str(&text).into_iter::<Value>() {
        match document {
            Ok(Value::Array(several)) => found.extend(several),
            Ok(one) => found.push(one),
            Err(error) => {
                return Err(Failure::unusable(format!(
                    "{name}: expected JSON as the AWS command line prints it, found: {error}"
                )));
            }
        }
    }
    if found.is_empty() {
        return Err(Failure::unusable(format!(
            "{name}: expected JSON as the AWS command line prints it, found nothing"
        )));
    }
    Ok(found)
}

/// The lists named `list` in all documents of a file. Entries may also stand in the file without a list around them.
fn entries(path: &Path, list: &str, mark: &str) -> Result<Vec<Value>, Failure> {
    let mut found = Vec::new();
    for document in documents(path)? {
        match document {
            Value::Object(mut object) => match object.remove(list) {
                Some(Value::Array(several)) => found.extend(several),
                None if object.contains_key(mark) => found.push(Value::Object(object)),
                _ => {
                    return Err(Failure::unusable(format!(
                        "{}: expected an object with a list {list:?}, found one with {:?}",
                        path.display(),
                        object.keys().take(5).collect::<Vec<_>>()
                    )));
                }
            },
            other => {
                return Err(Failure::unusable(format!(
                    "{}: expected objects with a list {list:?}, found {}",
                    path.display(),
                    other.to_string().chars().take(40).collect::<String>()
                )));
            }
        }
    }
    Ok(found)
}

/// The failure caused by entry `n` of a list, counted from 0.
fn refused(path: &Path, what: &str, n: usize, detail: &str) -> Failure {
    Failure::unusable(format!("{}: {what} {} of the list: {detail}", path.display(), n + 1))
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct ShardText {
    shard_id: String,
    parent_shard_id: Option<String>,
    adjacent_parent_shard_id: Option<String>,
    hash_key_range: RangeText,
    sequence_number_range: SequenceText,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct RangeText {
    starting_hash_key: String,
    ending_hash_key: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct SequenceText {
    starting_sequence_number: String,
    ending_sequence_number: Option<String>,
}

/// The shards of a file.
pub(super) fn shards(path: &Path) -> Result<Vec<Shard>, Failure> {
    let entries = entries(path, "Shards", "ShardId")?;
    let shard = |(n, entry): (usize, Value)| {
        let refused = |detail: String| refused(path, "shard", n, &detail);
        let text: ShardText = serde_json::from_value(entry).map_err(|error| refused(error.to_string()))?;
        let key = |key: &str| {
            key.parse::<HashKey>()
                .map_err(|_| refused(format!("expected a hash key below 2^128, found {key:?}")))
        };
        let number = |number: &str| {
            number.parse().map_err(|_| refused(format!("expected a sequence number, found {number:?}")))
        };
        Ok(Shard {
            id: text.shard_id.as_str().into(),
            parent: text.parent_shard_id.as_deref().map(Into::into),
            adjacent_parent: text.adjacent_parent_shard_id.as_deref().map(Into::into),
            range: HashRange {
                start: key(&text.hash_key_range.starting_hash_key)?,
                end: key(&text.hash_key_range.ending_hash_key)?,
            },
            starting: number(&text.sequence_number_range.starting_sequence_number)?,
            ending: text.sequence_number_range.ending_sequence_number.as_deref().map(number).transpose()?,
        })
    };
    entries.into_iter().enumerate().map(shard).collect()
}

/// The raw rows of a lease table with this hash key.
pub(super) fn items(path: &Path, key_name: &str) -> Result<Vec<Item>, Failure> {
    let entries = entries(path, "Items", key_name)?;
    let item = |(n, entry): (usize, Value)| {
        let refused = |detail: String| refused(path, "item", n, &detail);
        let item = parse_item(&entry).map_err(|error| refused(error.message.into_owned()))?;
        if item.get(key_name).and_then(AttributeValue::as_s).is_none() {
            let names: Vec<&str> = item.keys().take(5).map(AsRef::as_ref).collect();
            return Err(refused(format!(
                "expected a row with the string {key_name} as its key, found the attributes {}; name the table's format with \
                 --format",
                names.join(", ")
            )));
        }
        Ok(item)
    };
    entries.into_iter().enumerate().map(item).collect()
}

/// A worker's report without content, at a time in whole seconds since 1970.
pub(super) fn heartbeat(worker: &str, at: i64) -> FleetWorker {
    FleetWorker { id: worker.into(), at, ours: false, one_table: false, metrics: Vec::new() }
}

/// The attribute of KCL 3's worker metrics with the time of the last report, in whole seconds.
const LAST_UPDATE: &str = "lut";
/// The entity type of worker metrics. In a table of their own, some versions of KCL leave it out.
const METRICS: &str = "WORKER_METRIC_STATS";

/// The worker metrics of a file: of KCL 3's metrics table, or of a lease table with rows of other kinds.
pub(super) fn heartbeats(path: &Path) -> Result<Vec<FleetWorker>, Failure> {
    let entries = entries(path, "Items", LAST_UPDATE)?;
    let mut found = Vec::new();
    for (n, entry) in entries.iter().enumerate() {
        let refused = |detail: String| refused(path, "item", n, &detail);
        let item = parse_item(entry).map_err(|error| refused(error.message.into_owned()))?;
        let kind = item.get("entityType").and_then(AttributeValue::as_s);
        let is_metrics = kind.map_or_else(|| item.contains_key(LAST_UPDATE), |kind| kind == METRICS);
        if !is_metrics {
            continue;
        }
        let name = item.get("wid").or_else(|| item.get(Kcl.key_name()));
        let worker = name.and_then(AttributeValue::as_s).ok_or_else(|| {
            refused("expected a worker's name as the string wid or leaseKey, found none".into())
        })?;
        let seconds = item
            .get(LAST_UPDATE)
            .and_then(AttributeValue::as_n)
            .and_then(|seconds| seconds.parse::<u32>().ok())
            .ok_or_else(|| {
                refused(format!(
                    "expected the time of the last report of {worker} as the number {LAST_UPDATE}, in seconds since 1970"
                ))
            })?;
        found.push(heartbeat(worker, seconds.into()));
    }
    if found.is_empty() && !entries.is_empty() {
        return Err(Failure::unusable(format!(
            "{}: expected worker metrics, with the time of the last report as {LAST_UPDATE}, found none in {} items",
            path.display(),
            entries.len()
        )));
    }
    Ok(found)
}
