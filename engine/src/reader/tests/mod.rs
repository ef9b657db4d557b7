//! One test per rule.

mod bench;
mod doubt;
mod end_claims;
mod pace;
mod size;
mod subscriptions;
mod unordered;

use super::*;
use crate::input::{Fetched, Outcome, Reply};
use crate::time::Mono;
use bench::{Bench, RETRY_MAX, RETRY_MIN, child, last_answer, no_records, op, part, pos, records, refused};

const FRESH: Span = Span::from_secs(240);

/// The pause after a call that failed.
#[track_caller]
fn again_in(event: Option<Event>) -> Span {
    match event {
        Some(Event::Trouble { again_in, .. }) => again_in,
        other => panic!("expected trouble, found {other:?}"),
    }
}

#[test]
fn a_checkpoint_decides_where_reading_begins() {
    let time = Wall(5);
    for (checkpoint, began, start) in [
        (Checkpoint::TrimHorizon, Some(time), Some(Start::TrimHorizon)),
        (Checkpoint::Latest, Some(time), Some(Start::Since(time))),
        (Checkpoint::AtTimestamp, Some(time), Some(Start::AtTimestamp(time))),
        (Checkpoint::AtTimestamp, None, Some(Start::TrimHorizon)),
        (Checkpoint::At(pos(3)), Some(time), Some(Start::At(pos(3)))),
        (Checkpoint::ShardEnd, Some(time), None),
    ] {
        assert_eq!(Start::from(checkpoint, began), start);
    }
}

#[test]
fn an_iterator_is_used_by_the_command_that_brought_it() {
    let mut bench = Bench::new(Start::TrimHorizon);
    assert_eq!(bench.next(), Some(Want::GetIterator(IteratorFrom::TrimHorizon)));
    assert_eq!(bench.next(), Some(Want::GetIterator(IteratorFrom::TrimHorizon)), "until sent");
    bench.iterate(Outcome::Applied(Reply::Iterator));
    for via in 1..5 {
        bench.wait();
        let limit = 10;
        assert_eq!(bench.next(), Some(Want::GetRecords { via: op(via), limit }));
        assert_eq!(bench.answer(no_records(1)), None);
    }
}

#[test]
fn a_stale_outcome_is_ignored() {
    let mut bench = Bench::ready(Start::TrimHorizon);
    let before = bench.reader.clone();
    assert_eq!(bench.done(op(1), refused(Why::NotFound)), None);
    assert_eq!(bench.done(op(99), refused(Why::Expired)), None);
    assert_eq!(bench.reader, before);
}

#[test]
fn calls_are_paced_from_emission_by_interval_bytes_and_idleness() {
    let mut bench = Bench::ready(Start::TrimHorizon);
    bench.answer(no_records(1));
    assert_eq!(bench.wait(), Span::from_millis(250), "behind, though empty");

    let op = bench.send();
    bench.now += Span::from_millis(100);
    bench.done(op, Outcome::Applied(Reply::Records(records(pos(1), pos(1), 10))));
    assert_eq!(bench.wait(), Span::from_millis(150), "the call took 100 ms");

    bench.answer(records(pos(2), pos(2), 1_900_000));
    assert_eq!(bench.wait(), Span(1_050_001), "a large answer fills a second");

    let at_tip = Fetched { behind_ms: 0, ..records(pos(3), pos(3), 10) };
    bench.answer(at_tip);
    assert_eq!(bench.wait(), Span::from_secs(1));
    bench.answer(no_records(0));
    assert_eq!(bench.wait(), Span::from_secs(1));
}

#[test]
fn fetching_stops_at_the_budget_of_batches_and_goes_on_below() {
    let mut bench = Bench::ready(Start::TrimHorizon);
    for n in 1..=4 {
        bench.answer(records(pos(n), pos(n), 10));
    }
    assert_eq!(bench.reader.wake_at(&bench.cfg), Mono::NEVER);
    bench.now += Span::from_secs(60);
    assert_eq!(bench.next(), None);
    bench.reader.delivered();
    assert_eq!(bench.next(), None, "what is being processed is in memory still");
    assert!(bench.reader.processed(op(2)));
    assert!(bench.next().is_some());
    assert_eq!(bench.reader.buffered_bytes(), 30);
}

