//! The beginning of a world other than an empty one: a stream and its lease table, as values of a scenario.
//!
//! Shards are numbered from 0 without gaps, parents before children. The module [`what_if`](crate::what_if) makes a
//! beginning from AWS's description of a real stream and its table.

use crate::names::number;
use crate::oracles::ShardNo;
use leasehold_engine::config::InitialPosition;
use leasehold_engine::format::{Format, LeaseFormat as _};
use leasehold_engine::internals::sync;
use leasehold_engine::policy::Finished;
use leasehold_engine::position::Checkpoint;
use leasehold_engine::row::{Change, LeaseRow, RowRead};
use leasehold_engine::shard::HashRange;
use leasehold_engine::table::{Action, AttributeValue, Item};
use leasehold_local_aws::dynamo::json::{parse_item, show_item};
use leasehold_local_aws::dynamo::{CreateTable, Dynamo, DynamoConfig, KeyAttribute, KeySchema, KeyType};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::fmt::Write as _;

/// The greatest number of shards, and of rows.
pub(crate) const MOST: usize = 10_000;

/// A stream and its lease table at the beginning of a world.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Start {
    /// The shards in the order of their numbers: parents before children.
    pub shards: Vec<GivenShard>,
    /// The rows, each with a key of its own.
    #[serde(default)]
    pub rows: Vec<GivenRow>,
}

/// A shard present when a world begins.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GivenShard {
    /// The shard's name at its source.
    pub name: String,
    /// The shard's parents: none, one or two.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub parents: Vec<ShardNo>,
    /// The shard's hash keys.
    pub range: HashRange,
    /// The shard's state.
    pub state: ShardState,
}

/// The state of a shard.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ShardState {
    /// The shard takes records.
    Open,
    /// The shard takes no more records, and its records can be read.
    Closed,
    /// The shard is no longer listed, and its records are gone.
    Trimmed,
}

/// A row present when a world begins.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GivenRow {
    /// The row's item.
    #[serde(with = "item_text")]
    pub item: Item,
    /// How far into the shard the checkpoint's record is, in thousandths. The number in the item stands for the record.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub through: Option<u32>,
}

/// An item as a text in DynamoDB's JSON.
mod item_text {
    use super::{Item, parse_item, show_item};
    use serde::{Deserialize, Deserializer, Serializer, de::Error};

    pub(super) fn serialize<S: Serializer>(item: &Item, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&show_item(item).to_string())
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Item, D::Error> {
        let text = String::deserialize(deserializer)?;
        let json = serde_json::from_str(&text).map_err(D::Error::custom)?;
        parse_item(&json).map_err(|error| D::Error::custom(error.message))
    }
}

impl GivenRow {
    /// The row's primary key, in a table of this format.
    pub fn key(&self, format: Format) -> &str {
        let key = self.item.get(format.key_name());
        key.and_then(AttributeValue::as_s).unwrap_or_default()
    }
}

/// Writes another checkpoint into a row's item. Other attributes stay, except a start moment of the shard, since the
/// moment belongs to another time.
pub(crate) fn set_checkpoint(format: Format, item: &mut Item, row: &LeaseRow, checkpoint: Checkpoint) {
    let item_of = |row| match format.encode(&Change::Create(Box::new(row))).action {
        Action::Put(item) => item,
        _ => Item::new(),
    };
    let now = LeaseRow { checkpoint, began: None, ..row.clone() };
    let (before, after) = (item_of(row.clone()), item_of(now));
    for name in before.keys().filter(|name| !after.contains_key(*name)) {
        item.remove(name);
    }
    item.extend(after.into_iter().filter(|(name, value)| before.get(name) != Some(value)));
}

impl Start {
    /// Checks whether a world with a table of this format can begin with `self`.
    ///
    /// # Errors
    /// The reason against the beginning, as a sentence.
    pub fn check(&self, format: Format) -> Result<(), String> {
        if self.shards.is_empty() || self.shards.len() > MOST || self.rows.len() > MOST {
            return Err(format!(
                "expected 1 to {MOST} shards and no more than {MOST} rows, found {} and {}",
                self.shards.len(),
                self.rows.len()
            ));
        }
        let mut childless: BTreeSet<usize> = BTreeSet::new();
        for (n, shard) in self.shards.iter().enumerate() {
            let closed_before = |parent: &ShardNo| {
                let parent = self.shards[..n].get(*parent as usize);
                parent.is_some_and(|parent| parent.state != ShardState::Open)
            };
            let distinct: BTreeSet<_> = shard.parents.iter().collect();
            if !shard.parents.iter().all(closed_before)
                || shard.parents.len() > 2
                || distinct.len() < shard.parents.len()
            {
                return Err(format!("expected shard {n} to have up to two parents, closed shards before it"));
            }
            if shard.range.end < shard.range.start {
                return Err(format!(
                    "expected shard {n} to cover a hash range, found its end before its start"
                ));
            }
            for parent in &shard.parents {
                childless.remove(&(*parent as usize));
            }
            if shard.state == ShardState::Closed {
                childless.insert(n);
            }
        }
        if let Some(n) = childless.first() {
            return Err(format!(
                "{} is closed, and none of its children is listed: the list is not of all shards",
                self.shards[*n].name
            ));
        }
        let mut open: Vec<HashRange> = self.open().map(|shard| shard.range).collect();
        open.sort_unstable();
        let apart = open.windows(2).all(|pair| pair[0].end < pair[1].start);
        if !apart || !sync::holes(open.into_iter()).is_empty() {
            return Err("expected the open shards to cover the whole hash space once".into());
        }
        self.check_rows(format)
    }

