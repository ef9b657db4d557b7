//! Shards of a running worker, paused by the program.

use leasehold::Notice;
use leasehold::aws::dynamodb;
use leasehold_tests::two_shards::{SHARDS, TwoShards};
use leasehold_tests::wait::until;
use std::time::Duration;

const STREAM: &str = "paused";
const APPLICATION: &str = "pauses";
const SOON: Duration = Duration::from_secs(60);

/// How often the row of a shard's lease was written.
async fn counter(client: &dynamodb::Client, shard: &str) -> u64 {
    let key = dynamodb::types::AttributeValue::S(shard.to_owned());
    let row = client.get_item().table_name(APPLICATION).key("leaseKey", key);
    let item = row.send().await.ok().and_then(|answer| answer.item);
    let counter = item.and_then(|item| item["leaseCounter"].as_n().ok().cloned());
    counter.and_then(|text| text.parse().ok()).unwrap_or(0)
}

#[tokio::test]
async fn a_paused_shard_gets_nothing_keeps_its_lease_and_goes_on() {
    let scene = TwoShards::start(STREAM, APPLICATION).await;
    scene.put("before").await;
    let mut probe = scene.worker();
    let count = |shard: &str| probe.seen().records.get(shard).map_or(0, Vec::len);
    let counts = || SHARDS.map(count);
    until("both shards to be processed", SOON, || async { counts() == [1, 1] }).await;

    let control = probe.control().clone();
    control.pause(SHARDS[0]);
    probe.told("the pause", |notice| matches!(notice, Notice::Paused { .. })).await;
    scene.put("during").await;
    until("the other shard", SOON, || async { counts() == [1, 2] }).await;
    let before = counter(&scene.dynamodb, SHARDS[0]).await;
    // More than two lives of a lease.
    tokio::time::sleep(Duration::from_secs(4)).await;
    assert_eq!(counts(), [1, 2]);
    let after = counter(&scene.dynamodb, SHARDS[0]).await;
    assert!(after >= before + 5, "expected renewals, found {before} and {after}");
    let lost = |notice: &Notice| matches!(notice, Notice::Lost { .. } | Notice::Stalled { .. });
    assert!(!probe.seen().notices.iter().any(lost));

    control.resume(SHARDS[0]);
    until("the paused shard", SOON, || async { counts() == [2, 2] }).await;
    control.pause(SHARDS[1]);
    probe.shutdown().await;
    control.pause(SHARDS[0]);
}