#[test]
fn fetching_stops_at_its_bytes_and_a_larger_batch_comes() {
    let mut bench = Bench::ready(Start::TrimHorizon);
    bench.cfg.buffer_bytes = 5;
    bench.answer(records(pos(1), pos(1), 10));
    assert_eq!(bench.reader.wake_at(&bench.cfg), Mono::NEVER);
    bench.process_front();
    bench.answer(records(pos(2), pos(2), 10));
    assert_eq!(bench.reader.buffered_batches(), 1);
    bench.cfg.buffer_bytes = 0;
    bench.process_front();
    bench.wait();
    assert!(bench.next().is_some(), "with nothing buffered there is always room");
}

#[test]
fn a_failed_call_is_repeated_with_its_iterator_after_a_backoff() {
    let mut bench = Bench::ready(Start::TrimHorizon);
    let mut pauses = Vec::new();
    for n in 0..8 {
        let outcome = match n % 4 {
            0 => Outcome::NotSent(Cause::Network),
            1 => Outcome::Unknown(Cause::Timeout),
            2 => refused(Why::InUse),
            _ => Outcome::Applied(Reply::Done),
        };
        let again_in = again_in(bench.fetch(outcome));
        assert!(RETRY_MIN <= again_in && again_in <= RETRY_MAX);
        assert_eq!(bench.wait(), again_in.max(Span::from_millis(250)));
        assert!(matches!(bench.next(), Some(Want::GetRecords { via, .. }) if via == op(1)));
        pauses.push(again_in);
    }
    for (n, pause) in pauses.iter().enumerate().take(5) {
        assert!(*pause >= RETRY_MIN.times(1 << n) && *pause <= RETRY_MIN.times(2 << n), "{pauses:?}");
    }
    assert!(pauses[7] >= RETRY_MAX.per(2));

    bench.answer(no_records(1));
    let again_in = again_in(bench.fetch(Outcome::Unknown(Cause::Network)));
    assert!(again_in <= RETRY_MIN.times(2), "a success resets the backoff");
}

#[test]
fn a_lost_iterator_is_replaced_after_the_last_fetched_record() {
    for why in [Why::Expired, Why::Gone, Why::Invalid] {
        let mut bench = Bench::ready(Start::TrimHorizon);
        bench.fetch(refused(why));
        bench.asks_for(IteratorFrom::TrimHorizon);
        bench.iterate(Outcome::Applied(Reply::Iterator));
        bench.answer(records(pos(1), part(4, 2), 10));
        bench.fetch(refused(why));
        bench.asks_for(IteratorFrom::After(part(4, 2)));
    }
    let mut bench = Bench::ready(Start::At(part(3, 1)));
    bench.fetch(refused(Why::Expired));
    bench.asks_for(IteratorFrom::At(part(3, 1)));
}

#[test]
fn only_the_first_expiry_in_a_row_is_free() {
    let mut bench = Bench::ready(Start::TrimHorizon);
    assert_eq!(again_in(bench.fetch(refused(Why::Expired))), Span::ZERO);
    let mut sum = Span::ZERO;
    for _ in 0..10 {
        bench.iterate(Outcome::Applied(Reply::Iterator));
        sum = sum + again_in(bench.fetch(refused(Why::Expired)));
    }
    assert!(sum >= Span::from_secs(10), "an iterator that never works is no storm: {sum}");
}

#[test]
fn an_iterator_left_unused_is_replaced_before_it_expires() {
    let mut bench = Bench::ready(Start::TrimHorizon);
    for n in 1..=4 {
        bench.answer(records(pos(n), pos(n), 10));
    }
    bench.now += FRESH;
    bench.process_front();
    assert_eq!(bench.next(), Some(Want::GetIterator(IteratorFrom::After(pos(4)))));

    let mut bench = Bench::ready(Start::Since(Wall(5)));
    bench.now += FRESH;
    assert_eq!(
        bench.next(),
        Some(Want::GetIterator(IteratorFrom::AtTimestamp(Wall(5)))),
        "nothing was fetched: reading begins where it began"
    );
    bench.iterate(Outcome::Applied(Reply::Iterator));
    bench.answer(records(pos(1), pos(1), 1));
    bench.now += FRESH;
    assert_eq!(bench.next(), Some(Want::GetIterator(IteratorFrom::After(pos(1)))));
}

