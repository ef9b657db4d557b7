//! The rows of a table, by the stream that their keys name.

use super::other::{Count, stream_of};
use leasehold_engine::row::RowRead;
use leasehold_engine::stream_id::StreamId;
use serde::Serialize;
use std::collections::BTreeMap;

/// The rows of each stream, and the rows of keys without a stream.
pub(crate) struct Parts(BTreeMap<Option<String>, Vec<RowRead>>);

/// Leases of a stream that was not named, in a table of several.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Unnamed {
    pub(crate) stream: String,
    #[serde(flatten)]
    pub(crate) count: Count,
}

impl Parts {
    /// In a table of one stream, all rows belong to the stream.
    pub(crate) fn of(rows: Vec<RowRead>, several: bool) -> Self {
        let mut parts: BTreeMap<_, Vec<RowRead>> = BTreeMap::new();
        for row in rows {
            let stream = stream_of(row.key().as_str()).filter(|_| several);
            parts.entry(stream.map(str::to_owned)).or_default().push(row);
        }
        Self(parts)
    }

    /// Moves the rows of a stream out; without a stream, the rows of keys without a stream.
    pub(crate) fn take(&mut self, stream: Option<&StreamId>) -> Vec<RowRead> {
        let id = stream.map(ToString::to_string);
        self.0.remove(&id).unwrap_or_default()
    }

    /// The remaining rows: rows of keys without a stream, and the leases of each remaining stream.
    pub(crate) fn left(mut self) -> (Count, Vec<Unnamed>) {
        let count = |rows: Vec<RowRead>| {
            let mut count = Count::default();
            let rows = rows.iter();
            rows.filter(|row| !matches!(row, RowRead::Foreign { .. })).for_each(|row| count.add_row(row));
            count
        };
        let strays = count(self.0.remove(&None).unwrap_or_default());
        let others = self
            .0
            .into_iter()
            .filter_map(|(stream, rows)| Some(Unnamed { stream: stream?, count: count(rows) }));
        (strays, others.collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use leasehold_engine::position::Checkpoint;
    use leasehold_engine::row::LeaseRow;

    #[test]
    fn rows_are_told_apart_by_the_streams_that_are_named() {
        let row = |key: &str, checkpoint| RowRead::Lease(LeaseRow::new(key.into(), checkpoint));
        let rows = || {
            vec![
                row("1:orders:2:a", Checkpoint::TrimHorizon),
                row("1:returns:3:a", Checkpoint::ShardEnd),
                row("b", Checkpoint::TrimHorizon),
                RowRead::Unreadable { key: "1:returns:3:b".into(), detail: "no counter".to_owned() },
                RowRead::Foreign { key: "Leader".into(), kind: "LOCK".to_owned(), says: None },
            ]
        };
        let part = |stream: Option<&StreamId>| {
            let mut parts = Parts::of(rows(), stream.is_some());
            let taken = parts.take(stream);
            let (strays, unnamed) = parts.left();
            let unnamed = unnamed.iter().map(|left| format!("{} of {}", left.count, left.stream));
            (taken.len(), strays.to_string(), unnamed.collect::<Vec<_>>().join(", "))
        };
        let nothing = "0 leases (0 unfinished)".to_owned();
        assert_eq!(part(None), (5, nothing, String::new()), "a table of one stream");
        let stray = "1 lease (1 unfinished)".to_owned();
        let left = "2 leases (0 unfinished) of 1:returns:3".to_owned();
        let orders = "1:orders:2".parse().expect("an identifier");
        assert_eq!(part(Some(&orders)), (1, stray, left));
    }
}
