//! Answers that the reader doubts.

use super::bench::{Bench, STREAM_LAG, child, last_answer, no_records, part, pos, records};
use crate::input::{Fetched, Outcome, Reply};
use crate::output::IteratorFrom;
use crate::position::{Position, SequenceNumber};
use crate::reader::{Doubtful, Event, Start};
use crate::shard::ChildShard;

/// A sequence number in AWS's layout, of a record of this shard.
fn number_of(shard: u64, n: u64) -> Position {
    Position::of(SequenceNumber::from_words([2 << 56 | (shard & 0xf) << 16, n, shard << 4 | 2]))
}

/// Equal answers, each from a new iterator at the same place, until one is taken: after two refused ones at least, and
/// the lag. Gives the event of the last answer.
pub(super) fn believed(bench: &mut Bench, answer: &Fetched) -> Option<Event> {
    let (began, front) = (bench.now, bench.reader.front());
    let mut refused = 0;
    let mut event = bench.answer(answer.clone());
    while let Some(Event::Doubted { answers, .. }) = event {
        refused += 1;
        assert_eq!(answers, refused);
        assert_eq!(bench.reader.front(), front, "nothing of it is taken");
        assert_eq!(bench.iterate(Outcome::Applied(Reply::Iterator)), None);
        bench.wait();
        assert!(bench.limit() <= 10, "a few records are enough to judge");
        event = bench.answer(answer.clone());
    }
    let waited = bench.now.since(began);
    assert!(refused >= 2 && waited >= STREAM_LAG, "{refused} in {waited}");
    event
}

#[test]
fn records_before_the_place_wait_for_equal_answers_over_the_lag() {
    let ready = || {
        let mut bench = Bench::ready(Start::At(part(9, 1)));
        assert_eq!(bench.answer(records(pos(9), pos(12), 10)), None);
        assert_eq!(bench.process_front().after, Some(part(9, 1)));
        bench.wait();
        bench
    };
    let (before, first, last) = (Some(pos(12)), Some(pos(2)), Some(pos(7)));
    let inside = false;
    let why = Doubtful::Disorder { before, first, last, inside };
    let mut bench = ready();
    let answers = 1;
    assert_eq!(bench.answer(records(pos(2), pos(7), 10)), Some(Event::Doubted { why, answers }));
    bench.asks_for(IteratorFrom::After(pos(12)));
    assert_eq!(bench.again(records(pos(13), pos(14), 10)), None);
    assert_eq!(bench.process_front().last, pos(14));

    let mut bench = ready();
    let event = believed(&mut bench, &records(pos(2), pos(7), 10));
    let disorder = Event::Disorder { before, first, last, inside };
    assert_eq!(event, Some(disorder));
    assert_eq!(bench.process_front().after, None, "what was processed is not told from what was not");
    assert_eq!(bench.reader.watermark(), Some(pos(12)), "never goes back");
    // The disorder is known by now.
    assert!(matches!(bench.answer(records(pos(8), pos(8), 10)), Some(Event::Disorder { .. })));
    assert!(bench.reader.front().is_some());
}

#[test]
fn a_record_to_start_at_is_missing_by_answers_over_the_lag() {
    let (at, first) = (part(3, 1), pos(7));
    let why = Doubtful::Gap { at, first: Some(first) };
    let mut bench = Bench::ready(Start::At(at));
    let answers = 1;
    assert_eq!(bench.answer(records(pos(7), pos(9), 10)), Some(Event::Doubted { why, answers }));
    bench.asks_for(IteratorFrom::At(at));
    assert_eq!(bench.again(records(pos(3), pos(9), 10)), None);
    assert_eq!(bench.process_front().after, Some(at));

    let mut bench = Bench::ready(Start::At(at));
    let event = believed(&mut bench, &records(pos(7), pos(9), 10));
    assert_eq!(event, Some(Event::Trimmed { at, first }));
    assert_eq!(bench.process_front().after, None);
}

#[test]
fn the_tip_is_not_where_a_checkpoint_is() {
    let at = part(3, 1);
    let (why, answers) = (Doubtful::Gap { at, first: None }, 1);
    let mut bench = Bench::ready(Start::At(at));
    assert_eq!(bench.answer(no_records(5)), None, "on the way");
    assert_eq!(bench.answer(no_records(0)), Some(Event::Doubted { why, answers }));
    bench.asks_for(IteratorFrom::At(at));
    assert_eq!(bench.again(records(pos(3), pos(4), 10)), None);
    bench.process_front();
    assert_eq!(bench.answer(no_records(0)), None, "the tip is after that record");

    let mut bench = Bench::ready(Start::At(at));
    let event = believed(&mut bench, &no_records(0));
    assert_eq!(event, None, "the stream has forgotten that record, and has no other");
    assert!(matches!(bench.answer(later(7)), Some(Event::Doubted { .. })));
    assert!(matches!(bench.again(later(7)), Some(Event::Trimmed { .. })));
}

/// The answers, a fifth of the lag apart: the number of answers until one is not refused.
fn taken_after(answers: impl Iterator<Item = Fetched>) -> Option<usize> {
    let mut bench = Bench::ready(Start::At(pos(3)));
    for (n, answer) in answers.enumerate() {
        if !matches!(bench.answer(answer), Some(Event::Doubted { .. })) {
            return Some(n + 1);
        }
        bench.asks_for(IteratorFrom::At(pos(3)));
        bench.iterate(Outcome::Applied(Reply::Iterator));
        bench.now += STREAM_LAG.per(5);
    }
    None
}

