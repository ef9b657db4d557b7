//! Reading the whole lease table, page by page.

use super::observe::Source;
use super::reports::Reports;
use super::{Aside, Balance, Lease, LeaseTable, pace};
use crate::ids::{LeaseKey, OpId};
use crate::input::{Outcome, Reply, ScanPage, Why};
use crate::notice::Notice;
use crate::output::TableOp;
use crate::row::{LeaseRow, RowRead};
use crate::time::{Mono, Span};
use crate::worker::backoff::Backoff;
use crate::worker::context::{Context, Request, Waiter};
use crate::worker::describe;
use std::collections::BTreeSet;

/// Findings of the scans so far beside leases.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(in crate::worker) struct Scans {
    /// Counts scans, from 1.
    number: u64,
    /// The number of the last whole scan that ended.
    complete: u64,
    /// The begin of the last whole scan, the begin of the whole scan before, and the times of both.
    complete_since: Mono,
    before_since: Mono,
    /// When the first whole scan ended; of no meaning before that.
    first_ended: Mono,
    took: [Span; 2],
    /// Keys whose items are not ours to touch: they can hold no lease of ours.
    occupied: BTreeSet<LeaseKey>,
    /// Occupied items that ought to be leases.
    unreadable: Reports,
    /// How many of the known leases were shown, or written by us, since the scan with the present number began.
    shown: Aside<usize>,
}

impl Scans {
    /// The number of the present scan, or of the last one.
    pub(in crate::worker) fn number(&self) -> u64 {
        self.number
    }

    /// The number of the last whole scan that ended.
    pub(in crate::worker) fn complete(&self) -> u64 {
        self.complete
    }

    /// When the last whole scan began.
    pub(in crate::worker) fn began(&self) -> Mono {
        self.complete_since
    }

    /// When the whole scan before the last one began.
    pub(super) fn before_began(&self) -> Mono {
        self.before_since
    }

    #[cfg(test)]
    pub(super) fn first_ended_at(&mut self, now: Mono) {
        self.first_ended = now;
    }

    /// When the first whole scan ended. Before that: the earliest moment.
    pub(in crate::worker) fn first_ended(&self) -> Mono {
        self.first_ended
    }

    /// A lease was shown, or written by us. `first`: for the first time since the begin of this scan.
    pub(super) fn count_shown(&mut self, first: bool) {
        self.shown.0 += usize::from(first);
    }

    /// A lease was forgotten, last shown by the scan with this number.
    pub(super) fn forgot(&mut self, seen_by: u64) {
        self.shown.0 -= usize::from(seen_by == self.number && self.number > 0);
    }

    /// Whether the last whole scan began no more than `slack` and two times of a scan before `at`. The first rows of a
    /// scan are as old as the scan itself.
    pub(in crate::worker) fn is_as_new_as(&self, at: Mono, slack: Span) -> bool {
        self.complete > 0 && self.complete_since + slack + self.usual().times(2) >= at
    }

    /// How long a whole scan takes.
    pub(in crate::worker) fn usual(&self) -> Span {
        self.took[0].min(self.took[1])
    }

    /// Keys whose items are not ours to touch: they can hold no lease of ours.
    pub(in crate::worker) fn occupied(&self) -> &BTreeSet<LeaseKey> {
        &self.occupied
    }

    /// Rows that ought to be leases and cannot be read.
    pub(in crate::worker) fn unreadable(&self) -> &Reports {
        &self.unreadable
    }
}

/// A whole scan that has ended.
#[derive(Clone, Debug)]
pub(in crate::worker) struct Scanned {
    balance: Balance,
    round: bool,
}

impl Scanned {
    /// What the last scan has shown, once more.
    pub(in crate::worker) fn again(cx: &Context, leases: &LeaseTable) -> Self {
        Self { balance: leases.shares(cx).balance(), round: true }
    }

    /// How the leases lie.
    pub(in crate::worker) fn balance(&self) -> &Balance {
        &self.balance
    }

    /// Whether it is the scan of a round: see `pace`.
    pub(in crate::worker) fn is_round(&self) -> bool {
        self.round
    }
}

/// The present scan, or the next scan.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(in crate::worker) struct Scan {
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
    began_at: Mono,
    pages: u32,
    foreign: u32,
    unreadable: u32,
    occupied: BTreeSet<LeaseKey>,
    backoff: Backoff,
    /// When the next round is due, and whether the present scan is a round.
    next_round: Mono,
    round: bool,
    /// Grows with pages that could not be had, up to the most doublings of the pause, and goes back with whole scans.
    failed: u32,
    /// What was told of the last scan.
    told: [u32; 6],
}

impl Scan {
    /// When the next page is due.
    pub(in crate::worker) fn wake_at(&self, cx: &Context, leases: &LeaseTable) -> Mono {
        match self.in_flight || !leases.kcl3.has_looked(cx) {
            true => Mono::NEVER,
            false => self.next_at,
        }
    }

