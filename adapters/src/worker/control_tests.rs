//! What a worker over a table and a stream in memory says of itself, on tokio's paused clock.

use super::*;
use crate::error::Error;
use crate::report::Report;
use crate::status::Phase;
use crate::testing::{How, Memory};
use crate::{Batch, CompleteBuilder, Notice, Worker};
use leasehold_engine::notice::Left;
use leasehold_engine::position::{Checkpoint, Position};
use leasehold_engine::testkit::shard_id;
use leasehold_engine::time::Span;
use std::io;
use std::sync::{Arc, Mutex, OnceLock};
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// A worker with handlers that hang for a set time.
struct Rig {
    memory: Memory,
    control: Control,
    hang: watch::Sender<bool>,
    run: JoinHandle<Result<Report, Error>>,
}

fn builder(memory: &Memory) -> CompleteBuilder {
    let streams = memory.clone();
    Worker::builder()
        .table_port(memory.table_port())
        .stream_port(move |store| streams.stream_port(store))
        .coordination_on_caller(true)
        .identity(1, 2)
        .stream("orders")
        .application("billing")
}

fn run_with(memory: &Memory, change: impl FnOnce(CompleteBuilder) -> CompleteBuilder) -> Rig {
    let worker = change(builder(memory)).build().unwrap();
    let (control, hang) = (worker.control(), watch::Sender::new(false));
    let hangs = hang.subscribe();
    let run = tokio::spawn(worker.run_fn(move |_: Batch| {
        let mut hangs = hangs.clone();
        async move { hangs.wait_for(|hangs| !hangs).await.map(|_| ()) }
    }));
    Rig { memory: memory.clone(), control, hang, run }
}

fn rig() -> Rig {
    run_with(&Memory::with_shards(2), |builder| builder)
}

impl Rig {
    /// Puts records into the first shard. Gives the position of the last one.
    fn put(&self, count: u64) -> Position {
        let mut services = self.memory.services();
        services.stream.put(0, count).unwrap();
        let last = *services.stream.records[&shard_id(0)].last().unwrap();
        Position::of(last.into())
    }
}

async fn secs(secs: u64) {
    tokio::time::sleep(Duration::from_secs(secs)).await;
}

#[tokio::test(start_paused = true)]
async fn a_status_tells_every_lease_before_during_and_after_the_run() {
    let memory = Memory::with_shards(2);
    let worker = builder(&memory).build().unwrap();
    assert_eq!(worker.control().status(), Status::default());
    drop(worker);

    let mut rig = rig();
    let last = rig.put(5);
    rig.hang.send_replace(true);
    rig.memory.table_goes(How::Fail);
    secs(3).await;
    assert_eq!(rig.control.status().phase, Phase::Starting);
    rig.memory.table_goes(How::Well);
    secs(40).await;
    let status = rig.control.status();
    assert_eq!(status.worker, Some("worker:1".into()));
    assert_eq!(status.phase, Phase::Running);
    let [first, second] = &status.leases[..] else { panic!("{status:?}") };
    assert_eq!((&first.shard, &second.shard), (&shard_id(0), &shard_id(1)));
    assert_eq!(first.lease, first.shard.to_lease());
    let rows = rig.memory.services().table.rows.clone().unwrap();
    assert!(first.token.0 > 0 && first.token.0 <= rows[&first.lease].counter);
    assert_eq!(first.checkpoint, Checkpoint::TrimHorizon);
    assert_eq!((first.waiting, second.waiting), (5, 0));
    assert!(first.open && second.open);
    let (lease, least) = (Span::from_secs(10), Span::from_secs(5));
    assert!(first.remaining > least && first.remaining < lease, "{first:?}");
    assert!(first.behind > Span::from_secs(20), "{first:?}");
    assert!(second.behind <= Span::from_secs(2), "{second:?}");
    assert_eq!((&first.stalled, &second.stalled), (&None, &None));
    assert_eq!((first.processed, &second.waits_for), (None, &None));
    let hangs = "the handler has not returned (attempt 1 with this batch)";
    assert_eq!(first.waits_for.as_deref(), Some(hangs));
    let runs = status.phase_for;
    assert!(runs > Span::ZERO && runs <= Span::from_secs(40), "{runs}");

    secs(60).await;
    let status = rig.control.status();
    let stalled = status.leases[0].stalled.clone().unwrap();
    assert!(stalled.idle > Span::from_secs(60), "{stalled:?}");
    assert_eq!(stalled.waits_for, "the handler has not returned (attempt 1 with this batch)");
    assert_eq!(status.leases[1].stalled, None);

    rig.hang.send_replace(false);
    secs(10).await;
    let status = rig.control.status();
    assert_eq!(status.leases[0].checkpoint, Checkpoint::At(last));
    assert_eq!(status.leases[0].processed, Some(last));
    assert_eq!((status.leases[0].waiting, &status.leases[0].waits_for), (0, &None));
    assert_eq!(status.leases[0].stalled, None);

    rig.control.shutdown();
    (&mut rig.run).await.unwrap().unwrap();
    let status = rig.control.status();
    assert_eq!((status.phase, status.leases.len()), (Phase::Stopped, 0));
    secs(5).await;
    assert!(rig.control.status().phase_for >= Span::from_secs(5));
}

