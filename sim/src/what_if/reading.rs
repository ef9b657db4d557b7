//! From AWS's answers to a world's beginning: shards numbered densely, and all names of shards changed to match.

use crate::names::number;
use crate::start::{GivenRow, GivenShard, MOST, ShardState, Start, set_checkpoint};
use leasehold_engine::format::{Format, LeaseFormat as _};
use leasehold_engine::ids::ShardId;
use leasehold_engine::internals::sync::Lineage;
use leasehold_engine::position::{Checkpoint, Position, SequenceNumber};
use leasehold_engine::row::{LeaseRow, RowRead};
use leasehold_engine::shard::{HashRange, Shard};
use leasehold_engine::table::{AttributeValue, Item};
use leasehold_local_aws::kinesis::{SequenceNumber as FakeSequence, SequenceParts, ShardIndex};
use std::collections::{BTreeMap, BTreeSet};

/// The reason against a beginning, as a sentence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unusable {
    /// An error in the list of shards.
    Shards(String),
    /// An error in the table.
    Table(String),
}

/// A checkpoint number without a record in the stream.
const NOWHERE: u64 = 0;

impl Start {
    /// The beginning described by a listing and the rows of a table.
    ///
    /// Shards named by parents or leases but not listed count as trimmed. If a lease's checkpoint is no number of its
    /// shard, the lease keeps a checkpoint without a record.
    ///
    /// # Errors
    /// If the listing is inconsistent or incomplete, or if the rows do not form one table of this format.
    pub fn of(format: Format, listing: &[Shard], items: Vec<Item>) -> Result<Self, Unusable> {
        let lineage = Lineage::new(listing);
        lineage.check().map_err(|error| Unusable::Shards(error.to_string()))?;
        let open: Vec<Shard> = lineage.shards().filter(|shard| shard.is_open()).cloned().collect();
        Lineage::new(&open)
            .check_coverage()
            .map_err(|error| Unusable::Shards(format!("of the open shards: {error}")))?;
        let rows = keyed(format, items)?;
        let trimmed = trimmed(&lineage, &rows);
        if lineage.len() + trimmed.len() > MOST || rows.len() > MOST {
            let found = lineage.len() + trimmed.len();
            return Err(Unusable::Shards(format!(
                "expected no more than {MOST} shards and {MOST} rows, found {found} and {}",
                rows.len()
            )));
        }
        let listed = lineage.ancestors_first().iter().map(|n| &lineage.shard(*n).id);
        let order: Vec<&ShardId> = trimmed.keys().chain(listed).collect();
        let numbers: BTreeMap<&str, u32> = order.iter().zip(0..).map(|(id, n)| (id.as_str(), n)).collect();
        let mut shards: Vec<GivenShard> = trimmed
            .iter()
            .map(|(id, range)| GivenShard {
                name: id.to_string(),
                parents: Vec::new(),
                range: *range,
                state: ShardState::Trimmed,
            })
            .collect();
        for n in lineage.ancestors_first() {
            let shard = lineage.shard(*n);
            let mut parents: Vec<u32> = shard.parents().map(|parent| numbers[parent.as_str()]).collect();
            parents.dedup();
            shards.push(GivenShard {
                name: shard.id.to_string(),
                parents,
                range: shard.range,
                state: if shard.is_open() { ShardState::Open } else { ShardState::Closed },
            });
        }
        let renaming = Renaming { format, lineage: &lineage, numbers };
        let start =
            Self { rows: rows.into_iter().map(|(item, read)| renaming.row(item, &read)).collect(), shards };
        start.check_rows(format).map_err(Unusable::Table)?;
        start.check(format).map_err(Unusable::Shards)?;
        Ok(start)
    }
}

/// The rows with their contents. Each item of a table has a key, and keys are unique.
fn keyed(format: Format, items: Vec<Item>) -> Result<Vec<(Item, RowRead)>, Unusable> {
    let mut keys = BTreeSet::new();
    let mut rows = Vec::with_capacity(items.len());
    for (n, item) in items.into_iter().enumerate() {
        let key = item.get(format.key_name()).and_then(AttributeValue::as_s);
        let Some(key) = key.filter(|key| !key.is_empty()) else {
            return Err(Unusable::Table(format!(
                "item {} of the list: expected a row of a lease table of {format}, with the key {}, found the attributes {}",
                n + 1,
                format.key_name(),
                item.keys().take(5).map(AsRef::as_ref).collect::<Vec<&str>>().join(", ")
            )));
        };
        if !keys.insert(key.to_owned()) {
            return Err(Unusable::Table(format!(
                "item {} of the list: expected one row {key}, found a second: pages of different scans, perhaps",
                n + 1
            )));
        }
        let read = format.decode(&item);
        rows.push((item, read));
    }
    Ok(rows)
}

