//! Reading by subscription.

use super::bench::*;
use crate::input::{Fetched, Outcome, Reply};
use crate::output::IteratorFrom;
use crate::reader::*;
use crate::time::{Mono, Wall};

fn bench(feeds: Feeds) -> Bench {
    let mut bench = Bench::new(Start::TrimHorizon);
    bench.reader.read_by(feeds);
    bench
}

/// Sends the next command, which must be a call for a subscription, and answers the call.
fn subscribe(bench: &mut Bench, outcome: Outcome) -> Option<Event> {
    bench.wait();
    assert!(matches!(bench.next(), Some(Want::Subscribe(_))), "{:?}", bench.next());
    let op = bench.send();
    bench.done(op, outcome)
}

/// Sends the next command, which must be the wait for an event, and answers it.
fn event(bench: &mut Bench, outcome: Outcome) -> Option<Event> {
    assert_eq!(bench.wait(), Span::ZERO, "an event is awaited at once");
    assert!(matches!(bench.next(), Some(Want::NextEvent { .. })), "{:?}", bench.next());
    let op = bench.send();
    bench.done(op, outcome)
}

fn subscribed(feeds: Feeds) -> Bench {
    let mut bench = bench(feeds);
    assert_eq!(subscribe(&mut bench, Outcome::Applied(Reply::Subscribed)), None);
    bench
}

fn brought(first: u64, last: u64) -> Outcome {
    Outcome::Applied(Reply::Records(records(pos(first), pos(last), 10)))
}

#[test]
fn events_follow_each_other_without_a_pause() {
    let mut bench = subscribed(Feeds::Both);
    for n in 1..4 {
        assert_eq!(event(&mut bench, brought(n, n)), None);
    }
    assert_eq!(event(&mut bench, Outcome::Applied(Reply::Records(no_records(0)))), None);
    assert_eq!(bench.wait(), Span::ZERO, "an empty event is a sign of life");
    bench.send();
    assert!(!bench.reader.awaits_event(), "batches wait");
    while bench.reader.front().is_some() {
        bench.process_front();
    }
    assert!(bench.reader.awaits_event());
}

#[test]
fn an_ended_subscription_is_renewed_after_the_last_record() {
    for feeds in [Feeds::Both, Feeds::Subscriptions] {
        let mut bench = subscribed(feeds);
        event(&mut bench, brought(1, 7));
        bench.now += Span::from_secs(300);
        assert_eq!(event(&mut bench, refused(Why::Expired)), None, "five minutes are over");
        assert_eq!(bench.wait(), Span::ZERO);
        assert_eq!(bench.next(), Some(Want::Subscribe(IteratorFrom::After(pos(7)))));
    }
}

#[test]
fn a_cut_or_silent_subscription_is_told_and_renewed() {
    for cause in [Cause::Timeout, Cause::Network, Cause::Garbled] {
        let mut bench = subscribed(Feeds::Subscriptions);
        event(&mut bench, brought(1, 7));
        bench.now += SILENCE;
        let told = event(&mut bench, Outcome::Unknown(cause));
        assert!(matches!(told, Some(Event::Unsubscribed { again_in: Span::ZERO, .. })), "{told:?}");
        assert_eq!(bench.next(), Some(Want::Subscribe(IteratorFrom::After(pos(7)))));
    }
}

#[test]
fn a_taken_place_is_polled_meanwhile() {
    let mut bench = bench(Feeds::Both);
    assert_eq!(subscribe(&mut bench, refused(Why::InUse)), None, "ordinary after a move");
    assert_eq!(bench.next(), Some(Want::GetIterator(IteratorFrom::TrimHorizon)));
    assert_eq!(bench.iterate(Outcome::Applied(Reply::Iterator)), None);
    let began = bench.now;
    for n in 1..10 {
        bench.wait();
        if let Some(Want::Subscribe(from)) = bench.next() {
            assert_eq!(from, IteratorFrom::After(pos(n - 1)));
            assert!(bench.now.since(began) >= Span::from_secs(4), "the service keeps a place for 5 s");
            return;
        }
        bench.answer(Fetched { behind_ms: 0, ..records(pos(n), pos(n), 1) });
        bench.process_front();
    }
    panic!("expected a further call for a subscription");
}

