//! Rows that listings contradict: rows of shards that do not exist in the stream, and rows with other hash keys than
//! their shards.
//!
//! A single answer fills an empty table, and a single answer names the children of a shard. So a wrong answer may leave
//! contradicted rows. The row of a shard that does not exist would cover keys for ever that no worker reads, and hide
//! the missing lease of the right shard. A row with wrong keys hides a hole, or shows a false hole. Listings that
//! agree, apart in time, correct both: see [`Needed`].

use crate::ids::{LeaseKey, ShardId};
use crate::notice::ListReason;
use crate::row::{Change, LeaseRow};
use crate::shard::{HashRange, Shard};
use crate::sync::{self, Plan, PlannedLease, Unlisted, stands_against};
use crate::time::{Mono, Wall};
use crate::worker::context::Context;
use crate::worker::evidence::{Evidence, Needed, STANDSTILL};
use crate::worker::lease_table::{Lease, LeaseTable};
use crate::worker::stream_set::StreamIx;
use std::collections::{BTreeMap, BTreeSet};

/// What is remembered from listing to listing.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Default)]
pub(super) struct Contradicted {
    stream: StreamIx,
    /// The unfinished leases of shards missing from listings, without a listed descendant.
    unlisted: Evidence<BTreeSet<LeaseKey>>,
    /// Enough listings lack the shards of these leases: the shards do not exist, or the stream has forgotten them.
    denied: bool,
    /// Denied leases that no worker will end.
    hopeless: BTreeSet<LeaseKey>,
    /// The rows with missing or wrong hash keys, and the keys of their shards in listings.
    ranges: Evidence<BTreeMap<LeaseKey, HashRange>>,
    /// When the shards are listed once more, and why.
    look: Option<(Mono, ListReason)>,
    /// This worker filled the empty table.
    filled: Option<Filled>,
}

/// The first content of a table filled by this worker.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Filled {
    /// The application begins there.
    at: Wall,
    /// The leases, each with the parents that the listing named.
    leases: BTreeMap<LeaseKey, Vec<ShardId>>,
}

impl Contradicted {
    pub(super) fn new(stream: StreamIx) -> Self {
        Self { stream, ..Self::default() }
    }

    /// This worker fills the empty table from a listing: the application begins now.
    pub(super) fn filled(&mut self, cx: &Context, plan: &Plan) {
        let rows = plan.create.iter().map(|planned| &planned.row);
        let leases = rows.map(|row| (row.key.clone(), row.parents.clone())).collect();
        self.filled = Some(Filled { at: cx.wall(), leases });
        self.wrote_rows(cx);
    }

    /// The leases left out by the listing that filled the table. `shards`: of the last listing.
    pub(super) fn left_out(&self, cx: &Context, leases: &LeaseTable, shards: &[Shard]) -> Vec<PlannedLease> {
        let Some(filled) = &self.filled else {
            // This worker did not fill the table.
            return Vec::new();
        };
        let leased = |shard: &ShardId| leases.row(shard.as_str()).is_some();
        let initial = cx.streams().initial_position(self.stream);
        sync::left_out(&filled.leases, leased, shards, initial)
    }

    /// This worker writes rows from a listing. A second listing, of a later moment, is to bear out the first.
    pub(super) fn wrote_rows(&mut self, cx: &Context) {
        self.look_at_latest(cx.now() + cx.config().stream_lag, ListReason::RowsWritten);
    }

    /// When the shards are listed once more.
    pub(super) fn look_at(&self) -> Mono {
        self.look.map_or(Mono::NEVER, |(at, _)| at)
    }

    /// They are listed now.
    pub(super) fn looks_again(&mut self) -> Option<ListReason> {
        self.look.take().map(|(_, why)| why)
    }

    /// Whether a listing has lacked shards of unfinished leases: their keys may be uncovered.
    pub(super) fn doubts_cover(&self) -> bool {
        self.unlisted.claim().is_some()
    }

    /// Whether this worker filled the table from a listing not yet borne out by later listings: parents may have been
    /// left out.
    pub(super) fn doubts_filling(&self) -> bool {
        self.filled.is_some()
    }

    /// Whether enough listings agree that the shards of some unfinished leases do not exist.
    pub(super) fn denies_cover(&self) -> bool {
        self.denied
    }

    /// Leases that no worker will end, and that bring no further lease.
    pub(super) fn hopeless(&self) -> &BTreeSet<LeaseKey> {
        &self.hopeless
    }

    /// A forgotten shard ends when as many listings lack it. A shard that several times as many listings lack, and that the stream has not
    /// forgotten, does not exist.
    fn judge_hopeless(&mut self, cx: &Context, leases: &LeaseTable, shards: &[Shard]) {
        self.hopeless.clear();
        let needed = Needed::to_forget(cx).times(STANDSTILL);
        if self.unlisted.answers() < needed.answers() {
            return;
        }
        let stands = |key: &&LeaseKey| {
            let row = leases.row(key.as_str());
            row.is_some_and(|row| stands_against(Unlisted::of(row), shards).is_some())
        };
        let unlisted = self.unlisted.claim().into_iter().flatten();
        self.hopeless = unlisted.filter(stands).cloned().collect();
    }

