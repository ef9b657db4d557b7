//! The stream: resharding, listings that lag, tokens and iterators that expire, reads that are throttled.

use super::family::family;
use super::{Chance, Setting, churns, rate, size};
use crate::draws::{Draws, Roll};
use crate::span::{micros, millis};
use serde::{Deserialize, Serialize};

/// One change of the stream's shards.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Reshard {
    /// The time, in µs.
    #[serde(with = "micros")]
    pub at: u64,
    /// The kind of the change.
    pub kind: ReshardKind,
    /// The number of the shard, modulo the number of open shards.
    pub pick: u32,
}

/// The kinds of changes of shards.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum ReshardKind {
    /// A shard becomes two shards.
    Split,
    /// A shard becomes two shards, and as soon as possible a child becomes two shards again.
    SplitTwice,
    /// Two shards become a single shard.
    Merge,
    /// All shards, by a change of the shard count: twice as many, or half.
    Mass {
        /// Twice as many, else half.
        grow: bool,
    },
}

/// The service forgets old records before they are read, and the shards closed before those records.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Trim {
    /// The time, in µs.
    #[serde(with = "micros")]
    pub at: u64,
    /// The age of forgotten records, in µs; no less than a scan interval, since a listing may be as far behind.
    #[serde(with = "micros")]
    pub keep: u64,
}

family! {
    /// All stream faults of a world.
    pub struct StreamFaults by |draws, setting|;

    /// Changes of the shards.
    reshards: Vec<Reshard> = Vec::new(), reshards(draws, setting);
    /// Records forgotten before their read.
    trims: Vec<Trim> = Vec::new(), trims(draws, setting);
    /// The length of a change.
    #[serde(rename = "update", with = "millis")]
    update_ms: i64 = 100, draws.magnitude("update", 0, 10, 5_000) as i64;
    /// The largest delay of a listing, shard by shard; 0: no delay.
    #[serde(rename = "list_lag", with = "millis")]
    list_lag_ms: i64, size(draws, "list-lag", 50, 5_000).unwrap_or(0) as i64;
    /// Life of an iterator.
    #[serde(rename = "iterator_expiry", with = "millis")]
    iterator_expiry_ms: i64 = EXPIRY_MS as i64,
        size(draws, "iterator-expiry", 1_000, 20_000).unwrap_or(EXPIRY_MS) as i64;
    /// Life of a page token.
    #[serde(rename = "token_expiry", with = "millis")]
    token_expiry_ms: i64 = EXPIRY_MS as i64,
        size(draws, "token-expiry", 100, 2_000).unwrap_or(EXPIRY_MS) as i64;
    /// The most shards of a page; 0: as many as AWS gives.
    list_page: u32, rate(draws, "list-page", 8);
    /// Whether throughput and rate limits hold.
    limits: bool = false, draws.coin("limits", 0);
    /// Further throttled reads, in one of a thousand.
    read_throttled: u32, rate(draws, "read-throttled", 200);
    /// Whether the end of a shard comes with its last records.
    end_with_records: bool = false, draws.coin("end-with-records", 0);
    /// The last answer of a shard names none of its children: only a listing shows the children.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    children_unnamed: bool = false, draws.below("children-unnamed", 0, 8) == 0;
    /// Reads without records although the shard has records, in one of a thousand.
    empty_read: u32, rate(draws, "empty-read", 200);
    /// First descriptions of the stream, one in each life, with a wrong creation time, in one of a thousand.
    #[serde(skip_serializing_if = "super::is_plain")]
    wrong_first_look: u32, rate(draws, "first-look-wrong", 1_000);
    /// Reads of this shard (by its number, modulo) bring no records during the faults, whatever the contents of the
    /// shard.
    #[serde(skip_serializing_if = "Option::is_none")]
    dry_shard: Option<u32> = None,
        (draws.below("dry-shard", 0, 8) == 0).then(|| draws.below("dry-shard", 1, setting.shards) as u32);
}

/// Life of iterators and page tokens, as AWS gives it, in ms.
const EXPIRY_MS: u64 = 300_000;

fn reshards(draws: Draws, setting: Setting) -> Vec<Reshard> {
    let churns = churns(draws);
    if !churns && !draws.coin("reshard", 0) {
        return Vec::new();
    }
    let (least, most) = if churns { (8, 40) } else { (1, 10) };
    let reshard = |n| {
        let mut roll = draws.roll("reshard-each", n);
        let kind = match roll.below(8) {
            0..3 => ReshardKind::Split,
            3..6 => ReshardKind::Merge,
            6 => ReshardKind::SplitTwice,
            _ if setting.shards <= 32 => ReshardKind::Mass { grow: roll.below(2) == 0 },
            _ => ReshardKind::Merge,
        };
        Reshard { at: roll.below(setting.length_us), kind, pick: roll.below(1 << 31) as u32 }
    };
    let mut reshards: Vec<_> = (0..draws.magnitude("reshard", 1, least, most)).map(reshard).collect();
    reshards.sort_by_key(|reshard| reshard.at);
    reshards
}

/// Trimmed records need no processing. A trim loosens other properties, so trims come in fewer than half of the worlds.
fn trims(draws: Draws, setting: Setting) -> Vec<Trim> {
    if draws.below("trim-rare", 0, 4) > 0 {
        return Vec::new();
    }
    let trim = |n| {
        let mut roll = draws.roll("trim-each", n);
        let at = roll.below(setting.length_us);
        let keep = roll.magnitude(100_000, setting.length_us);
        Trim { at, keep }
    };
    let mut trims: Vec<_> = (0..draws.magnitude("trim", 1, 1, 4)).map(trim).collect();
    trims.sort_by_key(|trim| trim.at);
    trims
}

impl StreamFaults {
    /// The most shards ever, from the number of shards at the beginning; `None` if the number depends on the open
    /// shards.
    pub fn most_shards(&self, shards: u32) -> Option<u32> {
        let born = self.reshards.iter().map(|reshard| match reshard.kind {
            ReshardKind::Split => Some(2),
            ReshardKind::SplitTwice => Some(4),
            ReshardKind::Merge => Some(1),
            ReshardKind::Mass { .. } => None,
        });
        born.sum::<Option<u32>>().map(|born| shards + born)
    }

    /// The chances drawn for a read.
    pub fn chances(&self, roll: &mut Roll, found: &mut Vec<Chance>) {
        if roll.happens(self.read_throttled) {
            found.push(Chance::Throttled);
        }
        if roll.happens(self.empty_read) {
            found.push(Chance::Empty);
        }
    }
}
