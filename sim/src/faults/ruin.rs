//! What is taken away for good: the stream, the table, or the tie between them. All that workers can do is notice, say so,
//! and stop.

use super::Setting;
use crate::draws::Draws;
use crate::span::micros;
use serde::{Deserialize, Serialize};

/// Five in so many worlds are ruined.
const RARE: u64 = 40;

/// What is taken away, and when.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ruin {
    /// When, in µs. A table of another stream is there from the beginning.
    #[serde(with = "micros")]
    pub at: u64,
    /// What.
    pub kind: RuinKind,
    /// How, where there are several ways.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub pick: u32,
}

fn is_zero(n: &u32) -> bool {
    *n == 0
}

/// What is taken away.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RuinKind {
    /// The stream is deleted.
    StreamDeleted,
    /// The stream is deleted, and a while later another one has its name.
    StreamRemade,
    /// The lease table is deleted, and nobody may create it anew.
    TableDeleted,
    /// The lease table was filled from another stream.
    TableOfAnother,
}

impl RuinKind {
    /// The family's name, for marks.
    pub fn family(self) -> &'static str {
        match self {
            RuinKind::StreamDeleted => "stream-deleted",
            RuinKind::StreamRemade => "stream-remade",
            RuinKind::TableDeleted => "table-deleted",
            RuinKind::TableOfAnother => "table-of-another",
        }
    }
}

impl Ruin {
    pub(super) fn draw(draws: Draws, setting: Setting) -> Option<Self> {
        let kind = match draws.below("ruin", 0, RARE) {
            0 => RuinKind::StreamDeleted,
            // It takes leases that were begun with, so some of these come to nothing.
            1 | 2 => RuinKind::StreamRemade,
            3 => RuinKind::TableDeleted,
            4 => RuinKind::TableOfAnother,
            _ => return None,
        };
        Some(Self {
            at: draws.below("ruin", 1, setting.length_us),
            kind,
            pick: draws.below("ruin", 2, 1 << 31) as u32,
        })
    }
}
