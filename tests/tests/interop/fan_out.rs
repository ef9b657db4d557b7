//! Fleets of our own workers that read by subscription (enhanced fan-out).

use super::fleet::Fleet;
use leasehold_tests::member::Member;

const TIMES: [&str; 5] = [
    "--lease-duration=3 s",
    "--renew-interval=950 ms",
    "--scan-interval=1 s",
    "--table-timeout=900 ms",
    "--checkpoint-interval=200 ms",
];
const BY_SUBSCRIPTION: &[&str] = &[TIMES[0], TIMES[1], TIMES[2], TIMES[3], TIMES[4], "--reader-mode=fan-out"];
const BOTH_WAYS: &[&str] = &[TIMES[0], TIMES[1], TIMES[2], TIMES[3], TIMES[4], "--reader-mode=auto"];
const BY_POLLING: &[&str] = &[TIMES[0], TIMES[1], TIMES[2], TIMES[3], TIMES[4]];

/// A join, a split, a merge, a leave and a crash.
async fn everything(test: &'static str, options: [&'static [&'static str]; 2]) {
    let (fleet, producer) = Fleet::start(test).await;
    let mut anna = fleet.ours_with("anna", options[0]);
    fleet.until_read("anna to read all", &[0, 1, 2], &["anna"]).await;
    let mut bert = fleet.ours_with("bert", options[1]);
    fleet.until_read("bert to get a share", &[0, 1, 2], &["anna", "bert"]).await;
    fleet.world.split_first().await;
    fleet.world.merge_others().await;
    fleet.until_read_among("the children", &[3, 4, 5], &["anna", "bert"]).await;
    fleet.leave(&mut anna).await;
    fleet.until_read("what anna read", &[3, 4, 5], &["bert"]).await;
    let carl = fleet.ours_with("carl", options[0]);
    fleet.until_read("carl to get a share", &[3, 4, 5], &["bert", "carl"]).await;
    fleet.kill(&mut bert);
    fleet.until_read("what bert read", &[3, 4, 5], &["carl"]).await;
    if options[0] != BY_POLLING {
        subscribed(&carl);
    }
    fleet.finish(producer, vec![carl]).await;
}

/// That a worker has found its consumer.
fn subscribed(worker: &Member) {
    let log = worker.process.stderr();
    assert!(log.contains("shards are read by subscription"), "{log}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_fleet_reads_by_subscription_alone() {
    everything("fan-out-alone", [BY_SUBSCRIPTION, BY_SUBSCRIPTION]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_fleet_reads_by_subscription_and_by_polling_meanwhile() {
    everything("fan-out-auto", [BOTH_WAYS, BOTH_WAYS]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn workers_that_subscribe_and_workers_that_poll_share_a_fleet() {
    everything("fan-out-mixed", [BOTH_WAYS, BY_POLLING]).await;
}
