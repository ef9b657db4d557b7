//! Whether the leases are of this worker's stream, and which of their rows a person or a program has spoiled.
//!
//! The table is refused if more rows contradict the shards of their names than are this stream's. Otherwise the
//! contradicting rows are spoiled: their leases are not taken, and notices repeat until the rows are mended.

use super::Listed;
use super::contradicted::{names_stream, some_row_names_stream};
use crate::config::InitialPosition;
use crate::ids::LeaseKey;
use crate::notice::{Fatal, Notice};
use crate::position::Checkpoint;
use crate::row::LeaseRow;
use crate::shard::Shard;
use crate::sync;
use crate::time::Mono;
use crate::worker::context::{Context, Request};
use crate::worker::evidence::{Evidence, Needed};
use crate::worker::lease_table::{self, LeaseTable, Reports};
use crate::worker::stream_set::StreamIx;
use std::collections::{BTreeMap, BTreeSet};

/// What is remembered from listing to listing.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Default)]
pub(super) struct Recognition {
    stream: StreamIx,
    /// How many leases the first whole scan showed that begin elsewhere than the configuration says.
    begun_elsewhere: u32,
    /// A lease that may be of another stream, by listings, and whether a second look is enough.
    suspect: Evidence<(LeaseKey, bool)>,
    /// When to list the shards once more because of this lease.
    look_at: Mono,
    /// When the first of the listings in a row was asked for that contradict some lease.
    since: Option<Mono>,
    /// Rows that do not fit in a table of this stream, by listings.
    doubts: Evidence<BTreeSet<LeaseKey>>,
    /// The rows whose checkpoints are no places in their shards, by several listings; and what is wrong with each.
    spoiled: BTreeMap<LeaseKey, (Checkpoint, String)>,
    /// When their changes are looked at.
    changes: Changes,
    /// The reports about these rows.
    told: Reports,
    /// Since when listings do not show the shard of some unfinished lease.
    unlisted: Option<Mono>,
}

impl Recognition {
    pub(super) fn new(stream: StreamIx) -> Self {
        Self { stream, look_at: Mono::NEVER, ..Self::default() }
    }

    /// When to list the shards once more because the last listing contradicted a lease.
    pub(super) fn look_at(&self) -> Mono {
        self.look_at
    }

    /// They are listed now.
    pub(super) fn looks_again(&mut self) {
        self.look_at = Mono::NEVER;
    }

    /// Counts the leases unaffected by the configured initial position, unless that is the default. A row whose shard
    /// merely begins at this position does not count.
    pub(super) fn count_begun_elsewhere(&mut self, cx: &Context, leases: &LeaseTable) {
        let (there, time) = match cx.streams().initial_position(self.stream) {
            InitialPosition::TrimHorizon => return,
            InitialPosition::Latest => (Checkpoint::Latest, None),
            InitialPosition::AtTimestamp(time) => (Checkpoint::AtTimestamp, Some(time)),
        };
        let rows = leases.of(self.stream).filter_map(|lease| lease.row());
        let elsewhere = |row: &&LeaseRow| {
            // A row with a time is read from that time.
            let other_time = time.is_some() && row.began.is_some() && row.began != time;
            row.checkpoint != there || other_time
        };
        self.begun_elsewhere = rows.filter(elsewhere).count() as u32;
    }

    /// Whether the leases are of the stream of these shards.
    pub(super) fn judge(&mut self, cx: &mut Context, leases: &mut LeaseTable, listed: &Listed) -> bool {
        let by_id: BTreeMap<&str, &Shard> =
            listed.shards.iter().map(|shard| (shard.id.as_str(), shard)).collect();
        let of = leases.iter().filter(|(_, lease)| lease.stream() == self.stream);
        let rows = of.filter_map(|(_, lease)| lease.row());
        let named = some_row_names_stream(cx, leases, self.stream);
        let known = cx.has_recognised(self.stream);
        let judged = |row: &LeaseRow| judged(cx, row, named, known);
        let compared = sync::compare(rows, &by_id, judged);
        lease_table::mark_spoiled(leases, self.stream, &compared);
        let Some(found) = compared.worst().cloned() else {
            self.suspect.contradicted();
            self.doubts.contradicted();
            self.spoiled.clear();
            self.changes = Changes::default();
            (self.since, self.look_at) = (None, Mono::NEVER);
            return cx.has_recognised(self.stream) || self.recognise_first(cx, leases, &by_id);
        };
        // A listing may lag by a scan interval, and its first pages are older than the rest, if the last pages are
        // slow. A row still contradicted by a listing begun later is not of this stream. A contradiction impossible for
        // any listing of this stream, however old, needs a second look all the same: the listing may be of an earlier
        // stream. Recognised rows fitted before: perhaps the stream was made anew, and descriptions show this in
        // another way. The same holds where most rows contradict: then this worker's descriptions may be of the former
        // stream.
        let since = *self.since.get_or_insert(listed.first_page_at);
        // A description may lag as a listing does.
        let is_described = cx.streams().described(self.stream) >= since + cx.config().stream_lag;
        let anew = compared.may_be_made_anew() && !compared.is_of_another();
        let fitted = known || anew;
        let needed = match (found.certain, fitted) {
            (true, false) => Needed::to_give_up(cx),
            (true, true) => Needed::to_refuse_known_rows(cx),
            (false, _) => Needed::to_refuse_rows(cx),
        };
        if (anew || (known && found.certain)) && !is_described {
            cx.request(Request::DoubtStream(self.stream));
        }
        if !compared.is_of_another() {
            self.suspect.contradicted();
            let enough = self.goes_on_without(cx, &compared, listed, needed) || !found.certain;
            // Until then, these shards may be of another stream than the leases.
            let used = enough && (is_described || !anew);
            return used && (cx.has_recognised(self.stream) || self.recognise_first(cx, leases, &by_id));
        }
        self.doubts.contradicted();
        let claim = (found.lease.clone(), found.certain);
        if !self.suspect.says(cx, listed.first_page_at, claim, needed) {
            self.look_at = self.suspect.ask_again_at(needed);
            return cx.has_recognised(self.stream) && !found.certain;
        }
        let why = Fatal::OtherStream {
            stream: cx.stream_name(self.stream),
            table: cx.config().table.clone(),
            lease: found.lease,
            detail: found.detail,
        };
        cx.request(Request::LoseStream(self.stream, why));
        false
    }