/// The shards named but not listed, with their hash keys as far as known.
fn trimmed(lineage: &Lineage<'_>, rows: &[(Item, RowRead)]) -> BTreeMap<ShardId, HashRange> {
    let mut found: BTreeMap<ShardId, Option<HashRange>> = BTreeMap::new();
    for shard in lineage.shards() {
        for parent in shard.parents() {
            let range = found.entry(parent.clone()).or_default();
            *range = Some(range.map_or(shard.range, |range| HashRange {
                start: range.start.min(shard.range.start),
                end: range.end.max(shard.range.end),
            }));
        }
    }
    for (_, read) in rows {
        let key = ShardId::from(read.key().as_str());
        if let RowRead::Lease(LeaseRow { parents, children, range, .. }) = read {
            for named in parents.iter().chain(children) {
                found.entry(named.clone()).or_default();
            }
            let known = found.entry(key).or_default();
            *known = range.or(*known);
        } else if number(key.as_str()).is_some() {
            found.entry(key).or_default();
        }
    }
    found.retain(|id, _| lineage.find(id).is_none());
    let whole = |(id, range): (ShardId, Option<HashRange>)| (id, range.unwrap_or(HashRange::ALL));
    found.into_iter().map(whole).collect()
}

struct Renaming<'a> {
    format: Format,
    lineage: &'a Lineage<'a>,
    numbers: BTreeMap<&'a str, u32>,
}

impl Renaming<'_> {
    fn name(&self, id: &str) -> String {
        self.numbers.get(id).map_or_else(|| id.to_owned(), |n| ShardIndex(*n).to_string())
    }

    fn row(&self, mut item: Item, read: &RowRead) -> GivenRow {
        let key_name = self.format.key_name();
        let whole = matches!(read, RowRead::Lease(_));
        for (name, value) in &mut item {
            let renamed = match value {
                _ if !whole && &**name != key_name => continue,
                AttributeValue::Ss(ids) if ids.iter().all(|id| self.numbers.contains_key(id.as_str())) => {
                    AttributeValue::Ss(ids.iter().map(|id| self.name(id)).collect())
                }
                AttributeValue::S(id) => AttributeValue::s(self.name(id)),
                _ => continue,
            };
            *value = renamed;
        }
        let key = read.key().as_str();
        let RowRead::Lease(row) = read else {
            return GivenRow { item, through: None };
        };
        let Checkpoint::At(position) = row.checkpoint else {
            set_checkpoint(self.format, &mut item, row, row.checkpoint);
            return GivenRow { item, through: None };
        };
        let through = match self.lineage.find(&ShardId::from(key)) {
            Some(n) => share(self.lineage.shard(n), position.sequence),
            // A trimmed shard is gone, whatever its checkpoint.
            None => Some(500),
        };
        set_checkpoint(self.format, &mut item, row, Checkpoint::At(Position::of(NOWHERE.into())));
        GivenRow { item, through }
    }
}

/// The place of a number in its shard, in thousandths; none if the number is outside the shard. For an open shard, the
/// answer is the middle.
fn share(shard: &Shard, at: SequenceNumber) -> Option<u32> {
    if at < shard.starting || shard.ending.is_some_and(|ending| at > ending) {
        return None;
    }
    let Some(ending) = shard.ending else {
        return Some(500);
    };
    // The largest part of a number counts records, and an ending has the greatest count possible: the time part is a
    // better measure.
    let time = |number: SequenceNumber| {
        let parts: Option<SequenceParts> = FakeSequence::from_words(number.words()).parts();
        parts.map(|parts| parts.time_secs)
    };
    Some(match (time(shard.starting), time(at), time(ending)) {
        (Some(from), Some(at), Some(to)) if from < to => {
            (at.saturating_sub(from).min(to - from) * 1_000 / (to - from)) as u32
        }
        _ => 500,
    })
}
