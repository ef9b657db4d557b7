//! The items of a table, in scan order, with as much of their past as is asked for.

use super::key::Position;
use leasehold_engine::table::Item;
use std::cmp::Ordering;
use std::collections::{BTreeMap, VecDeque};
use std::iter::Peekable;
use std::ops::Bound;
use std::sync::Arc;

/// A range of positions.
pub(super) type Span = (Bound<Position>, Bound<Position>);

/// A stored item and its size.
#[derive(Clone, Debug)]
pub struct Row {
    /// The item, shared with answers.
    pub item: Arc<Item>,
    /// The charged bytes.
    pub size: usize,
}

/// The content of a position from a moment on.
#[derive(Clone, Debug)]
struct Version {
    since_ms: i64,
    row: Option<Row>,
}

/// Rows by position. With `keep > 0`, the last `keep` versions of each changed row stay readable.
#[derive(Clone, Debug, Default)]
pub struct Store {
    rows: BTreeMap<Position, Row>,
    past: BTreeMap<Position, VecDeque<Version>>,
    keep: usize,
    bytes: usize,
}

impl Store {
    /// An empty store with so many kept versions of each row.
    pub fn new(keep: usize) -> Self {
        Self { keep, ..Self::default() }
    }

    /// The number of rows.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether the store has no rows.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// The bytes of all rows.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// The row at a position, now or at an earlier moment.
    pub fn get(&self, position: &Position, as_of: Option<i64>) -> Option<&Row> {
        if let Some(moment) = as_of
            && let Some(versions) = self.past.get(position)
        {
            return version_at(versions, moment);
        }
        self.rows.get(position)
    }

    /// Sets or removes the row at a position; returns the old row.
    pub fn set(&mut self, position: &Position, row: Option<Row>, now_ms: i64) -> Option<Row> {
        self.bytes += row.as_ref().map_or(0, |row| row.size);
        let old = match (row.clone(), self.rows.get_mut(position)) {
            (Some(row), Some(place)) => Some(std::mem::replace(place, row)),
            (Some(row), None) => self.rows.insert(position.clone(), row),
            (None, _) => self.rows.remove(position),
        };
        self.bytes -= old.as_ref().map_or(0, |row| row.size);
        if self.keep > 0 {
            let versions = self
                .past
                .entry(position.clone())
                .or_insert_with(|| VecDeque::from([Version { since_ms: i64::MIN, row: old.clone() }]));
            versions.push_back(Version { since_ms: now_ms, row });
            // The current version and `keep` before it.
            while versions.len() > self.keep + 1 {
                versions.pop_front();
            }
        }
        old
    }

    /// The rows of a range, forward or backward, now or at an earlier moment.
    pub fn walk<'a>(
        &'a self, span: Span, backward: bool, as_of: Option<i64>,
    ) -> Box<dyn Iterator<Item = (&'a Position, &'a Row)> + 'a> {
        let rows = self.rows.range(span.clone());
        let Some(moment) = as_of.filter(|_| !self.past.is_empty()) else {
            return if backward { Box::new(rows.rev()) } else { Box::new(rows) };
        };
        let past = self.past.range(span);
        if backward {
            Box::new(Merge { rows: rows.rev().peekable(), past: past.rev().peekable(), moment, backward })
        } else {
            Box::new(Merge { rows: rows.peekable(), past: past.peekable(), moment, backward })
        }
    }

    /// Every row, now or at an earlier moment.
    pub fn all(&self, as_of: Option<i64>) -> impl Iterator<Item = (&Position, &Row)> {
        self.walk((Bound::Unbounded, Bound::Unbounded), false, as_of)
    }
}

/// The last version not after a moment; if forgotten, the oldest known version.
fn version_at(versions: &VecDeque<Version>, moment: i64) -> Option<&Row> {
    let version =
        versions.iter().rev().find(|version| version.since_ms <= moment).or_else(|| versions.front());
    version.and_then(|version| version.row.as_ref())
}

/// Current rows and remembered versions side by side; where a position has a past, the past decides.
struct Merge<R: Iterator, P: Iterator> {
    rows: Peekable<R>,
    past: Peekable<P>,
    moment: i64,
    backward: bool,
}

