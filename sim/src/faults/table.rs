//! The lease table: slow to come, shared with other programs, edited by people, read stale.

use super::family::family;
use super::{Chance, Setting, rate, size};
use crate::draws::{Draws, Roll};
use crate::span::{micros, millis};
use serde::{Deserialize, Serialize};

/// A foreign change of the table.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RowEdit {
    /// The time, in µs.
    #[serde(with = "micros")]
    pub at: u64,
    /// The kind of the change.
    pub kind: RowEditKind,
    /// The number of the row, modulo the number of rows.
    pub pick: u32,
}

/// The kinds of foreign changes of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RowEditKind {
    /// An item of another kind appears.
    Foreign,
    /// An unreadable lease item appears.
    Unparsable,
    /// An unknown attribute appears on a lease.
    Attribute,
    /// A leader of another library begins to hand a lease over to another worker, or to an absent worker.
    HandOver,
    /// A person removes a lease.
    Delete,
    /// A person's edit removes the guard of a lease: its counter, or the time in the counter.
    Unguarded,
    /// A person's edit, or a script, writes NULL for the owner, as boto3 does for None.
    OwnerNull,
    /// A person's edit, or a script, writes NULL for an attribute that the row lacks; in KCL's format also a value of
    /// another type.
    Null,
    /// A person's edit says that an open shard was processed to its end and that its lease is free. When a worker
    /// reports the shard, an operator puts the lease at the oldest record.
    Ended,
    /// A person's edit like `Ended`, with a checkpoint that no shard can have.
    Misplaced,
    /// A person's edit names a parent for an open shard: the shard itself, or another open shard.
    Parents,
    /// A row names no stream any more, or has an unreadable name: an older worker created the row, or a program that
    /// replaces whole items.
    Unnamed,
}

impl RowEditKind {
    /// Whether the edit leaves a row at no place in its shard.
    pub fn spoils(self) -> bool {
        matches!(self, RowEditKind::Ended | RowEditKind::Misplaced)
    }
}

family! {
    /// All table faults of a world.
    pub struct TableFaults by |draws, setting|;

    /// How long a new table is CREATING.
    #[serde(rename = "create", with = "millis")]
    create_ms: i64, size(draws, "table-slow", 100, 20_000).unwrap_or(0) as i64;
    /// Rows that a scan reads as they were before, in one of a thousand.
    stale: u32, rate(draws, "stale", 500);
    /// The age of such a state, in µs.
    stale_us as "stale_by": u64, draws.magnitude("stale", 2, 10_000, 2_000_000);
    /// The most rows of a scan page that the service gives; 0: as many as requested.
    tiny_page: u32, rate(draws, "tiny-page", 5);
    /// The longest additional time of each scan page, in µs; the shortest is half of it. The delay exists also when all
    /// else is well. A scan may then last longer than a lease.
    slow_page_us as "slow_page": u64, slow_page(draws, setting);
    /// Failed conditions do not return the row.
    silent_refusal: bool = false, draws.coin("silent-refusal", 0);
    /// Foreign changes of rows.
    edits: Vec<RowEdit> = Vec::new(), edits(draws, setting);
    /// Foreign hand-overs right after a take from another owner, in one of a thousand of these takes.
    hand_over_on_take: u32, size(draws, "hand-over-on-take", 20, 1_000).unwrap_or(0) as u32;
    /// Writes of this lease (by shard number, modulo) hang: the service never answers during the faults.
    #[serde(skip_serializing_if = "Option::is_none")]
    hung_lease: Option<u32> = None,
        draws.coin("hung-lease", 0).then(|| draws.below("hung-lease", 1, setting.shards) as u32);
    /// Writes of this lease (by shard number, modulo) are refused during the faults, except its creation: their
    /// conditions do not hold, and the row of the lease gives no reason. No other fault hits this lease.
    #[serde(skip_serializing_if = "Option::is_none")]
    refused_lease: Option<u32> = None, (draws.below("refused-lease", 0, 4) == 0)
        .then(|| draws.below("refused-lease", 1, setting.shards) as u32);
}

/// Much takes longer with slow pages, so slow pages are rare. A worker must not give up any answer: the way there and
/// back takes time too.
fn slow_page(draws: Draws, setting: Setting) -> u64 {
    if draws.below("slow-page", 0, 6) > 0 {
        return 0;
    }
    let scan_us = draws.magnitude("slow-page", 1, setting.lease_us / 4, setting.lease_us * 3);
    let pages = setting.shards / u64::from(rate(draws, "tiny-page", 5).max(1)) + 1;
    (scan_us / pages).min(setting.table_timeout_us / 4)
}

/// Changes of rows by people and other programs.
fn edits(draws: Draws, setting: Setting) -> Vec<RowEdit> {
    let mut edits = Vec::new();
    let mut add = |family: &'static str, most: u64, kind| {
        for n in 0..size(draws, family, 1, most).unwrap_or(0) {
            let mut roll = draws.roll(family, n + 3);
            let (at, pick) = (roll.below(setting.length_us), roll.below(1 << 31) as u32);
            edits.push(RowEdit { at, kind, pick });
        }
    };
    add("foreign-row", 10, RowEditKind::Foreign);
    add("unparsable-row", 5, RowEditKind::Unparsable);
    add("unknown-attribute", 10, RowEditKind::Attribute);
    add("hand-over-begun", 8, RowEditKind::HandOver);
    add("name-removed", 10, RowEditKind::Unnamed);
    add("parents-by-hand", 3, RowEditKind::Parents);
    add("null-attribute", 10, RowEditKind::Null);
    // A deletion by hand loosens several properties, so deletions are rare.
    if draws.below("delete-rare", 0, 5) == 0 {
        add("delete-row", 3, RowEditKind::Delete);
    }
    // A removed guard loosens properties too, so these edits are rare.
    if draws.below("guard-removed-rare", 0, 5) == 0 {
        add("guard-removed", 3, RowEditKind::Unguarded);
    }
    if draws.below("owner-null-rare", 0, 5) == 0 {
        add("owner-null", 3, RowEditKind::OwnerNull);
    }
    // These edits loosen the properties of a shard, too.
    if draws.below("spoiled-rare", 0, 5) == 0 {
        add("ended-by-hand", 2, RowEditKind::Ended);
        add("misplaced-by-hand", 2, RowEditKind::Misplaced);
    }
    edits.sort_by_key(|edit| edit.at);
    edits
}
impl TableFaults {
    /// Whether a scan sees the rows in an old state.
    pub fn chance_of_staleness(&self, roll: &mut Roll) -> Option<Chance> {
        let stale = roll.happens(self.stale);
        let by_us = roll.magnitude(1_000, self.stale_us);
        stale.then_some(Chance::Stale { by_us })
    }

    /// Whether a lease is handed over soon after its take. `lease_us`: the length of a lease, in µs.
    pub fn chance_of_hand_over(&self, roll: &mut Roll, lease_us: u64) -> Option<Chance> {
        let happens = roll.happens(self.hand_over_on_take);
        let after_us = roll.magnitude(1_000, lease_us);
        let cut = roll.magnitude(lease_us / 4, lease_us * 2);
        let cut_us = if roll.below(4) == 0 { 0 } else { cut };
        let to = roll.below(1 << 31) as u32;
        happens.then_some(Chance::HandOver { after_us, cut_us, to })
    }

    /// The additional time of an answer with a scan page, in µs.
    pub fn slowness(&self, roll: &mut Roll) -> u64 {
        match self.slow_page_us {
            0 => 0,
            us => roll.between(us / 2, us),
        }
    }
}
