//! What follows from a whole scan: who leads, what is missing, what can go, what is taken.

use super::Core;
use super::ctx::Request;
use super::view::Lease;
use crate::config::InitialPosition;
use crate::ids::{LeaseKey, WorkerId};
use crate::leader;
use crate::mutant::Mutant;
use crate::notice::{Fatal, Notice};
use crate::policy::Finished;
use crate::position::Checkpoint;
use crate::row::Change;
use crate::shard::{HashRange, Shard};
use crate::sync;
use crate::time::{Mono, Span};
use std::collections::{BTreeMap, BTreeSet};

/// No more than this many finished leases are removed after one scan.
const MAX_REMOVALS: usize = 100;
/// The longest that a worker of lower rank waits for the leader, in multiples of the leader's own patience.
const MAX_DEPUTY: u32 = 3;

/// What is remembered from scan to scan.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Upkeep {
    /// Our place in the order of leaders. Absent: we own nothing.
    rank: Option<u32>,
    workers: u32,
    told: bool,
    /// Scans in a row that showed a hole.
    hole_seen: u32,
    /// What the last listing made us plan to create: since when, which scan was the last to have begun then, and from where.
    pub(crate) planned: BTreeMap<LeaseKey, (Mono, u64, Checkpoint)>,
    /// When a listing last ended.
    pub(crate) listed_at: Mono,
    /// An empty table was seen, and the wait before filling it is over.
    pub(crate) waited_empty: bool,
    /// The leases were seen to be of this stream, or we filled the table ourselves.
    pub(crate) recognised: bool,
    /// How many leases the first whole scan showed that begin elsewhere than the configuration says.
    begun_elsewhere: u32,
    /// A lease that perhaps is of another stream, and since when.
    suspect: Option<(LeaseKey, Mono)>,
    /// Since when listings do not show the shard of some unfinished lease.
    unlisted: Option<Mono>,
    /// When we first counted leases, to take our share of them.
    pub(crate) shares_since: Option<Mono>,
    /// The scan since which leases were stolen, and how many.
    pub(crate) stolen: (u64, u32),
}

impl Core {
    /// Everything that is decided after a whole scan.
    pub(crate) fn upkeep(&mut self, foreign: u32, unreadable: u32, pages: u32) {
        if !self.upkeep.told {
            self.upkeep.begun_elsewhere = self.count_begun_elsewhere();
        }
        self.elect();
        let leases = self.view.iter().filter(|(_, lease)| lease.row.is_some()).count() as u32;
        let balance = self.balance();
        self.ctx.tell(Notice::Scanned {
            leases,
            unfinished: balance.unfinished,
            foreign,
            unreadable,
            pages,
            workers: balance.counts.len() as u32,
        });
        if leases == 0 {
            self.fill_empty();
        } else {
            self.upkeep.waited_empty = false;
            self.no_fill();
            if !self.upkeep.recognised && !self.ctx.planted.is(Mutant::AnyTable) {
                return self.ctx.request(Request::ListShards(
                    "there is a lease table already, and it must be of this stream",
                ));
            }
            self.watch_stream(balance.counts.len() as u32);
            self.audit();
            self.ask_lineage();
            self.ask_leases();
            self.clean_up();
            // A question that got lost among others is asked again.
            if self
                .view
                .iter()
                .any(|(_, lease)| lease.tenure.as_ref().is_some_and(|tenure| tenure.missing))
            {
                self.ctx.request(Request::DoubtStream);
            }
        }
        self.take_share(&balance);
    }

    /// Whether the leases are of the stream whose shards these are. If not, nothing more is done with them.
    pub(crate) fn recognise(&mut self, shards: &BTreeMap<&str, &Shard>) -> bool {
        if self.ctx.planted.is(Mutant::AnyTable) {
            return true;
        }
        let rows = self.view.iter().filter_map(|(_, lease)| lease.row.as_ref());
        let Some(found) = sync::misfits(rows, shards) else {
            self.upkeep.suspect = None;
            return self.upkeep.recognised || self.recognise_first(shards);
        };
        // A listing may lag by a scan interval, and its first pages are older than the rest, if the last are long in coming. What
        // one that was begun later still contradicts is not of this stream.
        let now = self.ctx.now;
        let since = match &self.upkeep.suspect {
            Some((lease, since)) if *lease == found.lease => *since,
            _ => now,
        };
        let shown_at = self.listing.first_page_at;
        if !found.certain && shown_at.since(since) < self.ctx.config.scan_interval {
            self.upkeep.suspect = Some((found.lease, since));
            return self.upkeep.recognised;
        }
        self.ctx.request(Request::Stop(Fatal::OtherStream {
            stream: self.ctx.config.stream.clone(),
            table: self.ctx.config.table.clone(),
            lease: found.lease,
            detail: found.detail,
        }));
        false
    }

