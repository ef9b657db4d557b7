//! The board, on tokio's paused clock, without a worker.

use super::*;
use crate::runtime::TokioRuntime;
use leasehold_engine::aggregate::Misplaced;
use leasehold_engine::input::{Cause, Refusal, Reply};
use leasehold_engine::notice::RuntimeNews;
use leasehold_engine::testkit::Holding;
use std::time::Duration;

const LEASE: Span = Span::from_secs(10);

fn board(lease_duration: Span) -> (Board, Arc<dyn Runtime>) {
    let clock: Arc<dyn Runtime> = Arc::new(TokioRuntime::current().unwrap());
    let board = Board::default();
    board.begin(Life {
        worker: "w:1".into(),
        lease_duration,
        clock: clock.clone(),
        store: Store::new(Misplaced::Drop, clock.clone()),
    });
    (board, clock)
}

fn refused(why: Why) -> Outcome {
    Outcome::Refused(Refusal { why, current: None, detail: String::new() })
}

async fn millis(millis: u64) {
    tokio::time::sleep(Duration::from_millis(millis)).await;
}

#[tokio::test(start_paused = true)]
async fn a_standing_loop_is_unhealthy_once_a_lease_would_have_ended() {
    for (lease, patience) in [(LEASE, 10_000), (Span::from_millis(100), 3_000)] {
        let (board, clock) = board(lease);
        millis(patience).await;
        assert!(board.health().is_healthy());
        millis(2).await;
        let health = board.health();
        assert!(!health.is_healthy() && health.reasons().len() == 1);
        let reason = &health.reasons()[0];
        assert!(reason.starts_with("the loop that keeps the leases has not run for"), "{reason}");
        board.turned(clock.now());
        assert_eq!(board.health(), Health::of(Vec::new(), Vec::new()));
    }
}

#[tokio::test(start_paused = true)]
async fn the_table_has_a_lease_duration_since_its_first_failure() {
    let failures = [Outcome::NotSent(Cause::Network), Outcome::Unknown(Cause::Timeout), refused(Why::Denied)];
    let answers = [Outcome::Applied(Reply::Done), refused(Why::ConditionFailed)];
    let (board, clock) = board(LEASE);
    let after = async |span: u64| {
        millis(span).await;
        board.turned(clock.now());
        board.health().is_healthy()
    };
    for (failure, answer) in failures.iter().zip(answers.iter().cycle()) {
        assert!(after(60_000).await, "nothing was asked");
        board.table(clock.now(), failure);
        assert!(after(9_000).await);
        board.table(clock.now(), failure);
        assert!(after(1_000).await);
        assert!(!after(2).await, "the first failure counts: {failure:?}");
        let reason = board.health().reasons()[0].clone();
        assert!(reason.starts_with("every request to the lease table has failed for 10.0"), "{reason}");
        board.table(clock.now(), answer);
        assert!(after(0).await, "{answer:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_standing_runtime_is_unhealthy_after_a_lease_until_it_runs() {
    let (board, clock) = board(LEASE);
    let mut writer = BoardWriter::new(board.clone());
    let mut hear = |news| writer.notice(clock.now(), &Notice::Runtime(news));
    let after = async |span: u64| {
        millis(span).await;
        board.turned(clock.now());
        board.health().reasons().to_vec()
    };
    millis(60_000).await;
    hear(RuntimeNews::Blocked {
        idle: Span::from_secs(5),
        let_go_in: Some(Span::from_secs(25)),
        said: Some("the handler of s-1 has blocked a thread for 5.000s".into()),
    });
    assert_eq!(after(5_000).await, [""; 0]);
    let lasts = "the runtime that runs the handlers has run no task for";
    assert_eq!(
        after(1_000).await,
        [format!("{lasts} 11.000s: the handler of s-1 has blocked a thread for 5.000s")]
    );
    assert_eq!(board.status().blocked_for, Some(Span::from_secs(11)));
    hear(RuntimeNews::LetsGo { idle: Span::from_secs(30), leases: 2 });
    let reasons = after(0).await;
    assert!(reasons[0].ends_with("; the leases were let go of, so that other workers read the shards"));
    hear(RuntimeNews::Runs { after: Span::from_secs(31), let_go: true });
    assert_eq!(after(0).await, [""; 0]);
    assert_eq!(board.status().blocked_for, None);
}

#[tokio::test(start_paused = true)]
async fn an_end_is_told_once_and_nothing_else_counts_then() {
    for (result, reason) in [
        (Some(Ok(())), None),
        (Some(Err("the stream is gone")), Some("the worker has ended: the stream is gone")),
        (
            None,
            Some(
                "the worker has ended: the future of `Worker::run` was dropped, or panicked, before the worker had stopped",
            ),
        ),
    ] {
        let (board, clock) = board(LEASE);
        let running = board.run();
        match &result {
            Some(result) => running.ended(result),
            None => drop(running),
        }
        board.table(clock.now(), &Outcome::NotSent(Cause::Network));
        millis(60_000).await;
        let health = board.health();
        assert_eq!(health.reasons(), reason.map(str::to_owned).as_slice());
        assert_eq!(board.status().phase, Phase::Stopped);
    }
}

#[tokio::test(start_paused = true)]
async fn held_leases_are_shown_in_order_and_are_in_the_stops_report() {
    let (board, clock) = board(LEASE);
    let mut writer = BoardWriter::new(board.clone());
    let mut engine = Holding::leases(20).engine().clone();
    writer.follow(clock.now(), &mut engine, |_| {});
    let status = board.status();
    let shown: Vec<_> = status.leases.iter().map(|lease| lease.lease.clone()).collect();
    let mut held: Vec<_> = engine.held().map(|held| held.lease.clone()).collect();
    held.sort();
    assert_eq!((shown.len(), shown), (20, held));
    writer.notice(clock.now(), &Notice::ShuttingDown { held: 20 });
    let durable = status.leases.iter().map(|lease| (lease.shard.clone(), lease.checkpoint));
    assert_eq!(writer.durable(), durable.collect());
}