fn later(first: u64) -> Fetched {
    records(pos(first), pos(first + 2), 10)
}

#[test]
fn an_empty_answer_says_nothing_of_a_later_first_record() {
    let gap = later(7);
    let with = |n: usize, other: Fetched| {
        let answers = [vec![gap.clone(); n], vec![other], vec![gap.clone(); 9]].concat();
        taken_after(answers.into_iter())
    };
    assert_eq!(taken_after(std::iter::repeat_n(gap.clone(), 9)), Some(6));
    assert_eq!(with(5, no_records(0)), Some(7), "the sixth of these is empty");
    assert_eq!(with(5, last_answer(&[child("a")])), Some(7));
    assert_eq!(with(2, no_records(0)), Some(6), "the answers before the empty one count");
    let turns = (0..20).map(|n| if n % 2 == 0 { gap.clone() } else { no_records(0) });
    assert_eq!(taken_after(turns), Some(7));
}

#[test]
fn records_are_missing_before_the_first_record_of_two_answers() {
    let answers = [7, 7, 7, 7, 7, 40, 7, 7].map(later);
    assert_eq!(taken_after(answers.into_iter()), Some(8), "40 stands alone");
    assert_eq!(taken_after((7..30).map(later)), Some(11), "the stream forgets all the time");
    assert_eq!(taken_after((7..30).rev().map(later)), None);
}

#[test]
fn a_gap_before_one_record_proves_no_gap_before_a_later_one() {
    let ready = || {
        let mut bench = Bench::ready(Start::At(pos(3)));
        let event = believed(&mut bench, &later(7));
        assert!(matches!(event, Some(Event::Trimmed { .. })));
        bench.reader.rewind();
        bench
    };
    let mut bench = ready();
    assert!(matches!(bench.again(later(7)), Some(Event::Trimmed { .. })), "as before");
    let mut bench = ready();
    let event = bench.again(later(9));
    assert!(matches!(event, Some(Event::Doubted { answers: 1, .. })), "{event:?}");
}

#[test]
fn the_end_is_not_where_a_checkpoint_is() {
    let at = pos(3);
    let (why, answers) = (Doubtful::Gap { at, first: None }, 1);
    let mut bench = Bench::ready(Start::At(at));
    let end = last_answer(&[child("a"), child("b")]);
    assert_eq!(bench.answer(end.clone()), Some(Event::Doubted { why, answers }));
    assert!(!bench.reader.is_end_claimed(), "nothing of the answer is taken");
    assert_eq!(bench.again(records(pos(3), pos(4), 10)), None);
    bench.process_front();
    assert_eq!(bench.answer(end), None, "the end is after that record");
    assert!(bench.reader.is_end_claimed());
}

#[test]
fn a_fitting_answer_ends_a_doubt_and_one_under_way_does_not() {
    let at = pos(3);
    let wrong = records(pos(7), pos(9), 10);
    let doubted = |event: Option<Event>| match event {
        Some(Event::Doubted { answers, .. }) => answers,
        other => panic!("expected a doubtful answer, found {other:?}"),
    };
    let mut bench = Bench::ready(Start::At(at));
    assert_eq!(doubted(bench.answer(wrong.clone())), 1);
    assert_eq!(bench.again(no_records(1)), None);
    assert_eq!(doubted(bench.answer(wrong.clone())), 2);
    assert_eq!(bench.again(records(pos(3), pos(4), 10)), None);
    bench.now += STREAM_LAG;
    assert_eq!(bench.answer(wrong), None, "it fits the place by now");
}

#[test]
fn another_shards_numbers_wait_for_equal_answers_over_the_lag() {
    let ready = || {
        let mut bench = Bench::new(Start::TrimHorizon);
        bench.subject = "shardId-000000000007";
        bench.iterate(Outcome::Applied(Reply::Iterator));
        bench
    };
    let (theirs, ours) = (number_of(8, 1), number_of(7, 1));
    let refuses = |bench: &mut Bench, answer| {
        let event = bench.answer(answer);
        let (why, answers) = (Doubtful::Foreign { of: Some(8) }, 1);
        assert_eq!(event, Some(Event::Doubted { why, answers }));
        assert_eq!(bench.reader.front(), None);
        bench.asks_for(IteratorFrom::TrimHorizon);
        bench.iterate(Outcome::Applied(Reply::Iterator));
    };
    for wrong in [records(theirs, theirs, 1), records(ours, theirs, 1), records(theirs, ours, 1)] {
        let mut bench = ready();
        refuses(&mut bench, wrong);
        assert_eq!(bench.answer(records(ours, ours, 1)), None);
        assert!(bench.reader.front().is_some());
    }
    let mut bench = ready();
    let event = believed(&mut bench, &records(theirs, theirs, 1));
    assert_eq!(event, None);
    assert!(bench.reader.front().is_some(), "the numbers say nothing here");
}

#[test]
fn children_of_another_shard_are_no_end_of_this_one() {
    let mut bench = Bench::ready(Start::TrimHorizon);
    let end = |parent: &str| Fetched {
        end: Some(vec![ChildShard { parents: vec![parent.into()], ..child("c") }]),
        ..no_records(0)
    };
    let (why, answers) = (Doubtful::Foreign { of: None }, 1);
    assert_eq!(bench.answer(end("other")), Some(Event::Doubted { why, answers }));
    assert_eq!(bench.reader.finished(), None);
    bench.iterate(Outcome::Applied(Reply::Iterator));
    assert_eq!(bench.answer(end("shard")), None);
    assert_eq!(bench.again(end("shard")), Some(Event::EndOfShard));
}
