//! Finding the leases assigned by a leader, in the index of owners, while the next scan is far away.
//!
//! A worker of KCL 3.x finds its own leases in the index of owners. This worker does the same, where its scans are
//! further apart than `fleet.discovery_interval`:
//!
//! ```text
//!              ┌──────── further pages ────────┐   ┌── the next key ──┐
//!              ▼                               │   ▼                  │
//!   pause ─► keys of our leases, from the index ─► the row, consistent ─► pause
//!     ▲        │ there is no index                   │ it is ours
//!     └ a minute ┘                                   └────► it is taken, as after a scan
//! ```
//!
//! The index lags behind the table. A key in the index is a hint and nothing more: the row, read afterwards, and the
//! guard of the take decide. The lane has at most one request in flight. Without an index, scans alone show
//! assignments.

use crate::ids::{LeaseKey, OpId};
use crate::input::{Outcome, OwnedPage, Reply, Why};
use crate::output::TableOp;
use crate::row::{LeaseRow, RowRead};
use crate::time::{Mono, Span};
use crate::worker::backoff::Backoff;
use crate::worker::context::{Context, Request, Waiter};
use crate::worker::describe;
use crate::worker::lease_table::LeaseTable;
use std::collections::VecDeque;

/// The most rows read in one look. The next look, or a scan, finds the rest.
pub(super) const MAX_READS: usize = 100;
/// The pause after a look that found no usable index. An index may be created at any time.
pub(super) const AGAIN: Span = Span::from_secs(60);

/// The present look, or the next look.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Discovery {
    flight: Option<(OpId, Asked)>,
    look: Option<Look>,
    /// No look begins before this.
    next_at: Mono,
    backoff: Backoff,
    /// The last look found no usable index, and a notice was given.
    without: bool,
}

/// What is in flight.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Asked {
    /// A page of keys.
    Page,
    /// The row of this lease.
    Row(LeaseKey),
}

/// What is left of a look.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Look {
    /// Another page follows, and starts after this key.
    page: Option<Option<LeaseKey>>,
    /// Leases whose rows are to be read.
    keys: VecDeque<LeaseKey>,
}

/// The next action for a lease named as ours by the index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Hint {
    /// No action: the lease is held, is being taken, or is of a stream that this worker does not read.
    Known,
    /// The row is known to name us: take the lease.
    Ours,
    /// Read the row of the lease.
    New,
}

/// Whether a row names us as the owner, and nobody is to hand the lease over first.
fn is_plainly_ours(cx: &Context, row: &LeaseRow) -> bool {
    row.owner.as_ref() == Some(cx.me()) && row.handing_over.is_none() && !row.checkpoint.is_end()
}

fn weigh(cx: &Context, leases: &LeaseTable, key: &LeaseKey) -> Hint {
    let stream = cx.streams().of_key(key.as_str());
    // No lease is taken before the stream of the table is known.
    if !stream.is_some_and(|stream| cx.has_recognised(stream) && cx.may_take(stream)) {
        return Hint::Known;
    }
    let lease = leases.find(key.as_str()).and_then(|ix| leases.get(ix));
    match lease {
        Some(lease) if lease.busy() => Hint::Known,
        Some(lease) if lease.row().is_some_and(|row| is_plainly_ours(cx, row)) => Hint::Ours,
        _ => Hint::New,
    }
}

impl Discovery {
    pub(super) fn wake_at(&self, cx: &Context, leases: &LeaseTable) -> Mono {
        let interval = cx.config().fleet.discovery_interval;
        let looks = cx.wants_leases() && leases.kcl3().is_led() && !interval.is_zero();
        if !looks || self.flight.is_some() {
            return Mono::NEVER;
        }
        let due = match self.look {
            Some(_) => Mono(0),
            // A scan shows what the index would show.
            None => self.next_at.max(leases.scans().began() + interval),
        };
        due.max(self.backoff.until())
    }

