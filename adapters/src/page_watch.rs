//! A scan of the lease table that does not come to its end, in few lines of the log.
//!
//! Each page of a scan says where the next page begins. A service whose pages always name a next page keeps the worker in one scan,
//! and the worker asks for page after page without a failure.

use leasehold_engine::ids::OpId;
use leasehold_engine::input::{Outcome, Reply};
use leasehold_engine::output::{Effect, TableOp};
use leasehold_engine::time::{Mono, Span};
use std::collections::BTreeMap;

/// A scan of this length is told, and so are so many empty pages in a row.
const LONG: Span = Span::from_secs(60);
const EMPTY: u32 = 100;
/// The least time between two lines.
const PAUSE: Span = Span::from_secs(60);

/// The scan that runs.
#[derive(Debug, Default)]
pub(crate) struct ScanWatch {
    /// The pages that are not answered: whether each is the first of its scan.
    asked: BTreeMap<OpId, bool>,
    /// When the scan began; absent: no scan is under way.
    began: Option<Mono>,
    pages: u32,
    rows: usize,
    /// How many pages in a row had no row.
    empty: u32,
    told: Option<Mono>,
}

impl ScanWatch {
    /// A command begins.
    pub(crate) fn command(&mut self, now: Mono, op: OpId, effect: &Effect) {
        if let Effect::Table(TableOp::Scan { after, .. }) = effect {
            self.asked.insert(op, after.is_none());
            if after.is_none() {
                let (asked, told) = (std::mem::take(&mut self.asked), self.told);
                *self = Self { asked, told, began: Some(now), ..Self::default() };
            }
        }
    }

    /// A command has ended. A line, if one is due.
    pub(crate) fn outcome(&mut self, now: Mono, op: OpId, outcome: &Outcome) -> Option<String> {
        self.asked.remove(&op)?;
        let Outcome::Applied(Reply::Page(page)) = outcome else {
            return None;
        };
        self.pages = self.pages.saturating_add(1);
        self.rows = self.rows.saturating_add(page.rows.len());
        self.empty = if page.rows.is_empty() { self.empty.saturating_add(1) } else { 0 };
        if page.next.is_none() {
            self.began = None;
        }
        let lasts = now.since(self.began?);
        let quiet = self.told.is_none_or(|told| now.since(told) >= PAUSE);
        if !quiet || (lasts < LONG && self.empty < EMPTY) {
            return None;
        }
        self.told = Some(now);
        let Self { pages, rows, empty, .. } = self;
        Some(format!(
            "expected a scan of the lease table to come to its end, found that it has lasted for {lasts} so far, with {pages} pages, \
             {rows} rows and a next page after each ({empty} empty pages in a row); scanning on, and no lease is taken before its \
             end; see whether the endpoint of the client is that of DynamoDB"
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::op;
    use leasehold_engine::input::ScanPage;
    use leasehold_engine::row::RowRead;

    /// One page, at a time in seconds. `next`: the place of the next page.
    fn page(watch: &mut ScanWatch, second: u64, first: bool, rows: usize, next: bool) -> Option<String> {
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
        let mut watch = ScanWatch::default();
        let told = |watch: &mut ScanWatch, rows| {
            let told = (0..200).filter(|at| page(watch, *at, *at == 0, rows, true).is_some());
            told.collect::<Vec<u64>>()
        };
        assert_eq!(told(&mut watch, 1), [60, 120, 180]);
        let mut watch = ScanWatch::default();
        assert_eq!(told(&mut watch, 0), [60, 120, 180]);
        let line = page(&mut watch, 240, false, 0, true).unwrap();
        assert!(line.contains("lasted for 240.000s so far, with 201 pages, 0 rows"), "{line}");
    }

    #[test]
    fn many_empty_pages_are_told_sooner_and_scans_that_end_are_not() {
        let mut watch = ScanWatch::default();
        let at = Mono(0) + Span::from_secs(1);
        let lines = (0..300).filter(|n| {
            let after = (*n > 0).then(|| "a".into());
            watch.command(at, op(*n), &Effect::Table(TableOp::Scan { after, limit: None }));
            let empty = ScanPage { rows: Vec::new(), next: Some("a".into()) };
            watch.outcome(at, op(*n), &Outcome::Applied(Reply::Page(empty))).is_some()
        });
        assert_eq!(lines.collect::<Vec<u64>>(), [u64::from(EMPTY) - 1]);
        let mut watch = ScanWatch::default();
        for second in (0..2_000).step_by(2) {
            assert_eq!(page(&mut watch, second, true, 0, true), None);
            assert_eq!(page(&mut watch, second + 1, false, 0, false), None);
        }
    }
}