#[tokio::test(start_paused = true)]
async fn a_paused_shard_is_given_nothing_is_shown_as_such_and_goes_on() {
    let mut rig = rig();
    rig.control.pause(shard_id(0));
    let first = rig.put(5);
    secs(40).await;
    let held = |rig: &Rig| rig.control.status().leases[0].clone();
    assert!(!held(&rig).paused, "what is not held yet is not paused");
    assert_eq!(held(&rig).checkpoint, Checkpoint::At(first));

    rig.control.pause(shard_id(0));
    let last = rig.put(7);
    rig.memory.services().stream.put(1, 2).unwrap();
    secs(300).await;
    assert!(rig.control.status().leases[1].processed.is_some(), "the other shard goes on");
    let lease = held(&rig);
    assert_eq!((lease.paused, lease.waiting), (true, 7));
    assert_eq!((lease.processed, lease.checkpoint), (Some(first), Checkpoint::At(first)));
    assert_eq!(lease.waits_for.as_deref(), Some("the application has paused the shard"));
    assert!(lease.remaining > Span::ZERO && lease.behind > Span::from_secs(290), "{lease:?}");
    assert_eq!(lease.stalled, None);
    assert!(!rig.control.status().leases[1].paused);
    assert!(rig.control.is_healthy());

    rig.control.resume(shard_id(0));
    secs(10).await;
    let lease = held(&rig);
    assert_eq!((lease.paused, lease.processed, lease.waits_for), (false, Some(last), None));
    rig.control.pause(shard_id(0));
    rig.control.shutdown();
    (&mut rig.run).await.unwrap().unwrap();
    rig.control.resume(shard_id(0));
}

#[tokio::test(start_paused = true)]
async fn the_checkpoints_record_does_not_wait_for_the_next_owner() {
    let first = rig();
    first.put(3);
    secs(40).await;
    first.control.shutdown();
    first.run.await.unwrap().unwrap();
    let second = run_with(&first.memory, |builder| builder.identity(2, 2));
    secs(40).await;
    let lease = &second.control.status().leases[0];
    assert!(lease.read && lease.processed.is_none(), "{lease:?}");
    assert!(lease.waiting == 0 && lease.behind <= Span::from_secs(2), "{lease:?}");
}

#[tokio::test(start_paused = true)]
async fn a_status_is_json_with_times_in_microseconds() {
    let rig = rig();
    let last = rig.put(1);
    secs(40).await;
    let mut status = serde_json::to_value(rig.control.status()).unwrap();
    let leases = status["leases"].as_array_mut().unwrap();
    leases.truncate(1);
    let lease = leases[0].as_object_mut().unwrap();
    for name in ["remaining", "behind", "token"] {
        assert!(lease.remove(name).unwrap().is_u64(), "{name}");
    }
    let phase_for = status.as_object_mut().unwrap().remove("phase_for");
    assert!(phase_for.unwrap().as_u64().unwrap() > 30_000_000);
    assert_eq!(
        status,
        serde_json::json!({
            "worker": "worker:1",
            "phase": "running",
            "blocked_for": null,
            "leases": [{
                "lease": "shardId-000000000000",
                "shard": "shardId-000000000000",
                "checkpoint": serde_json::to_value(Checkpoint::At(last)).unwrap(),
                "processed": serde_json::to_value(last).unwrap(),
                "waiting": 0,
                "open": true,
                "paused": false,
            "read": true,
                "waits_for": null,
                "stalled": null,
            }],
        })
    );
}

