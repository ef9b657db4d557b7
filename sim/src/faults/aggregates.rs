//! Aggregated records of the Kinesis Producer Library (KPL), and producers with outdated maps of the shards: after a
//! split, an aggregated record holds parts of other shards.

use super::Setting;
use crate::draws::Draws;
use crate::span::micros;
use leasehold_engine::aggregate::Misplaced;
use serde::{Deserialize, Serialize};

/// The producer of aggregated records, and its reaction when a record reached a shard that does not take all parts of
/// the record.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum MadeBy {
    /// A KPL since August 2024: the parts of the shard count as stored, and the KPL sends the other parts again.
    #[default]
    Kpl,
    /// A KPL from before: no part counts as stored, and the KPL sends all parts again.
    OldKpl,
    /// A producer that does not look at shards: parts have any hash keys, and all count as stored.
    Other,
}

/// The aggregated records of a world.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct AggregateFaults {
    /// Records that are aggregated, in one of a thousand.
    #[serde(skip_serializing_if = "super::is_plain")]
    pub aggregated: u32,
    /// The most parts of an aggregated record.
    #[serde(skip_serializing_if = "are_usual")]
    pub parts: u32,
    /// The time for which a producer uses its map of the shards, in µs, unless the producer finds the map outdated.
    #[serde(rename = "map_kept", with = "micros", skip_serializing_if = "is_usual_time")]
    pub map_us: u64,
    /// The producer of the aggregated records.
    #[serde(skip_serializing_if = "super::is_plain")]
    pub made_by: MadeBy,
    /// The application's treatment of parts of other shards.
    #[serde(skip_serializing_if = "super::is_plain")]
    pub misplaced: Misplaced,
}

/// The most parts of an aggregated record, where a scenario gives no number.
const PARTS: u32 = 4;
/// The time for which a producer uses its map of the shards, where a scenario gives no time.
const MAP_US: u64 = 600_000_000;

fn are_usual(parts: &u32) -> bool {
    *parts == PARTS
}

fn is_usual_time(map_us: &u64) -> bool {
    *map_us == MAP_US
}

impl Default for AggregateFaults {
    /// All records are plain.
    fn default() -> Self {
        Self { aggregated: 0, parts: PARTS, map_us: MAP_US, made_by: MadeBy::Kpl, misplaced: Misplaced::Drop }
    }
}

impl AggregateFaults {
    /// Whether some records are aggregated.
    pub fn is_on(&self) -> bool {
        self.aggregated > 0
    }

    pub(super) fn draw(draws: Draws, setting: Setting) -> Self {
        if !draws.coin("aggregates", 0) {
            return Self::default();
        }
        let made_by = match draws.below("aggregates", 1, 8) {
            0 => MadeBy::Other,
            1 | 2 => MadeBy::OldKpl,
            _ => MadeBy::Kpl,
        };
        // The draw leaves out every choice documented to lose records of these producers.
        let misplaced = match (made_by, draws.below("aggregates", 2, 4)) {
            (MadeBy::Other, _) | (_, 0) => Misplaced::Keep,
            (MadeBy::OldKpl, 1) => Misplaced::DropWhole,
            _ => Misplaced::Drop,
        };
        Self {
            aggregated: draws.magnitude("aggregates", 3, 60, 1_000) as u32,
            parts: draws.magnitude("aggregates", 4, 2, 12) as u32,
            map_us: draws.magnitude("aggregates", 5, 1_000_000, setting.length_us.max(2_000_000)),
            made_by,
            misplaced,
        }
    }
}
