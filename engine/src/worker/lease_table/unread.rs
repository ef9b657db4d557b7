//! Rows of streams that this worker does not read: leases of an application of several streams, read by other workers
//! or by no worker any more. These are no leases of ours, and count in no balance. Their rows can be removed in the
//! end.
//!
//! A stream is read by another worker if its rows change, on our own clock, while scans are answered. The same rule
//! tells whether a worker lives. So no worker need tell its fleet when it stopped reading a stream, and no change of
//! leaders begins the wait anew. A worker with an old configuration never removes the lease of a stream read by other
//! workers.

use crate::ids::{LeaseKey, WorkerId};
use crate::notice::{Notice, StreamNews};
use crate::output::EndReason;
use crate::position::Checkpoint;
use crate::row::{Change, LeaseRow};
use crate::stream_id::split_key;
use crate::time::{Mono, Span};
use crate::worker::context::Context;
use std::collections::BTreeMap;

/// A row, and since when it has stood still.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Still {
    counter: u64,
    owner: Option<WorkerId>,
    handing_over: Option<WorkerId>,
    checkpoint: Checkpoint,
    since: Mono,
    /// When a scan last showed it.
    seen_at: Mono,
    seen_by: u64,
}

impl Still {
    fn is_of(&self, row: &LeaseRow) -> bool {
        self.counter == row.counter
            && self.owner == row.owner
            && self.handing_over == row.handing_over
            && self.checkpoint == row.checkpoint
    }
}

/// Scans further apart do not show that a row has stood still between the scans.
pub(super) fn longest_gap(cx: &Context) -> Span {
    let config = cx.config();
    config.scan_interval.times(2).max(config.lease_duration)
}

/// The rows of one stream.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct UnreadStream {
    rows: BTreeMap<LeaseKey, Still>,
    /// The number of rows at the last notice.
    told: u32,
}

/// All rows of streams that are not read, by the identifier of the stream; empty: of an application of one stream.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(in crate::worker) struct Unread {
    streams: BTreeMap<String, UnreadStream>,
}

impl Unread {
    /// The scan of this number shows a row.
    pub(super) fn observe(&mut self, cx: &Context, scan: u64, row: &LeaseRow) {
        let now = cx.now();
        let stream = split_key(row.key.as_str()).map_or("", |(stream, _)| stream);
        if !self.streams.contains_key(stream) {
            self.streams.insert(stream.to_owned(), UnreadStream::default());
        }
        let Some(known) = self.streams.get_mut(stream) else {
            debug_assert!(false, "a stream is there once its rows are shown");
            return;
        };
        if let Some(still) = known.rows.get_mut(&row.key).filter(|still| still.is_of(row)) {
            // While the table could not be read, its readers could perhaps not renew their leases.
            if now.since(still.seen_at) > longest_gap(cx) {
                still.since = now;
            }
            (still.seen_at, still.seen_by) = (now, scan);
            return;
        }
        let still = Still {
            counter: row.counter,
            owner: row.owner.clone(),
            handing_over: row.handing_over.clone(),
            checkpoint: row.checkpoint,
            since: now,
            seen_at: now,
            seen_by: scan,
        };
        known.rows.insert(row.key.clone(), still);
    }

    /// A whole scan of this number has ended: what it did not show is gone. Streams that come into view are told.
    pub(super) fn scanned(&mut self, cx: &mut Context, scan: u64) {
        self.streams.retain(|_, stream| {
            stream.rows.retain(|_, still| still.seen_by >= scan);
            !stream.rows.is_empty()
        });
        for (id, stream) in &mut self.streams {
            let leases = stream.rows.len() as u32;
            if stream.told == 0 {
                stream.told = leases;
                let stream = id.clone();
                cx.notify(Notice::Stream(StreamNews::NotRead { stream, leases }));
            }
        }
    }

