//! Answers that are not taken at their word.

use super::bench::{Bench, child, empty, pos, records};
use crate::input::{Fetched, Outcome, Reply};
use crate::output::IteratorFrom;
use crate::position::{Position, SequenceNumber};
use crate::reader::{Event, Start, Want};
use crate::shard::ChildShard;

/// An answer without an iterator and without children.
fn claim() -> Fetched {
    let end = Some(Vec::new());
    Fetched { end, ..empty(0) }
}

#[test]
fn an_end_without_children_is_believed_when_a_second_answer_claims_it() {
    let mut bench = Bench::ready(Start::TrimHorizon);
    let end = Some(Vec::new());
    assert_eq!(
        bench.answer(Fetched {
            end,
            ..records(pos(1), pos(1), 1)
        }),
        None
    );
    bench.process_front();
    bench.wait();
    assert_eq!(bench.next(), Some(Want::GetIterator(IteratorFrom::After(pos(1)))));
    bench.iterate(Outcome::Applied(Reply::Iterator));
    bench.wait();
    assert_eq!(bench.reader.finished(), None);
    assert_eq!(bench.answer(claim()), Some(Event::EndOfShard));
    assert_eq!(bench.reader.finished(), Some(&[][..]));
}

#[test]
fn records_after_a_claimed_end_take_the_claim_back() {
    let mut bench = Bench::ready(Start::TrimHorizon);
    assert_eq!(bench.answer(claim()), None);
    bench.wait();
    bench.iterate(Outcome::Applied(Reply::Iterator));
    bench.wait();
    assert_eq!(bench.answer(records(pos(1), pos(1), 1)), None);
    bench.process_front();
    bench.wait();
    assert_eq!(bench.answer(claim()), None, "a new claim");
    let behind = Fetched {
        behind_ms: 5_000,
        end: Some(vec![child("a")]),
        ..empty(0)
    };
    let mut bench = Bench::ready(Start::TrimHorizon);
    assert_eq!(
        bench.answer(behind),
        None,
        "an answer that is behind proves no end"
    );
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
    assert_eq!(bench.answer(end("shard")), Some(Event::EndOfShard));
}
