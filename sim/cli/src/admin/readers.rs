//! Workers at a stream: the owners of its unfinished leases that live, or may live.

use crate::text::counted;
use leasehold::admin::{LeaseReport, Standing, TableReport};
use leasehold::{Span, StreamId, WorkerId};
use leasehold_engine::stream_id::split_key;
use serde::Serialize;
use std::collections::BTreeMap;

/// An owner of unfinished leases of a stream.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Reader {
    pub(super) worker: WorkerId,
    /// The number of its unfinished leases of the stream.
    pub(super) leases: u32,
    /// Whether a row of the worker changed during the watch, of whatever stream.
    pub(super) alive: bool,
}

impl Reader {
    pub(super) fn leases(&self) -> String {
        counted(self.leases.into(), "lease")
    }

    /// The worker in words.
    pub(super) fn told(&self, watched: Span) -> String {
        let how = match self.alive {
            true => "alive".to_owned(),
            false if watched == Span::ZERO => "not watched".to_owned(),
            false => format!("silent for {watched}"),
        };
        format!("{} ({}, {how})", self.worker, self.leases())
    }
}

/// The workers that live or may live, by the names in rows. An owner of expired leases alone has crashed, or has stopped without
/// a release. Without a stream, leases of all streams count.
pub(super) fn at_work(report: &TableReport, stream: Option<&StreamId>) -> Vec<Reader> {
    let alive = report.alive();
    let mut readers: BTreeMap<&WorkerId, (u32, bool)> = BTreeMap::new();
    let is_of = |lease: &LeaseReport| {
        stream.is_none_or(|id| split_key(lease.lease.as_str()).is_some_and(|(of, _)| of == id.as_str()))
    };
    for lease in report.leases.iter().filter(|lease| is_of(lease)) {
        let may_live = match lease.standing {
            Standing::Alive | Standing::Silent => true,
            Standing::Expired => false,
            _ => continue,
        };
        if let Some(owner) = &lease.owner {
            let reader = readers.entry(owner).or_default();
            reader.0 += 1;
            reader.1 |= may_live || alive.contains(owner);
        }
    }
    readers
        .into_iter()
        .filter(|(_, (_, may_live))| *may_live)
        .map(|(worker, (leases, _))| Reader { worker: worker.clone(), leases, alive: alive.contains(worker) })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use leasehold::admin::{View, report};
    use leasehold::{Checkpoint, LeaseRow};

    const WATCH: Span = Span::from_secs(5);

    fn row(key: &str, owner: Option<&str>, counter: u64) -> LeaseRow {
        LeaseRow {
            owner: owner.map(Into::into),
            counter,
            ..LeaseRow::new(key.into(), Checkpoint::TrimHorizon)
        }
    }

    fn view(rows: &[LeaseRow]) -> View {
        let mut view = View::default();
        view.leases.extend(rows.iter().map(|row| (row.key.clone(), row.clone())));
        view
    }

    /// The workers after a watch, in which the rows of the worker `live` changed.
    fn found(rows: &[LeaseRow], stream: Option<&str>, lease_duration: Span) -> Vec<(String, u32, bool)> {
        let mut before = view(rows);
        for row in before
            .leases
            .values_mut()
            .filter(|row| row.owner.as_ref().is_some_and(|owner| owner.as_str() == "live"))
        {
            row.counter -= 1;
        }
        let report = report(&before, &view(rows), WATCH, lease_duration);
        let id = stream.map(|id| id.parse().expect("an identifier"));
        let readers = at_work(&report, id.as_ref()).into_iter();
        readers.map(|reader| (reader.worker.to_string(), reader.leases, reader.alive)).collect()
    }

    #[test]
    fn an_owner_that_moves_lives_and_a_silent_owner_may_live() {
        let mut ended = row("shardId-000000000004", Some("ended"), 7);
        ended.checkpoint = Checkpoint::ShardEnd;
        let rows = [
            row("shardId-000000000000", Some("live"), 7),
            row("shardId-000000000001", Some("live"), 7),
            row("shardId-000000000002", Some("quiet"), 7),
            row("shardId-000000000003", None, 7),
            ended,
        ];
        let live = ("live".to_owned(), 2, true);
        let silent = ("quiet".to_owned(), 1, false);
        assert_eq!(found(&rows, None, Span::from_secs(10)), [live.clone(), silent]);
        assert_eq!(found(&rows, None, WATCH), [live]);
    }

    #[test]
    fn a_worker_counts_at_the_streams_of_its_leases() {
        let rows = [
            row("123456789012:orders:7:shardId-000000000000", Some("live"), 7),
            row("123456789012:returns:7:shardId-000000000000", Some("dead"), 7),
            row("123456789012:returns:8:shardId-000000000000", Some("live"), 7),
        ];
        let at = |stream| found(&rows, Some(stream), WATCH);
        assert_eq!(at("123456789012:orders:7"), [("live".to_owned(), 1, true)]);
        assert_eq!(at("123456789012:returns:7"), []);
        assert_eq!(at("123456789012:returns:8"), [("live".to_owned(), 1, true)]);
    }
}
