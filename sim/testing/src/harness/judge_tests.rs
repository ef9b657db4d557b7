use super::super::source::Source;
use super::*;
use crate::{RecordBuilder, TestLease, record};
use leasehold::{Position, SequenceNumber};
use leasehold_local_aws::kinesis::{KinesisConfig, SequenceNumber as Number, SequenceParts};
use std::sync::Arc;

const SHARD: &str = "shardId-000000000000";

/// A judge, and a stream of one shard with some records.
struct Court {
    judge: Judge,
    source: Source,
}

fn position(nth: u64) -> Position {
    let number = Number::new(SequenceParts { created_secs: 0, position: nth, time_secs: 0, shard: 0 });
    Position::of(SequenceNumber::from_words(number.to_words()))
}

fn numbered(nth: u64) -> RecordBuilder {
    record("data").sequence(position(nth).sequence)
}

fn lease(token: u64, done: Option<u64>) -> TestLease {
    let from = done.map_or(Checkpoint::TrimHorizon, |nth| Checkpoint::At(position(nth)));
    TestLease::of(SHARD, token, from)
}

impl Court {
    fn with_records(records: u64) -> Self {
        let mut source = Source::new(KinesisConfig::instant(), 1);
        for _ in 0..records {
            source.put(1, &Arc::from("key"), "data".into()).expect("it is put");
        }
        Self { judge: Judge::default(), source }
    }

    fn opens(&mut self, life: usize, lease: &TestLease) -> Vec<&'static str> {
        let found = self.judge.opens(self.source.truth(2), life, &lease.info());
        found.into_iter().map(|(property, _)| property).collect()
    }

    fn gives(&mut self, life: usize, lease: &TestLease, places: &[u64]) -> Vec<&'static str> {
        let batch = lease.batch(places.iter().map(|nth| numbered(*nth))).build();
        let found = self.judge.hands_over(life, &batch);
        found.into_iter().map(|(property, _)| property).collect()
    }

    fn closes(&mut self, life: usize, lease: &TestLease, reason: EndReason) -> Option<Finding> {
        self.judge.closes(self.source.truth(2), life, &lease.info(), reason)
    }

    fn missing(&mut self) -> Option<String> {
        self.judge.missing(self.source.truth(2))
    }

    fn row(&mut self, key: &str, change: impl FnOnce(&mut LeaseRow)) -> Vec<String> {
        let mut row = LeaseRow::new(key.into(), Checkpoint::TrimHorizon);
        change(&mut row);
        let row = Some(RowRead::Lease(row));
        self.judge.wrote(self.source.truth(3), 3, &key.into(), row).1
    }

    fn removes(&mut self) -> Vec<String> {
        self.judge.wrote(self.source.truth(3), 3, &SHARD.into(), None).1
    }

    fn covers(&mut self, nth: u64) -> Vec<String> {
        self.row(SHARD, |row| row.checkpoint = Checkpoint::At(position(nth)))
    }
}

#[test]
fn a_good_history_is_good() {
    let mut court = Court::with_records(5);
    let (first, second) = (lease(1, None), lease(4, Some(3)));
    assert!(court.opens(0, &first).is_empty());
    assert!(court.gives(0, &first, &[1, 2]).is_empty());
    assert!(court.gives(0, &first, &[2, 3, 4]).is_empty(), "again, and on");
    first.expire();
    assert!(court.opens(1, &second).is_empty());
    assert!(court.gives(1, &second, &[4, 5]).is_empty());
    assert_eq!(court.judge.repeated, 2);
    assert_eq!(place(position(7)), Some(7));
}

#[test]
fn a_gap_is_out_of_order() {
    let mut court = Court::with_records(5);
    let lease = lease(1, None);
    court.opens(0, &lease);
    assert_eq!(court.gives(0, &lease, &[2]), ["order"], "the first is missing");
    assert_eq!(court.gives(0, &lease, &[3, 5]), ["order"], "within a batch");
}

#[test]
fn a_checkpoint_beyond_what_was_handed_over_is_a_loss() {
    let mut court = Court::with_records(5);
    assert_eq!(court.opens(0, &lease(1, Some(2))), ["delivery"]);
}