    /// The owners named by rows, each with the time of the row's last change.
    pub(super) fn owners(&self) -> impl Iterator<Item = (&WorkerId, Mono)> {
        let rows = self.streams.values().flat_map(|stream| stream.rows.values());
        rows.flat_map(|row| {
            let named = row.owner.iter().chain(&row.handing_over);
            named.map(|owner| (owner, row.since))
        })
    }

    /// The changes that remove rows: of streams without a changed row for `delay`, and at most `most` rows. The rows of
    /// a stream lost by the worker stay: they may be of another stream, and the worker promised to keep the checkpoints
    /// of a deleted stream.
    pub(in crate::worker) fn removals(&self, cx: &Context, delay: Span, most: usize) -> Vec<Change> {
        let (now, known) = (cx.now(), cx.streams());
        let lost = |key: &LeaseKey| {
            let stream = known.of_key(key.as_str());
            stream.and_then(|stream| known.ended(stream)) == Some(EndReason::SourceGone)
        };
        let of_streams = self.streams.iter().filter(|(id, _)| !id.is_empty());
        let of_streams = of_streams.filter(|(_, stream)| !stream.rows.keys().next().is_some_and(lost));
        let still = |stream: &UnreadStream| stream.rows.values().all(|row| now.since(row.since) >= delay);
        let streams = of_streams.map(|(_, stream)| stream).filter(|stream| still(stream));
        let rows = streams.flat_map(|stream| &stream.rows);
        rows.take(most)
            .map(|(key, row)| Change::Forget {
                key: key.clone(),
                counter: row.counter,
                owner: row.owner.clone(),
                handing_over: row.handing_over.clone(),
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::worker::testing::{context, owned, row, seconds};

    const KEY: &str = "1:a:2:shardId-0";
    const OTHER: &str = "1:a:2:shardId-1";

    fn keys(changes: &[Change]) -> Vec<&str> {
        changes.iter().map(|change| change.key().as_str()).collect()
    }

    #[test]
    fn a_stream_is_forgotten_when_none_of_its_rows_changes_for_long() {
        let (mut unread, mut cx) = (Unread::default(), context());
        let mut shown = |cx: &mut Context, scan, rows: [LeaseRow; 2]| {
            for row in &rows {
                unread.observe(cx, scan, row);
            }
            unread.scanned(cx, scan);
            unread.removals(cx, seconds(60), 100)
        };
        assert_eq!(shown(&mut cx, 1, [row(KEY), owned(OTHER, "a", 1)]), []);
        cx.later(seconds(30));
        assert_eq!(shown(&mut cx, 2, [row(KEY), owned(OTHER, "a", 2)]), []);
        cx.later(seconds(30));
        assert_eq!(shown(&mut cx, 3, [row(KEY), owned(OTHER, "a", 2)]), [], "one moved lately");
        cx.later(seconds(30));
        let removals = shown(&mut cx, 4, [row(KEY), owned(OTHER, "a", 2)]);
        assert_eq!(keys(&removals), [KEY, OTHER]);
        assert_eq!(cx.did().told(), ["stream-not-read"], "once");
    }

    #[test]
    fn without_answered_scans_no_row_is_known_to_have_stood_still() {
        let (mut unread, mut cx) = (Unread::default(), context());
        for scan in 1..=2 {
            unread.observe(&cx, scan, &owned(KEY, "a", 1));
            cx.later(longest_gap(&cx) + Span(1));
        }
        assert_eq!(unread.removals(&cx, seconds(60), 100), []);
        unread.observe(&cx, 3, &owned(KEY, "a", 1));
        cx.later(longest_gap(&cx));
        unread.observe(&cx, 4, &owned(KEY, "a", 1));
        assert_eq!(keys(&unread.removals(&cx, longest_gap(&cx), 100)), [KEY]);
    }

    #[test]
    fn rows_of_an_application_of_one_stream_are_never_removed() {
        let (mut unread, mut cx) = (Unread::default(), context());
        unread.observe(&cx, 1, &row("shardId-0"));
        cx.later(seconds(1_000));
        assert_eq!(unread.removals(&cx, seconds(60), 100), []);
    }
}
