//! Batches with records of other shards, as dead letters.

use super::alone::Sink;
use super::*;
use crate::dead_letter::Letter;
use crate::kpl::tests::aggregate;
use crate::runtime::TokioRuntime;
use crate::store::Answer;
use bytes::Bytes;
use leasehold_engine::aggregate::Misplaced;
use std::sync::atomic::Ordering;

fn record(n: u64, data: Bytes) -> Record {
    Record {
        shard: "s".into(),
        position: Position::of(n.into()),
        partition_key: "k".into(),
        explicit_hash_key: None,
        data,
        arrival: None,
        aggregated: false,
    }
}

fn parts(of: &[(u64, Option<u64>, &str)]) -> Bytes {
    aggregate(&["k"], &["1", &u128::MAX.to_string()], of)
}

/// A shard with the lower half of the hash keys. Its batch has two aggregated records: of record 5, the second part
/// belongs to another shard; of record 6, all parts do. The sink refuses the first `refuses` letters.
async fn misplaced(refuses: u32) -> (Obeyed, Sink) {
    let sink = Sink::default();
    sink.0.store(refuses, Ordering::Relaxed);
    let clock = Arc::new(TokioRuntime::current().unwrap());
    let store = Store::new(Misplaced::DeadLetter, clock);
    let (start, end) = (HashKey(0), HashKey(u128::MAX / 2));
    for by in 1..=2 {
        store.learn_range(&"s".into(), HashRange { start, end }, op(by));
    }
    let mut obeyed = rig_with(store);
    let rig = &mut obeyed.rig;
    let consumer = std::mem::replace(&mut rig.consumer, self::rig().rig.consumer);
    rig.consumer = consumer.with_dead_letters(Some(Arc::new(sink.clone())));
    rig.open().await;
    let answer = Answer {
        records: vec![
            record(5, parts(&[(0, Some(0), "fine"), (0, Some(1), "far"), (0, Some(0), "c")])),
            record(6, parts(&[(0, Some(1), "farther")])),
        ],
        next: Some("i".into()),
        ..Answer::default()
    };
    rig.store.take_in(&"s".into(), op(2), answer);
    (obeyed, sink)
}

fn texts(sink: &Sink) -> Vec<String> {
    let letters = sink.1.lock().unwrap();
    let text = |letter: &Letter| String::from_utf8_lossy(&letter.record.data).into_owned();
    letters.iter().map(text).collect()
}

const PROCESSED: Outcome = Outcome::Applied(Reply::Processed);

#[tokio::test(start_paused = true)]
async fn the_sink_has_other_shards_parts_before_the_hand_over() {
    let (rig, sink) = misplaced(0).await;
    assert_eq!(rig.deliver(2, None, 1).await, PROCESSED);
    assert_eq!(rig.notes()[1..], ["#1 5 5.2"]);
    assert_eq!(texts(&sink), ["far", "farther"]);
    let letters = sink.1.lock().unwrap();
    assert_eq!((letters[0].attempts, letters[0].record.position.sub), (0, 1));
    assert!(
        letters[0].error.contains("its hash key 340282366920938463463374607431768211455 belongs"),
        "{}",
        letters[0].error
    );
}

#[tokio::test(start_paused = true)]
async fn while_the_sink_refuses_nothing_is_handed_over_or_blamed() {
    let (rig, sink) = misplaced(2).await;
    let (reason, detail) = why(rig.deliver(2, None, 1).await);
    assert_eq!(reason, Why::HandlerFailed);
    assert!(detail.contains("the record 5.1, which belongs to another shard: outer: full"), "{detail}");
    let alone = why(rig.one(None, 2).await).0;
    assert_eq!(alone, Why::HandlerFailed, "not the fault of the record");
    assert_eq!(rig.notes()[1..], [""; 0]);
    assert_eq!(rig.deliver(2, None, 3).await, PROCESSED);
    assert_eq!(rig.notes()[1..], ["#3 5 5.2"]);
    assert_eq!(texts(&sink), ["far", "farther"], "each once");
}

#[tokio::test(start_paused = true)]
async fn stored_parts_are_not_stored_again_with_the_rest_of_the_batch() {
    let (rig, sink) = misplaced(0).await;
    let first = Position::of(5.into());
    let after = |position| ConsumerOp::Deliver {
        lease: "s".into(),
        token: TOKEN,
        batch: op(2),
        after: position,
        attempt: 1,
        valid_until: rig.runtime.now() + Span::from_secs(9),
    };
    assert_eq!(rig.one(None, 1).await, Outcome::Applied(Reply::ProcessedThrough(first)));
    assert_eq!(texts(&sink), ["far", "farther"]);
    assert_eq!(rig.consumer.execute(op(9), after(Some(first))).await, PROCESSED);
    assert_eq!(texts(&sink).len(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_batch_of_other_shards_parts_is_processed_when_it_is_stored() {
    let (rig, sink) = misplaced(1).await;
    let answer = Answer {
        records: vec![record(8, parts(&[(0, Some(1), "all"), (0, Some(1), "of it")]))],
        next: Some("i".into()),
        ..Answer::default()
    };
    let told = rig.store.take_in(&"s".into(), op(3), answer);
    assert_eq!(told.last.map(|last| last.sub), Some(1), "to its last part");
    assert_eq!(why(rig.deliver(3, None, 1).await).0, Why::HandlerFailed);
    assert_eq!(rig.deliver(3, None, 2).await, PROCESSED);
    assert_eq!((texts(&sink).len(), rig.notes().len()), (2, 1), "and no call");
}

#[tokio::test(start_paused = true)]
async fn without_a_sink_nothing_is_dropped() {
    let (mut rig, _) = misplaced(0).await;
    let consumer = std::mem::replace(&mut rig.rig.consumer, self::rig().rig.consumer);
    rig.rig.consumer = consumer.with_dead_letters(None);
    let (reason, detail) = why(rig.deliver(2, None, 1).await);
    assert_eq!(reason, Why::HandlerFailed);
    assert!(detail.contains("call `.dead_letter(sink)`"), "{detail}");
}
