//! The facts that an oracle sees. An oracle sees no fact without a rule about it: most facts are reports and requests.

use super::Fact;

/// Changed rows.
pub(super) const ROWS: u8 = 1;
/// Requests and their answers.
pub(super) const REQUESTS: u8 = 2;
/// A worker's reports of its leases, and the ends of its scans.
pub(super) const REPORTS: u8 = 4;
/// Rows in answers.
pub(super) const SHOWN: u8 = 8;
/// Records on their way from the stream to a handler, and the looks at standing shards.
pub(super) const READS: u8 = 16;
/// All other facts.
pub(super) const EVENTS: u8 = 32;

/// The kinds of facts that an oracle sees.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sees {
    of_ours: u8,
    of_others: u8,
    /// A trespass of another program looks like an edit by hand.
    pub edits: bool,
}

impl Sees {
    /// Facts of all lives.
    pub(super) const fn all(kinds: u8) -> Self {
        Self { of_ours: kinds, of_others: kinds, edits: false }
    }

    /// Facts of our workers, and of the world.
    pub(super) const fn ours(kinds: u8) -> Self {
        Self { of_ours: kinds, of_others: 0, edits: false }
    }

    /// And these facts of other programs.
    pub(super) const fn others(self, kinds: u8) -> Self {
        Self { of_others: kinds, ..self }
    }

    /// And trespasses of other programs as edits by hand.
    pub(super) const fn edits(self) -> Self {
        Self { edits: true, ..self }
    }

    pub(super) const fn has(self, kind: u8, of_others: bool) -> bool {
        kind & (if of_others { self.of_others } else { self.of_ours }) != 0
    }
}

/// The kind of a fact.
pub(super) fn kind(fact: &Fact) -> u8 {
    match fact {
        Fact::RowChanged { .. } => ROWS,
        Fact::Asked { .. } | Fact::Answered { .. } => REQUESTS,
        Fact::Holds { .. }
        | Fact::HoldsNoMore { .. }
        | Fact::Yields { .. }
        | Fact::Said { .. }
        | Fact::ScanEnded { .. } => REPORTS,
        Fact::Shown { .. } => SHOWN,
        Fact::Stored { .. }
        | Fact::LeftOut { .. }
        | Fact::Looked { .. }
        | Fact::ReadSent { .. }
        | Fact::ReadCut { .. }
        | Fact::OnItsWay { .. }
        | Fact::Fetched { .. }
        | Fact::EndClaimed { .. }
        | Fact::RangeUnproven { .. }
        | Fact::Behind { .. }
        | Fact::Stalled { .. }
        | Fact::Moving { .. } => READS,
        _ => EVENTS,
    }
}