    /// Brings the next scan forward, but not too close to the last one. Has no effect within one.
    pub(in crate::worker) fn schedule_by(&mut self, at: Mono) {
        if !self.within {
            self.next_at = self.next_at.min(at.max(self.not_before));
        }
    }

    /// Asks for the next page, if it is time.
    pub(in crate::worker) fn step(&mut self, cx: &mut Context, leases: &mut LeaseTable) {
        if !cx.is_running() || cx.now() < self.wake_at(cx, leases) {
            return;
        }
        debug_assert!(!self.in_flight, "one page at a time");
        if !self.within {
            self.within = true;
            self.began_at = cx.now();
            self.round = !cx.hands_over() || cx.now() >= self.next_round;
            leases.scans.number += 1;
            leases.scans.shown.0 = 0;
            self.cursor = None;
            (self.pages, self.foreign, self.unreadable) = (0, 0, 0);
            self.occupied.clear();
        }
        let limit = Some(cx.config().scan_page_limit).filter(|limit| *limit > 0);
        let after = self.cursor.clone();
        cx.table(Waiter::Scan, TableOp::Scan { after, limit });
        self.in_flight = true;
        self.asked_at = cx.now();
    }

    /// The answer to the request of a page. Returns the findings of a whole scan at its end.
    pub(in crate::worker) fn on_page(
        &mut self, cx: &mut Context, leases: &mut LeaseTable, op: OpId, outcome: Outcome,
    ) -> Option<Scanned> {
        debug_assert!(self.in_flight, "a page was asked for");
        debug_assert!(self.within, "a page is of a scan that is under way");
        debug_assert!(self.asked_at >= self.began_at, "pages are asked for within their scan");
        self.in_flight = false;
        if !cx.is_running() {
            self.within = false;
            return None;
        }
        let page = match outcome {
            Outcome::Applied(Reply::Page(page)) => page,
            other => {
                self.failed(cx, op, &other);
                return None;
            }
        };
        self.pages += 1;
        leases.news += 1;
        // A page with its own beginning as the next page: the service hides the later rows.
        let stuck = page.next.is_some() && page.next == self.cursor;
        self.cursor = page.next.clone();
        self.take_rows(cx, leases, page);
        if stuck {
            self.fails(cx, op, "the page names its own beginning as the next page".to_owned());
            return None;
        }
        self.backoff.succeeded();
        if self.cursor.is_some() {
            self.next_at = cx.now();
            self.step(cx, leases);
            return None;
        }
        Some(self.complete(cx, leases))
    }

    fn failed(&mut self, cx: &mut Context, op: OpId, outcome: &Outcome) {
        if matches!(outcome, Outcome::Refused(refusal) if refusal.why == Why::NotFound) {
            cx.request(Request::DoubtTable);
        }
        self.fails(cx, op, describe(outcome));
    }

    /// The same page is asked for again after a pause.
    fn fails(&mut self, cx: &mut Context, op: OpId, how: String) {
        self.failed = pace::MAX_DOUBLINGS.min(self.failed + 1);
        let again_in = self.backoff.failed(cx, "scan", "");
        self.next_at = self.backoff.until();
        cx.trouble(op, None, "scan the lease table", how, again_in);
    }

    fn take_rows(&mut self, cx: &mut Context, leases: &mut LeaseTable, page: ScanPage) {
        let source = Source::Scan { asked_at: self.asked_at };
        for row in page.rows {
            match row {
                RowRead::Lease(row) => match is_read(leases, cx, &row) {
                    true => leases.observe(cx, row, source),
                    false => leases.unread.observe(cx, leases.scans.number, &row),
                },
                RowRead::Foreign { key, says, .. } => {
                    self.foreign += 1;
                    if let Some(says) = says {
                        let number = leases.scans.number;
                        leases.kcl3.observe(cx, number, self.asked_at, *says);
                    }
                    self.occupied.insert(key);
                }
                RowRead::Unreadable { key, detail } => {
                    self.unreadable += 1;
                    report_unreadable(cx, leases, &key, detail);
                    self.occupied.insert(key);
                }
            }
        }
    }

    fn complete(&mut self, cx: &mut Context, leases: &mut LeaseTable) -> Scanned {
        let now = cx.now();
        self.within = false;
        let scans = &mut leases.scans;
        debug_assert!(scans.complete < scans.number, "a scan ends once");
        if scans.complete == 0 {
            scans.first_ended = now;
        }
        scans.complete = scans.number;
        scans.before_since = std::mem::replace(&mut scans.complete_since, self.began_at);
        scans.took = [now.since(self.began_at), scans.took[0]];
        scans.occupied = std::mem::take(&mut self.occupied);
        scans.unreadable.scanned(scans.number);
        forget_unseen(leases);
        let number = leases.scans.number;
        leases.named.scanned(number);
        leases.unread.scanned(cx, number);
        let rows = leases.len() as u32;
        let balance = leases.shares(cx).balance();
        judge_kcl3(leases, cx);
        leases.plain.0.forget_names(balance.workers() as usize);
        debug_assert!(balance.unfinished() <= rows, "only a row stands for an unfinished lease");
        self.rest(cx, leases, rows, &balance);
        self.tell(cx, rows, &balance);
        let round = self.round;
        Scanned { balance, round }
    }

