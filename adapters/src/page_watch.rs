//! Scans of the lease table and listings of shards that do not come to their ends, in few lines of the log.
//!
//! Each page says whether a next page follows. A service whose pages always name a next page keeps the worker in one scan or one
//! listing, and the worker asks for page after page without a failure.

use leasehold_engine::ids::OpId;
use leasehold_engine::input::{Outcome, Reply};
use leasehold_engine::output::{Effect, StreamOp, TableOp};
use leasehold_engine::stream_id::StreamId;
use leasehold_engine::time::{Mono, Span};
use std::collections::BTreeMap;

/// A sequence of pages of this length is told, and so are so many empty pages in a row.
const LONG: Span = Span::from_secs(60);
const EMPTY: u32 = 100;
/// The least time between two lines.
const PAUSE: Span = Span::from_secs(60);

/// The contents of the pages.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Of {
    /// Rows of the lease table.
    Rows,
    /// Shards. The stream is named where a worker reads several.
    Shards(Option<StreamId>),
}

impl Of {
    /// The contents of a page, and whether the page is the first one. Absent: the command asks for no page.
    fn asked(effect: &Effect) -> Option<(Self, bool)> {
        match effect {
            Effect::Table(TableOp::Scan { after, .. }) => Some((Of::Rows, after.is_none())),
            Effect::Stream(StreamOp::ListShards { after, .. }) => Some((Of::Shards(None), after.is_none())),
            Effect::StreamOf(stream, StreamOp::ListShards { after, .. }) => {
                Some((Of::Shards(Some(stream.clone())), after.is_none()))
            }
            _ => None,
        }
    }

    /// The words of the log: the act, the contents of its pages, the work that waits for the end of the act, and the service.
    fn words(&self) -> [String; 4] {
        let words = |act: &str, items: &str, waits: &str, service: &str| {
            [act, items, waits, service].map(str::to_owned)
        };
        match self {
            Of::Rows => words("a scan of the lease table", "rows", "no lease is taken", "DynamoDB"),
            Of::Shards(None) => words("a listing of shards", "shards", "no lease is created", "Kinesis"),
            Of::Shards(Some(stream)) => words(
                &format!("a listing of the shards of {stream}"),
                "shards",
                "no lease is created",
                "Kinesis",
            ),
        }
    }
}

/// The pages of one scan or listing that is under way.
#[derive(Clone, Debug, Default)]
struct Pages {
    began: Mono,
    pages: u32,
    items: usize,
    /// How many pages in a row had no item.
    empty: u32,
}

/// The scans and listings that run.
#[derive(Debug, Default)]
pub(crate) struct PageWatch {
    /// The pages that are not answered.
    asked: BTreeMap<OpId, Of>,
    running: BTreeMap<Of, Pages>,
    told: BTreeMap<Of, Mono>,
}

impl PageWatch {
    /// A command begins.
    pub(crate) fn command(&mut self, now: Mono, op: OpId, effect: &Effect) {
        let Some((of, first)) = Of::asked(effect) else {
            return;
        };
        if first {
            self.asked.retain(|_, asked| *asked != of);
            self.running.insert(of.clone(), Pages { began: now, ..Pages::default() });
        }
        self.asked.insert(op, of);
    }