    /// Asks for what is due.
    pub(super) fn step(&mut self, cx: &mut Context, leases: &LeaseTable) {
        if cx.now() < self.wake_at(cx, leases) {
            return;
        }
        let next_at = cx.now() + cx.config().fleet.discovery_interval;
        let look = self.look.get_or_insert_with(|| {
            self.next_at = next_at;
            Look { page: Some(None), keys: VecDeque::new() }
        });
        let (asked, op) = match (look.keys.pop_front(), &look.page) {
            (Some(key), _) => (Asked::Row(key.clone()), TableOp::Read { key }),
            (None, Some(after)) => {
                let (owner, after) = (cx.me().clone(), after.clone());
                (Asked::Page, TableOp::Owned { owner, after })
            }
            (None, None) => {
                self.look = None;
                return;
            }
        };
        self.flight = Some((cx.table(Waiter::Discovery, op), asked));
    }

    /// Takes in an answer. Returns whether the row names us as the owner of a lease to be taken.
    pub(super) fn on_outcome(
        &mut self, cx: &mut Context, leases: &mut LeaseTable, op: OpId, outcome: Outcome,
    ) -> bool {
        let Some((_, asked)) = self.flight.take_if(|(expected, _)| *expected == op) else {
            debug_assert!(false, "an answer is to what is in flight");
            return false;
        };
        if !cx.wants_leases() || !leases.kcl3().is_led() {
            self.look = None;
            return false;
        }
        let found = match (asked, outcome) {
            (Asked::Page, Outcome::Applied(Reply::Owned(page))) => self.on_page(cx, leases, page),
            (Asked::Row(_), Outcome::Applied(Reply::Row(row))) => {
                self.backoff.succeeded();
                row.is_some_and(|row| on_row(cx, leases, *row))
            }
            (asked, outcome) => {
                self.on_failure(cx, op, asked, &outcome);
                false
            }
        };
        if self.look.as_ref().is_some_and(|look| look.page.is_none() && look.keys.is_empty()) {
            self.look = None;
        }
        found
    }

    fn on_page(&mut self, cx: &Context, leases: &LeaseTable, page: OwnedPage) -> bool {
        self.backoff.succeeded();
        self.without = false;
        let Some(look) = &mut self.look else {
            debug_assert!(false, "a page is of a look that is under way");
            return false;
        };
        let mut found = false;
        for key in page.keys {
            match weigh(cx, leases, &key) {
                Hint::Known => {}
                Hint::Ours => found = true,
                Hint::New if look.keys.len() < MAX_READS => look.keys.push_back(key),
                Hint::New => {}
            }
        }
        // A service that repeats a cursor would keep the worker in one look for ever.
        let next = page.next.filter(|next| look.page.as_ref() != Some(&Some(next.clone())));
        let is_full = look.keys.len() >= MAX_READS;
        look.page = next.filter(|_| !is_full).map(Some);
        found
    }

    fn on_failure(&mut self, cx: &mut Context, op: OpId, asked: Asked, outcome: &Outcome) {
        let refusal = match outcome {
            Outcome::Refused(refusal) => Some(refusal.why),
            _ => None,
        };
        if refusal == Some(Why::NotFound) {
            cx.request(Request::DoubtTable);
        }
        let what = match &asked {
            Asked::Page => "look in the index of owners for assigned leases".to_owned(),
            Asked::Row(key) => format!("read the row of {key}"),
        };
        let again_in = match (refusal, asked) {
            (Some(_), Asked::Page) => {
                self.look = None;
                self.next_at = cx.now() + AGAIN;
                self.backoff.succeeded();
                if std::mem::replace(&mut self.without, true) {
                    return;
                }
                AGAIN
            }
            (_, asked) => {
                if let (Some(look), Asked::Row(key)) = (&mut self.look, asked) {
                    look.keys.push_front(key);
                }
                self.backoff.failed(cx, "discovery", "")
            }
        };
        cx.trouble(op, None, what, describe(outcome), again_in);
    }
}

/// Takes note of a row that was read. Whether it is ours to take.
fn on_row(cx: &Context, leases: &mut LeaseTable, row: RowRead) -> bool {
    // What cannot be read is told by scans.
    let RowRead::Lease(row) = row else { return false };
    let lease = leases.find(row.key.as_str()).and_then(|ix| leases.get(ix));
    let known_better = lease.is_some_and(|lease| {
        // Something came between the question and the answer.
        lease.busy() || lease.row().is_some_and(|known| known.counter > row.counter)
    });
    if known_better || weigh(cx, leases, &row.key) == Hint::Known {
        return false;
    }
    let ours = is_plainly_ours(cx, &row);
    leases.observe_now(cx, row);
    ours
}
