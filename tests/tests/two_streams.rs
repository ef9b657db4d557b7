//! Two streams under one application name, with real workers against the AWS in memory.

use leasehold::aws::{dynamodb, kinesis};
use leasehold::{Error, Fatal};
use leasehold_tests::clients;
use leasehold_tests::local::{Local, instant};
use leasehold_tests::probe::Probe;
use std::collections::{BTreeMap, BTreeSet};

const TABLE: &str = "billing";

struct Scene {
    _local: Local,
    kinesis: kinesis::Client,
    dynamodb: dynamodb::Client,
}

impl Scene {
    async fn start() -> Self {
        let local = Local::start(instant()).await;
        Self {
            kinesis: clients::kinesis(&local.endpoint),
            dynamodb: clients::dynamodb(&local.endpoint),
            _local: local,
        }
    }

    /// Makes a stream with this number of shards and records.
    async fn create(&self, stream: &str, shards: i32, records: u32) {
        let create = self.kinesis.create_stream().stream_name(stream);
        create.shard_count(shards).send().await.expect("a stream");
        self.put(stream, 0..records).await;
    }

    async fn put(&self, stream: &str, numbers: std::ops::Range<u32>) {
        for number in numbers {
            let put = self.kinesis.put_record().stream_name(stream);
            let put = put.partition_key(format!("k{number}"));
            let data = format!("{stream} {number:04}").into_bytes();
            put.data(data.into()).send().await.expect("a record");
        }
    }

    fn probe(&self, stream: &str) -> Probe {
        Probe::start(self.kinesis.clone(), self.dynamodb.clone(), stream, TABLE)
    }

    /// The stream names in the rows, by the keys of the rows.
    async fn names(&self) -> BTreeMap<String, Option<String>> {
        let scan = self.dynamodb.scan().table_name(TABLE).send().await;
        let rows = scan.expect("rows").items.unwrap_or_default();
        let text = |value: &dynamodb::types::AttributeValue| value.as_s().expect("a text").clone();
        rows.iter().map(|row| (text(&row["leaseKey"]), row.get("leaseholdStream").map(text))).collect()
    }
}

/// The error of a worker refusing the table of another stream.
async fn refuses(probe: &mut Probe) -> String {
    let error = probe.failed().await;
    assert!(matches!(error, Error::Fatal(Fatal::OtherStream { .. })), "{error:?}");
    error.to_string()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_second_stream_is_refused_and_the_first_is_read_on() {
    let scene = Scene::start().await;
    scene.create("orders", 2, 20).await;
    scene.create("returns", 4, 40).await;
    let mut orders = scene.probe("orders");
    orders.processed(20).await;
    let mut returns = scene.probe("returns");
    let said = refuses(&mut returns).await;
    for part in [":stream/orders", ":stream/returns", "\"billing\"", "shardId-"] {
        assert!(said.contains(part), "expected {part:?} in: {said}");
    }
    assert_eq!(returns.seen().count(), 0, "nothing was read");
    scene.put("orders", 20..30).await;
    orders.processed(30).await;
    orders.shutdown().await;
    let names = scene.names().await;
    assert_eq!(names.len(), 2, "{names:?}");
    let of_orders =
        |name: &Option<String>| name.as_ref().is_some_and(|name| name.contains(":stream/orders@"));
    assert!(names.values().all(of_orders), "{names:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn of_two_streams_that_begin_together_none_is_half_read() {
    let scene = Scene::start().await;
    scene.create("orders", 20, 100).await;
    scene.create("returns", 40, 200).await;
    let mut sides =
        [("orders", 100), ("returns", 200)].map(|(stream, all)| (stream, all, scene.probe(stream)));
    let mut refused = 0;
    for (stream, all, probe) in &mut sides {
        // Who goes on reads everything; who does not says why.
        let ended = tokio::select! {
            said = refuses(probe) => Some(said),
            () = tokio::time::sleep(std::time::Duration::from_secs(20)) => None,
        };
        let seen: BTreeSet<String> = probe.seen().payloads().into_iter().collect();
        assert!(seen.iter().all(|data| data.starts_with(*stream)), "{stream}: {seen:?}");
        match ended {
            Some(_) => refused += 1,
            None => {
                assert_eq!(seen.len(), *all, "{stream} goes on, and not with everything");
                probe.shutdown().await;
            }
        }
    }
    assert!(refused > 0, "expected a fleet to refuse the table of both");
}

/// Kinesis would refuse the former stream's checkpoints, but not the initial positions of leases without progress.
#[tokio::test(flavor = "multi_thread")]
async fn a_stream_made_anew_does_not_go_on_under_the_former_rows() {
    let scene = Scene::start().await;
    scene.create("orders", 2, 0).await;
    let mut probe = scene.probe("orders");
    leasehold_tests::wait::until("both leases", std::time::Duration::from_secs(30), || async {
        probe.seen().notices.iter().filter(|notice| notice.name() == "took").count() == 2
    })
    .await;
    probe.shutdown().await;
    let delete = scene.kinesis.delete_stream().stream_name("orders");
    delete.send().await.expect("a deletion");
    // Creation times are told apart by the second.
    tokio::time::sleep(std::time::Duration::from_secs(2)).await;
    scene.create("orders", 2, 10).await;
    let mut anew = scene.probe("orders");
    refuses(&mut anew).await;
    assert_eq!(anew.seen().count(), 0);
}