#[test]
fn tokens_grow_and_fences_exclude_each_other() {
    let mut court = Court::with_records(5);
    let (old, new) = (lease(5, None), lease(7, None));
    court.opens(0, &old);
    court.gives(0, &old, &[1]);
    assert!(court.opens(1, &new).is_empty());
    assert_eq!(court.gives(1, &new, &[1]), ["owners"], "the old fence is still valid");
    old.expire();
    assert!(court.gives(1, &new, &[2]).is_empty());
    assert_eq!(court.opens(0, &lease(6, None)), ["owners"], "a token of the past");
    assert_eq!(court.opens(2, &lease(7, None)), ["owners"], "a token of another life");
    assert!(court.opens(1, &new).is_empty(), "its own");
    court.closes(1, &new, EndReason::LeaseLost);
    assert_eq!(court.gives(1, &new, &[2]), ["owners"], "after it was closed");
}

#[test]
fn a_dead_process_holds_nothing() {
    let mut court = Court::with_records(5);
    let (old, new) = (lease(1, None), lease(2, None));
    court.opens(0, &old);
    court.gives(0, &old, &[1]);
    court.judge.dies(0);
    court.opens(1, &new);
    assert!(court.gives(1, &new, &[1]).is_empty());
}

#[test]
fn a_child_is_opened_after_its_parent_was_read() {
    let mut court = Court::with_records(2);
    court.source.split(3, 0).expect("it is split");
    let child = TestLease::of("shardId-000000000001", 1, Checkpoint::TrimHorizon);
    assert_eq!(court.opens(0, &child), ["parents-first"]);
    let parent = lease(1, None);
    court.opens(0, &parent);
    court.gives(0, &parent, &[1, 2]);
    assert!(court.opens(0, &child).is_empty());
}

#[test]
fn a_record_that_is_not_durable_is_missing() {
    let mut court = Court::with_records(2);
    assert!(court.missing().is_some_and(|why| why.starts_with("0 of the 2")));
    let lease = lease(1, None);
    court.opens(0, &lease);
    court.gives(0, &lease, &[1, 2]);
    assert!(court.covers(1).is_empty());
    assert!(court.missing().is_some_and(|why| why.contains("its checkpoint is still")));
    let mut court = Court::with_records(2);
    court.opens(0, &lease);
    court.gives(0, &lease, &[1, 2]);
    assert!(court.covers(2).is_empty());
    assert_eq!(court.missing(), None);
}

#[test]
fn a_row_that_goes_back_is_told() {
    let grown = |row: &mut LeaseRow| (row.checkpoint, row.counter) = (Checkpoint::At(position(1)), 9);
    let ended = |row: &mut LeaseRow| row.checkpoint = Checkpoint::ShardEnd;
    for (told, change) in [
        ("the checkpoint of", (|row| row.counter = 9) as fn(&mut LeaseRow)),
        ("the counter of", |row| row.checkpoint = Checkpoint::At(position(1))),
        ("was checkpointed at", |row| (row.checkpoint, row.counter) = (Checkpoint::At(position(2)), 9)),
        ("was ended when only 1 records", |row| (row.checkpoint, row.counter) = (Checkpoint::ShardEnd, 9)),
    ] {
        let (mut court, lease) = (Court::with_records(2), lease(1, None));
        court.opens(0, &lease);
        court.gives(0, &lease, &[1]);
        assert!(court.row(SHARD, grown).is_empty(), "{told}");
        let wrong = court.row(SHARD, change);
        assert!(wrong.len() == 1 && wrong[0].contains(told), "{told}: {wrong:?}");
    }
    let mut court = Court::with_records(0);
    court.source.split(3, 0).expect("it is split");
    let orphan = court.row(SHARD, ended);
    assert!(orphan.iter().all(|what| what.contains("before its child")) && orphan.len() == 2, "{orphan:?}");
    assert!(court.removes().is_empty(), "an ended lease may go");
    assert!(court.row(SHARD, ended)[0].contains("was put back"));
    let mut court = Court::with_records(1);
    court.row(SHARD, |_| {});
    assert!(court.removes()[0].contains("was removed at checkpoint"));
    assert!(court.row("no-shard", |_| {})[0].contains("which is no shard"));
}
