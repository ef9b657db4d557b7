//! The lease table: slow to come, shared with others, edited by people, read stale.

use super::{Chance, Setting, rate};
use crate::draws::{Draws, Roll};
use crate::span::{micros, millis};
use serde::{Deserialize, Serialize};

/// Somebody else's change of the table.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RowEdit {
    /// When, in µs.
    #[serde(with = "micros")]
    pub at: u64,
    /// What.
    pub kind: RowEditKind,
    /// Which row, modulo how many there are.
    pub pick: u32,
}

/// What others do to the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RowEditKind {
    /// An item of another kind appears.
    Foreign,
    /// An item that should be a lease and cannot be read appears.
    Unparsable,
    /// An attribute nobody knows appears on a lease.
    Attribute,
    /// A leader of another library begins to hand a lease over to another worker, or to one that is not there.
    HandOver,
    /// A person removes a lease.
    Delete,
    /// A person's edit removes from a lease what guards it: its counter, or the time in it.
    Unguarded,
    /// A person's edit, or a script, writes NULL for the owner, as boto3 does for None.
    OwnerNull,
    /// The same, for an attribute that the row lacks; in KCL's format also a value of another type.
    Null,
    /// A person's edit says of an open shard that it was processed to its end, and that nobody has its lease. When a
    /// worker tells of it, an operator puts the lease at the oldest record.
    Ended,
    /// The same, with a checkpoint that no shard can have.
    Misplaced,
    /// A row says no more which stream it is of, or nothing that can be read: an older worker made it, or a program that replaces whole
    /// items.
    Unnamed,
}

impl RowEditKind {
    /// Whether it leaves a row at no place in its shard.
    pub fn spoils(self) -> bool {
        matches!(self, RowEditKind::Ended | RowEditKind::Misplaced)
    }
}

/// All table faults of a world.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TableFaults {
    /// How long a new table is CREATING.
    #[serde(rename = "create", with = "millis")]
    pub create_ms: i64,
    /// Rows that a scan reads as they were before, in one of a thousand.
    pub stale: u32,
    /// How long before, in µs.
    #[serde(rename = "stale_by", with = "micros")]
    pub stale_us: u64,
    /// The service never gives a scan page more than this many rows; 0: as asked.
    pub tiny_page: u32,
    /// Each scan page takes up to so much longer, in µs, and no less than half of it: also when all else is well. A scan may
    /// then last longer than a lease.
    #[serde(rename = "slow_page", with = "micros")]
    pub slow_page_us: u64,
    /// Failed conditions do not say what the row is.
    pub silent_refusal: bool,
    /// What others do.
    pub edits: Vec<RowEdit>,
    /// Hand-overs that others begin right after a lease was taken from somebody, in one of a thousand of these.
    pub hand_over_on_take: u32,
    /// Writes of this lease (by shard number, modulo) hang: they are never answered while faults last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hung_lease: Option<u32>,
    /// Writes of this lease (by shard number, modulo) are refused while faults last, but for its creation: their conditions do not hold, and its
    /// row does not say why.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub refused_lease: Option<u32>,
}

impl TableFaults {
    /// Whether chance shows a scan the rows as they were.
    pub fn chance_of_staleness(&self, roll: &mut Roll) -> Option<Chance> {
        let stale = roll.happens(self.stale);
        let by_us = roll.magnitude(1_000, self.stale_us);
        stale.then_some(Chance::Stale { by_us })
    }

    /// Whether chance has a lease handed over soon after it is taken, which lasts so long, in µs.
    pub fn chance_of_hand_over(&self, roll: &mut Roll, lease_us: u64) -> Option<Chance> {
        let happens = roll.happens(self.hand_over_on_take);
        let after_us = roll.magnitude(1_000, lease_us);
        let cut = roll.magnitude(lease_us / 4, lease_us * 2);
        let cut_us = if roll.below(4) == 0 { 0 } else { cut };
        let to = roll.below(1 << 31) as u32;
        happens.then_some(Chance::HandOver { after_us, cut_us, to })
    }

