//! What is taken away for good: the stream, the table, or the tie between them. All that workers can do is notice, say so,
//! and stop.

use super::Setting;
use crate::draws::Draws;
use crate::span::micros;
use serde::{Deserialize, Serialize};

/// Nine in so many worlds lose their table or stream for good.
const RARE: u64 = 40;

/// What is taken away, and when.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PermanentLoss {
    /// When, in µs. A table of another stream is there from the beginning, and a fleet that fills the table beside ours does so when ours
    /// does.
    #[serde(with = "micros")]
    pub at: u64,
    /// What.
    pub kind: LossKind,
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
pub enum LossKind {
    /// The stream is deleted.
    StreamDeleted,
    /// The stream is deleted, and a while later another one has its name.
    StreamRemade,
    /// The lease table is deleted, and nobody may create it anew.
    TableDeleted,
    /// The lease table was filled from another stream.
    TableOfAnother,
    /// The same, and all that tells is that rows name the other stream.
    RowsNameAnother,
    /// The same, and all that tells is that the service does not know the checkpoints.
    StrangeCheckpoints,
    /// A fleet that reads another stream begins with the lease table of ours, and takes leases.
    AnotherFleet,
    /// A fleet that reads another stream fills the empty lease table when ours does.
    TwoFleets,
}

impl LossKind {
    /// The family's name, for marks.
    pub fn family(self) -> &'static str {
        match self {
            LossKind::StreamDeleted => "stream-deleted",
            LossKind::StreamRemade => "stream-remade",
            LossKind::TableDeleted => "table-deleted",
            LossKind::TableOfAnother => "table-of-another",
            LossKind::RowsNameAnother => "rows-name-another",
            LossKind::StrangeCheckpoints => "strange-checkpoints",
            LossKind::AnotherFleet => "another-fleet",
            LossKind::TwoFleets => "two-fleets",
        }
    }

    /// Whether it is there before the first moment.
    pub(crate) fn is_given(self) -> bool {
        matches!(self, LossKind::TableOfAnother | LossKind::RowsNameAnother | LossKind::StrangeCheckpoints)
    }

    /// Whether it comes when it is due, and not when something else happens.
    pub(crate) fn has_its_time(self) -> bool {
        !self.is_given() && self != LossKind::TwoFleets
    }
}

impl PermanentLoss {
    pub(super) fn draw(draws: Draws, setting: Setting) -> Option<Self> {
        let kind = match draws.below("ruin", 0, RARE) {
            0 => LossKind::StreamDeleted,
            // It takes leases that were begun with, so some of these come to nothing.
            1 | 2 => LossKind::StreamRemade,
            3 => LossKind::TableDeleted,
            4 => LossKind::TableOfAnother,
            // Of several streams, one alone may be another: then the others are read.
            5..=8 if setting.streams > 1 => LossKind::TableOfAnother,
            5 => LossKind::RowsNameAnother,
            6 => LossKind::StrangeCheckpoints,
            7 => LossKind::AnotherFleet,
            8 => LossKind::TwoFleets,
            _ => return None,
        };
        Some(Self {
            at: draws.below("ruin", 1, setting.length_us),
            kind,
            pick: draws.below("ruin", 2, 1 << 31) as u32,
        })
    }
}
