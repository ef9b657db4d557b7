//! Permanent losses: the stream, the table, or the connection between them. Workers can only notice the loss, report
//! it, and stop.

use super::Setting;
use crate::draws::Draws;
use crate::named::named;
use crate::span::micros;
use serde::{Deserialize, Serialize};

/// Nine in this many worlds lose their table or stream for good.
const RARE: u64 = 40;

/// A permanent loss, and its time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PermanentLoss {
    /// The time of the loss, in µs. A table of another stream exists from the beginning; a second fleet fills the table
    /// when our fleet fills the table.
    #[serde(with = "micros")]
    pub at: u64,
    /// The kind of the loss.
    pub kind: LossKind,
    /// The variant of the loss, where several exist.
    #[serde(default, skip_serializing_if = "super::is_plain")]
    pub pick: u32,
}

named! {
    /// The kinds of permanent losses.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
    pub enum LossKind by pub family {
        /// The stream is deleted.
        StreamDeleted = "stream-deleted",
        /// The stream is deleted, and a while later another stream has its name.
        StreamRemade = "stream-remade",
        /// The lease table is deleted, and no worker may create the table anew.
        TableDeleted = "table-deleted",
        /// The lease table was filled from another stream.
        TableOfAnother = "table-of-another",
        /// The lease table was filled from another stream, and the names in its rows are the only sign.
        RowsNameAnother = "rows-name-another",
        /// The lease table was filled from another stream, and checkpoints unknown to the service are the only sign.
        StrangeCheckpoints = "strange-checkpoints",
        /// A fleet of another stream begins with our lease table, and takes leases.
        AnotherFleet = "another-fleet",
        /// A fleet of another stream fills the empty lease table at the same time as our fleet.
        TwoFleets = "two-fleets",
    }
}

impl LossKind {
    /// Whether the loss exists before the first moment.
    pub(crate) fn is_given(self) -> bool {
        matches!(self, LossKind::TableOfAnother | LossKind::RowsNameAnother | LossKind::StrangeCheckpoints)
    }

    /// Whether the loss comes at its own time, instead of together with another event.
    pub(crate) fn has_its_time(self) -> bool {
        !self.is_given() && self != LossKind::TwoFleets
    }
}

impl PermanentLoss {
    pub(super) fn draw(draws: Draws, setting: Setting) -> Option<Self> {
        let kind = match draws.below("ruin", 0, RARE) {
            0 => LossKind::StreamDeleted,
            // A remade stream needs leases that were begun, so some of these losses have no effect.
            1 | 2 => LossKind::StreamRemade,
            3 => LossKind::TableDeleted,
            4 => LossKind::TableOfAnother,
            // With several streams, the table may fit all streams but one: workers then read the fitting streams.
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