    /// How much longer than others the answer with a scan page takes, in µs.
    pub fn slowness(&self, roll: &mut Roll) -> u64 {
        match self.slow_page_us {
            0 => 0,
            us => roll.between(us / 2, us),
        }
    }

    /// What people and other programs do to rows.
    fn draw_edits(draws: Draws, setting: Setting) -> Vec<RowEdit> {
        let mut edits = Vec::new();
        let mut add = |family: &'static str, most: u64, kind| {
            if draws.coin(family, 0) {
                for n in 0..draws.magnitude(family, 1, 1, most) {
                    let mut roll = draws.roll(family, n + 3);
                    edits.push(RowEdit {
                        at: roll.below(setting.length_us),
                        kind,
                        pick: roll.below(1 << 31) as u32,
                    });
                }
            }
        };
        add("foreign-row", 10, RowEditKind::Foreign);
        add("unparsable-row", 5, RowEditKind::Unparsable);
        add("unknown-attribute", 10, RowEditKind::Attribute);
        add("hand-over-begun", 8, RowEditKind::HandOver);
        add("name-removed", 10, RowEditKind::Unnamed);
        add("null-attribute", 10, RowEditKind::Null);
        // A deletion by hand loosens several properties, so it is kept rare.
        if draws.below("delete-rare", 0, 5) == 0 {
            add("delete-row", 3, RowEditKind::Delete);
        }
        // Nor does this come often.
        if draws.below("guard-removed-rare", 0, 5) == 0 {
            add("guard-removed", 3, RowEditKind::Unguarded);
        }
        if draws.below("owner-null-rare", 0, 5) == 0 {
            add("owner-null", 3, RowEditKind::OwnerNull);
        }
        // These loosen what is asked of a shard, too.
        if draws.below("spoiled-rare", 0, 5) == 0 {
            add("ended-by-hand", 2, RowEditKind::Ended);
            add("misplaced-by-hand", 2, RowEditKind::Misplaced);
        }
        edits.sort_by_key(|edit| edit.at);
        edits
    }

    pub(super) fn draw(draws: Draws, setting: Setting) -> Self {
        let tiny = draws.coin("tiny-page", 0);
        let tiny_page = if tiny { draws.magnitude("tiny-page", 1, 1, 5) } else { 0 };
        // Much takes longer then, so it is rarer. No answer may be given up: the way there and back takes time too.
        let slow = draws.below("slow-page", 0, 6) == 0;
        let slow_page_us = if slow {
            let scan_us = draws.magnitude("slow-page", 1, setting.lease_us / 4, setting.lease_us * 3);
            let pages = setting.shards / tiny_page.max(1) + 1;
            (scan_us / pages).min(setting.table_timeout_us / 4)
        } else {
            0
        };
        Self {
            create_ms: if draws.coin("table-slow", 0) {
                draws.magnitude("table-slow", 1, 100, 20_000) as i64
            } else {
                0
            },
            stale: rate(draws, "stale", 500),
            stale_us: draws.magnitude("stale", 2, 10_000, 2_000_000),
            tiny_page: tiny_page as u32,
            slow_page_us,
            hand_over_on_take: if draws.coin("hand-over-on-take", 0) {
                draws.magnitude("hand-over-on-take", 1, 20, 1_000) as u32
            } else {
                0
            },
            silent_refusal: draws.coin("silent-refusal", 0),
            edits: Self::draw_edits(draws, setting),
            hung_lease: draws
                .coin("hung-lease", 0)
                .then(|| draws.below("hung-lease", 1, setting.shards) as u32),
            // Nothing else becomes of the lease.
            refused_lease: (draws.below("refused-lease", 0, 4) == 0)
                .then(|| draws.below("refused-lease", 1, setting.shards) as u32),
        }
    }
}