#[test]
fn a_future_moment_is_left_and_a_configured_time_is_waited_for() {
    let now = Wall(1_700_000_000_000);
    let at = |early_ms| Wall(now.0 - early_ms);
    let mut bench = Bench::new(Start::Since(now));
    for (tried, next) in [(0, 1_000), (1_000, 3_000), (3_000, 7_000)] {
        bench.asks_for(IteratorFrom::AtTimestamp(at(tried)));
        let event = bench.iterate(refused(Why::Invalid));
        assert!(matches!(event, Some(Event::Early { at: refused, .. }) if refused == at(tried)), "{event:?}");
        assert_eq!(bench.reader.began_earlier(), Some(at(next)));
        bench.asks_for(IteratorFrom::AtTimestamp(at(next)));
    }
    bench.iterate(refused(Why::Denied));
    bench.asks_for(IteratorFrom::AtTimestamp(at(7_000)));
    bench.iterate(Outcome::Applied(Reply::Iterator));
    assert_eq!(bench.reader.began_earlier(), Some(at(7_000)));

    let mut bench = Bench::new(Start::AtTimestamp(now));
    for _ in 0..5 {
        let event = bench.iterate(refused(Why::Invalid));
        assert!(matches!(event, Some(Event::Trouble { .. })), "{event:?}");
        bench.asks_for(IteratorFrom::AtTimestamp(now));
    }
    assert_eq!(bench.reader.began_earlier(), None);
}

#[test]
fn an_invalid_position_is_reported_and_never_skipped() {
    let mut bench = Bench::new(Start::At(pos(9)));
    for tries in 1..=6 {
        let event = bench.iterate(refused(Why::Invalid));
        match event {
            Some(Event::Trouble { .. }) if tries < 3 => {}
            Some(Event::BadPosition { at, tries: n, .. }) if tries >= 3 => {
                assert_eq!((at, n), (pos(9), tries));
            }
            other => panic!("try {tries}: {other:?}"),
        }
        bench.asks_for(IteratorFrom::At(pos(9)));
    }
}

#[test]
fn a_missing_shard_waits_for_a_resume_and_a_denial_for_a_retry() {
    let mut bench = Bench::ready(Start::TrimHorizon);
    assert_eq!(bench.fetch(refused(Why::NotFound)), Some(Event::ShardMissing));
    bench.now += Span::from_secs(3600);
    assert_eq!(bench.next(), None);
    assert_eq!(bench.reader.wake_at(&bench.cfg), Mono::NEVER);
    assert!(bench.reader.is_paused());
    bench.reader.resume(bench.now);
    assert!(bench.next().is_some());

    let mut bench = Bench::new(Start::TrimHorizon);
    assert!(
        matches!(bench.iterate(refused(Why::Denied)), Some(Event::Denied { again_in }) if again_in >= RETRY_MIN)
    );
    bench.asks_for(IteratorFrom::TrimHorizon);
}

#[test]
fn records_up_to_the_checkpoint_are_filtered_by_position() {
    let mut bench = Bench::ready(Start::At(part(3, 1)));
    assert_eq!(bench.reader.watermark(), Some(part(3, 1)));
    bench.answer(records(pos(3), part(3, 1), 10));
    assert_eq!(bench.reader.front(), None, "wholly covered");
    assert_eq!(bench.reader.buffered_bytes(), 0);
    bench.answer(records(pos(4), pos(5), 10));
    assert_eq!(bench.process_front().after, None);

    let mut bench = Bench::ready(Start::At(part(3, 1)));
    bench.answer(records(pos(3), pos(5), 10));
    assert_eq!(bench.process_front().after, Some(part(3, 1)), "later parts of record 3 may be left");
}

