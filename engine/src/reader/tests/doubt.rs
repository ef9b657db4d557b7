//! Answers that the reader doubts.

use super::bench::{Bench, STREAM_LAG, child, empty, last_answer, pos, records};
use crate::input::{Fetched, Outcome, Reply};
use crate::output::IteratorFrom;
use crate::position::{Position, SequenceNumber};
use crate::reader::{Event, Start, Want};
use crate::shard::ChildShard;

#[test]
fn an_end_is_believed_when_a_second_answer_claims_it() {
    let children = [child("a"), child("b")];
    let mut bench = Bench::ready(Start::TrimHorizon);
    let last = Fetched {
        end: Some(children.to_vec()),
        behind_ms: 0,
        ..records(pos(1), pos(1), 1)
    };
    assert_eq!(bench.answer(last), None);
    let waited = bench.wait();
    assert!(waited <= bench.cfg.min_interval, "asked for at once: {waited:?}");
    assert_eq!(bench.next(), Some(Want::GetIterator(IteratorFrom::After(pos(1)))));
    assert_eq!(bench.again(last_answer(&children)), Some(Event::EndOfShard));
    bench.process_front();
    assert_eq!(bench.reader.finished(), Some(&children[..]));
}

#[test]
fn two_weak_claims_of_an_end_lie_apart() {
    let mut bench = Bench::ready(Start::TrimHorizon);
    let again_in = STREAM_LAG;
    assert_eq!(bench.answer(last_answer(&[])), Some(Event::WeakEnd { again_in }));
    assert_eq!(bench.wait(), STREAM_LAG);
    assert_eq!(bench.reader.finished(), None);
    assert_eq!(bench.again(last_answer(&[])), Some(Event::EndOfShard));
}

#[test]
fn a_weak_claim_soon_after_a_plain_one_is_waited_out() {
    let mut bench = Bench::ready(Start::TrimHorizon);
    assert_eq!(bench.answer(last_answer(&[child("a")])), None);
    let first = bench.now;
    let event = bench.again(last_answer(&[]));
    assert!(matches!(event, Some(Event::WeakEnd { .. })), "{event:?}");
    bench.wait();
    assert_eq!(bench.now.since(first), STREAM_LAG);
    assert_eq!(bench.again(last_answer(&[])), Some(Event::EndOfShard));
}

#[test]
fn records_take_the_claim_of_an_end_back_and_empty_answers_do_not() {
    let children = [child("a")];
    let mut bench = Bench::ready(Start::TrimHorizon);
    assert_eq!(bench.answer(last_answer(&children)), None);
    assert_eq!(
        bench.again(empty(9)),
        None,
        "the service looks for records on the way"
    );
    bench.wait();
    assert_eq!(bench.answer(last_answer(&children)), Some(Event::EndOfShard));

    let mut bench = Bench::ready(Start::TrimHorizon);
    assert_eq!(bench.answer(last_answer(&children)), None);
    assert_eq!(bench.again(records(pos(1), pos(1), 1)), None);
    bench.process_front();
    bench.wait();
    assert_eq!(bench.answer(last_answer(&children)), None, "a new claim");
    assert_eq!(bench.again(last_answer(&children)), Some(Event::EndOfShard));
}

#[test]
fn a_rewind_forgets_a_claim_and_its_pause() {
    let mut bench = Bench::ready(Start::TrimHorizon);
    assert_eq!(bench.answer(records(pos(1), pos(1), 1)), None);
    bench.wait();
    assert!(bench.answer(last_answer(&[])).is_some());
    bench.reader.rewind();
    assert!(bench.wait() < STREAM_LAG);
    bench.again(records(pos(1), pos(1), 1));
    bench.wait();
    assert!(matches!(
        bench.answer(last_answer(&[])),
        Some(Event::WeakEnd { .. })
    ));
}

/// A number as AWS gives it, of a record of this shard.
fn number_of(shard: u64, n: u64) -> Position {
    Position::of(SequenceNumber::from_words([
        2 << 56 | (shard & 0xf) << 16,
        n,
        shard << 4 | 2,
    ]))
}

#[test]
fn numbers_of_another_shard_are_not_taken_until_three_answers_in_a_row_have_such_numbers() {
    let ready = || {
        let mut bench = Bench::new(Start::TrimHorizon);
        bench.subject = "shardId-000000000007";
        bench.iterate(Outcome::Applied(Reply::Iterator));
        bench
    };
    let (theirs, ours) = (number_of(8, 1), number_of(7, 1));
    let refuses = |bench: &mut Bench, answer| {
        let event = bench.answer(answer);
        assert!(matches!(event, Some(Event::Foreign { of: Some(8) })), "{event:?}");
        assert_eq!(bench.reader.front(), None);
        bench.asks_for(IteratorFrom::TrimHorizon);
        bench.iterate(Outcome::Applied(Reply::Iterator));
    };
    for wrong in [
        records(theirs, theirs, 1),
        records(ours, theirs, 1),
        records(theirs, ours, 1),
    ] {
        let mut bench = ready();
        refuses(&mut bench, wrong);
        assert_eq!(bench.answer(records(ours, ours, 1)), None);
        assert!(bench.reader.front().is_some());
    }
    let mut bench = ready();
    refuses(&mut bench, records(theirs, theirs, 1));
    refuses(&mut bench, records(theirs, theirs, 1));
    assert_eq!(bench.answer(records(theirs, theirs, 1)), None);
    assert!(bench.reader.front().is_some(), "the numbers say nothing here");
}

#[test]
fn children_of_another_shard_are_no_end_of_this_one() {
    let mut bench = Bench::ready(Start::TrimHorizon);
    let end = |parent: &str| Fetched {
        end: Some(vec![ChildShard {
            parents: vec![parent.into()],
            ..child("c")
        }]),
        ..empty(0)
    };
    assert_eq!(bench.answer(end("other")), Some(Event::Foreign { of: None }));
    assert_eq!(bench.reader.finished(), None);
    bench.iterate(Outcome::Applied(Reply::Iterator));
    assert_eq!(bench.answer(end("shard")), None);
    assert_eq!(bench.again(end("shard")), Some(Event::EndOfShard));
}
