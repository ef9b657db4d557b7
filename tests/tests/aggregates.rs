//! Aggregated records of a producer whose map of the shards is outdated.

use leasehold::Misplaced;
use leasehold_tests::account::Account;
use leasehold_tests::probe::Probe;
use leasehold_tests::two_shards::TwoShards;
use leasehold_tests::wait::until;
use std::time::Duration;

const STREAM: &str = "aggregated";
const SOON: Duration = Duration::from_secs(60);

/// Where the first shard is split.
const MIDDLE: u128 = 1 << 126;

/// The parts a and c of the hash key 1, and b and d of a hash key of the other child.
const WHOLE: &str = "f3899ac20a016b12013112263835303730353931373330323334363135383635383433363531383537393432303532383635 \
    1a07080010001a01611a07080010011a01621a07080010001a01631a07080010011a016484fa2d7960148ec6e6998a9f676e \
    8876";

/// The parts b and d again.
const REST: &str = "f3899ac20a016b12013112263835303730353931373330323334363135383635383433363531383537393432303532383635 \
    1a07080010011a01621a07080010011a0164dcb5ecfa42240a2799a8377eab57108c";

fn bytes(hex: &str) -> Vec<u8> {
    let digits: Vec<u8> = hex.bytes().filter(u8::is_ascii_hexdigit).collect();
    let pairs = digits.chunks(2).map(|pair| String::from_utf8_lossy(pair).into_owned());
    pairs.map(|pair| u8::from_str_radix(&pair, 16).expect("two digits")).collect()
}

/// After a split, a KPL since August 2024 sends an aggregated record by its old map to one child, and then sends
/// again the records of the second child.
async fn after_a_split(application: &'static str) -> TwoShards {
    let scene = TwoShards::start(STREAM, application).await;
    scene.split_first(MIDDLE).await;
    let account: &Account = &scene;
    account.put(STREAM, 1, bytes(WHOLE)).await;
    account.put(STREAM, MIDDLE + 1, bytes(REST)).await;
    scene
}

#[tokio::test]
async fn stored_events_after_a_split_are_handed_over_once() {
    let scene = after_a_split("default").await;
    let mut probe = scene.worker();
    until("all four parts", SOON, || async { probe.seen().payloads() == ["a", "b", "c", "d"] }).await;
    assert_eq!(probe.seen().count(), 4, "each once");
    probe.shutdown().await;
}

#[tokio::test]
async fn all_that_an_aggregate_holds_is_handed_over_if_that_is_chosen() {
    let scene = after_a_split("keeps").await;
    let mut probe = Probe::of(scene.worker_builder().misplaced_aggregates(Misplaced::Keep));
    until("six parts", SOON, || async { probe.seen().count() == 6 }).await;
    assert_eq!(probe.seen().payloads(), ["a", "b", "c", "d"]);
    probe.shutdown().await;
}