#[test]
fn the_watermark_follows_partial_acks_and_redelivery_follows() {
    let mut bench = Bench::ready(Start::TrimHorizon);
    bench.answer(records(pos(1), pos(5), 10));
    bench.answer(records(pos(6), pos(9), 10));
    bench.reader.processed_through(pos(3));
    assert_eq!(bench.reader.watermark(), None, "nothing was handed over yet");
    assert!(!bench.reader.processed(op(2)) && !bench.reader.returned(op(2)));

    bench.reader.delivered();
    bench.reader.processed_through(pos(3));
    bench.reader.processed_through(pos(2));
    assert_eq!(bench.reader.watermark(), Some(pos(3)));
    assert!(!bench.reader.processed(op(3)), "another batch is out");
    assert!(bench.reader.returned(op(2)));
    assert_eq!(bench.reader.front().map(|b| (b.batch, b.after)), Some((op(2), Some(pos(3)))));

    bench.reader.delivered();
    bench.reader.processed_through(pos(8));
    assert_eq!(bench.reader.watermark(), Some(pos(5)), "8 was never handed over");
    assert_eq!(bench.reader.buffered_batches(), 2, "the payload is in memory as long as it is out");
    assert!(bench.reader.returned(op(2)));
    assert_eq!(bench.process_front().batch, op(3), "nothing of the first batch is left");
    assert_eq!(bench.reader.watermark(), Some(pos(9)));
}

#[test]
fn a_shard_is_finished_with_its_end_fetched_and_all_processed() {
    let mut bench = Bench::ready(Start::TrimHorizon);
    let children = vec![child("a"), child("b")];
    let end = Some(children.clone());
    let event = bench.answer(Fetched { end, behind_ms: 0, ..records(pos(1), pos(1), 1) });
    assert_eq!(event, None, "one answer proves no end");
    assert_eq!(bench.again(last_answer(&children)), Some(Event::EndOfShard));
    assert_eq!(bench.reader.finished(), None);
    assert_eq!(bench.reader.wake_at(&bench.cfg), Mono::NEVER);
    bench.process_front();
    assert_eq!(bench.reader.finished(), Some(&children[..]));

    let mut bench = Bench::ready(Start::TrimHorizon);
    bench.answer(last_answer(&children));
    bench.again(last_answer(&children));
    assert_eq!(bench.reader.finished(), Some(&children[..]), "two empty answers end a shard without records");
}

#[test]
fn a_rewind_reads_the_unprocessed_again_and_forgets_the_end() {
    let mut bench = Bench::ready(Start::Since(Wall(5)));
    bench.answer(records(pos(1), pos(5), 10));
    let event =
        bench.answer(Fetched { end: Some(vec![child("a")]), behind_ms: 0, ..records(pos(6), pos(9), 10) });
    assert_eq!(event, None);
    let event = bench.again(last_answer(&[child("a")]));
    assert_eq!(event, Some(Event::EndOfShard));
    bench.reader.rewind();
    assert_eq!(bench.reader.buffered_bytes(), 0);
    bench.asks_for(IteratorFrom::At(pos(1)));
    bench.iterate(Outcome::Applied(Reply::Iterator));
    assert_eq!(bench.answer(records(pos(1), pos(5), 10)), None);
    assert_eq!(bench.process_front().after, None);
    assert_eq!(bench.reader.finished(), None, "this batch is not the last");

    bench.wait();
    let late = bench.send();
    bench.reader.rewind();
    assert_eq!(bench.next(), None, "the command in flight ends first");
    assert_eq!(bench.done(late, Outcome::Applied(Reply::Records(records(pos(6), pos(9), 10)))), None);
    assert_eq!(bench.reader.front(), None);
    bench.asks_for(IteratorFrom::At(pos(5)));
    bench.iterate(Outcome::Applied(Reply::Iterator));
    bench.answer(records(pos(5), pos(9), 10));
    assert_eq!(bench.process_front().after, Some(pos(5)));
}

#[test]
fn a_rewind_before_the_first_record_changes_nothing() {
    let mut bench = Bench::ready(Start::Since(Wall(5)));
    let before = bench.reader.clone();
    bench.reader.rewind();
    assert_eq!(bench.reader, before);
}

#[test]
fn an_answer_without_a_last_position_is_fetched_again() {
    let mut bench = Bench::ready(Start::TrimHorizon);
    bench.answer(records(pos(5), pos(9), 10));
    bench.process_front();
    let unplaced = Fetched { last: None, ..records(pos(10), pos(10), 10) };
    assert!(matches!(bench.answer(unplaced), Some(Event::Disorder { last: None, .. })));
    assert_eq!(bench.reader.front(), None);
    bench.wait();
    assert!(matches!(bench.next(), Some(Want::GetRecords { via, .. }) if via == op(2)), "fetched again");
}
