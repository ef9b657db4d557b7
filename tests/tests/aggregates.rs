//! Aggregated records of a producer whose map of the shards is outdated.

use leasehold::{Misplaced, Worker};
use leasehold_tests::probe::Probe;
use leasehold_tests::two_shards::{SHARDS, TwoShards};
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
    let split = scene.kinesis.split_shard().stream_name(STREAM).shard_to_split(SHARDS[0]);
    let split = split.new_starting_hash_key(MIDDLE.to_string());
    split.send().await.expect("a split");
    for (key, data) in [(1, WHOLE), (MIDDLE + 1, REST)] {
        let put = scene.kinesis.put_record().stream_name(STREAM).partition_key("k");
        let put = put.explicit_hash_key(key.to_string()).data(bytes(data).into());
        put.send().await.expect("a record");
    }
    scene
}

fn worker(scene: &TwoShards, application: &str, misplaced: Option<Misplaced>) -> Probe {
    let builder = Worker::builder()
        .kinesis(scene.kinesis.clone())
        .dynamodb(scene.dynamodb.clone())
        .stream(STREAM)
        .application(application);
    Probe::of(match misplaced {
        Some(misplaced) => builder.misplaced_aggregates(misplaced),
        None => builder,
    })
}

#[tokio::test]
async fn stored_events_after_a_split_are_handed_over_once() {
    let scene = after_a_split("default").await;
    let mut probe = worker(&scene, "default", None);
    until("all four parts", SOON, || async { probe.seen().payloads() == ["a", "b", "c", "d"] }).await;
    assert_eq!(probe.seen().count(), 4, "each once");
    probe.shutdown().await;
}

#[tokio::test]
async fn all_that_an_aggregate_holds_is_handed_over_if_that_is_chosen() {
    let scene = after_a_split("keeps").await;
    let mut probe = worker(&scene, "keeps", Some(Misplaced::Keep));
    until("six parts", SOON, || async { probe.seen().count() == 6 }).await;
    assert_eq!(probe.seen().payloads(), ["a", "b", "c", "d"]);
    probe.shutdown().await;
}