impl<'a, R, P> Iterator for Merge<R, P>
where
    R: Iterator<Item = (&'a Position, &'a Row)>,
    P: Iterator<Item = (&'a Position, &'a VecDeque<Version>)>,
{
    type Item = (&'a Position, &'a Row);

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let order = match (self.rows.peek(), self.past.peek()) {
                (None, None) => return None,
                (Some(_), None) => Ordering::Less,
                (None, Some(_)) => Ordering::Greater,
                (Some((row, _)), Some((past, _))) if self.backward => past.cmp(row),
                (Some((row, _)), Some((past, _))) => row.cmp(past),
            };
            if order == Ordering::Less {
                return self.rows.next();
            }
            if order == Ordering::Equal {
                self.rows.next();
            }
            let (position, versions) = self.past.next()?;
            if let Some(row) = version_at(versions, self.moment) {
                return Some((position, row));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::schema;
    use super::*;
    use leasehold_engine::table::AttributeValue;

    fn row(key: &str, n: i64) -> (Position, Row) {
        let item: Item = [("p".into(), AttributeValue::s(key)), ("n".into(), AttributeValue::n(n))].into();
        (schema(false).position_of_item(&item).unwrap(), Row { item: Arc::new(item), size: 10 })
    }

    fn seen(store: &Store, as_of: Option<i64>, backward: bool) -> Vec<String> {
        let show = |row: &Row| format!("{}{}", row.item["p"].as_s().unwrap(), row.item["n"].as_n().unwrap());
        let all = (Bound::Unbounded, Bound::Unbounded);
        let mut texts: Vec<_> = store.walk(all, backward, as_of).map(|(_, row)| show(row)).collect();
        texts.sort();
        texts
    }

    #[test]
    fn the_past_is_read_as_it_was_forwards_and_backwards() {
        let mut store = Store::new(8);
        for (at, key, n) in [(10, "a", 1), (20, "b", 1), (30, "a", 2)] {
            let (position, row) = row(key, n);
            store.set(&position, Some(row), at);
        }
        store.set(&row("b", 0).0, None, 40);
        for backward in [false, true] {
            assert_eq!(seen(&store, Some(5), backward), Vec::<String>::new());
            assert_eq!(seen(&store, Some(10), backward), ["a1"]);
            assert_eq!(seen(&store, Some(29), backward), ["a1", "b1"]);
            assert_eq!(seen(&store, Some(39), backward), ["a2", "b1"]);
            assert_eq!(seen(&store, Some(40), backward), ["a2"]);
            assert_eq!(seen(&store, None, backward), ["a2"]);
        }
        assert_eq!(store.get(&row("a", 0).0, Some(15)).unwrap().item["n"], AttributeValue::n(1));
        assert_eq!(store.bytes(), 10);
    }

    #[test]
    fn a_forgotten_past_reads_as_the_oldest_known() {
        let mut store = Store::new(1);
        for n in 0..5 {
            let (position, row) = row("a", n);
            store.set(&position, Some(row), n * 10);
        }
        assert_eq!(seen(&store, Some(0), false), ["a3"]);
        assert_eq!(seen(&store, Some(99), false), ["a4"]);
        let mut plain = Store::new(0);
        let (position, row) = row("a", 7);
        plain.set(&position, Some(row), 10);
        assert_eq!(seen(&plain, Some(0), false), ["a7"]);
    }

    #[test]
    fn merged_walks_keep_the_order() {
        let mut store = Store::new(4);
        for n in 0..50 {
            let (position, row) = row(&format!("k{n}"), 0);
            store.set(&position, Some(row), n);
        }
        let forward: Vec<_> = store.all(Some(30)).map(|(position, _)| position.clone()).collect();
        assert_eq!(forward.len(), 31);
        assert!(forward.is_sorted());
        let all = (Bound::Unbounded, Bound::Unbounded);
        let mut backward: Vec<_> = store.walk(all, true, Some(30)).map(|(p, _)| p.clone()).collect();
        backward.reverse();
        assert_eq!(forward, backward);
    }
}
