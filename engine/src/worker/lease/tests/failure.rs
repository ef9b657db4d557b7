//! A record that the handler cannot process.

use super::{Owner, records};
use crate::config::{Config, FailureAction};
use crate::format::Format;
use crate::input::{Fetched, Outcome, Reply, Why};
use crate::notice::{Notice, Stall};
use crate::output::{ConsumerOp, IteratorFrom, StreamOp};
use crate::position::Position;
use crate::testkit::no_records;
use crate::worker::lease::Said;
use crate::worker::testing::{at, config, done, refused, row, running, table};

fn policy(attempts: u32, action: FailureAction) -> Config {
    config(Format::Kcl).with_failure_attempts(attempts).with_failure_action(action)
}

/// The handler processes records 1 to 5.
fn processing(attempts: u32, action: FailureAction) -> Owner {
    let cx = running(policy(attempts, action));
    let leases = table(&cx);
    let mut owner = Owner::within(cx, leases, row("a"));
    owner.answer_app(done());
    owner.iterates();
    owner.answer_stream(records(1, 5));
    owner.forget();
    owner
}

/// The present hand-over to the handler: whether of a single record, the attempt, and the position before.
fn given(owner: &Owner) -> Option<(bool, u32, Option<Position>)> {
    match owner.app()? {
        ConsumerOp::Deliver { attempt, after, .. } => Some((false, attempt, after)),
        ConsumerOp::DeliverOne { attempt, after, .. } => Some((true, attempt, after)),
        _ => None,
    }
}

/// The record to be set aside, and the number of its failures.
fn set_aside(owner: &Owner) -> Option<(Position, u32)> {
    match owner.app()? {
        ConsumerOp::SetAside { record, attempts, .. } => Some((record, attempts)),
        _ => None,
    }
}

fn through(record: u64) -> Outcome {
    Outcome::Applied(Reply::ProcessedThrough(at(record)))
}

fn fails(owner: &mut Owner, why: Why) {
    owner.answer_app(refused(why));
    owner.pass(6);
}

/// Record 2 of five has failed twice alone.
fn poisoned(action: FailureAction) -> Owner {
    let mut owner = processing(2, action);
    fails(&mut owner, Why::HandlerFailed);
    assert_eq!(given(&owner), Some((false, 2, None)));
    fails(&mut owner, Why::HandlerFailed);
    assert_eq!(given(&owner), Some((true, 1, None)));
    owner.answer_app(through(1));
    assert_eq!(given(&owner), Some((true, 1, Some(at(1)))));
    fails(&mut owner, Why::RecordFailed(at(2)));
    assert_eq!(given(&owner), Some((true, 2, Some(at(1)))));
    owner.forget();
    owner.answer_app(refused(Why::RecordFailed(at(2))));
    owner
}

#[test]
fn without_a_limit_a_batch_is_handed_over_whole_for_ever() {
    let mut owner = processing(0, FailureAction::SetAside);
    for attempt in 1..20 {
        assert_eq!(given(&owner), Some((false, attempt, None)));
        fails(&mut owner, Why::RecordFailed(at(1)));
    }
}

#[test]
fn records_that_are_not_in_order_are_handed_over_whole_for_ever() {
    let cx = running(policy(1, FailureAction::Stop));
    let leases = table(&cx);
    let mut owner = Owner::within(cx, leases, row("a"));
    owner.answer_app(done());
    let not_in_order = || {
        let (first, last) = (Some(at(4)), Some(at(3)));
        let answer = Fetched { count: 2, bytes: 2, first, last, unordered: true, ..no_records(1_000) };
        Outcome::Applied(Reply::Records(answer))
    };
    let mut answers = 0;
    while owner.app().is_none() {
        match owner.stream() {
            Some(StreamOp::GetIterator { .. }) => owner.answer_stream(Outcome::Applied(Reply::Iterator)),
            Some(_) => {
                owner.answer_stream(not_in_order());
                answers += 1;
            }
            None => owner.pass(1),
        }
    }
    assert!(answers > 2, "several answers say the same: {answers}");
    for attempt in 1..9 {
        assert_eq!(given(&owner), Some((false, attempt, None)));
        fails(&mut owner, Why::RecordFailed(at(4)));
        assert_eq!(owner.said().processed, None);
    }
    owner.answer_app(done());
    assert_eq!(owner.said().processed, Some(at(3)));
}

#[test]
fn a_failing_record_is_set_aside_and_the_rest_handed_over_whole() {
    let mut owner = poisoned(FailureAction::SetAside);
    assert_eq!(owner.told(), [""; 0], "it is told when it is safe");
    assert_eq!(set_aside(&owner), Some((at(2), 2)));
    assert_eq!(owner.said().processed, Some(at(1)));
    owner.answer_app(through(2));
    let Some(Notice::SetAside { position, attempts, .. }) = owner.notices.first() else {
        panic!("expected that it is told, found {:?}", owner.notices)
    };
    assert_eq!((*position, *attempts), (at(2), 2));
    assert_eq!(owner.said().processed, Some(at(2)));
    assert_eq!(given(&owner), Some((false, 1, Some(at(2)))));
    owner.answer_app(done());
    assert_eq!(owner.said().processed, Some(at(5)));
}