    pub(crate) fn check_rows(&self, format: Format) -> Result<(), String> {
        let mut keys = BTreeSet::new();
        for row in &self.rows {
            let key = row.key(format);
            let known = number(key).is_none_or(|shard| (shard as usize) < self.shards.len());
            if key.is_empty() || !known || !keys.insert(key) {
                return Err(format!("expected rows with keys of their own, of known shards, found {key:?}"));
            }
            if row.through.is_some_and(|through| through > 1_000)
                || row.through.is_some() && number(key).is_none()
            {
                return Err(format!(
                    "expected the checkpoint of {key} at up to 1000 thousandths of its shard"
                ));
            }
        }
        match refused(&self.rows, format) {
            Some(key) => {
                Err(format!("expected rows that a table can have, found {key:?}, which DynamoDB refuses"))
            }
            None => Ok(()),
        }
    }

    fn open(&self) -> impl Iterator<Item = &GivenShard> {
        self.shards.iter().filter(|shard| shard.state == ShardState::Open)
    }

    /// Of each shard: whether the shard was processed wholly before and needs no lease. A passed shard has no lease,
    /// and a descendant has a lease. If each listed shard has a row read from the beginning, no shard was passed.
    pub(crate) fn passed(&self, format: Format, from: InitialPosition) -> Vec<bool> {
        let rows_stay = format.policies().finished != Finished::WhenRead;
        if rows_stay && from == InitialPosition::TrimHorizon {
            return vec![false; self.shards.len()];
        }
        let mut leased = vec![false; self.shards.len()];
        let mut occupied = vec![false; self.shards.len()];
        for row in &self.rows {
            if let Some(shard) = number(row.key(format)) {
                occupied[shard as usize] = true;
                leased[shard as usize] = matches!(format.decode(&row.item), RowRead::Lease(_));
            }
        }
        let mut passed = vec![false; self.shards.len()];
        for (n, shard) in self.shards.iter().enumerate().rev() {
            passed[n] &= !occupied[n];
            if leased[n] || passed[n] {
                shard.parents.iter().for_each(|parent| passed[*parent as usize] = true);
            }
        }
        passed
    }

    /// A sentence about shards by number, with the shards' names at their source.
    pub fn with_names(&self, sentence: &str) -> String {
        let mut text = sentence.to_owned();
        let mut told = BTreeSet::new();
        for after in sentence.split("hard ").skip(1) {
            let digits = after.split(|c: char| !c.is_ascii_digit()).next().unwrap_or_default();
            if let Ok(shard) = digits.parse::<usize>()
                && let Some(given) = self.shards.get(shard)
                && told.insert(shard)
            {
                let _ = write!(text, "; shard {shard} is {}", given.name);
            }
        }
        text
    }
}

/// The key of the first row impossible in a table.
fn refused(rows: &[GivenRow], format: Format) -> Option<&str> {
    const TABLE: &str = "given";
    let partition = KeyAttribute { name: format.key_name().into(), key_type: KeyType::S };
    let schema = KeySchema { partition, sort: None };
    let mut dynamo = Dynamo::new(DynamoConfig::default());
    let created = dynamo.create_table(0, &CreateTable::new(TABLE, schema));
    assert!(created.is_ok(), "an empty table can be created: {created:?}");
    let refused = |row: &&GivenRow| dynamo.operator_put(0, TABLE, &row.item).is_err();
    rows.iter().find(refused).map(|row| row.key(format))
}

/// The generation of each shard, from 0 for shards open at the trim horizon. Trimmed shards have no generation.
pub(crate) fn generations(shards: &[GivenShard]) -> Vec<u32> {
    let mut generations: Vec<u32> = Vec::with_capacity(shards.len());
    for shard in shards {
        let listed = |parent: &&ShardNo| shards[**parent as usize].state != ShardState::Trimmed;
        let above = shard.parents.iter().filter(listed);
        let above = above.map(|parent| generations[*parent as usize] + 1);
        generations.push(above.max().unwrap_or(0));
    }
    generations
}
