use super::*;
use crate::testing::op;
use crate::testing::rig::{Rig, TOKEN, why};
use leasehold_engine::ids::OpId;
use leasehold_engine::input::{Call, Cause, Outcome, Reply, Why};
use leasehold_engine::time::{Mono, Span};
use std::io;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;
use tokio::sync::mpsc;

/// The notes of a test's tasks, and the tasks' rig.
struct Stage {
    rig: Rig,
    notes: mpsc::UnboundedReceiver<String>,
}

type Notes = mpsc::UnboundedSender<String>;

/// Opens a shard with a task. The task is given where to note things, and counts up for each further one.
async fn stage<F, Fut>(task: F) -> Stage
where
    F: Fn(ShardStream, Notes, u32) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = io::Result<()>> + Send + 'static,
{
    let (sender, notes) = mpsc::unbounded_channel();
    let count = AtomicU32::new(0);
    let rig = Rig::new(|runtime, polls| {
        let task = move |shard| task(shard, sender.clone(), count.fetch_add(1, Ordering::Relaxed) + 1);
        Arc::new(ShardTasks::new(task, runtime.clone(), polls.clone()))
    });
    assert_eq!(rig.open().await, Outcome::Applied(Reply::ConfirmsEnd));
    Stage { rig, notes }
}

impl Stage {
    async fn note(&mut self) -> String {
        let note = tokio::time::timeout(Duration::from_secs(60), self.notes.recv()).await;
        note.expect("a note in time").expect("a task")
    }

    fn put(&self, batch: u64) {
        self.rig.fetch(batch, &[(batch * 10, "k"), (batch * 10 + 1, "k")], "data");
    }

    async fn deliver(&self, batch: u64) -> Outcome {
        self.put(batch);
        self.rig.deliver(batch, None, 1).await
    }

    /// The acknowledged batches, and the given-back batches with their reasons, since the last call.
    fn said(&mut self) -> (Vec<OpId>, Vec<(OpId, String)>) {
        let (mut acknowledged, mut given_back) = (Vec::new(), Vec::new());
        for call in self.rig.said() {
            match call {
                Call::Acknowledged { batch, .. } => acknowledged.push(batch),
                Call::GivenBack { batch, detail, .. } => given_back.push((batch, detail)),
                other => panic!("{other:?}"),
            }
        }
        (acknowledged, given_back)
    }

    async fn pending(&self, call: &mut BoxFuture<'static, Outcome>) -> bool {
        tokio::time::timeout(Duration::from_secs(1), call).await.is_err()
    }

    fn in_a(&self, while_: u64) -> Mono {
        self.rig.runtime.now() + Span::from_secs(while_)
    }
}

const KEPT: Outcome = Outcome::Applied(Reply::Kept);
const DONE: Outcome = Outcome::Applied(Reply::Done);
const LEAVING: FlushReason = FlushReason::Leaving(EndReason::Shutdown);

/// Acknowledges each batch at once, and notes the first position of each batch and the task's end.
async fn simple(shard: ShardStream, notes: Notes, n: u32) -> io::Result<()> {
    while let Some(batch) = shard.next().await {
        let _ = notes.send(format!("{n}: {}", batch.records()[0].position));
        batch.acknowledge();
    }
    let _ = notes.send(format!("{n}: {:?} {:?}", shard.why_ended(), shard.remaining()));
    Ok(())
}

