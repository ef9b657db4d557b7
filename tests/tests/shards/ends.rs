//! Ends of shards, written after the return of their tasks.

use super::*;

#[tokio::test]
async fn the_end_of_a_shard_waits_for_the_task_that_keeps_its_batches() {
    let mut scene = Scene::new().await;
    let (free, hold) = tokio::sync::watch::channel(false);
    let worker = scene.start("one", move |task| {
        let mut hold = hold.clone();
        async move {
            let mut kept = Vec::new();
            while let Some(batch) = task.next().await {
                kept.push(batch);
            }
            if task.shard.why_ended() == Some(FlushReason::ShardEnd) {
                hold.wait_for(|free| *free).await.expect("the test");
            }
            kept.iter().for_each(|batch| task.process(batch));
            Ok(())
        }
    });
    scene.put(3).await;
    scene.split().await;
    until("the end of the stream", SOON, || async {
        let end = Did::End(Some(FlushReason::ShardEnd));
        scene.diary.place(SHARDS[0], |did| *did == end).is_some()
    })
    .await;
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert!(!scene.has_ended(SHARDS[0]).await, "its task has not returned");
    free.send(true).expect("a task");
    until("the end of the shard", SOON, || scene.has_ended(SHARDS[0])).await;
    worker.shutdown().await;
    assert_eq!(scene.diary.payloads(|_| true), scene.put);
}

#[tokio::test]
async fn a_shards_end_waits_for_a_task_that_has_acknowledged_all() {
    let mut scene = Scene::new().await;
    let (free, hold) = tokio::sync::watch::channel(false);
    let worker = scene.start("one", move |task| {
        let mut hold = hold.clone();
        async move {
            task.process_all().await;
            let shard = task.shard.info().shard.clone();
            if task.shard.why_ended() == Some(FlushReason::ShardEnd) && shard.as_str() == SHARDS[0] {
                if task.diary.begins(SHARDS[0]) == 1 {
                    return Err(io::Error::other("no index yet"));
                }
                hold.wait_for(|free| *free).await.expect("the test");
            }
            Ok(())
        }
    });
    scene.put(3).await;
    scene.diary.until_processed(&scene.put).await;
    scene.split().await;
    until("a second task at the end", SOON, || async { scene.diary.ends_of_first("one") == 2 }).await;
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert!(!scene.has_ended(SHARDS[0]).await, "no task has returned `Ok`");
    assert_eq!(scene.diary.begins("shardId-000000000002"), 0);
    free.send(true).expect("a task");
    until("the end of the shard", SOON, || scene.has_ended(SHARDS[0])).await;
    let notices = worker.shutdown().await;
    let told = notices.iter().any(|notice| match notice {
        Notice::HandlerFailed { lease, detail, .. } => {
            lease.as_str() == SHARDS[0] && detail.contains("no index yet")
        }
        _ => false,
    });
    assert!(told, "{notices:?}");
    assert_eq!(scene.diary.payloads(|_| true), scene.put);
}

#[tokio::test]
async fn after_a_crash_at_a_shards_end_another_task_is_told_the_end() {
    let mut scene = Scene::new().await;
    let one = scene.start("one", |task| async move {
        task.process_all().await;
        if task.shard.why_ended() == Some(FlushReason::ShardEnd) {
            std::future::pending::<()>().await;
        }
        Ok(())
    });
    scene.put(3).await;
    scene.diary.until_processed(&scene.put).await;
    scene.split().await;
    until("the end", SOON, || async { scene.diary.ends_of_first("one") == 1 }).await;
    one.run.abort();
    assert!(one.run.await.is_err_and(|error| error.is_cancelled()));
    assert!(!scene.has_ended(SHARDS[0]).await, "its task has not returned");
    let two = scene.start("two", process_all);
    until("the end of the shard", SOON, || scene.has_ended(SHARDS[0])).await;
    assert_eq!(scene.diary.ends_of_first("two"), 1);
    two.shutdown().await;
}
