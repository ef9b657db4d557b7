//! Reading the whole lease table, page by page, and what every row read does to the view.

use super::Core;
use super::ctx::{Request, Waiter};
use super::unreadable::Unreadable;
use crate::ids::{LeaseKey, OpId};
use crate::input::{Outcome, Reply, Why};
use crate::mutant::Mutant;
use crate::notice::Notice;
use crate::output::TableOp;
use crate::row::{LeaseRow, RowRead};
use crate::time::{Mono, Span};
use std::collections::BTreeSet;

/// The scan machine.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Scan {
    /// Counts scans, from 1.
    pub(crate) number: u64,
    /// The page in flight.
    in_flight: bool,
    /// When it was asked for.
    asked_at: Mono,
    /// When the next page is due, if none is in flight.
    next_at: Mono,
    /// The least distance to the last scan, however much there is to look at: an eighth of the interval.
    not_before: Mono,
    /// Where the next page starts, within a scan.
    cursor: Option<LeaseKey>,
    within: bool,
    pages: u32,
    foreign: u32,
    failures: u32,
    /// Keys whose items are not ours to touch: they can hold no lease of ours.
    pub(crate) occupied: BTreeSet<LeaseKey>,
    occupied_now: BTreeSet<LeaseKey>,
    unreadable: u32,
    /// Those of these items that ought to be leases.
    pub(crate) broken: Unreadable,
    began_at: Mono,
    /// The number of the last whole scan that ended.
    pub(crate) complete: u64,
    /// When that one began, and how long it and the one before took.
    complete_since: Mono,
    took: [Span; 2],
}

impl Scan {
    pub(crate) fn wake_at(&self) -> Mono {
        if self.in_flight { Mono::NEVER } else { self.next_at }
    }

    /// Whether the last whole scan tells how things are about now. The first rows that it showed are as old as it is, and that
    /// may be much more than usual: if the table could not be reached in the midst of it.
    pub(crate) fn is_fresh(&self, now: Mono, interval: Span) -> bool {
        self.complete > 0 && now.since(self.complete_since) <= interval.times(2) + self.usual().times(2)
    }

    /// How long a whole scan takes.
    pub(crate) fn usual(&self) -> Span {
        self.took[0].min(self.took[1])
    }

    /// Brings the next scan forward, but not too close to the last one. Has no effect within one.
    pub(crate) fn hurry(&mut self, at: Mono) {
        if !self.within {
            self.next_at = self.next_at.min(at.max(self.not_before));
        }
    }
}

impl Core {
    /// Asks for the next page, if it is time.
    pub(crate) fn scan_step(&mut self) {
        let booted = self.boot.step == super::boot::Step::Done;
        if !self.is_running() || !booted || self.ctx.now < self.scan.wake_at() {
            return;
        }
        if !self.scan.within {
            self.scan.within = true;
            self.scan.began_at = self.ctx.now;
            self.scan.number += 1;
            self.scan.cursor = None;
            self.scan.pages = 0;
            self.scan.foreign = 0;
            self.scan.unreadable = 0;
            self.scan.occupied_now.clear();
        }
        let limit = Some(self.ctx.config.scan_page_limit).filter(|limit| *limit > 0);
        self.ctx.table(
            Waiter::Scan,
            TableOp::Scan {
                after: self.scan.cursor.clone(),
                limit,
            },
        );
        self.scan.in_flight = true;
        self.scan.asked_at = self.ctx.now;
    }

    pub(crate) fn scan_done(&mut self, op: OpId, outcome: Outcome) {
        self.scan.in_flight = false;
        if !self.is_running() {
            self.scan.within = false;
            return;
        }
        let page = match outcome {
            Outcome::Applied(Reply::Page(page)) => page,
            other => {
                if matches!(&other, Outcome::Refused(refusal) if refusal.why == Why::NotFound) {
                    self.ctx.request(Request::DoubtTable);
                }
                self.scan.failures += 1;
                let pause = self.ctx.backoff("scan", "", self.scan.failures);
                self.scan.next_at = self.ctx.now + pause;
                if self.ctx.planted.is(Mutant::ScanGivesUp) {
                    self.scan.next_at = Mono::NEVER;
                }
                let how = super::describe(&other);
                self.ctx.tell(Notice::Trouble {
                    op,
                    lease: None,
                    what: "scan the lease table".into(),
                    how,
                    again_in: pause,
                });
                return;
            }
        };
        if !self.ctx.planted.is(Mutant::FailuresStay) {
            self.scan.failures = 0;
        }
        self.scan.pages += 1;
        self.news += 1;
        for row in page.rows {
            match row {
                RowRead::Lease(row) => self.observe(row, true),
                RowRead::Foreign { key, .. } => {
                    self.scan.foreign += 1;
                    self.scan.occupied_now.insert(key);
                }
                RowRead::Unreadable { key, detail } => {
                    self.scan.unreadable += 1;
                    self.unreadable_seen(&key, detail);
                    self.scan.occupied_now.insert(key);
                }
            }
        }
        // A service that repeats a cursor would keep us in one scan for ever.
        let stuck = page.next.is_some() && page.next == self.scan.cursor;
        self.scan.cursor = page.next;
        if self.scan.cursor.is_some() && !stuck && !self.ctx.planted.is(Mutant::FirstPageOnly) {
            self.scan.next_at = self.ctx.now;
            self.scan_step();
        } else {
            self.scan_complete();
        }
    }