    /// A command has ended. A line, if one is due.
    pub(crate) fn outcome(&mut self, now: Mono, op: OpId, outcome: &Outcome) -> Option<String> {
        let of = self.asked.remove(&op)?;
        let (items, more) = match outcome {
            Outcome::Applied(Reply::Page(page)) => (page.rows.len(), page.next.is_some()),
            Outcome::Applied(Reply::Shards(page)) => (page.shards.len(), page.more),
            _ => return None,
        };
        let pages = self.running.get_mut(&of)?;
        pages.pages = pages.pages.saturating_add(1);
        pages.items = pages.items.saturating_add(items);
        pages.empty = if items == 0 { pages.empty.saturating_add(1) } else { 0 };
        if !more {
            self.running.remove(&of);
            return None;
        }
        let lasts = now.since(pages.began);
        let quiet = self.told.get(&of).is_none_or(|told| now.since(*told) >= PAUSE);
        if !quiet || (lasts < LONG && pages.empty < EMPTY) {
            return None;
        }
        let Pages { pages, items, empty, .. } = *pages;
        let [act, contents, waits, service] = of.words();
        self.told.insert(of, now);
        Some(format!(
            "expected {act} to come to its end, found that it has lasted for {lasts} so far, with {pages} pages, {items} {contents} \
             and a next page after each ({empty} empty pages in a row); going on, and {waits} before its end; see whether the \
             endpoint of the client is that of {service}"
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::op;
    use leasehold_engine::input::{ScanPage, ShardPage};
    use leasehold_engine::output::ShardFilter;
    use leasehold_engine::row::RowRead;

    /// One page, at a time in seconds. `next`: the place of the next page.
    fn page(watch: &mut PageWatch, second: u64, first: bool, rows: usize, next: bool) -> Option<String> {
        let now = Mono(0) + Span::from_secs(second);
        let key = |name: &str| leasehold_engine::ids::LeaseKey::from(name);
        let after = (!first).then(|| key("a"));
        watch.command(now, op(second), &Effect::Table(TableOp::Scan { after, limit: None }));
        let row = RowRead::Unreadable { key: key("b"), detail: String::new() };
        let page = ScanPage { rows: vec![row; rows], next: next.then(|| key("a")) };
        watch.outcome(now, op(second), &Outcome::Applied(Reply::Page(page)))
    }

    #[test]
    fn a_scan_without_an_end_is_told_once_a_minute() {
        let mut watch = PageWatch::default();
        let told = |watch: &mut PageWatch, rows| {
            let told = (0..200).filter(|at| page(watch, *at, *at == 0, rows, true).is_some());
            told.collect::<Vec<u64>>()
        };
        assert_eq!(told(&mut watch, 1), [60, 120, 180]);
        let mut watch = PageWatch::default();
        assert_eq!(told(&mut watch, 0), [60, 120, 180]);
        let line = page(&mut watch, 240, false, 0, true).unwrap();
        assert!(line.contains("lasted for 240.000s so far, with 201 pages, 0 rows"), "{line}");
    }

    #[test]
    fn a_listing_without_an_end_is_told_with_its_stream() {
        let mut watch = PageWatch::default();
        let streams: [StreamId; 2] = ["1:a:1", "1:b:1"].map(|id| id.parse().unwrap());
        let at = Mono(0) + Span::from_secs(1);
        let mut list = |n: u64, more| {
            let after = (n >= 2).then(|| op(n - 2));
            let listing = StreamOp::ListShards { filter: ShardFilter::All, after };
            watch.command(at, op(n), &Effect::StreamOf(streams[n as usize % 2].clone(), listing));
            watch.outcome(at, op(n), &Outcome::Applied(Reply::Shards(ShardPage { shards: Vec::new(), more })))
        };
        let lines: Vec<String> = (0..300).filter_map(|n| list(n, n % 2 == 0 || n < 20)).collect();
        assert_eq!(lines.len(), 1, "{lines:?}");
        assert!(
            lines[0].contains("a listing of the shards of 1:a:1") && lines[0].contains("100 pages, 0 shards")
        );
    }

    #[test]
    fn many_empty_pages_are_told_sooner_and_scans_that_end_are_not() {
        let mut watch = PageWatch::default();
        let at = Mono(0) + Span::from_secs(1);
        let lines = (0..300).filter(|n| {
            let after = (*n > 0).then(|| "a".into());
            watch.command(at, op(*n), &Effect::Table(TableOp::Scan { after, limit: None }));
            let empty = ScanPage { rows: Vec::new(), next: Some("a".into()) };
            watch.outcome(at, op(*n), &Outcome::Applied(Reply::Page(empty))).is_some()
        });
        assert_eq!(lines.collect::<Vec<u64>>(), [u64::from(EMPTY) - 1]);
        let mut watch = PageWatch::default();
        for second in (0..2_000).step_by(2) {
            assert_eq!(page(&mut watch, second, true, 0, true), None);
            assert_eq!(page(&mut watch, second + 1, false, 0, false), None);
        }
    }
}