/// The lease of a shard is shown before the next thing is told of it.
#[tokio::test(start_paused = true)]
async fn a_status_may_be_asked_for_on_any_thread_and_within_a_notice() {
    let (given, asked) = (Arc::<OnceLock<Control>>::default(), Arc::new(Mutex::new(Vec::new())));
    let (control, answers) = (given.clone(), asked.clone());
    let rig = run_with(&Memory::with_shards(1), |builder| {
        builder.on_notice(move |notice| {
            if let (Some(control), Notice::Opened { .. }) = (control.get(), notice) {
                let ask = control.clone();
                let elsewhere = std::thread::spawn(move || ask.status().leases.len());
                let mut answers = answers.lock().unwrap();
                answers.extend([elsewhere.join().unwrap(), control.status().leases.len()]);
                assert!(control.health().is_healthy());
            }
        })
    });
    given.set(rig.control.clone()).unwrap();
    secs(40).await;
    assert_eq!(*asked.lock().unwrap(), [1, 1]);
}

#[tokio::test(start_paused = true)]
async fn an_unreleased_lease_is_in_the_stops_report_and_in_the_status() {
    let mut rig = rig();
    let last = rig.put(3);
    secs(40).await;
    rig.memory.table_goes(How::ReleasesFail);
    rig.control.shutdown();
    let error = (&mut rig.run).await.unwrap().unwrap_err();
    let Error::Unclean(report) = &error else { panic!("{error:?}") };
    assert_eq!((report.stop.released, report.stop.left, report.stop.aborted), (0, 2, 0));
    assert!(matches!(report.stop.named[0].1, Left::Failed { .. }));
    assert!(!report.is_clean());
    let durable = [(shard_id(0), Checkpoint::At(last)), (shard_id(1), Checkpoint::TrimHorizon)];
    assert_eq!(report.durable, durable.into());
    let status = rig.control.status();
    assert_eq!((status.phase, status.leases.len()), (Phase::Stopped, 2));
    secs(10).await;
    assert_eq!(rig.control.status().leases[0].remaining, Span::ZERO);
    let health = rig.control.health();
    assert_eq!(health.reasons(), [format!("the worker has ended: {error}")]);
}

#[tokio::test(start_paused = true)]
async fn a_clean_stops_report_says_how_far_each_shard_was_processed() {
    let mut rig = rig();
    rig.hang.send_replace(true);
    let last = rig.put(3);
    secs(40).await;
    // The handler returns during the stop, and the stop writes its checkpoint. Only the row proves the write.
    rig.memory.table_goes(How::CheckpointsUnanswered);
    rig.control.shutdown();
    secs(1).await;
    rig.hang.send_replace(false);
    let report = (&mut rig.run).await.unwrap().unwrap();
    assert_eq!((report.stop.released, report.stop.left, report.stop.aborted), (2, 0, 0));
    assert_eq!(report.to_string(), "; 2 leases were released");
    let durable = [(shard_id(0), Checkpoint::At(last)), (shard_id(1), Checkpoint::TrimHorizon)];
    assert_eq!(report.durable, durable.into());
    let health = rig.control.health();
    assert!(health.is_healthy());
    assert_eq!(health.remarks(), ["the worker has stopped, as it was asked to"]);
}

/// Another worker's take becomes known at the release of the lease.
#[tokio::test(start_paused = true)]
async fn a_shard_that_was_lost_during_the_stop_is_not_in_the_report() {
    let mut rig = rig();
    secs(40).await;
    {
        let mut services = rig.memory.services();
        let rows = services.table.rows.as_mut().unwrap();
        let row = rows.get_mut(&shard_id(1).to_lease()).unwrap();
        (row.owner, row.counter) = (Some("another:1".into()), row.counter + 1);
    }
    rig.control.shutdown();
    let report = (&mut rig.run).await.unwrap().unwrap();
    assert_eq!(report.stop.released, 1);
    assert_eq!(report.durable.into_keys().collect::<Vec<_>>(), [shard_id(0)]);
}

