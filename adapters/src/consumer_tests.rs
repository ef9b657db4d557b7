use super::*;
use crate::handler::{Ack, Handler};
use crate::testing::op;
use crate::testing::rig::{Rig, TOKEN, why};
use leasehold_engine::input::Call;
use leasehold_engine::position::Checkpoint;
use leasehold_engine::shard::{HashKey, HashRange};
use leasehold_engine::time::Span;
use std::time::Duration;

#[path = "consumer/alone_tests.rs"]
mod alone;
#[path = "consumer_kept_tests.rs"]
mod kept;
#[path = "consumer/letters_tests.rs"]
mod letters;

/// Obeys the first record's payload, and notes each call.
#[derive(Clone, Default)]
struct Obeys(Arc<Mutex<Vec<String>>>, Arc<Mutex<Vec<Batch>>>);

impl Obeys {
    fn note(&self, text: String) {
        self.0.lock().unwrap().push(text);
    }
}

#[derive(Debug, thiserror::Error)]
#[error("outer")]
struct Failure(#[source] std::io::Error);

impl Handler for Obeys {
    type Error = Failure;

    async fn open(&self, shard: &ShardInfo) -> Result<(), Failure> {
        self.note(format!("open {}", shard.shard));
        if shard.from == Checkpoint::ShardEnd {
            return Err(Failure(std::io::Error::other("not this one")));
        }
        Ok(())
    }

    async fn process(&self, batch: Batch) -> Result<Ack, Failure> {
        let order = batch.records()[0].data.clone();
        let positions: Vec<_> = batch.records().iter().map(|record| record.position.to_string()).collect();
        self.note(format!("#{} {}", batch.attempt(), positions.join(" ")));
        match &*order {
            b"fail" => Err(Failure(std::io::Error::other("inner"))),
            b"panic" => panic!("on purpose"),
            b"hang" => std::future::pending().await,
            b"ack" => {
                batch.ack(&batch.records()[0]);
                batch.ack_through(Position::of(999.into()));
                Ok(Ack::All)
            }
            b"up to 6" => Ok(Ack::UpTo(Position::of(6.into()))),
            b"keep" => {
                self.1.lock().unwrap().push(batch);
                Ok(Ack::Later)
            }
            b"give back" => {
                batch.receipt().give_back("the disk is full");
                Ok(Ack::Later)
            }
            b"drop" => Ok(Ack::Later),
            _ => Ok(Ack::All),
        }
    }

    async fn flush(&self, shard: &ShardInfo, flush: Flush) -> Result<(), Failure> {
        let left = flush.remaining().map(|left| left.as_secs());
        self.note(format!("flush {} {:?} {left:?}", shard.shard, flush.reason()));
        for batch in self.1.lock().unwrap().drain(..) {
            batch.acknowledge();
        }
        Ok(())
    }

    async fn close(&self, shard: &ShardInfo, reason: EndReason) {
        self.note(format!("close {} {reason:?}", shard.shard));
    }
}

/// A rig, the notes of its handler, and the batches kept by the handler.
struct Obeyed {
    rig: Rig,
    notes: Arc<Mutex<Vec<String>>>,
    kept: Arc<Mutex<Vec<Batch>>>,
}

impl Obeyed {
    fn notes(&self) -> Vec<String> {
        self.notes.lock().unwrap().clone()
    }
}

impl std::ops::Deref for Obeyed {
    type Target = Rig;

    fn deref(&self) -> &Rig {
        &self.rig
    }
}

impl std::ops::DerefMut for Obeyed {
    fn deref_mut(&mut self) -> &mut Rig {
        &mut self.rig
    }
}

fn rig() -> Obeyed {
    rig_with(Store::default())
}

/// A rig with an open shard.
async fn opened() -> Obeyed {
    let rig = rig();
    rig.open().await;
    rig
}

fn rig_with(store: Store) -> Obeyed {
    let handler = Obeys::default();
    let (notes, kept) = (handler.0.clone(), handler.1.clone());
    let rig = Rig::with_store(store, |_, _| Arc::new(handler));
    Obeyed { rig, notes, kept }
}

#[tokio::test(start_paused = true)]
async fn a_shard_is_opened_fed_and_closed() {
    let rig = rig();
    rig.keep(2, "fine");
    assert_eq!(rig.open().await, Outcome::Applied(Reply::Done));
    assert_eq!(rig.deliver(2, Some(5), 1).await, Outcome::Applied(Reply::Processed));
    assert_eq!(why(rig.deliver(2, None, 2).await).0, Why::Gone, "what was processed is freed");
    assert_eq!(rig.close(TOKEN).await, Outcome::Applied(Reply::Done));
    assert_eq!(rig.notes(), ["open s", "#1 6 7", "close s HandedOver"]);
    assert_eq!(why(rig.deliver(2, None, 1).await).0, Why::Gone);
}

#[tokio::test(start_paused = true)]
async fn a_handler_that_fails_or_panics_gets_its_records_again() {
    let rig = opened().await;
    for order in ["fail", "panic"] {
        rig.keep(2, order);
        let (reason, detail) = why(rig.deliver(2, None, 1).await);
        assert_eq!(reason, Why::HandlerFailed);
        let expected = if order == "fail" { "outer: inner" } else { "the handler panicked: on purpose" };
        assert_eq!(detail, expected);
        let single = Why::RecordFailed(Position::of(7.into()));
        assert_eq!(why(rig.deliver(2, Some(6), 2).await).0, single);
    }
    assert_eq!(rig.notes()[1..], ["#1 5 6 7", "#2 7", "#1 5 6 7", "#2 7"]);
}

#[tokio::test(start_paused = true)]
async fn a_batch_out_of_order_is_acknowledged_as_a_whole_or_not() {
    let mut rig = opened().await;
    rig.fetch(2, &[(7, "k"), (5, "k"), (6, "k")], "ack");
    assert_eq!(rig.deliver(2, None, 1).await, Outcome::Applied(Reply::Processed));
    assert_eq!(rig.said(), [], "the first record says nothing of the others");
    rig.fetch(3, &[(6, "k"), (5, "k"), (7, "k")], "up to 6");
    let (reason, detail) = why(rig.deliver(3, None, 1).await);
    assert_eq!(reason, Why::HandlerFailed);
    assert!(detail.contains("not in the order"), "{detail}");
    rig.fetch(4, &[(7, "k"), (5, "k"), (6, "k")], "up to 6");
    let done = rig.deliver(4, Some(6), 1).await;
    assert_eq!(done, Outcome::Applied(Reply::Processed));
    assert_eq!(rig.notes()[1..], ["#1 7 5 6", "#1 6 5 7", "#1 7 5 6"], "nothing is left out");
}

#[tokio::test(start_paused = true)]
async fn an_abort_stops_the_running_call_even_before_it_runs() {
    let rig = opened().await;
    rig.keep(2, "hang");
    let running = tokio::spawn(rig.deliver(2, None, 1));
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert!(!running.is_finished());
    assert_eq!(rig.abort().await, Outcome::Applied(Reply::Done));
    assert_eq!(running.await.unwrap(), Outcome::Unknown(Cause::Cancelled));

    let not_yet_running = rig.deliver(2, None, 2);
    rig.abort().await;
    assert_eq!(not_yet_running.await, Outcome::NotSent(Cause::Cancelled));
    assert_eq!(rig.notes(), ["open s", "#1 5 6 7"], "the second never ran");

    rig.keep(3, "fine");
    assert_eq!(
        rig.deliver(3, None, 1).await,
        Outcome::Applied(Reply::Processed),
        "an abort stops one call, not the shard"
    );
}

#[tokio::test(start_paused = true)]
async fn a_slow_call_is_dropped_and_has_failed_with_its_one_record() {
    let rig = opened().await;
    rig.keep(2, "hang");
    let single = Why::RecordFailed(Position::of(7.into()));
    for (after, expected) in [(None, Why::HandlerFailed), (Some(6), single)] {
        let running = tokio::spawn(rig.deliver(2, after, 1));
        tokio::time::sleep(Duration::from_secs(1)).await;
        let told = rig.time_out(Span::from_secs(30)).await;
        assert_eq!(told, Outcome::Applied(Reply::Done));
        let (found, detail) = why(running.await.unwrap());
        assert_eq!(found, expected);
        let says = "the call did not return within 30.000s (`handler_timeout`), and was stopped";
        assert_eq!(detail, says);
    }
    rig.keep(3, "fine");
    assert_eq!(rig.deliver(3, None, 1).await, Outcome::Applied(Reply::Processed), "the ownership goes on");
}

#[tokio::test(start_paused = true)]
async fn nothing_is_delivered_under_another_ownership() {
    let rig = rig();
    rig.keep(2, "fine");
    assert_eq!(why(rig.deliver(2, None, 1).await).0, Why::Gone, "not open");
    rig.open().await;
    assert_eq!(rig.close(FencingToken(1)).await, Outcome::Applied(Reply::Done));
    assert_eq!(rig.notes(), ["open s"], "a close of a former ownership is none of this one");
}

#[tokio::test(start_paused = true)]
async fn a_batch_of_which_everything_was_processed_is_not_handed_over() {
    let rig = opened().await;
    rig.keep(2, "fail");
    assert_eq!(rig.deliver(2, Some(7), 1).await, Outcome::Applied(Reply::Processed));
    assert_eq!(rig.notes(), ["open s"]);
}

#[tokio::test(start_paused = true)]
async fn an_acknowledgement_never_goes_beyond_what_was_handed_over() {
    let mut rig = opened().await;
    rig.keep(2, "ack");
    rig.deliver(2, None, 1).await;
    assert_eq!(
        rig.said(),
        [Call::Processed { lease: "s".into(), token: TOKEN, through: Position::of(7.into()) }]
    );
}

#[tokio::test(start_paused = true)]
async fn a_shard_that_did_not_open_is_not_closed() {
    let rig = rig();
    let open = ConsumerOp::Open { lease: "s".into(), token: TOKEN, from: Checkpoint::ShardEnd, since: None };
    let (reason, detail) = why(rig.consumer.execute(op(1), open).await);
    assert_eq!((reason, detail.as_str()), (Why::HandlerFailed, "outer: not this one"));
    assert_eq!(rig.close(TOKEN).await, Outcome::Applied(Reply::Done));
    assert_eq!(rig.notes(), ["open s"]);
}