#[test]
fn a_record_that_cannot_be_set_aside_is_not_skipped() {
    let mut owner = poisoned(FailureAction::SetAside);
    for attempt in 1..10 {
        owner.answer_app(refused(Why::HandlerFailed));
        let told = owner
            .notices
            .iter()
            .any(|notice| matches!(notice, Notice::SetAsideFailed { attempt: of, .. } if *of == attempt));
        assert!(told, "{:?}", owner.notices);
        assert_eq!(owner.app(), None, "a pause comes first");
        owner.pass(6);
        assert_eq!(set_aside(&owner), Some((at(2), 2)));
    }
    assert_eq!(owner.said().processed, Some(at(1)));
    assert!(matches!(owner.why_stalled(), Stall::SettingAside { failures: 9, .. }));
    // An answer of another command is no success.
    owner.answer_app(through(3));
    assert_eq!(owner.said().processed, Some(at(1)));
}

#[test]
fn a_stopped_shard_keeps_its_lease_and_waits_to_be_resumed() {
    let mut owner = poisoned(FailureAction::Stop);
    let stopped = owner.notices.iter().find_map(|notice| match notice {
        Notice::ShardStopped { position, attempts, .. } => Some((*position, *attempts)),
        _ => None,
    });
    assert_eq!(stopped, Some((at(2), 2)));
    owner.pass(120);
    assert_eq!(owner.app(), None);
    assert!(owner.holds() && owner.believes());
    assert_eq!(owner.said().checkpoint, crate::position::Checkpoint::At(at(1)));
    assert!(matches!(owner.why_stalled(), Stall::Stopped { attempts: 2, .. }));
    owner.forget();
    owner.pause(false);
    assert_eq!(owner.told(), ["pause-ended"]);
    assert_eq!(given(&owner), Some((false, 1, Some(at(1)))));
    fails(&mut owner, Why::HandlerFailed);
    assert_eq!(given(&owner), Some((false, 2, Some(at(1)))), "a new count");
}

#[test]
fn progress_begins_the_count_anew() {
    let mut owner = processing(2, FailureAction::Stop);
    fails(&mut owner, Why::HandlerFailed);
    owner.say(Said::ProcessedThrough(at(1)));
    fails(&mut owner, Why::HandlerFailed);
    assert_eq!(given(&owner), Some((false, 2, Some(at(1)))));
}

#[test]
fn a_failure_after_a_processed_record_is_not_of_this_record() {
    let mut owner = processing(1, FailureAction::SetAside);
    fails(&mut owner, Why::HandlerFailed);
    owner.say(Said::ProcessedThrough(at(1)));
    fails(&mut owner, Why::RecordFailed(at(1)));
    assert_eq!(set_aside(&owner), None);
    assert_eq!(given(&owner).map(|(_, _, after)| after), Some(Some(at(1))));
}

#[test]
fn a_give_back_is_a_failed_attempt_and_keeping_is_no_progress() {
    let mut owner = processing(2, FailureAction::Stop);
    for time in 1..=2 {
        let Some(ConsumerOp::Deliver { batch, .. }) = owner.app() else {
            panic!("expected a whole batch at time {time}, found {:?}", owner.app())
        };
        owner.answer_app(Outcome::Applied(Reply::Kept));
        owner.say(Said::GivenBack(batch, "no".into()));
        read_again(&mut owner);
    }
    assert_eq!(given(&owner), Some((true, 1, None)));
}

/// Records 1 to 5 are read once more.
fn read_again(owner: &mut Owner) {
    owner.pass(1);
    assert!(matches!(owner.reads_again_from(), IteratorFrom::At(_)));
    owner.iterates();
    owner.answer_stream(records(1, 5));
    owner.pass(6);
}

#[test]
fn a_record_of_a_dropped_batch_is_set_aside_if_it_fails_again() {
    let mut owner = poisoned(FailureAction::SetAside);
    owner.answer_app(refused(Why::Gone));
    read_again(&mut owner);
    assert_eq!(given(&owner), Some((true, 1, Some(at(1)))));
    owner.answer_app(refused(Why::RecordFailed(at(2))));
    assert_eq!(set_aside(&owner), Some((at(2), 3)));
}

#[test]
fn one_record_is_not_kept() {
    let mut owner = processing(1, FailureAction::Stop);
    fails(&mut owner, Why::HandlerFailed);
    assert_eq!(given(&owner), Some((true, 1, None)));
    owner.answer_app(Outcome::Applied(Reply::Kept));
    assert_eq!(owner.said().processed, None);
    owner.pass(6);
    assert_eq!(given(&owner), Some((true, 2, None)));
}

#[test]
fn a_record_processed_before_its_answer_is_followed_at_once() {
    let mut owner = processing(1, FailureAction::Stop);
    fails(&mut owner, Why::HandlerFailed);
    owner.say(Said::ProcessedThrough(at(1)));
    owner.answer_app(through(1));
    assert_eq!(given(&owner), Some((true, 1, Some(at(1)))));
}
