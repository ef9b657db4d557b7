//! The stream: resharding, listings that lag, tokens and iterators that expire, reads that are throttled.

use super::{Chance, Setting, churns, rate};
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

/// All stream faults of a world.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct StreamFaults {
    /// Changes of the shards.
    pub reshards: Vec<Reshard>,
    /// Records forgotten before their read.
    pub trims: Vec<Trim>,
    /// The length of a change.
    #[serde(rename = "update", with = "millis")]
    pub update_ms: i64,
    /// The largest delay of a listing, shard by shard; 0: no delay.
    #[serde(rename = "list_lag", with = "millis")]
    pub list_lag_ms: i64,
    /// Life of an iterator.
    #[serde(rename = "iterator_expiry", with = "millis")]
    pub iterator_expiry_ms: i64,
    /// Life of a page token.
    #[serde(rename = "token_expiry", with = "millis")]
    pub token_expiry_ms: i64,
    /// The most shards of a page; 0: as many as AWS gives.
    pub list_page: u32,
    /// Whether throughput and rate limits hold.
    pub limits: bool,
    /// Further throttled reads, in one of a thousand.
    pub read_throttled: u32,
    /// Whether the end of a shard comes with its last records.
    pub end_with_records: bool,
    /// The last answer of a shard names none of its children: only a listing shows the children.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub children_unnamed: bool,
    /// Reads without records although the shard has records, in one of a thousand.
    pub empty_read: u32,
    /// First descriptions of the stream, one in each life, with a wrong creation time, in one of a thousand.
    #[serde(skip_serializing_if = "super::is_plain")]
    pub wrong_first_look: u32,
    /// Reads of this shard (by its number, modulo) bring no records during the faults, whatever the contents of the
    /// shard.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dry_shard: Option<u32>,
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

    pub(super) fn draw(draws: Draws, setting: Setting) -> Self {
        let mut reshards = Vec::new();
        let churns = churns(draws);
        if churns || draws.coin("reshard", 0) {
            let most = if churns { 40 } else { 10 };
            for n in 0..draws.magnitude("reshard", 1, if churns { 8 } else { 1 }, most) {
                let mut roll = draws.roll("reshard-each", n);
                let kind = match roll.below(8) {
                    0..3 => ReshardKind::Split,
                    3..6 => ReshardKind::Merge,
                    6 => ReshardKind::SplitTwice,
                    _ if setting.shards <= 32 => ReshardKind::Mass { grow: roll.below(2) == 0 },
                    _ => ReshardKind::Merge,
                };
                reshards.push(Reshard {
                    at: roll.below(setting.length_us),
                    kind,
                    pick: roll.below(1 << 31) as u32,
                });
            }
            reshards.sort_by_key(|reshard| reshard.at);
        }
        let mut trims = Vec::new();
        // Trimmed records need no processing. A trim loosens other properties, so trims come in fewer than half of the
        // worlds.
        if draws.below("trim-rare", 0, 4) == 0 {
            for n in 0..draws.magnitude("trim", 1, 1, 4) {
                let mut roll = draws.roll("trim-each", n);
                let at = roll.below(setting.length_us);
                let keep = roll.magnitude(100_000, setting.length_us);
                trims.push(Trim { at, keep });
            }
            trims.sort_by_key(|trim| trim.at);
        }
        let short = |family| draws.coin(family, 0);
        Self {
            reshards,
            trims,
            update_ms: draws.magnitude("update", 0, 10, 5_000) as i64,
            list_lag_ms: if short("list-lag") { draws.magnitude("list-lag", 1, 50, 5_000) as i64 } else { 0 },
            iterator_expiry_ms: if short("iterator-expiry") {
                draws.magnitude("iterator-expiry", 1, 1_000, 20_000) as i64
            } else {
                300_000
            },
            token_expiry_ms: if short("token-expiry") {
                draws.magnitude("token-expiry", 1, 100, 2_000) as i64
            } else {
                300_000
            },
            list_page: if short("list-page") { draws.magnitude("list-page", 1, 1, 8) as u32 } else { 0 },
            limits: short("limits"),
            read_throttled: rate(draws, "read-throttled", 200),
            end_with_records: short("end-with-records"),
            children_unnamed: draws.below("children-unnamed", 0, 8) == 0,
            empty_read: rate(draws, "empty-read", 200),
            wrong_first_look: rate(draws, "first-look-wrong", 1_000),
            dry_shard: (draws.below("dry-shard", 0, 8) == 0)
                .then(|| draws.below("dry-shard", 1, setting.shards) as u32),
        }
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

impl Default for StreamFaults {
    /// A stream without changes.
    fn default() -> Self {
        Self {
            reshards: Vec::new(),
            trims: Vec::new(),
            update_ms: 100,
            list_lag_ms: 0,
            iterator_expiry_ms: 300_000,
            token_expiry_ms: 300_000,
            list_page: 0,
            limits: false,
            read_throttled: 0,
            end_with_records: false,
            children_unnamed: false,
            empty_read: 0,
            wrong_first_look: 0,
            dry_shard: None,
        }
    }
}