    /// Nothing contradicts the leases. That says something if their shards were listed, or are trimmed; a listing that lags
    /// shows neither.
    fn recognise_first(&mut self, shards: &BTreeMap<&str, &Shard>) -> bool {
        let now = self.ctx.now;
        let unlisted = self
            .view
            .iter()
            .any(|(_, lease)| lease.unfinished() && !shards.contains_key(lease.key.as_str()));
        let since = *self.upkeep.unlisted.get_or_insert(now);
        if unlisted && now.since(since) < self.ctx.config.scan_interval {
            return false;
        }
        self.upkeep.recognised = true;
        if self.upkeep.begun_elsewhere > 0 {
            self.ctx.tell(Notice::Continued {
                table: self.ctx.config.table.clone(),
                leases: self.upkeep.begun_elsewhere,
                position: self.ctx.config.initial_position,
            });
        }
        true
    }

    /// Whether the shards were listed less than half a scan interval ago.
    fn listed_lately(&self) -> bool {
        let listed_at = self.upkeep.listed_at;
        listed_at > Mono::default() && self.ctx.now.since(listed_at) < self.ctx.config.scan_interval.per(2)
    }

    /// How many leases the configured initial position has no effect on, unless it is the default. A row that says no more than
    /// that its shard begins there is not one of them.
    fn count_begun_elsewhere(&self) -> u32 {
        let there = match self.ctx.config.initial_position {
            InitialPosition::TrimHorizon => return 0,
            InitialPosition::Latest => Checkpoint::Latest,
            InitialPosition::AtTimestamp(_) => Checkpoint::AtTimestamp,
        };
        let rows = self.view.iter().filter_map(|(_, lease)| lease.row.as_ref());
        rows.filter(|row| row.checkpoint != there).count() as u32
    }

    /// The order of leaders is that of KCL 2.x: a fixed shuffle of all owners named in the table; or that of the members.
    fn elect(&mut self) {
        let owners: BTreeSet<WorkerId> = self
            .view
            .iter()
            .filter_map(|(_, lease)| lease.row.as_ref()?.owner.clone())
            .collect();
        let (rank, workers) = match self.place() {
            Some((rank, members)) => (Some(rank), members),
            None => (leader::rank(&owners, &self.ctx.me), owners.len() as u32),
        };
        if rank != self.upkeep.rank || workers != self.upkeep.workers || !self.upkeep.told {
            self.upkeep.told = true;
            self.upkeep.rank = rank;
            self.upkeep.workers = workers;
            self.ctx.tell(Notice::Rank { rank, workers });
        }
    }

    /// How much longer than the leader we wait. The lower ranks act too, later: a leader that cannot list shards would
    /// otherwise leave a hole open for as long as it keeps its leases.
    fn deputy(&self) -> u32 {
        if self.upkeep.workers == 0 {
            0
        } else {
            self.upkeep.rank.unwrap_or(MAX_DEPUTY).min(MAX_DEPUTY)
        }
    }

    /// An empty table is filled by whoever finds it still empty after a random wait.
    fn fill_empty(&mut self) {
        if self.fill_still() {
            return;
        }
        if self.upkeep.waited_empty {
            return self.list_to_fill();
        }
        self.upkeep.waited_empty = true;
        let wait = self.ctx.draw_below(
            "bootstrap",
            self.scan.number,
            self.ctx.config.bootstrap_delay.0 + 1,
        );
        let at = self.ctx.now + Span(wait);
        self.ctx.request(Request::Rescan(at));
    }