    /// The table is this stream's, but for the rows that do not fit. Whether enough listings agree to be right.
    fn goes_on_without(
        &mut self, cx: &Context, compared: &sync::Comparison, listed: &Listed, needed: Needed,
    ) -> bool {
        let misfits = compared.misfits.iter().map(|misfit| misfit.lease.clone());
        if !self.doubts.says(cx, listed.first_page_at, misfits.collect(), needed) {
            self.look_at = self.doubts.ask_again_at(needed);
            return false;
        }
        self.look_at = Mono::NEVER;
        let spoiled = compared.misplaced();
        self.spoiled = spoiled
            .map(|(misfit, checkpoint)| (misfit.lease.clone(), (checkpoint, misfit.detail.clone())))
            .collect();
        true
    }

    /// Says which rows are spoiled. A row that has changed is compared anew.
    pub(super) fn tell_spoiled(&mut self, cx: &mut Context, leases: &LeaseTable) {
        let scan = leases.scans().number();
        for (key, (checkpoint, detail)) in &self.spoiled {
            let Some(row) = leases.row(key.as_str()) else {
                continue;
            };
            if row.checkpoint != *checkpoint && !self.changes.waits(cx.now()) {
                self.look_at = self.look_at.min(self.changes.look(cx));
                continue;
            }
            if let Some(lasting) = self.told.seen(key, scan, cx.now(), cx.config().scan_interval) {
                cx.notify(Notice::Spoiled { lease: key.clone(), detail: detail.clone(), lasting });
            }
        }
        self.told.scanned(scan);
    }

    /// Nothing contradicts the leases. The absence of contradictions counts if their shards were listed, or are
    /// trimmed; a late listing shows neither.
    fn recognise_first(
        &mut self, cx: &mut Context, leases: &LeaseTable, shards: &BTreeMap<&str, &Shard>,
    ) -> bool {
        let now = cx.now();
        let unlisted = leases
            .of(self.stream)
            .any(|lease| lease.is_unfinished() && !shards.contains_key(lease.key().as_str()));
        let since = *self.unlisted.get_or_insert(now);
        if unlisted && now.since(since) < cx.config().stream_lag {
            return false;
        }
        cx.set_recognised(self.stream);
        if self.begun_elsewhere > 0 {
            cx.notify(Notice::Continued {
                table: cx.config().table.clone(),
                leases: self.begun_elsewhere,
                position: cx.streams().initial_position(self.stream),
            });
        }
        true
    }
}

/// When listings follow the changes of spoiled rows. The first change may be an operator's repair of the row: the
/// worker looks at once. Later changes bring listings at growing intervals, since a program may change the row again
/// and again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
struct Changes {
    seen: u32,
    next_at: Mono,
}

impl Changes {
    /// With so many, the pause is longer than any `stream_lag`.
    const MOST: u32 = 30;

    /// Whether it is too soon after the last look.
    fn waits(&self, now: Mono) -> bool {
        self.seen > 0 && now < self.next_at
    }

    /// A row has changed: the shards are listed now, and not again for twice as long as the time before.
    fn look(&mut self, cx: &Context) -> Mono {
        let pause = cx.poll_pause().times(1 << self.seen).min(cx.config().stream_lag);
        self.seen = (self.seen + 1).min(Self::MOST);
        self.next_at = cx.now() + pause;
        cx.now()
    }
}

/// The traits of a row that count. `named`: some row names the stream, so a row without a name belongs to a table
/// filled by this stream's workers. `known`: the table was recognised. From then on, in formats whose rows need a list
/// of the shards, the hash keys of a row may come from a listing.
fn judged(cx: &Context, row: &LeaseRow, named: bool, known: bool) -> sync::Judged {
    let names = names_stream(cx, row);
    let named = names || (named && row.stream.is_none());
    let filled_in = known && cx.needs_listings();
    let counts = !named;
    sync::Judged { range: counts && !filled_in, parents: !named, named: names }
}