    /// Sets when the next scan is due.
    fn rest(&mut self, cx: &Context, leases: &LeaseTable, rows: u32, balance: &Balance) {
        let (now, interval) = (cx.now(), cx.config().scan_interval);
        let number = leases.scans.number;
        // Late rather than early: workers that started together drift apart.
        let late = |pause: Span| pause + Span(cx.draw_below("scan interval", number, pause.0 / 20 + 1));
        if self.round {
            self.next_round = now + late(interval);
        }
        let share = u64::from(balance.target());
        let pause = match pace::is_quick(cx, balance, leases.kcl3.is_led()) {
            true => pace::quick_pause(cx.config(), u64::from(rows), share, self.failed),
            false => interval,
        };
        self.failed = self.failed.saturating_sub(1);
        self.not_before = now + pause.per(8);
        // A round due during this scan follows at once, as far as allowed.
        self.next_at = self.next_round.min(now + late(pause)).max(self.not_before);
        if pause < interval
            && let Some(at) = next_expiry(leases, cx)
        {
            self.next_at = self.next_at.min(at.max(now + cx.config().quick_scan_interval));
        }
        debug_assert!(self.next_at > now && pause <= interval, "a scan is followed by a pause");
    }

    /// Says what the scan showed: of every round, and of a quick scan what is new.
    fn tell(&mut self, cx: &mut Context, leases: u32, balance: &Balance) {
        let (unfinished, workers) = (balance.unfinished(), balance.workers());
        let (foreign, unreadable, pages) = (self.foreign, self.unreadable, self.pages);
        let shown = [leases, unfinished, foreign, unreadable, pages, workers];
        if self.round || self.told != shown {
            self.told = shown;
            cx.notify(Notice::Scanned { leases, unfinished, foreign, unreadable, pages, workers });
        }
    }
}

fn report_unreadable(cx: &mut Context, leases: &mut LeaseTable, key: &LeaseKey, detail: String) {
    let (scan, pause) = (leases.scans.number, cx.config().scan_interval);
    if let Some(lasting) = leases.scans.unreadable.seen(key, scan, cx.now(), pause) {
        cx.notify(Notice::Unreadable { key: key.clone(), detail, lasting });
    }
}

/// Whether a row is of a stream that is read, or of a lease that is being let go of.
fn is_read(leases: &LeaseTable, cx: &Context, row: &LeaseRow) -> bool {
    let busy = || {
        let lease = leases.find(row.key.as_str()).and_then(|ix| leases.get(ix));
        lease.is_some_and(Lease::busy)
    };
    let stream = cx.streams().of_key(row.key.as_str());
    stream.is_some_and(|stream| cx.streams().reads(stream) || busy())
}

/// When the next lease expires whose row has stood still for half a lease duration. The row of a live owner does not stand still for so long. In
/// a large table, scans are so far apart that a dead owner would be noticed seconds later.
fn next_expiry(leases: &LeaseTable, cx: &Context) -> Option<Mono> {
    let lasts = cx.config().lease_duration;
    let stands = |lease: &Lease| {
        let owned = lease.unfinished_row().is_some_and(|row| row.actual_owner().is_some());
        owned && !lease.is_ours() && lasts.per(2) <= lease.idle() && lease.idle() < lasts
    };
    let standing = leases.unordered().filter(|lease| stands(lease));
    standing.map(|lease| lease.observed_at() + lasts).min()
}

/// Works out which workers of a KCL 3.x fleet live, and by which rules leases are had until the next scan.
fn judge_kcl3(leases: &mut LeaseTable, cx: &Context) {
    let number = leases.scans.number;
    if leases.kcl3.has_reports() {
        let standings = leases.owners().standings(cx);
        leases.kcl3.note_owners(cx, &standings);
    }
    leases.kcl3.scanned(cx, number);
}

/// Forgets the leases that the last whole scan did not show.
fn forget_unseen(leases: &mut LeaseTable) {
    let number = leases.scans.number;
    if leases.scans.shown.0 == leases.len() {
        debug_assert!(
            leases.len() > 64
                || leases.unordered().all(|lease| lease.seen_by == number && lease.row().is_some()),
            "shown leases are counted"
        );
        return;
    }
    leases.forget_idle(|lease| lease.seen_by < number);
}
