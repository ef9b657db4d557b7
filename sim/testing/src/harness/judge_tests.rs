use super::super::source::Source;
use super::*;
use crate::{RecordBuilder, TestLease, record};
use leasehold::{Position, SequenceNumber};
use leasehold_local_aws::kinesis::{KinesisConfig, SequenceNumber as Number, SequenceParts};
use std::sync::Arc;

const SHARD: &str = "shardId-000000000000";
const CHILDREN: [&str; 2] = ["shardId-000000000001", "shardId-000000000002"];

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

    /// The first records of the shard are handed over.
    fn with_done(records: u64, done: u64) -> Self {
        let (mut court, lease) = (Self::with_records(records), lease(1, None));
        court.opens(0, &lease);
        court.gives(0, &lease, &(1..=done).collect::<Vec<_>>());
        court
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

    fn ends(&mut self) -> Vec<String> {
        self.row(SHARD, |row| row.checkpoint = Checkpoint::ShardEnd)
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
    let child = TestLease::of(CHILDREN[0], 1, Checkpoint::TrimHorizon);
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

/// One finding, with these words.
fn assert_told(found: &[String], words: &str) {
    assert!(matches!(found, [one] if one.contains(words)), "expected {words:?}, found {found:?}");
}

#[test]
fn a_gap_among_processed_records_is_out_of_order() {
    let mut court = Court::with_records(5);
    assert_eq!(court.judge.does(ShardIndex(0), &[1, 2]), None);
    assert_eq!(court.judge.does(ShardIndex(0), &[4]).map(|(property, _)| property), Some("order"));
}

#[test]
fn a_shard_with_records_left_has_not_ended() {
    let mut court = Court::with_done(2, 1);
    court.source.split(2, 0).expect("it is split");
    let closed = |court: &mut Court, reason| court.closes(0, &lease(1, None), reason);
    assert_eq!(closed(&mut court, EndReason::LeaseLost), None);
    let (property, _) = closed(&mut court, EndReason::ShardEnded).expect("a record is left");
    assert_eq!(property, "delivery");
}

#[test]
fn a_row_must_be_a_lease() {
    let mut court = Court::with_records(1);
    let other = Some(RowRead::Unreadable { key: SHARD.into(), detail: String::new() });
    assert_told(&court.judge.wrote(court.source.truth(3), 3, &SHARD.into(), other).1, "is no lease");
}

#[test]
fn a_lease_must_name_a_shard() {
    assert_told(&Court::with_records(1).row("no-shard", |_| {}), "which is no shard");
}

#[test]
fn only_an_ended_lease_may_be_removed() {
    let mut court = Court::with_records(1);
    assert!(court.row(SHARD, |_| {}).is_empty());
    assert_told(&court.removes(), "was removed at checkpoint");
}

#[test]
fn a_removed_lease_must_not_come_back() {
    let mut court = Court::with_records(0);
    court.ends();
    assert!(court.removes().is_empty(), "an ended lease may go");
    assert_told(&court.row(SHARD, |_| {}), "was put back");
}

#[test]
fn a_checkpoint_must_not_go_back() {
    let mut court = Court::with_done(2, 2);
    assert!(court.covers(2).is_empty());
    assert_told(&court.covers(1), "the checkpoint of");
}

#[test]
fn a_counter_must_not_go_back() {
    let mut court = Court::with_records(1);
    assert!(court.row(SHARD, |row| row.counter = 9).is_empty());
    assert_told(&court.row(SHARD, |row| row.counter = 8), "the counter of");
}

#[test]
fn a_checkpoint_must_not_pass_the_handler() {
    let mut court = Court::with_done(2, 1);
    assert_told(&court.covers(2), "when only 1 records were handed over");
}

#[test]
fn an_open_shard_must_not_end() {
    assert_told(&Court::with_done(2, 2).ends(), "was ended when only 2 records");
}

#[test]
fn a_shard_must_not_end_before_its_children_have_leases() {
    let mut court = Court::with_done(1, 1);
    court.source.split(2, 0).expect("it is split");
    court.row(CHILDREN[0], |_| {});
    assert_told(&court.ends(), "before its child shardId-000000000002 had a lease");
}

/// The reason against rest, of two shards where each lease but the last is owned.
fn unsettled(change: impl FnOnce(&mut Court), now: Time) -> Option<String> {
    let mut court = Court::with_records(0);
    court.source.split(2, 0).expect("it is split");
    for child in CHILDREN {
        court.row(child, |row| row.owner = Some("a".into()));
    }
    court.ends();
    change(&mut court);
    court.judge.unsettled(court.source.truth(now), now, 10)
}

#[test]
fn leases_that_have_kept_their_owners_are_settled() {
    assert_eq!(unsettled(|_| {}, 13), None);
    assert!(unsettled(|_| {}, 12).is_some_and(|why| why.contains("go on changing")));
}

#[test]
fn a_lease_without_an_owner_or_an_end_is_unsettled() {
    let told = |change: fn(&mut Court)| unsettled(change, 100).unwrap_or_default();
    assert!(told(|court| drop(court.row(CHILDREN[1], |_| {}))).contains("nobody owns"));
    assert!(told(|court| drop(court.judge.rows.remove(CHILDREN[1]))).contains("there is no lease for"));
    assert!(told(|court| drop(court.row(SHARD, |_| {}))).contains("has not ended"));
}

#[test]
fn a_shutdown_in_peace_leaves_free_and_exact_leases() {
    let left = |change: fn(&mut LeaseRow)| {
        let mut court = Court::with_done(2, 2);
        court.row(SHARD, |row| {
            row.checkpoint = Checkpoint::At(position(2));
            change(row);
        });
        court.judge.left(court.source.truth(4)).unwrap_or_default()
    };
    assert_eq!(left(|_| {}), "");
    assert!(left(|row| row.owner = Some("a".into())).contains("still belongs to a"));
    assert!(left(|row| row.checkpoint = Checkpoint::At(position(1))).contains("at record 1 of 2"));
    let mut court = Court::with_done(2, 2);
    assert!(court.judge.left(court.source.truth(4)).is_some_and(|why| why.contains("there is no lease")));
}
