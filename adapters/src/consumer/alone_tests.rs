//! Records handed over alone, or set aside.

use super::*;
use crate::dead_letter::{DeadLetter, Letter};
use std::sync::atomic::{AtomicU32, Ordering};

/// Fails so often, and keeps what comes then.
#[derive(Clone, Default)]
pub(super) struct Sink(pub(super) Arc<AtomicU32>, pub(super) Arc<Mutex<Vec<Letter>>>);

impl DeadLetter for Sink {
    type Error = Failure;

    async fn store(&self, letter: Letter) -> Result<(), Failure> {
        let left = |left: u32| left.checked_sub(1);
        if self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, left).is_ok() {
            return Err(Failure(std::io::Error::other("full")));
        }
        self.1.lock().unwrap().push(letter);
        Ok(())
    }
}

fn at(n: u64) -> Position {
    Position::of(n.into())
}

fn through(n: u64) -> Outcome {
    Outcome::Applied(Reply::ProcessedThrough(at(n)))
}

impl Rig {
    pub(super) fn one(&self, after: Option<u64>, attempt: u32) -> BoxFuture<'static, Outcome> {
        let one = ConsumerOp::DeliverOne {
            lease: "s".into(),
            token: TOKEN,
            batch: op(2),
            after: after.map(at),
            attempt,
            valid_until: self.runtime.now() + Span::from_secs(9),
        };
        self.consumer.execute(op(50), one)
    }

    fn set_aside(&self, record: u64) -> BoxFuture<'static, Outcome> {
        let aside = ConsumerOp::SetAside {
            lease: "s".into(),
            token: TOKEN,
            batch: op(2),
            record: at(record),
            attempts: 3,
            detail: "outer: inner".into(),
            valid_until: self.runtime.now() + Span::from_secs(9),
        };
        self.consumer.execute(op(51), aside)
    }
}

/// A rig with a batch of records 5 to 7; the payload holds the handler's order.
async fn given(order: &'static str) -> Obeyed {
    let rig = opened().await;
    rig.keep(2, order);
    rig
}

#[tokio::test(start_paused = true)]
async fn the_answer_names_the_first_record_that_is_left() {
    let rig = given("fine").await;
    assert_eq!(rig.one(None, 1).await, through(5));
    assert_eq!(rig.one(Some(5), 1).await, through(6));
    assert_eq!(rig.deliver(2, Some(6), 1).await, Outcome::Applied(Reply::Processed));
    assert_eq!(rig.notes()[1..], ["#1 5", "#1 6", "#1 7"]);
}

#[tokio::test(start_paused = true)]
async fn nothing_left_is_all_processed() {
    let rig = given("fail").await;
    assert_eq!(rig.one(Some(7), 1).await, Outcome::Applied(Reply::Processed));
    assert_eq!(rig.notes()[1..], [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn a_failure_with_one_record_says_which_record_it_was() {
    for order in ["fail", "panic", "drop"] {
        let rig = given(order).await;
        let alone = why(rig.one(Some(5), 1).await).0;
        assert_eq!(alone, Why::RecordFailed(at(6)), "{order}");
        let whole = why(rig.deliver(2, Some(5), 1).await).0;
        assert_eq!(whole, Why::HandlerFailed, "{order}: it may be another one");
    }
    let rig = given("fail").await;
    let last = why(rig.deliver(2, Some(6), 1).await).0;
    assert_eq!(last, Why::RecordFailed(at(7)), "there is no other one");
}

#[tokio::test(start_paused = true)]
async fn a_record_to_be_acknowledged_later_is_flushed_and_waited_for() {
    let mut rig = given("keep").await;
    assert_eq!(rig.one(None, 1).await, through(5));
    assert_eq!(rig.notes()[1..], ["#1 5", "flush s Full None"]);
    let processed = Call::Processed { lease: "s".into(), token: TOKEN, through: at(5) };
    assert_eq!(rig.said(), [processed], "and nothing of the records after it");
}

#[tokio::test(start_paused = true)]
async fn one_record_that_is_given_back_has_failed() {
    let mut rig = given("give back").await;
    let (reason, detail) = why(rig.one(None, 1).await);
    assert_eq!((reason, &*detail), (Why::RecordFailed(at(5)), "the disk is full"));
    assert_eq!(rig.said(), [], "the engine hears of it by the answer");
}

#[tokio::test(start_paused = true)]
async fn a_record_goes_to_the_sink_and_a_sink_that_fails_says_why() {
    let mut rig = given("fail").await;
    let sink = Sink::default();
    sink.0.store(1, Ordering::Relaxed);
    let consumer = std::mem::replace(&mut rig.consumer, self::rig().rig.consumer);
    rig.consumer = consumer.with_dead_letters(Some(Arc::new(sink.clone())));
    let (reason, detail) = why(rig.set_aside(6).await);
    assert_eq!((reason, &*detail), (Why::HandlerFailed, "outer: full"));
    assert!(sink.1.lock().unwrap().is_empty());
    assert_eq!(rig.set_aside(6).await, through(6));
    let letters = sink.1.lock().unwrap();
    assert_eq!(letters.len(), 1);
    assert_eq!((letters[0].record.position, letters[0].attempts), (at(6), 3));
    assert_eq!((&*letters[0].error, letters[0].shard.token), ("outer: inner", TOKEN));
}

#[tokio::test(start_paused = true)]
async fn a_record_that_is_not_in_memory_is_not_set_aside() {
    let rig = given("fail").await;
    assert_eq!(why(rig.set_aside(8).await).0, Why::Gone);
    assert_eq!(rig.set_aside(7).await, through(7), "without a sink, an event is all there is");
}