    /// The moment from which missing leases beside the denied leases are read: the earliest known moment.
    pub(super) fn began(&self, leases: &LeaseTable) -> Option<Wall> {
        let keys = self.unlisted.claim().into_iter().flatten();
        let rows = keys.filter_map(|key| leases.row(key.as_str()));
        rows.filter_map(|row| row.began).chain(self.filled.as_ref().map(|filled| filled.at)).min()
    }

    /// A sound list of all shards came, of the stream of these rows.
    pub(super) fn judge(&mut self, cx: &mut Context, leases: &LeaseTable, shards: &[Shard], asked: Mono) {
        // A listing from the moment of the table's filling bears nothing out.
        self.look = self.look.filter(|(at, _)| self.filled.is_some() && asked < *at);
        self.judge_unlisted(cx, leases, shards, asked);
        self.judge_ranges(cx, leases, shards, asked);
    }

    fn judge_unlisted(&mut self, cx: &Context, leases: &LeaseTable, shards: &[Shard], asked: Mono) {
        let known: BTreeSet<&str> = shards
            .iter()
            .flat_map(|shard| shard.parents().chain([&shard.id]))
            .map(|id| id.as_str())
            .collect();
        let unlisted: BTreeSet<LeaseKey> = leases
            .of(self.stream)
            .filter(|lease| lease.is_unfinished() && !known.contains(lease.key().as_str()))
            .map(|lease| lease.key().clone())
            .collect();
        if unlisted.is_empty() {
            self.denied = false;
            self.hopeless.clear();
            return self.unlisted.contradicted();
        }
        let needed = Needed::to_forget(cx);
        self.denied = self.unlisted.says(cx, asked, unlisted, needed);
        self.judge_hopeless(cx, leases, shards);
        if !self.denied {
            let at = self.unlisted.ask_again_at(needed);
            self.look_at_latest(at, ListReason::RowsContradicted);
        }
    }

    /// A lease missing beside denied leases, or left out, is not created yet.
    pub(super) fn waits(&mut self, cx: &Context, for_left_out: bool) {
        if self.doubts_cover() {
            let at = self.unlisted.ask_again_at(Needed::to_forget(cx));
            self.look_at_latest(at, ListReason::RowsContradicted);
        }
        if for_left_out {
            self.look_at_latest(cx.now() + cx.config().stream_lag, ListReason::RowsContradicted);
        }
    }

    /// Nothing waits to be created. If no row is contradicted either, and no second listing is due, the listing that filled the table was right.
    pub(super) fn settled(&mut self) {
        if !self.doubts_cover() && self.ranges.claim().is_none() && self.look.is_none() {
            self.filled = None;
        }
    }

    /// Has the shards listed at that moment, or earlier for another reason.
    fn look_at_latest(&mut self, at: Mono, why: ListReason) {
        if at < self.look_at() {
            self.look = Some((at, why));
        }
    }

    /// Fills in missing hash keys of rows, and corrects wrong keys: in rows with the name of this very stream, and in
    /// rows without a name beside rows with the name. If no row names the stream, rows with other hash keys may be of
    /// another stream.
    fn judge_ranges(&mut self, cx: &mut Context, leases: &LeaseTable, shards: &[Shard], asked: Mono) {
        // Where rows may lack what only a list of the shards says, the hash keys come from a listing of a worker of ours.
        let listed = cx.needs_listings();
        let named = some_row_names_stream(cx, leases, self.stream);
        let ours = |row: &LeaseRow| listed || names_stream(cx, row) || (named && row.stream.is_none());
        let wrong: BTreeMap<LeaseKey, HashRange> = shards
            .iter()
            .filter_map(|shard| {
                let row = leases.row(shard.id.as_str())?;
                let wrong = row.range != Some(shard.range) && (row.range.is_none() || ours(row));
                wrong.then(|| (row.key.clone(), shard.range))
            })
            .collect();
        if wrong.is_empty() {
            if self.ranges.claim().is_some() {
                // This listing takes back an earlier listing, and may itself be wrong.
                self.look_at_latest(cx.now() + cx.config().stream_lag, ListReason::RowsContradicted);
            }
            return self.ranges.contradicted();
        }
        let needed = Needed::to_refuse_rows(cx);
        if !self.ranges.says(cx, asked, wrong.clone(), needed) {
            let at = self.ranges.ask_again_at(needed);
            return self.look_at_latest(at, ListReason::RowsContradicted);
        }
        self.ranges.contradicted();
        let expires = cx.now() + cx.config().lease_duration;
        // A write may be refused or given up. A later listing shows whether the rows are right now.
        self.look_at_latest(expires + cx.config().stream_lag, ListReason::RowsWritten);
        for (key, range) in wrong {
            let was = leases.row(key.as_str()).and_then(|row| row.range);
            let change = Change::SetRange { key, was, range };
            let why = match was {
                None => "the row lacks the hash keys that two listings, apart in time, show",
                Some(_) => "the row names other hash keys than two listings, apart in time",
            };
            cx.write_row(change, why.to_owned(), None, expires);
        }
    }
}

/// Whether the row names this worker's stream.
pub(super) fn names_stream(cx: &Context, row: &LeaseRow) -> bool {
    row.stream.is_some() && row.stream == cx.identity_of(&row.key)
}

/// Whether some row names this worker's stream.
pub(super) fn some_row_names_stream(cx: &Context, leases: &LeaseTable, stream: StreamIx) -> bool {
    let mut rows = leases.of(stream).filter_map(Lease::row);
    rows.any(|row| names_stream(cx, row))
}
