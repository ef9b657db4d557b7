//! What a handler keeps and acknowledges later.

use super::*;

fn acknowledged(batch: u64) -> Call {
    Call::Acknowledged { lease: "s".into(), token: TOKEN, batch: op(batch) }
}

#[tokio::test(start_paused = true)]
async fn kept_batches_are_acknowledged_in_any_order_and_wait() {
    let mut rig = opened().await;
    for batch in [2, 3] {
        rig.keep(batch, "keep");
        assert_eq!(rig.deliver(batch, None, 1).await, Outcome::Applied(Reply::Kept));
    }
    assert_eq!(rig.said(), []);
    let waiting = |rig: &Obeyed| rig.store.backlog(&"s".into(), Mono(0)).records;
    assert_eq!(waiting(&rig), 6, "kept is not processed");
    let last = rig.kept.lock().unwrap().pop().expect("kept");
    last.acknowledge();
    last.acknowledge();
    drop(last);
    assert_eq!(rig.said(), [acknowledged(3)], "once");
    let receipt = rig.kept.lock().unwrap().pop().expect("kept").receipt();
    assert_eq!(rig.said(), [], "a receipt keeps the batch");
    receipt.acknowledge();
    assert_eq!(rig.said(), [acknowledged(2)]);
    assert!(receipt.is_settled());
}

#[tokio::test(start_paused = true)]
async fn a_kept_batch_dropped_or_given_back_is_given_back_once() {
    let mut rig = opened().await;
    for batch in [2, 3] {
        rig.keep(batch, "keep");
        rig.deliver(batch, None, 1).await;
    }
    let (second, first) = {
        let mut kept = rig.kept.lock().unwrap();
        (kept.pop(), kept.pop().expect("kept"))
    };
    first.receipt().give_back("the disk is full");
    drop((first, second));
    let given_back: Vec<_> = rig
        .said()
        .into_iter()
        .map(|call| match call {
            Call::GivenBack { batch, detail, .. } => (batch, detail),
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(given_back[0], (op(2), "the disk is full".to_owned()));
    assert_eq!(given_back[1].0, op(3));
    assert!(given_back[1].1.contains("keep it, or a receipt of it"), "{given_back:?}");
    assert_eq!(given_back.len(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_handler_that_keeps_nothing_to_acknowledge_later_has_failed() {
    let mut rig = opened().await;
    rig.keep(2, "drop");
    let (reason, detail) = why(rig.deliver(2, None, 1).await);
    assert_eq!(reason, Why::HandlerFailed);
    assert!(detail.contains("`Ack::Later` and dropped the batch"), "{detail}");
    assert_eq!(rig.said(), []);
}

#[tokio::test(start_paused = true)]
async fn a_part_of_a_batch_may_be_acknowledged_by_the_return_value() {
    let rig = opened().await;
    rig.keep(2, "up to 6");
    let expected = Reply::ProcessedThrough(Position::of(6.into()));
    assert_eq!(rig.deliver(2, None, 1).await, Outcome::Applied(expected));
    rig.deliver(2, Some(6), 1).await;
    assert_eq!(rig.notes()[1..], ["#1 5 6 7", "#1 7"], "the rest is still in memory");
}

#[tokio::test(start_paused = true)]
async fn batches_acknowledged_by_a_return_value_wait_no_more() {
    let rig = opened().await;
    let waiting = || rig.store.backlog(&"s".into(), Mono(0)).records;
    rig.keep(2, "up to 6");
    rig.deliver(2, None, 1).await;
    assert_eq!(waiting(), 1, "5 and 6 are processed");
    rig.fetch(3, &[(5, "k"), (6, "k")], "up to 6");
    rig.deliver(3, None, 1).await;
    assert_eq!(waiting(), 0, "an idle shard owes nothing");
}

#[tokio::test(start_paused = true)]
async fn a_batch_kept_and_dropped_at_once_takes_no_other_with_it() {
    let rig = opened().await;
    rig.keep(2, "keep");
    rig.deliver(2, None, 1).await;
    rig.keep(3, "drop");
    for attempt in [1, 2] {
        assert_eq!(
            why(rig.deliver(3, None, attempt).await).0,
            Why::HandlerFailed,
            "its records are still there for another attempt"
        );
    }
    let waiting = rig.store.backlog(&"s".into(), Mono(0)).records;
    assert_eq!(waiting, 6, "the batch before it is still kept");
}

#[tokio::test(start_paused = true)]
async fn a_flush_tells_why_and_how_much_time_is_left() {
    let mut rig = opened().await;
    rig.keep(2, "keep");
    rig.deliver(2, None, 1).await;
    let until = rig.runtime.now() + Span::from_secs(20);
    let leaving = FlushReason::Leaving(EndReason::HandedOver);
    assert_eq!(rig.flush(leaving, until).await, Outcome::Applied(Reply::Done));
    assert_eq!(rig.flush(FlushReason::Full, Mono::NEVER).await, Outcome::Applied(Reply::Done));
    assert_eq!(rig.notes()[2..], ["flush s Leaving(HandedOver) Some(20)", "flush s Full None"]);
    assert_eq!(rig.said(), [acknowledged(2)]);
}

#[tokio::test(start_paused = true)]
async fn a_commit_waits_for_a_durable_checkpoint_or_a_lost_shard() {
    let mut rig = opened().await;
    rig.keep(2, "keep");
    rig.deliver(2, None, 1).await;
    let batch = rig.kept.lock().unwrap().pop().expect("kept");
    let mut commit = Box::pin(batch.commit());
    assert!(futures_pending(&mut commit).await);
    let checkpoint = Call::Checkpoint { lease: "s".into(), token: TOKEN };
    assert_eq!(rig.said(), [acknowledged(2), checkpoint]);
    rig.fences.durable(&"s".into(), Some(Position::of(6.into())));
    assert!(futures_pending(&mut commit).await, "7 is not durable");
    rig.fences.durable(&"s".into(), Some(Position::of(7.into())));
    assert_eq!(commit.await, Ok(()));

    let another = batch.commit();
    assert_eq!(another.await, Ok(()), "it still is");
    rig.keep(3, "keep");
    rig.deliver(3, None, 1).await;
    let batch = rig.kept.lock().unwrap().pop().expect("kept");
    rig.close(TOKEN).await;
    let again = batch.commit().await;
    assert_eq!(again, Ok(()), "the same records are durable");
}

async fn futures_pending(future: &mut (impl Future + Unpin)) -> bool {
    let polled = tokio::time::timeout(Duration::from_secs(1), future).await;
    polled.is_err()
}

#[tokio::test(start_paused = true)]
async fn a_commit_that_is_overtaken_by_the_end_of_the_ownership_fails() {
    let rig = opened().await;
    rig.keep(2, "keep");
    rig.deliver(2, None, 1).await;
    let batch = rig.kept.lock().unwrap().pop().expect("kept");
    let commit = tokio::spawn(async move { batch.commit().await });
    tokio::time::sleep(Duration::from_secs(1)).await;
    rig.close(TOKEN).await;
    assert_eq!(commit.await.unwrap(), Err(crate::fence::NotDurable));
}
