//! Records of an answer that are not in the order of their numbers.

use super::bench::{Bench, pos, records};
use super::doubt::believed;
use crate::input::Fetched;
use crate::output::IteratorFrom;
use crate::reader::{Doubtful, Event, Start};

fn unordered(first: u64, last: u64) -> Fetched {
    Fetched { count: 4, unordered: true, ..records(pos(first), pos(last), 10) }
}

/// A reader with records accepted out of order: enough answers had the records in this order.
fn taken(start: Start, answer: &Fetched) -> Bench {
    let mut bench = Bench::ready(start);
    let event = believed(&mut bench, answer);
    assert!(matches!(event, Some(Event::Disorder { inside: true, .. })), "{event:?}");
    bench
}

#[test]
fn an_answer_with_a_number_out_of_order_is_not_taken() {
    let mut bench = Bench::ready(Start::At(pos(9)));
    let why = Doubtful::Disorder { before: None, first: Some(pos(9)), last: Some(pos(15)), inside: true };
    let doubted = Event::Doubted { why, answers: 1 };
    assert_eq!(bench.answer(unordered(9, 15)), Some(doubted));
    assert_eq!(bench.reader.front(), None);
    bench.asks_for(IteratorFrom::At(pos(9)));
    assert_eq!(bench.again(records(pos(9), pos(15), 10)), None);
    assert_eq!(bench.process_front().after, Some(pos(9)), "the right answer");
}

#[test]
fn of_records_that_are_not_in_order_nothing_is_left_out() {
    let mut bench = taken(Start::At(pos(9)), &unordered(9, 15));
    let front = bench.reader.front().expect("it is taken");
    assert_eq!((front.after, front.unordered), (None, true));
    bench.process_front();
    assert_eq!(bench.reader.watermark(), Some(pos(15)));
    bench.answer(records(pos(16), pos(17), 10));
    bench.process_front();
    assert_eq!(bench.reader.watermark(), Some(pos(17)));
}

#[test]
fn the_watermark_waits_for_all_records_that_are_not_in_order() {
    let mut bench = taken(Start::At(pos(9)), &unordered(13, 12));
    let front = bench.reader.front().expect("it is taken");
    for position in [pos(13), pos(12), pos(99)] {
        bench.reader.delivered();
        assert!(!bench.reader.processed_through(position), "while it is out");
        assert!(bench.reader.returned(front.batch));
        assert!(!bench.reader.processed_through(position));
        assert!(!bench.reader.awaits(position), "no record is the next one");
        assert_eq!(bench.reader.watermark(), Some(pos(9)));
        assert_eq!(bench.reader.front(), Some(front), "all of it again");
    }
    bench.process_front();
    assert_eq!(bench.reader.watermark(), Some(pos(12)));
}

#[test]
fn a_position_says_nothing_of_kept_records_out_of_order() {
    let mut bench = taken(Start::At(pos(9)), &unordered(11, 15));
    let first = bench.reader.front().expect("it is taken");
    bench.reader.delivered();
    assert!(bench.reader.keep(first.batch));
    bench.answer(records(pos(16), pos(18), 10));
    let second = bench.reader.front().expect("it is taken");
    bench.reader.delivered();
    assert!(!bench.reader.processed_through(pos(14)));
    assert!(bench.reader.processed_through(pos(16)));
    assert!(bench.reader.keeps(first.batch).is_some());
    assert_eq!(bench.reader.watermark(), Some(pos(9)));
    assert!(bench.reader.acknowledged(first.batch));
    assert_eq!(bench.reader.watermark(), Some(pos(16)));
    assert!(bench.reader.processed(second.batch));
    assert_eq!(bench.reader.watermark(), Some(pos(18)));
}

#[test]
fn records_out_of_order_are_read_again_from_the_readings_start() {
    let mut bench = taken(Start::TrimHorizon, &unordered(11, 15));
    bench.reader.rewind();
    assert_eq!(bench.reader.front(), None);
    bench.asks_for(IteratorFrom::TrimHorizon);
}