#[tokio::test(start_paused = true)]
async fn a_shutdown_with_a_time_of_its_own_ends_then() {
    for (within, least) in [(Duration::from_secs(12), 6), (Duration::from_secs(50), 44)] {
        let mut rig = rig();
        rig.hang.send_replace(true);
        rig.put(5);
        secs(40).await;
        let begun = tokio::time::Instant::now();
        rig.control.shutdown_within(within);
        // In vain.
        rig.control.shutdown();
        secs(1).await;
        assert_eq!(rig.control.status().phase, Phase::Stopping);
        let error = (&mut rig.run).await.unwrap().unwrap_err();
        let took = begun.elapsed();
        assert!(took <= within + Duration::from_millis(10) && took >= Duration::from_secs(least), "{took:?}");
        let Error::Unclean(report) = &error else { panic!("{error:?}") };
        assert_eq!(report.stop.aborted, 1);
        assert_eq!(report.durable[&shard_id(0)], Checkpoint::TrimHorizon);
    }
}

#[tokio::test(start_paused = true)]
async fn an_idle_worker_is_healthy_and_one_without_a_table_is_not() {
    let memory = Memory::with_shards(2);
    let worker = builder(&memory).build().unwrap();
    let health = worker.control().health();
    assert_eq!(health.to_string(), "healthy: the worker has not been run yet");
    drop(worker);

    // Without leases, the table is asked every 20 s only.
    let rig = run_with(&Memory::with_shards(0), |builder| builder);
    for _ in 0..300 {
        secs(1).await;
        assert_eq!(rig.control.health().to_string(), "healthy");
    }
    let rig = self::rig();
    secs(60).await;
    rig.memory.table_goes(How::Fail);
    secs(9).await;
    assert_eq!(rig.control.health().to_string(), "healthy");
    secs(6).await;
    let health = rig.control.health();
    assert!(!health.is_healthy());
    assert_eq!(rig.control.status().phase, Phase::Running);
    rig.memory.table_goes(How::Well);
    secs(6).await;
    assert_eq!(rig.control.health().to_string(), "healthy");
}

#[tokio::test(start_paused = true)]
async fn a_handler_that_hangs_is_told_and_is_healthy() {
    let rig = rig();
    rig.hang.send_replace(true);
    rig.put(5);
    secs(90).await;
    let health = rig.control.health();
    assert!(health.is_healthy(), "{health}");
    let [remark] = health.remarks() else { panic!("{health}") };
    assert!(
        remark.starts_with("shardId-000000000000 has made no progress for")
            && remark.ends_with("the handler has not returned (attempt 1 with this batch)"),
        "{remark}"
    );
    rig.hang.send_replace(false);
    secs(2).await;
    assert_eq!(rig.control.health().to_string(), "healthy");
}

#[tokio::test(start_paused = true)]
async fn a_worker_that_cannot_go_on_or_was_dropped_is_unhealthy() {
    let memory = Memory::with_shards(1);
    memory.services().stream.created = None;
    let rig = run_with(&memory, |builder| builder);
    let error = rig.run.await.unwrap().unwrap_err();
    assert!(matches!(error, Error::Fatal(_)), "{error:?}");
    assert_eq!(rig.control.health().reasons(), [format!("the worker has ended: {error}")]);

    let rig = self::rig();
    secs(40).await;
    rig.run.abort();
    assert!(rig.run.await.unwrap_err().is_cancelled());
    assert_eq!(rig.control.status().phase, Phase::Stopped);
    let reason = rig.control.health().reasons()[0].clone();
    assert!(reason.contains("`Worker::run` was dropped"), "{reason}");

    let refused = builder(&memory).trace_file("/nonexistent/trace.jsonl").build().unwrap();
    let control = refused.control();
    let error = refused.run_fn(|_| async { Ok::<(), io::Error>(()) }).await.unwrap_err();
    assert_eq!(control.health().reasons(), [format!("the worker has ended: {error}")]);
}
