//! A shard at LATEST begins once: with any reader, and after any end of the owner before, no record since the
//! beginning is lost.

use leasehold::{InitialPosition, Notice};
use leasehold_tests::consume::Target;
use leasehold_tests::member::Place;
use leasehold_tests::probe::Probe;
use leasehold_tests::two_shards::{SHARDS, TwoShards, all_become};
use leasehold_tests::wait::until;
use std::collections::BTreeSet;
use std::time::Duration;

const STREAM: &str = "begun";
const APPLICATION: &str = "begins";
const SOON: Duration = Duration::from_secs(60);

fn at_latest(scene: &TwoShards) -> Probe {
    Probe::of(scene.worker_builder().initial_position(InitialPosition::Latest))
}

/// Waits until a worker has opened this number of shards.
async fn opened(probe: &Probe, count: usize) {
    until("the shards to be opened", SOON, || async {
        let seen = probe.seen();
        let opened = seen.notices.iter().filter(|notice| matches!(notice, Notice::Opened { .. }));
        opened.count() >= count
    })
    .await;
}

/// A stream with a record from long before the application.
async fn scene() -> TwoShards {
    let scene = TwoShards::start(STREAM, APPLICATION).await;
    scene.put("old").await;
    tokio::time::sleep(Duration::from_millis(1_500)).await;
    scene
}

#[tokio::test]
async fn records_between_a_stop_and_a_start_are_handed_over_too() {
    let scene = scene().await;
    let mut first = at_latest(&scene);
    opened(&first, SHARDS.len()).await;
    first.shutdown().await;
    scene.put("between").await;
    let mut second = at_latest(&scene);
    all_become(&second, &["between"]).await;
    scene.put("later").await;
    all_become(&second, &["between", "later"]).await;
    second.shutdown().await;
    assert_eq!(first.seen().count(), 0, "what is older than the application is not read");
}

/// Neither worker has a checkpoint when the shard changes hands.
#[tokio::test]
async fn a_worker_that_joins_goes_on_where_the_other_one_began() {
    let scene = scene().await;
    let mut first = at_latest(&scene);
    opened(&first, SHARDS.len()).await;
    let mut second = at_latest(&scene);
    let mut put = BTreeSet::new();
    for n in 0..40 {
        let data = format!("n{n:02}");
        scene.put(&data).await;
        put.insert(data);
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    opened(&second, 1).await;
    for shard in SHARDS {
        until("all records to be processed", SOON, || async {
            let of = |probe: &Probe| -> Vec<String> {
                let seen = probe.seen();
                let records = seen.records.get(shard).into_iter().flatten();
                records.map(|(_, data)| data.clone()).collect()
            };
            let all: BTreeSet<String> = of(&first).into_iter().chain(of(&second)).collect();
            all == put
        })
        .await;
    }
    first.shutdown().await;
    second.shutdown().await;
}

#[tokio::test]
async fn records_after_a_kill_are_handed_over_by_the_next_worker() {
    let scene = scene().await;
    let place = Place {
        stream: STREAM.into(),
        application: APPLICATION.into(),
        ..Place::at(&scene.local.endpoint, env!("CARGO_TARGET_TMPDIR").into())
    };
    let more = &["--from", "latest"];
    let target = Target { more, ..Target::new(env!("CARGO_BIN_EXE_leasehold-under-test"), place) };
    let mut killed = target.start("begins-killed");
    until("the shards to be opened", SOON, || async {
        killed.process.stderr().matches("started processing").count() >= SHARDS.len()
    })
    .await;
    killed.process.kill().expect("a kill");
    for n in 0..10 {
        scene.put(&format!("n{n}")).await;
    }
    let next = target.start("begins-next");
    let expected: BTreeSet<String> = (0..10).map(|n| format!("n{n}")).collect();
    until("what came after the kill", SOON, || async {
        SHARDS.iter().all(|shard| {
            let printed = next.printed().into_iter().filter(|record| record.shard == *shard);
            printed.map(|record| record.data).collect::<BTreeSet<_>>() == expected
        })
    })
    .await;
}