    fn unreadable_seen(&mut self, key: &LeaseKey, detail: String) {
        let (scan, now, pause) = (self.scan.number, self.ctx.now, self.ctx.config.scan_interval);
        if let Some(lasting) = self.scan.broken.seen(key, scan, now, pause) {
            self.ctx.tell(Notice::Unreadable {
                key: key.clone(),
                detail,
                lasting,
            });
        }
    }

    fn scan_complete(&mut self) {
        self.scan.within = false;
        self.scan.complete = self.scan.number;
        self.scan.complete_since = self.scan.began_at;
        self.scan.took = [self.ctx.now.since(self.scan.began_at), self.scan.took[0]];
        self.scan.occupied = std::mem::take(&mut self.scan.occupied_now);
        self.scan.broken.scanned(self.scan.number);
        // Late rather than early: workers that started together drift apart.
        let spread = self.ctx.draw_below(
            "scan interval",
            self.scan.number,
            self.ctx.config.scan_interval.0 / 20 + 1,
        );
        self.scan.next_at = self.ctx.now + self.ctx.config.scan_interval + Span(spread);
        self.scan.not_before = self.ctx.now + self.ctx.config.scan_interval.per(8);
        for ix in self.view.all() {
            let number = self.scan.number;
            let Some(lease) = self.view.get_mut(ix) else {
                continue;
            };
            if lease.seen_by < number && !lease.busy() {
                self.view.forget(ix);
            }
        }
        let (foreign, unreadable, pages) = (self.scan.foreign, self.scan.unreadable, self.scan.pages);
        self.upkeep(foreign, unreadable, pages);
    }

    /// Takes note of a row as some answer showed it. `scanned`: by a scan, which may be stale.
    pub(crate) fn observe(&mut self, mut row: LeaseRow, scanned: bool) {
        self.complete_lineage(&mut row);
        let now = self.ctx.now;
        let number = self.scan.number;
        let ix = self.view.intern(&row.key);
        let Some(lease) = self.view.get_mut(ix) else {
            return;
        };
        lease.seen_by = number;
        lease.highest = lease.highest.max(row.counter);
        let asked = if scanned { self.scan.asked_at } else { now };
        if lease.ours() {
            // What we know of a held lease comes from our own guarded writes. A scan can only raise a suspicion, which
            // the next write's guard settles.
            let me = self.ctx.me.clone();
            if let Some(tenure) = &mut lease.tenure {
                let ahead =
                    row.counter > tenure.counter && tenure.flight.is_none() && tenure.unresolved.is_none();
                let handed = row.counter == tenure.counter
                    && row.handing_over.as_ref() == Some(&me)
                    && tenure.next_owner.is_none();
                if ahead || handed {
                    tenure.renew_at = now;
                    self.view.arm(ix, now);
                }
            }
            return;
        }
        if let Some(known) = &lease.row {
            if scanned && row.counter < known.counter && lease.older_seen < 1 {
                // Most likely a stale read; if the row was really made anew, the next scan says so again.
                lease.older_seen += 1;
                return;
            }
            lease.older_seen = 0;
            lease.seen_at = lease.seen_at.max(asked);
            let same = row.counter == known.counter
                && row.owner == known.owner
                && row.handing_over == known.handing_over;
            let range = row.range.or(known.range);
            let ended = row.checkpoint.is_end();
            let was_ended = known.checkpoint.is_end();
            lease.row = Some(LeaseRow { range, ..row });
            let fresh = !same || self.ctx.planted.is(Mutant::RowTwiceSeen);
            if fresh && !self.ctx.planted.is(Mutant::BlindToCounter) {
                lease.observed_at = now;
            }
            if ended != was_ended {
                lease.ended_at = if ended { now } else { Mono::NEVER };
            }
        } else {
            (lease.observed_at, lease.seen_at) = (now, asked);
            lease.ended_at = if row.checkpoint.is_end() { now } else { Mono::NEVER };
            lease.row = Some(row);
        }
    }
}