    /// Looks for parts of the hash space that no unfinished lease covers.
    fn audit(&mut self) {
        let mut unknown = 0u32;
        let mut ranges: Vec<HashRange> = Vec::new();
        for (_, lease) in self.view.iter().filter(|(_, lease)| lease.unfinished()) {
            match lease.row.as_ref().and_then(|row| row.range) {
                Some(range) => ranges.push(range),
                None => unknown += u32::from(!self.needs_listings()),
            }
        }
        let hole = sync::first_hole(ranges.into_iter());
        if self.ctx.planted.is(Mutant::ListAlways) {
            return self.ctx.request(Request::ListShards("shards are always listed"));
        }
        if (hole.is_none() && unknown == 0) || self.ctx.planted.is(Mutant::NoAudit) {
            self.upkeep.hole_seen = 0;
            // Without a hole nothing is missing, unless every listed shard is to have a row.
            if !self.absence_is_unread() {
                self.upkeep.planned.clear();
            }
            return;
        }
        self.upkeep.hole_seen += 1;
        let seen = self.upkeep.hole_seen;
        let needed = self.ctx.config.audit_confidence.saturating_mul(1 + self.deputy());
        if let Some(range) = hole {
            self.ctx.tell(Notice::Hole { range, seen, needed });
        }
        if seen >= needed {
            // One more scan with the hole, and shards are listed again. Scans that were hurried show nothing that the listing
            // just before did not.
            self.upkeep.hole_seen = needed - 1;
            if self.listed_lately() {
                return;
            }
            self.ctx.request(Request::ListShards(if hole.is_some() {
                "part of the hash space has no unfinished lease"
            } else {
                "some rows lack their hash range"
            }));
        }
    }

    /// Lists the shards if a lease cannot be taken because its parents are not known, and, as the leader, now and then to
    /// learn which finished shards the stream forgot.
    fn ask_lineage(&mut self) {
        if !self.needs_listings() {
            return;
        }
        let unknown = |lease: &Lease| {
            let row = lease.row.as_ref().filter(|row| !row.checkpoint.is_end());
            row.is_some_and(|row| !self.knows_lineage(row))
        };
        if self.view.unordered().any(unknown) {
            return self.ctx.request(Request::ListShards(
                "what shards some leases came from is not known",
            ));
        }
        let (now, delay) = (self.ctx.now, self.ctx.config.cleanup_delay);
        let waits = |lease: &Lease| {
            lease.ended_at != Mono::NEVER
                && now.since(lease.ended_at) >= delay
                && self.still_listed(&lease.key, now - delay).is_none()
        };
        let leads = self.ctx.config.policies.finished == Finished::WhenForgotten && self.deputy() == 0;
        if leads && delay > Span::ZERO && self.view.unordered().any(waits) {
            self.ctx.request(Request::ListShards(
                "the stream may have forgotten shards that were read to their end",
            ));
        }
    }

    /// Removes finished leases that nobody needs any more: their children have begun, and their parents are gone; or
    /// their shards are.
    fn clean_up(&mut self) {
        let delay = self.ctx.config.cleanup_delay;
        if delay == Span::ZERO || self.ctx.planted.is(Mutant::NeverTidies) {
            return;
        }
        let now = self.ctx.now;
        let patience = delay.times(1 + u64::from(self.deputy()));
        let begun = |key: &str| {
            self.view.row(key).is_some_and(|row| {
                !matches!(row.checkpoint, Checkpoint::TrimHorizon | Checkpoint::AtTimestamp)
                    || self.ctx.planted.is(Mutant::RemovedUnbegun)
            })
        };
        let removable: Vec<Change> = self
            .view
            .iter()
            .filter(|(_, lease)| !lease.busy() && lease.ended_at != Mono::NEVER)
            .filter(|(_, lease)| now.since(lease.ended_at) >= patience)
            .filter_map(|(_, lease)| {
                let row = lease.row.as_ref()?;
                let children =
                    !row.children.is_empty() && row.children.iter().all(|child| begun(child.as_str()));
                let ancestors = row
                    .parents
                    .iter()
                    .any(|parent| self.view.row(parent.as_str()).is_some());
                let finished = match self.ctx.config.policies.finished {
                    Finished::WhenForgotten if self.ctx.planted.is(Mutant::FinishedRemovedEarly) => {
                        Finished::WhenRead
                    }
                    finished => finished,
                };
                let needless = match finished {
                    Finished::WhenRead => children && !ancestors,
                    Finished::WhenForgotten => self.still_listed(&lease.key, lease.ended_at) == Some(false),
                    Finished::Never => false,
                };
                (row.checkpoint.is_end() && needless).then(|| Change::Delete {
                    key: lease.key.clone(),
                    counter: row.counter,
                })
            })
            .take(MAX_REMOVALS)
            .collect();
        // The next whole scan decides on the rest anew. Where it takes long, so may this.
        let until_next = self.scan.usual().max(self.ctx.config.scan_interval);
        for change in removable {
            let why = "the shard was processed and its children have begun".to_string();
            self.ctx.write_row(change, why, None, now + until_next);
        }
    }
}
