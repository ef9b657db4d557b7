//! `Control::rewind`: shards of a running worker are put at another place by the program itself.

use leasehold::admin::{Stepped, To, Which};
use leasehold::{Checkpoint, Notice, Wall};
use leasehold_tests::probe::Probe;
use leasehold_tests::two_shards::{SHARDS, TwoShards, all_become, becomes};
use leasehold_tests::wait::until;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

const STREAM: &str = "rewound";
const APPLICATION: &str = "rewinds";
const SOON: Duration = Duration::from_secs(60);

/// Waits until all progress is durable: records coming again later come because of a rewind.
async fn settled(probe: &Probe) {
    until("checkpoints of all that was processed", SOON, || async {
        let leases = probe.control().status().leases;
        let durable = leases.iter().filter(|lease| {
            let seen = probe.seen();
            let last = seen.last(lease.lease.as_str());
            matches!(lease.checkpoint, Checkpoint::At(at) if last == Some(&at.sequence.to_string()))
        });
        durable.count() == SHARDS.len()
    })
    .await;
}

fn now() -> Wall {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).expect("a clock");
    Wall(since.as_millis() as i64)
}

fn one(shard: &str) -> Which {
    Which::Shards(vec![shard.into()])
}

#[tokio::test]
async fn a_shard_of_the_workers_own_is_read_again_from_its_new_place() {
    let scene = TwoShards::start(STREAM, APPLICATION).await;
    scene.put("a").await;
    tokio::time::sleep(Duration::from_millis(50)).await;
    let after_a = now();
    tokio::time::sleep(Duration::from_millis(50)).await;
    scene.put("b").await;
    let mut probe = scene.worker();
    all_become(&probe, &["a", "b"]).await;
    settled(&probe).await;

    // Nothing is written before it is applied.
    let rewind = probe.control().rewind(&one(SHARDS[0]), To::TrimHorizon).await;
    let rewind = rewind.expect("a plan");
    assert_eq!((rewind.plan().steps.len(), rewind.plan().left.len()), (1, 0));
    let told = rewind.to_string();
    for part in [
        "rewind shardId-000000000000 from",
        "to TRIM_HORIZON",
        "is alive and loses the lease",
        "every record that the stream still has of the shard comes again",
    ] {
        assert!(told.contains(part), "{told}");
    }
    tokio::time::sleep(Duration::from_secs(1)).await;
    becomes(&probe, SHARDS[0], &["a", "b"]).await;

    let done = rewind.apply().await.expect("writes");
    assert!(done.iter().all(|done| done.how == Stepped::Written), "{done:?}");
    becomes(&probe, SHARDS[0], &["a", "b", "a", "b"]).await;
    let lost = |notice: &Notice| matches!(notice, Notice::Lost { lease, .. } if lease.as_str() == SHARDS[0]);
    assert!(probe.seen().notices.iter().any(lost), "its lease was taken from it");
    settled(&probe).await;

    // A time, in all shards; what comes meanwhile is not lost.
    let rewind = probe.control().rewind(&Which::All, To::Time(after_a)).await;
    scene.put("c").await;
    becomes(&probe, SHARDS[1], &["a", "b", "c"]).await;
    settled(&probe).await;
    rewind.expect("a plan").apply().await.expect("writes");
    becomes(&probe, SHARDS[1], &["a", "b", "c", "b", "c"]).await;
    becomes(&probe, SHARDS[0], &["a", "b", "a", "b", "c", "b", "c"]).await;
    settled(&probe).await;
    probe.shutdown().await;
}

#[tokio::test]
async fn a_worker_that_does_not_run_plans_for_the_table_that_is_there() {
    let scene = TwoShards::start(STREAM, APPLICATION).await;
    let idle = scene.worker_builder().build().expect("a worker");
    let control = idle.control();
    let told = control.rewind(&Which::All, To::TrimHorizon).await.expect_err("no table").to_string();
    assert!(told.contains("expected a table of that name"), "{told}");

    scene.put("a").await;
    let mut probe = scene.worker();
    all_become(&probe, &["a"]).await;
    settled(&probe).await;
    probe.shutdown().await;
    let rewind = control.rewind(&Which::All, To::TrimHorizon).await.expect("a plan");
    assert_eq!(rewind.plan().steps.len(), 2);
    rewind.apply().await.expect("writes");
    let mut probe = scene.worker();
    all_become(&probe, &["a"]).await;
    probe.shutdown().await;

    // Requests without sense are refused before any read.
    for (which, to, part) in [
        (Which::All, To::Number(7.into()), "expected one shard"),
        (one(SHARDS[0]), To::Time(Wall(now().0 + 60_000)), "expected a time in the past"),
    ] {
        let told = control.rewind(&which, to).await.expect_err("a refusal").to_string();
        assert!(told.contains(part), "{told}");
    }
}