/// Keeps all batches until a flush or the end of the stream.
async fn collecting(shard: ShardStream, notes: Notes, _: u32) -> io::Result<()> {
    let mut kept = Vec::new();
    let flush = |kept: &mut Vec<Batch>, why: &str| {
        let _ = notes.send(format!("{} for {why}", kept.len()));
        kept.drain(..).for_each(|batch| batch.acknowledge());
    };
    loop {
        tokio::select! {
            batch = shard.next() => match batch {
                Some(batch) => kept.push(batch),
                None => break,
            },
            () = shard.flush_wanted() => flush(&mut kept, "full"),
        }
    }
    flush(&mut kept, &format!("{:?}", shard.why_ended()));
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_task_gets_its_batches_in_order_and_acknowledges_each() {
    let mut stage = stage(simple).await;
    for batch in [2, 3, 4] {
        assert_eq!(stage.deliver(batch).await, KEPT);
        assert_eq!(stage.note().await, format!("1: {}", batch * 10));
    }
    assert_eq!(stage.said(), (vec![op(2), op(3), op(4)], vec![]));
    let until = stage.in_a(20);
    assert_eq!(stage.rig.flush(LEAVING, until).await, DONE);
    assert_eq!(stage.note().await, "1: Some(Leaving(Shutdown)) Some(20s)");
}

#[tokio::test(start_paused = true)]
async fn a_batch_waits_for_the_task_and_leaves_with_its_hand_over() {
    let mut stage = stage(|shard, notes, _| async move {
        tokio::time::sleep(Duration::from_secs(10)).await;
        simple(shard, notes, 1).await
    })
    .await;
    stage.put(2);
    let mut call = stage.rig.deliver(2, None, 1);
    assert!(stage.pending(&mut call).await);
    stage.rig.abort().await;
    assert_eq!(call.await, Outcome::Unknown(Cause::Cancelled));
    assert_eq!(stage.deliver(3).await, KEPT);
    assert_eq!(stage.note().await, "1: 30", "the second batch alone");
    assert_eq!(stage.said(), (vec![op(3)], vec![]));
}

#[tokio::test(start_paused = true)]
async fn a_collecting_task_keeps_batches_until_it_is_told_to_flush() {
    let mut stage = stage(collecting).await;
    for batch in [2, 3] {
        assert_eq!(stage.deliver(batch).await, KEPT);
    }
    assert_eq!(stage.said(), (vec![], vec![]));
    assert_eq!(stage.rig.flush(FlushReason::Full, Mono::NEVER).await, DONE);
    assert_eq!(stage.note().await, "2 for full");
    assert_eq!(stage.said(), (vec![op(2), op(3)], vec![]));
    assert_eq!(stage.deliver(4).await, KEPT);
    assert_eq!(stage.rig.flush(FlushReason::ShardEnd, Mono::NEVER).await, DONE);
    assert_eq!(stage.note().await, "1 for Some(ShardEnd)", "told full once");
    assert_eq!(stage.said(), (vec![op(4)], vec![]));
    assert_eq!(stage.rig.close_for(TOKEN, EndReason::ShardEnded).await, DONE);
}

#[tokio::test(start_paused = true)]
async fn a_flush_at_the_end_is_answered_when_the_task_has_returned() {
    for why in [FlushReason::ShardEnd, LEAVING] {
        let mut stage = stage(|shard, notes, _| async move {
            let batch = shard.next().await.expect("a batch");
            assert!(shard.next().await.is_none());
            tokio::time::sleep(Duration::from_secs(5)).await;
            batch.acknowledge();
            let _ = notes.send(format!("{:?}", shard.remaining().map(|left| left.as_secs())));
            tokio::time::sleep(Duration::from_secs(5)).await;
            Ok(())
        })
        .await;
        assert_eq!(stage.deliver(2).await, KEPT);
        let until = stage.in_a(20);
        let mut flush = stage.rig.flush(why, until);
        assert!(stage.pending(&mut flush).await);
        assert_eq!(stage.note().await, "Some(15)");
        assert!(stage.pending(&mut flush).await, "it has not returned");
        assert_eq!(flush.await, DONE);
        assert_eq!(stage.said(), (vec![op(2)], vec![]));
    }
}

#[tokio::test(start_paused = true)]
async fn a_task_learns_of_a_released_lease_during_other_work() {
    let mut stage = stage(|shard, notes, _| async move {
        let batch = shard.next().await.expect("a batch");
        tokio::select! {
            () = tokio::time::sleep(Duration::from_secs(1_000)) => {}
            why = shard.leaving() => drop(notes.send(format!("{why:?}"))),
        }
        batch.acknowledge();
        Ok(())
    })
    .await;
    assert_eq!(stage.deliver(2).await, KEPT);
    let until = stage.in_a(20);
    assert_eq!(stage.rig.flush(LEAVING, until).await, DONE);
    assert_eq!(stage.note().await, "Shutdown");
    assert_eq!(stage.said(), (vec![op(2)], vec![]));
}

/// Keeps one batch, and ends wrongly at the next batch. The successor is `simple`.
async fn ends_wrong(how: &'static str, shard: ShardStream, notes: Notes, n: u32) -> io::Result<()> {
    if n > 1 {
        return simple(shard, notes, n).await;
    }
    let _first = shard.next().await;
    let _second = shard.next().await;
    match how {
        "fails" => Err(io::Error::other("no space left")),
        "panics" => panic!("on purpose"),
        _ => Ok(()),
    }
}

#[tokio::test(start_paused = true)]
async fn batches_of_a_task_that_ends_badly_are_given_back_for_it() {
    let cases = [
        ("fails", "it failed: no space left"),
        ("panics", "it panicked: on purpose"),
        ("returns", "it returned `Ok(())` before that"),
    ];
    for (how, found) in cases {
        let mut stage = stage(move |shard, notes, n| ends_wrong(how, shard, notes, n)).await;
        assert_eq!(stage.deliver(2).await, KEPT);
        let (reason, detail) = why(stage.deliver(3).await);
        assert_eq!(reason, Why::HandlerFailed);
        assert!(detail.contains(found), "{detail}");
        let (acknowledged, given_back) = stage.said();
        assert_eq!(acknowledged, []);
        let batches: Vec<OpId> = given_back.iter().map(|(batch, _)| *batch).collect();
        assert_eq!(batches, [op(2), op(3)]);
        assert!(given_back.iter().all(|(_, why)| *why == detail), "{given_back:?}");
        // Again, with a new task.
        assert_eq!(stage.deliver(4).await, KEPT);
        assert_eq!(stage.note().await, "2: 40");
    }
}

#[tokio::test(start_paused = true)]
async fn a_failure_without_a_return_is_told_once_with_the_next_batch() {
    let mut stage = stage(|shard, notes, n| async move {
        if n > 1 {
            return simple(shard, notes, n).await;
        }
        shard.next().await.expect("a batch").acknowledge();
        tokio::time::sleep(Duration::from_secs(1)).await;
        Err(io::Error::other("no space left"))
    })
    .await;
    assert_eq!(stage.deliver(2).await, KEPT);
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert_eq!(stage.said(), (vec![op(2)], vec![]));
    let (_, detail) = why(stage.deliver(3).await);
    assert!(detail.contains("it failed: no space left"), "{detail}");
    assert_eq!(stage.deliver(3).await, KEPT);
    assert_eq!(stage.note().await, "2: 30");
}

#[tokio::test(start_paused = true)]
async fn a_batch_that_a_running_task_drops_is_given_back_at_once() {
    let mut stage = stage(|shard, _, _| async move {
        let batch = shard.next().await;
        tokio::time::sleep(Duration::from_secs(1)).await;
        drop(batch);
        std::future::pending().await
    })
    .await;
    assert_eq!(stage.deliver(2).await, KEPT);
    assert_eq!(stage.said(), (vec![], vec![]));
    tokio::time::sleep(Duration::from_secs(2)).await;
    let (_, given_back) = stage.said();
    assert!(given_back[0].1.contains("dropped without an acknowledgement"));
}

#[tokio::test(start_paused = true)]
async fn a_task_that_fails_at_its_shards_end_is_replaced() {
    let mut stage = stage(|shard, notes, n| async move {
        let kept = shard.next().await;
        if n > 1 {
            assert!(kept.is_none());
            return simple(shard, notes, n).await;
        }
        let receipt = kept.expect("a batch").receipt();
        assert!(shard.next().await.is_none());
        receipt.acknowledge();
        Err(io::Error::other("no space left"))
    })
    .await;
    assert_eq!(stage.deliver(2).await, KEPT);
    let end = || stage.rig.flush(FlushReason::ShardEnd, Mono::NEVER);
    let (reason, detail) = why(end().await);
    assert_eq!(reason, Why::HandlerFailed);
    assert!(detail.contains("no space left"), "{detail}");
    assert_eq!(end().await, DONE);
    assert_eq!(stage.note().await, "2: Some(ShardEnd) None");
}

#[tokio::test(start_paused = true)]
async fn after_a_streams_end_batches_go_to_a_new_task() {
    let mut stage = stage(|shard, notes, n| async move {
        if n > 1 {
            return simple(shard, notes, n).await;
        }
        let batch = shard.next().await;
        assert!(shard.next().await.is_none());
        drop(batch);
        tokio::time::sleep(Duration::from_secs(5)).await;
        let _ = notes.send("returns".to_owned());
        Ok(())
    })
    .await;
    assert_eq!(stage.deliver(2).await, KEPT);
    let mut flush = stage.rig.flush(FlushReason::ShardEnd, Mono::NEVER);
    assert!(stage.pending(&mut flush).await);
    assert_eq!(stage.said().1.len(), 1);
    stage.rig.abort().await;
    assert_eq!(flush.await, Outcome::Unknown(Cause::Cancelled));
    assert_eq!(stage.deliver(3).await, KEPT);
    assert_eq!(stage.note().await, "returns");
    assert_eq!(stage.note().await, "2: 30");
}

#[tokio::test(start_paused = true)]
async fn a_close_ends_the_stream_of_an_idle_task_and_waits_for_it() {
    for (reason, note) in [
        (EndReason::ShardEnded, "1: Some(ShardEnd) None"),
        (EndReason::HandedOver, "1: Some(Leaving(HandedOver)) None"),
    ] {
        let mut stage = stage(simple).await;
        assert_eq!(stage.rig.close_for(TOKEN, reason).await, DONE);
        assert_eq!(stage.notes.try_recv().as_deref(), Ok(note));
    }
}

/// Tells of its own end.
struct Ends(Notes);

impl Drop for Ends {
    fn drop(&mut self) {
        let _ = self.0.send("dropped".to_owned());
    }
}

#[tokio::test(start_paused = true)]
async fn a_task_is_dropped_when_its_lease_is_lost_or_its_time_is_over() {
    let hangs = |shard: ShardStream, notes: Notes, _| async move {
        let _ends = Ends(notes);
        let _kept = shard.next().await;
        std::future::pending().await
    };
    let mut lost = stage(hangs).await;
    assert_eq!(lost.deliver(2).await, KEPT);
    assert_eq!(lost.rig.close_for(TOKEN, EndReason::LeaseLost).await, DONE);
    assert_eq!(lost.note().await, "dropped");

    let mut late = stage(hangs).await;
    assert_eq!(late.deliver(2).await, KEPT);
    let until = late.in_a(20);
    let mut flush = late.rig.flush(LEAVING, until);
    assert!(late.pending(&mut flush).await);
    late.rig.abort().await;
    assert_eq!(flush.await, Outcome::Unknown(Cause::Cancelled));
    assert_eq!(late.rig.close_for(TOKEN, EndReason::Shutdown).await, DONE);
    assert_eq!(late.note().await, "dropped");

    let mut gone = stage(hangs).await;
    assert_eq!(gone.deliver(2).await, KEPT);
    let Stage { rig, notes } = &mut gone;
    let other = Rig::new(|_, _| Arc::new(crate::HandlerFn::new(|_| async { Ok::<_, io::Error>(()) })));
    drop(std::mem::replace(rig, other));
    assert_eq!(notes.recv().await.as_deref(), Some("dropped"), "with the worker");
}

#[tokio::test(start_paused = true)]
async fn a_stream_tells_of_its_shard_and_is_a_stream() {
    let mut stage = stage(|mut shard, notes, _| async move {
        let info = shard.info().clone();
        let _ = notes.send(format!("{} {} {:?}", info.shard, info.token.0, info.from));
        let next = poll_fn(|cx| futures_core::Stream::poll_next(std::pin::Pin::new(&mut shard), cx));
        let batch = next.await.expect("a batch");
        let _ = notes.send(format!("{} {}", shard.fence().is_valid(), batch.len()));
        batch.acknowledge();
        let next = poll_fn(|cx| futures_core::Stream::poll_next(std::pin::Pin::new(&mut shard), cx));
        assert!(next.await.is_none());
        Ok(())
    })
    .await;
    assert_eq!(stage.note().await, "s 3 TrimHorizon");
    assert_eq!(stage.deliver(2).await, KEPT);
    assert_eq!(stage.note().await, "true 2");
    assert_eq!(stage.rig.close(TOKEN).await, DONE);
}

#[tokio::test(start_paused = true)]
async fn batches_dropped_in_a_release_fail_the_flush_and_no_task() {
    let mut stage = stage(|shard, notes, _| async move {
        let useless = shard.next().await;
        let batch = shard.next().await.expect("a batch");
        assert!(shard.next().await.is_none());
        drop(useless);
        tokio::time::sleep(Duration::from_secs(5)).await;
        batch.acknowledge();
        let _ = notes.send("returns".to_owned());
        Ok(())
    })
    .await;
    for batch in [2, 3] {
        assert_eq!(stage.deliver(batch).await, KEPT);
    }
    let until = stage.in_a(20);
    let (reason, detail) = why(stage.rig.flush(LEAVING, until).await);
    assert_eq!(reason, Why::HandlerFailed);
    assert!(detail.contains("found that it dropped 1 of them"), "{detail}");
    assert_eq!(stage.note().await, "returns");
    assert_eq!(stage.said(), (vec![op(3)], vec![]));
}