#[test]
fn without_iterators_a_taken_place_is_asked_for_each_second() {
    let mut bench = bench(Feeds::Subscriptions);
    for tries in 1..=20 {
        let told = subscribe(&mut bench, refused(Why::InUse));
        assert_eq!(told.is_some(), tries >= 7, "a place that stays taken is told: {tries}");
        assert_eq!(bench.wait(), Span::from_secs(1));
        assert_eq!(bench.reader.failures(), tries, "the shard stands still");
    }
}

#[test]
fn subscriptions_without_an_event_come_ever_more_seldom() {
    let mut bench = bench(Feeds::Subscriptions);
    let mut pauses = Vec::new();
    for _ in 0..8 {
        subscribe(&mut bench, Outcome::Applied(Reply::Subscribed));
        event(&mut bench, refused(Why::Expired));
        pauses.push(bench.wait());
    }
    assert!(pauses.iter().all(|pause| *pause >= Span::from_secs(1)), "{pauses:?}");
    assert!(pauses[7] >= Span::from_secs(30), "{pauses:?}");
    subscribe(&mut bench, Outcome::Applied(Reply::Subscribed));
    event(&mut bench, Outcome::Applied(Reply::Records(no_records(0))));
    event(&mut bench, refused(Why::Expired));
    assert!(bench.wait() <= Span::from_secs(1), "an event ends the row");
}

#[test]
fn the_end_is_proved_by_an_iterator() {
    let children = [child("a"), child("b")];
    for feeds in [Feeds::Both, Feeds::Subscriptions] {
        let mut bench = subscribed(feeds);
        event(&mut bench, brought(1, 1));
        assert_eq!(event(&mut bench, Outcome::Applied(Reply::Records(last_answer(&children)))), None);
        assert_eq!(bench.again(last_answer(&children)), Some(Event::EndOfShard));
        bench.process_front();
        assert_eq!(bench.reader.finished(), Some(&children[..]));
    }
}

#[test]
fn a_denied_end_leads_back_to_the_subscription() {
    let mut bench = subscribed(Feeds::Subscriptions);
    event(&mut bench, Outcome::Applied(Reply::Records(last_answer(&[child("a")]))));
    assert_eq!(bench.again(records(pos(1), pos(3), 1)), None);
    bench.now += Span::from_secs(1);
    assert_eq!(bench.next(), Some(Want::Subscribe(IteratorFrom::After(pos(3)))));
}

#[test]
fn where_iterators_are_denied_a_subscription_proves_the_end() {
    let children = [child("a"), child("b")];
    let end = || Outcome::Applied(Reply::Records(last_answer(&children)));
    for feeds in [Feeds::Both, Feeds::Subscriptions] {
        let mut bench = subscribed(feeds);
        event(&mut bench, end());
        assert!(matches!(bench.iterate(refused(Why::Denied)), Some(Event::Denied { .. })));
        subscribe(&mut bench, Outcome::Applied(Reply::Subscribed));
        assert_eq!(event(&mut bench, end()), Some(Event::EndOfShard));
    }
}

#[test]
fn a_refused_place_is_told_and_a_future_moment_is_left() {
    let mut bench = Bench::new(Start::At(pos(9)));
    bench.reader.read_by(Feeds::Subscriptions);
    for tries in 1..=5 {
        let told = subscribe(&mut bench, refused(Why::OfAnotherStream));
        assert_eq!(matches!(told, Some(Event::BadPosition { .. })), tries >= 3, "{told:?}");
    }
    let mut bench = Bench::new(Start::Since(Wall(9_000)));
    bench.reader.read_by(Feeds::Both);
    let told = subscribe(&mut bench, refused(Why::Invalid));
    assert!(matches!(told, Some(Event::Early { at: Wall(9_000), .. })), "{told:?}");
    bench.asks_for(IteratorFrom::AtTimestamp(Wall(8_000)));
}

#[test]
fn earlier_moments_are_tried_a_second_apart() {
    const DAY_MS: i64 = 86_400_000;
    let mut bench = Bench::new(Start::Since(Wall(DAY_MS)));
    bench.reader.read_by(Feeds::Subscriptions);
    let began = bench.now;
    while bench.reader.began_earlier().is_none_or(|at| at > Wall(0)) {
        subscribe(&mut bench, refused(Why::Invalid));
    }
    assert!(bench.now.since(began) <= Span::from_secs(20), "{}", bench.now.since(began));
}

