//! The effect on the table of a row shown by an answer.

use super::plain::weigh_after;
use super::unread::longest_gap;
use super::{Lease, LeaseTable};
use crate::ids::LeaseIx;
use crate::row::LeaseRow;
use crate::time::{Mono, Span};
use crate::worker::context::Context;

/// Where a row was shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Source {
    /// By a scan, requested at this moment, and perhaps stale.
    Scan { asked_at: Mono },
    /// By a consistent read, a refusal, or our own write.
    Beside,
}

impl LeaseTable {
    /// Takes note of a row that a consistent read, a refusal or our own write showed.
    pub(in crate::worker) fn observe_now(&mut self, cx: &Context, row: LeaseRow) {
        self.observe(cx, row, Source::Beside);
    }

    pub(super) fn observe(&mut self, cx: &Context, mut row: LeaseRow, source: Source) {
        let Some(stream) = cx.streams().of_key(row.key.as_str()) else {
            // The row is of a stream never read, or its key is of another kind of application.
            return;
        };
        if self.lineage.may_complete(&row) {
            let known = self.row(row.key.as_str());
            self.lineage.complete(&mut row, known);
        }
        self.named.note(self.scans.number(), stream, &row);
        let ix = self.intern(&row.key, stream);
        weigh_after(self, cx, ix, |leases| note(leases, cx, ix, row, source));
    }
}

fn note(leases: &mut LeaseTable, cx: &Context, ix: LeaseIx, row: LeaseRow, source: Source) {
    let number = leases.scans.number();
    let Some(lease) = leases.get_mut(ix) else {
        debug_assert!(false, "the lease of a shown row is known by now");
        return;
    };
    let first = lease.seen_in(number);
    let covered = lease.covers();
    lease.highest = lease.highest.max(row.counter);
    // Another hand-over of the lease begins with a request of its own.
    let named = |known: &LeaseRow| known.owner == row.owner && known.handing_over == row.handing_over;
    if !lease.row().is_none_or(named) {
        lease.note_requested(false, cx.now());
    }
    lease.note_requested(row.handing_over.is_some(), cx.now());
    if lease.is_ours() {
        // What we know of a held lease comes from our own guarded writes. A scan can only raise a suspicion, which
        // the next write's guard settles.
        let doubts = lease.doubts(cx.me(), &row);
        leases.scans.count_shown(first);
        if doubts {
            leases.wake(ix, cx.now());
        }
        return;
    }
    lease.saw(row, source, cx.now(), longest_gap(cx));
    let changed = lease.covers() != covered;
    leases.scans.count_shown(first);
    leases.cover.0 += u64::from(changed);
}

impl Lease {
    /// `longest`: the longest time between two answers after which a change counts as recent.
    fn saw(&mut self, row: LeaseRow, source: Source, now: Mono, longest: Span) {
        let asked = match source {
            Source::Scan { asked_at } => asked_at,
            Source::Beside => now,
        };
        debug_assert!(asked <= now, "an answer comes after the question");
        let Some(known) = &self.row else {
            (self.observed_at, self.seen_at) = (now, asked);
            self.ended_at = if row.checkpoint.is_end() { now } else { Mono::NEVER };
            self.row = Some(row);
            return;
        };
        if source != Source::Beside && row.counter < known.counter && self.older_seen < 1 {
            // Most likely a stale read; if the row was really made anew, the next scan says so again.
            self.older_seen += 1;
            return;
        }
        self.older_seen = 0;
        let apart = asked.since(self.seen_at);
        self.seen_at = self.seen_at.max(asked);
        // Another worker's request for the lease is no sign of life of its owner. A moved checkpoint is a sign of life,
        // even if a person's edit set the counter back.
        let kept = row.actual_owner() == known.actual_owner();
        let renewed = kept && row.counter > known.counter;
        let same = row.counter == known.counter && kept && row.checkpoint == known.checkpoint;
        let range = row.range.or(known.range);
        let (ended, was_ended) = (row.checkpoint.is_end(), known.checkpoint.is_end());
        self.row = Some(LeaseRow { range, ..row });
        if !same {
            self.observed_at = now;
            self.vain_takes.succeeded();
            self.moved = renewed || kept && self.moved;
            self.unwatched = apart > longest;
        }
        if ended != was_ended {
            self.ended_at = if ended { now } else { Mono::NEVER };
        }
    }
}