#[test]
fn nothing_is_read_before_there_is_a_consumer() {
    let mut bench = bench(Feeds::Nothing);
    assert_eq!((bench.next(), bench.reader.wake_at(&bench.cfg)), (None, Mono::NEVER));
    assert!(bench.reader.awaits_consumer());
    bench.reader.read_by(Feeds::Subscriptions);
    assert!(matches!(bench.next(), Some(Want::Subscribe(_))));
}

#[test]
fn a_lost_consumer_leads_to_iterators_and_a_found_one_back() {
    let mut bench = subscribed(Feeds::Both);
    event(&mut bench, brought(1, 7));
    bench.reader.read_by(Feeds::Iterators);
    bench.asks_for(IteratorFrom::After(pos(7)));
    bench.iterate(Outcome::Applied(Reply::Iterator));
    bench.answer(records(pos(8), pos(9), 1));
    bench.reader.read_by(Feeds::Both);
    bench.now += Span::from_secs(1);
    assert_eq!(bench.next(), Some(Want::Subscribe(IteratorFrom::After(pos(9)))));
}

#[test]
fn a_rewind_waits_for_no_event() {
    let mut bench = subscribed(Feeds::Both);
    event(&mut bench, brought(1, 7));
    let late = bench.send();
    bench.reader.rewind();
    bench.now += Span::from_secs(1);
    assert_eq!(bench.next(), Some(Want::Subscribe(IteratorFrom::At(pos(1)))));
    assert_eq!(bench.done(late, brought(8, 9)), None, "the event is of the subscription before");
    assert_eq!(bench.reader.front(), None);
}

#[test]
fn a_call_that_finds_nothing_leaves_the_shard_to_an_iterator() {
    for feeds in [Feeds::Both, Feeds::Subscriptions] {
        let mut bench = bench(feeds);
        let told = subscribe(&mut bench, refused(Why::NotFound));
        assert!(matches!(told, Some(Event::Unsubscribed { .. })), "the consumer may be gone: {told:?}");
        assert!(bench.reader.found_nothing());
        bench.asks_for(IteratorFrom::TrimHorizon);
        assert_eq!(bench.iterate(Outcome::Applied(Reply::Iterator)), None, "the shard exists");
        assert!(!bench.reader.found_nothing());
        bench.now += Span::from_secs(2);
        assert!(matches!(bench.next(), Some(Want::Subscribe(_))));

        subscribe(&mut bench, refused(Why::NotFound));
        assert_eq!(bench.iterate(refused(Why::NotFound)), Some(Event::ShardMissing));
    }
    let mut bench = bench(Feeds::Subscriptions);
    subscribe(&mut bench, refused(Why::NotFound));
    bench.iterate(refused(Why::Denied));
    assert_eq!(subscribe(&mut bench, refused(Why::NotFound)), Some(Event::ShardMissing));
}

#[test]
fn an_iterator_that_never_reaches_the_tip_proves_no_end() {
    for feeds in [Feeds::Both, Feeds::Subscriptions] {
        let mut bench = subscribed(feeds);
        event(&mut bench, Outcome::Applied(Reply::Records(last_answer(&[child("a")]))));
        assert_eq!(bench.again(no_records(1_000)), None);
        let mut answers = 0;
        loop {
            bench.wait();
            if matches!(bench.next(), Some(Want::Subscribe(_))) {
                break;
            }
            assert_eq!(bench.answer(no_records(1_000)), None);
            answers += 1;
            assert!(answers < 1_000, "a shard that cannot be polled is subscribed to");
        }
        assert!(answers > 1, "{answers}");
    }
}

#[test]
fn an_iterator_on_its_way_to_the_tip_keeps_the_claim_of_an_end() {
    let children = [child("a")];
    let mut bench = subscribed(Feeds::Subscriptions);
    event(&mut bench, Outcome::Applied(Reply::Records(last_answer(&children))));
    assert_eq!(bench.again(no_records(1_000)), None);
    let start = bench.now;
    for behind_ms in (1..1_000).rev() {
        assert_eq!(bench.answer(no_records(behind_ms)), None, "no subscription begins the way anew");
    }
    assert!(bench.now.since(start) > Span::from_secs(60), "{}", bench.now.since(start));
    assert_eq!(bench.answer(last_answer(&children)), Some(Event::EndOfShard));
}
